"""Telling public faults by ConfigMaps: a server that speaks the protocol, files, and a ClusterD that follows both."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.daemon import wait_until
from kit.fake_api import Answer, FakeApi
from kit.fake_clusterd import FakeClusterd
from kit.public_fault import CHIPS, Home
from kit.target import kubernetes_target

from nodeagent.core.clock import SystemClock
from nodeagent.core.storage import StorageClient, StorageFault, StorageVerdict
from nodeagent.core.telemetry import EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.publish.courier_configmap import ConfigMapCourier
from nodeagent.publish.directory import DirectoryTarget
from nodeagent.publish.manifest import from_yaml
from nodeagent.publish.public_fault import PublicFaultWriter

PROCESS, MEMORY = "110001020", "110001021"
KEY = ("mindx-dl", "nodeagent-publicfault-dpc-node-1")


def follow(api: FakeApi) -> FakeClusterd:
    """What a ClusterD has that was shown every write to the server so far, in order."""
    clusterd = FakeClusterd(now_ms=1767225600000)
    before: dict[str, Any] = {}
    for _, resource, kind, obj in api.happened:
        name = obj["metadata"]["name"]
        if resource != "configmaps":
            continue
        if kind == "DELETED":
            before.pop(name, None)
            continue
        clusterd.config_map_written(before.get(name), obj)
        before[name] = obj
        clusterd.advance_to(clusterd.now_ms + 10_000)
    return clusterd


@pytest.fixture
def home(api: FakeApi, tmp_path: Path) -> Home:
    made = Home(tmp_path / "state", courier=ConfigMapCourier(kubernetes_target(api.kubeconfig(tmp_path)), "node-1"))
    made.writer.chips(CHIPS)
    return made


def message(api: FakeApi) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(api.objects[KEY]["data"]["PublicFault"])
    return found


def test_t16_a_process_fault_and_its_end(home: Home, api: FakeApi) -> None:
    home.say(DPC_PROCESS=True)
    assert api.methods == ["GET", "POST"]
    assert api.objects[KEY]["metadata"]["labels"] == {"mc-consumer-publicfault": "true"}
    assert set(follow(api).faults_of("node-1")) == {PROCESS}
    home.until(20)
    home.say(DPC_PROCESS=False)
    assert api.methods == ["GET", "POST", "PUT"]
    assert [fault["assertion"] for fault in message(api)["faults"]] == ["recover"]
    assert follow(api).faults_of("node-1") == {}
    assert follow(api).broken == []


def test_a_client_that_nobody_reports_on_costs_no_request(home: Home, api: FakeApi) -> None:
    home.until(7200)
    assert api.requests == []


def test_a_restart_costs_one_read_and_says_nothing(home: Home, api: FakeApi, tmp_path: Path) -> None:
    home.say(DPC_PROCESS=True)
    home.until(20)
    api.requests.clear()
    home.courier = ConfigMapCourier(kubernetes_target(api.kubeconfig(tmp_path)), "node-1")
    home.start()
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=True)
    home.until(300)
    assert api.methods == ["GET"]


@pytest.mark.parametrize("what", ["labels only", "no json", "no data"])
def test_a_spoilt_object_of_before_is_written_twice(home: Home, api: FakeApi, what: str) -> None:
    data = {"labels only": {}, "no json": {"data": {"PublicFault": "oops"}}, "no data": {"data": {}}}[what]
    labels = {"mc-consumer-publicfault": "true"}
    api.put_object({"metadata": {"namespace": KEY[0], "name": KEY[1], "labels": labels}} | data)
    home.say(DPC_PROCESS=True)
    assert api.methods == ["GET", "PUT", "PUT"]
    assert set(follow(api).faults_of("node-1")) == {PROCESS}


def test_an_object_that_was_spoilt_meanwhile_is_written_twice(home: Home, api: FakeApi) -> None:
    home.say(DPC_PROCESS=True)
    api.put_object(api.objects[KEY] | {"data": {"PublicFault": "{"}})
    home.until(20)
    home.say(DPC_PROCESS=True, DPC_MEMORY=True)
    assert set(follow(api).faults_of("node-1")) == {PROCESS, MEMORY}
    assert len(message(api)["faults"]) == 2


def test_an_object_that_was_edited_or_deleted_meanwhile_is_written_all_the_same(home: Home, api: FakeApi) -> None:
    home.say(DPC_PROCESS=True)
    api.put_object(api.objects[KEY] | {"data": {"PublicFault": "{}"}})
    home.until(20)
    home.say(DPC_PROCESS=False)
    assert follow(api).faults_of("node-1") == {}
    api.delete_object(KEY)
    home.until(40)
    home.say(DPC_PROCESS=True)
    assert set(follow(api).faults_of("node-1")) == {PROCESS}


def test_somebody_who_writes_all_the_time_does_not_hold_us(home: Home, api: FakeApi) -> None:
    home.say(DPC_PROCESS=True)
    api.script.extend([Answer(409, "changed", method="PUT")] * 9)
    home.until(20)
    home.say(DPC_PROCESS=False)
    home.until(200)
    assert follow(api).faults_of("node-1") == {}
    assert home.ears.reasons == [EventReason.PUBLIC_FAULT_LATE, EventReason.PUBLIC_FAULT_DELIVERED]


@pytest.mark.parametrize("arrived", [False, True])
def test_an_answer_that_gets_lost(home: Home, api: FakeApi, arrived: bool) -> None:
    api.script.append(Answer(apply=arrived, half=True, method="POST"))
    home.say(DPC_PROCESS=True)
    home.until(60)
    assert set(follow(api).faults_of("node-1")) == {PROCESS}
    home.say(DPC_PROCESS=False)
    assert follow(api).faults_of("node-1") == {}


def test_a_missing_right_is_named_and_waited_for(home: Home, api: FakeApi) -> None:
    api.script.extend([Answer(403, "no", method="GET")] * 3)
    home.say(DPC_PROCESS=True)
    assert home.ears.reasons == [EventReason.PUBLIC_FAULT_LATE]
    assert "grant the verb get on configmaps in the namespace mindx-dl" in home.ears.events[0].message
    home.until(60)
    assert set(follow(api).faults_of("node-1")) == {PROCESS}


@pytest.fixture
def thread_of() -> Iterator[Callable[[PublicFaultWriter], threading.Thread]]:
    started: list[tuple[PublicFaultWriter, threading.Thread]] = []

    def start(writer: PublicFaultWriter) -> threading.Thread:
        thread = threading.Thread(target=writer.run)
        started.append((writer, thread))
        thread.start()
        return thread

    yield start
    for writer, thread in started:
        writer.stop()
        thread.join(10)
        assert not thread.is_alive()


def test_files_of_a_dry_run(tmp_path: Path, thread_of: Callable[[PublicFaultWriter], threading.Thread]) -> None:
    clock, ears = SystemClock(), Home(None).ears

    def begin() -> PublicFaultWriter:
        courier = ConfigMapCourier(DirectoryTarget(tmp_path / "out"), "node-1")
        made = PublicFaultWriter(courier, "node-1", tmp_path, "directory", 120, clock, ears, Registry())
        thread_of(made)
        made.chips(CHIPS)
        return made

    def submit(writer: PublicFaultWriter, present: bool) -> None:
        faults = {StorageFault.DPC_PROCESS: present, StorageFault.DPC_MEMORY: None}
        writer.submit(StorageVerdict(StorageClient.DPC, faults, clock.now()))

    def text() -> str:
        path = tmp_path / "out" / KEY[0] / f"{KEY[1]}.yaml"
        return str(from_yaml(path.read_text())["data"]) if path.exists() else ""

    first = begin()
    submit(first, True)
    wait_until(lambda: '"assertion":"occur"' in text(), "the occurrence")
    first.stop()
    second = begin()
    submit(second, False)
    wait_until(lambda: '"assertion":"recover"' in text(), "the recovery")
    saved = json.loads((tmp_path / "public-faults.json").read_text())
    assert saved["audience"] == "directory"
    assert saved["chips"] == list(CHIPS)
