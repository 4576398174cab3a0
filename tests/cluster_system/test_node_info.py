"""The node-info object on a real API server, with the rights of the manifests and a real garbage collector."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kit.cluster import Cluster, foreign_without
from kit.daemon import run_command, wait_until
from kit.manifests import MANIFESTS, NAMESPACE
from kit.node_info import Acknowledged, Heard

from nodeagent.cluster.client import ApiClient
from nodeagent.core.alarms import NodeLevel
from nodeagent.core.board import BoardDevice, BoardView
from nodeagent.core.clock import SystemClock
from nodeagent.core.telemetry import EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.publish.kubernetes import KubernetesTarget
from nodeagent.publish.manner import Manner
from nodeagent.publish.node_info import NodeInfoPublisher, NodeInfoTimes
from nodeagent.publish.other_writer import node_info_guard
from nodeagent.publish.owner import DaemonSetOwner
from nodeagent.render.node_info import object_name, render_node_info
from nodeagent.render.node_info_contract import judge_node_info

CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SYSTEM = BoardDevice("System", 255, ("2C000031",), NodeLevel.SEPARATE)
CPU_1 = BoardDevice("CPU", 1, ("0000001D",), NodeLevel.PRE_SEPARATE)
QUICK = NodeInfoTimes(min_distance_ms=20, rewrite_ms=50)


class House:
    """A publisher in a thread. pod: name of the pod that it is said to run in."""

    def __init__(self, kubeconfig: Path, node: str, times: NodeInfoTimes, pod: str) -> None:
        self.metrics, self.heard, self.acknowledged = Registry(), Heard(), Acknowledged()
        client = ApiClient(str(kubeconfig), self.metrics)
        self.publisher = NodeInfoPublisher(
            KubernetesTarget(client, "node_info"),
            node,
            SystemClock(),
            self.acknowledged,
            self.heard,
            self.metrics,
            times,
            DaemonSetOwner(client, (NAMESPACE, pod), SystemClock()),
            draw=lambda: 0.01,
            manner=Manner(guard=node_info_guard(overwrite=False)),
        )

    def bring(self, generation: int, *devices: BoardDevice) -> None:
        self.publisher.submit(BoardView(generation, devices))
        wait_until(lambda: generation in self.acknowledged.generations, f"generation {generation} is acknowledged")


@contextmanager
def publishing(
    kubeconfig: Path, node: str, times: NodeInfoTimes = QUICK, pod: str = "nodeagent-none"
) -> Iterator[House]:
    house = House(kubeconfig, node, times, pod)
    thread = threading.Thread(target=house.publisher.run)
    thread.start()
    try:
        yield house
    finally:
        house.publisher.stop()
        thread.join(20)
    assert not thread.is_alive()


@pytest.fixture
def kubeconfig(cluster: Cluster) -> Path:
    assert cluster.daemon_kubeconfig is not None
    return cluster.daemon_kubeconfig


def found(cluster: Cluster, node: str) -> dict[str, Any] | None:
    return cluster.config_map(NAMESPACE, object_name(node))


def test_made_rewritten_changed_and_deleted(cluster: Cluster, kubeconfig: Path, node: str) -> None:
    with publishing(kubeconfig, node, NodeInfoTimes(20, 1000)) as house:
        house.bring(1)
        assert found(cluster, node) is None
        house.bring(2, SYSTEM)
        first = found(cluster, node)
        assert first is not None
        assert first["metadata"]["labels"] == {"mx-consumer-cim": "true"}
        assert "ownerReferences" not in first["metadata"], "there is no such pod"
        text = first["data"]["NodeInfo"]
        assert "d7134e299de8c8a9e6183db03db66815242378dc3d562bd5df0b242d61935dc0" in text

        def rewritten() -> bool:
            house.publisher.submit(BoardView(2, (SYSTEM,)))
            again = found(cluster, node)
            assert again is not None
            assert again["data"]["NodeInfo"] == text
            return bool(again["data"]["updateTime"] > first["data"]["updateTime"])

        wait_until(rewritten, "it is written again, with another time and the same text")
        house.bring(3, CPU_1)
        changed = found(cluster, node)
        assert changed is not None
        assert json.loads(changed["data"]["NodeInfo"])["NodeInfo"]["NodeStatus"] == "PreSeparate"
        house.bring(4)
        assert found(cluster, node) is None
        assert house.heard.events == []


def test_a_restart_finds_it_and_leaves_it(cluster: Cluster, kubeconfig: Path, node: str) -> None:
    times = NodeInfoTimes(20)
    with publishing(kubeconfig, node, times) as house:
        house.bring(1, SYSTEM)
    before = found(cluster, node)
    assert before is not None, "a stop leaves it"
    with publishing(kubeconfig, node, times) as house:
        house.bring(1, SYSTEM)
        assert found(cluster, node) == before
        house.bring(2)
    assert found(cluster, node) is None


@pytest.mark.parametrize("devices", [(), (CPU_1,)], ids=["healthy", "faulty"])
def test_t24_what_an_operator_broke_is_mended(
    cluster: Cluster, kubeconfig: Path, node: str, devices: tuple[BoardDevice, ...]
) -> None:
    with publishing(kubeconfig, node) as house:
        house.bring(1, SYSTEM)
        with cluster.watch(CONFIG_MAPS) as events:
            seen = (event for event in events if event["object"]["metadata"]["name"] == object_name(node))
            assert next(seen)["type"] == "ADDED"
            cluster.kubectl(
                "patch", "cm", "-n", NAMESPACE, object_name(node), "--type=merge", "-p", '{"data":{"NodeInfo":"x"}}'
            )
            assert judge_node_info(next(seen)["object"]) != ""
            house.bring(2, *devices)
            heard = [next(seen) for _ in range(2 if devices else 3)]
    assert [event["type"] for event in heard] == ["MODIFIED", "MODIFIED", *([] if devices else ["DELETED"])]
    assert [judge_node_info(event["object"]) for event in heard[:2]] == ["", ""]


def test_noded_is_seen_by_what_the_server_records(cluster: Cluster, kubeconfig: Path, node: str) -> None:
    metadata = {"name": object_name(node), "labels": {"mx-consumer-cim": "true"}}
    body = {"metadata": metadata, "data": render_node_info(BoardView(1, (SYSTEM,)), 1748743200)}
    assert cluster.call("POST", f"{CONFIG_MAPS}?fieldManager=noded", body).status == 201
    with publishing(kubeconfig, node) as house:
        house.publisher.submit(BoardView(1))
        wait_until(lambda: house.publisher.status().waits_for == "noded")
        assert house.heard.reasons[0] is EventReason.OTHER_WRITER
    assert found(cluster, node) is not None


def test_cleanup_removes_ours(cluster: Cluster, kubeconfig: Path, node: str) -> None:
    with publishing(kubeconfig, node) as house:
        house.bring(1, SYSTEM)
    words = ("cleanup", "--kubeconfig", cluster.admin_kubeconfig, "--node", node)
    assert f"{NAMESPACE}/{object_name(node)}" in run_command(*words).stdout
    assert run_command(*words, "--yes").returncode == 0
    assert found(cluster, node) is None


@pytest.mark.skipif(foreign_without("kube-controller-manager"), reason="KUBEBUILDER_ASSETS has no such binary")
@pytest.mark.timeout(180)
def test_it_goes_with_our_daemon_set(tmp_path: Path) -> None:
    """The pod is made by the real controller of DaemonSets, and the object removed by the real garbage collector."""
    with Cluster(tmp_path / "own", controllers=True) as cluster:
        cluster.kubectl("create", "namespace", NAMESPACE)
        cluster.kubectl("apply", "-k", MANIFESTS / "overlays" / "a2")
        labels = {"workerselector": "dls-worker-node"}
        body = {"metadata": {"name": "worker-1", "labels": labels}}
        assert cluster.call("POST", "/api/v1/nodes", body).status == 201

        def pods() -> list[dict[str, Any]]:
            items: list[dict[str, Any]] = cluster.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods").document["items"]
            return items

        wait_until(lambda: len(pods()) == 1, "the DaemonSet has made a pod")
        token = cluster.service_account_token(NAMESPACE, "nodeagent")
        kubeconfig = cluster.kubeconfig(token, "nodeagent")
        with publishing(kubeconfig, "worker-1", pod=pods()[0]["metadata"]["name"]) as house:
            house.bring(1, SYSTEM)
            assert house.publisher.status().owner == "nodeagent"
        made = found(cluster, "worker-1")
        assert made is not None
        (reference,) = made["metadata"]["ownerReferences"]
        daemon_set = cluster.call("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/nodeagent").document
        uid = daemon_set["metadata"]["uid"]
        assert reference == {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nodeagent", "uid": uid}
        cluster.kubectl("delete", "-n", NAMESPACE, "daemonset", "nodeagent", "--wait=false")
        wait_until(lambda: found(cluster, "worker-1") is None, "the garbage collector has removed the object")
