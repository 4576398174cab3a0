"""Details of the renderer that no worked example shows (device-info 4, 6, 7, 15; chip-faults 12.4)."""

import json
from dataclasses import replace
from typing import Any

import pytest
from contract.data.device_info.cases import SOME_MS, VIEWS, chip, chip_id, fault, node

from nodeagent.core.levels import Level
from nodeagent.core.model import (
    ChipView,
    Family,
    NodeView,
    Reason,
    SuperPod,
    SwitchFaultView,
    SwitchView,
    UpgradeType,
)
from nodeagent.core.switch import NO_FAULT_ID, SwitchRecord
from nodeagent.core.switch_codes import SwitchLevel
from nodeagent.render.contract import check_device_info
from nodeagent.render.device_info import (
    fingerprint,
    render_bounded,
    render_device_info,
    size_bytes,
)

NOW_S = 1760000000


def device_list(view: NodeView) -> dict[str, str]:
    data = render_device_info(view, NOW_S)
    check_device_info(data)
    lists: dict[str, str] = json.loads(data["DeviceInfoCfg"])["DeviceInfo"]["DeviceList"]
    return lists


def elements(view: NodeView) -> list[dict[str, Any]]:
    lists = device_list(view)
    found: list[dict[str, Any]] = json.loads(lists[f"{view.product.family.resource}-Fault"])
    return found


def reason(text: str, level: Level, time_ms: int = 5, kind: UpgradeType = UpgradeType.DURATION) -> Reason:
    return Reason(time_ms, text, level, kind)


def test_reason_more_serious_than_the_code_decides_level_and_time() -> None:
    active = fault("80C98008", Level.RESTART_REQUEST)
    view = node(Family.A2, 1, {0: chip(0, Level.SEPARATE, active, reasons=(reason("80c98008", Level.SEPARATE),))})
    (element,) = elements(view)
    assert element["fault_time_and_level_map"] == {"80C98008": {"fault_time": 5, "fault_level": "SeparateNPU"}}


def test_reason_as_serious_as_the_code_tells_the_time_of_the_upgrade() -> None:
    active = fault("80C98008", Level.SEPARATE)
    view = node(Family.A2, 1, {0: chip(0, Level.SEPARATE, active, reasons=(reason("80c98008", Level.SEPARATE),))})
    (element,) = elements(view)
    assert element["fault_time_and_level_map"]["80C98008"]["fault_time"] == 5


def test_milder_reason_changes_nothing() -> None:
    mild = reason("80c98008", Level.NOT_HANDLE)
    active = fault("80C98008", Level.RESTART_REQUEST)
    (element,) = elements(node(Family.A2, 1, {0: chip(0, Level.RESTART_REQUEST, active, reasons=(mild,))}))
    entry = {"fault_time": SOME_MS, "fault_level": "RestartRequest"}
    assert element["fault_time_and_level_map"] == {"80C98008": entry}


@pytest.mark.parametrize("order", [1, -1])
def test_most_serious_of_several_reasons_decides_in_any_order(order: int) -> None:
    reasons = (
        reason("81078603", Level.MANUALLY_SEPARATE, 820, UpgradeType.FREQUENCY),
        reason("81078603", Level.PRE_SEPARATE, 900),
    )[::order]
    link = ChipView(
        chip_id(0),
        (fault("81078603", Level.NOT_HANDLE),),
        network_level=Level.MANUALLY_SEPARATE,
        network_healthy=False,
        reasons=reasons,
    )
    (element,) = elements(node(Family.A2, 1, {0: link}))
    entry = {"fault_time": 820, "fault_level": "ManuallySeparateNPU"}
    assert element["fault_time_and_level_map"] == {"81078603": entry}


def test_codes_known_only_by_a_reason_come_last_and_sorted() -> None:
    view = node(
        Family.A2,
        1,
        {
            0: chip(
                0,
                Level.SEPARATE,
                fault("F0000001", Level.NOT_HANDLE),
                reasons=(reason("b0000002", Level.SEPARATE), reason("a0000003", Level.SEPARATE)),
            )
        },
    )
    assert elements(view)[0]["fault_code"] == "F0000001,A0000003,B0000002"


def test_code_spelt_differently_in_rule_and_table_is_one_code() -> None:
    active = fault("020001002", Level.NOT_HANDLE)
    view = node(Family.A5, 1, {0: chip(0, Level.SEPARATE, active, reasons=(reason("20001002", Level.SEPARATE),))})
    assert elements(view)[0]["fault_code"] == "020001002"


