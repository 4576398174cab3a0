"""Duration rules: a code that stays too long counts more, until it was gone long enough (chip-faults 5.3). Pure.

Comparisons are strict: exactly the threshold is not yet reached.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from nodeagent.core.instant import Instant
from nodeagent.policy.rules import DurationRule

Edge = tuple[Instant, bool]
"""A moment and whether the code occurred (True) or recovered (False) then."""


@dataclass(frozen=True, slots=True)
class DurationState:
    """State of one rule on one chip.

    edges: events that are not judged yet. alarm: when the last limit was passed (start + threshold).
    """

    timed_out: bool = False
    edges: tuple[Edge, ...] = ()
    alarm: Instant | None = None


class Flip(Enum):
    """What one judgement changed over all."""

    NONE = "none"
    TIMED_OUT = "timed out"
    RECOVERED = "recovered"


def add(state: DurationState, at: Instant, occurred: bool) -> DurationState:
    """The state with one more event, not judged yet."""
    return replace(state, edges=(*state.edges, (at, occurred)))


def judge(state: DurationState, rule: DurationRule, now: Instant) -> tuple[DurationState, Flip]:
    """Judge all events so far.

    A timeout ends the judgement of this step, so that it is seen at least once; a recovery goes on at once, since a
    later occurrence of the same history may time out again.
    """
    timed_out, alarm = state.timed_out, state.alarm
    edges = _alternating(state.edges, timed_out)
    while edges:
        threshold_ms = (rule.recover_s if timed_out else rule.fault_s) * 1000
        reached = _first_longer(edges, threshold_ms, now)
        if reached is None:
            edges = edges[-1:] if len(edges) % 2 else ()
            break
        alarm = edges[reached][0].plus_ms(threshold_ms)
        if not timed_out:
            timed_out = True
            break
        timed_out = False
        edges = edges[reached + 1 :]
    flip = Flip.NONE
    if timed_out != state.timed_out:
        flip = Flip.TIMED_OUT if timed_out else Flip.RECOVERED
    return DurationState(timed_out, edges, alarm), flip


def due_mono_ms(state: DurationState, rule: DurationRule, now: Instant) -> int | None:
    """When a judgement can next change something; None = not before another event."""
    edges = pending(state)
    if not edges:
        return None
    if len(edges) > 1:
        return now.mono_ms + 1  # the rest of a history that a timeout cut short
    return edges[0][0].mono_ms + (rule.recover_s if state.timed_out else rule.fault_s) * 1000 + 1


def pending(state: DurationState) -> tuple[Edge, ...]:
    """The events that the next judgement will look at; the one that caused a timeout is not among them."""
    return _alternating(state.edges, state.timed_out)


def _alternating(edges: Sequence[Edge], timed_out: bool) -> tuple[Edge, ...]:
    """In order of time, one edge per run, beginning with the kind that is judged first.

    Timed out waits for a recovery, not timed out for an occurrence.
    """
    result: list[Edge] = []
    for at, occurred in sorted(edges, key=lambda e: e[0].mono_ms):
        if result:
            if result[-1][1] == occurred:
                continue
        elif occurred == timed_out:
            continue
        result.append((at, occurred))
    return tuple(result)


def _first_longer(edges: Sequence[Edge], threshold_ms: int, now: Instant) -> int | None:
    """Index of the first start whose stretch is longer than the threshold; the last stretch may still run."""
    for index in range(0, len(edges), 2):
        end = edges[index + 1][0] if index + 1 < len(edges) else now
        if end.mono_ms - edges[index][0].mono_ms > threshold_ms:
            return index
    return None
