"""One configuration from layers (decision 12): shipped < site file < folder < ConfigMap."""

import json
from functools import cache

import pytest

from nodeagent.core.errors import TableError
from nodeagent.core.levels import Level, Severity
from nodeagent.policy.configuration import (
    OUR_KEY,
    BadConfigurationError,
    ClusterDocuments,
    build_configuration,
)
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table_records import Finding, Place
from nodeagent.policy.upstream import FAULT_CODES_KEY, POLL_INTERVAL_KEY
from nodeagent.policy.upstream_rules import CUSTOMIZATION_KEY
from nodeagent.sources.config_documents import shipped

SITE = (
    "site.yaml",
    'faults: [{code: "80E01801", level: SubHealthFault}, {code: "8F000001", level: RestartNPU}]\n'
    'duration: [{codes: ["81078603"], fault_s: 5, recover_s: 6, handling: SeparateNPU}]\n',
)


@cache
def base() -> Configuration:
    return shipped()


def cluster(**texts: str) -> ClusterDocuments:
    keys = {"levels": FAULT_CODES_KEY, "rules": CUSTOMIZATION_KEY, "poll": POLL_INTERVAL_KEY, "ours": OUR_KEY}
    return ClusterDocuments("ns/cm", {keys[name]: text for name, text in texts.items()})


def built(*layers: ClusterDocuments, site: bool = True) -> Configuration:
    return build_configuration(base(), [SITE] if site else [], layers)[0]


def level(configuration: Configuration, code: int) -> Level:
    return configuration.table.level_of(code, None).level


def test_nothing_on_top_is_the_shipped_configuration() -> None:
    found = built(site=False)
    assert found.rules == base().rules
    names = ("chip.yaml", "link.yaml", "rules.yaml", "switch.yaml")
    assert found.layers == tuple(f"fault_codes/{name}" for name in names)


def test_a_site_file_holds_table_and_rules() -> None:
    found = built()
    assert level(found, 0x80E01801) is Level.SUB_HEALTH
    assert level(found, 0x8F000001) is Level.RESTART_NPU
    assert str(found.rules.duration[0x81078603].place) == "site.yaml:2"
    assert found.rules.frequency == base().rules.frequency
    assert found.layers[-1] == "site.yaml"


def test_fault_code_json_replaces_all_levels_below_and_keeps_texts() -> None:
    found = built(cluster(levels='{"RestartNPUCodes": ["80E18005"]}'))
    assert level(found, 0x80E18005) is Level.RESTART_NPU
    for code in (0x80E01801, 0x8F000001, 0x40F84E00):
        assert not found.table.level_of(code, None).known
    record = found.table.lookup(0x80E01801)
    assert record is not None
    assert record.name_en
    assert found.table.text_of(0x20001002) == "020001002"
    assert found.rules.duration[0x81078603].fault_s == 5, "an absent key leaves the next lower layer in force"


def test_customization_replaces_frequency_and_duration_and_nothing_else() -> None:
    found = built(cluster(rules='{"FaultFrequency": []}'))
    assert (found.rules.frequency, found.rules.duration) == ({}, {})
    assert (found.rules.association, found.rules.ports) == (base().rules.association, base().rules.ports)
    assert level(found, 0x80E01801) is Level.SUB_HEALTH


def test_our_key_merges_on_top_of_upstreams() -> None:
    ours = """unknown: {severity_unknown: SeparateNPU}
faults: [{code: "80E18005", level: SeparateNPU}]
suppress: [{code: "80E18005", chips: all, reason: ticket, until: 2031-01-01}]
frequency: [{codes: ["80E18005"], window_s: 60, times: 9, handling: ManuallySeparateNPU}]
remove: {duration: ["81078603"]}
"""
    rules = json.dumps(
        {"FaultDuration": [{"EventId": ["81078603"], "RecoverTimeout": 1, "FaultHandling": "RestartNPU"}]}
    )
    found = built(cluster(levels='{"RestartNPUCodes": ["80E18005", "80E01801"]}', rules=rules, ours=ours))
    assert level(found, 0x80E18005) is Level.SEPARATE
    assert level(found, 0x80E01801) is Level.RESTART_NPU
    assert level(found, 0x8F000002) is Level.SEPARATE
    assert [each.code for each in found.table.suppressions] == [0x80E18005]
    assert found.rules.frequency[0x80E18005].times == 9
    assert found.rules.duration == {}


def test_replace_in_our_format_means_what_the_json_documents_mean() -> None:
    ours = 'replace: [levels, rules]\nfaults: [{code: "80E18005", level: SeparateNPU}]\n'
    found = built(cluster(ours=ours))
    same = built(cluster(levels='{"SeparateNPUCodes": ["80E18005"]}', rules="{}"))
    for code in (0x80E18005, 0x80E01801, 0x40F84E00, 0x81078603):
        for severity in (None, *Severity):
            assert found.table.level_of(code, severity).level is same.table.level_of(code, severity).level
    assert found.rules == same.rules


