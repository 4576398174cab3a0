"""The writer of Events against a server that speaks the protocol: what it sends, and what it makes of answers."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.clock import FakeClock
from kit.daemon import wait_until
from kit.fake_api import Answer, FakeApi, fake_api

from nodeagent.cluster.client import ApiClient
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.publish.event_book import EventLimits
from nodeagent.publish.event_writer import EventWriter

LOST = Event(EventReason.DRIVER_LOST, "the driver host ended", warning=True)
READY = Event(EventReason.DRIVER_READY, "8 chips")


class House:
    """A writer in a thread of its own, on a clock that the test moves."""

    def __init__(self, api: FakeApi, folder: Path) -> None:
        self.api = api
        self.metrics = Registry()
        self.clock = FakeClock()
        client = ApiClient(api.kubeconfig(folder), self.metrics)
        limits = EventLimits(per_minute=10, burst=25)
        self.writer = EventWriter(client, "worker-1", "kube-system", limits, self.clock, self.metrics, lambda: 0.5)
        self.thread = threading.Thread(target=self.writer.run)
        self.thread.start()

    @property
    def messages(self) -> list[str]:
        return [obj["message"] for obj in self.api.of("events").values()]

    def advance(self, seconds: float) -> None:
        """Let time pass; the thread looks again, as its own wait is by the real clock."""
        self.clock.advance_ms(int(seconds * 1000))
        self.writer._wake.set()

    def sent(self, result: str) -> float:
        return self.metrics.value("events_sent_total", result=result)

    def dropped(self, reason: EventReason) -> float:
        return self.metrics.value("events_dropped_total", reason=reason.value)


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[House]:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(logging.getLogger("nodeagent"), "propagate", True)
    with fake_api() as api:
        made = House(api, tmp_path)
        yield made
        made.writer.stop()
        made.thread.join(5)
        assert not made.thread.is_alive()


def test_an_event_is_one_post_and_nothing_else(house: House) -> None:
    house.writer.emit(Event(EventReason.FAULT_OCCURRED, "80E18005", True, "chip 3"))
    wait_until(lambda: house.sent("ok") == 1, "one Event")
    [request] = house.api.requests
    assert (request.method, request.path) == ("POST", "/api/v1/namespaces/kube-system/events")
    assert request.body["message"] == "chip 3: 80E18005"
    assert request.body["involvedObject"]["name"] == "worker-1"
    assert request.body["firstTimestamp"] == "2025-10-09T08:53:20Z"


def test_a_flood_is_the_burst_and_one_that_tells_the_rest(house: House) -> None:
    for chip in range(100):
        house.writer.emit(Event(EventReason.FAULT_OCCURRED, "80E18005", True, f"chip {chip}"))
    wait_until(lambda: house.sent("ok") == 20, "what the burst allows for chips")
    house.advance(6)
    wait_until(lambda: house.sent("ok") == 21, "the merged one")
    counts = [obj["count"] for obj in house.api.of("events").values()]
    assert sum(counts) == 100
    merged = house.metrics.value("events_merged_total", reason="Occur")
    assert merged + house.sent("ok") == 100


@pytest.mark.parametrize("status", [429, 500, 503, 401, 0])
def test_an_answer_that_may_change_is_waited_out(house: House, status: int) -> None:
    # 401 is answered by a second request with credentials read anew
    house.api.script.extend([Answer(status), Answer(status)])
    house.writer.emit(LOST)
    wait_until(lambda: house.sent("failed") >= 1, "a failure")
    house.advance(0.5)
    wait_until(lambda: house.sent("failed") == 2 or house.sent("ok") == 1, "a second attempt")
    house.advance(1)
    wait_until(lambda: house.sent("ok") == 1, "the Event arrives")
    assert house.messages == [LOST.message]
    assert house.dropped(LOST.reason) == 0


def test_attempts_grow_apart_and_retry_after_is_obeyed(house: House) -> None:
    house.api.script.append(Answer(429, headers={"Retry-After": "20"}))
    house.writer.emit(LOST)
    wait_until(lambda: house.sent("failed") == 1, "the refusal")
    house.advance(20)
    house.writer.emit(READY)
    wait_until(lambda: house.writer.waiting == 2, "both wait: a tenth is added at random")
    assert len(house.api.requests) == 1
    house.advance(1)
    wait_until(lambda: house.sent("ok") == 2, "both")


def test_an_event_whose_answer_got_lost_is_stored_once(house: House) -> None:
    house.api.script.append(Answer(half=True, apply=True))
    house.writer.emit(LOST)
    wait_until(lambda: house.sent("failed") == 1, "half an answer")
    house.advance(1)
    wait_until(lambda: house.sent("ok") == 1, "409 says that it is there")
    first, second = house.api.requests
    assert first.body == second.body
    assert len(house.messages) == 1


@pytest.mark.parametrize(
    ("status", "hint"), [(403, "the verb create on events in the namespace kube-system"), (422, "")]
)
def test_a_refusal_drops_the_event_and_is_said_once(
    house: House, caplog: pytest.LogCaptureFixture, status: int, hint: str
) -> None:
    house.api.script.extend([Answer(status, "no"), Answer(status, "no")])
    for number in range(3):
        house.writer.emit(Event(EventReason.BAD_CONFIGURATION, f"number {number}"))
    wait_until(lambda: house.sent("ok") == 1, "the third one")
    assert house.dropped(EventReason.BAD_CONFIGURATION) == 2
    assert house.sent("refused") == 2
    lines = [record.getMessage() for record in caplog.records if record.name == "nodeagent.events.api"]
    assert len(lines) == 2, lines
    assert "event=events_not_taken" in lines[0]
    assert hint in lines[0]
    assert lines[1] == "event=events_are_taken_again"


def test_what_is_too_old_is_dropped_and_counted(house: House) -> None:
    house.api.script.append(Answer(503))
    house.writer.emit(LOST)
    wait_until(lambda: house.sent("failed") == 1, "a failure")
    house.advance(600)
    wait_until(lambda: house.sent("expired") == 1, "it is too old")
    assert house.dropped(LOST.reason) == 1
    house.writer.emit(READY)
    wait_until(lambda: house.messages == [READY.message], "the next one")


def test_emitting_does_not_wait_for_a_server_that_hangs(house: House) -> None:
    gate = threading.Event()
    house.api.script.append(Answer(200, hold=gate, apply=True))
    house.writer.emit(LOST)
    wait_until(lambda: len(house.api.requests) == 1, "the request")
    emitted = threading.Event()

    def emit() -> None:
        for chip in range(1000):
            house.writer.emit(Event(EventReason.FAULT_OCCURRED, "80E18005", True, f"chip {chip}"))
        emitted.set()

    threading.Thread(target=emit).start()
    try:
        assert emitted.wait(10), "emit must not wait for the answer"
        assert house.messages == []
    finally:
        gate.set()
    wait_until(lambda: house.sent("ok") >= 20, "the flood")


def test_trouble_of_the_writer_makes_no_events(house: House) -> None:
    house.api.script.extend(Answer(403, "no") for _ in range(3))
    house.writer.emit(LOST)
    wait_until(lambda: house.sent("refused") == 1, "the refusal")
    assert house.writer.waiting == 0


def test_what_is_left_at_the_end_is_said(house: House, caplog: pytest.LogCaptureFixture) -> None:
    house.api.script.append(Answer(503))
    house.writer.emit(LOST)
    wait_until(lambda: house.sent("failed") == 1, "a failure")
    house.writer.stop()
    house.thread.join(5)
    assert "event=events_not_sent left=1 reason=stopped" in caplog.messages


def test_a_text_that_utf_8_cannot_say_does_not_stop_the_writer(house: House) -> None:
    house.writer.emit(Event(EventReason.BAD_CONFIGURATION, "cannot read b\udce4d.yaml"))
    house.writer.emit(READY)
    wait_until(lambda: sorted(house.messages) == ["8 chips", "cannot read b?d.yaml"], "both")
