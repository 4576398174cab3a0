"""What is to be told to ClusterD of a storage client, and when (node-faults 13; decision 28). Pure.

Desired against acknowledged: per fault the state that holds and the state that ClusterD is believed to have. A message
is made of what differs at the moment at which it is sent, so the newest state wins, and is tried until it is taken.
ClusterD drops silently what its bucket has no room for and forgets what it cannot keep, so what was taken is said
again now and then.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from nodeagent.core.instant import Instant
from nodeagent.core.storage import StorageClient, StorageFault, StorageVerdict
from nodeagent.policy.public_fault_track import DEFAULT_TIMES, Assertion, FaultMemory, FaultTrack, Times

LAST_CHIP_ID, MOST_CHIPS = 31, 32
"""Device ids of a message are 0 to 31 and at most 32 (node-faults 13.1)."""
_NO_CHIPS = (0,)
"""What upstream says when the list of chips cannot be read (node-faults 11.4)."""


class Outcome(Enum):
    """How sending a message ended.

    LOST: no usable answer, it may have arrived. BUSY: ClusterD has no room for it, or does not know the sender (410).
    REFUSED: ClusterD takes none of its faults (409), or it must not be sent.
    """

    TAKEN = "taken"
    LOST = "lost"
    BUSY = "busy"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Telling:
    """One fault of a message. fault_time_ms: Unix milliseconds of its occurrence. device_ids: physical ids of chips."""

    fault: StorageFault
    assertion: Assertion
    fault_time_ms: int
    device_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Due:
    """The content of the message that is due. without_chips: its occurrences name chip 0 because none is known."""

    client: StorageClient
    tellings: tuple[Telling, ...]
    without_chips: bool


def usable_ids(physical_ids: Iterable[int]) -> tuple[int, ...]:
    """The ids that a message can name: each once, in order, 0..31 (node-faults 13.1)."""
    return tuple(sorted({number for number in physical_ids if 0 <= number <= LAST_CHIP_ID}))[:MOST_CHIPS]


class SenderPlan:
    """One client of one node. One message at a time: `due`, then `begin`, then exactly one `ended`.

    whole: every message names all standing faults, for a way that keeps only the last message. chips_deadline_ms: how
    long an occurrence waits for the chips. draw: a random number from [0, 1). now: the moment of the start.
    memory: what is known of ClusterD from the last run. last_ids: the chips that the last run knew, may be empty.
    """

    def __init__(
        self,
        client: StorageClient,
        now: Instant,
        draw: Callable[[], float],
        memory: Mapping[StorageFault, FaultMemory],
        last_ids: tuple[int, ...] = (),
        whole: bool = False,
        chips_deadline_ms: int = 120_000,
        times: Times = DEFAULT_TIMES,
    ) -> None:
        self.client = client
        self.failures = 0
        self._draw = draw
        self._times = times
        self._whole = whole
        self._chips_deadline_ms = chips_deadline_ms
        self._ids: tuple[int, ...] = ()
        self._last_ids = usable_ids(last_ids)
        self._chips_until: int | None = None
        self._not_before = 0
        self._refused = False
        self.tracks = {fault: FaultTrack(fault, times, draw) for fault in client.faults}
        for fault, track in self.tracks.items():
            track.restore(memory.get(fault, FaultMemory()), now)

    @property
    def waiting(self) -> bool:
        """Something that holds is not acknowledged."""
        return not all(track.settled(self._ids) for track in self.tracks.values())

    def observe(self, verdict: StorageVerdict, now: Instant) -> bool:
        """Take in what holds; True when there is news."""
        news = [self.tracks[fault].observe(present, verdict.at) for fault, present in verdict.present.items()]
        if any(news) and self._refused:
            self._not_before, self._refused = 0, False  # another content may be taken
        if not self._ids and self._chips_until is None and any(track.wanted for track in self.tracks.values()):
            self._chips_until = now.mono_ms + self._chips_deadline_ms
        return any(news)

    def chips(self, physical_ids: Iterable[int]) -> None:
        """All chips of the node. None of them, or none with an id that a message can name, says nothing."""
        self._ids = usable_ids(physical_ids) or self._ids

    def next_ms(self) -> int | None:
        """When a message is due, in milliseconds of the monotonic clock, maybe in the past; None = nothing is."""
        moments = [following[0] for track in self.tracks.values() if (following := self._next(track)) is not None]
        return max(self._not_before, min(moments)) if moments else None

    def due(self, now: Instant) -> Due | None:
        """The message that is due now; None = none is."""
        if now.mono_ms < self._not_before:
            return None
        said: dict[StorageFault, Assertion] = {}
        for fault, track in self.tracks.items():
            following = self._next(track)
            if following is not None and following[0] <= now.mono_ms:
                said[fault] = following[1]
        if not said:
            return None
        if self._whole:
            standing = [fault for fault, track in self.tracks.items() if track.standing_at(now.mono_ms, self._ids)]
            said |= {fault: Assertion.OCCUR for fault in standing}
        tellings = tuple(self._telling(self.tracks[fault], said[fault], now) for fault in self.tracks if fault in said)
        guessed = not self._ids and not self._last_ids and Assertion.OCCUR in said.values()
        return Due(self.client, tellings, guessed)

    def begin(self, due: Due, now: Instant) -> None:
        """This message goes out now."""
        for telling in due.tellings:
            self.tracks[telling.fault].begin(telling.assertion, telling.device_ids, not self._ids, now)

    def ended(self, outcome: Outcome, now: Instant, at_least_ms: int = 0) -> None:
        """The message came to its end. at_least_ms: the receiver wants to be left alone so long."""
        for track in self.tracks.values():
            track.ended(outcome is Outcome.TAKEN, outcome in (Outcome.TAKEN, Outcome.LOST), now)
        self._refused = outcome is Outcome.REFUSED
        if outcome is Outcome.TAKEN:
            self.failures, self._not_before = 0, 0
        else:
            self.failures += 1
            self._not_before = now.mono_ms + max(self._pause_ms(outcome), at_least_ms)

    def memory(self) -> dict[StorageFault, FaultMemory]:
        """What must survive a restart."""
        return {fault: track.memory() for fault, track in self.tracks.items()}

    def _next(self, track: FaultTrack) -> tuple[int, Assertion] | None:
        """What a fault has to say and from when on; an occurrence needs the chips that it concerns, for a while."""
        following = track.next(self._ids)
        if following is None or following[1] is Assertion.RECOVER or self._ids:
            return following
        return max(following[0], self._chips_until or 0), following[1]

    def _telling(self, track: FaultTrack, assertion: Assertion, now: Instant) -> Telling:
        ids = self._ids or self._last_ids or _NO_CHIPS
        if assertion is Assertion.RECOVER and track.told_ids:
            ids = track.told_ids
        return Telling(track.fault, assertion, track.occurred_wall_ms or now.wall_ms, ids)

    def _pause_ms(self, outcome: Outcome) -> int:
        """Full jitter below a bound that doubles (13.3); after a 409 a long pause, as somebody must change a file."""
        if outcome is Outcome.REFUSED:
            return int(self._times.refused_ms * (1 + self._draw()))
        cap_ms = self._times.busy_cap_ms if outcome is Outcome.BUSY else self._times.retry_cap_ms
        bound_ms = min(cap_ms, self._times.retry_ms << min(self.failures - 1, 20))
        return int(self._draw() * bound_ms)
