"""Objects of the sheet compared with each other: upstream's forms against the recommended ones (device-info 14)."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest
from contract.data.device_info.cases import VIEWS, golden
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.render.comparison import MAX_DIFFERENCES, MAX_TEXT, STALE_S, compare
from nodeagent.render.device_info import LABELS, SHADOW_LABELS
from nodeagent.render.difference import ABSENT, Comparison, Difference, Kind
from nodeagent.render.gojson import check_code, go_json, go_map

CASES = sorted([*VIEWS, "A10-upstream", "A13-upstream"])
P = "huawei.com/Ascend910"


def mirror(kind: Kind) -> Kind:
    """The kind that the same difference has when the two objects change places."""
    return {Kind.FAULT_MISSING: Kind.FAULT_EXTRA, Kind.FAULT_EXTRA: Kind.FAULT_MISSING}.get(kind, kind)


def obj(case: str, **texts: str) -> dict[str, Any]:
    """A live object as upstream writes it."""
    own = {"DeviceInfoCfg": golden(case)["DeviceInfoCfg"]}  # of upstream's forms the sheet gives this key only
    data = golden(case.removesuffix("-upstream")) | own | {"Description": "theirs"} | texts
    return {"metadata": {"name": "mindx-dl-deviceinfo-worker-1", "labels": dict(LABELS)}, "data": data}


def shadow(case: str, **texts: str) -> dict[str, Any]:
    return {"metadata": {"labels": dict(SHADOW_LABELS)}, "data": golden(case) | {"Description": "ours"} | texts}


def changed(case: str, later_s: int = 0, ids: Mapping[str, object] | None = None, **lists: object) -> dict[str, Any]:
    """A golden object with other lists (`Fault` for `…-Fault`; `_` is the available one), signed anew."""
    document = json.loads(golden(case)["DeviceInfoCfg"])
    info = document["DeviceInfo"]
    for name, value in lists.items():
        suffix = "" if name == "_" else f"-{name}"
        info["DeviceList"][P + suffix] = value if isinstance(value, str) else go_json(value)
    info["UpdateTime"] += later_s
    document["CheckCode"] = check_code(info["DeviceList"], info["UpdateTime"])
    return obj(case, DeviceInfoCfg=go_json(document | dict(ids or {})))


def faults(case: str) -> list[dict[str, Any]]:
    """The fault list of a golden object."""
    found: list[dict[str, Any]] = json.loads(
        json.loads(golden(case)["DeviceInfoCfg"])["DeviceInfo"]["DeviceList"][f"{P}-Fault"]
    )
    return found


def told(comparison: Comparison) -> dict[tuple[Kind, str], tuple[str, str]]:
    return {(each.kind, each.field): (each.theirs, each.ours) for each in comparison.differences}


def only(comparison: Comparison) -> Difference:
    (difference,) = comparison.differences
    return difference


@pytest.mark.parametrize("case", CASES)
def test_an_object_is_like_itself_and_like_its_shadow(case: str) -> None:
    assert compare(obj(case), obj(case)) == Comparison(())
    base = case.removesuffix("-upstream")
    comparison = compare(obj(base), shadow(base))
    assert comparison.same
    assert [each.field for each in comparison.volatile] == ["Description"]


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(CASES, 2)])
def test_kinds_are_symmetric(one: str, other: str) -> None:
    there, back = compare(obj(one), obj(other)), compare(obj(other), obj(one))
    mirrored = sorted((mirror(d.kind).value, d.field, d.ours, d.theirs) for d in there.differences)
    assert mirrored == sorted((d.kind.value, d.field, d.theirs, d.ours) for d in back.differences)
    # A7 and A8 differ in the switch part alone, every other pair in the device part too.
    assert not there.same


def test_an_isolated_chip() -> None:
    assert told(compare(obj("A2"), obj("A1"))) == {
        (Kind.AVAILABLE, f"{P} Ascend910-3"): (ABSENT, "listed"),
        (Kind.UNHEALTHY, f"{P}-Unhealthy Ascend910-3"): ("listed", ABSENT),
        (Kind.FAULT_MISSING, "Ascend910-3 80E18005"): ("RestartNPU", ABSENT),
    }
    explained = {each.kind: each.explanation for each in compare(obj("A2"), obj("A1")).differences}
    assert "follows" in explained[Kind.UNHEALTHY]
    assert "follows" in explained[Kind.AVAILABLE]
    assert explained[Kind.FAULT_MISSING] == "", "the root of it has no known cause"


def test_a_level_that_a_rule_raised() -> None:
    found = told(compare(obj("A5"), changed("A4", _=golden_list("A5", ""), Unhealthy="", Fault=faults("A4")[:1])))
    assert found == {
        (Kind.NETWORK_UNHEALTHY, f"{P}-NetworkUnhealthy Ascend910-2"): ("listed", ABSENT),
        (Kind.FAULT_LEVEL, "Ascend910-2 81078603"): ("PreSeparateNPU", "NotHandleFault"),
        (Kind.FAULT_LEVEL, "Ascend910-2 CardNetworkUnhealthy"): ("PreSeparateNPU", "NotHandleFault"),
        (Kind.FAULT_TIME, "Ascend910-2 81078603 fault_time"): ("1760000010123", "1759999990123"),
        (Kind.REASON, "UpgradeFaultReason Ascend910-2 81078603 PreSeparateNPU FaultDuration"): (
            "1760000010123",
            ABSENT,
        ),
    }


def golden_list(case: str, suffix: str) -> str:
    return str(json.loads(golden(case)["DeviceInfoCfg"])["DeviceInfo"]["DeviceList"][P + suffix])


def test_upstreams_level_of_a_neighbour_is_explained() -> None:
    """A13: its form against the recommended one."""
    difference = only(compare(obj("A13-upstream"), shadow("A13")))
    assert (difference.kind, difference.field) == (Kind.FAULT_LEVEL, "Ascend910-1 8C204E00")
    assert (difference.theirs, difference.ours) == ("ManuallySeparateNPU", "RestartBusiness")
    assert "every code of a chip" in difference.explanation
    assert compare(obj("A13-upstream"), shadow("A13")).unexplained == ()
    assert only(compare(obj("A13"), obj("A13-upstream"))).explanation == "", "ours has no such quirk"


def test_upstreams_key_on_a_310_is_explained() -> None:
    comparison = compare(obj("A10-upstream"), shadow("A10"))
    assert told(comparison) == {
        (Kind.KEY, "DeviceList huawei.com/Ascend310-Fault"): (ABSENT, "there"),
        (Kind.KEY, "DeviceList huawei.com/Ascend310P-Fault"): ("there", ABSENT),
    }
    assert comparison.unexplained == ()


def test_a_missing_switch_library() -> None:
    assert told(compare(obj("A7"), obj("A8"))) == {
        (Kind.SWITCH, "SwitchInfoCfg FaultCode"): ("known", "not known"),
        (Kind.SWITCH, "SwitchInfoCfg NodeStatus"): ("Healthy", "empty"),
    }


def test_records_of_switches() -> None:
    """LingQu example 2 against one without faults."""
    record = {
        "EventType": 139591683,
        "AssembledFaultCode": "[0x08520003,na,npu,na]",
        "PeerPortDevice": 1,
        "PeerPortId": 5,
        "SwitchChipId": 2,
        "SwitchPortId": 11,
        "Severity": 2,
        "Assertion": 1,
        "AlarmRaisedTime": 1759999990123,
    }
    times = {"[0x08520003,na,npu,na]_2_11": {"fault_time": 1759999990123, "fault_level": "Separate"}}
    switch = {
        "FaultCode": [go_json(record)],
        "FaultLevel": "Separate",
        "UpdateTime": 1760000000,
        "NodeStatus": "UnHealthy",
        "FaultTimeAndLevelMap": times,
    }
    faulty = obj("A7", SwitchInfoCfg=go_json(switch))
    assert told(compare(faulty, obj("A7"))) == {
        (Kind.SWITCH, "SwitchInfoCfg FaultLevel"): ("Separate", "empty"),
        (Kind.SWITCH, "SwitchInfoCfg NodeStatus"): ("UnHealthy", "Healthy"),
        (Kind.SWITCH, "SwitchInfoCfg [0x08520003,na,npu,na]_2_11"): ("listed", ABSENT),
    }
    later = switch | {
        "FaultCode": [go_json(record | {"AlarmRaisedTime": 1759999991123})],
        "UpdateTime": 1760000009,
        "FaultTimeAndLevelMap": {name: entry | {"fault_time": 1759999991123} for name, entry in times.items()},
    }
    comparison = compare(faulty, obj("A7", SwitchInfoCfg=go_json(later)))
    assert comparison.same, "a second is within the tolerance"
    assert len(comparison.volatile) == 2


def test_ids_and_products() -> None:
    assert told(compare(obj("A15"), changed("A15", ids={"SuperPodID": 3, "ServerIndex": 4}))) == {
        (Kind.IDENTITY, "SuperPodID"): ("-1", "3")
    }
    assert told(compare(obj("A1"), obj("A9"))) == {(Kind.PRODUCT, "DeviceList"): ("Ascend910", "Ascend310P")}
    assert (Kind.IDENTITY, "RackID") in told(
        compare(obj("A11"), obj("A11", DeviceInfoCfg=golden("A11")["DeviceInfoCfg"].replace(',"RackID":5', "")))
    )


def test_lists_are_sets_and_times_have_a_tolerance() -> None:
    """Device-info 11.1: ClusterD sorts. A fault time alone is no reason to write (device-info 7)."""
    reverse = ",".join(reversed(golden_list("A1", "").split(",")))
    comparison = compare(changed("A1", _=reverse), obj("A1"))
    assert comparison.same
    assert [each.field for each in comparison.volatile] == ["CheckCode", f"order of {P}"]
    (element,) = faults("A2")
    for late_ms, kinds in ((10_000, []), (10_001, [Kind.FAULT_TIME])):
        element["fault_time_and_level_map"]["80E18005"]["fault_time"] = 1759999990123 + late_ms
        assert [d.kind for d in compare(obj("A2"), changed("A2", Fault=[element])).differences] == kinds


def test_spelling_and_type_of_a_code() -> None:
    """Consumers compare codes as text and look them up by type (device-info 11)."""
    (element,) = faults("A2")
    element["fault_code"] = "080E18005"
    element["fault_time_and_level_map"] = {"080E18005": element["fault_time_and_level_map"]["80E18005"]}
    assert only(compare(obj("A2"), changed("A2", Fault=[element]))).kind is Kind.FAULT_SPELLING
    (element,) = faults("A2")
    element["fault_type"] = "CardNetworkUnhealthy"
    assert only(compare(obj("A2"), changed("A2", Fault=[element]))).kind is Kind.FAULT_TYPE


def test_the_word_that_volcano_reads() -> None:
    """Volcano reads the words of the element, ClusterD those of each code (device-info 11)."""
    (element,) = faults("A2")
    element["fault_handling"] = "SeparateNPU"
    difference = only(compare(changed("A2", Fault=[element]), obj("A2")))
    assert (difference.kind, difference.field) == (Kind.FAULT_LEVEL, "Ascend910-3 CardUnhealthy")
    assert difference.theirs == "SeparateNPU / RestartNPU / RestartNPU"


def test_an_object_that_clusterd_refuses_is_a_difference() -> None:
    bad = obj(
        "A6", DeviceInfoCfg=golden("A6")["DeviceInfoCfg"].replace("1760000000", "1760000001"), ManuallySeparateNPU=""
    )
    comparison = compare(bad, obj("A6"))
    assert [each.kind for each in comparison.differences] == [Kind.UNACCEPTABLE, Kind.MANUAL]
    assert "CheckCode" in comparison.differences[0].theirs
    assert comparison.differences[0].ours == "accepted"


def test_custom_names_are_explained() -> None:
    document = json.loads(golden("A1")["DeviceInfoCfg"].replace("huawei.com/Ascend910", "example.com/chip"))
    info = document["DeviceInfo"]
    document["CheckCode"] = check_code(go_map(info["DeviceList"]), info["UpdateTime"])
    difference = only(compare(obj("A1", DeviceInfoCfg=go_json(document)), obj("A1")))
    assert difference.kind is Kind.UNACCEPTABLE
    assert "deviceNameCustomization.json" in difference.explanation


def test_what_surrounds_the_device_info() -> None:
    odd = obj("A1", Extra="x")
    odd["metadata"]["labels"] = {"mx-consumer-cim": "false", "team": "a"}
    del odd["data"]["ManuallySeparateNPU"]
    assert told(compare(odd, obj("A1"))) == {
        (Kind.LABEL, "label mx-consumer-cim"): ("false", "true"),
        (Kind.LABEL, "label team"): ("a", ABSENT),
        (Kind.KEY, "Extra"): ("there", ABSENT),
        (Kind.KEY, "ManuallySeparateNPU"): (ABSENT, "there"),
    }


def test_a_manual_release_of_the_live_object_alone() -> None:
    """An operator's edit concerns one object; so does upstream's failed read (device-info 6.1)."""
    comparison = compare(obj("A6", ManuallySeparateNPU="", UpgradeFaultReason="{}"), obj("A6"))
    assert [(d.kind, d.ours != ABSENT) for d in comparison.differences] == [(Kind.MANUAL, True), (Kind.REASON, True)]
    assert "edit the shadow too" in comparison.differences[0].explanation
    assert comparison.unexplained == ()


@pytest.mark.parametrize("level", ["NotHandleFault", "RestartRequest"])
def test_a_level_that_a_rule_lowered(level: str) -> None:
    """Chip-faults 9.1: base RestartRequest, duration handling NotHandleFault."""
    (link, element) = faults("A4")
    reason = {"upgrade_time": 1, "fault_code": "8c204e00", "fault_level": level, "upgrade_type": "FaultDuration"}
    text = {"UpgradeFaultReason": go_json({"Ascend910-2": [reason]})}
    element["fault_time_and_level_map"]["8C204E00"]["fault_level"] = level
    theirs = changed("A4", Fault=[link, element])
    theirs["data"] |= text
    difference = only(compare(theirs, obj("A4", **text)))
    assert difference.kind is Kind.FAULT_LEVEL
    assert "lets a rule lower the level" in difference.explanation


def test_a_reason_without_an_entry() -> None:
    """Chip-faults 9.1, R6: a used chip after its recovery."""
    text = {"UpgradeFaultReason": golden("A5")["UpgradeFaultReason"]}
    theirs = changed("A5", Fault=[], NetworkUnhealthy="")
    theirs["data"] |= text
    comparison = compare(theirs, obj("A5"))
    assert {each.kind for each in comparison.differences} == {Kind.NETWORK_UNHEALTHY, Kind.FAULT_EXTRA}
    assert "no entry while the chip counts as healthy" in comparison.differences[-1].explanation
    assert comparison.unexplained == ()


def test_preseparate_never_waits_on_a_310p() -> None:
    """Device-info 4.4: upstream looks for pods under the key of the 910."""
    document = json.loads(golden("A9")["DeviceInfoCfg"])
    lists = document["DeviceInfo"]["DeviceList"]
    lists["huawei.com/Ascend310P-Fault"] = lists["huawei.com/Ascend310P-Fault"].replace("SeparateNPU", "PreSeparateNPU")

    def signed() -> dict[str, Any]:
        document["CheckCode"] = check_code(lists, document["DeviceInfo"]["UpdateTime"])
        return obj("A9", DeviceInfoCfg=go_json(document))

    theirs = signed()
    lists["huawei.com/Ascend310P-Unhealthy"] = ""
    difference = only(compare(theirs, signed()))
    assert difference.kind is Kind.UNHEALTHY
    assert "PreSeparateNPU never waits" in difference.explanation


def test_seconds_in_place_of_milliseconds() -> None:
    """Device-info 4.3: a 950 with all UB ports down."""
    (element,) = faults("A2")
    element["fault_time_and_level_map"]["80E18005"]["fault_time"] = 1759999990
    assert "in seconds" in only(compare(changed("A2", Fault=[element]), obj("A2"))).explanation
    element["fault_time_and_level_map"]["80E18005"]["fault_time"] = 1759999000000
    assert "its detection" in only(compare(changed("A2", Fault=[element]), obj("A2"))).explanation


def test_ids_that_were_asked_for_too_early() -> None:
    """Device-info 3: asked once, at the start of the device plugin."""
    theirs = changed("A7", ids={"SuperPodID": -2, "ServerIndex": -2})
    theirs["data"]["SwitchInfoCfg"] = golden("A7")["SwitchInfoCfg"]
    comparison = compare(theirs, obj("A7"))
    assert [each.field for each in comparison.differences] == ["ServerIndex", "SuperPodID"]
    assert comparison.unexplained == ()


@pytest.mark.parametrize(
    ("theirs", "word"),
    [("{}", "counts from zero after a restart"), ("moved", "made anew at another time"), ("[", "")],
)
def test_upgrade_reasons(theirs: str, word: str) -> None:
    """Chip-faults 7.4."""
    text = golden("A6")["UpgradeFaultReason"]
    theirs = text.replace("1759999990123", "1760000090123") if theirs == "moved" else theirs
    difference = only(compare(obj("A6", UpgradeFaultReason=theirs), obj("A6")))
    assert difference.kind is Kind.REASON
    assert word in difference.explanation
    assert bool(word) is bool(difference.explanation)


def test_a_cause_explains_its_own_code_only() -> None:
    """A live fault beside a manual separation that only one side has is nobody's quirk."""
    explained = {each.field: each.explanation for each in compare(obj("A13"), obj("A1")).differences}
    assert "upgrade reason of this code" in explained["Ascend910-1 80E01801"]
    assert explained["Ascend910-1 8C204E00"] == ""
    assert explained["ManuallySeparateNPU Ascend910-1"] == "", "theirs has more: nothing is known to cause that"


