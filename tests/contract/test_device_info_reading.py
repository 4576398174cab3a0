"""Reading objects back: ours, upstream's, and whatever somebody else put there (device-info 11.1)."""

import contextlib
import json
from typing import Any

import pytest
from contract.data.device_info.cases import SOME_MS, VIEWS, golden
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeagent.core.errors import ReadBackError
from nodeagent.core.levels import Level, Plane
from nodeagent.core.observation import CarriedFault
from nodeagent.render.gojson import check_code, go_json
from nodeagent.render.reading import ParsedFault, parse_device_info, published_update_time

P = "huawei.com/Ascend910"
any_pace = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def signed(device_list: dict[str, Any], update_time_s: int = 7, **more: object) -> dict[str, str]:
    """An object that ClusterD accepts, with the given device list."""
    info = {"DeviceList": dict(sorted(device_list.items())), "UpdateTime": update_time_s}
    return {"DeviceInfoCfg": go_json({"DeviceInfo": info, "CheckCode": check_code(device_list, update_time_s)} | more)}


def fault_list(**changes: object) -> str:
    element = {
        "fault_type": "CardUnhealthy",
        "npu_name": "Ascend910-1",
        "fault_level": "RestartNPU",
        "fault_code": "A1",
    }
    return go_json([element | changes])


@pytest.mark.parametrize("case", VIEWS)
def test_golden_objects_are_read_back(case: str) -> None:
    parsed = parse_device_info(golden(case))
    view = VIEWS[case]()
    healthy = [chip for chip in view.chips if chip.healthy and not chip.used and not chip.vnpus]
    assert len(parsed.available) == len(healthy)
    assert {fault.physical_id for fault in parsed.faults} == {
        chip.chip.physical_id for chip in view.chips if chip.faults or chip.reasons
    }
    assert parsed.super_pod_id == view.product.super_pod.super_pod_id
    assert f"huawei.com/{parsed.product}" == view.product.family.resource


def test_everything_of_a_network_and_chip_fault_is_there() -> None:
    parsed = parse_device_info(golden("A4"))
    assert parsed.unhealthy == ("Ascend910-2",)
    assert parsed.network_unhealthy == parsed.recovering == ()
    assert parsed.update_time_s == 1760000000
    link, first, second = parsed.faults
    assert link == ParsedFault("Ascend910-2", 2, Plane.NETWORK, "81078603", 0x81078603, Level.NOT_HANDLE, 1759999990123)
    assert (first.plane, first.level, first.since_ms) == (Plane.CHIP, Level.RESTART_REQUEST, SOME_MS + 1000)
    assert (second.code_text, second.level) == ("8C204E00", Level.RESTART_BUSINESS)


def test_rack_and_hyper_plane_of_a_950() -> None:
    parsed = parse_device_info(golden("A11"))
    assert (parsed.super_pod_id, parsed.server_index, parsed.rack_id) == (12, 2, 5)
    assert {fault.plane for fault in parsed.faults} == {Plane.HYPERPLANE}


def test_vnpus_of_one_chip_are_carried_once() -> None:
    parsed = parse_device_info(golden("A12"))
    assert len(parsed.faults) == 2
    assert parsed.carried() == (CarriedFault(0, 0x80E18402, Level.SEPARATE, SOME_MS),)


def test_310_as_upstream_writes_it_is_understood() -> None:
    lists = {"huawei.com/Ascend310": "", "huawei.com/Ascend310P-Fault": fault_list(npu_name="Ascend310-1")}
    assert parse_device_info(signed(lists)).carried() == (CarriedFault(1, 0xA1, Level.RESTART_NPU, 0),)
    assert parse_device_info(golden("A10-upstream")).product == "Ascend310"


def test_code_without_an_entry_has_the_level_of_its_element_and_no_time() -> None:
    lists = {P: "", f"{P}-Fault": fault_list(fault_code="A1, B2")}
    assert [(fault.code, fault.level, fault.since_ms) for fault in parse_device_info(signed(lists)).faults] == [
        (0xA1, Level.RESTART_NPU, 0),
        (0xB2, Level.RESTART_NPU, 0),
    ]


