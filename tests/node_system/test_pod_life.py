"""The dry-run overlay in a pod of a real kubelet: it runs, publishes, and lives through the death of its processes."""

import json
import os
import signal

from kit.daemon import alive, wait_until
from kit.node import RealNode
from kit.node_daemon import DaemonInPod, daemon_in_pod

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

CODE = "80E18005"
FAULT = ("Ascend910-3", CODE)
OWN_NODE = "NODEAGENT_MOCK_SOCKET=$(echo /tmp/nodeagent-mock-*/socket) nodeagent mock "


def test_the_overlay_runs_and_shows_a_fault_raised_by_exec(node: RealNode, namespace: str) -> None:
    with daemon_in_pod(node) as daemon:
        published = daemon.wait_for_faults()
        assert len(json.loads((daemon.data() or {})["DeviceInfoCfg"])["DeviceInfo"]["DeviceList"]) >= 1, published
        daemon.exec("sh", "-c", f"{OWN_NODE} raise --chip 3 --code {CODE}")
        daemon.wait_for_faults(FAULT)
        why = daemon.exec("nodeagent", "why", "3", check=False)
        assert CODE in why.stdout
        daemon.exec("sh", "-c", f"{OWN_NODE} clear --chip 3 --code {CODE}")
        daemon.wait_for_faults()
        assert "starting node=dry-run-" in daemon.logs()


def test_killed_daemon_is_started_again_with_the_same_object(daemon: DaemonInPod, hardware: MockServer) -> None:
    with MockControl(hardware.socket) as control:
        control.raise_fault(3, CODE)
    before = daemon.wait_for_faults(FAULT)
    os.kill(daemon.main_process(), signal.SIGKILL)
    daemon.pod(restarts=1)
    after = daemon.wait_for_faults(FAULT)
    assert after.faults == before.faults
    assert "carried over faults=1" in daemon.logs()


def test_a_driver_host_that_crashes_is_replaced_alone(daemon: DaemonInPod, hardware: MockServer) -> None:
    (host,) = wait_until(lambda: daemon.processes("nodeagent-dcmi"), "a driver host")
    main = daemon.main_process()
    os.kill(host, signal.SIGSEGV)
    (other,) = wait_until(lambda: [p for p in daemon.processes("nodeagent-dcmi") if p != host], "another host")
    with MockControl(hardware.socket) as control:
        control.raise_fault(3, CODE)
    daemon.wait_for_faults(FAULT)
    assert daemon.main_process() == main
    assert daemon.restarts() == 0
    assert not alive(host, zombie=True)
    assert alive(other)


def test_the_container_can_change_nothing_but_its_volumes(daemon: DaemonInPod) -> None:
    status = daemon.exec("sh", "-c", "cat /proc/1/status").stdout
    fields = dict(line.split(":", 1) for line in status.splitlines())
    assert {fields[f"Cap{kind}"].strip() for kind in ("Eff", "Prm", "Inh", "Bnd", "Amb")} == {"0" * 16}
    assert fields["NoNewPrivs"].strip() == "1"
    assert fields["Uid"].split() == ["65532"] * 4
    assert fields["Seccomp"].strip() == "2"
    for place in ("/x", "/opt/nodeagent/x", "/etc/nodeagent/x", "/etc/x"):
        refused = daemon.exec("touch", place, check=False)
        assert refused.returncode != 0, place
        assert "Read-only file system" in refused.stderr
    daemon.exec("touch", "/tmp/x", "/run/nodeagent/x", "/var/lib/nodeagent/x")


def test_orphans_are_collected(daemon: DaemonInPod) -> None:
    """The daemon knows its own children only, so it must not be process 1."""
    daemon.exec("sh", "-c", "sh -c 'sleep 0.2; true' & exit 0")
    wait_until(lambda: not daemon.processes("sleep"), "the orphan has ended")
    zombies = "cat /proc/[0-9]*/stat | awk '{print $3}' | grep -c Z || true"
    wait_until(lambda: daemon.exec("sh", "-c", zombies).stdout.strip() == "0", "no zombie is left")


def test_sigterm_ends_the_container_as_it_should(daemon: DaemonInPod) -> None:
    (first,) = daemon.processes("tini")
    os.kill(first, signal.SIGTERM)
    status = daemon.pod(restarts=1)["status"]["containerStatuses"][0]
    assert status["lastState"]["terminated"]["exitCode"] == 0
    assert "stopped cleanly" in daemon.logs("--previous")


def test_a_start_that_fails_tells_why_in_the_status_of_the_pod(node: RealNode, namespace: str) -> None:
    daemon = DaemonInPod(node, settings={"log.level": "loud"})
    daemon.apply()
    try:
        pod = node.wait_for_pod(
            namespace,
            daemon.selector,
            lambda pod: any("terminated" in s["lastState"] for s in pod["status"].get("containerStatuses", [])),
            "the container ended",
        )
        ended = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
        assert ended["exitCode"] == 2
        assert "log.level" in ended["message"]
        assert "\n" not in ended["message"].strip()
    finally:
        daemon.delete()
