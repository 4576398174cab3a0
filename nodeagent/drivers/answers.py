"""Return codes of the libraries: name, meaning, and what kind of answer each is (native-abi 3.1, 3.2).

The kind decides: only FAILED says something about the hardware, and even that is "unknown", never a fault
(lesson 7). `check` is the only place that turns a code into an error.
"""

from enum import Enum
from typing import NamedTuple

from nodeagent.core.errors import DriverError, HostError, NodeAgentError

NO_SYMBOL = -99998
NOT_LOADED = -99999
NOT_READY_RC = -8012
RAW_NOT_SUPPORTED = 65534
ALREADY_SUBSCRIBED = -8020


class AnswerKind(Enum):
    """What an unsuccessful call tells."""

    NOT_SUPPORTED = "not supported"
    NO_PERMISSION = "no permission"
    BUSY = "busy"
    NOT_READY = "not ready"
    WRONG_PRODUCT = "wrong product"
    FAILED = "failed"


class ReturnCode(NamedTuple):
    """One row of a table: the vendor's name ("" = not known), its meaning in our words, its kind."""

    name: str
    meaning: str
    kind: AnswerKind


_K = AnswerKind
RETURN_CODES: dict[int, ReturnCode] = {
    -8001: ReturnCode("INVALID_PARAMETER", "an argument is wrong", _K.FAILED),
    -8002: ReturnCode("OPER_NOT_PERMITTED", "needs root on the host or a privileged container", _K.NO_PERMISSION),
    -8003: ReturnCode("MEM_OPERATE_FAIL", "a memory operation failed", _K.FAILED),
    -8004: ReturnCode("SECURE_FUN_FAIL", "a checked string function failed", _K.FAILED),
    -8005: ReturnCode("INNER_ERR", "internal error of the driver", _K.FAILED),
    -8006: ReturnCode("TIME_OUT", "the device did not answer in time", _K.BUSY),
    -8007: ReturnCode("INVALID_DEVICE_ID", "no such device id", _K.FAILED),
    -8008: ReturnCode("DEVICE_NOT_EXIST", "the device does not exist", _K.FAILED),
    -8009: ReturnCode("IOCTL_FAIL", "the kernel refused the request", _K.FAILED),
    -8010: ReturnCode("SEND_MSG_FAIL", "no message could be sent to the device", _K.WRONG_PRODUCT),
    -8011: ReturnCode("RECV_MSG_FAIL", "no message came from the device", _K.FAILED),
    -8012: ReturnCode("NOT_REDAY", "the device is not ready", _K.NOT_READY),
    -8013: ReturnCode("NOT_SUPPORT_IN_CONTAINER", "not available in a container", _K.NO_PERMISSION),
    -8014: ReturnCode("FILE_OPERATE_FAIL", "a file operation failed", _K.FAILED),
    -8015: ReturnCode("RESET_FAIL", "the reset failed", _K.FAILED),
    -8016: ReturnCode("ABORT_OPERATE", "the operation was cancelled", _K.FAILED),
    -8017: ReturnCode("IS_UPGRADING", "a firmware upgrade is running", _K.BUSY),
    -8020: ReturnCode("RESOURCE_OCCUPIED", "occupied by another user", _K.BUSY),
    -8022: ReturnCode("PARTITION_NOT_RIGHT", "inconsistent partitions", _K.FAILED),
    -8023: ReturnCode("CONFIG_INFO_NOT_EXIST", "no such configuration item", _K.FAILED),
    -8255: ReturnCode("NOT_SUPPORT", "not supported by this device", _K.NOT_SUPPORTED),
    NO_SYMBOL: ReturnCode("NO_SYMBOL", "this driver version does not offer the function", _K.NOT_SUPPORTED),
    NOT_LOADED: ReturnCode("NOT_LOADED", "the library could not be loaded", _K.FAILED),
    RAW_NOT_SUPPORTED: ReturnCode("NOT_SUPPORT", "not supported by this device", _K.NOT_SUPPORTED),
}
LQ_RETURN_CODES: dict[int, ReturnCode] = {
    -8001: ReturnCode("", "an argument is wrong", _K.FAILED),
    -8002: ReturnCode("", "its log file could not be created", _K.FAILED),
    -8003: ReturnCode("", "out of memory", _K.FAILED),
    -8004: ReturnCode("", "the device node /dev/lqdcmi_pcidev could not be opened", _K.NOT_SUPPORTED),
    -8005: ReturnCode("", "the kernel refused the request", _K.FAILED),
    -8006: ReturnCode("", "a lock could not be created", _K.FAILED),
    -8007: ReturnCode("", "its thread could not be created", _K.FAILED),
    -8008: ReturnCode("", "library and kernel driver have different versions", _K.WRONG_PRODUCT),
    -8009: ReturnCode("", "it is not initialised", _K.FAILED),
    -8010: ReturnCode("", "too many processes use the switches", _K.BUSY),
    -8011: ReturnCode("", "memory could not be mapped", _K.FAILED),
    -8012: ReturnCode("", "memory could not be set", _K.FAILED),
    -8013: ReturnCode("", "memory could not be copied", _K.FAILED),
    -8014: ReturnCode("", "too many subscriptions", _K.BUSY),
    -8015: ReturnCode("", "the filter names something unknown", _K.FAILED),
    -8016: ReturnCode("", "there is no such subscription", _K.FAILED),
    -8017: ReturnCode("", "it was initialised twice", _K.FAILED),
    NO_SYMBOL: RETURN_CODES[NO_SYMBOL],
}
"""Codes of the switch library: the numbers of DCMI, but other meanings, and no names (3.2)."""
_UNKNOWN = ReturnCode("UNKNOWN", "unknown return code", AnswerKind.FAILED)


class AnswerError(DriverError):
    """A library function returned something other than 0.

    function: its exact name. rc: the number, which stays in the text because people search for it.
    """

    def __init__(self, function: str, rc: int) -> None:
        table = LQ_RETURN_CODES if function.startswith("lq_") else RETURN_CODES
        row = table.get(rc, _UNKNOWN)
        name = f" ({row.name})" if row.name else ""
        super().__init__(f"{function} returned {rc}{name}: {row.meaning}", hint_for(row.kind))
        self.function = function
        self.rc = rc
        self.kind = row.kind


class AnswerDamaged(AnswerError):
    """A function returned 0 and nonsense with it. what: the nonsense, for example a count out of range."""

    def __init__(self, function: str, what: str) -> None:
        super().__init__(function, 0)
        self.what = what
        self.sentence = f"{function} answered {what}"
        self.hint = ""
        self.kind = AnswerKind.FAILED


def hint_for(kind: AnswerKind) -> str:
    """What a reader can do about an answer of this kind; empty when nothing but waiting helps."""
    return {
        AnswerKind.NO_PERMISSION: "run as root on the host or in a privileged container",
        AnswerKind.NOT_SUPPORTED: "this product or driver version does not have it; nothing to do",
        AnswerKind.WRONG_PRODUCT: "driver and firmware may not match this product",
    }.get(kind, "")


def check(function: str, rc: int) -> None:
    """Raise AnswerError unless `rc` is 0."""
    if rc != 0:
        raise AnswerError(function, rc)


def result_label(error: NodeAgentError | None) -> str:
    """How a call ended, as the label `result` of metrics: ok, the kind of an answer, no_answer or failed."""
    if error is None:
        return "ok"
    if isinstance(error, AnswerError):
        return error.kind.value.replace(" ", "_")
    return "no_answer" if isinstance(error, HostError) else "failed"
