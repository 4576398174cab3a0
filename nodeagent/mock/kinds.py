"""Kinds of values in node descriptions, timelines and commands: what is accepted and what it becomes."""

import ipaddress
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodeagent.core.alarms import DEVICE_TYPES, UNKNOWN_TYPE
from nodeagent.core.codes import parse_code
from nodeagent.core.storage import StorageClient
from nodeagent.mock.alarm_file import check_label
from nodeagent.mock.bmc import ALARM_SEVERITIES, MAX_LABEL_CHARACTERS, MAX_PAGE
from nodeagent.mock.events import SEVERITIES
from nodeagent.mock.functions import canonical
from nodeagent.mock.storage import Instances, parse_instances
from nodeagent.mock.switch_event import PEERS, SwitchCode, parse_switch_code


class ValueProblem(ValueError):
    """A value does not fit: the key and a sentence."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(f"{key}: {sentence}")
        self.key = key
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value.

    convert: typed value of a raw one, ValueError when it does not fit.
    from_text: raw value of a command-line word. quoted: YAML must write it in quotes.
    """

    name: str
    convert: Callable[[object], Any]
    from_text: Callable[[str], object] = str
    quoted: bool = False

    def check(self, key: str, raw: object) -> Any:
        """The typed value; ValueProblem naming `key` when it does not fit."""
        try:
            return self.convert(raw)
        except (ValueError, TypeError) as problem:
            raise ValueProblem(key, str(problem)) from None


def _integer(low: int, high: int) -> Callable[[object], int]:
    def convert(raw: object) -> int:
        if not isinstance(raw, int) or isinstance(raw, bool) or not low <= raw <= high:
            raise ValueError(f"must be a whole number {low}..{high}, not {raw!r}")
        return raw

    return convert


def _number(raw: object) -> float:
    if not isinstance(raw, (int, float)) or isinstance(raw, bool) or not 0 <= raw <= 1e9:
        raise ValueError(f"must be a number of 0 or more, not {raw!r}")
    return float(raw)


def _positive(raw: object) -> float:
    number = _number(raw)
    if number == 0:
        raise ValueError("must be more than 0")
    return number


def _code(raw: object) -> int:
    if not isinstance(raw, str):
        raise ValueError(f'a fault code is a quoted hexadecimal text such as "80E18005", not {raw!r}')
    code = parse_code(raw)
    if code > 0xFFFFFFFF:
        raise ValueError(f"a driver code has 32 bits, {raw!r} is larger")
    return code


def _switch_code(raw: object) -> SwitchCode:
    return parse_switch_code(_text(raw))


def _peer(raw: object) -> int:
    if isinstance(raw, str) and raw in PEERS:
        return PEERS[raw]
    if isinstance(raw, str):
        raise ValueError(f"must be {', '.join(PEERS)} or a number, not {raw!r}")
    return _integer(0, 0xFFFF)(raw)


def _list_of(convert: Callable[[object], Any]) -> Callable[[object], tuple[Any, ...]]:
    def convert_list(raw: object) -> tuple[Any, ...]:
        if not isinstance(raw, (list, tuple)) or not raw:
            raise ValueError(f"must be a list that is not empty, not {raw!r}")
        return tuple(convert(item) for item in raw)

    return convert_list


def _hex_or_integer(raw: object) -> int:
    if isinstance(raw, str):
        return parse_code(raw)
    return _integer(0, 0xFFFFFFFF)(raw)


def _severity(raw: object) -> int:
    if isinstance(raw, str) and raw in SEVERITIES:
        return SEVERITIES[raw]
    raise ValueError(f"must be one of {', '.join(SEVERITIES)}, not {raw!r}")


def _alarm_severity(raw: object) -> int:
    if isinstance(raw, str) and raw in ALARM_SEVERITIES:
        return ALARM_SEVERITIES[raw]
    raise ValueError(f"must be one of {', '.join(ALARM_SEVERITIES)}, not {raw!r}")


def _subject(raw: object) -> int:
    if not isinstance(raw, str):
        return _integer(0, 255)(raw)
    for subject, name in DEVICE_TYPES.items():
        if name == raw != UNKNOWN_TYPE:
            return subject
    raise ValueError(f"must be the name of a device type such as CPU or PSU, or its byte, not {raw!r}")


def _completion_code(raw: object) -> int:
    if not isinstance(raw, str) or len(raw) != 2:
        raise ValueError(f'a completion code is two quoted hexadecimal digits such as "C3", not {raw!r}')
    return parse_code(raw)


def _octal(raw: object) -> int:
    if not isinstance(raw, str) or not raw or len(raw) > 4 or set(raw) - set("01234567"):
        raise ValueError(f'permission bits are a quoted octal text such as "0664", not {raw!r}')
    return int(raw, 8)


def _instances_of(client: StorageClient) -> Callable[[object], Instances]:
    def convert(raw: object) -> Instances:
        if not isinstance(raw, (list, tuple)):
            raise ValueError(f"must be a list, not {raw!r}")
        return parse_instances(client, [_text(item) for item in raw])

    return convert


