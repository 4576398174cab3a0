"""What counts as left behind by us, and what is kept."""

import json
from typing import Any, ClassVar

import pytest

from nodeagent.publish.leftovers import (
    KINDS,
    RECENT_MS,
    Leftover,
    What,
    conditions_patch,
    config_map_leftover,
    kind_of,
    marks_patch,
    node_leftovers,
    nodes_of,
)
from nodeagent.publish.public_fault_leftover import recovery_of
from nodeagent.render.device_info import object_name

AT_MS = 1796040000000  # 2026-11-30T12:00:00Z
LATER_MS = AT_MS + RECENT_MS + 1
DEVICE_INFO = KINDS[0]
DATA = {"f:data": {".": {}, "f:DeviceInfoCfg": {}, "f:ManuallySeparateNPU": {}}}


def entry(manager: str, fields: Any, time: str = "2026-11-30T12:00:00Z") -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


def config_map(*entries: dict[str, Any]) -> dict[str, Any]:
    name = object_name("worker-1")
    return {
        "name": name,
        "namespace": "kube-system",
        "uid": "u",
        "resourceVersion": "7",
        "managedFields": list(entries),
    }


class TestConfigMaps:
    def test_one_that_we_wrote_last_is_ours(self) -> None:
        edit = entry("kubectl-edit", {"f:data": {"f:ManuallySeparateNPU": {}}}, "2026-11-30T13:00:00Z")
        found = config_map_leftover(config_map(entry("nodeagent", DATA), edit), DEVICE_INFO, LATER_MS)
        place = "kube-system/mindx-dl-deviceinfo-worker-1"
        assert found == Leftover(What.CONFIG_MAP, place, uid="u", version="7"), "an operator's edit changes nothing"

    @pytest.mark.parametrize(
        ("entries", "why"),
        [
            ([], "no record"),
            ([entry("nodeagent", {"f:data": {"f:Description": {}}})], "no record"),
            ([entry("device-plugin", DATA)], "written by device-plugin, last at 2026-11-30 12:00:00 UTC"),
            ([entry("nodeagent", DATA), entry("device-plugin", DATA)], "written by device-plugin"),
            ([entry("kubectl-client-side-apply", DATA)], "written by kubectl-client-side-apply"),
            ([entry("nodeagent-2", DATA)], "written by nodeagent-2"),
        ],
    )
    def test_any_other_is_kept(self, entries: list[dict[str, Any]], why: str) -> None:
        assert why in config_map_leftover(config_map(*entries), DEVICE_INFO, LATER_MS).kept

    def test_one_that_was_written_just_now_comes_back(self) -> None:
        ours = config_map(entry("nodeagent", DATA))
        assert "written 5 s ago" in config_map_leftover(ours, DEVICE_INFO, AT_MS + 5000).note
        assert config_map_leftover(ours, DEVICE_INFO, LATER_MS).note == ""
        assert config_map_leftover(ours, DEVICE_INFO, AT_MS - 5000).note == "", (
            "a clock of ours that is behind says nothing"
        )

    def test_the_node_of_a_shadow(self) -> None:
        shadow = {"namespace": "kube-system", "name": object_name("worker-1", shadow=True)}
        assert nodes_of(config_map()) == {"worker-1"}
        assert nodes_of(shadow) == {"worker-1", "worker-1-shadow"}

    @pytest.mark.parametrize(
        ("namespace", "name", "label"),
        [
            ("kube-system", "mindx-dl-deviceinfo-worker-1", "device_info"),
            ("mindx-dl", "mindx-dl-nodeinfo-worker-1", "node_info"),
            ("mindx-dl", "nodeagent-publicfault-dpc-worker-1", "public_fault"),
            ("mindx-dl", "nodeagent-publicfault-dtfs-worker-1", "public_fault"),
            ("mindx-dl", "nodeagent-publicfault-dtfs-worker-1-shadow", "public_fault"),
            ("mindx-dl", "mindx-dl-deviceinfo-worker-1", ""),
            ("kube-system", "mindx-dl-nodeinfo-worker-1", ""),
            ("mindx-dl", "nodeagent-publicfault-other-worker-1", ""),
            ("mindx-dl", "mindx-dl-node-fault-config", ""),
        ],
    )
    def test_what_may_be_ours_by_its_name(self, namespace: str, name: str, label: str) -> None:
        metadata = {"namespace": namespace, "name": name}
        kind = kind_of(metadata)
        assert ("" if kind is None else kind.label) == label
        assert kind is None or "worker-1" in nodes_of(metadata)

    def test_noded_keeps_its_node_info(self) -> None:
        kind = kind_of({"namespace": "mindx-dl", "name": "mindx-dl-nodeinfo-worker-1"})
        assert kind is not None
        written = entry("noded", {"f:data": {"f:NodeInfo": {}}})
        assert "NodeInfo is written by noded" in config_map_leftover(config_map(written), kind, LATER_MS).kept


