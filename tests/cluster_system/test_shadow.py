"""Shadow mode beside a device plugin that the golden objects play, written under another field manager."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from contract.data.device_info.cases import golden
from kit.cluster import Cluster
from kit.cluster_daemon import daemon_in
from kit.daemon import Daemon, flags, run_command, wait_until

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer
from nodeagent.render.device_info import LABELS, NAMESPACE, object_name
from nodeagent.render.gojson import check_code, go_json

PLUGIN = "device-plugin"
X = "80E18005"
SHADOW = {"publish__mode": "shadow", "shadow__settle_s": "0.2", "shadow__time_tolerance_s": "3600"}


class Incumbent:
    """The device plugin of a node: writes golden objects, brought to the present, over whatever is there."""

    def __init__(self, cluster: Cluster, node: str) -> None:
        self.cluster = cluster
        self.name = object_name(node)

    def write(self, case: str) -> None:
        now_s = int(time.time())
        data = golden(case.removesuffix("-upstream")) | {"DeviceInfoCfg": golden(case)["DeviceInfoCfg"]}
        data = {key: re.sub(r"\b17\d{11}\b", str(now_s * 1000), text) for key, text in data.items()}
        document = json.loads(data["DeviceInfoCfg"])
        document["DeviceInfo"]["UpdateTime"] = now_s
        document["CheckCode"] = check_code(document["DeviceInfo"]["DeviceList"], now_s)
        self.put(data | {"DeviceInfoCfg": go_json(document), "Description": "fixed notice"})

    def put(self, data: dict[str, str]) -> None:
        """As upstream does it: PUT without a version, POST where there is none (device-info 8)."""
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        body["metadata"] = {"name": self.name, "labels": dict(LABELS)}
        place = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        answer = self.cluster.call("PUT", f"{place}/{self.name}?fieldManager={PLUGIN}", body)
        if answer.status == 404:
            answer = self.cluster.call("POST", f"{place}?fieldManager={PLUGIN}", body)
        assert answer.status in (200, 201), answer


@pytest.fixture
def incumbent(cluster: Cluster, node: str) -> Incumbent:
    return Incumbent(cluster, node)


def diff(*words: object) -> tuple[int, dict[str, Any]]:
    done = run_command("shadow", "diff", "--output", "json", *words)
    return done.returncode, json.loads(done.stdout or '{"differences": []}')  # while there is no socket yet


def asked(daemon: Daemon) -> tuple[int, dict[str, Any]]:
    """What the running daemon says."""
    return diff(*flags({"daemon.socket": daemon.settings["daemon.socket"]}))


def kinds(found: dict[str, Any]) -> list[str]:
    return [each["kind"] for each in found["differences"]]


def same(daemon: Daemon) -> bool:
    code, found = asked(daemon)
    return code == 0 and not found["differences"]


def test_a_fault_that_only_one_side_sees(
    cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str, incumbent: Incumbent
) -> None:
    """With the rights of the manifests: the watch of the live object needs no others."""
    incumbent.write("A1")
    with daemon_in(cluster, server, tmp_path, node, **SHADOW) as daemon:
        wait_until(lambda: same(daemon), "both say the same")
        incumbent.write("A2")
        wait_until(lambda: asked(daemon)[0] == 1, "the difference has settled")
        _, found = asked(daemon)
        assert kinds(found) == ["available", "unhealthy", "fault_missing"]
        assert [each["theirs"] for each in found["differences"]] == ["-", "listed", "RestartNPU"]
        assert (found["theirs"]["writer"], found["ours"]["writer"]) == (PLUGIN, "nodeagent")
        control.raise_fault(3, X)
        wait_until(lambda: same(daemon), "both see it")
        assert "shadow differs kind=fault_missing field='Ascend910-3 80E18005'" in daemon.words()
        assert "shadow differs no more kind=fault_missing" in daemon.words()
        live = cluster.config_map(NAMESPACE, object_name(node))
        assert live is not None
        assert {entry["manager"] for entry in live["metadata"]["managedFields"]} == {PLUGIN}, "it is only read"


def test_without_a_daemon_the_cluster_is_asked(
    cluster: Cluster, server: MockServer, tmp_path: Path, node: str, incumbent: Incumbent
) -> None:
    words = ("--kubeconfig", cluster.admin_kubeconfig, "--node-name", node)
    assert diff(*words)[0] == 2, "there is nothing yet"
    incumbent.write("A1")
    assert (diff(*words)[0], kinds(diff(*words)[1])) == (1, ["object"])
    with daemon_in(cluster, server, tmp_path, node, **SHADOW) as daemon:
        wait_until(lambda: same(daemon))
    assert diff(*words)[0] == 0
    done = run_command("shadow", "diff", *words)
    assert f"last written by {PLUGIN} at" in done.stdout
    assert "Both say the same." in done.stdout


def test_a_quirk_of_the_device_plugin_is_explained(
    cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str, incumbent: Incumbent
) -> None:
    """A13 as upstream writes it, against our own object of the same faults."""
    rules = f"rules-{node}"
    frequency = [{"EventId": ["80E01801"], "TimeWindow": 3600, "Times": 1, "FaultHandling": "ManuallySeparateNPU"}]
    text = json.dumps({"FaultFrequency": frequency})
    place = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    cluster.create(place, "ConfigMap", rules, data={"faultCustomization.json": text})
    settings = {**SHADOW, "faults__config_map": f"{NAMESPACE}/{rules}"}
    incumbent.write("A13-upstream")
    with daemon_in(cluster, server, tmp_path, node, **settings) as daemon:
        wait_until(lambda: asked(daemon)[0] == 1)
        control.raise_fault(1, "80E01801")
        control.clear_fault(1, "80E01801")
        control.raise_fault(1, "8C204E00")
        wait_until(lambda: kinds(asked(daemon)[1]) == ["fault_level"], "only the quirk is left")
        (quirk,) = asked(daemon)[1]["differences"]
        assert (quirk["field"], quirk["theirs"]) == ("Ascend910-1 8C204E00", "ManuallySeparateNPU")
        assert "the device plugin gives every code of a chip the level" in quirk["explanation"]


def test_what_clusterd_would_refuse_is_told(
    cluster: Cluster, server: MockServer, tmp_path: Path, node: str, incumbent: Incumbent
) -> None:
    incumbent.put({"DeviceInfoCfg": "{}", "ManuallySeparateNPU": "", "UpgradeFaultReason": "{}", "Description": ""})
    with daemon_in(cluster, server, tmp_path, node, **SHADOW) as daemon:
        wait_until(lambda: kinds(asked(daemon)[1]) == ["unacceptable"])
        incumbent.write("A1")
        wait_until(lambda: same(daemon))


def test_an_outage_is_no_agreement_and_no_difference(
    cluster: Cluster, server: MockServer, tmp_path: Path, node: str, incumbent: Incumbent
) -> None:
    incumbent.write("A1")
    with daemon_in(cluster, server, tmp_path, node, **SHADOW) as daemon:
        wait_until(lambda: same(daemon))
        before = daemon.words().count("shadow differs")  # that there was no object of ours yet
        cluster.api_server.kill()
        wait_until(lambda: asked(daemon)[0] == 2, "it cannot tell")
        cluster.api_server.start()
        wait_until(lambda: same(daemon), "it can again")
        assert daemon.words().count("shadow differs") == before
