"""The book of shadow mode: which differences stand, since when, and how much of a day both sides agreed. Pure.

Both sides write at their own pace, so a difference counts only from when it has stood for the settle time. While one of
the objects cannot be read nothing is new, nothing is gone, and the time counts as not compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeagent.core.instant import Instant
from nodeagent.render.difference import Comparison, Difference, Kind

DAY_MS = 24 * 3600 * 1000
MAX_KEYS = 1000
"""Distinct differences that are told apart in one day; what is more is counted as seen before."""


@dataclass(slots=True)
class Day:
    """What was seen since the last summary; times in milliseconds.

    elapsed_ms: since the last summary, the time while we did not run included. compared_ms: while both objects were
    known; agreed_ms, unexplained_ms: of it without a settled difference, and with one without a known cause.
    by_kind_ms: with one of that kind. keys: the settled differences there were. longest: the one that stood longest.
    """

    elapsed_ms: int = 0
    compared_ms: int = 0
    agreed_ms: int = 0
    unexplained_ms: int = 0
    by_kind_ms: dict[Kind, int] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    longest: str = ""
    longest_ms: int = 0

    def distinct(self) -> dict[str, int]:
        """How many different differences there were, by kind."""
        counts: dict[str, int] = {}
        for key in sorted(self.keys):
            kind = key.partition(" ")[0]
            counts[kind] = counts.get(kind, 0) + 1
        return counts


def day_as_json(day: Day) -> dict[str, Any]:
    """For the file that survives a restart."""
    return {
        "elapsed_ms": day.elapsed_ms,
        "compared_ms": day.compared_ms,
        "agreed_ms": day.agreed_ms,
        "unexplained_ms": day.unexplained_ms,
        "by_kind_ms": {kind.value: ms for kind, ms in day.by_kind_ms.items()},
        "keys": sorted(day.keys),
        "longest": day.longest,
        "longest_ms": day.longest_ms,
    }


def day_from_json(body: Mapping[str, Any], away_ms: int) -> Day:
    """What an earlier run wrote down. away_ms: how long ago that was.

    Raises ValueError, KeyError, TypeError or AttributeError for anything that `day_as_json` did not write.
    """
    numbers = [body[name] for name in ("elapsed_ms", "compared_ms", "agreed_ms", "unexplained_ms", "longest_ms")]
    by_kind = {Kind(name): ms for name, ms in body["by_kind_ms"].items()}
    if not all(type(number) is int and 0 <= number <= DAY_MS * 400 for number in [*numbers, *by_kind.values()]):
        raise ValueError("a time is out of range")
    elapsed_ms, compared_ms, agreed_ms, unexplained_ms, longest_ms = numbers
    keys = {str(key) for key in list(body["keys"])[:MAX_KEYS]}
    elapsed_ms += min(max(0, away_ms), DAY_MS)
    return Day(elapsed_ms, compared_ms, agreed_ms, unexplained_ms, by_kind, keys, str(body["longest"]), longest_ms)


@dataclass(frozen=True, slots=True)
class Standing:
    """A difference that stands. age_ms: since it was first seen. settled: it counts."""

    difference: Difference
    age_ms: int
    settled: bool


@dataclass(frozen=True, slots=True)
class News:
    """What a look brought.

    new: settled just now, or without its known cause from now on. gone: settled ones that are no more, with their age.
    spent_ms: time since the last look, by kind of the settled differences that stood. summary: of the day that is over.
    """

    new: tuple[Difference, ...] = ()
    gone: tuple[Standing, ...] = ()
    spent_ms: Mapping[Kind, int] = field(default_factory=dict)
    summary: Day | None = None


@dataclass(slots=True)
class _Open:
    difference: Difference
    since: Instant
    settled: bool = False


class ShadowLedger:
    """One node's book. settle_ms: how long a difference must stand to count. day: of an earlier run."""

    def __init__(self, settle_ms: int, now: Instant, day: Day | None = None) -> None:
        self._settle_ms = settle_ms
        self._open: dict[str, _Open] = {}
        self._last = now
        self._comparable = False
        self.day = day or Day()

    def look(self, comparison: Comparison | None, now: Instant) -> News:
        """Take in how the objects differ from now on; None = that cannot be told."""
        spent_ms = self._account(now)
        summary = None
        if self.day.elapsed_ms >= DAY_MS:
            summary, self.day = self.day, Day(keys={key for key, each in self._open.items() if each.settled})
        self._comparable = comparison is not None
        if comparison is None:
            # Their time to settle begins anew: nobody knows whether they went on.
            self._open = {key: each for key, each in self._open.items() if each.settled}
            return News(spent_ms=spent_ms, summary=summary)
        found = {each.key: each for each in comparison.differences}
        gone = [self._open.pop(key) for key in list(self._open) if key not in found]
        new = []
        for key, difference in found.items():
            each = self._open.setdefault(key, _Open(difference, now))
            doubtful = each.settled and each.difference.explanation and not difference.explanation
            each.difference = difference
            if not each.settled and now.mono_ms - each.since.mono_ms >= self._settle_ms:
                each.settled = True
                new.append(difference)
                if len(self.day.keys) < MAX_KEYS:
                    self.day.keys.add(key)
            elif doubtful:
                new.append(difference)
        ended = tuple(_standing(each, now) for each in gone if each.settled)
        return News(tuple(new), ended, spent_ms, summary)

    def wait_ms(self, now: Instant) -> int:
        """Until a difference settles or the day is over, although nothing changes."""
        settling = [
            each.since.mono_ms + self._settle_ms - now.mono_ms for each in self._open.values() if not each.settled
        ]
        return max(0, min([DAY_MS - self.day.elapsed_ms, *settling]))

    def standing(self, now: Instant) -> list[Standing]:
        """All differences there are, settled or not."""
        return [_standing(each, now) for each in self._open.values()]

    def _account(self, now: Instant) -> dict[Kind, int]:
        """Book the time since the last look under what has stood since then."""
        passed_ms = now.mono_ms - self._last.mono_ms
        self._last = now
        self.day.elapsed_ms += passed_ms
        if not self._comparable:
            return {}
        self.day.compared_ms += passed_ms
        settled = [each for each in self._open.values() if each.settled]
        if not settled:
            self.day.agreed_ms += passed_ms
        if any(not each.difference.explanation for each in settled):
            self.day.unexplained_ms += passed_ms
        spent_ms = {each.difference.kind: passed_ms for each in settled}
        for kind in spent_ms:
            self.day.by_kind_ms[kind] = self.day.by_kind_ms.get(kind, 0) + passed_ms
        for each in settled:
            age_ms = now.mono_ms - each.since.mono_ms
            if age_ms > self.day.longest_ms:
                self.day.longest, self.day.longest_ms = each.difference.key, age_ms
        return spent_ms


def _standing(each: _Open, now: Instant) -> Standing:
    return Standing(each.difference, now.mono_ms - each.since.mono_ms, each.settled)
