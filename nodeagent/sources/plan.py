"""The brain of the chip source: which call is due, and what an event or an answer means. No I/O, time passed in.

Rules: chip-faults 2.1-2.6 with R1, R10, R11, decision 4 (first complete query), decision 5 (recoveries),
native-abi 6.4. Events of one chip keep their order; a code that waits for its re-check delays no other code.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from nodeagent.core import codes
from nodeagent.core.instant import Instant
from nodeagent.core.levels import Severity
from nodeagent.core.model import Inventory
from nodeagent.core.node_facts import FactKind
from nodeagent.core.observation import (
    ChipCodes,
    ChipSilent,
    FaultNoticed,
    FaultOccurred,
    FaultRecovered,
    InventorySeen,
    Observation,
    SourceComplete,
    Unattributed,
)
from nodeagent.core.pauses import backoff_s
from nodeagent.drivers.chips import CodesAnswer, DriverEvent
from nodeagent.policy.unknown import recovery_partner
from nodeagent.sources.tracks import (
    CRASHES_TO_QUARANTINE,
    LIST_LAG_MS,
    QUARANTINE_S,
    RETRY_S,
    SETTLED_MS,
    Track,
)

_OCCURRENCE, _ONCE, _RECOVERY = 1, 2, 0


class JobKind(Enum):
    """Calls that the source makes."""

    OPEN = "open"
    SUBSCRIBE = "subscribe"
    CODES = "codes"
    HEALTH = "health"
    FACT = "fact"


@dataclass(frozen=True, slots=True)
class Job:
    """One call to make. logic_id: -1 for calls about the whole library. fact: which one, for FACT."""

    kind: JobKind
    logic_id: int = -1
    fact: FactKind | None = None


class Outcome(Enum):
    """How a call failed."""

    REFUSED = "refused"
    HUNG = "hung"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ChipTimes:
    """Periods in seconds. health: card-drop check. poll: code lists without a subscription. full: with one.

    facts: address of the ports (device-info 10).
    """

    health_s: float = 5.0
    poll_s: float = 5.0
    full_s: float = 300.0
    facts_s: float = 60.0


class ChipPlan:
    """Owned by one thread. Every method that learns something returns the observations it makes of it."""

    def __init__(self, times: ChipTimes) -> None:
        self._times = times
        self.tracks: dict[int, Track] = {}
        self.inventory: Inventory | None = None
        self.subscribed = False
        self._released = False
        self._open = False
        self._opened_ms = 0
        self._open_due_ms = 0
        self._open_failures = 0
        self._reopen_due_ms: int | None = None
        self._reopens = 0
        self._subscribe_due_ms: int | None = None
        self._subscribe_failures = 0
        self._complete = False

    # -- what to do next -------------------------------------------------------

    def next_job(self, now_ms: int) -> Job | None:
        """The most urgent call that is due, to be made at once, or None.

        A session first; then the subscription (before the first query, so that nothing is missed in between);
        then recoveries to confirm and code lists, the longest overdue first; then health.
        """
        if self._released:
            return None
        if not self._open:
            return Job(JobKind.OPEN) if now_ms >= self._open_due_ms else None
        if self._reopen_due_ms is not None and now_ms >= self._reopen_due_ms:
            return Job(JobKind.OPEN)
        if self._subscribe_due_ms is not None and now_ms >= self._subscribe_due_ms:
            return Job(JobKind.SUBSCRIBE)
        askable = [t for t in self.tracks.values() if t.askable]
        due = [(t.next_codes_ms(), t.chip.logic_id) for t in askable if t.next_codes_ms() <= now_ms]
        if due:
            logic_id = min(due)[1]
            self.tracks[logic_id].wanted = False
            return Job(JobKind.CODES, logic_id)
        due = [(t.health_due_ms, t.chip.logic_id) for t in askable if t.health_due_ms <= now_ms]
        return Job(JobKind.HEALTH, min(due)[1]) if due else None

    def next_probe(self, now_ms: int) -> int | None:
        """Logic id of a quarantined chip that is due for a probe, or None."""
        if self._released:
            return None
        due = [
            (t.probe_due_ms, i)
            for i, t in self.tracks.items()
            if t.probe_due_ms is not None and t.probe_due_ms <= now_ms
        ]
        return min(due)[1] if due else None

    def next_due_ms(self, *, probing: bool = False) -> int | None:
        """Monotonic time at which something is due, None = never. probing: a probe is under way, no other is due."""
        if self._released:
            return None
        if not self._open:
            return self._open_due_ms
        times = [t for t in (self._subscribe_due_ms, self._reopen_due_ms) if t is not None]
        for track in self.tracks.values():
            if track.askable:
                times += [track.next_codes_ms(), track.health_due_ms]
            elif track.probe_due_ms is not None and not probing:
                times.append(track.probe_due_ms)
        return min(times, default=None)

    @property
    def settled(self) -> bool:
        """A session is open and the first complete query is over: there is time for facts."""
        return self._open and self._complete

    @property
    def avoid(self) -> frozenset[int]:
        """Chips not to be asked while a session opens."""
        return frozenset(i for i, t in self.tracks.items() if t.probe_due_ms is not None)

    # -- the session ------------------------------------------------------------

    def on_opened(self, inventory: Inventory, now: Instant) -> list[Observation]:
        """A new session sees the node: subscribe, then query every chip.

        A chip that an earlier session knew and this one does not list keeps what is known of it; enumeration is
        fixed when a session opens (native-abi 2.3), so another session is opened later to look again.
        """
        self._open, self._opened_ms, self.subscribed = True, now.mono_ms, False
        self._subscribe_due_ms = now.mono_ms if inventory.product.family.subscribes else None
        found: list[Observation] = []
        if inventory != self.inventory:
            found.append(InventorySeen(inventory, now))
        self.inventory = inventory
        present = {c.logic_id: c for c in inventory.chips}
        for logic_id, chip in present.items():
            track = self.tracks.get(logic_id)
            if track is None:
                self.tracks[logic_id] = Track(chip, now.mono_ms, now.mono_ms + self._ms(self._times.health_s))
            else:
                track.chip, track.listed, track.codes_due_ms = chip, True, now.mono_ms
        missing = [t for i, t in self.tracks.items() if i not in present]
        for track in missing:
            track.listed = False
            found += self._silent(track, "the driver does not list it any more", now)
        self._plan_reopen(bool(missing), now)
        return found + self._completed(now)

    def _plan_reopen(self, wanted: bool, now: Instant) -> None:
        self._reopens = self._reopens + 1 if wanted else 0
        pause_ms = backoff_s(QUARANTINE_S, self._reopens) * 1000 if wanted else 0
        self._reopen_due_ms = now.mono_ms + pause_ms if wanted else None

    def look_again(self, now: Instant) -> None:
        """Parts of the node could not be identified when the session opened: enumerate again later."""
        self._plan_reopen(True, now)

    def on_open_failed(self, now: Instant) -> None:
        """The library could not be opened; try again after a pause. An open session stays in use."""
        if self._open:
            self._plan_reopen(True, now)
            return
        self._open_failures += 1
        self._open_due_ms = now.mono_ms + backoff_s(RETRY_S, self._open_failures) * 1000

    def on_session_lost(self, now: Instant) -> None:
        """The session hangs or has ended: open a new one, at once unless that keeps happening."""
        if self._open and now.mono_ms - self._opened_ms > SETTLED_MS:
            self._open_failures = 0
        pause_s = backoff_s(RETRY_S, self._open_failures) if self._open_failures else 0
        self._open, self.subscribed = False, False
        self._open_due_ms = now.mono_ms + pause_s * 1000
        self._open_failures += 1

    def release(self) -> None:
        """The driver is let go: nothing is due until `resume`, and what is known of the chips stays as it is.

        Recoveries that wait to be confirmed are forgotten: the full query on return tells what became of them.
        """
        self._released, self._open, self.subscribed = True, False, False
        self._reopen_due_ms = self._subscribe_due_ms = None
        for track in self.tracks.values():
            track.rechecks.clear()

    def resume(self, now: Instant) -> None:
        """The driver may be used again: a session at once, with a full query of every chip.

        It may be another driver, so earlier failures do not count. Only the caution with a chip whose call hung
        stays: it is probed first, in a session of its own, and at once.
        """
        self._released = False
        self._open_due_ms, self._open_failures, self._reopens, self._subscribe_failures = now.mono_ms, 0, 0, 0
        for track in self.tracks.values():
            track.failures = track.crashes = track.quarantines = 0
            if track.probe_due_ms is not None:
                track.probe_due_ms = now.mono_ms

    def on_subscribed(self, now: Instant) -> None:
        """Events flow; one full query closes the gap before the subscription."""
        self.subscribed, self._subscribe_due_ms, self._subscribe_failures = True, None, 0
        self.query_all(now)

    def on_subscribe_failed(self, now: Instant, *, new_process: bool) -> None:
        """Retried for ever; code lists are polled meanwhile (chip-faults 2.1).

        new_process: only another process can succeed, since the library remembers the attempt (native-abi 7.4).
        """
        self._subscribe_failures += 1
        retry_ms = now.mono_ms + backoff_s(RETRY_S, self._subscribe_failures) * 1000
        self._subscribe_due_ms = None if new_process else retry_ms
        if new_process:
            self._reopen_due_ms = retry_ms
        for track in self.tracks.values():
            track.codes_due_ms = min(track.codes_due_ms, now.mono_ms + self._ms(self._times.poll_s))

    # -- events -------------------------------------------------------------------

    def on_events(self, events: Iterable[tuple[DriverEvent, Instant]]) -> list[Observation]:
        """Events in the order of their callbacks, each with its moment."""
        found: list[Observation] = []
        for event, at in events:
            found += self._event(event, at)
        return found

    def query_all(self, now: Instant) -> None:
        """Make a full query of every chip due: after a subscription, after lost events."""
        for track in self.tracks.values():
            track.want_codes(now.mono_ms)

    def _event(self, event: DriverEvent, at: Instant) -> list[Observation]:
        track = self.tracks.get(event.logic_id)
        if track is None or event.code == 0 or event.assertion not in (_RECOVERY, _OCCURRENCE, _ONCE):
            return [Unattributed(event.logic_id, event.code, at)]
        if event.code == codes.RESET_FINISHED:
            track.want_codes(at.mono_ms)
            return []
        if (partner := recovery_partner(event.code)) is not None:
            # A black-box code that says "recovered" in its own bits is the recovery of its twin (fault-catalogue 3.5).
            return self._recovery(track, partner, at)
        severity = Severity(event.severity) if event.severity in tuple(Severity) else None
        if event.assertion == _ONCE:
            return [FaultNoticed(event.logic_id, event.code, severity, at)]
        if event.assertion == _OCCURRENCE:
            track.rechecks.pop(event.code, None)
            track.recovered_ms.pop(event.code, None)
            return [FaultOccurred(event.logic_id, event.code, severity, at)]
        return self._recovery(track, event.code, at)

    def _recovery(self, track: Track, code: int, at: Instant) -> list[Observation]:
        """Link recoveries are believed as they come (2.6); a chip that cannot be asked counts as a failed check."""
        if code in codes.NETWORK_CODES or not track.askable:
            return [self._recovered(track, code, at, at.mono_ms)]
        track.doubt_recovery(code, at)
        return []

    # -- answers ------------------------------------------------------------------

    def on_codes(self, logic_id: int, answer: CodesAnswer, asked: Instant, now: Instant) -> list[Observation]:
        """A full query of one chip succeeded. asked: the moment before the call."""
        track = self.tracks[logic_id]
        track.failures = track.crashes = track.quarantines = 0
        track.answered = True
        track.health_due_ms = now.mono_ms + self._ms(self._times.health_s)
        period_s = self._times.full_s if self.subscribed else self._times.poll_s
        track.codes_due_ms = now.mono_ms + (0 if track.wanted else self._ms(period_s))
        if answer.codes is None:
            # The card has dropped and its list cannot be read: the drop is known, the other codes are not.
            found = self._drop(track, now) + self._give_up_rechecks(track, asked, now)
        else:
            track.dropped, track.silent = answer.dropped, False
            found = self._all_recovered(track, track.confirmed(answer.codes, asked), now)
            believed = tuple(c for c in answer.codes if not track.lagging(c, asked.mono_ms))
            if len(believed) != len(answer.codes):
                track.codes_due_ms = min(track.codes_due_ms, now.mono_ms + LIST_LAG_MS)
            found.append(ChipCodes(logic_id, believed, asked))
        return found + self._completed(now)

    def on_health(self, logic_id: int, dropped: bool, now: Instant) -> list[Observation]:
        """A health query succeeded. A card that returns, or a chip that was silent, gets a full query."""
        track = self.tracks[logic_id]
        track.health_due_ms = now.mono_ms + self._ms(self._times.health_s)
        track.crashes = 0
        if dropped:
            return self._drop(track, now)
        if track.silent:
            track.codes_due_ms = min(track.codes_due_ms, now.mono_ms)
        if not track.dropped:
            return []
        track.dropped = False
        track.codes_due_ms = now.mono_ms
        return [self._recovered(track, codes.CARD_DROPPED, now, now.mono_ms)]

    def on_failed(self, job: Job, outcome: Outcome, why: str, asked: Instant, now: Instant) -> list[Observation]:
        """A call about one chip gave no answer: unknown, neither fault nor recovery; asked again after a pause."""
        track = self.tracks[job.logic_id]
        track.answered = True
        track.failures += 1
        pause_ms = backoff_s(RETRY_S, track.failures) * 1000
        track.codes_due_ms = now.mono_ms + pause_ms
        track.health_due_ms = now.mono_ms + max(pause_ms, self._ms(self._times.health_s))
        found = self._give_up_rechecks(track, asked, now)
        if outcome is Outcome.GONE:
            track.crashes += 1
        if outcome is Outcome.HUNG or track.crashes >= CRASHES_TO_QUARANTINE:
            track.crashes = 0
            track.quarantines += 1
            track.probe_due_ms = now.mono_ms + backoff_s(QUARANTINE_S, track.quarantines) * 1000
        return found + self._silent(track, why, now) + self._completed(now)

    def on_probed(self, logic_id: int, ok: bool, now: Instant) -> None:
        """A probe of a quarantined chip came back, or did not."""
        track = self.tracks[logic_id]
        if ok:
            track.probe_due_ms = None
            track.codes_due_ms = now.mono_ms
        else:
            track.quarantines += 1
            track.probe_due_ms = now.mono_ms + backoff_s(QUARANTINE_S, track.quarantines) * 1000

    # -- inside -------------------------------------------------------------------

    def _give_up_rechecks(self, track: Track, asked: Instant, now: Instant) -> list[Observation]:
        """A failed check honours the recovery and asks for a full query (decision 5, W09)."""
        honoured = track.unchecked(asked)
        if honoured:
            track.codes_due_ms = min(track.codes_due_ms, now.mono_ms + LIST_LAG_MS)
        return self._all_recovered(track, honoured, now)

    def _all_recovered(self, track: Track, came: dict[int, Instant], now: Instant) -> list[Observation]:
        return [self._recovered(track, code, at, now.mono_ms) for code, at in came.items()]

    def _recovered(self, track: Track, code: int, at: Instant, now_ms: int) -> FaultRecovered:
        track.remember_recovery(code, at, now_ms)
        return FaultRecovered(track.chip.logic_id, code, at)

    def _drop(self, track: Track, now: Instant) -> list[Observation]:
        if track.dropped:
            return []
        track.dropped = True
        track.recovered_ms.pop(codes.CARD_DROPPED, None)
        return [FaultOccurred(track.chip.logic_id, codes.CARD_DROPPED, None, now)]

    def _silent(self, track: Track, why: str, now: Instant) -> list[Observation]:
        track.silent = True
        return [ChipSilent(track.chip.logic_id, why, now)]

    def _completed(self, now: Instant) -> list[Observation]:
        if self._complete or not all(t.answered or not t.listed for t in self.tracks.values()):
            return []
        self._complete = True
        return [SourceComplete(now)]

    @staticmethod
    def _ms(seconds: float) -> int:
        return int(seconds * 1000)
