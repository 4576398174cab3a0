"""The board source in its threads, with a BMC that answers, fails, answers late or never."""

import logging
import threading
from collections.abc import Callable, Iterator

import pytest
from kit.bmc import FakeBmc, numbered
from kit.board import CPU_1D, PlayedBmc, config_of, facts_text, table_of
from kit.clock import PacedClock
from kit.daemon import wait_until

from nodeagent.core.alarms import Alarm, NodeLevel
from nodeagent.core.board import AlarmsSeen, AlarmsSilent, BoardFact, BoardView
from nodeagent.core.errors import IpmiAccessError, IpmiError, IpmiNotSupportedError, NodeAgentError
from nodeagent.core.telemetry import Event, EventReason, NullTelemetry
from nodeagent.daemon.board import BoardLoop
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.supervisor import Loop, Supervisor
from nodeagent.drivers import ipmi_alarms, ipmi_label
from nodeagent.drivers.ipmi import LoginRefusedError, NoAnswerError, Raw
from nodeagent.policy.board_listing import BoardAccess, board_json
from nodeagent.sources.board import BoardSource
from nodeagent.sources.board_calls import look_at_board
from nodeagent.sources.board_plan import BoardTimes

LIMIT_S = 15.0
HANG_S = 0.5
"""Long enough for a poll that does not hang, on a busy machine too."""
POLL, LABEL = 0x94, 0x90


def poll_alarms(raw: Raw) -> tuple[Alarm, ...]:
    """One alarm of CPU 1 for each byte of payload, the byte being its code."""
    return tuple(Alarm(code, 0, 3, 0, 1) for code in raw(0x30, POLL, b"")[1:])


def read_serial(raw: Raw) -> str:
    return raw(0x30, LABEL, b"")[1:].decode()


class Rig:
    """A running source. Its time stands still until `pass_s`; what hangs is told after HANG_S real seconds."""

    def __init__(self, serial: bool = False, hang_s: float = LIMIT_S, start: bool = True) -> None:
        self.clock = PacedClock()
        self.bmc = PlayedBmc()
        self.alarms = b""
        self.label: bytes | NodeAgentError = b"2102ABC"
        self.trouble: NodeAgentError | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.asked: list[int] = []
        self.bmc.say = self._say
        self.facts: list[BoardFact] = []
        self.serials: list[str] = []
        self.events: list[Event] = []
        self.metrics = Registry()
        self.source = BoardSource(
            self.bmc.connect,
            poll_alarms,
            read_serial if serial else None,
            self.clock,
            BoardTimes(60, hang_s),
            self.facts.append,
            self.serials.append,
            self,
            self.metrics,
        )
        self.thread = threading.Thread(target=self.source.run, daemon=True)
        if start:
            self.thread.start()

    def _say(self, netfn: int, command: int, data: bytes) -> bytes:
        self.asked.append(command)
        assert self.gate.wait(LIMIT_S)
        if command == LABEL:
            if isinstance(self.label, NodeAgentError):
                raise self.label
            return b"\0" + self.label
        if self.trouble is not None:
            raise self.trouble
        return b"\0" + self.alarms

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def reasons(self) -> list[EventReason]:
        return [event.reason for event in self.events]

    def pass_s(self, seconds: float) -> None:
        self.clock.advance_ms(round(seconds * 1000))

    def polls(self, count: int) -> BoardFact:
        """Wait for so many facts in all, 60 s between them; the last one."""
        while True:
            have = len(self.facts)
            if have >= count:
                assert have == count
                return self.facts[-1]
            if have:
                self.pass_s(60)
            wait_until(lambda have=have: len(self.facts) > have, "the next fact", LIMIT_S)

    def stop(self) -> None:
        self.source.stop()
        self.gate.set()
        if self.thread.ident is not None:
            self.thread.join(LIMIT_S)
            assert not self.thread.is_alive()


@pytest.fixture
def rigs() -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(**kwargs: object) -> Rig:
        made.append(Rig(**kwargs))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for rig in made:
        rig.stop()


