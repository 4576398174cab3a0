"""How a BMC is asked, whatever the way to it: the transport, completion codes, and the errors that tell them apart.

A transport carries one command at a time and judges nothing but the way; what an answer means is decided here and in
the modules of the commands (`ipmi_alarms`, `ipmi_label`), which are pure and take `raw` as an argument.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from nodeagent.core.errors import IpmiAccessError, IpmiError, IpmiNotSupportedError

MAX_TRIES = 3
"""How often a command is sent whose answer is that the BMC is busy (node-faults 3.6)."""
NETFN_OEM = 0x30
"""Network function of the commands of Huawei, plain, not shifted (2.3)."""
OK = 0x00
BUSY = frozenset({0xC0, 0xC3, 0xD3, 0xFF})
"""Completion codes that pass: asked again at once or after a short pause (3.6)."""
UNSUPPORTED = frozenset({0xC1, 0xC2, 0xD4, 0xD5, 0xD6})
"""Completion codes that stay: not the right BMC, version or privilege (3.6)."""
OUT_OF_RANGE = frozenset({0xC9, 0xCB})
"""Completion codes for an index that a list does not have (any more) (3.6)."""
COMPLETION_CODES: Mapping[int, str] = {
    0xC0: "busy",
    0xC1: "command unknown",
    0xC2: "command unknown for this LUN",
    0xC3: "timeout inside the BMC",
    0xC4: "out of space",
    0xC5: "reservation cancelled",
    0xC6: "request data truncated",
    0xC7: "wrong length of the request",
    0xC8: "length of a field exceeded",
    0xC9: "index out of range",
    0xCA: "cannot return that many bytes",
    0xCB: "no such record",
    0xCC: "wrong value in the request",
    0xCD: "command illegal for this record",
    0xCE: "answer could not be given",
    0xCF: "duplicated request",
    0xD0: "sensor records are being updated",
    0xD1: "firmware is being updated",
    0xD2: "the BMC is starting",
    0xD3: "destination unavailable",
    0xD4: "privilege not sufficient",
    0xD5: "not possible in the present state",
    0xD6: "function disabled",
    0xFF: "unspecified error",
}
"""What completion codes mean, in our words (IPMI 2.0, table 5-2)."""
_OLD_FIRMWARE = "alarms need iBMC V2 3.15.0.1 or later, or exactly V2 3.10.02.55"
_HINTS = {
    0xC1: _OLD_FIRMWARE,
    0xC2: _OLD_FIRMWARE,
    0xD4: "the account of the BMC needs the privilege of an administrator",
    0xD6: "the function is switched off in the BMC",
}

Raw = Callable[[int, int, bytes], bytes]
"""Network function, command and data of a request to completion code and payload of its answer."""


class Transport(Protocol):
    """An open way to the BMC, for one thread and one command at a time."""

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """Completion code followed by the payload.

        Raises IpmiError (no answer in time, or a damaged one) and IpmiAccessError (no way to the BMC).
        """

    def close(self) -> None:
        """Give the way back; may be called twice."""


Connect = Callable[[], Transport]
"""Opens a transport. Raises IpmiAccessError, or IpmiError where the BMC does not answer."""


class CompletionError(IpmiError):
    """The BMC answered with a completion code other than 0. completion: that code."""

    def __init__(self, what: str, completion: int) -> None:
        super().__init__(f"the BMC answered {what} with completion code {completion_text(completion)}")
        self.completion = completion


class CommandNotSupportedError(IpmiNotSupportedError):
    """The same for a code which says that asking again soon is of no use. completion: that code."""

    def __init__(self, what: str, completion: int) -> None:
        super().__init__(
            f"the BMC does not support {what}: completion code {completion_text(completion)}",
            _HINTS.get(completion, ""),
        )
        self.completion = completion


class NoAnswerError(IpmiError):
    """The BMC did not answer in time."""


class DamagedAnswerError(IpmiError):
    """An answer came that cannot be what the BMC means."""


class LoginRefusedError(IpmiAccessError):
    """The BMC refuses user or password: each further try brings the account nearer to being locked."""


def completion_text(completion: int) -> str:
    """A completion code for people, such as `C7 (wrong length of the request)`."""
    meaning = COMPLETION_CODES.get(completion, "")
    return f"{completion:02X}" + (f" ({meaning})" if meaning else "")


def payload_of(answer: bytes, what: str) -> bytes:
    """The payload of a good answer. what: the request in words, for the sentence of an error.

    Raises CompletionError, CommandNotSupportedError, DamagedAnswerError (no completion code at all).
    """
    if not answer:
        raise DamagedAnswerError(f"the BMC answered {what} with nothing, not even a completion code")
    if answer[0] in UNSUPPORTED:
        raise CommandNotSupportedError(what, answer[0])
    if answer[0] != OK:
        raise CompletionError(what, answer[0])
    return answer[1:]


def at_once() -> None:
    """No pause."""


def retrying(raw: Raw, pause: Callable[[], None] = at_once) -> Raw:
    """`raw` that sends a command up to MAX_TRIES times while the BMC is busy; the last answer counts whatever it is.

    pause: called before each further try; a short wait at the edge, which knows the clock.
    """

    def ask(netfn: int, command: int, data: bytes) -> bytes:
        answer = raw(netfn, command, data)
        for _ in range(MAX_TRIES - 1):
            if not answer or answer[0] not in BUSY:
                break
            pause()
            answer = raw(netfn, command, data)
        return answer

    return ask


def result_label(outcome: bytes | IpmiError) -> str:
    """How a command ended, as the label `result` of metrics. outcome: the answer, or what `raw` raised."""
    if isinstance(outcome, IpmiAccessError):
        return "no_access"
    if isinstance(outcome, NoAnswerError):
        return "no_answer"
    if isinstance(outcome, IpmiError) or not outcome:
        return "damaged"
    if outcome[0] in UNSUPPORTED:
        return "not_supported"
    if outcome[0] in BUSY:
        return "busy"
    return "ok" if outcome[0] == OK else "failed"
