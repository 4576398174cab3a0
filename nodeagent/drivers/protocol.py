"""What parent and driver host say to each other: JSON over a UNIX SOCK_SEQPACKET pair, one message a packet.

parent -> child   {"id": 7, "call": "codes", "args": [0, 0, 3]}
child  -> parent  {"id": 7, "value": …}
                  {"id": 7, "rc": -8005, "function": "dcmi_get_device_health"}
                  {"id": 7, "rc": 0, "function": "dcmi_get_card_list", "what": "a card count of 65"}
                  {"id": 7, "error": ["NA301", "sentence", "hint"]}
                  {"events": [[…], …], "dropped": 12}

Nothing in it is about one library: the names of calls and the shape of events belong to the adapter.
"""

import json
from dataclasses import dataclass
from typing import Any

from nodeagent.core.errors import HostError

MAX_PACKET_BYTES = 180_000
"""Below the default send buffer of a UNIX socket (212,992), so that one packet always fits."""
MAX_EVENTS_PER_PACKET = 200


@dataclass(frozen=True, slots=True)
class Call:
    """A request: the call's number, its name, its arguments."""

    id: int
    name: str
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A call that succeeded."""

    id: int
    value: Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """A library function returned `rc`, or 0 and nonsense with it; then `what` says which."""

    id: int
    rc: int
    function: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed above the library: short code, sentence, hint."""

    id: int
    code: str
    sentence: str
    hint: str


@dataclass(frozen=True, slots=True)
class Events:
    """Events in the order of their callbacks. dropped: total of the ring's drops in this child's life."""

    events: tuple[tuple[Any, ...], ...]
    dropped: int


Answer = Value | Refusal | Failure
Message = Call | Answer | Events


def encode(message: Message) -> bytes:
    """The packet of a message. Raises HostError when it would not fit."""
    if isinstance(message, Call):
        body: dict[str, Any] = {"id": message.id, "call": message.name, "args": list(message.args)}
    elif isinstance(message, Value):
        body = {"id": message.id, "value": message.value}
    elif isinstance(message, Refusal):
        body = {"id": message.id, "rc": message.rc, "function": message.function}
        if message.what:
            body["what"] = message.what
    elif isinstance(message, Failure):
        body = {"id": message.id, "error": [message.code, message.sentence, message.hint]}
    else:
        body = {"events": message.events, "dropped": message.dropped}
    # ASCII, because a path that is not UTF-8 is text with surrogates, which only escapes can carry.
    packet = json.dumps(body, separators=(",", ":")).encode()
    if len(packet) > MAX_PACKET_BYTES:
        raise HostError(f"a message of {len(packet)} bytes is larger than the {MAX_PACKET_BYTES} that a packet holds")
    return packet


def decode(packet: bytes) -> Message:
    """The message of a packet. Raises HostError for anything that is not one."""
    try:
        body = json.loads(packet)
        if "call" in body:
            return Call(int(body["id"]), str(body["call"]), tuple(body["args"]))
        if "events" in body:
            return Events(tuple(tuple(e) for e in body["events"]), int(body["dropped"]))
        if "rc" in body:
            return Refusal(int(body["id"]), int(body["rc"]), str(body["function"]), str(body.get("what", "")))
        if "error" in body:
            code, sentence, hint = body["error"]
            return Failure(int(body["id"]), str(code), str(sentence), str(hint))
        return Value(int(body["id"]), body["value"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise HostError(f"the driver host sent something that is no message ({type(error).__name__})") from error
