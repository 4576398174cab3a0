"""The daemon in a pod when something around it goes wrong, or is changed."""

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.daemon import wait_until
from kit.manifests import NAMESPACE
from kit.node import NODE, RealNode
from kit.node_daemon import DaemonInPod, daemon_in_pod
from kit.node_images import AGENT

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer
from nodeagent.render.device_info import NAMESPACE as TARGET_NAMESPACE
from nodeagent.render.device_info import object_name
from nodeagent.render.reading import parse_device_info

CODE = "80E18005"
FAULT = ("Ascend910-3", CODE)
QUICK = {"livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 1, "failureThreshold": 2}}
"""The manifest's probe in seconds instead of a minute."""
NEXT = "docker.io/library/nodeagent:tests-next"


@pytest.fixture
def control(hardware: MockServer) -> Iterator[MockControl]:
    """What is done to the mock node."""
    with MockControl(hardware.socket) as control:
        yield control


def test_a_daemon_that_stands_still_is_restarted(node: RealNode, namespace: str, hardware: MockServer) -> None:
    with daemon_in_pod(node, Path(hardware.socket).parent, container=QUICK) as daemon:
        os.kill(daemon.main_process(), signal.SIGSTOP)
        daemon.pod(restarts=1)
        daemon.wait_for_faults()


def test_a_driver_that_hangs_is_no_reason_for_a_restart(
    node: RealNode, namespace: str, hardware: MockServer, control: MockControl
) -> None:
    settings = {"driver.call_deadline_s": 0.5, "chips.health_period_s": 0.5}
    with daemon_in_pod(node, Path(hardware.socket).parent, container=QUICK, settings=settings) as daemon:
        control.hang("dcmi_get_device_health", 3600, chip=4)
        wait_until(lambda: daemon.metric("nodeagent_chips_silent") == 1, "the chip is silent")
        control.raise_fault(3, CODE)
        daemon.wait_for_faults(FAULT)
        asked = itertools.count(1)
        before = daemon.metric("nodeagent_http_requests_total")
        wait_until(
            lambda: daemon.metric("nodeagent_http_requests_total") - before - next(asked) >= 6,
            "the kubelet has asked six times more",
        )
        assert daemon.metric("nodeagent_chips_silent") == 1
        assert daemon.restarts() == 0


def test_a_fault_stays_in_the_object_through_a_rolling_update(
    node: RealNode, daemon: DaemonInPod, control: MockControl
) -> None:
    control.raise_fault(3, CODE)
    daemon.wait_for_faults(FAULT)
    first = daemon.pod()["metadata"]["uid"]
    node.tag(AGENT, NEXT)
    last = ("Ascend910-5", CODE)
    with node.cluster.watch(f"/api/v1/namespaces/{TARGET_NAMESPACE}/configmaps") as events:
        daemon.image = NEXT
        daemon.apply()
        pod = daemon.pod(not_uid=first)
        assert pod["spec"]["containers"][0]["image"] == NEXT
        control.raise_fault(5, CODE)
        daemon.wait_for_faults(FAULT, last)
        for event in events:
            if event["object"]["metadata"]["name"] == object_name(f"dry-run-{NODE}"):
                assert event["type"] in ("ADDED", "MODIFIED")
                faults = {(f.device, f.code_text) for f in parse_device_info(event["object"]["data"]).faults}
                assert FAULT in faults
                if last in faults:
                    break


def test_a_drain_leaves_the_daemon(node: RealNode, daemon: DaemonInPod, control: MockControl) -> None:
    pod = daemon.pod()
    kubectl = node.cluster.kubectl
    try:
        kubectl("drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=20s")
        control.raise_fault(3, CODE)
        daemon.wait_for_faults(FAULT)
        assert daemon.pod()["metadata"]["uid"] == pod["metadata"]["uid"]
        node.cluster.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
        daemon.pod(not_uid=pod["metadata"]["uid"])  # a cordoned node still gets it
        daemon.wait_for_faults(FAULT)
    finally:
        kubectl("uncordon", NODE)


def test_deleting_the_daemon_set_leaves_the_object_as_it_is(
    node: RealNode, daemon: DaemonInPod, control: MockControl
) -> None:
    control.raise_fault(3, CODE)
    daemon.wait_for_faults(FAULT)
    before = daemon.data()
    daemon.delete()
    assert node.pods(NAMESPACE, daemon.selector) == []
    assert daemon.data() == before


def test_a_storm_stays_within_the_memory_limit(daemon: DaemonInPod, control: MockControl) -> None:
    events = control.storm(2000, 5)
    control.raise_fault(3, CODE)
    wait_until(lambda: sum(storm["sent"] for storm in control.state()["storms"]) >= events, "the storm is over")
    wait_until(lambda: FAULT in daemon.faults(), "the fault is published")
    limit_bytes, most_bytes = daemon.memory()
    assert limit_bytes == 192 * 1024 * 1024
    assert most_bytes < limit_bytes * 0.8
    assert daemon.restarts() == 0
