"""The board source: polls the alarms of the BMC for ever, and reads the serial number of the product once.

`board` owns the plan and tells; each question is made in a thread of its own (`board.call`), so a BMC that answers late
or never delays nobody. There is exactly one question at a time: while one has not come back there is no other, and the
polls that it costs are told as failed ones.
"""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from nodeagent.core.alarms import Alarm
from nodeagent.core.board import AlarmsSeen, AlarmsSilent, BoardFact
from nodeagent.core.clock import Clock, monotonic_s
from nodeagent.core.errors import IpmiAccessError, IpmiNotSupportedError, NodeAgentError
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.drivers.ipmi import Connect, LoginRefusedError
from nodeagent.policy.board import STALE_AFTER
from nodeagent.sources.board_calls import Call, Ended, PollAlarms, ReadSerial
from nodeagent.sources.board_plan import BoardPlan, BoardTimes, Outcome

log = logging.getLogger("nodeagent.board")

SUBJECT = "board"
END_S = 2.0
"""At the end this long is waited for a call that is out; the whole daemon has 5 s (node-faults 14.3)."""
MAX_SENTENCES = 8
"""Different reasons that are logged of one silence; a BMC that fails in turns would log each poll otherwise."""


class BoardSource:
    """Asks the BMC.

    connect: opens the device, once for each question. poll: reads all alarms. read_serial: None = the serial number is
    not read. emit: takes the fact of each poll, from the source's thread. on_serial: takes the serial number once it is
    known; never an empty one.
    """

    def __init__(
        self,
        connect: Connect,
        poll: PollAlarms,
        read_serial: ReadSerial | None,
        clock: Clock,
        times: BoardTimes,
        emit: Callable[[BoardFact], None],
        on_serial: Callable[[str], None],
        events: EventSink,
        metrics: Metrics,
    ) -> None:
        self._connect = connect
        self._poll = poll
        self._read_serial = read_serial
        self._clock = clock
        self._hang_s = times.hang_s
        self._emit = emit
        self._on_serial = on_serial
        self._events = events
        self._metrics = metrics
        self._plan = BoardPlan(times)
        self._inbox: queue.SimpleQueue[Ended[Any] | None] = queue.SimpleQueue()
        self._call: Call[Any] | None = None
        self._reading = False
        self._stopping = threading.Event()
        self._said: set[EventReason] = set()
        self._logged: set[str] = set()
        self._serial_said = False

    def run(self) -> None:
        """Work until `stop`; the supervisor calls this again should it ever raise, and a call that is out stays out."""
        while not self._stopping.is_set():
            self._dispatch()
            try:
                ended = self._inbox.get(timeout=self._timeout_s())
            except queue.Empty:
                continue
            if ended is not None:
                self._take(ended)
        self._let_end()

    def stop(self) -> None:
        """Make `run` return, without waiting for a call that hangs."""
        self._stopping.set()
        self._inbox.put(None)

    def _let_end(self) -> None:
        """A call that is out closes the device, or its session with the BMC, if it comes back soon (lesson 90)."""
        if self._call is not None and not self._call.given_up:
            end_s = monotonic_s() + END_S
            with contextlib.suppress(queue.Empty):
                while self._inbox.get(timeout=max(0.0, end_s - monotonic_s())) is None:
                    pass

    # -- the loop ---------------------------------------------------------------------

    def _dispatch(self) -> None:
        now = self._clock.now()
        if self._call is not None:
            self._watch(self._call)
        elif self._plan.poll_due_ms(now.mono_ms) <= now.mono_ms:
            self._reading = False
            self._call = Call(self._connect, self._poll, self._clock, self._metrics, self._inbox.put)
        elif (due_ms := self._serial_due_ms()) is not None and due_ms <= now.mono_ms and self._read_serial is not None:
            self._reading = True
            self._call = Call(self._connect, self._read_serial, self._clock, self._metrics, self._inbox.put)

    def _watch(self, call: Call[Any]) -> None:
        """A call is out: is it too late, and does it cost another poll?"""
        now = self._clock.now()
        out_s = monotonic_s() - call.begun_s
        late = not call.given_up and out_s >= self._hang_s
        if late:
            call.given_up = True
        costs_a_poll = call.given_up and self._plan.poll_due_ms(now.mono_ms) <= now.mono_ms
        if costs_a_poll or (late and not self._reading):
            self._failed(Outcome.HUNG, f"a call to the BMC has not come back for {out_s:.0f} s", call.begun.mono_ms)
        if late and self._reading:
            self._plan.on_serial(known=False, now_ms=now.mono_ms)

    def _serial_due_ms(self) -> int | None:
        return None if self._read_serial is None else self._plan.serial_due_ms()

    def _timeout_s(self) -> float:
        now_ms = self._clock.now().mono_ms
        if self._call is not None and not self._call.given_up:
            return max(0.0, self._hang_s - (monotonic_s() - self._call.begun_s))
        due = [self._plan.poll_due_ms(now_ms)]
        if self._call is None and (serial_ms := self._serial_due_ms()) is not None:
            due.append(serial_ms)
        return self._clock.real_s((min(due) - now_ms) / 1000)

    # -- what came back -----------------------------------------------------------------

    def _take(self, ended: Ended[Any]) -> None:
        self._call = None
        if self._reading:
            self._take_serial(ended)
        else:
            self._take_poll(ended)

    def _take_poll(self, ended: Ended[tuple[Alarm, ...]]) -> None:
        now, begun_ms = self._clock.now(), ended.call.begun.mono_ms
        if ended.error is None:
            self._metrics.count("ipmi_polls_total", result=Outcome.GOOD.value)
            self._metrics.set("source_last_success_timestamp_seconds", now.wall_ms / 1000, source="ipmi")
            self._plan.on_poll(Outcome.GOOD, begun_ms, now.mono_ms)
            self._well()
            self._emit(AlarmsSeen(ended.value or (), ended.call.begun))
        elif not ended.call.given_up:  # that poll was told as a failed one already
            self._failed(_outcome(ended.error), ended.error.sentence, begun_ms, ended.error.hint)

    def _failed(self, outcome: Outcome, why: str, begun_ms: int, hint: str = "") -> None:
        now = self._clock.now()
        self._metrics.count("ipmi_polls_total", result=outcome.value)
        self._plan.on_poll(outcome, begun_ms, now.mono_ms)
        text = why + (f" ({hint})" if hint else "")
        topic = outcome.value if outcome is Outcome.HUNG else why
        if topic not in self._logged and len(self._logged) < MAX_SENTENCES:
            self._logged.add(topic)
            log.warning("poll of the alarms of the BMC failed: %s", text)
        if outcome is Outcome.NOT_SUPPORTED:
            if self._plan.settled:
                self._say(EventReason.BOARD_NOT_SUPPORTED, f"{text}; it is asked again now and then")
        elif self._plan.failures >= STALE_AFTER:
            kept = "the node faults of the last good poll stay" if self._plan.good_ever else "node faults are not known"
            self._say(EventReason.BOARD_SILENT, f"{self._plan.failures} polls in a row have failed, {kept}: {text}")
        self._emit(AlarmsSilent(why, now, outcome is Outcome.NO_ACCESS))

    def _take_serial(self, ended: Ended[str]) -> None:
        now_ms = self._clock.now().mono_ms
        if ended.error is not None:
            if not ended.call.given_up:
                self._plan.on_serial(known=False, now_ms=now_ms)
                if not self._serial_said:
                    self._serial_said = True
                    log.warning("the serial number of the board cannot be read, which is tried again: %s", ended.error)
            return
        self._plan.on_serial(known=True, now_ms=now_ms)
        log.info("serial number of the board: %s", ended.value or "it has none")
        if ended.value:
            self._on_serial(ended.value)

    # -- what people hear: changes, not repetitions (lesson 81) ------------------------

    def _say(self, reason: EventReason, message: str) -> None:
        if reason not in self._said:
            self._said.add(reason)
            self._events.emit(Event(reason, message, warning=True, subject=SUBJECT))

    def _well(self) -> None:
        if self._logged:
            log.info("polls of the alarms of the BMC are good again")
        if self._said:
            self._events.emit(Event(EventReason.BOARD_ANSWERS, "polls of the BMC are good again", subject=SUBJECT))
        self._said.clear()
        self._logged.clear()


def _outcome(error: NodeAgentError) -> Outcome:
    if isinstance(error, IpmiNotSupportedError):
        return Outcome.NOT_SUPPORTED
    if isinstance(error, LoginRefusedError):
        return Outcome.REFUSED
    return Outcome.NO_ACCESS if isinstance(error, IpmiAccessError) else Outcome.FAILED
