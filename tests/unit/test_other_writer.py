"""Who else writes our object (decision 22)."""

from typing import Any

import pytest
from contract.data.device_info.cases import VIEWS

from nodeagent.core.instant import Instant
from nodeagent.publish.other_writer import (
    NODE_INFO_RECENT_MS,
    RECENT_MS,
    OtherWriter,
    WriterGuard,
    foreign_parts,
    node_info_guard,
    node_info_writer,
    other_writer,
)
from nodeagent.render.device_info import config_map, render_device_info

WROTE_MS = 1_760_000_000_000
WROTE = "2025-10-09T08:53:20Z"


def managed(manager: str, fields: dict[str, Any] | None = None, time: object = WROTE) -> dict[str, Any]:
    by = {"manager": manager, "operation": "Update", "time": time}
    return {**by, "fieldsV1": {"f:data": {"f:DeviceInfoCfg": {}}} if fields is None else fields}


def published(*entries: dict[str, Any], **data: str) -> dict[str, Any]:
    obj: dict[str, Any] = config_map("worker-1", {**render_device_info(VIEWS["A1"](), WROTE_MS // 1000), **data})
    if entries:
        obj["metadata"]["managedFields"] = list(entries)
    return obj


def test_the_device_plugin_is_another_writer_for_a_quarter_of_an_hour() -> None:
    obj = published(managed("nodeagent", {"f:data": {}}), managed("device-plugin"))
    assert other_writer(obj, WROTE_MS + 1000) == OtherWriter("device-plugin", WROTE_MS)
    assert other_writer(obj, WROTE_MS + RECENT_MS) is not None
    assert other_writer(obj, WROTE_MS + RECENT_MS + 1) is None


@pytest.mark.parametrize(
    "entry",
    [
        managed("nodeagent"),
        managed("kubectl-edit"),
        managed("kubectl-client-side-apply"),
        managed("helper", {"f:data": {"f:ManuallySeparateNPU": {}}}),
        managed("helper", {}),
        managed("helper", time="yesterday"),
        managed("helper", time=None),
        {**managed("helper"), "manager": 7},
        {"manager": 7},
    ],
)
def test_we_people_and_those_who_own_another_field_are_not(entry: dict[str, Any]) -> None:
    assert other_writer(published(entry, Description="another text"), WROTE_MS) is None


def test_without_managed_fields_the_content_tells() -> None:
    assert other_writer(published(), WROTE_MS) is None
    assert other_writer(published(Description="Notice to people"), WROTE_MS) == OtherWriter("another program", WROTE_MS)
    assert other_writer(published(Description="Notice to people"), WROTE_MS + 2 * RECENT_MS) is None
    assert other_writer({"metadata": {}, "data": {"x": "y"}}, WROTE_MS) is None
    assert other_writer({}, WROTE_MS) is None


def test_the_guard_waits_until_the_other_one_has_been_quiet() -> None:
    guard = WriterGuard(overwrite=False)
    now = Instant(50_000, WROTE_MS + 60_000)
    assert guard.look(published(managed("device-plugin")), now)
    assert guard.wait_ms(now) == RECENT_MS - 60_000
    assert not guard.look(published(managed("device-plugin")), now), "told once"
    assert guard.wait_ms(now.plus_ms(RECENT_MS - 60_000)) == 0
    assert guard.writer is None


def test_a_later_write_of_the_other_one_prolongs_the_wait() -> None:
    guard = WriterGuard(overwrite=False)
    guard.look(published(managed("device-plugin")), Instant(0, WROTE_MS))
    later = Instant(300_000, WROTE_MS + 300_000)
    guard.look(published(managed("device-plugin", time="2025-10-09T08:58:20Z")), later)
    assert guard.wait_ms(later) == RECENT_MS


def test_an_object_that_only_we_wrote_ends_the_wait() -> None:
    guard = WriterGuard(overwrite=False)
    now = Instant(0, WROTE_MS)
    guard.look(published(managed("device-plugin")), now)
    guard.look(published(managed("nodeagent")), now)
    assert guard.wait_ms(now) == 0


def test_once_we_write_another_one_is_told_and_does_not_stop_us() -> None:
    guard = WriterGuard(overwrite=False)
    guard.begin()
    now = Instant(0, WROTE_MS)
    assert guard.look(published(managed("device-plugin")), now)
    assert guard.wait_ms(now) == 0
    assert guard.writer is not None


def test_a_site_may_say_that_it_does_not_matter() -> None:
    guard = WriterGuard(overwrite=True)
    now = Instant(0, WROTE_MS)
    assert guard.look(published(managed("device-plugin")), now)
    assert guard.wait_ms(now) == 0


def test_what_a_write_removes_is_named() -> None:
    obj = published(Foo="x")
    assert foreign_parts(published()) == []
    obj["metadata"] |= {
        "labels": {"mx-consumer-cim": "true", "team": "a"},
        "annotations": {"note": "b"},
        "ownerReferences": [{"kind": "Pod", "name": "p"}],
    }
    obj["binaryData"] = {"blob": ""}
    assert foreign_parts(obj) == [
        "annotation note",
        "binary key blob",
        "key Foo",
        "label team",
        "owner Pod/p",
    ]
    assert foreign_parts(published(), shadow=True) == ["label mx-consumer-cim"]
    assert foreign_parts({"metadata": None, "data": None}) == []


def test_a_writer_is_current_for_a_quarter_of_an_hour() -> None:
    guard = WriterGuard(overwrite=True)
    now = Instant(0, WROTE_MS)
    guard.look(published(managed("device-plugin")), now)
    assert guard.current(now.plus_ms(RECENT_MS)) is not None
    assert guard.current(now.plus_ms(RECENT_MS + 1)) is None


def test_noded_is_another_writer_of_the_node_info_object_for_35_minutes() -> None:
    """It writes again after 30 minutes (node-faults 4)."""
    obj = {"metadata": {"managedFields": [managed("noded", {"f:data": {"f:NodeInfo": {}}})]}}
    assert NODE_INFO_RECENT_MS == 35 * 60 * 1000
    assert node_info_writer(obj, WROTE_MS + NODE_INFO_RECENT_MS) == OtherWriter("noded", WROTE_MS)
    assert node_info_writer(obj, WROTE_MS + NODE_INFO_RECENT_MS + 1) is None
    guard = node_info_guard(overwrite=False)
    now = Instant(0, WROTE_MS)
    assert guard.look(obj, now)
    assert guard.wait_ms(now) == NODE_INFO_RECENT_MS


@pytest.mark.parametrize("manager", ["nodeagent", "kubectl-edit"])
def test_we_and_people_are_no_other_writers_of_it(manager: str) -> None:
    obj = {"metadata": {"managedFields": [managed(manager, {"f:data": {"f:NodeInfo": {}}})]}}
    assert node_info_writer(obj, WROTE_MS) is None
    assert node_info_writer({"metadata": {}}, WROTE_MS) is None
    assert node_info_writer({}, WROTE_MS) is None


def test_owners_and_keys_of_ours_are_not_foreign() -> None:
    owner = {"kind": "DaemonSet", "name": "nodeagent", "uid": "1"}
    obj = {"metadata": {"ownerReferences": [owner]}, "data": {"NodeInfo": ""}}
    assert foreign_parts(obj, known_keys={"NodeInfo"}, known_owners={"1"}) == []
    assert foreign_parts(obj) == ["key NodeInfo", "owner DaemonSet/nodeagent"]
