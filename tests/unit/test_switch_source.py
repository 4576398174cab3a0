"""The switch source in its threads, with a library of the test."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from kit.clock import FakeClock
from kit.daemon import wait_until

from nodeagent.core.clock import AcceleratedClock
from nodeagent.core.errors import HostError, LibraryError
from nodeagent.core.model import ChipId, Family, Inventory, Product
from nodeagent.core.observation import (
    InventorySeen,
    Observation,
    SwitchEventSeen,
    SwitchLibraryFound,
    SwitchListSeen,
    SwitchSilent,
)
from nodeagent.core.switch import NO_FAULT_ID, SwitchRecord
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.drivers.answers import AnswerError
from nodeagent.drivers.host import HostGoneError, HostStuckError
from nodeagent.drivers.switches import SwitchDriver, SwitchEvent, SwitchNews
from nodeagent.sources.switch_plan import SwitchTimes
from nodeagent.sources.switches import SwitchSource

B3 = SwitchRecord(0x08520003, NO_FAULT_ID, 1, 5, 2, 11, 2, 1, 1759999990123)


class Session:
    """A session of the test's library."""

    def __init__(self, rig: "Rig", on_news: Callable[[SwitchNews], None]) -> None:
        self.rig = rig
        self.on_news = on_news
        self.closed = False

    def open(self) -> str:
        assert self.rig.may_open.wait(20)
        if self.rig.refusal is not None:
            raise self.rig.refusal
        return "/lib/liblingqu-dcmi.so"

    def subscribe(self) -> None:
        self.rig.made("subscribe")

    def faults(self) -> tuple[SwitchRecord, ...]:
        self.rig.made("faults")
        return tuple(self.rig.present)

    def close(self) -> None:
        self.closed = True


class Rig:
    """A running source and what came out of it. Its time runs a hundred times as fast as ours."""

    def __init__(self, *, use: bool = True, times: SwitchTimes | None = None) -> None:
        self.clock = AcceleratedClock(100)
        self.present: list[SwitchRecord] = []
        self.refusal: Exception | None = None
        self.failing: dict[str, Exception] = {}
        self.calls: list[str] = []
        self.sessions: list[Session] = []
        self.may_open = threading.Event()
        self.may_open.set()
        self.out: list[Observation] = []
        self.events: list[Event] = []
        self.metrics = Registry()
        self.source = SwitchSource(
            self.connect if use else None, self.clock, times or SwitchTimes(), self.emit, self, self.metrics
        )
        self.thread = threading.Thread(target=self.source.run, daemon=True)
        self.thread.start()

    def connect(self, on_news: Callable[[SwitchNews], None]) -> SwitchDriver:
        self.sessions.append(Session(self, on_news))
        return self.sessions[-1]

    def made(self, call: str) -> None:
        self.calls.append(call)
        if (error := self.failing.get(call)) is not None:
            raise error

    def emit(self, what: Sequence[Observation] | Event) -> None:
        if isinstance(what, Event):
            self.events.append(what)
        else:
            self.out += what

    def see(self, family: Family = Family.A3) -> "Rig":
        product = Product(family, "910_9391", 0xB0, 0x18, "25.2.0", "v1")
        self.source.observe([InventorySeen(Inventory(product, (ChipId(0, 0, 0, 0),)), self.clock.now())])
        return self

    def settled(self) -> "Rig":
        wait_until(lambda: self.lists() and self.metrics.value("switch_subscribed") == 1)
        wait_until(lambda: len(self.lists()) == self.calls.count("faults"))
        return self

    def tell(self, *records: SwitchRecord, dropped: int = 0, gone: str = "", session: int = -1) -> None:
        stamp_ns = FakeClock().now().mono_ms * 1_000_000
        events = tuple(SwitchEvent(record, stamp_ns) for record in records)
        self.sessions[session].on_news(SwitchNews(events, dropped, gone))

    def lists(self) -> list[tuple[SwitchRecord, ...]]:
        return [o.records for o in self.out if isinstance(o, SwitchListSeen)]

    def found(self) -> list[bool]:
        return [o.present for o in self.out if isinstance(o, SwitchLibraryFound)]

    def told(self, reason: EventReason) -> list[str]:
        return [e.message for e in self.events if e.reason is reason]

    def stop(self) -> None:
        self.may_open.set()
        self.source.stop()
        self.thread.join(20)
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


