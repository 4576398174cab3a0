"""One storage fault and what ClusterD was told of it (node-faults 13.3, 13.5; decision 28). Pure.

Times are milliseconds of the monotonic clock unless the name says `wall`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from nodeagent.core.instant import Instant
from nodeagent.core.pauses import backoff_s
from nodeagent.core.storage import StorageFault


class Assertion(Enum):
    """What a message says of a fault; the value is its text (node-faults 13.1)."""

    OCCUR = "occur"
    RECOVER = "recover"

    @property
    def present(self) -> bool:
        """Whether ClusterD has the fault after it took this."""
        return self is Assertion.OCCUR


@dataclass(frozen=True, slots=True)
class Times:
    """Intervals in milliseconds.

    distance_ms: from a recover to the next occur of a fault: ClusterD removes for 5 s what a recover named, and 2 s
    more are for the way there (node-faults 13.5). occur_again_ms: a standing fault is said again after these pauses,
    the last one stays (decision 28). recover_again_ms: the same for a recovery, three times; with the jitter they stay
    within the hour (decision 28). start_spread_ms: within this time after our start a recovery is said of which we do
    not know whether anybody needs it. retry_ms, retry_cap_ms: bound of the pause after the first failure, and where it
    stops to double (13.3). busy_cap_ms: the same while ClusterD has no room (410). refused_ms: least pause after a 409.
    """

    distance_ms: int = 7_000
    occur_again_ms: tuple[int, ...] = (600_000, 1_200_000, 2_400_000, 4_800_000, 7_200_000)
    recover_again_ms: tuple[int, ...] = (480_000, 840_000, 1_080_000)
    start_spread_ms: int = 60_000
    retry_ms: int = 1_000
    retry_cap_ms: int = 60_000
    busy_cap_ms: int = 300_000
    refused_ms: int = 300_000


DEFAULT_TIMES = Times()


@dataclass(frozen=True, slots=True)
class FaultMemory:
    """What must survive a restart. believed: what ClusterD has, None = not known.

    standing: it was there when this was saved. occurred_wall_ms: when it occurred last, 0 = not known.
    recover_wall_ms: when a recover was last tried, 0 = never. recovers_left: how often a recovery is still to be said
    again. told_ids: chips of the last occur. provisional: these ids were a guess.
    """

    believed: bool | None = None
    standing: bool = False
    occurred_wall_ms: int = 0
    recover_wall_ms: int = 0
    recovers_left: int = 0
    told_ids: tuple[int, ...] = ()
    provisional: bool = False


@dataclass(slots=True)
class FaultTrack:
    """The state of one fault. draw: a random number from [0, 1).

    wanted: what holds, None = not known yet. not_before: start of the occur that must keep its distance, and of the
    recovery that may wait for the start spread. trying: what the message under way says of it.
    """

    fault: StorageFault
    times: Times
    draw: Callable[[], float]
    wanted: bool | None = None
    believed: bool | None = None
    occurred_wall_ms: int = 0
    trying: Assertion | None = None
    told_ids: tuple[int, ...] = ()
    provisional: bool = False
    _was_standing: bool = False
    _recover_wall_ms: int = 0
    _occur_not_before: int = 0
    _recover_not_before: int = 0
    _said_again: int = 0
    _again_at: int = 0
    _recovers_left: int = 0

    def restore(self, memory: FaultMemory, now: Instant) -> None:
        """Begin where the last run ended; once, before anything is sent."""
        self.believed = memory.believed
        self.occurred_wall_ms = memory.occurred_wall_ms
        self.told_ids, self.provisional = memory.told_ids, memory.provisional
        self._was_standing = memory.standing
        self._recover_wall_ms = memory.recover_wall_ms
        self._recovers_left = memory.recovers_left
        since_ms = now.wall_ms - memory.recover_wall_ms
        if memory.recover_wall_ms and since_ms < self.times.distance_ms:
            # A wall clock that was set back makes the rest look long; the distance is enough in any case.
            self._occur_not_before = now.mono_ms + min(self.times.distance_ms, self.times.distance_ms - since_ms)
        if memory.believed is None:
            self._recover_not_before = now.mono_ms + int(self.draw() * self.times.start_spread_ms)
            self._recovers_left = 0
        self._plan_again(now)

    def observe(self, present: bool | None, at: Instant) -> bool:
        """Take in what holds; unknown changes nothing. True when there is news."""
        if present is None or present == self.wanted:
            return False
        if present and not (self._was_standing and self.occurred_wall_ms):
            self.occurred_wall_ms = at.wall_ms
        self.wanted, self._was_standing = present, present
        return True

    def wrong_chips(self, ids: tuple[int, ...]) -> bool:
        """ClusterD may have the fault for chips that were a guess; it takes no others while it has it (13.5)."""
        return bool(self.wanted and self.believed is not False and self.provisional and ids and ids != self.told_ids)

    def settled(self, ids: tuple[int, ...]) -> bool:
        """ClusterD has what holds, as far as that is known."""
        return self.wanted is None or (self.wanted == self.believed and not self.wrong_chips(ids))

    def standing_at(self, now_ms: int, ids: tuple[int, ...]) -> bool:
        """It is there, ClusterD was told so, and saying it again at this moment does no harm."""
        return self.wanted is True and self.settled(ids) and now_ms >= self._occur_not_before

    def next(self, ids: tuple[int, ...]) -> tuple[int, Assertion] | None:
        """What is to be said next, and from when on; None = nothing. ids: the chips as they are known, may be empty."""
        if self.wanted is None:
            return None
        if self.wanted:
            if self.wrong_chips(ids):
                return 0, Assertion.RECOVER
            again_at = self._again_at if self.believed else 0
            return max(self._occur_not_before, again_at), Assertion.OCCUR
        if self.believed is not False:
            return self._recover_not_before, Assertion.RECOVER
        return (self._again_at, Assertion.RECOVER) if self._recovers_left else None

    def begin(self, assertion: Assertion, ids: tuple[int, ...], provisional: bool, now: Instant) -> None:
        """A message that says this goes out now."""
        self.trying = assertion
        if assertion is Assertion.RECOVER:
            self._recover_wall_ms = now.wall_ms
        elif self.believed is not True:
            self.told_ids, self.provisional = ids, provisional

    def ended(self, taken: bool, arrived: bool, now: Instant) -> None:
        """The message came to its end. taken: ClusterD said that it has it. arrived: it has it, or may have it."""
        assertion, self.trying = self.trying, None
        if assertion is None:
            return
        if assertion is Assertion.RECOVER and arrived:
            self._occur_not_before = now.mono_ms + self.times.distance_ms
            self._recover_wall_ms = now.wall_ms
        elif arrived:
            self._recovers_left, self._recover_not_before = 0, 0
        if not taken:
            if arrived and self.believed is not assertion.present:
                self.believed = None
            return
        again = self.believed is assertion.present
        self.believed = assertion.present
        if assertion is Assertion.OCCUR:
            self._said_again = self._said_again + 1 if again else 0
        else:
            pauses = len(self.times.recover_again_ms)
            self._recovers_left = max(0, self._recovers_left - 1) if again else pauses
        self._plan_again(now)

    def memory(self) -> FaultMemory:
        """What must survive a restart; what is under way is not known."""
        under_way = self.trying is not None and self.trying.present is not self.believed
        return FaultMemory(
            None if under_way else self.believed,
            self._was_standing,
            self.occurred_wall_ms,
            self._recover_wall_ms,
            self._recovers_left,
            self.told_ids,
            self.provisional,
        )

    def _plan_again(self, now: Instant) -> None:
        if self.believed:
            pause_ms = backoff_s(self.times.occur_again_ms, self._said_again + 1)
        elif self._recovers_left:
            pause_ms = self.times.recover_again_ms[-self._recovers_left]
        else:
            return
        # Half to one and a half: a fleet that was told at one moment fills ClusterD's bucket only once (13.3).
        self._again_at = now.mono_ms + int(pause_ms * (0.5 + self.draw()))
