"""What frequency and duration rules do to one chip: upgrade reasons, manual separation, and their ends.

Works on the step's own copy of a chip (chip-faults 5, 7; R5-R9, R13, R14, R19-R21, R24).
"""

from dataclasses import dataclass, replace

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level
from nodeagent.core.model import UpgradeType
from nodeagent.policy import duration, frequency
from nodeagent.policy.duration import DurationState, Flip
from nodeagent.policy.frequency import FrequencyState, Verdict
from nodeagent.policy.rules import RuleSet
from nodeagent.policy.state import ChipState, Manual, Why


@dataclass(frozen=True, slots=True)
class Told:
    """A reason that began or ended. lifted: an operator ended it."""

    why: Why
    at: Instant
    began: bool
    lifted: bool = False


def occurred(chip: ChipState, code: int, at: Instant, rules: RuleSet, *, fresh: bool) -> None:
    """An occurrence was applied. fresh: the code was absent before (R21)."""
    if code in rules.duration:
        chip.duration[code] = duration.add(chip.duration.get(code, DurationState()), at, True)
    elif fresh and code in rules.frequency:
        chip.frequency[code] = frequency.occurred(chip.frequency.get(code, FrequencyState()), at)


def noticed(chip: ChipState, code: int, at: Instant, rules: RuleSet) -> None:
    """A once-only code was applied: it counts for frequency, never for duration (R19)."""
    if code not in rules.duration and code in rules.frequency:
        chip.frequency[code] = frequency.occurred(chip.frequency.get(code, FrequencyState()), at)


def recovered(chip: ChipState, code: int, at: Instant, rules: RuleSet, *, removed: bool) -> None:
    """A recovery was applied, or a once-only code left the report (R13). removed: the code was there."""
    if code in rules.duration:
        chip.duration[code] = duration.add(chip.duration.get(code, DurationState()), at, False)
    elif removed and code in rules.frequency:
        chip.frequency[code] = frequency.recovered(chip.frequency.get(code, FrequencyState()), at)


def resume(chip: ChipState, code: int, at: Instant, rules: RuleSet) -> None:
    """A code is active that its duration rule has not seen begin: the rule is new, or we are. at: it counts from."""
    if code in rules.duration and not _runs(chip, code):
        chip.duration[code] = duration.add(chip.duration.get(code, DurationState()), at, True)


def absent(chip: ChipState, code: int, at: Instant, rules: RuleSet) -> None:
    """After a start, the first answer does not list a code that a reason from the object names."""
    if code in rules.duration and _runs(chip, code):
        chip.duration[code] = duration.add(chip.duration[code], at, False)
    elif code in rules.frequency:
        chip.frequency[code] = frequency.recovered(chip.frequency.get(code, FrequencyState()), at)


def left(chip: ChipState, code: int, at: Instant, rules: RuleSet) -> None:
    """A once-only code has left the report: for frequency that is its recovery (R13)."""
    if code in chip.frequency and code not in rules.duration:
        chip.frequency[code] = frequency.recovered(chip.frequency[code], at)


def run_duration(chip: ChipState, rules: RuleSet, now: Instant) -> list[Told]:
    """Judge every duration rule of the chip (12.3 step 5)."""
    told: list[Told] = []
    for code, rule in rules.duration.items():
        state = chip.duration.get(code)
        if state is None or not state.edges:
            continue
        after, flip = duration.judge(state, rule, now)
        chip.duration[code] = after
        if after.alarm is None:
            continue
        why = Why(code, rule.handling, UpgradeType.DURATION)
        if after.timed_out:
            told += _raise(chip, why, after.alarm)
        elif flip is Flip.RECOVERED:
            told += _end(chip, [w for w in chip.reasons if _of(w, code, UpgradeType.DURATION)], after.alarm)
        if code in rules.frequency and flip is not Flip.NONE:
            count = frequency.occurred if flip is Flip.TIMED_OUT else frequency.recovered
            chip.frequency[code] = count(chip.frequency.get(code, FrequencyState()), after.alarm)
    return told


def run_frequency(chip: ChipState, rules: RuleSet, now: Instant, entering: int) -> list[Told]:
    """Evaluate every frequency rule of the chip that has counted anything (12.3 step 7)."""
    told: list[Told] = []
    for code, state in list(chip.frequency.items()):
        rule = rules.frequency.get(code)
        if rule is None:
            continue
        # Not only of the present handling: a manual separation stands when the rule gets another one (R9).
        standing = [w for w in chip.reasons if _of(w, code, UpgradeType.FREQUENCY)]
        state, verdict = frequency.evaluate(state, rule, now, bool(standing))
        if verdict in (Verdict.TRIP, Verdict.REFRESH) and state.last_fault is not None:
            tripped = Why(code, rule.handling, UpgradeType.FREQUENCY)
            for why in dict.fromkeys([*standing, tripped]) if verdict is Verdict.TRIP else standing:
                told += _raise(chip, why, state.last_fault)
                if why.level is Level.MANUALLY_SEPARATE and chip.manual is None:
                    chip.manual = Manual(entering)
            state = frequency.cleared(state)
        elif verdict is Verdict.RELEASE:
            told += _end(chip, standing, now)
        chip.frequency[code] = state
    return told + _end_autofill(chip, rules, now)


