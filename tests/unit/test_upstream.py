"""Upstream's JSON documents, read as upstream reads them, with findings instead of silence."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.levels import Level
from nodeagent.policy.rules import NEVER_S
from nodeagent.policy.rules_load import RulesRead
from nodeagent.policy.table import LevelEntry, load_table
from nodeagent.policy.upstream import read_levels, read_poll_interval
from nodeagent.policy.upstream_document import LevelsRead
from nodeagent.policy.upstream_json import BadJson, parse
from nodeagent.policy.upstream_rules import read_customization


def levels(document: Any) -> dict[str, str]:
    read = read_levels("f", json.dumps(document))
    return {entry.text: entry.level.text for entry in read.entries}


def warnings(read: LevelsRead[LevelEntry] | RulesRead) -> list[str]:
    assert not any(finding.serious for finding in read.findings)
    return [str(finding) for finding in read.findings]


def refusal(read: LevelsRead[LevelEntry] | RulesRead) -> str:
    assert not read.usable
    return str(next(finding for finding in read.findings if finding.serious))


# -- faultCode.json -------------------------------------------------------------


def test_all_lists() -> None:
    names = [
        "NotHandleFault",
        "SubHealthFault",
        "RestartRequest",
        "RestartBusiness",
        "FreeRestartNPU",
        "RestartNPU",
        "PreSeparateNPU",
        "SeparateNPU",
    ]
    document = {f"{name}Codes": [f"8000000{number}"] for number, name in enumerate(names)}
    assert levels(document) == {f"8000000{number}": name for number, name in reversed(list(enumerate(names)))}


def test_keys_in_any_letter_case_unknown_keys_and_null() -> None:
    """chip-faults 3.2."""
    text = '{"notHANDLEfaultcodes": ["80e21007"],\n "SeperateNPUCodes": ["80000001"], "RestartNPUCodes": null}'
    read = read_levels("f", text)
    assert [(entry.text, entry.level) for entry in read.entries] == [("80E21007", Level.NOT_HANDLE)]
    assert warnings(read) == ["f:2: unknown key 'SeperateNPUCodes' is ignored; did you mean 'SeparateNPUCodes'?"]


def test_text_forms() -> None:
    """W31, first half."""
    text = '{"SeparateNPUCodes": ["80e21007", "80E21007",\n"0x80E21008",\n"zz", "-1", " 80E21009", "+1", null, "1_0"]}'
    read = read_levels("f", text)
    assert [entry.text for entry in read.entries] == ["80E21007"]
    assert warnings(read) == [
        "f:1: code 80E21007: is listed twice as SeparateNPU",
        "f:2: '0x80E21008' in SeparateNPUCodes is not a hexadecimal code and is skipped",
        *(
            f"f:3: {each} in SeparateNPUCodes is not a hexadecimal code and is skipped"
            for each in ("'zz'", "'-1'", "' 80E21009'", "'+1'", "''", "'1_0'")
        ),
    ]


def test_codes_in_two_lists_take_the_more_serious_level() -> None:
    """W30, first half: whichever list comes first."""
    text = '{"RestartBusinessCodes": ["A2301001"],\n "SeparateNPUCodes": ["A2301001"]}'
    read = read_levels("f", text)
    assert [(entry.level, entry.place.line) for entry in read.entries] == [(Level.SEPARATE, 2)]
    assert warnings(read) == [
        "f:1: code A2301001: is listed as RestartBusiness too; SeparateNPU at f:2 counts",
    ]


@pytest.mark.parametrize("name", ["RestartRequest", "RestartBusiness", "RestartNPU", "FreeRestartNPU"])
def test_restart_levels_of_the_parameter_plane(name: str) -> None:
    """W30, second half."""
    read = read_levels("f", json.dumps({f"{name}Codes": ["81078603"]}))
    assert [entry.level for entry in read.entries] == [Level.NOT_HANDLE]
    assert warnings(read) == [
        f"f:1: code 81078603: level {name} does not exist on the parameter plane; NotHandleFault is used"
    ]


@pytest.mark.parametrize("name", ["NotHandleFault", "SubHealthFault", "PreSeparateNPU", "SeparateNPU"])
def test_network_lists(name: str) -> None:
    for key in (f"{name}NetworkCodes", f"{name}Codes"):
        read = read_levels("f", json.dumps({key: ["81078603"]}))
        assert [entry.level.text for entry in read.entries] == [name]
        assert read.findings == []


def test_network_and_chip_lists_together() -> None:
    """The Restart level becomes NotHandleFault first, so SubHealthFault is the more serious one."""
    assert levels({"RestartNPUCodes": ["81078603"], "SubHealthFaultNetworkCodes": ["81078603"]}) == {
        "81078603": "SubHealthFault"
    }


def test_a_chip_code_in_a_network_list_is_ignored() -> None:
    read = read_levels("f", '{"SeparateNPUNetworkCodes": ["80E21007"]}')
    assert read.entries == []
    assert warnings(read) == [
        "f:1: code 80E21007: is no code of the parameter plane; its place in SeparateNPUNetworkCodes is ignored"
    ]


def test_an_empty_object_empties_all_lists() -> None:
    """chip-faults 3.3: no silent return to the built-in file."""
    read = read_levels("f", "{}")
    assert (read.entries, read.findings, read.usable) == ([], [], True)
    table, _ = load_table([("site", 'faults: [{code: "81078603", level: SubHealthFault}]\n')])
    emptied, _ = table.with_levels(read.entries)
    assert emptied.level_of(0x81078603, None).level is Level.PRE_SEPARATE
    assert emptied.text_of(0x81078603) == "81078603"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f:1: column 1: the document is empty"),
        (" \n", "f:1: column 1: the document is empty"),
        ("null", "f:1: column 1: the document is null, not an object"),
        ("[]", "f:1: column 1: the document is a list, not an object"),
        ('{"SeparateNPUCodes": 5}', "f:1: column 22: SeparateNPUCodes must be a list, this is a number"),
        ('{"SeparateNPUCodes":\n ["1", 5]}', "f:2: column 8: a member of SeparateNPUCodes must be a text, this is a"),
        ('{"SeparateNPUCodes": {}}', "f:1: column 22: SeparateNPUCodes must be a list, this is an object"),
        ('{"SeparateNPUCodes": ["1",]}', "f:1: column 27: a value is due here, not ']'"),
        ('{"SeparateNPUCodes": ["1" "2"]}', "f:1: column 27: a comma or ']' is due here"),
        ('{"a": 1} x', "f:1: column 10: something follows"),
        ('{"a": NaN}', "f:1: column 7: a value is due here, not 'N'"),
        ('{"a" 1}', "f:1: column 6: a colon is due here"),
        ("{a: 1}", "f:1: column 2: a key in double quotes is due here"),
        ('{"a": "b', "f:1: column 7: unterminated string"),
        ('{"a": [1', "f:1: column 9: the text ends too early"),
        ('{"a":', "f:1: column 6: the text ends too early"),
        ("[" * 100_000, "f:1: column 33: nested too deeply"),
        ('{"a": "\n"}', "f:1: column 8: invalid control character"),
        ("faults: []", "f:1: column 1: a value is due here"),
    ],
)
def test_what_refuses_a_document(text: str, said: str) -> None:
    read = read_levels("f", text)
    assert refusal(read).startswith(said)
    assert read.entries == []


def test_a_byte_order_mark_is_passed_over_with_a_warning() -> None:
    read = read_levels("f", '\ufeff{"SeparateNPUCodes": ["80E21007"]}')
    assert len(read.entries) == 1
    assert "byte-order mark" in warnings(read)[0]


def test_900_kilobytes() -> None:
    codes = [f"{0x80000000 + number:08X}" for number in range(75_000)]
    text = json.dumps({"SeparateNPUCodes": codes})
    assert len(text) > 850_000
    assert [entry.text for entry in read_levels("f", text).entries] == codes


# -- faultCustomization.json ------------------------------------------------------

FREQUENCY = {
    "EventId": ["80CB8002"],
    "TimeWindow": 3600,
    "Times": 3,
    "FaultHandling": "PreSeparateNPU",
    "ReleaseTimeWindow": 7200,
}
DURATION = {"EventId": ["81078603"], "FaultTimeout": 20, "RecoverTimeout": 60, "FaultHandling": "PreSeparateNPU"}


def customization(**parts: Any) -> RulesRead:
    return read_customization("f", json.dumps(parts))


def test_the_example_of_the_sheet() -> None:
    read = customization(FaultFrequency=[FREQUENCY], FaultDuration=[DURATION])
    assert read.findings == []
    assert read.replaced == {"rules"}
    rule = read.frequency[0x80CB8002]
    assert (rule.window_s, rule.times, rule.handling, rule.release_s) == (3600, 3, Level.PRE_SEPARATE, 7200)
    stay = read.duration[0x81078603]
    assert (stay.fault_s, stay.recover_s, stay.handling) == (20, 60, Level.PRE_SEPARATE)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("TimeWindow", [60, 864_000], [59, 864_001, 0, None, -1]),
        ("Times", [1, 100], [0, 101, None]),
        ("ReleaseTimeWindow", [60, 4_294_967_296], [59, 4_294_967_297, 0, None, -5]),
        ("FaultHandling", ["RestartNPU", "NotHandleFault"], ["NormalNPU", "restartNPU", "", None]),
        ("EventId", [["80CB8002", "1"]], [[], None]),
    ],
)
def test_ranges_of_frequency(field: str, good: list[Any], bad: list[Any]) -> None:
    """chip-faults 5.2; a bad group is dropped, the other one stays."""
    other = FREQUENCY | {"EventId": ["80E18005"]}
    for value in good:
        assert customization(FaultFrequency=[FREQUENCY | {field: value}]).findings == []
    for value in bad:
        read = customization(FaultFrequency=[FREQUENCY | {field: value}, other])
        assert list(read.frequency) == [0x80E18005]
        assert read.usable
        (finding,) = read.findings
        assert finding.serious
        assert finding.sentence.startswith(field)
        assert "this whole group of FaultFrequency is dropped" in finding.sentence


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("FaultTimeout", [0, 600, None], [-1, 601]),
        ("RecoverTimeout", [0, 86_400, None], [-1, 86_401]),
        ("FaultHandling", ["RestartNPU"], ["ManuallySeparateNPU", "x", None]),
        ("EventId", [["80CB8002"]], [[]]),
    ],
)
def test_ranges_of_duration(field: str, good: list[Any], bad: list[Any]) -> None:
    """chip-faults 5.3."""
    for value in good:
        assert customization(FaultDuration=[DURATION | {field: value}]).findings == []
    for value in bad:
        read = customization(FaultDuration=[DURATION | {field: value}])
        assert (read.duration, len(read.findings), read.usable) == ({}, 1, True)


@pytest.mark.parametrize("release", [0, None])
def test_no_release_means_never(release: int | None) -> None:
    rule = FREQUENCY | {"ReleaseTimeWindow": release, "FaultHandling": "ManuallySeparateNPU"}
    assert customization(FaultFrequency=[rule]).frequency[0x80CB8002].release_s == NEVER_S


def test_order_of_validation() -> None:
    """chip-faults 5.2: EventId, TimeWindow, ReleaseTimeWindow, Times, release needed, FaultHandling."""
    group: dict[str, Any] = {
        "EventId": [],
        "TimeWindow": 1,
        "ReleaseTimeWindow": 1,
        "Times": 0,
        "FaultHandling": "x",
    }
    order = []
    mended: dict[str, Any] = {"EventId": ["1"], "TimeWindow": 60, "ReleaseTimeWindow": 0, "Times": 1}
    for _ in range(6):
        (finding,) = customization(FaultFrequency=[group]).findings
        name = finding.sentence.split()[0]
        order.append(name)
        group[name] = mended.pop(name, 60)
    assert order == ["EventId", "TimeWindow", "ReleaseTimeWindow", "Times", "ReleaseTimeWindow", "FaultHandling"]


def test_the_first_valid_rule_wins() -> None:
    rules = [FREQUENCY | {"Times": 0}, FREQUENCY | {"Times": 5}, FREQUENCY | {"Times": 7, "EventId": ["80cb8002"]}]
    read = customization(FaultFrequency=rules)
    assert read.frequency[0x80CB8002].times == 5
    assert [finding.serious for finding in read.findings] == [True, False]


def test_codes_that_are_none_are_skipped() -> None:
    read = customization(FaultDuration=[DURATION | {"EventId": ["0x81078603", "zz", "80E18005"]}])
    assert list(read.duration) == [0x80E18005]
    assert len(warnings(read)) == 2


@pytest.mark.parametrize(
    "parts",
    [
        {"FaultFrequency": {}},
        {"FaultFrequency": [5]},
        {"FaultFrequency": [FREQUENCY | {"Times": "3"}]},
        {"FaultFrequency": [FREQUENCY | {"Times": 3.0}]},
        {"FaultFrequency": [FREQUENCY | {"Times": 10**400}]},
        {"FaultFrequency": [FREQUENCY | {"Times": 2**63}]},
        {"FaultFrequency": [FREQUENCY | {"Times": True}]},
        {"FaultFrequency": [FREQUENCY | {"EventId": "80CB8002"}]},
        {"FaultFrequency": [FREQUENCY | {"EventId": [1]}]},
        {"FaultDuration": "x"},
        {"FaultDuration": [DURATION | {"FaultHandling": 1}]},
        {"GraceTolerance": []},
        {"GraceTolerance": {"WaitDeviceResetTime": "150"}},
    ],
)
def test_a_wrong_type_anywhere_refuses_the_document(parts: dict[str, Any]) -> None:
    read = customization(**({"FaultDuration": [DURATION]} | parts))
    assert "column" in refusal(read)
    assert (read.frequency, read.duration, read.replaced) == ({}, {}, frozenset())


def test_keys_in_any_letter_case_and_nulls() -> None:
    read = read_customization(
        "f",
        '{"faultduration": [{"eventid": ["81078603"], "FAULTTIMEOUT": 5, "faulthandling": "SeparateNPU"}, null],'
        ' "FaultFrequency": null, "GraceTolerance": null}',
    )
    assert read.duration[0x81078603].fault_s == 5
    assert [str(finding) for finding in read.findings] == [
        "f:1: EventId is empty; this whole group of FaultDuration is dropped"
    ]


def test_grace_tolerance_is_carried_through() -> None:
    """chip-faults 5.1."""
    read = customization(GraceTolerance={"WaitDeviceResetTime": 200, "waitfaultselfhealingtime": 15})
    assert read.grace == {"WaitDeviceResetTime": 200, "WaitFaultSelfHealingTime": 15}
    assert warnings(read) == ["f:1: WaitDeviceResetTime is 200, which is not in 60..180; its reader will use 150"]


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("3600", 3600), (" 60\n", 60), ("0060", 60)])
def test_poll_intervals(text: str, seconds: int) -> None:
    assert read_poll_interval("f", text) == (seconds, [])


@pytest.mark.parametrize("text", ["", "29", "3601", "abc", "-60", "6e1", "60.0", "9" * 10_000, "\u0663\u0660"])
def test_bad_poll_intervals_are_300(text: str) -> None:
    seconds, findings = read_poll_interval("f", text)
    assert (seconds, len(findings), findings[0].serious) == (300, 1, False)


# -- any text -----------------------------------------------------------------------

trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from(["81078603", "zz"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FREQUENCY, *DURATION, "x"]), inner, max_size=4)
    ),
    max_leaves=15,
)
keys = st.sampled_from(
    ["FaultFrequency", "faultduration", "GraceTolerance", "SeparateNPUCodes", "notHandleFaultNetworkCodes", "x"]
)
documents = st.dictionaries(keys, trees, max_size=4).map(json.dumps)


@given(st.one_of(st.text(max_size=100), documents, documents.map(lambda text: text[: len(text) * 2 // 3])))
def test_any_text_gives_findings_and_never_an_exception(text: str) -> None:
    for read in (read_levels("f", text), read_customization("f", text)):
        for finding in read.findings:
            assert finding.place.line >= 1
            assert "\n" not in finding.sentence
            str(finding).encode()
    read_poll_interval("f", text)


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(), st.lists))
def test_the_parser_agrees_with_the_standard_one(tree: Any) -> None:
    assert plain(json.dumps({"k": tree}, indent=1)) == {"k": tree}


@given(st.text(alphabet='{}[]",:0123456789.eE-+ntrufalse \\\n', max_size=30))
def test_the_parser_refuses_what_the_standard_one_refuses(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        with pytest.raises(BadJson):
            parse(text)
    else:
        parse(text)


def plain(text: str) -> Any:
    def value(node: Any) -> Any:
        if node.kind == "list":
            return [value(each) for each in node.items()]
        if node.kind == "object":
            return {key: value(each) for key, _, each in node.pairs()}
        return node.value

    return value(parse(text))
