"""Node faults from a pod of a real kubelet: the board over IPMI, storage clients by their files, and what stays."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.daemon import run_command, wait_until
from kit.lan_bmc import PASSWORD, USER, State
from kit.manifests import NAMESPACE
from kit.node import NODE, RealNode
from kit.node_daemon import DaemonInPod, daemon_in_pod
from kit.node_images import AGENT
from kit.server_process import free_ports
from kit.storage import StateFile

from nodeagent.core.storage import StorageClient
from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

CPU, SYSTEM = "0000001D", "2C000031"
PROCESS = "110001020"
QUICK = {"ipmi.poll_period_s": 0.2, "ipmi.report_interval_s": 0.1, "storage.read_period_s": 0.1}
OWN_NODE = "NODEAGENT_MOCK_SOCKET=$(echo /tmp/nodeagent-mock-*/socket) nodeagent mock "
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


@pytest.fixture
def control(hardware: MockServer) -> Iterator[MockControl]:
    """What is done to the mock node."""
    with MockControl(hardware.socket) as control:
        yield control


@pytest.fixture
def quick(node: RealNode, namespace: str, hardware: MockServer) -> Iterator[DaemonInPod]:
    """A daemon in a pod that is quick about node faults, in mode live."""
    with daemon_in_pod(node, Path(hardware.socket).parent, settings=QUICK) as daemon:
        yield daemon


@pytest.mark.parametrize("mode", ["shadow", "live"])
def test_alarms_and_storage_faults_raised_by_exec(node: RealNode, namespace: str, mode: str) -> None:
    """The overlay's own times: what its README tells people to type shows within seconds."""
    with daemon_in_pod(node, settings={"publish.mode": mode}) as daemon:
        daemon.exec("sh", "-c", f"{OWN_NODE} raise-alarm --code {CPU} --device-id 1 --severity critical")
        made = daemon.wait_for_alarms(CPU)
        (reference,) = made["metadata"]["ownerReferences"]
        daemon_set = node.cluster.call(
            "GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/nodeagent-dry-run"
        ).document
        uid = daemon_set["metadata"]["uid"]
        assert reference == {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nodeagent-dry-run", "uid": uid}
        assert ("mx-consumer-cim" in made["metadata"]["labels"]) == (mode == "live")
        daemon.exec("sh", "-c", f"{OWN_NODE} storage dpc --instances ok,process")
        told = daemon.wait_for_assertion(StorageClient.DPC, PROCESS, "occur")
        assert ("mc-consumer-publicfault" in told["metadata"]["labels"]) == (mode == "live")
        scan = json.loads(daemon.exec("nodeagent", "scan", "--output", "json", check=False).stdout)
        (device,) = scan["board"]["devices"]
        assert (device["codes"], device["level"]) == ([CPU], "PreSeparateFault")
        assert scan["public_faults"]["senders"]["dpcStorage"]["faults"]["DPC_PROCESS"]["believed"] == "present"
        daemon.exec("sh", "-c", f"{OWN_NODE} clear-alarm --code {CPU}")
        daemon.wait_for_alarms()
        daemon.exec("sh", "-c", f"{OWN_NODE} storage dpc")
        daemon.wait_for_assertion(StorageClient.DPC, PROCESS, "recover")
        assert "grant the verb" not in daemon.logs()


def test_an_alarm_stays_published_through_a_rolling_update(
    node: RealNode, quick: DaemonInPod, control: MockControl
) -> None:
    control.raise_alarm(CPU, device_id=1)
    before = quick.wait_for_alarms(CPU)
    first = quick.pod()["metadata"]["uid"]
    quick.image = "docker.io/library/nodeagent:tests-next"
    node.tag(AGENT, quick.image)
    quick.apply()
    quick.pod(not_uid=first)
    control.raise_alarm(SYSTEM)
    after = quick.wait_for_alarms(CPU, SYSTEM)
    changes = node.cluster.changes(CONFIG_MAPS, before["metadata"]["resourceVersion"])
    ours = [each["type"] for each in changes if each["object"]["metadata"]["name"] == before["metadata"]["name"]]
    assert ours == ["MODIFIED"], "the new pod found it as it was, and wrote when something changed"
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]