def lift(chip: ChipState, at: Instant) -> list[Told]:
    """An operator took the chip's name out of the field: it is separated no longer, counting starts from zero."""
    chip.manual = None
    for code, fault in chip.faults.items():
        if fault.carried is Level.MANUALLY_SEPARATE:
            chip.faults[code] = replace(fault, carried=None)  # what the object said of a chip that is silent
    gone = [w for w in chip.reasons if w.level is Level.MANUALLY_SEPARATE]
    for why in gone:
        del chip.reasons[why]
        if why.code in chip.frequency:
            chip.frequency[why.code] = frequency.cleared(chip.frequency[why.code])
    return [Told(why, at, began=False, lifted=True) for why in gone]


def reconcile(chip: ChipState, rules: RuleSet, at: Instant) -> list[Told]:
    """After a change of the rules (7.5): counters of rules that are gone are dropped, reasons follow their rule.

    A manual separation survives everything but an operator and its release window (R9).
    """
    chip.frequency = {c: s for c, s in chip.frequency.items() if c in rules.frequency or _separates(chip, c)}
    chip.duration = {c: s for c, s in chip.duration.items() if c in rules.duration}
    told: list[Told] = []
    for why, since in list(chip.reasons.items()):
        if why.upgrade_type is UpgradeType.AUTOFILL or why.level is Level.MANUALLY_SEPARATE or why.code is None:
            continue
        table = rules.duration if why.upgrade_type is UpgradeType.DURATION else rules.frequency
        rule = table.get(why.code)
        if rule is None:
            told += _end(chip, [why], at)
        elif rule.handling is not why.level:
            del chip.reasons[why]
            chip.reasons[why._replace(level=rule.handling)] = since
    return told


def wake_mono_ms(chip: ChipState, rules: RuleSet, now: Instant) -> int | None:
    """When the rules of this chip can next change something by themselves."""
    times: list[int] = []
    for code, state in chip.duration.items():
        if (rule := rules.duration.get(code)) is not None:
            times.append(duration.due_mono_ms(state, rule, now) or 0)
    for why, since in chip.reasons.items():
        if why.upgrade_type is UpgradeType.FREQUENCY and why.code in chip.frequency and why.code in rules.frequency:
            times.append(frequency.release_mono_ms(chip.frequency[why.code], rules.frequency[why.code]) or 0)
        elif why.upgrade_type is UpgradeType.AUTOFILL and (window_s := rules.longest_release_s) is not None:
            times.append(since.mono_ms + window_s * 1000 + 1)
    return min((t for t in times if t), default=None)


def _raise(chip: ChipState, why: Why, at: Instant) -> list[Told]:
    known = why in chip.reasons
    chip.reasons[why] = at
    return [] if known else [Told(why, at, began=True)]


def _end(chip: ChipState, gone: list[Why], at: Instant) -> list[Told]:
    """Remove reasons; with the last manual one the chip's manual separation ends (7.2)."""
    for why in gone:
        chip.reasons.pop(why, None)
    if not any(w.level is Level.MANUALLY_SEPARATE for w in chip.reasons):
        chip.manual = None
    return [Told(why, at, began=False) for why in gone]


def _end_autofill(chip: ChipState, rules: RuleSet, now: Instant) -> list[Told]:
    window_s = rules.longest_release_s
    if window_s is None:
        return []
    over = [
        why
        for why, since in chip.reasons.items()
        if why.upgrade_type is UpgradeType.AUTOFILL and now.mono_ms - since.mono_ms > window_s * 1000
    ]
    return _end(chip, over, now) if over else []


def _of(why: Why, code: int, upgrade_type: UpgradeType) -> bool:
    return why.code == code and why.upgrade_type is upgrade_type


def _separates(chip: ChipState, code: int) -> bool:
    return any(w.code == code and w.level is Level.MANUALLY_SEPARATE for w in chip.reasons)


def _runs(chip: ChipState, code: int) -> bool:
    """The duration rule of this code has something to wait for, or has timed out."""
    state = chip.duration.get(code)
    return state is not None and (state.timed_out or bool(state.edges))
