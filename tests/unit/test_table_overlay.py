"""Layers, levels, planes, spelling and suppressions of a loaded table."""

import pytest

from nodeagent.core.levels import Level, Plane, Severity
from nodeagent.policy.table import FaultTable, LevelEntry, load_table
from nodeagent.policy.table_records import BadTableError, Place

BASE = """version: 1
layer: builtin
defaults: {module: HBM, name_basis: kb, refs: [level-file]}
unknown:
  by_severity: {notice: NotHandleFault, minor: SubHealthFault}
faults:
  - code: "80E01801"
    level: RestartBusiness
    name: {en: a fault, zh: 一种故障}
    advice: {en: reset, zh: 复位}
    notes: a note
    severity: critical
    twins: ["A8028802"]
  - code: "020001002"
    level: SeparateNPU
    plane: hyper_plane
    name: {en: ports down, zh: 端口断开}
  - code: "80A84E00"
    level: null
    name: {en: described, zh: 仅有描述}
"""


def table(*layers: str, texts: bool = True) -> FaultTable:
    documents = [("base", BASE), *((f"site{number}", text) for number, text in enumerate(layers, 1))]
    loaded, warnings = load_table(documents, texts=texts)
    assert warnings == ()
    return loaded


def test_a_site_file_changes_single_fields() -> None:
    record = table('faults:\n  - code: "80e01801"\n    level: RestartNPU\n').lookup(0x80E01801)
    assert record is not None
    assert record.level is Level.RESTART_NPU
    assert (record.name_zh, record.advice_en, record.severity) == ("一种故障", "reset", Severity.CRITICAL)
    assert (str(record.place), str(record.level_place)) == ("base:7", "site1:2")


def test_a_text_alone_keeps_the_level_and_its_place() -> None:
    record = table('faults:\n  - code: "80E01801"\n    name: {zh: 新名称}\n').lookup(0x80E01801)
    assert record is not None
    assert (record.name_en, record.name_zh, record.level) == ("a fault", "新名称", Level.RESTART_BUSINESS)
    assert str(record.level_place) == "base:7"


def test_later_layers_win() -> None:
    layers = ['faults:\n  - {code: "80E01801", level: ' + level + "}\n" for level in ("RestartNPU", "SeparateNPU")]
    decision = table(*layers).level_of(0x80E01801, None)
    assert (decision.level, decision.known, decision.reason) == (
        Level.SEPARATE,
        True,
        "listed as SeparateNPU at site2:2",
    )


def test_a_site_file_adds_a_code() -> None:
    loaded = table('faults:\n  - {code: "8F000001", level: SubHealthFault, aliases: ["8F000002"]}\n')
    assert loaded.level_of(0x8F000001, Severity.CRITICAL).level is Level.SUB_HEALTH
    assert loaded.level_of(0x8F000002, Severity.CRITICAL).level is Level.SUB_HEALTH
    assert loaded.text_of(0x8F000002) == "8F000002"
    assert [record.text for record in loaded.records()].count("8F000001") == 1


@pytest.mark.parametrize(
    ("severity", "level", "reason"),
    [
        (Severity.NOTICE, Level.NOT_HANDLE, "in no table, severity notice: NotHandleFault by the rule at base:5"),
        (Severity.MINOR, Level.SUB_HEALTH, "in no table, severity minor: SubHealthFault by the rule at base:5"),
        (Severity.MAJOR, Level.SEPARATE, "in no table, severity major: SeparateNPU by the rule at built-in rule"),
        (Severity.CRITICAL, Level.SEPARATE, "in no table, severity critical: SeparateNPU by the rule at built-in rule"),
        (None, Level.NOT_HANDLE, "in no table, severity unknown: NotHandleFault by the rule at built-in rule"),
    ],
)
def test_unlisted_codes(severity: Severity | None, level: Level, reason: str) -> None:
    for code in (0x8F000001, 0x80A84E00):
        decision = table().level_of(code, severity)
        assert (decision.level, decision.known, decision.plane, decision.reason) == (level, False, Plane.CHIP, reason)


def test_unlisted_code_of_the_parameter_plane() -> None:
    decision = table().level_of(0x81078603, Severity.NOTICE)
    assert (decision.level, decision.plane, decision.known) == (Level.PRE_SEPARATE, Plane.NETWORK, False)
    assert "parameter plane" in decision.reason


def test_a_site_may_isolate_codes_of_unknown_severity() -> None:
    """Decision of the project: NotHandleFault unless the site says otherwise."""
    loaded = table("unknown: {severity_unknown: SeparateNPU, parameter_plane: SubHealthFault}\n")
    assert loaded.level_of(0x8F000001, None).level is Level.SEPARATE
    assert loaded.level_of(0x8F000001, None).reason.endswith("by the rule at site1:1")
    assert loaded.level_of(0x8F000001, Severity.MINOR).level is Level.SUB_HEALTH
    assert loaded.level_of(0x81078603, None).level is Level.SUB_HEALTH


