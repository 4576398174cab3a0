"""Alarms of the pretended board to the node-info object of a real API server: outages, restarts, edits, levels.

The daemon has the rights of the manifests, and must not ask for more (`kit.node_watch.watched`).
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.cluster import Cluster
from kit.daemon import Daemon, wait_until
from kit.manifests import NAMESPACE
from kit.node_info import Clusterd
from kit.node_watch import CONFIG_MAPS, CPU, CPU_SEPARATE, ONLY_CPU, ONLY_SYSTEM, PSU, SYSTEM, watched

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer
from nodeagent.render.node_info_contract import judge_node_info

MERGE = "application/merge-patch+json"
LEVELS_KEY = "NodeDConfiguration.json"
LEVELS_MAP = "mindx-dl-node-fault-config"


class Levels:
    """The ConfigMap with levels of node faults."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def put(self, text: str) -> None:
        """Create or replace it."""
        body = {"metadata": {"name": LEVELS_MAP}, "data": {LEVELS_KEY: text}}
        exists = self.cluster.config_map(NAMESPACE, LEVELS_MAP) is not None
        path = f"{CONFIG_MAPS}/{LEVELS_MAP}" if exists else CONFIG_MAPS
        answer = self.cluster.call("PUT" if exists else "POST", path, body)
        assert answer.status in (200, 201), answer

    def delete(self) -> None:
        """Delete it if it is there."""
        self.cluster.call("DELETE", f"{CONFIG_MAPS}/{LEVELS_MAP}")


@pytest.fixture
def levels(cluster: Cluster) -> Iterator[Levels]:
    """The site's levels, which all nodes of a cluster share; none at first, and none afterwards."""
    made = Levels(cluster)
    yield made
    made.delete()


def levels_text(**lists: list[str]) -> str:
    """A document of upstream's form with these lists: not_handle, pre, separate."""
    keys = {"not_handle": "NotHandleFaultCodes", "pre": "PreSeparateFaultCodes", "separate": "SeparateFaultCodes"}
    return json.dumps({"FaultTypeCode": {keys[name]: codes for name, codes in lists.items()}})


def _failures(daemon: Daemon) -> str:
    """Lines of the log that tell of failed writes."""
    return "\n".join(line for line in daemon.words().splitlines() if "publish_failed" in line)


