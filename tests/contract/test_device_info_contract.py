"""The self-check: good objects pass, each kind of bad one is refused with its rule (device-info 11, 15)."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from contract.data.device_info.cases import UPDATE_TIME_S, VIEWS, golden

from nodeagent.core.errors import ContractError
from nodeagent.render.contract import MAX_BYTES, check_device_info, check_object
from nodeagent.render.contract_text import ContractBreach
from nodeagent.render.device_info import config_map
from nodeagent.render.gojson import go_json

Document = dict[str, Any]


def good(case: str = "A4") -> dict[str, str]:
    return golden(case) | {"Description": "text"}


def breach(data: dict[str, str], newer_than_s: int = 0, keep_keys: tuple[str, ...] = ()) -> tuple[str, int]:
    """Key and rule of the breach that the check finds in `data`."""
    with pytest.raises(ContractError) as caught:
        check_device_info(data, newer_than_s, keep_keys)
    error = caught.value
    assert isinstance(error, ContractBreach)
    assert error.data_key in error.sentence
    assert f"rule {error.rule} " in error.sentence
    return error.data_key, error.rule


def changed(change: Callable[[Document], object], case: str = "A4", sign: bool = True) -> dict[str, str]:
    """A golden object with its `DeviceInfoCfg` changed and, unless told otherwise, its digest made to fit again."""
    data = good(case)
    document = json.loads(data["DeviceInfoCfg"])
    change(document)
    if sign:
        document["CheckCode"] = hashlib.sha256(go_json(document["DeviceInfo"]).encode()).hexdigest()
    return data | {"DeviceInfoCfg": go_json(document)}


def lists_changed(changes: dict[str, str | None], case: str = "A4") -> dict[str, str]:
    """A golden object with members of the device list replaced or removed."""

    def change(document: Document) -> None:
        lists = document["DeviceInfo"]["DeviceList"] | changes
        kept = {key: value for key, value in sorted(lists.items()) if value is not None}
        document["DeviceInfo"]["DeviceList"] = kept

    return changed(change, case)


def elements_changed(change: Callable[[list[Document]], object]) -> dict[str, str]:
    """A4 (a network and a chip element of Ascend910-2) with its fault list changed."""
    elements = json.loads(json.loads(good()["DeviceInfoCfg"])["DeviceInfo"]["DeviceList"][f"{P}-Fault"])
    change(elements)
    return lists_changed({f"{P}-Fault": go_json(elements)})


P = "huawei.com/Ascend910"


@pytest.mark.parametrize("case", VIEWS)
def test_golden_objects_pass(case: str) -> None:
    update_time_s = UPDATE_TIME_S.get(case, 1760000000)
    check_device_info(good(case), update_time_s - 1, tuple(golden(case)))


@pytest.mark.parametrize("case", ["A10-upstream"])
def test_known_bad_form_of_upstream_is_refused(case: str) -> None:
    assert breach(good("A10") | good(case)) == ("DeviceInfoCfg", 4)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("SuperPodID",), 4294967295),
        (("SuperPodID",), "3"),
        (("SuperPodID",), True),
        (("ServerIndex",), None),
        (("ServerIndex",), 1.0),
        (("DeviceInfo", "UpdateTime"), "1760000000"),
        (("DeviceInfo", "UpdateTime"), 2**63),
        (("DeviceInfo", "DeviceList", P), 1),
        (("DeviceInfo", "DeviceList"), None),
    ],
)
def test_rule_2_types_of_device_info(path: tuple[str, ...], value: object) -> None:
    def change(document: Document) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = value

    assert breach(changed(change)) == ("DeviceInfoCfg", 2)


def test_rule_3_update_time_must_exceed_the_previous_one() -> None:
    assert breach(good(), newer_than_s=1760000000) == ("DeviceInfoCfg", 3)
    check_device_info(good(), newer_than_s=1759999999)


def test_rule_3_update_time_zero_is_never_used_by_volcano() -> None:
    assert breach(changed(lambda document: document["DeviceInfo"].update(UpdateTime=0))) == ("DeviceInfoCfg", 3)


@pytest.mark.parametrize(
    "changes",
    [
        {P: None},
        {f"{P}-NetworkUnhealthy": None},
        {f"{P}-Recovering": None},
        {f"{P}-Fault": None},
        {f"{P}-Surplus": ""},
        {"huawei.com/npu": ""},
        {P: "Ascend910-0,Ascend910-x"},
        {P: "Ascend910-0, Ascend910-1"},
        {P: "Ascend910-0,"},
        {P: "npu-0"},
        {P: "Ascend910-2c-100-0"},
        {f"{P}-Unhealthy": "Ascend910--2"},
    ],
)
def test_rule_4_keys_and_names(changes: dict[str, str | None]) -> None:
    assert breach(lists_changed(changes)) == ("DeviceInfoCfg", 4)


def test_rule_4_only_a_950_has_a_rack() -> None:
    assert breach(changed(lambda document: document.update(RackID=1))) == ("DeviceInfoCfg", 4)
    assert breach(changed(lambda document: document.update(RackID=2**31), "A11")) == ("DeviceInfoCfg", 2)


def test_rule_4_foreign_name_in_the_fault_list() -> None:
    assert breach(elements_changed(lambda e: e[0].update(npu_name="npu-2"))) == ("DeviceInfoCfg", 4)


def test_rule_5_unhealthy_device_without_its_element() -> None:
    assert breach(lists_changed({f"{P}-Unhealthy": "Ascend910-2,Ascend910-3", P: ""})) == ("DeviceInfoCfg", 5)
    assert breach(lists_changed({f"{P}-NetworkUnhealthy": "Ascend910-3"})) == ("DeviceInfoCfg", 5)
    assert breach(elements_changed(lambda e: e.pop(1))) == ("DeviceInfoCfg", 5)


def test_rule_5_serious_device_that_is_not_unhealthy() -> None:
    assert breach(lists_changed({f"{P}-Unhealthy": ""})) == ("DeviceInfoCfg", 5)


def test_rule_5_device_both_available_and_unhealthy() -> None:
    assert breach(lists_changed({P: "Ascend910-1,Ascend910-2"})) == ("DeviceInfoCfg", 5)


def test_rule_5_three_levels_agree_and_type_exists() -> None:
    assert breach(elements_changed(lambda e: e[1].update(fault_handling="RestartNPU"))) == ("DeviceInfoCfg", 5)
    assert breach(elements_changed(lambda e: e[1].update(fault_type="NodeUnhealthy"))) == ("DeviceInfoCfg", 5)


def test_rule_6_every_code_has_its_entry() -> None:
    codes = "80C98008,8C204E00,80E18005"
    assert breach(elements_changed(lambda e: e[1].update(fault_code=codes))) == ("DeviceInfoCfg", 6)
    assert breach(elements_changed(lambda e: e[1].update(fault_code="80C98008"))) == ("DeviceInfoCfg", 6)


def test_rule_6_codes_are_upper_case() -> None:
    def lower(elements: list[Document]) -> None:
        elements[1]["fault_code"] = elements[1]["fault_code"].lower()
        times = elements[1]["fault_time_and_level_map"]
        elements[1]["fault_time_and_level_map"] = {code.lower(): entry for code, entry in times.items()}

    assert breach(elements_changed(lower)) == ("DeviceInfoCfg", 6)


def test_rule_6_levels_are_of_the_vocabulary_and_not_above_the_element() -> None:
    def set_level(level: object) -> Callable[[list[Document]], None]:
        return lambda e: e[1]["fault_time_and_level_map"]["80C98008"].update(fault_level=level)

    assert breach(elements_changed(set_level("Broken"))) == ("DeviceInfoCfg", 6)
    assert breach(elements_changed(set_level("SeparateNPU"))) == ("DeviceInfoCfg", 6)
    assert breach(elements_changed(set_level(3))) == ("DeviceInfoCfg", 2)


def test_rule_2_fault_time_is_an_integer() -> None:
    def text_time(elements: list[Document]) -> None:
        elements[1]["fault_time_and_level_map"]["80C98008"]["fault_time"] = "1"

    assert breach(elements_changed(text_time)) == ("DeviceInfoCfg", 2)


def test_rule_7_digest() -> None:
    assert breach(changed(lambda document: document.update(CheckCode="0" * 64), sign=False)) == ("DeviceInfoCfg", 7)
    assert breach(changed(lambda document: document.update(CheckCode=""), sign=False)) == ("DeviceInfoCfg", 7)


@pytest.mark.parametrize("text", ["{", "[1,", "NaN", '"\ud800"', '{"DeviceInfo":{},"DeviceInfo":{}}', "[" * 9999])
def test_rule_7_or_2_what_is_no_json_object(text: str) -> None:
    key, rule = breach(good() | {"DeviceInfoCfg": text})
    assert key in ("DeviceInfoCfg", "data")
    assert rule in (2, 7)


def test_rule_7_text_is_as_go_writes_it() -> None:
    document = json.loads(good()["DeviceInfoCfg"])
    assert breach(good() | {"DeviceInfoCfg": json.dumps(document)}) == ("DeviceInfoCfg", 7)
    swapped = go_json(dict(reversed(document.items())))
    assert breach(good() | {"DeviceInfoCfg": swapped}) == ("DeviceInfoCfg", 7)

    def unsorted(document: Document) -> None:
        info = document["DeviceInfo"]
        info["DeviceList"] = dict(reversed(info["DeviceList"].items()))

    assert breach(changed(unsorted)) == ("DeviceInfoCfg", 7)


def test_rule_7_backspace_and_form_feed_depend_on_the_go_version() -> None:
    assert breach(good("A7") | {"SwitchInfoCfg": '"\\b"'}) == ("SwitchInfoCfg", 7)
    assert breach(good("A7") | {"SwitchInfoCfg": '"\\f"'}) == ("SwitchInfoCfg", 7)
    assert breach(good("A7") | {"SwitchInfoCfg": '"\\\\b"'}) == ("SwitchInfoCfg", 2)


@pytest.mark.parametrize("text", ["", "null"])
def test_rule_8_what_crashes_volcano(text: str) -> None:
    assert breach(good() | {"DeviceInfoCfg": text}) == ("DeviceInfoCfg", 8)


def test_rule_8_no_key_vanishes() -> None:
    for key in good():
        data = good()
        del data[key]
        assert breach(data) == (key, 8)
    assert breach(good(), keep_keys=("SwitchInfoCfg",)) == ("SwitchInfoCfg", 8)


def test_rule_9_lists_are_sorted_and_unique() -> None:
    assert breach(lists_changed({P: "Ascend910-3,Ascend910-1"})) == ("DeviceInfoCfg", 9)
    assert breach(lists_changed({P: "Ascend910-2,Ascend910-10"})) == ("DeviceInfoCfg", 9)
    assert breach(lists_changed({P: "Ascend910-1,Ascend910-1"})) == ("DeviceInfoCfg", 9)


def test_rule_9_elements_and_codes_are_unique_network_first() -> None:
    assert breach(elements_changed(lambda e: e.append(e[1]))) == ("DeviceInfoCfg", 9)
    assert breach(elements_changed(lambda e: e.reverse())) == ("DeviceInfoCfg", 9)
    assert breach(elements_changed(lambda e: e[1].update(fault_code="80C98008,8C204E00,8C204E00"))) == (
        "DeviceInfoCfg",
        9,
    )


@pytest.mark.parametrize(
    ("text", "rule"),
    [("Ascend910-1,Ascend910-1", 9), (" Ascend910-1", 4), ("Ascend910-1, Ascend910-2", 4), ("npu-1", 4)],
)
def test_manual_list(text: str, rule: int) -> None:
    assert breach(good("A6") | {"ManuallySeparateNPU": text}) == ("ManuallySeparateNPU", rule)


def test_manual_list_is_in_order_of_logic_ids() -> None:
    check_device_info(good("A6") | {"ManuallySeparateNPU": "Ascend910-2,Ascend910-10,Ascend910-1"})


def _reason(**changes: object) -> str:
    reason = {
        "upgrade_time": 1,
        "fault_code": "80e01801",
        "fault_level": "SeparateNPU",
        "upgrade_type": "FaultDuration",
    }
    return go_json({"Ascend910-1": [reason | changes]})


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", 7),
        ("[]", 2),
        ('{"Ascend910-1":[]}', 2),
        ('{"Ascend910":[]}', 4),
        ('{"Ascend910-2c-100-1":[]}', 4),
        (_reason(upgrade_time="1"), 2),
        (_reason(fault_code="80E01801"), 6),
        (_reason(fault_level="Broken"), 6),
        (_reason(upgrade_type="Other"), 6),
        (_reason(surplus=1), 7),
    ],
)
def test_reasons(text: str, rule: int) -> None:
    assert breach(good() | {"UpgradeFaultReason": text}) == ("UpgradeFaultReason", rule)


def test_reasons_are_sorted_and_unique() -> None:
    first, second = (
        json.loads(_reason(fault_code=code))["Ascend910-1"][0] for code in ("80e01801", "AutofillFaultCode")
    )
    check_device_info(good() | {"UpgradeFaultReason": go_json({"Ascend910-1": [first, second]})})
    for reasons in ([second, first], [first, first]):
        assert breach(good() | {"UpgradeFaultReason": go_json({"Ascend910-1": reasons})}) == ("UpgradeFaultReason", 9)


def _switch(**changes: object) -> str:
    code = go_json({"EventType": 1, "AssembledFaultCode": "[0x08520003,na,npu,na]"})
    entry = {"fault_time": 1, "fault_level": "Separate"}
    switch = {"FaultCode": [code], "FaultLevel": "Separate", "UpdateTime": 1, "NodeStatus": "UnHealthy"}
    return go_json(switch | {"FaultTimeAndLevelMap": {"[0x08520003,na,npu,na]_2_11": entry}} | changes)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", 7),
        ("null", 2),
        (_switch(UpdateTime="1"), 2),
        (_switch(FaultCode="x"), 2),
        (_switch(FaultCode=[1]), 2),
        (_switch(FaultCode=["x"]), 7),
        (_switch(FaultCode=['{"a": 1}']), 7),
        (_switch(FaultCode=['{"SwitchChipId":-1}']), 2),
        (_switch(FaultCode=['{"AlarmRaisedTime":9223372036854775808}']), 2),
        (_switch(FaultCode=['{"AssembledFaultCode":5}']), 2),
        (_switch(FaultCode=None), 2),
        (_switch(FaultLevel="SeparateNPU"), 6),
        (_switch(NodeStatus="healthy"), 6),
        (_switch(FaultTimeAndLevelMap=None), 2),
        (_switch(FaultTimeAndLevelMap={"k": {"fault_time": 1, "fault_level": "x"}}), 6),
        (_switch(Surplus=1), 7),
    ],
)
def test_switch_part(text: str, rule: int) -> None:
    check_device_info(good("A7") | {"SwitchInfoCfg": _switch()})
    assert breach(good("A7") | {"SwitchInfoCfg": text}) == ("SwitchInfoCfg", rule)


def test_rule_12_size() -> None:
    data = good()
    room = MAX_BYTES - sum(len(key) + len(value) for key, value in data.items())
    check_device_info(data | {"Description": data["Description"] + "x" * (room - 1)})
    assert breach(data | {"Description": data["Description"] + "x" * room}) == ("data", 12)


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: obj.update(kind="Secret"),
        lambda obj: obj.update(binaryData={}),
        lambda obj: obj.pop("metadata"),
        lambda obj: obj["metadata"].update(namespace="default"),
        lambda obj: obj["metadata"].update(name="worker-1"),
        lambda obj: obj["metadata"].update(name="mindx-dl-deviceinfo-"),
        lambda obj: obj["metadata"].update(name="mindx-dl-deviceinfo-Worker"),
        lambda obj: obj["metadata"].update(name="mindx-dl-deviceinfo-" + "a" * 231),
        lambda obj: obj["metadata"].update(labels={}),
        lambda obj: obj["metadata"]["labels"].update(more="1"),
    ],
)
def test_rule_1_identity(change: Callable[[dict[str, Any]], object]) -> None:
    obj: dict[str, Any] = config_map("worker-1", good())
    check_object(obj)
    change(obj)
    with pytest.raises(ContractBreach) as caught:
        check_object(obj)
    assert caught.value.data_key == "metadata"
    assert caught.value.rule in (1, 2)