class TestPolls:
    def test_the_first_poll_is_at_once_and_the_next_after_the_period(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs()
        began = rig.clock.now()
        assert rig.polls(1) == AlarmsSeen((), began)
        rig.alarms = b"\x1d"
        rig.pass_s(59)
        rig.thread.join(0.05)
        assert len(rig.facts) == 1
        rig.pass_s(1)
        fact = wait_until(lambda: rig.facts[1:], limit_s=LIMIT_S)[0]
        assert fact == AlarmsSeen((Alarm(0x1D, 0, 3, 0, 1),), began.plus_ms(60_000))
        assert rig.metrics.value("ipmi_polls_total", result="ok") == 2
        assert rig.metrics.value("ipmi_commands_total", result="ok") == 2
        last_s = rig.metrics.value("source_last_success_timestamp_seconds", source="ipmi")
        assert last_s == began.plus_ms(60_000).wall_ms / 1000

    def test_the_device_is_opened_for_each_poll_and_closed(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs()
        rig.polls(2)
        rig.trouble = IpmiError("damaged")
        rig.polls(3)
        assert (rig.bmc.opened, rig.bmc.closed, rig.bmc.most_open) == (3, 3, 1)

    def test_an_unforeseen_error_is_a_failed_poll(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(start=False)
        rig.bmc.say = lambda *_: 1 / 0  # type: ignore[return-value]
        rig.thread.start()
        fact = rig.polls(1)
        assert isinstance(fact, AlarmsSilent)
        assert fact.why == "unforeseen ZeroDivisionError: division by zero"
        rig.bmc.say = rig._say
        assert isinstance(rig.polls(2), AlarmsSeen)
        assert rig.bmc.open_now == 0

    def test_t13_driver_missing_at_start(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(start=False)
        rig.bmc.no_way = IpmiAccessError("/dev/ipmi0 does not exist", "load the kernel module ipmi_devintf")
        began = rig.clock.now()
        rig.thread.start()
        rig.polls(5)  # at 0, 60, 120, 180, 240
        assert rig.metrics.value("ipmi_polls_total", result="no_access") == 5
        rig.bmc.no_way = None  # it appears by 300
        assert rig.polls(6) == AlarmsSeen((), began.plus_ms(300_000))
        assert rig.reasons() == [EventReason.BOARD_SILENT, EventReason.BOARD_ANSWERS]
        assert "node faults are not known: /dev/ipmi0 does not exist (load the" in rig.events[0].message


class TestSilence:
    def test_t12_ibmc_lost(self, rigs: Callable[..., Rig], caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "nodeagent.board")
        rig = rigs()
        rig.alarms = b"\x1d"
        rig.polls(2)
        rig.trouble = NoAnswerError("no answer within 10 s")
        rig.polls(4)
        assert rig.events == [], "two failures are nobody's business"
        rig.polls(10)
        assert facts_text(rig.facts[2:]) == ["silent"] * 8
        assert rig.reasons() == [EventReason.BOARD_SILENT]
        assert rig.events[0].warning
        assert rig.events[0].message == (
            "3 polls in a row have failed, the node faults of the last good poll stay: no answer within 10 s"
        )
        assert rig.metrics.value("ipmi_commands_total", result="no_answer") == 8
        assert len([r for r in caplog.records if "failed" in r.message]) == 1, "said once"
        rig.trouble = None
        rig.polls(11)
        assert rig.reasons() == [EventReason.BOARD_SILENT, EventReason.BOARD_ANSWERS]
        assert caplog.records[-1].message == "polls of the alarms of the BMC are good again"
        rig.trouble = NoAnswerError("no answer within 10 s")
        rig.polls(14)
        assert rig.reasons().count(EventReason.BOARD_SILENT) == 2, "a new silence is news again"

    def test_errors_that_change_all_the_time_do_not_fill_the_log(
        self, rigs: Callable[..., Rig], caplog: pytest.LogCaptureFixture
    ) -> None:
        rig = rigs()
        for number in range(1, 21):
            rig.trouble = IpmiError(f"damaged in byte {number}")
            rig.polls(number)
        assert len(caplog.records) <= 8

    def test_a_refused_login_waits_longer_and_longer(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(start=False)
        rig.bmc.no_way = LoginRefusedError("the BMC refuses the password")
        rig.thread.start()
        rig.polls(1)
        for count, pause_s in enumerate((60, 120, 300, 600, 600), 1):
            rig.pass_s(pause_s - 1)
            rig.thread.join(0.03)
            assert len(rig.facts) == count
            rig.pass_s(1)
            wait_until(lambda count=count: len(rig.facts) == count + 1, limit_s=LIMIT_S)
        assert rig.metrics.value("ipmi_polls_total", result="refused") == 6

    def test_a_bmc_without_the_command_is_said_once_and_asked_slowly(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(start=False)
        rig.trouble = IpmiNotSupportedError("the BMC does not support the query of alarms", "update it")
        rig.thread.start()
        rig.polls(1)
        assert rig.reasons() == [EventReason.BOARD_NOT_SUPPORTED]
        for count in range(1, 4):
            rig.pass_s(599)
            rig.thread.join(0.03)
            assert len(rig.facts) == count
            rig.pass_s(1)
            wait_until(lambda count=count: len(rig.facts) == count + 1, limit_s=LIMIT_S)
        assert rig.reasons() == [EventReason.BOARD_NOT_SUPPORTED]
        rig.trouble = None
        rig.pass_s(600)
        wait_until(lambda: rig.events[1:], limit_s=LIMIT_S)
        assert rig.reasons() == [EventReason.BOARD_NOT_SUPPORTED, EventReason.BOARD_ANSWERS]


class TestLate:
    def test_an_answer_after_forty_seconds_is_a_good_poll(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(start=False)
        rig.gate.clear()
        began = rig.clock.now()
        rig.thread.start()
        wait_until(lambda: rig.asked, limit_s=LIMIT_S)
        rig.pass_s(40)
        rig.alarms = b"\x1d"
        rig.gate.set()
        assert rig.polls(1) == AlarmsSeen((Alarm(0x1D, 0, 3, 0, 1),), began)
        rig.pass_s(20)
        wait_until(lambda: len(rig.facts) == 2, limit_s=LIMIT_S)

    def test_while_a_poll_is_out_there_is_no_second(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(start=False)
        rig.gate.clear()
        rig.thread.start()
        wait_until(lambda: rig.asked, limit_s=LIMIT_S)
        rig.pass_s(330)
        rig.thread.join(0.05)
        assert len(rig.asked) == 1
        rig.gate.set()
        wait_until(lambda: rig.facts, limit_s=LIMIT_S)
        rig.thread.join(0.05)
        assert len(rig.asked) == 1, "the polls it ran into are not made up for"
        rig.pass_s(30)
        wait_until(lambda: len(rig.facts) == 2, limit_s=LIMIT_S)

    def test_a_poll_that_hangs_is_silence_and_goes_on_to_be(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(hang_s=HANG_S)
        rig.polls(1)
        rig.gate.clear()
        rig.pass_s(60)
        wait_until(lambda: len(rig.facts) == 2, limit_s=LIMIT_S)
        rig.polls(6)
        assert facts_text(rig.facts) == ["seen 0"] + ["silent"] * 5
        assert rig.asked == [POLL, POLL], "no second one before it has come back"
        assert rig.reasons() == [EventReason.BOARD_SILENT]
        assert rig.metrics.value("ipmi_polls_total", result="hung") == 5
        rig.alarms = b"\x1d"
        rig.gate.set()
        wait_until(lambda: len(rig.facts) == 7, limit_s=LIMIT_S)
        assert facts_text(rig.facts)[-1] == "seen 1", "late, but the newest truth there is"
        assert rig.reasons() == [EventReason.BOARD_SILENT, EventReason.BOARD_ANSWERS]
        rig.polls(8)
        assert rig.bmc.most_open == 1

    def test_a_hanging_poll_that_fails_at_last_is_not_told_twice(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(hang_s=HANG_S, start=False)
        rig.gate.clear()
        rig.trouble = NoAnswerError("no answer")
        rig.thread.start()
        rig.polls(1)
        rig.gate.set()
        wait_until(lambda: rig.bmc.closed == 1, limit_s=LIMIT_S)
        rig.thread.join(0.05)
        assert len(rig.facts) == 1
        rig.trouble = None
        assert isinstance(rig.polls(2), AlarmsSeen)

    def test_stop_does_not_wait_for_a_call_that_hangs(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(hang_s=HANG_S)
        rig.polls(1)
        rig.gate.clear()
        rig.pass_s(60)
        wait_until(lambda: len(rig.facts) == 2, limit_s=LIMIT_S)
        rig.source.stop()
        rig.thread.join(LIMIT_S)
        assert not rig.thread.is_alive()
        assert rig.bmc.open_now == 1, "it still hangs"

    def test_stop_lets_a_call_close_its_session(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(start=False)
        rig.gate.clear()
        rig.thread.start()
        wait_until(lambda: rig.asked, limit_s=LIMIT_S)
        rig.source.stop()
        rig.gate.set()
        rig.thread.join(LIMIT_S)
        assert (rig.bmc.opened, rig.bmc.closed) == (1, 1)

    def test_a_restart_of_the_loop_starts_no_second_call(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(start=False, hang_s=HANG_S)
        rig.gate.clear()
        crashed = threading.Event()

        def emit(fact: BoardFact) -> None:
            rig.facts.append(fact)
            if not crashed.is_set():
                crashed.set()
                raise RuntimeError("on purpose")

        rig.source._emit = emit
        supervisor = Supervisor(rig.metrics)
        supervisor.start(Loop("board", rig.source.run, rig.source.stop))
        assert crashed.wait(LIMIT_S)
        rig.polls(3)
        assert rig.asked == [POLL]
        rig.gate.set()
        wait_until(lambda: isinstance(rig.facts[-1], AlarmsSeen), limit_s=LIMIT_S)
        assert supervisor.stop(LIMIT_S) == []


class TestSerialNumber:
    def test_it_is_read_once_after_the_first_good_poll(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(serial=True)
        wait_until(lambda: rig.serials, limit_s=LIMIT_S)
        rig.pass_s(700)
        rig.polls(3)
        assert rig.serials == ["2102ABC"]
        assert rig.asked.count(LABEL) == 1
        assert rig.asked[:2] == [POLL, LABEL]
        assert rig.bmc.most_open == 1

    def test_t23_a_board_without_one_has_none(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(serial=True, start=False)
        rig.label = b""
        rig.thread.start()
        wait_until(lambda: LABEL in rig.asked and rig.bmc.closed == 2, limit_s=LIMIT_S)
        rig.polls(2)
        assert rig.serials == []

    def test_t23_c1_is_tried_again_later_and_blocks_no_alarms(
        self, rigs: Callable[..., Rig], caplog: pytest.LogCaptureFixture
    ) -> None:
        rig = rigs(serial=True, start=False)
        rig.label = IpmiNotSupportedError("the BMC does not support the serial number")
        rig.thread.start()
        rig.polls(25)
        assert [c.message for c in caplog.records if "serial number" in c.message] == [
            "the serial number of the board cannot be read, which is tried again:"
            " NA304: the BMC does not support the serial number"
        ], "said once"
        assert 2 <= rig.asked.count(LABEL) <= 3
        assert facts_text(rig.facts) == ["seen 0"] * 25
        assert rig.events == []
        rig.label = b"2102ABC"
        rig.pass_s(600)
        wait_until(lambda: rig.serials, limit_s=LIMIT_S)

    def test_one_that_hangs_is_silence_only_for_the_polls_it_costs(self, rigs: Callable[..., Rig]) -> None:
        rig = rigs(serial=True, hang_s=HANG_S, start=False)
        let_go, say = threading.Event(), rig._say

        def hang(netfn: int, command: int, data: bytes) -> bytes:
            if command == LABEL:
                assert let_go.wait(LIMIT_S)
            return say(netfn, command, data)

        rig.bmc.say = hang
        rig.thread.start()
        rig.polls(1)
        wait_until(lambda: rig.bmc.opened == 2, limit_s=LIMIT_S)
        rig.thread.join(2 * HANG_S)
        assert facts_text(rig.facts) == ["seen 0"]
        rig.polls(3)
        assert facts_text(rig.facts) == ["seen 0", "silent", "silent"]
        let_go.set()
        wait_until(lambda: rig.serials, limit_s=LIMIT_S)
        rig.polls(4)
        assert facts_text(rig.facts)[-1] == "seen 0"


class TestWholeWay:
    """From the bytes of an iBMC to the view, with the real readers and both loops."""

    @pytest.fixture
    def bmc(self) -> FakeBmc:
        return FakeBmc(numbered(33), page_size=12, serial=[b"\x00\x802102ABC"])

    def test_alarms_become_a_view_and_the_serial_number_is_shown(self, bmc: FakeBmc) -> None:
        played, metrics, views = PlayedBmc(), Registry(), list[BoardView]()
        played.say = bmc.raw
        clock, events = PacedClock(), NullTelemetry()
        table = config_of({alarm.text: NodeLevel.PRE_SEPARATE for alarm in bmc.alarms[:-1]})
        loop = BoardLoop(clock, table, "/dev/ipmi0", views.append, lambda _: None, events, metrics)
        source = BoardSource(
            played.connect,
            ipmi_alarms.poll_alarms,
            ipmi_label.read_serial_number,
            clock,
            BoardTimes(),
            loop.submit,
            loop.serial_number,
            events,
            metrics,
        )
        supervisor = Supervisor(metrics)
        supervisor.start(Loop("board", loop.run, loop.stop))
        supervisor.start(Loop("board-source", source.run, source.stop))
        try:
            wait_until(lambda: loop.state_json()["serial_number"] == "2102ABC", limit_s=LIMIT_S)
            assert len(wait_until(lambda: views, limit_s=LIMIT_S)[0].devices) == 32
            # The second page, in each of the three tries.
            bmc.odd = {len(bmc.asked) + number: b"\xc3" for number in (1, 2, 3)}
            clock.advance_ms(60_000)
            wait_until(lambda: loop.why_json()["silent_since_ms"], "a page that is not told fails the poll", LIMIT_S)
            assert len(views[-1].devices) == 32, "and takes nothing away"
            bmc.alarms = ()
            clock.advance_ms(60_000)
            wait_until(lambda: loop.state_json()["status"] == "Healthy", limit_s=LIMIT_S)
        finally:
            assert supervisor.stop(LIMIT_S) == []
        assert played.most_open == 1
        assert played.open_now == 0


class TestOneLook:
    def test_a_look_needs_no_daemon(self) -> None:
        bmc = PlayedBmc()
        bmc.say = lambda *_: b"\0\x1d"
        state = look_at_board(bmc.connect, poll_alarms, PacedClock(), Registry(), table_of())
        shown = board_json(state, config_of(), BoardAccess("/dev/ipmi0"), "bmc")
        assert (shown["status"], shown["alarms"][0]["code"]) == ("PreSeparate", CPU_1D.text)
        assert shown["alarms"][0]["since_ms"] is None
        assert bmc.open_now == 0

    def test_a_look_that_fails_says_why(self) -> None:
        bmc = PlayedBmc()
        bmc.no_way = IpmiAccessError("/dev/ipmi0 does not exist")
        state = look_at_board(bmc.connect, poll_alarms, PacedClock(), Registry(), table_of())
        shown = board_json(state, config_of(), BoardAccess("/dev/ipmi0"), "bmc")
        assert not shown["known"]
        assert shown["why_unknown"] == "the BMC gives no answer: /dev/ipmi0 does not exist"