def _label(raw: object) -> str:
    return check_label(_text(raw))


def _present(raw: object) -> bool:
    if raw not in ("present", "none"):
        raise ValueError(f"must be present or none, not {raw!r}")
    return raw == "present"


def _gateway(raw: object) -> int:
    value = _integer(0, 255)(raw)
    if 8 < value < 255:
        raise ValueError(f"must be 0..8 or 255, not {raw!r}")
    return value


def _up_down(raw: object) -> bool:
    if raw not in ("up", "down"):
        raise ValueError(f"must be up or down, not {raw!r}")
    return raw == "up"


def _flag(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise ValueError(f"must be true or false, not {raw!r}")
    return raw


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise ValueError(f"must be a text, not {raw!r}")
    return raw


def _profile(raw: object) -> str:
    """YAML reads 310 and 950 as numbers."""
    return str(raw) if type(raw) is int else _text(raw)


def _ip(raw: object) -> str:
    return str(ipaddress.ip_address(_text(raw)))


def _ip_or_none(raw: object) -> str:
    return "" if raw == "none" else _ip(raw)


def _bytes(raw: object) -> bytes:
    value = bytes.fromhex(_text(raw))
    if len(value) > 32:
        raise ValueError("must be at most 32 bytes")
    return value


def _function(raw: object) -> str:
    return canonical(_text(raw))


def _return_code(raw: object) -> int:
    return _integer(-99999, 65534)(raw)


def _signal(raw: object) -> int:
    if isinstance(raw, str):
        name = raw.upper() if raw.upper().startswith("SIG") else f"SIG{raw.upper()}"
        if name not in signal.Signals.__members__:
            raise ValueError(f"{raw!r} is not the name of a signal")
        return int(signal.Signals[name])
    return _integer(1, 64)(raw)


def _int_text(text: str) -> object:
    return int(text, 0)


def _peer_text(text: str) -> object:
    return text if text in PEERS else int(text, 0)


def _subject_text(text: str) -> object:
    return int(text, 0) if text[:1].isdigit() else text


def _items_text(text: str) -> object:
    return text.split(",") if text else []


def _flag_text(text: str) -> object:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _signal_text(text: str) -> object:
    return int(text) if text.isdigit() else text


CHIP = Kind("chip", _integer(0, 255), _int_text)
ANY_CHIP = Kind("chip", _integer(0, 0xFFFF), _int_text)
CARD = Kind("card", _integer(0, 2**31 - 2), _int_text)
CODE = Kind("code", _code, quoted=True)
CODES = Kind("codes", _list_of(_code), lambda text: text.split(","), quoted=True)
SEVERITY = Kind("severity", _severity)
BYTE = Kind("0..255", _integer(0, 255), _int_text)
SWITCH_CODE = Kind("code", _switch_code, quoted=True)
PEER = Kind("peer", _peer, _peer_text)
U16 = Kind("0..65535", _integer(0, 0xFFFF), _int_text)
U32 = Kind("seconds", _integer(0, 0xFFFFFFFF), _int_text)
CLAIM = Kind("number", _integer(-(2**31), 2**31 - 1), _int_text)
COUNT = Kind("number", _integer(0, 2**31 - 1), _int_text)
TIMES = Kind("number", _integer(1, 2**31 - 1), _int_text)
TIME_MS = Kind("milliseconds", _integer(0, 2**63), _int_text)
SECONDS = Kind("seconds", _number, float)
RATE = Kind("number", _positive, float)
GATEWAY = Kind("value", _gateway, _int_text)
UP_DOWN = Kind("up|down", _up_down)
FLAG = Kind("true|false", _flag, _flag_text)
TEXT = Kind("text", _text)
IP = Kind("address", _ip)
IP_OR_NONE = Kind("address", _ip_or_none)
PROFILE = Kind("profile", _profile)
BYTES = Kind("hex", _bytes, quoted=True)
FUNCTION = Kind("function", _function)
FUNCTIONS = Kind("functions", _list_of(_function))
RC = Kind("rc", _return_code, _int_text)
SIGNAL = Kind("signal", _signal, _signal_text)
ID = Kind("id", _hex_or_integer, _int_text)
CARDS = Kind("cards", _list_of(_integer(0, 2**31 - 2)))
ALARM_SEVERITY = Kind("severity", _alarm_severity)
SUBJECT = Kind("type", _subject, _subject_text)
COMPLETION_CODE = Kind("hex", _completion_code, quoted=True)
MANUFACTURER = Kind("number", _integer(0, 0xFFFFFF), _int_text)
PAGE = Kind("number", _integer(1, MAX_PAGE), _int_text)
DPC_INSTANCES = Kind("list", _instances_of(StorageClient.DPC), _items_text)
DTFS_INSTANCES = Kind("list", _instances_of(StorageClient.DTFS), _items_text)
MODE = Kind("octal", _octal, quoted=True)
LABEL_PART = Kind("number", _integer(1, MAX_LABEL_CHARACTERS), _int_text)
LABEL = Kind("text", _label)
PRESENT = Kind("present|none", _present)
