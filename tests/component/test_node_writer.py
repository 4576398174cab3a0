"""The writer of the node object against a server that speaks the protocol."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.daemon import wait_until
from kit.fake_api import Answer, FakeApi, fake_api

from nodeagent.cluster.client import ApiClient
from nodeagent.core.model import ChipId, Family, Product, SuperPod
from nodeagent.core.node_facts import ChipFacts, NodeFacts
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.publish.node_writer import NodeWriter
from nodeagent.render.node_object import parse_skip

NODE = "worker-1"
KEY = ("", NODE)


def facts(address: str | None = "10.0.0.1", driver: str = "25.2.0") -> NodeFacts:
    product = Product(Family.A2, "910B4", driver_version=driver, super_pod=SuperPod())
    chips = tuple(ChipFacts(ChipId(i, i, i, 0), 20, 32, address if i == 0 else "10.0.0.2") for i in range(2))
    return NodeFacts(product, chips)


def node(**labels: str) -> dict[str, Any]:
    marks = {"labels": {"kubernetes.io/hostname": NODE, **labels}, "annotations": {"theirs": "x"}}
    return {"metadata": {"name": NODE, **marks}, "status": {"conditions": []}}


class House:
    def __init__(self, api: FakeApi, folder: Path, skip: frozenset[str] = frozenset()) -> None:
        self.api = api
        self.metrics = Registry()
        self.events: list[Event] = []
        client = ApiClient(api.kubeconfig(folder), self.metrics)
        self.writer = NodeWriter(client, NODE, skip, self, self.metrics, draw=lambda: 0.0)
        self.thread = threading.Thread(target=self.writer.run)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    @property
    def live(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.api.of("nodes")[KEY]["metadata"]
        return metadata

    def work(self, given: NodeFacts) -> None:
        self.writer.submit(given)
        if self.thread.ident is None:
            self.thread.start()

    def synced(self) -> None:
        wait_until(lambda: self.metrics.value("node_object_synced") == 1)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        running.put_object(node(), "nodes")
        yield running


@pytest.fixture
def house(api: FakeApi, tmp_path: Path) -> Iterator[House]:
    made = House(api, tmp_path)
    yield made
    stop(made)


def stop(house: House) -> None:
    house.writer.stop()
    if house.thread.ident is not None:
        house.thread.join(10)
        assert not house.thread.is_alive()


def test_one_look_and_one_patch_of_what_differs(house: House) -> None:
    house.work(facts())
    house.synced()
    assert house.api.methods == ["GET", "PATCH"]
    request = house.api.requests[-1]
    assert request.headers["content-type"] == "application/merge-patch+json"
    assert "PartialObjectMetadata" in request.headers["accept"]
    assert set(request.body) == {"metadata"}
    labels = house.live["labels"]
    assert labels["accelerator"] == "huawei-Ascend910"
    assert labels["servertype"] == "Ascend910B-20"
    assert labels["kubernetes.io/hostname"] == NODE
    assert '"Ascend910-0":{"IP":"10.0.0.1"' in house.live["annotations"]["baseDeviceInfos"]
    assert house.live["annotations"]["theirs"] == "x"


def test_the_same_facts_are_no_request_and_changed_ones_a_small_patch(house: House) -> None:
    house.work(facts())
    house.synced()
    house.writer.submit(facts())
    house.writer.submit(facts("10.0.0.9"))
    wait_until(lambda: "10.0.0.9" in house.live["annotations"]["baseDeviceInfos"])
    assert house.api.methods == ["GET", "PATCH", "PATCH"]
    assert list(house.api.requests[-1].body["metadata"]) == ["annotations"]


def test_a_node_that_has_its_marks_is_not_patched(api: FakeApi, tmp_path: Path) -> None:
    first = House(api, tmp_path)
    first.work(facts())
    first.synced()
    stop(first)
    again = House(api, tmp_path)
    again.work(facts())
    again.synced()
    stop(again)
    assert api.methods == ["GET", "PATCH", "GET"]


def test_names_that_the_site_switched_off_are_not_written(api: FakeApi, tmp_path: Path) -> None:
    house = House(api, tmp_path, frozenset({"servertype", "serverIndex"}))
    house.work(facts())
    house.synced()
    stop(house)
    assert "servertype" not in house.live["labels"]
    assert "serverIndex" not in house.live["annotations"]


def test_an_address_not_told_since_the_start_is_kept(house: House) -> None:
    house.work(facts())
    house.synced()
    house.writer.submit(facts(None, "25.3.0"))
    wait_until(lambda: house.live["labels"]["huawei.com/driver.version"] == "25.3.0")
    assert '"IP":"10.0.0.1"' in house.live["annotations"]["baseDeviceInfos"]


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (Answer(403, "forbidden", method="PATCH"), "grant the verb patch on nodes"),
        (Answer(404, "not found", method="GET"), "is NODE_NAME the name of a node?"),
        (Answer(0, method="GET"), "no complete answer"),
        (Answer(429, "slow down", method="PATCH", headers={"Retry-After": "0"}), "status 429"),
        (Answer(200, text='{"metadata": {"labels": {}}}', method="PATCH"), "admission webhook"),
    ],
)
def test_trouble_is_told_once_and_its_end_too(
    house: House, answer: Answer, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    house.api.script.append(answer)
    house.work(facts())
    house.synced()
    assert [e.reason for e in house.events] == [EventReason.NODE_OBJECT_FAILED, EventReason.NODE_OBJECT_RECOVERED]
    assert word in house.events[0].message
    assert house.live["labels"]["accelerator"] == "huawei-Ascend910"


def test_a_label_that_the_server_would_refuse_is_left_out_and_named(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.work(facts(driver="25.2.0 (test)"))
    house.synced()
    assert "huawei.com/driver.version" not in house.live["labels"]
    assert "huawei.com/driver.version" in caplog.text


class TestSerialNumber:
    """The annotation by which ClusterD finds the node of a public fault (node-faults 10)."""

    def test_it_is_written_although_no_chip_has_answered_yet(self, house: House) -> None:
        house.writer.submit_serial_number("2102312NXE10M6000012")
        house.thread.start()
        house.synced()
        assert house.api.methods == ["GET", "PATCH"]
        assert house.api.requests[-1].body == {
            "metadata": {"annotations": {"product-serial-number": "2102312NXE10M6000012"}}
        }
        house.writer.submit(facts())
        wait_until(lambda: "accelerator" in house.live["labels"])
        assert house.live["annotations"]["product-serial-number"] == "2102312NXE10M6000012"
        assert "product-serial-number" not in house.api.requests[-1].body["metadata"]["annotations"]

    def test_it_is_not_patched_when_right(self, house: House) -> None:
        house.live["annotations"]["product-serial-number"] = "2102"
        house.writer.submit_serial_number("2102")
        house.thread.start()
        house.synced()
        assert house.api.methods == ["GET"]

    def test_one_that_could_not_be_read_is_never_removed(self, house: House) -> None:
        house.live["annotations"]["product-serial-number"] = "2102"
        house.writer.submit_serial_number("")
        house.work(facts())
        house.synced()
        house.writer.submit_serial_number("2103")
        wait_until(lambda: house.live["annotations"]["product-serial-number"] == "2103")
        house.writer.submit_serial_number("")
        house.writer.submit(facts(driver="25.3.0"))
        wait_until(lambda: house.live["labels"]["huawei.com/driver.version"] == "25.3.0")
        assert house.live["annotations"]["product-serial-number"] == "2103"

    def test_an_unknown_one_is_absent_and_asks_nothing(self, house: House) -> None:
        house.writer.submit_serial_number("")
        house.work(facts())
        house.synced()
        assert "product-serial-number" not in house.live["annotations"]

    def test_the_site_may_switch_it_off(self, api: FakeApi, tmp_path: Path) -> None:
        house = House(api, tmp_path, frozenset({"product-serial-number"}))
        house.writer.submit_serial_number("2102")
        house.work(facts())
        house.synced()
        stop(house)
        assert "product-serial-number" not in house.live["annotations"]
        assert parse_skip("product-serial-number") == {"product-serial-number"}
