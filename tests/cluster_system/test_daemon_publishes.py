"""The daemon as a process, a mock node beneath it and a real API server above it."""

import json
from pathlib import Path
from typing import Any

import yaml
from kit.cluster import Cluster
from kit.cluster_daemon import daemon_in
from kit.daemon import wait_until

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer
from nodeagent.render.device_info import fingerprint
from nodeagent.render.reading import parse_device_info

X = "80E18005"


def test_a_fault_is_seen_with_kubectl(
    cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
) -> None:
    with daemon_in(cluster, server, tmp_path, node) as daemon:
        daemon.wait(lambda p: p.faults == ())
        control.raise_fault(3, X)
        daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"})
        seen = cluster.kubectl("get", "cm", "-n", "kube-system", f"mindx-dl-deviceinfo-{node}", "-o", "yaml")
    found = yaml.safe_load(seen.stdout)
    assert found["metadata"]["labels"] == {"mx-consumer-cim": "true"}
    parsed = parse_device_info(found["data"])
    assert parsed.unhealthy == ("Ascend910-3",)
    assert [(f.device, f.code_text, f.level.text) for f in parsed.faults] == [("Ascend910-3", X, "RestartNPU")]


def test_kill_9_and_restart_end_in_the_same_object(
    cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
) -> None:
    with daemon_in(cluster, server, tmp_path, node) as daemon:
        control.raise_fault(1, X)
        before = daemon.wait_for_faults({("Ascend910-1", X): "RestartNPU"})
        data = daemon.data()
        daemon.kill()
        daemon.start()
        after = daemon.wait(lambda p: p.update_time_s > before.update_time_s)
        assert fingerprint(daemon.data()) == fingerprint(data)
        assert after.faults == before.faults


def test_a_switch_fault_of_an_a3_is_seen_with_kubectl(cluster: Cluster, tmp_path: Path, node: str) -> None:
    def shown() -> dict[str, Any]:
        seen = cluster.kubectl("get", "cm", "-n", "kube-system", f"mindx-dl-deviceinfo-{node}", "-o", "yaml")
        found: dict[str, Any] = json.loads(yaml.safe_load(seen.stdout)["data"]["SwitchInfoCfg"])
        return found

    place = {"chip": 2, "code": "0x08520003,na,npu", "port": 11, "peer_id": 5}
    with (
        MockServer.start("a3") as server,
        server.control() as control,
        daemon_in(cluster, server, tmp_path, node) as daemon,
    ):
        daemon.wait(lambda p: p.faults == ())
        wait_until(lambda: shown()["NodeStatus"] == "Healthy")
        control.raise_switch_fault(**place, severity="major", time_ms=1759999990123)
        wait_until(lambda: shown()["NodeStatus"] == "UnHealthy")
        info = shown()
        assert info["FaultLevel"] == "Separate"
        assert info["FaultTimeAndLevelMap"] == {
            "[0x08520003,na,npu,na]_2_11": {"fault_time": 1759999990123, "fault_level": "Separate"}
        }
        (code,) = info["FaultCode"]
        assert json.loads(code)["AssembledFaultCode"] == "[0x08520003,na,npu,na]"
        control.clear_switch_fault(**place)
        wait_until(lambda: shown()["FaultCode"] == [])