def test_code_reported_twice_is_listed_once() -> None:
    active = fault("80C98008", Level.RESTART_REQUEST)
    view = node(Family.A2, 1, {0: chip(0, Level.RESTART_REQUEST, active, replace(active, since_ms=9))})
    assert elements(view)[0]["fault_code"] == "80C98008"


def test_autofilled_reason_alone_makes_an_element_without_codes() -> None:
    autofill = reason("AutofillFaultCode", Level.MANUALLY_SEPARATE, kind=UpgradeType.AUTOFILL)
    view = node(Family.A2, 1, {0: chip(0, Level.MANUALLY_SEPARATE, manually_separated=True, reasons=(autofill,))})
    (element,) = elements(view)
    assert (element["fault_type"], element["fault_code"]) == ("CardUnhealthy", "")
    assert (element["fault_level"], element["fault_time_and_level_map"]) == ("ManuallySeparateNPU", {})


def test_active_reason_makes_an_element_on_a_healthy_device() -> None:
    used = chip(0, Level.PRE_SEPARATE, healthy=True, used=True, reasons=(reason("80cb8002", Level.PRE_SEPARATE),))
    assert [element["fault_code"] for element in elements(node(Family.A2, 1, {0: used}))] == ["80CB8002"]


def test_unhealthy_device_without_codes_has_an_element() -> None:
    (element,) = elements(node(Family.A310P, 2, {1: ChipView(chip_id(1), healthy=False)}))
    assert (element["npu_name"], element["fault_code"], element["fault_level"]) == ("Ascend310P-1", "", "NormalNPU")


def test_network_unhealthy_device_without_codes_has_a_network_element() -> None:
    (element,) = elements(node(Family.A2, 1, {0: ChipView(chip_id(0), network_healthy=False)}))
    assert (element["fault_type"], element["fault_code"]) == ("CardNetworkUnhealthy", "")


def test_devices_of_one_type_stand_together_and_types_are_sorted() -> None:
    def broken(number: int, **more: object) -> ChipView:
        return chip(number, Level.SEPARATE, fault("80E18402", Level.SEPARATE), **more)

    view = node(Family.A310P, 2, {0: broken(0, vnpus=("Ascend310P-4c-101-0", "Ascend310P-2c-100-0")), 1: broken(1)})
    names = [element["npu_name"] for element in elements(view)]
    assert names == ["Ascend310P-1", "Ascend310P-2c-100-0", "Ascend310P-4c-101-0"]


def test_elements_follow_the_drivers_order_and_lists_the_alphabet() -> None:
    broken = {n: chip(n, Level.SEPARATE, fault("80E18402", Level.SEPARATE)) for n in (2, 10)}
    view = node(Family.A3, 16, broken)
    assert [element["npu_name"] for element in elements(view)] == ["Ascend910-2", "Ascend910-10"]
    assert device_list(view)["huawei.com/Ascend910-Unhealthy"] == "Ascend910-10,Ascend910-2"


def test_manual_list_is_ordered_by_logic_id_not_by_name() -> None:
    view = node(Family.A3, 16, {n: ChipView(chip_id(n), manually_separated=True) for n in (2, 10)})
    turned = replace(view, chips=tuple(reversed(view.chips)))
    assert render_device_info(turned, NOW_S)["ManuallySeparateNPU"] == "Ascend910-2,Ascend910-10"


def test_chip_in_reset_is_recovering_and_not_offered() -> None:
    lists = device_list(node(Family.A2, 2, {1: ChipView(chip_id(1), recovering=True)}))
    assert lists["huawei.com/Ascend910"] == "Ascend910-0"
    assert lists["huawei.com/Ascend910-Recovering"] == "Ascend910-1"


def test_reasons_are_sorted_and_the_newest_of_equal_ones_stays() -> None:
    reasons = (
        reason("b1", Level.SEPARATE, 1),
        reason("a1", Level.SEPARATE, 7, UpgradeType.FREQUENCY),
        reason("a1", Level.SEPARATE, 9, UpgradeType.FREQUENCY),
        reason("a1", Level.SEPARATE, 8, UpgradeType.FREQUENCY),
        reason("a1", Level.SEPARATE, 2),
    )
    data = render_device_info(node(Family.A5, 1, {0: chip(0, Level.SEPARATE, reasons=reasons)}), NOW_S)
    found = json.loads(data["UpgradeFaultReason"])["npu-0"]
    assert [(r["fault_code"], r["upgrade_type"], r["upgrade_time"]) for r in found] == [
        ("a1", "FaultDuration", 2),
        ("a1", "FaultFrequency", 9),
        ("b1", "FaultDuration", 1),
    ]


