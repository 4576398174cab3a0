"""Rules from YAML: ranges, whole groups, duplicates, layers, and the line of every mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.levels import Level
from nodeagent.policy.rules import NEVER_S, RuleSet
from nodeagent.policy.rules_load import RulesRead, overlaid_rules, read_rules
from nodeagent.policy.table import lint

GOOD = 'frequency:\n  - {codes: ["80CB8002"], window_s: 3600, times: 3, handling: PreSeparateNPU, release_s: 7200}\n'


def said(read: RulesRead) -> list[str]:
    return [str(finding) for finding in read.findings]


def frequency(**changes: str) -> RulesRead:
    fields = {"codes": '["80CB8002"]', "window_s": "3600", "times": "3", "handling": "PreSeparateNPU"}
    fields |= {"release_s": "7200"} | changes
    body = ", ".join(f"{key}: {value}" for key, value in fields.items() if value)
    return read_rules("f", f"frequency:\n  - {{{body}}}\n")


def duration(**changes: str) -> RulesRead:
    fields = {"codes": '["81078603"]', "fault_s": "20", "recover_s": "60", "handling": "PreSeparateNPU"} | changes
    body = ", ".join(f"{key}: {value}" for key, value in fields.items() if value)
    return read_rules("f", f"duration:\n  - {{{body}}}\n")


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("window_s", ["60", "864000"], ["59", "864001", "-1", '"60"', "60.0", "1e3", "", "[60]", "9" * 5000]),
        ("times", ["1", "100"], ["0", "101", "many"]),
        ("release_s", ["60", "4294967296"], ["59", "4294967297", "0", "never", "", "soon"]),
        ("handling", ["NotHandleFault", "SeparateNPU"], ["NormalNPU", "separatenpu", "", "[SeparateNPU]"]),
        ("codes", ['["80CB8002", "81078603"]'], ["[]", '"80CB8002"', "[80CB8002]", '["zz"]', '[["80CB8002"]]', ""]),
    ],
)
def test_ranges_of_frequency(field: str, good: list[str], bad: list[str]) -> None:
    """chip-faults 5.2; any violation drops the whole group."""
    for value in good:
        read = frequency(**{field: value})
        assert read.findings == []
        assert 0x80CB8002 in read.frequency
    for value in bad:
        read = frequency(**{field: value})
        assert read.frequency == {}, value
        assert read.usable
        (finding,) = read.findings
        assert finding.serious
        assert (finding.place.label, finding.place.line) == ("f", 2)
        assert finding.sentence.endswith("; this whole group of frequency is dropped")


@pytest.mark.parametrize("release", ["never", "0", ""])
def test_manual_separation_may_last_for_ever(release: str) -> None:
    read = frequency(handling="ManuallySeparateNPU", release_s=release)
    assert read.findings == []
    assert read.frequency[0x80CB8002].release_s == NEVER_S


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("fault_s", ["0", "600"], ["-1", "601", "", "x"]),
        ("recover_s", ["0", "86400"], ["86401", "", "1.5"]),
        ("handling", ["NotHandleFault", "SeparateNPU"], ["ManuallySeparateNPU", "NormalNPU", ""]),
    ],
)
def test_ranges_of_duration(field: str, good: list[str], bad: list[str]) -> None:
    """chip-faults 5.3."""
    for value in good:
        assert duration(**{field: value}).findings == []
    for value in bad:
        read = duration(**{field: value})
        assert (read.duration, len(read.findings), read.usable) == ({}, 1, True), value


def test_other_groups_are_unaffected_and_lines_are_exact() -> None:
    text = """version: 1
frequency:
  - codes: ["80E18005"]
    window_s: 60
    times: 0
    handling: ManuallySeparateNPU
  - codes: ["80E18005", "81078603", "80e18005"]
    window_s: 60
    times: 2
    handling: ManuallySeparateNPU
  - codes: ["81078603"]
    window_s: 61
    times: 2
    handling: ManuallySeparateNPU
    relaese_s: 60
  - codes: ["81078603", "80E01801"]
    window_s: 61
    times: 2
    handling: ManuallySeparateNPU
duration:
  - 5
  - {codes: ["81078603"], fault_s: 1, recover_s: 2, handling: SeperateNPU}