@pytest.mark.parametrize("family", [f for f in Family if f is not Family.A3])
def test_only_an_a3_has_switches(rigs: Callable[..., Rig], family: Family) -> None:
    rig = rigs().see(family)
    rig.see(family)
    wait_until(lambda: rig.source.waiting == 0)
    assert (rig.sessions, rig.out) == ([], [])


def test_one_that_is_not_to_be_used_is_not_looked_for_and_nobody_is_warned(rigs: Callable[..., Rig]) -> None:
    rig = rigs(use=False).see()
    wait_until(rig.found)
    assert (rig.found(), rig.sessions, rig.events) == ([False], [], [])


def test_subscribes_before_it_queries_and_queries_again_every_300_s(rigs: Callable[..., Rig]) -> None:
    rig = rigs().see()
    wait_until(lambda: len(rig.lists()) == 3)  # six seconds of ours
    assert rig.calls[:3] == ["subscribe", "faults", "faults"]
    asked = [o.at.mono_ms for o in rig.out if isinstance(o, SwitchListSeen)]
    assert 299_000 < asked[1] - asked[0] < 900_000
    assert rig.metrics.value("switch_queries_total", result="ok") == 3
    assert rig.metrics.value("driver_calls_total", call="switch_subscribe", result="ok") == 1


def test_a_second_look_at_the_node_opens_no_second_session(rigs: Callable[..., Rig]) -> None:
    rig = rigs().see().settled()
    rig.see()
    rig.tell(B3)
    wait_until(lambda: any(isinstance(o, SwitchEventSeen) for o in rig.out))
    assert len(rig.sessions) == 1


def test_an_overflow_is_counted_and_makes_a_query(rigs: Callable[..., Rig]) -> None:
    rig = rigs(times=SwitchTimes(query_s=300)).see().settled()
    before = rig.calls.count("faults")
    rig.tell(B3, dropped=7)
    rig.tell(dropped=7)
    rig.tell(dropped=9)
    wait_until(lambda: rig.calls.count("faults") > before)
    wait_until(lambda: rig.source.waiting == 0)
    assert rig.metrics.value("switch_ring_dropped_total") == 9


def test_an_overflow_while_a_query_runs_makes_another(rigs: Callable[..., Rig]) -> None:
    """The one under way may have read the list before what was lost."""
    rig = rigs().see().settled()
    inside, leave = threading.Event(), threading.Event()

    def slow(call: str) -> None:
        rig.calls.append(call)
        inside.set()
        assert leave.wait(20)

    rig.made = slow  # type: ignore[method-assign]
    rig.tell(dropped=1)
    assert inside.wait(20)
    rig.tell(dropped=2)
    wait_until(lambda: rig.source.waiting == 0)
    inside.clear()
    leave.set()
    assert inside.wait(2), "long before the next 300 s, three of ours, are over"


def test_a_session_that_ends_by_itself_is_replaced_and_queried(rigs: Callable[..., Rig]) -> None:
    rig = rigs().see().settled()
    rig.present.append(B3)
    rig.tell(gone="driver host lingqu was killed by SIGKILL")
    wait_until(lambda: rig.lists()[-1] == (B3,))
    assert rig.sessions[0].closed
    assert len(rig.sessions) == 2
    assert rig.found() == [True]
    assert rig.told(EventReason.SWITCHES_SILENT) == ["driver host lingqu was killed by SIGKILL"]
    wait_until(lambda: rig.told(EventReason.SWITCHES_ANSWER))
    assert not any(isinstance(o, SwitchSilent) for o in rig.out), "no query has failed"
    out = len(rig.out)
    rig.tell(B3, session=0)
    wait_until(lambda: rig.source.waiting == 0)
    assert len(rig.out) == out, "a session of before has nothing to say"


