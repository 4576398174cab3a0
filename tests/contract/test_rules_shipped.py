"""The shipped rules against the reference list, and the way to upstream's JSON and back without a loss."""

import csv
import json
from pathlib import Path

import pytest

from nodeagent.core.files import SHIPPED_RULES, read_shipped
from nodeagent.core.levels import Level, Severity
from nodeagent.policy.configuration import ClusterDocuments, build_configuration
from nodeagent.policy.rules import NEVER_S, Configuration, DurationRule, FrequencyRule, RuleSet
from nodeagent.policy.rules_load import read_rules
from nodeagent.policy.table_diff import differences
from nodeagent.policy.upstream import FAULT_CODES_KEY, read_levels
from nodeagent.policy.upstream_rules import CUSTOMIZATION_KEY, read_customization
from nodeagent.policy.upstream_write import customization_json, levels_json, levels_yaml, rules_yaml
from nodeagent.sources.config_documents import shipped

DATA = Path(__file__).parent / "data" / "fault_codes"
Fact = tuple[object, ...]


def rows(name: str, kind: str = "") -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as stream:
        return [r for r in csv.DictReader(stream, delimiter="\t") if not kind or r["kind"] == kind]


@pytest.fixture(scope="module")
def defaults() -> Configuration:
    return shipped()


def facts(rules: RuleSet) -> tuple[set[Fact], set[Fact]]:
    frequency = {(r.code, r.window_s, r.times, r.handling, r.release_s) for r in rules.frequency.values()}
    return frequency, {(r.code, r.fault_s, r.recover_s, r.handling) for r in rules.duration.values()}


def test_the_file_is_clean() -> None:
    read = read_rules(*read_shipped(SHIPPED_RULES))
    assert (read.findings, read.usable) == ([], True)
    assert build_configuration(shipped())[1] == ()


def test_defaults_equal_the_reference_list(defaults: Configuration) -> None:
    """chip-faults 5.4."""
    frequency = {
        (
            int(row["code"], 16),
            int(row["time_window_s"]),
            int(row["times"]),
            Level.parse(row["fault_handling"]),
            int(row["release_time_window_s"] or NEVER_S),
        )
        for row in rows("rules.tsv", "frequency")
    }
    duration = {
        (
            int(row["code"], 16),
            int(row["fault_timeout_s"]),
            int(row["recover_timeout_s"]),
            Level.parse(row["fault_handling"]),
        )
        for row in rows("rules.tsv", "duration")
    }
    assert (len(frequency), len(duration)) == (43, 1)
    assert facts(defaults.rules) == (frequency, duration)
    assert defaults.rules.longest_release_s == 172_800


def test_groups_are_those_of_the_reference_list() -> None:
    """chip-faults 5.4: 41 codes, 80E18005, 81078603; every code of a group has the place of its group."""
    read = read_rules(*read_shipped(SHIPPED_RULES))
    groups: dict[int, set[str]] = {}
    for code, rule in read.frequency.items():
        groups.setdefault(rule.place.line, set()).add(f"{code:X}")
    wanted: dict[str, set[str]] = {}
    for row in rows("rules.tsv", "frequency"):
        wanted.setdefault(row["group"], set()).add(row["code"])
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, wanted.values()))


def test_association_and_ports(defaults: Configuration) -> None:
    """chip-faults 2.7 and 4.5."""
    (association,) = defaults.rules.association
    assert association.trigger == 0x80E01801
    assert association.held == {0x80C98009, 0x80CB8009}
    assert (association.window_ms, association.needs_duration_rule) == (5000, True)
    uboe, ub = defaults.rules.ports[0x81078607], defaults.rules.ports[0x81B18603]
    assert (dict(uboe.by_down), uboe.always, uboe.when_all) == ({1: 0x110000002, 2: 0x110001024}, 0, 0)
    assert (dict(ub.by_down), ub.always, ub.when_all) == ({}, 0x020001002, 0x020000002)


def test_levels_go_to_json_and_back(defaults: Configuration) -> None:
    """Decision 15: the same effective level for every code."""
    text = levels_json(defaults.table)
    assert sum(map(len, json.loads(text).values())) == 802
    read = read_levels("f", text)
    assert read.findings == []
    yaml, left_out = levels_yaml(read.entries, defaults.table, "f")
    assert left_out == []
    again, findings = build_configuration(defaults, [("site", yaml)])
    assert findings == ()
    assert differences(defaults, again).none
    assert levels_json(again.table) == text
    for row in rows("levels.tsv"):
        code = int(row["code"], 16)
        for severity in (None, *Severity):
            assert again.table.level_of(code, severity).level is defaults.table.level_of(code, severity).level
        assert again.table.text_of(code) == row["code"]


def test_the_default_level_file_with_its_duplicates(defaults: Configuration) -> None:
    """chip-faults 11: 804 entries, B4060011 twice in one list, A2301001 in two; the most serious counts (W30)."""
    lists: dict[str, list[str]] = {}
    for row in rows("levels.tsv"):
        lists.setdefault(f"{row['level']}Codes", []).append(row["code"])
    text = json.dumps(lists)
    loaded, findings = build_configuration(defaults, (), [ClusterDocuments("cm", {FAULT_CODES_KEY: text})])
    assert differences(defaults, loaded).none
    assert sorted(finding.code for finding in findings) == ["A2301001", "B4060011"]
    assert not any(finding.serious for finding in findings)


def test_rules_go_to_json_and_back(defaults: Configuration) -> None:
    """Decision 15: the same rules, GraceTolerance carried through."""
    grace = read_rules(*read_shipped(SHIPPED_RULES)).grace
    assert grace == {"WaitProcessReadCMTime": 30, "WaitDeviceResetTime": 150, "WaitFaultSelfHealingTime": 15}
    text = customization_json(defaults.rules, defaults.table, grace)
    read = read_customization("f", text)
    assert (read.findings, read.grace) == ([], grace)
    yaml, left_out = rules_yaml(read, defaults.table, "f")
    assert left_out == []
    converted = read_rules("site", yaml)
    assert (converted.findings, converted.grace) == ([], grace)
    again, findings = build_configuration(defaults, [("site", yaml)])
    assert findings == ()
    assert facts(again.rules) == facts(defaults.rules)
    assert differences(defaults, again).none
    assert customization_json(again.rules, again.table, converted.grace) == text


def test_the_json_of_the_defaults_in_a_config_map_changes_nothing(defaults: Configuration) -> None:
    documents = ClusterDocuments(
        "cm",
        {
            FAULT_CODES_KEY: levels_json(defaults.table),
            CUSTOMIZATION_KEY: customization_json(defaults.rules, defaults.table, None),
        },
    )
    loaded, findings = build_configuration(defaults, (), [documents])
    assert findings == ()
    assert differences(defaults, loaded).none


def test_rules_are_values(defaults: Configuration) -> None:
    link = defaults.rules.duration[0x81078603]
    assert isinstance(link, DurationRule)
    assert str(link.place).startswith("fault_codes/rules.yaml:")
    assert isinstance(defaults.rules.frequency[0x81078603], FrequencyRule)