@pytest.mark.parametrize(("pod_type", "shown"), [(0, False), (1, True), (2, True), (3, False)])
def test_rack_only_in_1d_and_2d_pods_of_the_950(pod_type: int, shown: bool) -> None:
    pod = SuperPod(1, 2, 3, pod_type)
    assert ("RackID" in json.loads(render_device_info(node(Family.A5, 1, None, pod), 1)["DeviceInfoCfg"])) is shown
    assert "RackID" not in json.loads(render_device_info(node(Family.A3, 1, None, pod), 1)["DeviceInfoCfg"])


def test_switch_part_with_faults() -> None:
    faults = (switch_fault(9, 2, SwitchLevel.SEPARATE), switch_fault(10, 1, SwitchLevel.NOT_HANDLE))
    data = render_device_info(node(Family.A3, 1, switch=SwitchView(True, faults, SwitchLevel.SEPARATE)), NOW_S)
    check_device_info(data)
    switch = json.loads(data["SwitchInfoCfg"])
    assert [json.loads(text)["SwitchPortId"] for text in switch["FaultCode"]] == [9, 10], "in order of arrival"
    assert list(switch["FaultTimeAndLevelMap"]) == [f"{PORT_DOWN}_2_10", f"{PORT_DOWN}_2_9"], "in order of bytes"
    assert (switch["FaultLevel"], switch["NodeStatus"]) == ("Separate", "UnHealthy")


PORT_DOWN = "[0x08520003,na,npu,na]"


def switch_fault(
    port: int, raised_ms: int, level: SwitchLevel = SwitchLevel.SEPARATE, chip: int = 2
) -> SwitchFaultView:
    """A port towards an NPU that is down."""
    return SwitchFaultView(SwitchRecord(0x08520003, NO_FAULT_ID, 1, 5, chip, port, 2, 1, raised_ms), PORT_DOWN, level)


def _fingerprint(view: NodeView, update_time_s: int = NOW_S) -> str:
    return fingerprint(render_device_info(view, update_time_s))


@pytest.mark.parametrize("case", VIEWS)
def test_a_later_write_of_the_same_view_has_the_same_fingerprint(case: str) -> None:
    view = VIEWS[case]()
    assert _fingerprint(view) == _fingerprint(view, NOW_S + 300)


def test_all_worked_examples_differ_in_their_fingerprint() -> None:
    # A7 and A8 differ in the switch part alone.
    assert len({_fingerprint(view()) for view in VIEWS.values()}) == len(VIEWS)


def test_times_of_faults_do_not_count() -> None:
    def view(time_ms: int) -> NodeView:
        broken = chip(0, Level.SEPARATE, fault("80E18402", Level.SEPARATE, time_ms))
        return node(Family.A3, 1, {0: broken}, switch=SwitchView(True))

    assert _fingerprint(view(1)) == _fingerprint(view(-12345))


def test_times_of_reasons_and_levels_of_switch_faults_count() -> None:
    def with_reason(time_ms: int) -> NodeView:
        return node(Family.A2, 1, {0: chip(0, Level.SEPARATE, reasons=(reason("a1", Level.SEPARATE, time_ms),))})

    assert _fingerprint(with_reason(1)) != _fingerprint(with_reason(2))


def test_what_counts_of_switch_faults() -> None:
    """lingqu-switch-faults 8.4, compared in both directions, and 13.10."""

    def with_switch(*faults: SwitchFaultView, level: SwitchLevel = SwitchLevel.SEPARATE) -> str:
        return _fingerprint(node(Family.A3, 1, switch=SwitchView(True, faults, level)))

    a, b = switch_fault(1, 5), switch_fault(2, 5)
    assert with_switch(a, b) == with_switch(b, a), "their order does not"
    assert with_switch(a, a) != with_switch(a, b), "upstream misses this one"
    assert with_switch(a, b) != with_switch(a, a)
    assert with_switch(a) != with_switch(a, a)
    assert with_switch(a) != with_switch(switch_fault(1, 6)), "a fault that went and came again"
    assert with_switch(a) != with_switch(replace(a, level=SwitchLevel.NOT_HANDLE)), "the level of one alone"
    assert with_switch(a) != with_switch(a, level=SwitchLevel.PRE_SEPARATE)
    assert with_switch() != _fingerprint(node(Family.A3, 1, switch=SwitchView()))