class TestOutages:
    @pytest.mark.parametrize("before", [False, True], ids=["none before", "one before"])
    def test_t14_the_final_state_is_there_when_the_server_is(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str, before: bool
    ) -> None:
        with watched(cluster, server, tmp_path, node, outages=True) as it:
            it.polled()
            if before:
                control.raise_alarm(CPU, device_id=1)
                it.wait_for(ONLY_CPU)
            cluster.api_server.kill()
            control.raise_alarm(SYSTEM)
            wait_until(lambda: "object=node_info" in _failures(it.daemon), "the failed write is told")
            control.raise_alarm(PSU, device_id=2)
            if before:
                control.clear_alarm(CPU)
            wait_until(lambda: PSU in it.daemon.words(), "it is taken in")
            control.clear_alarm(PSU)
            wait_until(lambda: "Recovery board PSU" in it.daemon.words(), "its end too")
            cluster.api_server.start()
            it.wait_for(ONLY_SYSTEM)
            assert judge_node_info(it.present()) == ""

    def test_t14_a_recovery_in_the_outage_ends_without_an_object(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        with watched(cluster, server, tmp_path, node, outages=True) as it:
            control.raise_alarm(CPU, device_id=1)
            it.wait_for(ONLY_CPU)
            cluster.api_server.kill()
            control.clear_alarm(CPU)
            wait_until(lambda: "object=node_info" in _failures(it.daemon), "the failed deletion is told")
            cluster.api_server.start()
            it.wait_until_gone()

    def test_t9_levels_that_could_not_be_read_at_the_start_are_taken_when_the_server_is_back(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str, levels: Levels
    ) -> None:
        levels.put(levels_text(separate=[CPU]))
        control.raise_alarm(CPU, device_id=1)
        cluster.api_server.kill()
        with watched(cluster, server, tmp_path, node, outages=True) as it:
            wait_until(lambda: "last published object cannot be read" in it.daemon.words())
            cluster.api_server.start()
            it.wait_for(CPU_SEPARATE)


class TestRestarts:
    def test_t15_the_object_is_never_absent(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str, levels: Levels
    ) -> None:
        """With levels of the site, which a start knows later than those it brings along."""
        levels.put(levels_text(separate=[CPU], pre=[PSU]))
        control.raise_alarm(CPU, device_id=1)
        with watched(cluster, server, tmp_path, node) as it:
            before = it.wait_for(CPU_SEPARATE)
            since = before["metadata"]["resourceVersion"]
            for _ in range(2):
                it.daemon.kill()
                it.daemon.start()
                it.polled()
            control.raise_alarm(PSU, device_id=2)
            after = it.wait_for_codes(CPU, PSU)
            events = it.changes(since)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert [event["type"] for event in events] == ["MODIFIED"], "written when something changed, not before"

    def test_what_ended_while_no_daemon_ran_is_found(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        control.raise_alarm(CPU, device_id=1)
        with watched(cluster, server, tmp_path, node) as it:
            it.wait_for(ONLY_CPU)
            it.daemon.kill()
            control.clear_alarm(CPU)
            it.daemon.start()
            it.wait_until_gone()


class TestEdits:
    @pytest.mark.parametrize("trigger", ["alarm", "level", "restart", "recovery"])
    def test_t24_a_poisoned_object_is_repaired_with_two_writes(
        self,
        cluster: Cluster,
        server: MockServer,
        control: MockControl,
        tmp_path: Path,
        node: str,
        levels: Levels,
        trigger: str,
    ) -> None:
        """Nothing follows the object, so an edit is found when the object is written or looked at again."""
        control.raise_alarm(CPU, device_id=1)
        with watched(cluster, server, tmp_path, node) as it:
            good = it.wait_for(ONLY_CPU)
            poisoned = {"data": {"NodeInfo": json.dumps({**it.document(), "CheckCode": "x"})}}
            answer = cluster.call(
                "PATCH", f"{CONFIG_MAPS}/{it.name}?fieldManager=kubectl-edit", poisoned, content_type=MERGE
            )
            assert answer.status == 200, answer
            bad = answer.document
            assert judge_node_info(bad) != ""
            if trigger == "alarm":
                control.raise_alarm(SYSTEM)
                it.wait_for_codes(CPU, SYSTEM)
            elif trigger == "level":
                levels.put(levels_text(separate=[CPU]))
                it.wait_for(CPU_SEPARATE)
            elif trigger == "restart":
                it.daemon.kill()
                it.daemon.start()
                it.wait_for(ONLY_CPU)
            else:
                control.clear_alarm(CPU)
                it.wait_until_gone()
            wait_until(lambda: len(it.changes(bad["metadata"]["resourceVersion"])) >= 2 + (trigger == "recovery"))
            events = it.changes(bad["metadata"]["resourceVersion"])
        types = ["MODIFIED", "MODIFIED", *(["DELETED"] if trigger == "recovery" else [])]
        assert [event["type"] for event in events] == types
        first, second = (event["object"] for event in events[:2])
        assert (judge_node_info(first), judge_node_info(second)) == ("", "")
        assert first["data"]["updateTime"] < second["data"]["updateTime"]
        clusterd = Clusterd()
        told = [None, good, bad, first, second, *([None] if trigger == "recovery" else [])]
        for old, new in itertools.pairwise(told):
            clusterd.hear(old, new)
        wanted = {"alarm": "UnHealthy", "level": "UnHealthy", "restart": "PreSeparate", "recovery": None}
        assert clusterd.status == wanted[trigger]


class TestLevels:
    @pytest.mark.parametrize("on_delete", ["builtin", "keep"])
    def test_t9_created_later_edited_and_deleted(
        self,
        cluster: Cluster,
        server: MockServer,
        control: MockControl,
        tmp_path: Path,
        node: str,
        levels: Levels,
        on_delete: str,
    ) -> None:
        control.raise_alarm(CPU, device_id=1)
        with watched(cluster, server, tmp_path, node, faults__node_on_delete=on_delete) as it:
            it.wait_for(ONLY_CPU)
            levels.put(levels_text(separate=[CPU]))
            it.wait_for(CPU_SEPARATE)
            bad = ["{", levels_text(pre=[CPU], separate=[CPU]), levels_text(pre=["000001D"])]
            for number, text in enumerate(bad, 1):
                levels.put(text)
                wait_until(lambda n=number: it.daemon.words().count("BadConfiguration") >= n, f"{text} is told")
                assert it.document()["CheckCode"] == CPU_SEPARATE
            levels.put(levels_text(not_handle=[CPU]))
            wait_until(lambda: it.document()["NodeInfo"]["NodeStatus"] == "Healthy", "an edit counts at once")
            levels.put(levels_text(separate=[CPU]))
            it.wait_for(CPU_SEPARATE)
            levels.delete()
            if on_delete == "builtin":
                it.wait_for(ONLY_CPU)
                return
            wait_until(lambda: "what it said stays in force" in it.daemon.words(), "the deletion is told")
            control.raise_alarm(PSU, device_id=2)  # judged by the deleted levels too, which do not list it
            control.raise_alarm(CPU, device_id=2)
            wait_until(lambda: len(it.document()["NodeInfo"]["FaultDevList"]) == 2, "both CPUs")
            levels_now = {device["FaultLevel"] for device in it.document()["NodeInfo"]["FaultDevList"]}
            assert levels_now == {"SeparateFault"}
            it.daemon.kill()
            it.daemon.start()
            wait_until(lambda: it.document()["NodeInfo"]["NodeStatus"] == "PreSeparate", "until the next start")

    @pytest.mark.parametrize("text", ["{", levels_text(pre=[CPU], separate=[CPU]), levels_text(pre=["000001D"])])
    def test_t9_bad_at_the_start(
        self,
        cluster: Cluster,
        server: MockServer,
        control: MockControl,
        tmp_path: Path,
        node: str,
        levels: Levels,
        text: str,
    ) -> None:
        levels.put(text)
        control.raise_alarm(CPU, device_id=1)
        with watched(cluster, server, tmp_path, node) as it:
            it.wait_for(ONLY_CPU)
            assert "BadConfiguration" in it.daemon.words()
