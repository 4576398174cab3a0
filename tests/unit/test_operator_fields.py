"""Reading `ManuallySeparateNPU` and `UpgradeFaultReason` back (device-info 6.1, 6.2; chip-faults 7.3, 7.4)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.levels import Level
from nodeagent.core.model import Reason, UpgradeType
from nodeagent.render.operator_fields import manual_ids, upgrade_reasons

ENTRY = {
    "upgrade_time": 1759999990123,
    "fault_code": "80e01801",
    "fault_level": "ManuallySeparateNPU",
    "upgrade_type": "FaultFrequency",
}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", set()),
        ("Ascend910-0,Ascend910-3", {0, 3}),
        ("npu-4", {4}),
        ("Ascend310P-1,Ascend310-2", {1, 2}),
        ("Ascend910-1,Ascend910-1", {1}),
        (" Ascend910-1 ,", {1}),
        ("Ascend910-x,Ascend910-2", {2}),
        ("davinci-1,Ascend910-2,,nonsense", {2}),
        ("Ascend910-1x", {1}),
        ("Ascend910--1", set()),
        ("Ascend910-99999999999999999999", {999999999}),
    ],
)
def test_names_of_the_field(text: str, ids: set[int]) -> None:
    assert manual_ids({"ManuallySeparateNPU": text}) == ids


@pytest.mark.parametrize("data", [{}, {"ManuallySeparateNPU": None}, {"ManuallySeparateNPU": 5}])
def test_a_field_that_says_nothing_is_not_an_empty_field(data: dict[str, object]) -> None:
    """Nothing is never a lift (R8)."""
    assert manual_ids(data) is None


def test_reasons() -> None:
    autofill = ENTRY | {"fault_code": "AutofillFaultCode", "upgrade_type": "FaultAutofill"}
    found = upgrade_reasons({"UpgradeFaultReason": json.dumps({"Ascend910-1": [ENTRY], "npu-2": [autofill]})})
    assert found == (
        (1, Reason(1759999990123, "80e01801", Level.MANUALLY_SEPARATE, UpgradeType.FREQUENCY)),
        (2, Reason(1759999990123, "AutofillFaultCode", Level.MANUALLY_SEPARATE, UpgradeType.AUTOFILL)),
    )


@pytest.mark.parametrize(
    "document",
    [
        {"Ascend910-1-2": [ENTRY]},
        {"Ascend910": [ENTRY]},
        {"Ascend910-x": [ENTRY]},
        {"Ascend910-1": ENTRY},
        {"Ascend910-1": [ENTRY | {"fault_level": "Worse"}]},
        {"Ascend910-1": [ENTRY | {"upgrade_time": "soon"}]},
        {"Ascend910-1": [ENTRY | {"upgrade_time": True}]},
        {"Ascend910-1": [ENTRY | {"upgrade_time": 2**63}]},
        {"Ascend910-1": [ENTRY | {"fault_level": "NormalNPU"}]},
        {"Ascend910-1": [ENTRY | {"upgrade_type": "FaultMood"}]},
        {"Ascend910-1": [{}]},
        {"Ascend910-1": [None]},
        {"Ascend910-1": 5},
        [],
        5,
        None,
    ],
)
def test_any_bad_part_discards_the_whole(document: object) -> None:
    good = {"Ascend910-0": [ENTRY]}
    text = json.dumps({**good, **document} if isinstance(document, dict) else document)
    assert upgrade_reasons({"UpgradeFaultReason": text}) == ()


@given(st.one_of(st.none(), st.integers(), st.text(), st.recursive(st.none() | st.text() | st.integers(), st.lists)))
def test_no_content_raises(value: object) -> None:
    for text in (value, json.dumps(value), json.dumps({"Ascend910-1": value}), json.dumps({"Ascend910-1": [value]})):
        upgrade_reasons({"UpgradeFaultReason": text})
        manual_ids({"ManuallySeparateNPU": text})