def test_of_too_many_faults_the_mildest_and_oldest_of_chips_and_switches_are_cut() -> None:
    mild, serious = Level.NOT_HANDLE, Level.SEPARATE
    codes = [fault(f"A{n:07X}", mild, n) for n in range(40)] + [fault(f"B{n:07X}", serious, n) for n in range(40)]
    switches = [switch_fault(n, n + 1, SwitchLevel.NOT_HANDLE) for n in range(40)]
    switches += [switch_fault(n, n + 1, SwitchLevel.SEPARATE, chip=3) for n in range(40)]
    view = node(
        Family.A3, 1, {0: chip(0, serious, *codes)}, switch=SwitchView(True, tuple(switches), SwitchLevel.SEPARATE)
    )
    whole = render_device_info(view, NOW_S)
    # 40 + 40 mild ones take about 80 * 110 and 40 * 330 bytes; half of that must go.
    cut = render_bounded(view, NOW_S, size_bytes(whole) - 9000)
    assert size_bytes(cut.data) <= size_bytes(whole) - 9000 + 200
    switch = json.loads(cut.data["SwitchInfoCfg"])
    left = [json.loads(text) for text in switch["FaultCode"]]
    assert [each["SwitchPortId"] for each in left if each["SwitchChipId"] == 3] == list(range(40)), "no serious one"
    mild_left = [each["AlarmRaisedTime"] for each in left if each["SwitchChipId"] == 2]
    chips = json.loads(json.loads(cut.data["DeviceInfoCfg"])["DeviceInfo"]["DeviceList"]["huawei.com/Ascend910-Fault"])
    times = chips[0]["fault_time_and_level_map"]
    assert sum(code.startswith("B") for code in times) == 40
    assert 0 < len(mild_left) < 40
    assert mild_left == list(range(41 - len(mild_left), 41)), "the newest stay"
    assert abs(min(mild_left) - min(e["fault_time"] for c, e in times.items() if c.startswith("A"))) <= 1
    assert (switch["FaultLevel"], switch["NodeStatus"]) == ("Separate", "UnHealthy")
    assert cut.left_out == 40 - len(mild_left) + 40 - (len(times) - 40)
    assert f"the {cut.left_out} mildest and oldest codes" in cut.data["Description"]
    check_device_info(cut.data)


def crowded() -> NodeView:
    """Two chips with 40 codes each: on chip 0 mild ones, on chip 1 serious ones; the first are the oldest."""
    mild = [fault(f"A{n:07X}", Level.NOT_HANDLE, n) for n in range(40)]
    serious = [fault(f"B{n:07X}", Level.SEPARATE, n) for n in range(40)]
    return node(Family.A2, 2, {0: chip(0, Level.NOT_HANDLE, *mild, healthy=True), 1: chip(1, Level.SEPARATE, *serious)})


def test_the_mildest_and_oldest_codes_are_left_out_first() -> None:
    full = render_bounded(crowded(), NOW_S)
    cut = render_bounded(crowded(), NOW_S, size_bytes(full.data) - 1500)
    check_device_info(cut.data)
    assert full.left_out == 0
    assert 0 < cut.left_out < 40
    assert str(cut.left_out) in cut.data["Description"]
    assert size_bytes(cut.data) <= size_bytes(full.data) - 1500
    found = json.loads(json.loads(cut.data["DeviceInfoCfg"])["DeviceInfo"]["DeviceList"]["huawei.com/Ascend910-Fault"])
    assert found[0]["fault_code"].split(",") == [f"A{n:07X}" for n in range(cut.left_out, 40)]
    assert len(found[1]["fault_code"].split(",")) == 40


def test_cut_is_not_larger_than_needed() -> None:
    full = render_bounded(crowded(), NOW_S)
    budget = size_bytes(full.data) - 1500
    cut = render_bounded(crowded(), NOW_S, budget)
    assert budget - size_bytes(cut.data) < 200


def test_isolated_device_keeps_its_element_when_nothing_fits() -> None:
    cut = render_bounded(crowded(), NOW_S, 100)
    check_device_info(cut.data)
    assert cut.left_out == 80
    found = json.loads(json.loads(cut.data["DeviceInfoCfg"])["DeviceInfo"]["DeviceList"]["huawei.com/Ascend910-Fault"])
    assert [(e["npu_name"], e["fault_code"], e["fault_level"]) for e in found] == [("Ascend910-1", "", "SeparateNPU")]


def test_object_of_the_largest_node_stays_below_the_limit() -> None:
    def full(number: int) -> ChipView:
        faults = [fault(f"{number:02X}{n:06X}", Level.SEPARATE) for n in range(128)]
        return chip(number, Level.SEPARATE, *faults)

    rendered = render_bounded(node(Family.A2, 100, {n: full(n) for n in range(100)}), NOW_S)
    check_device_info(rendered.data)
    assert rendered.left_out > 0
