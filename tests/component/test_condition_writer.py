"""The writer of node conditions against a server that speaks the protocol: on change only, and never at a loss."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.data.device_info.cases import chip, node
from kit.clock import FakeClock
from kit.daemon import wait_until
from kit.fake_api import Answer, FakeApi, fake_api

from nodeagent.cluster.client import ApiClient
from nodeagent.core.levels import Level
from nodeagent.core.model import Family
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.publish.condition_writer import ConditionWriter

HEALTHY = node(Family.A2, 8)
SICK = node(Family.A2, 8, {3: chip(3, Level.SEPARATE)})
SICKER = node(Family.A2, 8, {3: chip(3, Level.SEPARATE), 4: chip(4, Level.SEPARATE)})
READY = Event(EventReason.DRIVER_READY, "8 chips through libdcmi.so")
START, LATER = "2025-10-09T08:53:20Z", "2025-10-09T08:53:30Z"


class House:
    """A writer in a thread of its own, on a clock that the test moves."""

    def __init__(self, api: FakeApi, folder: Path) -> None:
        self.api = api
        self.metrics = Registry()
        self.clock = FakeClock()
        self.client = ApiClient(api.kubeconfig(folder), self.metrics)
        self.put_node()
        self.start()

    def put_node(self, *conditions: dict[str, str]) -> None:
        ready = {"type": "Ready", "status": "True"}
        self.api.put_object({"metadata": {"name": "worker-1"}, "status": {"conditions": [ready, *conditions]}}, "nodes")

    def start(self) -> None:
        self.writer = ConditionWriter(self.client, "worker-1", self.clock, self.metrics, draw=lambda: 0.5)
        self.thread = threading.Thread(target=self.writer.run)
        self.thread.start()

    def stop(self) -> None:
        self.writer.stop()
        self.thread.join(5)
        assert not self.thread.is_alive()

    @property
    def conditions(self) -> dict[str, dict[str, Any]]:
        found = self.api.of("nodes")["", "worker-1"]["status"]["conditions"]
        return {each["type"]: each for each in found}

    def count(self, result: str) -> float:
        return self.metrics.value("conditions_written_total", result=result)

    def advance(self, seconds: float) -> None:
        """Let time pass; the thread looks again, as its own wait is by the real clock."""
        self.clock.advance_ms(int(seconds * 1000))
        self.writer._wake.set()

    def written(self, times: int) -> None:
        wait_until(lambda: self.count("ok") == times, f"{times} patches, not {self.count('ok')}")


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[House]:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(logging.getLogger("nodeagent"), "propagate", True)
    with fake_api() as api:
        made = House(api, tmp_path)
        yield made
        made.stop()


def begin(house: House) -> None:
    house.writer.emit(READY)
    house.writer.submit(HEALTHY)
    house.writer.begin()
    house.written(1)


def test_nothing_is_written_before_views_are_complete(house: House) -> None:
    house.writer.submit(SICK)
    house.writer.submit(HEALTHY)
    house.writer.emit(READY)
    assert house.api.requests == []
    house.writer.begin()
    house.written(1)
    assert {name: each["status"] for name, each in house.conditions.items()} == {
        "Ready": "True",
        "AscendChipsHealthy": "True",
        "AscendNetworkHealthy": "True",
        "NodeagentDriver": "True",
    }
    read, write = house.api.requests
    assert {r.method + r.path for r in (read, write)} == {"PATCH/api/v1/nodes/worker-1/status"}
    assert {r.headers["content-type"] for r in (read, write)} == {"application/strategic-merge-patch+json"}
    assert read.body == {}


def test_an_unchanged_view_costs_no_request(house: House) -> None:
    begin(house)
    house.advance(60)
    house.writer.submit(node(Family.A2, 8))
    house.advance(60)
    house.writer.submit(SICK)
    house.written(2)
    assert len(house.api.requests) == 3


def test_one_patch_in_ten_seconds_and_the_latest_wins(house: House) -> None:
    begin(house)
    for view in (SICK, HEALTHY, SICKER, SICK):
        house.writer.submit(view)
        house.advance(2)
    house.advance(1.999)
    assert house.count("ok") == 1
    house.advance(0.001)
    house.written(2)
    assert house.conditions["AscendChipsHealthy"]["message"] == "chip 3 (phy 3, card 1/1) has SeparateNPU"


def test_a_transition_is_a_change_of_status_only(house: House) -> None:
    begin(house)
    house.advance(10)
    house.writer.submit(SICK)
    house.written(2)
    house.advance(10)
    house.writer.submit(SICKER)
    house.written(3)
    sick = house.conditions["AscendChipsHealthy"]
    assert "chip 4" in sick["message"]
    assert sick["lastTransitionTime"] == LATER
    assert sick["lastHeartbeatTime"] > LATER
    assert house.conditions["AscendNetworkHealthy"]["lastTransitionTime"] == START


def test_a_restart_keeps_what_it_finds(house: House) -> None:
    begin(house)
    house.stop()
    house.advance(3600)
    house.start()
    house.writer.emit(READY)
    house.writer.submit(HEALTHY)
    house.writer.begin()
    wait_until(lambda: house.count("read") == 2, "a look")
    house.writer.submit(SICK)
    house.written(2)
    assert len(house.api.requests) == 4
    assert house.conditions["NodeagentDriver"]["lastTransitionTime"] == START
    assert house.conditions["AscendChipsHealthy"]["lastTransitionTime"] > LATER


def test_a_lost_driver_is_a_condition_too(house: House) -> None:
    begin(house)
    house.advance(10)
    house.writer.emit(Event(EventReason.DRIVER_LOST, "the driver host ended", warning=True))
    house.written(2)
    assert house.conditions["NodeagentDriver"]["message"] == "the driver host ended"
    assert house.conditions["AscendChipsHealthy"]["status"] == "True"


@pytest.mark.parametrize("answer", [Answer(500), Answer(), Answer(429), Answer(half=True, apply=True), Answer(404)])
def test_a_failure_is_repeated_from_what_the_node_has_then(house: House, answer: Answer) -> None:
    begin(house)
    house.advance(10)
    house.api.script.append(answer)
    house.writer.submit(SICK)
    wait_until(lambda: house.count("failed") == 1, "a failure")
    at = house.conditions["AscendChipsHealthy"]["lastTransitionTime"]
    house.advance(5)
    wait_until(lambda: house.count("read") == 2, "a look before the next patch")
    wait_until(lambda: house.conditions["AscendChipsHealthy"]["status"] == "False", "the condition")
    if answer.apply:
        assert house.conditions["AscendChipsHealthy"]["lastTransitionTime"] == at == LATER
    else:
        house.written(2)


def test_a_missing_right_is_said_once_by_its_name(house: House, caplog: pytest.LogCaptureFixture) -> None:
    house.api.script.extend([Answer(403, "no"), Answer(403, "no")])
    house.writer.submit(HEALTHY)
    house.writer.begin()
    for failures in (1, 2):
        wait_until(lambda failures=failures: house.count("failed") == failures, "a refusal")  # type: ignore[misc]
        house.advance(300)
    house.written(1)
    lines = [record.getMessage() for record in caplog.records if record.name == "nodeagent.conditions"]
    assert len(lines) == 2
    assert "the verb patch on nodes/status in the whole cluster" in lines[0]
    assert lines[1] == "event=conditions_written_again failures=2"