"""
    read = read_rules("f", text)
    assert said(read) == [
        "f:5: code 80E18005: times is 0, which is not in 1..100; this whole group of frequency is dropped",
        "f:7: code 80E18005: already has a frequency rule in line 7; that one counts",
        "f:15: code 81078603: unknown key 'relaese_s'; did you mean 'release_s'?; this whole group of frequency"
        " is dropped",
        "f:16: code 81078603: already has a frequency rule in line 7; that one counts",
        "f:21: a rule must be a mapping of names to values; this whole group of duration is dropped",
        "f:22: code 81078603: handling 'SeperateNPU' is not a level that fits here; did you mean 'SeparateNPU'?;"
        " this whole group of duration is dropped",
    ]
    assert {code: rule.window_s for code, rule in read.frequency.items()} == {
        0x80E18005: 60,
        0x81078603: 60,
        0x80E01801: 61,
    }
    assert [finding.serious for finding in read.findings] == [True, False, True, False, True, True]


def test_rules_are_keyed_by_integer() -> None:
    """R14: however the code is spelled."""
    read = read_rules("f", GOOD.replace("80CB8002", "0x20000002"))
    assert list(read.frequency) == [0x020000002]


@pytest.mark.parametrize(
    "text",
    [
        "frequency: 1\n",
        "frequency: {codes: []}\n",
        "remove: [1]\n",
        "remove: {frequenzy: []}\n",
        'remove: {frequency: "80E18005"}\n',
        "remove: {frequency: [80E18005]}\n",
        "replace: levels\n",
        "replace: [texts]\n",
        "grace_tolerance: 5\n",
        "grace_tolerance: {WaitDeviceResetTime: soon}\n",
        "grace_tolerance: {WaitDeviceResetTyme: 100}\n",
        "grace_tolerance: {WaitDeviceResetTime: 99999999999999999999}\n",
        "",
        "# nothing\n",
        "a: [\n",
        "\x00",
    ],
)
def test_a_wrong_form_makes_the_document_unusable(text: str) -> None:
    read = read_rules("f", text)
    assert not read.usable
    assert read.findings


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('association: [{trigger: "80E01801", hold: [], window_s: 5}]', "f:1: code 80E01801: hold must be a list"),
        ('association: [{trigger: "80E01801", hold: ["80E01801"], window_s: 5}]', "a code cannot hold back itself"),
        ('association: [{trigger: "80E01801", hold: ["80C98009"], window_s: 0}]', "from 0.001 to 60, not '0'"),
        ('association: [{trigger: "80E01801", hold: ["80C98009"], window_s: "5"}]', "from 0.001 to 60"),
        (
            'association: [{trigger: "80E01801", hold: ["80C98009"], window_s: 5, needs_duration_rule: yes}]',
            "needs_duration_rule must be true or false",
        ),
        ('ports: [{code: "81078607"}]', "a port rule needs by_down or always"),
        ('ports: [{code: "81078607", by_down: {0: "110000002"}}]', "'0' in by_down must be a number of ports"),
        ('ports: [{code: "81078607", by_down: [1]}]', "by_down must be a mapping"),
        ('ports: [{code: "81078607", by_down: {1: 110000002}}]', "the code must be quoted"),
        ('ports: [{code: "81078607", by_down: {1: "110000002"}, when_all: "020000002"}]', "when_all replaces"),
    ],
)
def test_association_and_ports_are_checked(text: str, sentence: str) -> None:
    read = read_rules("f", text + "\n")
    assert (read.association, read.ports) == ({}, {})
    assert sentence in said(read)[0]


def test_half_seconds_of_association() -> None:
    read = read_rules("f", 'association: [{trigger: "80E01801", hold: ["80C98009"], window_s: 2.5}]\n')
    assert read.association[0x80E01801].window_ms == 2500


def test_overlay_by_code_with_removal() -> None:
    below, _ = overlaid_rules(
        RuleSet(),
        read_rules(
            "low",
            GOOD + 'duration: [{codes: ["81078603", "80E18005"], fault_s: 1, recover_s: 2, handling: SeparateNPU}]\n'
            'association: [{trigger: "80E01801", hold: ["80C98009"], window_s: 5}]\n'
            'ports: [{code: "81078607", always: "110000002"}]\n',
        ),
    )
    text = """remove:
  frequency: ["80CB8002", "80E18005"]
  association: ["80E01801"]
  ports: ["81078607"]
  duration: ["81078603"]
duration:
  - {codes: ["81078603"], fault_s: 7, recover_s: 2, handling: RestartNPU}
"""
    merged, findings = overlaid_rules(below, read_rules("high", text))
    assert merged.frequency == {}
    assert merged.association == ()
    assert merged.ports == {}
    assert (merged.duration[0x81078603].fault_s, merged.duration[0x80E18005].fault_s) == (7, 1)
    assert merged.duration[0x81078603].handling is Level.RESTART_NPU
    assert [str(finding) for finding in findings] == [
        "high:2: code 80E18005: there is no frequency rule below to remove",
        "high:5: code 81078603: removed from duration and given in the same file: it stays",
    ]
    assert 0x80CB8002 in below.frequency


def test_replace_takes_away_frequency_and_duration_only() -> None:
    below, _ = overlaid_rules(RuleSet(), read_rules("low", GOOD + 'ports: [{code: "81078607", always: "110000002"}]\n'))
    merged, findings = overlaid_rules(below, read_rules("high", "replace: [rules]\n"))
    assert (merged.frequency, len(merged.ports), findings) == ({}, 1, [])


def test_grace_is_carried_through_unread() -> None:
    read = read_rules("f", "grace_tolerance: {WaitDeviceResetTime: 999}\n")
    assert read.grace == {"WaitDeviceResetTime": 999}
    assert said(read) == ["f:1: WaitDeviceResetTime is 999, which is not in 60..180; its reader will use 150"]
    assert read.usable


def test_the_reader_of_tables_passes_over_rules_and_knows_misspelled_keys() -> None:
    assert lint("f", "version: 1\n" + GOOD) == []
    assert [str(each) for each in lint("f", "frequensy: []\n")] == [
        "f:1: unknown key 'frequensy'; did you mean 'frequency'?"
    ]


WORDS = ["frequency", "duration", "association", "ports", "remove", "replace", "codes", '"80E01801"', "window_s", "60",
         "times", "handling", "SeparateNPU", "grace_tolerance", "by_down", "1", "levels", "rules"]  # fmt: skip
MARKS = [": ", "\n", "\n  - ", "\n    ", "[", "]", "{", "}", ", ", "'", '"', "&a ", "*a", "---\n", "\x00", "\ud800"]


@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(WORDS + MARKS), max_size=50).map("".join)))
def test_any_text_is_rules_or_findings(text: str) -> None:
    read = read_rules("f", text)
    for finding in read.findings:
        assert finding.place.line >= 1
        assert "\n" not in finding.sentence
    for rule in read.frequency.values():
        assert 60 <= rule.window_s <= 864_000
        assert 1 <= rule.times <= 100
        assert 60 <= rule.release_s <= NEVER_S