def test_what_goes_with_the_daemon_set_and_what_stays(node: RealNode, quick: DaemonInPod, control: MockControl) -> None:
    control.raise_alarm(CPU, device_id=1)
    control.set_storage("dpc", "process")
    quick.wait_for_alarms(CPU)
    told = quick.wait_for_assertion(StorageClient.DPC, PROCESS, "occur")
    quick.delete()
    wait_until(lambda: quick.node_info() is None, "the garbage collector has removed the object of the board")
    assert quick.public_fault(StorageClient.DPC) == told, "it belongs to nobody, and ClusterD hears of no deletion"
    words = ("cleanup", "--kubeconfig", node.cluster.admin_kubeconfig, "--all-nodes")
    found = run_command(*words)
    assert (found.returncode, told["metadata"]["name"] in found.stdout) == (1, True), found
    assert run_command(*words, "--yes").returncode == 0
    changes = node.cluster.changes(CONFIG_MAPS, told["metadata"]["resourceVersion"])
    ours = [each for each in changes if each["object"]["metadata"]["name"] == told["metadata"]["name"]]
    assert [each["type"] for each in ours] == ["MODIFIED", "DELETED"]
    (fault,) = json.loads(ours[0]["object"]["data"]["PublicFault"])["faults"]
    assert (fault["faultCode"], fault["assertion"]) == (PROCESS, "recover")


def test_on_a_real_node_the_clients_are_found_below_the_hosts_proc(
    node: RealNode, namespace: str, hardware: MockServer, host: Path
) -> None:
    """Their kernel modules come and go under a running pod."""
    proc = host / "proc"
    proc.mkdir()
    settings = {**QUICK, "node_object.enabled": False}
    with daemon_in_pod(node, Path(hardware.socket).parent, overlay="a2", host=host, settings=settings) as daemon:
        assert daemon.public_fault(StorageClient.DTFS) is None
        file = StateFile(proc, StorageClient.DTFS)
        file.show((0, 0, -1))
        told = daemon.wait_for_assertion(StorageClient.DTFS, "110001023", "occur")
        (fault,) = json.loads(told["data"]["PublicFault"])["faults"][-1:]
        assert fault["influence"] == [{"nodeName": NODE, "nodeSN": "", "deviceIds": list(range(8))}]
        file.remove()
        wait_until(lambda: "StorageClientGone" in daemon.logs(), "the module is unloaded")
        file.show((0, 0, 0))
        daemon.wait_for_assertion(StorageClient.DTFS, "110001023", "recover")


def test_the_image_asks_a_bmc_over_the_network(
    node: RealNode, namespace: str, hardware: MockServer, tmp_path: Path
) -> None:
    """With pyghmi in its child process, and credentials from files; nothing is written but below /tmp."""
    folder = Path(hardware.socket).parent
    credentials = folder / "credentials"
    credentials.mkdir()
    (credentials / "username").write_text(USER)
    (credentials / "password").write_text(PASSWORD)
    (port,) = free_ports(1)
    state = State(alarms=[[int(CPU, 16), 1720000000, 3, 0, 1]])
    state.write(tmp_path)
    command = [sys.executable, "-m", "kit.lan_bmc", str(port), str(tmp_path)]
    bmc = subprocess.Popen(command, cwd=Path(__file__).parent.parent)
    try:
        wait_until((tmp_path / "ready").exists, "the BMC listens")
        lan = {
            "ipmi.transport": "lan",
            "ipmi.address": "127.0.0.1",
            "ipmi.port": port,
            "ipmi.credentials_dir": "/hardware/credentials",
        }
        with daemon_in_pod(node, folder, settings={**QUICK, **lan}) as daemon:
            daemon.wait_for_alarms(CPU)
            state.alarms = []
            state.write(tmp_path)
            daemon.wait_for_alarms()
            limit_bytes, most_bytes = daemon.memory()
            assert most_bytes < limit_bytes * 0.8
    finally:
        bmc.kill()
        bmc.wait()
