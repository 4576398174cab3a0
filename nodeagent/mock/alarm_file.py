"""The state of a pretended BMC as a text, as the module of tests/ipmi for OpenIPMI's ipmi_sim reads it.

A line is an alarm, `CODE TIME SEVERITY SUBJECT DEVICE` (`0000001D 1721762816 3 00 1`; code and subject hexadecimal,
time in Unix seconds), or begins with an exclamation mark: `!serial TEXT`, `!vendor TEXT`, `!page N`, and one for each
field of `BmcFault`, hexadecimal where it is a code or an id. What is not said is as in good health.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodeagent.core.alarms import Alarm
from nodeagent.mock.bmc import ALARM_SEVERITIES, MAX_LABEL_CHARACTERS, MAX_PAGE, BmcFault, BmcState

_U8, _U16, _U24, _U32 = 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class _Number:
    """A numeric word: its field, its base, and what is accepted."""

    name: str
    base: int
    low: int
    high: int

    def read(self, text: str) -> int:
        value = int(text, self.base)
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.name} is {text}, which is not within {self.low}..{self.high}")
        return value


_ALARM = (
    _Number("the code", 16, 0, _U32),
    _Number("the time", 10, 0, _U32),
    _Number("the severity", 10, 0, max(ALARM_SEVERITIES.values())),
    _Number("the subject", 16, 0, _U8),
    _Number("the device", 10, 0, _U8),
)
_FAULT: Mapping[str, tuple[str, _Number]] = {
    "!cc": ("completion_code", _Number("!cc", 16, 0, _U8)),
    "!cut": ("cut_bytes", _Number("!cut", 10, 0, _U8)),
    "!count": ("count", _Number("!count", 10, 0, _U8)),
    "!delay_ms": ("delay_ms", _Number("!delay_ms", 10, 0, _U32)),
    "!empty": ("empty", _Number("!empty", 10, 0, 1)),
    "!silent": ("silent", _Number("!silent", 10, 0, 1)),
    "!from": ("from_index", _Number("!from", 10, 0, _U16)),
    "!times": ("times", _Number("!times", 10, 0, _U32)),
    "!mid": ("manufacturer_id", _Number("!mid", 16, 0, _U24)),
    "!total": ("total", _Number("!total", 10, 0, _U16)),
    "!next_total": ("next_total", _Number("!next_total", 10, 0, _U16)),
    "!label_cc": ("label_code", _Number("!label_cc", 16, 0, _U8)),
    "!label_part": ("label_part", _Number("!label_part", 10, 1, MAX_LABEL_CHARACTERS)),
}
_PAGE = _Number("!page", 10, 1, MAX_PAGE)


def format_alarm_file(state: BmcState) -> str:
    """The text of a state."""
    lines = [f"{a.code:08X} {a.raised_s} {a.severity} {a.subject:02X} {a.device_id}" for a in state.alarms]
    lines += [f"!{key} {text}" for key, text in (("serial", state.serial), ("vendor", state.vendor)) if text]
    if state.page != MAX_PAGE:
        lines.append(f"!page {state.page}")
    for key, (name, number) in _FAULT.items():
        value = getattr(state.fault, name)
        if value != getattr(BmcFault(), name):
            lines.append(f"{key} {value:X}" if number.base == 16 else f"{key} {int(value)}")
    return "".join(line + "\n" for line in lines)


def parse_alarm_file(text: str) -> BmcState:
    """The state that a text tells of. Raises ValueError naming the line of a word that is not understood."""
    state = BmcState()
    for number, line in enumerate(text.split("\n"), 1):
        if line:
            try:
                state = _with_line(state, line)
            except ValueError as problem:
                raise ValueError(f"line {number}: {problem}") from None
    return state


def _with_line(state: BmcState, line: str) -> BmcState:
    key, _, rest = line.partition(" ")
    if key in _FAULT:
        name, number = _FAULT[key]
        known: dict[str, Any] = {name: number.read(rest)}
        return replace(state, fault=replace(state.fault, **known))
    more = _MORE.get(key)
    if more is not None:
        return more(state, rest)
    words = line.split()
    if len(words) != len(_ALARM):
        raise ValueError(f"neither an alarm of {len(_ALARM)} words nor a known ! line: {line!r}")
    alarm = Alarm(*(number.read(word) for number, word in zip(_ALARM, words, strict=True)))
    return replace(state, alarms=(*state.alarms, alarm))


def check_label(text: str) -> str:
    """A text of the e-label, as given; ValueError for one that the file cannot hold.

    Printable ASCII of at most 63 characters.
    """
    if not text.isascii() or (text and not text.isprintable()):
        raise ValueError(f"must be printable ASCII text, not {text!r}")
    if len(text) > MAX_LABEL_CHARACTERS:
        raise ValueError(f"must be at most {MAX_LABEL_CHARACTERS} characters, not {text!r}")
    return text


_MORE: Mapping[str, Callable[[BmcState, str], BmcState]] = {
    "!serial": lambda state, rest: replace(state, serial=check_label(rest)),
    "!vendor": lambda state, rest: replace(state, vendor=check_label(rest)),
    "!page": lambda state, rest: replace(state, page=_PAGE.read(rest)),
}
