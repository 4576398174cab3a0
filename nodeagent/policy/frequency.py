"""Frequency rules: a code that comes too often raises the chip until it was quiet long enough (chip-faults 5.2)."""

from dataclasses import dataclass, replace
from enum import Enum

from nodeagent.core.instant import Instant
from nodeagent.policy.rules import NEVER_S, FrequencyRule


@dataclass(frozen=True, slots=True)
class FrequencyState:
    """State of one rule on one chip. occurrences: not yet used up by a trip, oldest first."""

    occurrences: tuple[Instant, ...] = ()
    last_fault: Instant | None = None
    last_recover: Instant | None = None


class Verdict(Enum):
    """What an evaluation asks for."""

    NOTHING = "nothing"
    TRIP = "trip"
    REFRESH = "refresh"
    RELEASE = "release"


def occurred(state: FrequencyState, at: Instant) -> FrequencyState:
    """One more occurrence (a change from absent to present, R21)."""
    return replace(state, occurrences=(*state.occurrences, at), last_fault=at)


def recovered(state: FrequencyState, at: Instant) -> FrequencyState:
    """The code went away."""
    return replace(state, last_recover=at)


def cleared(state: FrequencyState) -> FrequencyState:
    """Counting starts from zero; the times stay."""
    return replace(state, occurrences=())


def evaluate(state: FrequencyState, rule: FrequencyRule, now: Instant, raised: bool) -> tuple[FrequencyState, Verdict]:
    """The state without occurrences that left the window, and what to do.

    raised: an upgrade reason of this rule stands. While it stands, new occurrences refresh its time and are not
    accumulated. The window is cut at whole seconds, as upstream does (W10).
    """
    oldest_ms = (now.mono_ms // 1000 - rule.window_s) * 1000
    kept = tuple(at for at in state.occurrences if at.mono_ms >= oldest_ms)
    if len(kept) != len(state.occurrences):
        state = replace(state, occurrences=kept)
    if len(kept) >= rule.times:
        return state, Verdict.TRIP
    if not raised:
        return state, Verdict.NOTHING
    due = release_mono_ms(state, rule)
    if due is not None and now.mono_ms >= due:
        return state, Verdict.RELEASE
    return state, Verdict.REFRESH if kept else Verdict.NOTHING


def release_mono_ms(state: FrequencyState, rule: FrequencyRule) -> int | None:
    """First moment at which a raise ends by itself; None = it does not, or the code is still there."""
    fault, recover = state.last_fault, state.last_recover
    if rule.release_s >= NEVER_S or recover is None or (fault is not None and recover.mono_ms < fault.mono_ms):
        return None
    return recover.mono_ms + rule.release_s * 1000 + 1
