"""The node-info object and its owner against a server that speaks the protocol."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.clock import FakeClock
from kit.daemon import wait_until
from kit.fake_api import Answer, FakeApi, fake_api
from kit.node_info import Acknowledged, Heard

from nodeagent.cluster.client import ApiClient
from nodeagent.core.alarms import NodeLevel
from nodeagent.core.board import BoardDevice, BoardView
from nodeagent.core.clock import SystemClock
from nodeagent.core.telemetry import EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.publish.kubernetes import KubernetesTarget
from nodeagent.publish.node_info import NodeInfoPublisher, NodeInfoTimes
from nodeagent.publish.owner import RETRY_MS, DaemonSetOwner, pod_of
from nodeagent.render.node_info import NAMESPACE, Owner, object_name
from nodeagent.render.node_info_contract import judge_node_info

NODE = "worker-1"
KEY = (NAMESPACE, object_name(NODE))
SYSTEM = BoardDevice("System", 255, ("2C000031",), NodeLevel.SEPARATE)
POD = (NAMESPACE, "nodeagent-x7x2p")
TIMES = NodeInfoTimes(min_distance_ms=20)


def pod(*references: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"namespace": POD[0], "name": POD[1], "ownerReferences": list(references)}}


def daemon_set(uid: str = "6f0c") -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nodeagent", "uid": uid, "controller": True}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        yield running


class House:
    """A publisher with a real target, client and owner, in a thread."""

    def __init__(self, api: FakeApi, folder: Path) -> None:
        self.metrics = Registry()
        self.heard = Heard()
        self.acknowledged = Acknowledged()
        client = ApiClient(api.kubeconfig(folder), self.metrics)
        self.publisher = NodeInfoPublisher(
            KubernetesTarget(client, "node_info"),
            NODE,
            SystemClock(),
            self.acknowledged,
            self.heard,
            self.metrics,
            TIMES,
            DaemonSetOwner(client, POD, SystemClock()),
            draw=lambda: 0.01,
        )
        self.thread = threading.Thread(target=self.publisher.run)
        self.thread.start()

    def wait_for(self, generation: int) -> None:
        wait_until(lambda: generation in self.acknowledged.generations)


@pytest.fixture
def house(api: FakeApi, tmp_path: Path) -> Iterator[House]:
    made = House(api, tmp_path)
    yield made
    made.publisher.stop()
    made.thread.join(10)
    assert not made.thread.is_alive()


def test_made_and_deleted_with_its_owner(house: House, api: FakeApi) -> None:
    api.put_object(pod(daemon_set()), "pods")
    house.publisher.submit(BoardView(1))
    house.wait_for(1)
    assert [request.method for request in api.requests] == ["GET"]
    house.publisher.submit(BoardView(2, (SYSTEM,)))
    house.wait_for(2)
    made = api.objects[KEY]
    assert judge_node_info(made) == ""
    (reference,) = made["metadata"]["ownerReferences"]
    assert reference == {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nodeagent", "uid": "6f0c"}
    house.publisher.submit(BoardView(3))
    house.wait_for(3)
    assert api.objects == {}
    asked = [(request.method, request.path.partition("?")[0].split("/")[-1]) for request in api.requests]
    assert asked == [("GET", KEY[1]), ("GET", POD[1]), ("POST", "configmaps"), ("DELETE", KEY[1])]


def test_requests_and_writes_are_counted_as_those_of_this_object(house: House, api: FakeApi) -> None:
    house.publisher.submit(BoardView(1, (SYSTEM,)))
    house.wait_for(1)
    assert house.metrics.value("publish_writes_total", object="node_info", result="ok") == 1
    assert house.metrics.value("api_requests_total", object="node_info", verb="create", code="201") == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(403, "forbidden", method="POST"),
        Answer(0, method="POST"),
        Answer(half=True, apply=True, method="POST"),
        Answer(429, "slow down", method="POST", headers={"Retry-After": "0"}),
        Answer(500, "broken", resource="configmaps"),
    ],
)
def test_trouble_is_told_once_and_the_object_comes_all_the_same(house: House, api: FakeApi, answer: Answer) -> None:
    api.script.append(answer)
    house.publisher.submit(BoardView(1, (SYSTEM,)))
    house.wait_for(1)
    assert api.objects[KEY]["data"]["NodeInfo"].startswith('{"NodeInfo":')
    assert house.heard.reasons == [EventReason.PUBLISH_FAILED, EventReason.PUBLISH_RECOVERED]


def test_t24_an_object_that_was_edited_is_written_twice(house: House, api: FakeApi) -> None:
    house.publisher.submit(BoardView(1, (SYSTEM,)))
    house.wait_for(1)
    api.put_object({**api.objects[KEY], "data": {"NodeInfo": "x"}})
    before = api.version
    device = BoardDevice("CPU", 1, ("0000001D",), NodeLevel.PRE_SEPARATE)
    house.publisher.submit(BoardView(2, (device,)))
    house.wait_for(2)
    assert judge_node_info(api.objects[KEY]) == ""
    assert api.version - before == 2


class TestOwner:
    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def owner(self, api: FakeApi, tmp_path: Path, clock: FakeClock) -> DaemonSetOwner:
        return DaemonSetOwner(ApiClient(api.kubeconfig(tmp_path), Registry()), POD, clock)

    def test_the_daemon_set_of_our_pod(self, owner: DaemonSetOwner, api: FakeApi) -> None:
        job = {"kind": "Job", "name": "j", "uid": "1", "controller": True}
        api.put_object(pod({**daemon_set("other"), "controller": False}, job, daemon_set()), "pods")
        assert owner.current() == Owner("nodeagent", "6f0c")
        assert owner.current() == Owner("nodeagent", "6f0c")
        assert [request.path for request in api.requests] == [f"/api/v1/namespaces/mindx-dl/pods/{POD[1]}"]
        assert "PartialObjectMetadata" in api.requests[0].headers["accept"]

    def test_asked_again_it_may_be_another_one(self, owner: DaemonSetOwner, api: FakeApi) -> None:
        api.put_object(pod(daemon_set()), "pods")
        owner.current()
        api.put_object(pod(daemon_set("new")), "pods")
        owner.renew()
        assert owner.current() == Owner("nodeagent", "new")

    @pytest.mark.parametrize("answer", [Answer(403, "forbidden"), Answer(500, "x"), Answer(0)])
    def test_a_failed_question_takes_nothing_back(self, owner: DaemonSetOwner, api: FakeApi, answer: Answer) -> None:
        api.put_object(pod(daemon_set()), "pods")
        owner.current()
        owner.renew()
        api.script.append(answer)
        assert owner.current() == Owner("nodeagent", "6f0c")

    def test_after_a_refusal_it_is_asked_once_an_hour_and_said_once(
        self, owner: DaemonSetOwner, api: FakeApi, clock: FakeClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        for _ in range(3):
            api.script.append(Answer(403, "forbidden"))
            assert owner.current() is None
            assert owner.current() is None
            clock.advance_ms(RETRY_MS)
        assert len(api.requests) == 3
        assert "grant the verb get on pods in the namespace mindx-dl" in caplog.text
        assert len(caplog.records) == 1
        api.put_object(pod(daemon_set()), "pods")
        assert owner.current() is not None

    def test_an_unanswered_question_is_asked_again_with_the_next_write(
        self, owner: DaemonSetOwner, api: FakeApi
    ) -> None:
        api.put_object(pod(daemon_set()), "pods")
        api.script.append(Answer(0))
        assert owner.current() is None
        assert owner.current() is not None

    @pytest.mark.parametrize(
        ("where", "why"), [(None, "POD_NAME"), (("elsewhere", "p"), "an owner must be in the namespace")]
    )
    def test_nobody_is_asked_where_there_can_be_none(
        self, api: FakeApi, tmp_path: Path, where: tuple[str, str] | None, why: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        owner = DaemonSetOwner(ApiClient(api.kubeconfig(tmp_path), Registry()), where, FakeClock())
        assert owner.current() is None
        assert owner.current() is None
        assert [why in record.getMessage() for record in caplog.records] == [True]
        assert api.requests == []

    @pytest.mark.parametrize("references", [[], [{"kind": "ReplicaSet", "name": "r", "uid": "1", "controller": True}]])
    def test_a_pod_of_no_daemon_set(self, owner: DaemonSetOwner, api: FakeApi, references: list[Any]) -> None:
        api.put_object(pod(*references), "pods")
        assert owner.current() is None


def test_our_pod_is_told_by_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    assert pod_of({"POD_NAME": "p", "POD_NAMESPACE": "n"}, file) == ("n", "p")
    assert pod_of({"POD_NAME": "p"}, file) is None
    file.write_text("mindx-dl\n")
    assert pod_of({"POD_NAME": "p"}, file) == ("mindx-dl", "p")
    assert pod_of({}, file) is None