def test_two_cluster_layers() -> None:
    folder = cluster(levels='{"RestartNPUCodes": ["80E18005"]}', rules="{}")
    found = built(folder, cluster(levels='{"SeparateNPUCodes": ["80E18005"]}'))
    assert level(found, 0x80E18005) is Level.SEPARATE
    assert found.rules.duration == {}


BAD = [
    {"levels": ""},
    {"levels": "{"},
    {"levels": '{"SeparateNPUCodes": 5}'},
    {"rules": ""},
    {"rules": '{"FaultFrequency": 5}'},
    {"ours": ""},
    {"ours": "# nothing\n"},
    {"ours": "faults: 1\n"},
    {"ours": 'faults: [{code: "81078603", level: SeperateNPU}]\n'},
    {"ours": "frequency: 1\n"},
    {"ours": "nonsense: 1\n"},
    {"ours": "frequency: []\nfrequency: []\n"},
    {"ours": "a: \udc80\n"},
]


@pytest.mark.parametrize("texts", BAD)
def test_present_but_empty_or_bad_is_bad_content(texts: dict[str, str]) -> None:
    with pytest.raises(BadConfigurationError) as caught:
        built(cluster(**({"levels": "{}"} | texts)))
    assert isinstance(caught.value, TableError)
    assert any(finding.serious for finding in caught.value.findings)
    assert caught.value.sentence.startswith("ns/cm/")


def test_a_broken_text_is_said_once_although_two_readers_see_it() -> None:
    with pytest.raises(BadConfigurationError) as caught:
        built(cluster(ours="a: ["))
    assert len(caught.value.findings) == 1


def test_all_problems_of_all_layers_are_listed() -> None:
    with pytest.raises(BadConfigurationError) as caught:
        build_configuration(base(), [("site", "faults: 1\n")], [cluster(levels="[", rules="[", ours="x: 1\n")])
    assert {finding.place.label for finding in caught.value.findings} == {
        "site",
        "ns/cm/faultCode.json",
        "ns/cm/faultCustomization.json",
        "ns/cm/nodeagent.yaml",
    }


def test_a_problem_of_the_container_refuses_the_layer() -> None:
    problem = Finding(Place("ns/cm", 0), "", "no")
    with pytest.raises(BadConfigurationError):
        built(ClusterDocuments("ns/cm", {}, (problem,)))


def test_a_dropped_group_does_not_refuse_the_rest() -> None:
    ours = 'frequency: [{codes: ["80E18005"], window_s: 1, times: 9, handling: ManuallySeparateNPU}]\n'
    found, findings = build_configuration(base(), [], [cluster(ours=ours)])
    assert [finding.serious for finding in findings] == [True]
    assert found.rules.frequency[0x80E18005].times == 3


def test_a_rule_on_a_code_that_no_table_knows() -> None:
    ours = (
        'duration: [{codes: ["8F000001"], fault_s: 1, recover_s: 1, handling: SeparateNPU}]\n'
        'association: [{trigger: "8F000002", hold: ["80E01801"], window_s: 1}]\n'
        'ports: [{code: "81078607", always: "8F000003"}]\n'
    )
    _, findings = build_configuration(base(), [], [cluster(ours=ours)])
    assert sorted(str(finding) for finding in findings) == [
        "ns/cm/nodeagent.yaml:1: code 8F000001: has a rule, but no table knows this code",
        "ns/cm/nodeagent.yaml:2: code 8F000002: has an association rule, but no table knows this code",
        "ns/cm/nodeagent.yaml:3: code 8F000003: is added by a port rule, but no table knows this code",
    ]
    assert not any(finding.serious for finding in findings)


def test_the_version_changes_exactly_with_the_content() -> None:
    texts = {"levels": "{}", "rules": "{}", "ours": "version: 1\n"}
    versions = {built(site=False).version, built().version, built(cluster()).version}
    assert len(versions) == 2, "an empty layer is no content"
    seen = {built(cluster(**dict(list(texts.items())[:number]))).version for number in range(4)}
    assert len(seen) == 4
    whole = built(cluster(**texts))
    assert whole.version == built(cluster(**texts, poll="60")).version
    assert whole.version == built(ClusterDocuments("elsewhere", cluster(**texts).texts)).version
    assert whole.version != built(cluster(**(texts | {"ours": "version: 1\n\n"}))).version
    assert built(cluster(levels="{}", rules="{}")).version != built(cluster(levels="{}"), cluster(rules="{}")).version


def test_poll_interval_never_refuses() -> None:
    documents = cluster(poll="soon")
    assert documents.poll_interval_s == 300
    _, findings = build_configuration(base(), [], [documents])
    assert [finding.serious for finding in findings] == [False]
    assert cluster(poll="45").poll_interval_s == 45
    assert cluster().poll_interval_s == 300


def test_byte_order_marks_are_passed_over() -> None:
    text = '{"SeparateNPUCodes": ["80E18005"]}'
    found = built(cluster(levels="\ufeff" + text, ours='\ufefffaults: [{code: "80E01801", level: RestartNPU}]\n'))
    assert level(found, 0x80E18005) is Level.SEPARATE
    assert level(found, 0x80E01801) is Level.RESTART_NPU