def test_an_autofilled_reason_has_no_effect_upstream() -> None:
    """Device-info 6.2, W3: named in the field, but neither isolated nor in the fault list."""
    reason = [
        {
            "upgrade_time": 1,
            "fault_code": "AutofillFaultCode",
            "fault_level": "ManuallySeparateNPU",
            "upgrade_type": "FaultAutofill",
        }
    ]
    both = {"ManuallySeparateNPU": "Ascend910-1", "UpgradeFaultReason": go_json({"Ascend910-1": reason})}
    comparison = compare(obj("A1", **both), obj("A1", DeviceInfoCfg=golden("A6")["DeviceInfoCfg"], **both))
    kinds = {each.kind for each in comparison.differences}
    assert kinds == {Kind.AVAILABLE, Kind.UNHEALTHY, Kind.FAULT_EXTRA}
    assert comparison.unexplained == ()


@pytest.mark.parametrize(("late_s", "kind"), [(STALE_S, None), (STALE_S + 1, Kind.STALE)])
def test_an_object_without_a_writer(late_s: int, kind: Kind | None) -> None:
    comparison = compare(changed("A1", later_s=-late_s), obj("A1"))
    assert [each.kind for each in comparison.differences] == ([] if kind is None else [kind])
    assert all(each.explanation.startswith("theirs is not refreshed") for each in comparison.differences)


