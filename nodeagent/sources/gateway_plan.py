"""When which chip is asked for its gateway, and which is left alone (chip-faults 4.6). No I/O, time passed in."""

from collections.abc import Iterable
from dataclasses import dataclass

from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId
from nodeagent.core.pauses import backoff_s
from nodeagent.sources.tracks import CRASHES_TO_QUARANTINE, QUARANTINE_S, RETRY_S, SETTLED_MS


@dataclass(slots=True)
class _Track:
    """One chip. supported: asked at all in this session. held: its call hangs in a child that lives on.

    named: people know that it is not supported. crashes, quarantines: without an answer in between.
    """

    chip: ChipId
    due_ms: int
    supported: bool = True
    named: bool = False
    held: bool = False
    crashes: int = 0
    quarantines: int = 0


class GatewayPlan:
    """Owned by one thread. period_s: seconds between two samples of a chip.

    A call that hangs or crashes costs its session; the chip is left alone for 30 s, 60 s, 120 s, then 300 s, and in
    any case while the child of that call lives. The others go on in the next session.
    """

    def __init__(self, period_s: float) -> None:
        self._period_ms = int(period_s * 1000)
        self._tracks: dict[int, _Track] = {}
        self._released = False
        self._open = False
        self._opened_ms = 0
        self._open_due_ms = 0
        self._open_failures = 0

    def set_chips(self, chips: Iterable[ChipId], now: Instant) -> None:
        """The chips to ask. Called when the node was seen (again) by another driver session: all get a new try."""
        before = self._tracks
        self._tracks = {}
        for chip in chips:
            track = before.get(chip.logic_id) or _Track(chip, now.mono_ms)
            track.chip, track.supported = chip, True
            self._tracks[chip.logic_id] = track

    @property
    def wants_session(self) -> bool:
        """There is a chip that can be asked, now or later."""
        return any(t.supported for t in self._tracks.values())

    @property
    def unsupported(self) -> int:
        """Chips that do not have it."""
        return sum(1 for t in self._tracks.values() if not t.supported)

    def next_chip(self, now_ms: int) -> ChipId | None:
        """The chip that is longest overdue, once a session is open or may be opened for it; None = nothing to do."""
        if self._released or (not self._open and now_ms < self._open_due_ms):
            return None
        due = [(t.due_ms, i) for i, t in self._tracks.items() if t.supported and not t.held and t.due_ms <= now_ms]
        return self._tracks[min(due)[1]].chip if due else None

    def next_due_ms(self) -> int | None:
        """Monotonic time of the next call; None while no chip can be asked."""
        if self._released:
            return None
        due = min((t.due_ms for t in self._tracks.values() if t.supported and not t.held), default=None)
        if due is None or self._open:
            return due
        return max(due, self._open_due_ms)

    def release(self) -> None:
        """The driver is let go: nothing is due until `resume`."""
        self._released, self._open = True, False

    def resume(self, now: Instant) -> None:
        """Perhaps another driver: every chip gets a new try at once, but for those whose old child lives on."""
        self._released, self._open_failures, self._open_due_ms = False, 0, now.mono_ms
        for track in self._tracks.values():
            track.supported, track.crashes, track.quarantines, track.due_ms = True, 0, 0, now.mono_ms

    # -- what came of it -------------------------------------------------------------

    def on_opened(self, now: Instant) -> None:
        """A session is open; chips that the last one did not support are tried again (another driver, perhaps)."""
        self._open, self._opened_ms = True, now.mono_ms
        for track in self._tracks.values():
            track.supported = True

    def on_open_failed(self, now: Instant) -> None:
        """No session: try again after a growing pause."""
        self._open_failures += 1
        self._open_due_ms = now.mono_ms + backoff_s(RETRY_S, self._open_failures) * 1000

    def on_session_lost(self, now: Instant) -> None:
        """The session hangs or has ended; the next one waits longer the more often that happens."""
        self._open = False
        if now.mono_ms - self._opened_ms > SETTLED_MS:
            self._open_failures = 0
        self.on_open_failed(now)

    def on_answer(self, logic_id: int, asked: Instant) -> None:
        """The call came back, with a result or with an error: ask again after the period."""
        track = self._tracks.get(logic_id)
        if track is not None:
            track.crashes = track.quarantines = 0
            track.due_ms = asked.mono_ms + self._period_ms

    def on_unsupported(self, logic_id: int) -> bool:
        """The chip does not have it and is skipped from now on; true when people have not been told yet."""
        track = self._tracks.get(logic_id)
        if track is None:
            return False
        fresh, track.supported, track.named = not track.named, False, True
        return fresh

    def on_no_answer(self, logic_id: int, now: Instant, *, hung: bool) -> bool:
        """The call hung, or its process ended. True: the chip is left alone, at least until `on_released`.

        A process may end for reasons of its own; a chip is to blame when that happens twice in a row.
        """
        track = self._tracks.get(logic_id)
        if track is None:
            return False
        track.crashes += 0 if hung else 1
        if not hung and track.crashes < CRASHES_TO_QUARANTINE:
            return False
        track.held, track.crashes = True, 0
        track.quarantines += 1
        track.due_ms = now.mono_ms + backoff_s(QUARANTINE_S, track.quarantines) * 1000
        return True

    def on_released(self, logic_id: int) -> None:
        """The child of the call that hung has ended."""
        track = self._tracks.get(logic_id)
        if track is not None:
            track.held = False