class TestPublicFaults:
    """Deleting such an object does nothing at ClusterD (node-faults 13.4)."""

    LABELS: ClassVar = {"mc-consumer-publicfault": "true"}

    @staticmethod
    def obj(*assertions: str, labels: Any = LABELS, **data: str) -> dict[str, Any]:
        faults = [{"faultId": f"fault-{n}", "assertion": each} for n, each in enumerate(assertions)]
        message = {"id": "old-id", "timestamp": 1, "version": "1.0", "resource": "dpcStorage", "faults": faults}
        return {"metadata": {"labels": labels}, "data": {"PublicFault": json.dumps(message), **data}}

    def test_what_stands_is_told_as_recovered(self) -> None:
        obj = self.obj("occur", "recover", "occur")
        told = recovery_of(obj, "new-id", 1796040000000)
        assert told is not None
        assert told["metadata"] == obj["metadata"]
        message = json.loads(told["data"]["PublicFault"])  # type: ignore[index]
        assert list(message) == ["id", "timestamp", "version", "resource", "faults"]
        assert (message["id"], message["timestamp"]) == ("new-id", 1796040000000)
        assert message["faults"] == [
            {"faultId": "fault-0", "assertion": "recover"},
            {"faultId": "fault-2", "assertion": "recover"},
        ]

    @pytest.mark.parametrize(
        "obj",
        [
            obj("recover"),
            obj(),
            obj("occur", labels={}),
            obj("occur", labels=None),
            obj("occur", PublicFault="{"),
            obj("occur", PublicFault="[]"),
            {"metadata": {"labels": LABELS}},
            {},
        ],
    )
    def test_nothing_stands(self, obj: dict[str, Any]) -> None:
        assert recovery_of(obj, "new-id", 1) is None


MARKS = {
    "f:metadata": {
        "f:labels": {".": {}, "f:accelerator": {}, "f:servertype": {}, "f:strange": {}, "f:gone": {}},
        "f:annotations": {".": {}, "f:baseDeviceInfos": {}},
    }
}
STATUS = {
    "f:status": {
        "f:conditions": {
            'k:{"type":"AscendChipsHealthy"}': {".": {}, "f:status": {}},
            'k:{"type":"Other"}': {".": {}},
            "k:[]": {},
            "k:{": {},
        }
    }
}


def node(*entries: dict[str, Any]) -> dict[str, Any]:
    labels = {"accelerator": "huawei-Ascend910", "servertype": "x", "strange": "x", "workerselector": "x"}
    return {
        "name": "worker-1",
        "uid": "u",
        "resourceVersion": "7",
        "labels": labels,
        "annotations": {"baseDeviceInfos": "{}"},
        "managedFields": list(entries),
    }


class TestNodes:
    def test_exactly_what_we_set_is_ours(self) -> None:
        theirs = entry("device-plugin", {"f:metadata": {"f:labels": {"f:servertype": {}, "f:workerselector": {}}}})
        found = node_leftovers(node(entry("nodeagent", MARKS), entry("nodeagent", STATUS), theirs))
        assert {(each.what, each.name, each.kept) for each in found} == {
            (What.LABEL, "accelerator", ""),
            (What.LABEL, "servertype", "also set by device-plugin"),
            (What.LABEL, "strange", "not a name that nodeagent writes"),
            (What.ANNOTATION, "baseDeviceInfos", ""),
            (What.CONDITION, "AscendChipsHealthy", ""),
        }

    def test_patches_name_nothing_else_and_the_version_that_was_seen(self) -> None:
        found = [each for each in node_leftovers(node(entry("nodeagent", MARKS))) if not each.kept]
        assert marks_patch(found) == {
            "metadata": {
                "labels": {"accelerator": None, "servertype": None},
                "annotations": {"baseDeviceInfos": None},
                "resourceVersion": "7",
            }
        }
        assert conditions_patch(found) is None
        only = node_leftovers(node(entry("nodeagent", STATUS)))
        assert marks_patch(only) is None
        gone = [{"$patch": "delete", "type": "AscendChipsHealthy"}]
        assert conditions_patch(only) == {"status": {"conditions": gone}}

    @pytest.mark.parametrize("managed", [None, []])
    def test_without_a_record_nothing_is_ours(self, managed: object) -> None:
        """As of a node that was created without a single field: the API server then keeps none."""
        found = node_leftovers({**node(), "managedFields": managed})
        assert [each.name for each in found] == ["servertype", "accelerator", "baseDeviceInfos"]
        assert all("no record" in each.kept for each in found)

    @pytest.mark.parametrize("managed", [[entry("nodeagent", None)], [entry("kubelet", MARKS)]])
    def test_a_node_that_we_did_not_mark(self, managed: object) -> None:
        assert node_leftovers({**node(), "managedFields": managed}) == []