def test_a_once_only_notice_is_shown_at_another_time() -> None:
    """Decision 3: gone from upstream's object after one pass."""
    comparison = compare(obj("A1"), changed("A1", Fault=faults("A3")))
    difference = only(comparison)
    assert difference.kind is Kind.FAULT_EXTRA
    assert "once-only" in difference.explanation
    old = compare(obj("A1"), changed("A1", later_s=400, Fault=faults("A3")))
    assert only(old).explanation == "", "no notice lives that long"


def test_pods_that_only_one_side_counts() -> None:
    comparison = compare(obj("A1"), changed("A3", Fault=[]))
    assert {each.kind for each in comparison.differences} == {Kind.AVAILABLE}
    assert all("huawei.com/AscendReal" in each.explanation for each in comparison.differences)
    assert len(compare(changed("A3", Fault=[]), obj("A1")).unexplained) == 2, "no known cause the other way round"


def test_no_object_at_all() -> None:
    assert compare(None, None).same
    assert told(compare(None, obj("A1"))) == {(Kind.OBJECT, "ConfigMap"): (ABSENT, "there")}
    assert told(compare(obj("A1"), None)) == {(Kind.OBJECT, "ConfigMap"): ("there", ABSENT)}


def test_what_is_told_has_bounds() -> None:
    odd = obj("A1", **{f"key-{number}": "" for number in range(2 * MAX_DIFFERENCES)}, SwitchInfoCfg="{" * 1000)
    comparison = compare(odd, obj("A1", Description="\ud800" + "x" * 100_000))
    assert len(comparison.differences) == MAX_DIFFERENCES
    assert comparison.left_out == MAX_DIFFERENCES + 1
    (description,) = comparison.volatile
    assert len(description.ours) == MAX_TEXT
    description.ours.encode()


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
any_text = st.text(max_size=20) | any_json.map(json.dumps)
any_data = st.dictionaries(
    st.sampled_from(
        ["DeviceInfoCfg", "SwitchInfoCfg", "ManuallySeparateNPU", "UpgradeFaultReason", "Description", "x"]
    ),
    any_text | any_json,
)
any_object = st.fixed_dictionaries({}, optional={"data": any_data | any_json, "metadata": any_json})
some_object = st.sampled_from(CASES).map(obj) | any_object


@given(some_object)
def test_whatever_it_is_it_is_like_itself(found: dict[str, Any]) -> None:
    assert compare(found, found).same


@given(some_object, some_object)
def test_whatever_they_are_kinds_are_symmetric(one: dict[str, Any], other: dict[str, Any]) -> None:
    there = {(mirror(each.kind), each.field) for each in compare(one, other).differences}
    assert there == {(each.kind, each.field) for each in compare(other, one).differences}
