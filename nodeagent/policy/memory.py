"""What must survive a kill beyond the published object, as plain JSON values (decision 17). Pure.

Per chip (by physical id): active codes, upgrade reasons, manual separation, frequency counters, duration states.
Every moment is `[mono_ms, wall_ms]`; after a reboot the monotonic part is made anew from the wall clock.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, Severity
from nodeagent.core.model import UpgradeType
from nodeagent.core.observation import FaultNoticed, FaultOccurred, FaultRecovered
from nodeagent.policy.duration import DurationState
from nodeagent.policy.frequency import FrequencyState
from nodeagent.policy.state import ActiveFault, ChipState, CodeFact, Manual, NodeState, Why

VERSION = 1
MAX_CODE = 0xFF_FFFF_FFFF
"""Ten hexadecimal digits are the longest text that is published."""
MAX_EDGES = 200
"""Bound of a remembered history; the oldest edges are the ones that are judged first, so the newest are dropped."""


def remember(state: NodeState) -> dict[str, Any]:
    """The chips that have anything to remember, by physical id as text."""
    return {str(c.chip.physical_id): m for c in state.chips.values() if (m := remember_chip(c, state.acknowledged))}


def recall(chip: ChipState, memory: Mapping[str, object], at: Instant, same_boot: bool) -> None:
    """Put remembered values into a chip. Raises ValueError for anything that is not what `remember` wrote."""

    def moment(value: object) -> Instant:
        mono_ms, wall_ms = _list(value, 2)
        if not _is_time(mono_ms) or not _is_time(wall_ms):
            raise ValueError("a moment is two integers of 64 bits")
        return Instant(mono_ms if same_boot else at.mono_ms - (at.wall_ms - wall_ms), wall_ms)

    def maybe(value: object) -> Instant | None:
        return None if value is None else moment(value)

    reasons: dict[Why, Instant] = {}
    for entry in _list(memory.get("reasons", [])):
        code, level, upgrade_type, since = _list(entry, 4)
        known_code = None if code is None else _code(code)
        reasons[Why(known_code, _upgraded(level), UpgradeType(upgrade_type))] = moment(since)
    frequency: dict[int, FrequencyState] = {}
    for entry in _list(memory.get("frequency", [])):
        code, occurrences, fault, recover = _list(entry, 4)
        times = tuple(moment(o) for o in _list(occurrences))
        frequency[_code(code)] = FrequencyState(times, maybe(fault), maybe(recover))
    duration: dict[int, DurationState] = {}
    for entry in _list(memory.get("duration", [])):
        code, timed_out, edges, alarm = _list(entry, 4)
        history = tuple((moment(e[0]), bool(e[1])) for e in (_list(x, 2) for x in _list(edges)))
        duration[_code(code)] = DurationState(bool(timed_out), history, maybe(alarm))
    active: dict[int, ActiveFault] = {}
    for entry in _list(memory.get("faults", [])):
        code, severity, since = _list(entry, 3)
        known = None if severity is None else Severity(severity)
        active[_code(code)] = ActiveFault(_code(code), moment(since), known, entered=0)
    held: list[CodeFact] = []
    for entry in _list(memory.get("held", [])):
        kind, code, severity, since = _list(entry, 4)
        known = None if severity is None else Severity(severity)
        held.append(_fact(str(kind), chip.chip.logic_id, _code(code), known, moment(since)))
    triggers = {_code(code): moment(since) for code, since in (_list(e, 2) for e in _list(memory.get("triggers", [])))}
    associated = {_code(code) for code in _list(memory.get("associated", []))}
    manual = memory.get("manual")
    if manual not in (None, "known", "new"):
        raise ValueError(f"manual is {manual!r}")
    chip.faults, chip.recalled = active, True
    chip.held, chip.triggers, chip.associated = held, triggers, associated
    chip.reasons, chip.frequency, chip.duration = reasons, frequency, duration
    chip.manual = None if manual is None else Manual(0 if manual == "known" else 1)


def remember_chip(chip: ChipState, acknowledged: int) -> dict[str, Any]:
    """What must survive of one chip; empty when there is nothing."""
    found: dict[str, Any] = {}
    if chip.faults:
        found["faults"] = [[f.code, f.severity, _moment(f.since)] for f in chip.faults.values()]
    if chip.reasons:
        found["reasons"] = [[w.code, w.level.text, w.upgrade_type.value, _moment(at)] for w, at in chip.reasons.items()]
    if chip.frequency:
        found["frequency"] = [
            [code, [_moment(o) for o in s.occurrences], _maybe(s.last_fault), _maybe(s.last_recover)]
            for code, s in chip.frequency.items()
        ]
    running = {code: s for code, s in chip.duration.items() if s.timed_out or s.edges}
    if running:
        found["duration"] = [
            [code, s.timed_out, [[_moment(at), up] for at, up in s.edges[:MAX_EDGES]], _maybe(s.alarm)]
            for code, s in running.items()
        ]
    if chip.held:
        found["held"] = [_held(fact) for fact in chip.held]
    if chip.triggers:
        found["triggers"] = [[code, _moment(at)] for code, at in chip.triggers.items()]
    if chip.associated:
        found["associated"] = sorted(chip.associated)
    if chip.manual is not None:
        found["manual"] = "known" if chip.manual.entered <= acknowledged else "new"
    return found


_KINDS: dict[str, type[CodeFact]] = {"occurred": FaultOccurred, "recovered": FaultRecovered, "noticed": FaultNoticed}


def _held(fact: CodeFact) -> list[Any]:
    kind = next(name for name, made in _KINDS.items() if type(fact) is made)
    severity = None if isinstance(fact, FaultRecovered) else fact.severity
    return [kind, fact.code, severity, _moment(fact.at)]


def _fact(kind: str, logic_id: int, code: int, severity: Severity | None, at: Instant) -> CodeFact:
    if kind == "recovered":
        return FaultRecovered(logic_id, code, at)
    if kind == "noticed":
        return FaultNoticed(logic_id, code, severity, at)
    if kind != "occurred":
        raise ValueError(f"a fact that waits has no kind {kind!r}")
    return FaultOccurred(logic_id, code, severity, at)


def _moment(at: Instant) -> list[int]:
    return [at.mono_ms, at.wall_ms]


def _maybe(at: Instant | None) -> list[int] | None:
    return None if at is None else _moment(at)


def _code(value: object) -> int:
    if type(value) is int and 0 < value <= MAX_CODE:
        return value
    raise ValueError(f"a code is an integer of at most 40 bits, not {value!r}"[:200])


def _is_time(value: object) -> bool:
    return type(value) is int and abs(value) < 2**62


def _upgraded(value: object) -> Level:
    level = Level.parse(str(value))
    if level is Level.NORMAL:
        raise ValueError("nothing is raised to no fault")
    return level


def _list(value: object, length: int | None = None) -> Sequence[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise ValueError(f"a list {'' if length is None else f'of {length} '}is expected, not {value!r}"[:200])
    return value