@pytest.mark.parametrize("error", [HostStuckError("faults() did not return"), HostGoneError("was killed")])
def test_a_query_without_an_answer_costs_the_session_and_is_silence(rigs: Callable[..., Rig], error: HostError) -> None:
    rig = rigs().see().settled()
    rig.failing["faults"] = error
    rig.tell(dropped=1)
    wait_until(lambda: len(rig.sessions) >= 2)
    del rig.failing["faults"]
    wait_until(lambda: any(isinstance(o, SwitchSilent) and not o.why for o in rig.out))
    silences = [o.why for o in rig.out if isinstance(o, SwitchSilent)]
    assert silences == [error.sentence, ""]
    assert len(rig.told(EventReason.SWITCHES_SILENT)) == len(rig.told(EventReason.SWITCHES_ANSWER)) == 1
    stuck = isinstance(error, HostStuckError)
    assert (rig.metrics.value("driver_deadlines_missed_total", call="switch_query") > 0) is stuck


def test_a_missing_library_is_warned_of_once_and_looked_for_again_only_after_a_release(
    rigs: Callable[..., Rig],
) -> None:
    rig = rigs()
    rig.refusal = LibraryError("liblingqu-dcmi.so was not found")
    rig.see()
    wait_until(rig.found)
    rig.source.release()
    wait_until(lambda: not rig.source.holds_driver)
    assert len(rig.sessions) == 1
    rig.refusal = None
    rig.source.resume()
    rig.settled()
    assert rig.found() == [False, True]
    assert len(rig.told(EventReason.SWITCH_LIBRARY_MISSING)) == 1


def test_what_a_release_interrupts_is_closed_and_forgotten(rigs: Callable[..., Rig]) -> None:
    rig = rigs()
    rig.may_open.clear()
    rig.see()
    wait_until(lambda: len(rig.sessions) == 1)
    rig.source.release()
    wait_until(lambda: not rig.source.holds_driver)
    assert rig.sessions[0].closed, "while it was being opened"
    rig.may_open.set()
    rig.source.resume()
    rig.settled()
    assert len(rig.sessions) == 2
    assert rig.found() == [True]
    assert rig.events == []


def test_three_failed_subscriptions_are_told_and_the_end_of_that_too(rigs: Callable[..., Rig]) -> None:
    rig = rigs()
    rig.failing["subscribe"] = AnswerError("lq_dcmi_subscribe_fault_event", -8014)
    rig.see()
    wait_until(lambda: rig.told(EventReason.SWITCHES_NOT_SUBSCRIBED))
    assert rig.calls.count("subscribe") >= 3
    assert rig.metrics.value("switch_subscribed") == 0
    before = rig.calls.count("faults")
    wait_until(lambda: rig.calls.count("faults") >= before + 5)
    del rig.failing["subscribe"]
    wait_until(lambda: rig.told(EventReason.SWITCHES_SUBSCRIBED))
    assert rig.metrics.value("switch_subscribed") == 1


def test_an_unforeseen_error_of_a_call_does_not_end_the_calls(rigs: Callable[..., Rig]) -> None:
    rig = rigs().see().settled()
    rig.failing["faults"] = ValueError("what?")
    rig.tell(dropped=1)
    wait_until(lambda: any(isinstance(o, SwitchSilent) for o in rig.out))
    del rig.failing["faults"]
    rig.present.append(replace(B3, port_id=12))
    wait_until(lambda: rig.lists()[-1:] == [(replace(B3, port_id=12),)])