def test_restart_levels_do_not_exist_on_the_parameter_plane() -> None:
    """W30, second half."""
    text = 'faults:\n  - code: "81078603"\n    level: RestartNPU\n'
    loaded, warnings = load_table([("site", text)])
    assert loaded.level_of(0x81078603, None).level is Level.NOT_HANDLE
    assert [str(warning) for warning in warnings] == [
        "site:2: code 81078603: level RestartNPU does not exist on the parameter plane; NotHandleFault is used"
    ]


@pytest.mark.parametrize("level", [Level.NOT_HANDLE, Level.SUB_HEALTH, Level.PRE_SEPARATE, Level.SEPARATE])
def test_levels_of_the_parameter_plane_are_kept(level: Level) -> None:
    loaded, warnings = load_table([("site", f'faults:\n  - code: "81078603"\n    level: {level.text}\n')])
    assert loaded.level_of(0x81078603, None).level is level
    assert warnings == ()


def test_text_forms() -> None:
    """W31: letter case and 0x do not matter, the first spelling ever registered is printed."""
    site = 'faults:\n  - {code: "20001002", level: RestartNPU}\n  - {code: "0x80e21007", level: SubHealthFault}\n'
    loaded = table(site)
    assert loaded.text_of(0x20001002) == "020001002"
    assert loaded.level_of(0x20001002, None).level is Level.RESTART_NPU
    assert loaded.text_of(0x80E21007) == "80E21007"
    assert loaded.text_of(0x8F00000A) == "8F00000A"


def test_suppressions_by_layer() -> None:
    first = """suppress:
  - {code: "80E01801", chips: [0, 3], reason: ticket 4711, until: 2027-01-31}
  - {code: "8F000001", chips: all, reason: noisy, until: "2027-02-28"}
"""
    loaded = table(first)
    one, two = loaded.suppressions
    assert (one.code, one.chips, one.reason, str(one.place)) == (
        0x80E01801,
        frozenset({0, 3}),
        "ticket 4711",
        "site1:2",
    )
    end_ms = 1_801_440_000_000  # 2027-02-01T00:00:00Z
    assert one.applies(3, end_ms - 1)
    assert not one.applies(3, end_ms)
    assert not one.applies(1, end_ms - 1)
    assert two.applies(1, end_ms)
    second = 'suppress:\n  - {code: "80E01801", chips: [5], reason: other, until: 2027-01-31}\n'
    assert [each.reason for each in table(first, second).suppressions] == ["noisy", "other"]


def test_version_follows_the_content() -> None:
    assert table().version == table().version
    assert table().version != table("version: 1\n").version
    assert len(table().version) == 8


def test_without_texts_levels_and_english_names_stay() -> None:
    record = table(texts=False).lookup(0x80E01801)
    assert record is not None
    assert (record.level, record.name_en, record.twins) == (Level.RESTART_BUSINESS, "a fault", (0xA8028802,))
    assert (record.name_zh, record.advice_en, record.notes, record.refs) == ("", "", "", ())


def test_a_bad_layer_leaves_the_table_below_as_it_was() -> None:
    below = table()
    before = below.records()
    with pytest.raises(BadTableError):
        below.overlaid([("bad", 'faults:\n  - {code: "80E01801", level: RestartNPU}\n  - {code: 81078603}\n')])
    assert below.records() == before
    assert below.level_of(0x80E01801, None).level is Level.RESTART_BUSINESS


def test_replacing_all_levels_keeps_texts() -> None:
    """chip-faults 6.2: the JSON document of upstream replaces every level below it."""
    place = Place("mindx-dl-fault-config/faultCode.json", 0)
    entries = [
        LevelEntry(0x80E01801, "80e01801", Level.SEPARATE, place),
        LevelEntry(0x8F00000A, "8f00000a", Level.SUB_HEALTH, place),
        LevelEntry(0x81078603, "81078603", Level.RESTART_NPU, place),
    ]
    loaded, warnings = table().with_levels(entries)
    assert loaded.level_of(0x80E01801, None).reason == f"listed as SeparateNPU at {place}"
    assert loaded.level_of(0x20001002, None).known is False
    assert loaded.text_of(0x20001002) == "020001002"
    assert loaded.text_of(0x8F00000A) == "8F00000A"
    assert loaded.level_of(0x81078603, None).level is Level.NOT_HANDLE
    assert [warning.code for warning in warnings] == ["81078603"]
    record = loaded.lookup(0x80E01801)
    assert record is not None
    assert record.name_zh == "一种故障"
    assert loaded.version != table().version
    ours, _ = loaded.overlaid([("nodeagent.yaml", 'faults:\n  - {code: "80E01801", level: RestartRequest}\n')])
    assert ours.level_of(0x80E01801, None).level is Level.RESTART_REQUEST