def test_element_without_codes_is_read_and_not_carried() -> None:
    lists = {P: "", f"{P}-Fault": fault_list(fault_code="", fault_level="ManuallySeparateNPU")}
    parsed = parse_device_info(signed(lists))
    assert [(fault.code, fault.level) for fault in parsed.faults] == [(None, Level.MANUALLY_SEPARATE)]
    assert parsed.carried() == ()


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"DeviceInfoCfg": None},
        {"DeviceInfoCfg": ""},
        {"DeviceInfoCfg": "null"},
        {"DeviceInfoCfg": "[" * 100_000},
        {"DeviceInfoCfg": "1" * 5000},
        golden("A1") | {"DeviceInfoCfg": golden("A1")["DeviceInfoCfg"].replace("Ascend910-7", "Ascend910-8")},
        golden("A1") | {"DeviceInfoCfg": golden("A1")["DeviceInfoCfg"].replace(":-2,", ":4294967295,")},
        golden("A1") | {"DeviceInfoCfg": golden("A1")["DeviceInfoCfg"].replace(":-2,", ":-2.0,")},
        signed({}),
        signed({P: ""}, SuperPodID=True),
        signed({P: "", "huawei.com/npu": ""}),
        signed({P: 1}),
        signed({P: "", f"{P}-Fault": "x"}),
        signed({P: "", f"{P}-Fault": "{}"}),
        signed({P: "", f"{P}-Fault": "[1]"}),
        signed({P: "", f"{P}-Fault": fault_list(npu_name="Ascend910")}),
        signed({P: "", f"{P}-Fault": fault_list(npu_name="Ascend910-" + "9" * 5000)}),
        signed({P: "", f"{P}-Fault": fault_list(fault_level="Broken")}),
        signed({P: "", f"{P}-Fault": fault_list(fault_type="NodeUnhealthy")}),
        signed({P: "", f"{P}-Fault": fault_list(fault_time_and_level_map={"A1": 1})}),
        {"DeviceInfoCfg": '{"DeviceInfo":{"DeviceList":{"\\ud800":""},"UpdateTime":1},"CheckCode":""}'},
        {"DeviceInfoCfg": '{"DeviceInfo":{"DeviceList":{"a":"\\ud800"},"UpdateTime":1},"CheckCode":""}'},
    ],
)
def test_what_consumers_would_not_accept_is_a_read_back_error(data: dict[str, object]) -> None:
    with pytest.raises(ReadBackError):
        parse_device_info(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def _read_any(data: dict[str, Any]) -> None:
    with contextlib.suppress(ReadBackError):
        parse_device_info(data).carried()
    assert published_update_time(data) >= 0


@any_pace
@given(st.dictionaries(st.sampled_from(["DeviceInfoCfg", "other"]), st.text() | JSON))
def test_arbitrary_content_gives_an_answer_or_a_read_back_error(data: dict[str, Any]) -> None:
    _read_any(data)


@any_pace
@given(JSON, JSON, JSON, st.sampled_from(["DeviceInfo", "DeviceList", "UpdateTime", "CheckCode", "SuperPodID"]))
def test_arbitrary_members_in_the_right_places(first: Any, second: Any, third: Any, name: str) -> None:
    info: dict[str, Any] = {"DeviceList": first, "UpdateTime": second}
    document = {"DeviceInfo": info, "CheckCode": third, "SuperPodID": 1}
    (info if name in info else document)[name] = first
    _read_any({"DeviceInfoCfg": json.dumps(document)})


@any_pace
@given(JSON, st.sampled_from([*json.loads(fault_list())[0], "fault_time_and_level_map", None]))
def test_arbitrary_fault_lists_under_a_right_digest(value: Any, name: str | None) -> None:
    text = json.dumps(value) if name is None else json.dumps([json.loads(fault_list())[0] | {name: value}])
    _read_any(signed({P: "", f"{P}-Fault": text}))


@any_pace
@given(st.integers(0, len(golden("A4")["DeviceInfoCfg"]) - 1), st.characters(codec="utf-8"))
def test_one_changed_character_is_never_a_crash(position: int, character: str) -> None:
    text = golden("A4")["DeviceInfoCfg"]
    _read_any({"DeviceInfoCfg": text[:position] + character + text[position + 1 :]})


@pytest.mark.parametrize(
    ("text", "update_time_s"),
    [
        (golden("A5")["DeviceInfoCfg"], 1760000025),
        (golden("A5")["DeviceInfoCfg"].replace("Ascend910-7", ""), 1760000025),
        ('{"DeviceInfo":{"UpdateTime":9}}', 9),
        ('{"DeviceInfo":{"UpdateTime":-1}}', 0),
        ('{"DeviceInfo":{"UpdateTime":"9"}}', 0),
        ('{"DeviceInfo":{"UpdateTime":9223372036854775807}}', 0),
        ("", 0),
    ],
)
def test_update_time_is_found_in_bad_objects_too(text: str, update_time_s: int) -> None:
    assert published_update_time({"DeviceInfoCfg": text}) == update_time_s
