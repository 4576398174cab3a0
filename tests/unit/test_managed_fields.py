"""Who wrote what, as the API server says it."""

from typing import Any

import pytest

from nodeagent.publish.managed_fields import Manager, names_below, owners


def entry(manager: str, fields: Any, time: object = "2026-11-30T12:00:00Z") -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


DATA = {"f:data": {".": {}, "f:DeviceInfoCfg": {}}}


def test_the_latest_writer_of_a_field_comes_first() -> None:
    metadata = {
        "managedFields": [
            entry("nodeagent", DATA),
            entry("plugin", DATA, "2026-11-30T12:00:01Z"),
            entry("kubectl-edit", {"f:data": {"f:ManuallySeparateNPU": {}}}, "2026-11-30T13:00:00Z"),
        ]
    }
    assert owners(metadata, "f:data", "f:DeviceInfoCfg") == (
        Manager("plugin", 1796040001000),
        Manager("nodeagent", 1796040000000),
    )
    assert owners(metadata, "f:data", "f:Nothing") == ()


def test_names_of_one_manager() -> None:
    labels = {"f:metadata": {"f:labels": {".": {}, "f:accelerator": {}, "f:servertype": {}}}}
    metadata = {
        "managedFields": [entry("nodeagent", labels), entry("kubelet", {"f:metadata": {"f:labels": {"f:x": {}}}})]
    }
    assert names_below(metadata, "nodeagent", "f:metadata", "f:labels") == {"f:accelerator", "f:servertype"}
    assert names_below(metadata, "nodeagent", "f:metadata", "f:annotations") == set()


@pytest.mark.parametrize(
    "managed", [None, 3, [None, 3], [{}], [entry("nodeagent", None)], [entry("nodeagent", {"f:data": 3})]]
)
def test_a_record_of_another_form_says_nothing(managed: object) -> None:
    assert owners({"managedFields": managed}, "f:data", "f:DeviceInfoCfg") == ()
    assert names_below({"managedFields": managed}, "nodeagent", "f:data") == set()


@pytest.mark.parametrize("time", [None, 3, "", "yesterday"])
def test_a_time_that_is_none(time: object) -> None:
    assert owners({"managedFields": [entry("x", DATA, time)]}, "f:data", "f:DeviceInfoCfg") == (Manager("x", 0),)


@pytest.mark.parametrize("other", [{}, {"manager": 7}])
def test_a_writer_without_a_name_is_one_all_the_same(other: dict[str, Any]) -> None:
    nameless = {"time": "2026-11-30T12:00:00Z", "fieldsV1": DATA, **other}
    assert owners({"managedFields": [nameless]}, "f:data", "f:DeviceInfoCfg") == (Manager("", 1796040000000),)
