"""The link source: between the chip source and the engine, with what else is known of the network ports.

`links` owns the plans: it passes the chip source's observations on with the merged link state in them (R23), and
hands out work; `links.gateway` makes one gateway call at a time, in a driver host that may hang; `links.tool` runs
hccn_tool. Neither delays an event: what they learn comes back through the same inbox.
While the driver is released for an upgrade, neither is asked; observations still pass.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodeagent.core.clock import Clock
from nodeagent.core.errors import HostError
from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId
from nodeagent.core.observation import InventorySeen, Observation
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.drivers.answers import AnswerError, AnswerKind, result_label
from nodeagent.drivers.gateway import ConnectGateway, GatewayDriver, gateway_is_bad
from nodeagent.drivers.hccn import PortCount
from nodeagent.drivers.host import HostStuckError
from nodeagent.sources.gate import Gate
from nodeagent.sources.gateway_plan import GatewayPlan
from nodeagent.sources.link_calls import LinkTool, Sampled, Task, Tasks, Told, ask_tool, make_gateway_calls
from nodeagent.sources.link_plan import UBOE_BOARDS, LinkPlan, LinkTimes

INBOX_MESSAGES = 256
_LOOK_AT_CHILD_S = 1.0


@dataclass(frozen=True, slots=True)
class _Seen:
    observations: Sequence[Observation]


class LinkSource:
    """Passes observations through `observe` on to `emit`, and adds what gateway and hccn_tool say.

    connect: maker of gateway sessions, None = the gateway is not asked. tool: None = hccn_tool is not asked.
    emit: takes observations, from the source's thread; may wait, and then `observe` waits too.
    """

    def __init__(
        self,
        connect: ConnectGateway | None,
        tool: LinkTool | None,
        clock: Clock,
        times: LinkTimes,
        emit: Callable[[Sequence[Observation]], None],
        events: EventSink,
        metrics: Metrics,
        uboe_boards: frozenset[int] = UBOE_BOARDS,
    ) -> None:
        self._connect = connect
        self._tool = tool
        self._clock = clock
        self._emit = emit
        self._events = events
        self._metrics = metrics
        self._links = LinkPlan(times, tool=tool is not None, uboe_boards=uboe_boards)
        self._gateway = GatewayPlan(times.gateway_s)
        self._gate = Gate()
        self._inbox: queue.Queue[_Seen | Sampled | Told | None] = queue.Queue(INBOX_MESSAGES)
        self._calls: Tasks = queue.SimpleQueue()
        self._questions: Tasks = queue.SimpleQueue()
        self._calling = self._questioning = False
        self._asked_before = False
        self._session: GatewayDriver | None = None
        self._hung: dict[int, GatewayDriver] = {}
        self._stopping = threading.Event()
        self._said: set[str] = set()

    def observe(self, observations: Sequence[Observation]) -> None:
        """Take observations of the chip source; waits while the inbox is full. From any one thread."""
        self._inbox.put(_Seen(observations))

    @property
    def waiting(self) -> int:
        """Observations and answers in the inbox."""
        return self._inbox.qsize()

    def run(self) -> None:
        """Work until `stop`; the supervisor calls this again should it ever raise."""
        self._questions = queue.SimpleQueue()
        self._questioning = self._asked_before = False
        self._start_gateway()
        if self._tool is not None:
            questions = (self._questions, self._tool, self._clock, self._inbox.put)
            threading.Thread(target=ask_tool, args=questions, name="links.tool", daemon=True).start()
        try:
            while not self._stopping.is_set():
                self._dispatch()
                with contextlib.suppress(queue.Empty):
                    message = self._inbox.get(timeout=self._timeout_s())
                    if message is not None:
                        self._take(message)
        finally:
            self._calls.put(None)
            self._questions.put(None)
            if self._session is not None:
                self._close_session()
                self._gateway.on_session_lost(self._clock.now())

    def _start_gateway(self) -> None:
        self._calls.put(None)
        self._calls, self._calling = queue.SimpleQueue(), False
        if self._connect is not None:
            work = (self._calls, self._connect, self._gate, self._clock, self._inbox.put)
            threading.Thread(target=make_gateway_calls, args=work, name="links.gateway", daemon=True).start()

    def stop(self) -> None:
        """Make `run` return, without waiting for a call that hangs or a tool that runs."""
        self._stopping.set()
        if self._tool is not None:
            self._tool.stop()
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(queue.Full):  # then there is something to wake up for anyway
            self._inbox.put_nowait(None)

    # -- release for a driver upgrade, from any thread ----------------------------------

    def release(self) -> None:
        """Let go of the library and of hccn_tool until `resume`; `holds_driver` says when that is done."""
        self._gate.shut()
        if self._tool is not None:
            self._tool.stop()
        self._wake()

    def resume(self) -> None:
        """Ask gateways and hccn_tool again, about every chip at once."""
        self._gate.open()
        self._wake()

    @property
    def holds_driver(self) -> bool:
        """A session is open, or may still be; one that was closed and does not end is the reaper's matter."""
        return not self._gate.held

    def _follow_gate(self) -> None:
        self._gate.follow(self._let_go, self._take_back)

    def _let_go(self) -> None:
        if self._tool is not None:
            self._tool.stop()
        self._gateway.release()
        self._close_session()
        self._start_gateway()
        self._asked_before = self._questioning
        self._tell(self._links.release(self._clock.now()))

    def _take_back(self) -> None:
        if self._tool is not None:
            self._tool.resume()
        self._gateway.resume(self._clock.now())
        self._links.resume(self._clock.now())

    def _close_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    # -- the loop ---------------------------------------------------------------------

    def _dispatch(self) -> None:
        self._follow_gate()
        now_ms = self._clock.now().mono_ms
        for logic_id, driver in list(self._hung.items()):
            if driver.ended:
                del self._hung[logic_id]
                self._gateway.on_released(logic_id)
        if not self._calling and self._connect is not None and (chip := self._gateway.next_chip(now_ms)) is not None:
            self._calling = True
            self._calls.put(Task(chip, self._session))
        if not self._questioning and (chip := self._links.next_query(now_ms)) is not None:
            self._questioning = True
            self._questions.put(Task(chip, counts=self._links.counting))

    def _timeout_s(self) -> float | None:
        due = [] if self._calling or self._connect is None else [self._gateway.next_due_ms()]
        due += [] if self._questioning else [self._links.next_due_ms()]
        known = [d for d in due if d is not None]
        waits_s = [self._clock.real_s((min(known) - self._clock.now().mono_ms) / 1000)] if known else []
        return min(waits_s + ([_LOOK_AT_CHILD_S] if self._hung else []), default=None)

    def _take(self, message: _Seen | Sampled | Told) -> None:
        self._follow_gate()  # what ended because the gate was shut is no news of the links
        if isinstance(message, _Seen):
            now = self._clock.now()
            self._tell(self._links.take(message.observations, now))
            if any(isinstance(o, InventorySeen) for o in message.observations):
                self._gateway.set_chips(self._links.gateway_chips(), now)
        elif isinstance(message, Sampled):
            if message.origin is self._calls:
                self._calling = False
                self._on_sampled(message)
            elif message.session is not None:
                message.session.close()  # of a run before this one, or of before a release
            if message.session is not None:
                self._gate.leave(message.session)
        elif message.origin is self._questions:
            self._questioning = False
            if not self._asked_before:
                self._on_told(message)
            self._asked_before = False

    def _tell(self, observations: list[Observation]) -> None:
        if observations:
            self._metrics.set("links_bad", self._links.bad_links)
            self._emit(observations)

    # -- the gateway ------------------------------------------------------------------

    def _on_sampled(self, sample: Sampled) -> None:
        now, chip, error = self._clock.now(), sample.chip, sample.error
        if sample.session is None:
            self._gateway.on_open_failed(now)
            self._say(EventReason.GATEWAY_UNKNOWN, "session", f"gateways are not asked: {error}")
            return
        if sample.opened:
            self._session = sample.session
            self._gateway.on_opened(now)
            self._well("session", "gateways are asked again")
        self._metrics.count("gateway_calls_total", result=result_label(error))
        self._metrics.observe("driver_call_seconds", sample.took_s, call="gateway")
        if isinstance(error, HostStuckError):
            self._metrics.count("driver_deadlines_missed_total", call="gateway")
        if isinstance(error, HostError):
            self._lose(sample.session, chip, error, now)
        elif isinstance(error, AnswerError) and error.kind is AnswerKind.NOT_SUPPORTED:
            self._skip(chip, error, sample.asked)
        else:
            self._gateway.on_answer(chip.logic_id, sample.asked)
            bad = gateway_is_bad(sample.value) if sample.value is not None else None
            if bad is None:
                why = error.sentence if error is not None else f"result {sample.value} is none that is known"
                self._say(EventReason.GATEWAY_UNKNOWN, f"gateway {chip.logic_id}", why, str(chip))
            else:
                self._learned(now)
                self._well(f"gateway {chip.logic_id}", "the gateway detection answers again", str(chip))
            self._tell(self._links.on_gateway(chip.logic_id, bad, sample.asked))
        self._metrics.set("gateway_unsupported_chips", self._gateway.unsupported)

    def _skip(self, chip: ChipId, error: AnswerError, asked: Instant) -> None:
        """Without the function there is no gateway state, so an earlier bad one must not stay for ever."""
        if self._gateway.on_unsupported(chip.logic_id):
            message = f"the gateway of this chip is not watched: {error.sentence}"
            self._events.emit(Event(EventReason.GATEWAY_NOT_SUPPORTED, message, subject=str(chip)))
        self._tell(self._links.on_gateway(chip.logic_id, False, asked))
        if not self._gateway.wants_session and self._session is not None:
            self._session.close()  # a process less; another driver session makes another try
            self._session = None
            self._gateway.on_session_lost(self._clock.now())

    def _lose(self, session: GatewayDriver, chip: ChipId, error: HostError, now: Instant) -> None:
        self._metrics.count("gateway_sessions_lost_total")
        session.close()
        self._session = None
        self._gateway.on_session_lost(now)
        if self._gateway.on_no_answer(chip.logic_id, now, hung=isinstance(error, HostStuckError)):
            self._hung[chip.logic_id] = session
        self._say(EventReason.GATEWAY_UNKNOWN, f"gateway {chip.logic_id}", error.sentence, str(chip))

    # -- hccn_tool --------------------------------------------------------------------

    def _on_told(self, told: Told) -> None:
        self._metrics.count("link_queries_total", result=result_label(told.error))
        logic_id, answer = told.chip.logic_id, told.answer
        if told.error is not None:
            self._say(EventReason.LINK_QUERY_FAILED, f"tool {logic_id}", told.error.sentence, str(told.chip))
        else:
            self._learned(self._clock.now())
            self._well(f"tool {logic_id}", "hccn_tool answers again", str(told.chip))
        if self._links.counting:
            self._tell(self._links.on_ports(logic_id, answer if isinstance(answer, PortCount) else None, told.asked))
        else:
            self._tell(self._links.on_link(logic_id, answer if isinstance(answer, bool) else None, told.asked))

    def _learned(self, now: Instant) -> None:
        self._metrics.set("source_last_success_timestamp_seconds", now.wall_ms / 1000, source="links")

    # -- what people hear: changes, not repetitions (lesson 81) ------------------------

    def _say(self, reason: EventReason, topic: str, message: str, subject: str = "") -> None:
        if topic not in self._said:
            self._said.add(topic)
            self._events.emit(Event(reason, message, warning=True, subject=subject))

    def _well(self, topic: str, message: str, subject: str = "") -> None:
        if topic in self._said:
            self._said.remove(topic)
            reason = EventReason.LINK_QUERY_WORKS if topic.startswith("tool") else EventReason.GATEWAY_ANSWERS
            self._events.emit(Event(reason, message, subject=subject))
