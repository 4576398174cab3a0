"""What a real API server is told of node faults beside the alarms: storage faults, owner, shadows, node, Events."""

import shutil
from pathlib import Path

import pytest
from kit.cluster import Cluster
from kit.daemon import wait_until
from kit.fake_clusterd import FakeClusterd
from kit.manifests import NAMESPACE
from kit.node_watch import CONFIG_MAPS, CPU, ONLY_CPU, SYSTEM, watched

from nodeagent.core.clock import SystemClock
from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

DPC_PROCESS = "110001020"


class TestPublicFaults:
    def test_clusterd_hears_of_a_fault_and_of_its_end(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        clusterd = FakeClusterd(now_ms=SystemClock().now().wall_ms)
        since = cluster.call("GET", CONFIG_MAPS).document["metadata"]["resourceVersion"]
        control.set_storage("dpc", "ok", "process")
        with watched(cluster, server, tmp_path, node) as it:
            occurred = it.wait_for_assertion(DPC_PROCESS, "occur")
            told = cluster.config_map(NAMESPACE, it.told_in) or {}
            assert told["metadata"]["labels"] == {"mc-consumer-publicfault": "true"}
            assert it.object() is None, "storage faults never appear in the node-info object (1)"
            control.set_storage("dpc", "ok", "ok")
            recovered = it.wait_for_assertion(DPC_PROCESS, "recover")
            events = it.changes(since, it.told_in)
        assert occurred["influence"] == [{"nodeName": node, "nodeSN": "", "deviceIds": list(range(8))}]
        assert recovered["faultId"] == occurred["faultId"]
        cached = []
        old = None
        for event in events:
            clusterd.config_map_written(old, event["object"])
            old = event["object"]
            cached.append(set(clusterd.faults_of(node)))
            clusterd.advance_to(clusterd.now_ms + 10_000)
        assert {DPC_PROCESS} in cached
        assert clusterd.faults_of(node) == {}
        assert clusterd.broken == []

    def test_a_daemon_without_its_memory_reads_what_it_said_last(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        """As a pod whose node lost the state folder: the fault is not told again, and its end at once."""
        control.set_storage("dpc", "process")
        with watched(cluster, server, tmp_path, node) as it:
            occurred = it.wait_for_assertion(DPC_PROCESS, "occur")
            before = it.message()
            it.daemon.kill()
            shutil.rmtree(Path(str(it.daemon.settings["daemon.state_dir"])))
            it.daemon.start()

            def believed() -> bool:
                if not it.answers():
                    return False
                sender = it.state()["public_faults"]["senders"].get("dpcStorage", {})
                return bool(sender.get("faults", {}).get("DPC_PROCESS", {}).get("believed") == "present")

            wait_until(believed, "the last message is read")
            assert it.message() == before
            control.set_storage("dpc", "ok")
            recovered = it.wait_for_assertion(DPC_PROCESS, "recover")
        assert recovered["faultId"] == occurred["faultId"]


class TestPod:
    def test_the_object_belongs_to_the_daemon_set_of_our_pod(
        self,
        cluster: Cluster,
        server: MockServer,
        control: MockControl,
        tmp_path: Path,
        node: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Both made by hand: no controller runs here."""
        labels = {"app": node}
        container = {"name": "nodeagent", "image": "nodeagent"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"
        daemon_set = cluster.create(path, "DaemonSet", f"nodeagent-{node}", spec=spec)
        reference = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": daemon_set["metadata"]["name"],
            "uid": daemon_set["metadata"]["uid"],
        }
        pod = {
            "metadata": {"name": f"pod-of-{node}", "ownerReferences": [{**reference, "controller": True}]},
            "spec": {"nodeName": node, "serviceAccountName": "nodeagent-tests", "containers": [container]},
        }
        answer = cluster.call("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
        assert answer.status == 201, answer
        monkeypatch.setenv("POD_NAME", f"pod-of-{node}")
        monkeypatch.setenv("POD_NAMESPACE", NAMESPACE)
        control.raise_alarm(CPU, device_id=1)
        with watched(cluster, server, tmp_path, node) as it:
            made = it.wait_for(ONLY_CPU)
            assert made["metadata"]["ownerReferences"] == [reference], "a plain reference (8.3)"
            assert made["metadata"]["labels"] == {"mx-consumer-cim": "true"}
            monkeypatch.delenv("POD_NAME")
            it.daemon.kill()
            it.daemon.start()
            control.raise_alarm(SYSTEM)
            changed = it.wait_for_codes(CPU, SYSTEM)
            assert changed["metadata"]["ownerReferences"] == [reference], "who does not know the owner keeps it"


def test_in_shadow_mode_consumers_see_nothing(
    cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
) -> None:
    control.raise_alarm(CPU, device_id=1)
    control.set_storage("dpc", "process")
    with watched(cluster, server, tmp_path, node, publish__mode="shadow") as it:
        it.wait_for(ONLY_CPU)
        it.wait_for_assertion(DPC_PROCESS, "occur")
        found = cluster.call("GET", CONFIG_MAPS).document["items"]
        ours = {
            o["metadata"]["name"]: o["metadata"]["labels"] for o in found if f"{node}-" in f"{o['metadata']['name']}-"
        }
        assert ours == {name: {"app.kubernetes.io/managed-by": "nodeagent"} for name in (it.name, it.told_in)}
        assert it.name.endswith("-shadow")
        assert it.told_in.endswith("-shadow")
        control.clear_alarm(CPU)
        it.wait_until_gone()


class TestNode:
    @pytest.fixture
    def mock_node(self, tmp_path: Path) -> str:
        """A board that has a serial number."""
        path = tmp_path / "board.yaml"
        path.write_text("node:\n  profile: a2\n  serial_number: 2102310ABC\n")
        return str(path)

    def test_serial_number_and_events(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        cluster.create("/api/v1/nodes", "Node", node)
        with watched(cluster, server, tmp_path, node, node_object__enabled="true") as it:

            def annotations() -> dict[str, str]:
                metadata = cluster.call("GET", f"/api/v1/nodes/{node}").document["metadata"]
                return dict(metadata.get("annotations", {}))

            wait_until(lambda: annotations().get("product-serial-number") == "2102310ABC", "the annotation (10)")
            control.raise_alarm(CPU, device_id=1)
            it.wait_for(ONLY_CPU)
            control.clear_alarm(CPU)
            it.wait_until_gone()

            def events() -> list[tuple[str, str, str]]:
                found = cluster.call("GET", "/api/v1/namespaces/kube-system/events").document["items"]
                told = [event for event in found if event["involvedObject"]["name"] == node]
                return [(e["type"], e["reason"], e["message"]) for e in told if CPU in e["message"]]

            wait_until(lambda: len(events()) == 2, "one Event of the alarm, one of its end")
            (came, gone) = sorted(events(), reverse=True)
            assert came[:2] == ("Warning", "Occur")
            assert gone[:2] == ("Normal", "Recovery")
            assert "board CPU 1" in came[2]
            assert "PreSeparateFault" in came[2]
