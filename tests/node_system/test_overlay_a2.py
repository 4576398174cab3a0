"""The overlay for nodes with chips, as root with all privileges, on the mock library in place of the vendor's."""

import json
from contextlib import AbstractContextManager
from pathlib import Path

from kit.daemon import wait_until
from kit.manifests import NAMESPACE, one
from kit.node import NODE, RealNode
from kit.node_daemon import DaemonInPod, daemon_in_pod

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer
from nodeagent.render.device_info import NAMESPACE as TARGET_NAMESPACE
from nodeagent.render.device_info import object_name

CODE = "80E18005"
FAULT = ("Ascend910-3", CODE)


def installed(
    node: RealNode, hardware: MockServer, host: Path, mode: str = "live"
) -> AbstractContextManager[DaemonInPod]:
    """The overlay, running. The right to write the node object is optional, and not given here."""
    settings = {"publish.mode": mode, "node_object.enabled": False}
    return daemon_in_pod(node, Path(hardware.socket).parent, overlay="a2", host=host, settings=settings)


def test_as_shipped_it_publishes_a_shadow(node: RealNode, namespace: str, hardware: MockServer, host: Path) -> None:
    with installed(node, hardware, host, mode="shadow") as daemon, MockControl(hardware.socket) as control:
        control.raise_fault(3, CODE)
        daemon.wait_for_faults(FAULT)
        assert node.cluster.config_map(TARGET_NAMESPACE, object_name(NODE)) is None
        assert "DriverReady 8 chips through /usr/local/Ascend/driver/lib64/libdcmi.so" in daemon.logs()
        status = daemon.exec("cat", "/proc/self/status").stdout
        fields = dict(line.split(":", 1) for line in status.splitlines())
        assert fields["Uid"].split() == ["0"] * 4
        assert int(fields["CapEff"], 16) != 0
        assert "Read-only file system" in daemon.exec("touch", "/x", check=False).stderr
        assert "Read-only file system" in daemon.exec("touch", "/usr/local/Ascend/x", check=False).stderr
        daemon.exec("sh", "-c", f"exec 3<{block_device()}")


def test_counters_outlive_the_pod(node: RealNode, namespace: str, hardware: MockServer, host: Path) -> None:
    with installed(node, hardware, host) as daemon, MockControl(hardware.socket) as control:
        control.raise_fault(3, CODE)
        daemon.wait_for_faults(FAULT)
        uid, name = (daemon.pod()["metadata"][key] for key in ("uid", "name"))
        wait_until(lambda: list((host / "state").glob("*")), "there is a state file")
        node.cluster.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
        daemon.pod(not_uid=uid)
        wait_until(lambda: "carried over" in daemon.logs(), "the object was read back")
        assert "carried over faults=1" in daemon.logs()
        assert "state_file=none" not in daemon.logs()
        daemon.wait_for_faults(FAULT)


def test_a_second_daemon_waits_for_the_first(node: RealNode, namespace: str, hardware: MockServer, host: Path) -> None:
    """As in a rolling update whose old pod does not end; here a pod made by hand."""
    with installed(node, hardware, host) as daemon:
        template = one(daemon.objects(), "DaemonSet")["spec"]["template"]["spec"]
        (container,) = template["containers"]
        container["env"].append({"name": "NODEAGENT_HTTP_PORT", "value": "0"})
        for key in ("startupProbe", "livenessProbe", "readinessProbe", "ports"):
            container.pop(key)
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "second", "namespace": NAMESPACE, "labels": {"is": "second"}},
            "spec": template,
        }
        kubectl = node.cluster.kubectl
        kubectl("apply", "-f", "-", input=json.dumps(pod))
        try:
            words = ("-n", NAMESPACE, "logs", "second")
            wait_until(lambda: "another daemon of this node runs" in kubectl(*words, check=False).stdout, "it waits")
            assert "first complete query" not in kubectl(*words).stdout
            daemon.delete()
            wait_until(lambda: "first complete query" in kubectl(*words).stdout, "it goes on")
        finally:
            kubectl("-n", NAMESPACE, "delete", "pod", "second", "--now", "--ignore-not-found")


def block_device() -> str:
    """A block device of this machine; without all privileges, opening it is refused to root as well."""
    names = sorted(path.name for path in Path("/sys/class/block").iterdir())
    return next(f"/dev/{name}" for name in names if Path("/dev", name).is_block_device())
