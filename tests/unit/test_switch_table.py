"""Levels of switch faults: our YAML, upstream's document, layers, conversion (lingqu-switch-faults 5)."""

import json
from dataclasses import replace

import pytest
from kit.engine import shipped_switches

from nodeagent.cli.main import main
from nodeagent.core.switch import NO_FAULT_ID
from nodeagent.core.switch_codes import SwitchCode, SwitchLevel, parse_switch_code
from nodeagent.policy.configuration import (
    OUR_KEY,
    BadConfigurationError,
    ClusterDocuments,
    build_configuration,
)
from nodeagent.policy.rules import Configuration
from nodeagent.policy.switch_document import read_switch_section
from nodeagent.policy.table import Document
from nodeagent.policy.upstream_switch import (
    SWITCH_CODES_KEY,
    read_switch_levels,
    switch_levels_json,
    switch_levels_yaml,
)
from nodeagent.sources.config_documents import documents_of_object, shipped

CODE = "[0x08520003,na,npu,na]"
OTHER = "[0x00f103b6,155909,na,na]"


def built(*site: str, cluster: dict[str, str] | None = None) -> Configuration:
    documents: list[Document] = [(f"site{n}.yaml", text) for n, text in enumerate(site)]
    layers = [ClusterDocuments("ns/cm", cluster)] if cluster is not None else []
    return build_configuration(shipped(), documents, layers)[0]


def level(configuration: Configuration, text: str = CODE) -> SwitchLevel | None:
    decision = configuration.switches.level_of(parse_switch_code(text))
    return decision.level if decision.known else None


def entry(text: str, more: str) -> str:
    return f'switch: {{faults: [{{code: "{text}", {more}}}]}}\n'


class TestCodes:
    @pytest.mark.parametrize(
        "text",
        [
            "[0x08520003,na,npu,na]",
            "[0X08520003, NA, NPU, NA]",
            " [ 0x08520003 , na , npu , na ] ",
            "[0x08520003,,npu,]",
            "08520003,na,npu,na",
            "[0x8520003,na,npu,na]",
        ],
    )
    def test_any_spelling(self, text: str) -> None:
        assert parse_switch_code(text) == SwitchCode(0x08520003, NO_FAULT_ID, "npu")
        assert parse_switch_code(text).text == CODE

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "[0x1,2,npu]",
            "[0x1,2,npu,na,na]",
            "[0x1,2,npu,cpu]",
            "[0x1,-2,npu,na]",
            "[0xg,2,npu,na]",
            "[0x1,2,gpu,na]",
            "[0x123456789,2,npu,na]",
            "[0x1,0x2,npu,na]",
            "[0x1,4294967295,npu,na]",
            "[0x1,²,npu,na]",
        ],
    )
    def test_texts_that_are_none(self, text: str) -> None:
        with pytest.raises(ValueError, match="not the code of a switch fault"):
            parse_switch_code(text)

    def test_l2_keeps_its_capital(self) -> None:
        assert parse_switch_code("[0x08520003,na,l2,na]").text == "[0x08520003,na,L2,na]"


class TestYaml:
    def test_a_site_changes_single_fields(self) -> None:
        changed = built(entry("[0X08520003, na, NPU, na]", "level: SubHealthFault"))
        assert level(changed) is SwitchLevel.SUB_HEALTH
        record = changed.switches.records[CODE]
        assert record.name_en == shipped().switches.records[CODE].name_en
        assert (str(record.level_place), str(record.place)) == ("site0.yaml:1", "fault_codes/switch.yaml:24")
        named = built(entry(CODE, "name: {en: Our port}"))
        assert (named.switches.records[CODE].name_en, level(named)) == ("Our port", SwitchLevel.SEPARATE)

    def test_a_code_of_its_own_needs_a_level(self) -> None:
        assert level(built(entry("[0x1,2,cpu,na]", "level: Separate")), "[0x1,2,cpu,na]") is SwitchLevel.SEPARATE
        with pytest.raises(
            BadConfigurationError, match=r"site0.yaml:1: code \[0x00000001,2,cpu,na\]: the entry has no"
        ):
            built(entry("[0x1,2,cpu,na]", "notes: mine"))

    def test_it_stands_beside_a_fault_table_and_rules(self) -> None:
        text = 'version: 1\nfaults: [{code: "80E01801", level: SubHealthFault}]\n' + entry(CODE, "level: NotHandle")
        assert level(built(text)) is SwitchLevel.NOT_HANDLE

    def test_old_ids_are_aliases_unless_the_site_says_otherwise(self) -> None:
        old = "[0x00f1ff09,155914,npu,na]"
        decision = built().switches.level_of(parse_switch_code(old))
        assert (decision.level, decision.twin) == (SwitchLevel.RESTART_REQUEST, "[0x00f1fef5,155914,npu,na]")
        assert level(built("switch: {alias_old_ids: false}\n"), old) is None
        own = built(entry(old, "level: NotHandle"))
        assert level(own, old) is SwitchLevel.NOT_HANDLE, "an entry of its own comes first"

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("switch: [1]\n", "switch must be a mapping"),
            ("switch: {fault: []}\n", "unknown key 'fault' in switch; did you mean 'faults'?"),
            ("switch: {faults: {}}\n", "switch.faults must be a list of mappings"),
            ("switch: {faults: [x]}\n", "an entry of switch.faults must be a mapping"),
            ("switch: {faults: [{level: Separate}]}\n", "the entry has no code"),
            ("switch: {alias_old_ids: perhaps}\n", "alias_old_ids 'perhaps' is none of true, false"),
            ("switch: {faults: [{code: [0x08520003,na,npu,na], level: Separate}]}\n", "must be one quoted text"),
            (entry("0x08520003", "level: Separate"), "has not the shape of a switch code"),
            (entry(CODE, "level: SeparateNPU"), "level 'SeparateNPU' is no level of switch faults; did you mean"),
            (entry(CODE, "levle: Separate"), "unknown key 'levle'; did you mean 'level'?"),
            (entry(CODE, "name: {de: x}"), "unknown language 'de' in name"),
            (
                entry(CODE, f'level: Separate}}, {{code: "{CODE.upper()}", level: Separate'),
                "listed twice (first at site0.yaml:1)",
            ),
            (entry(CODE, "level: Separate").replace("faults:", "faults: [], faults:"), "key 'faults' stands twice"),
        ],
    )
    def test_mistakes_refuse_the_document_with_one_clear_line(self, text: str, words: str) -> None:
        with pytest.raises(BadConfigurationError) as caught:
            built(text)
        serious = [str(finding) for finding in caught.value.findings if finding.serious]
        assert len(serious) == 1
        assert words in serious[0]
        assert serious[0].startswith("site0.yaml:1: ")

    def test_a_shipped_entry_must_be_complete(self) -> None:
        read = read_switch_section("x", "layer: builtin\n" + entry(CODE, "level: Separate"))
        assert read.builtin
        with pytest.raises(BadConfigurationError, match="the entry lacks name_en, name_zh, name_basis"):
            built("layer: builtin\n" + entry(CODE, "level: Separate"))


class TestUpstreamsDocument:
    def test_it_replaces_all_levels_and_the_texts_stay(self) -> None:
        after = built(cluster={SWITCH_CODES_KEY: json.dumps({"PreSeparateFaultCodes": [OTHER]})})
        assert after.switches.levels() == {OTHER: SwitchLevel.PRE_SEPARATE}
        assert level(after) is None
        assert after.switches.records[CODE].name_en

    def test_site_below_and_our_key_above_it(self) -> None:
        """Decision 12."""
        document = json.dumps({"SubHealthFaultCodes": [OTHER]})
        site = entry(CODE, "level: NotHandle")
        assert level(built(site, cluster={SWITCH_CODES_KEY: document})) is None
        both = built(site, cluster={SWITCH_CODES_KEY: document, OUR_KEY: entry(CODE, "level: PreSeparate")})
        assert (level(both), level(both, OTHER)) == (SwitchLevel.PRE_SEPARATE, SwitchLevel.SUB_HEALTH)

    def test_a_config_map_has_it_beside_the_others(self) -> None:
        found = documents_of_object({"metadata": {}, "data": {SWITCH_CODES_KEY: "{}"}}, "ns/cm")
        assert (dict(found.texts), found.problems) == ({SWITCH_CODES_KEY: "{}"}, ())
        assert build_configuration(shipped(), [], [found])[0].switches.levels() == {}

    def test_the_highest_of_several_levels_counts(self) -> None:
        text = '{"NotHandleFaultCodes": ["%s"],\n"ResetFaultCodes": ["%s"],\n"SubHealthFaultCodes": ["%s"]}' % (
            (CODE,) * 3
        )
        read = read_switch_levels("f", text)
        assert [(e.text, e.level, str(e.place)) for e in read.entries] == [(CODE, SwitchLevel.SEPARATE, "f:2")]
        assert [f.place.line for f in read.findings] == [1, 3]
        assert all("is listed as" in f.sentence and not f.serious for f in read.findings)

    @pytest.mark.parametrize(
        ("written", "accepted", "words"),
        [
            (CODE, True, ""),
            ("0x08520003,na,npu,na", False, "is not four parts in brackets"),
            ("[0x08520003,na,npu,na,na]", False, "is not four parts in brackets"),
            ("[0x08520003,npu,na]", False, "is not four parts in brackets"),
            ("", False, "is not four parts in brackets"),
            (f"[0x00f103b6,{1:031d},na,na]", True, "never matches"),
            (f"[0x00f103b6,{1:032d},na,na]", False, "has more than 50 letters"),
            ("[0X08520003,na,npu,na]", True, "never matches"),
            ("[0x08520003, na,npu,na]", True, "never matches"),
        ],
    )
    def test_what_upstream_accepts(self, written: str, accepted: bool, words: str) -> None:
        """D13: 50 letters are the limit; what upstream accepts and never matches is said."""
        read = read_switch_levels("f", json.dumps({"SeparateFaultCodes": [written]}))
        assert [e.text for e in read.entries] == ([written] if accepted else [])
        assert read.usable
        assert len(read.findings) == bool(words)
        assert words in "".join(map(str, read.findings))

    @pytest.mark.parametrize(
        "text", ["", "[]", "null", '{"SeparateFaultCodes": "x"}', '{"SeparateFaultCodes": [1]}', '{"a": 1', "{} {}"]
    )
    def test_what_makes_it_invalid(self, text: str) -> None:
        read = read_switch_levels("f", text)
        assert not read.usable
        assert read.entries == []
        with pytest.raises(BadConfigurationError):
            built(cluster={SWITCH_CODES_KEY: text})

    @pytest.mark.parametrize("text", ["{}", '{"SeparateFaultCodes": null}', '{"Unknown": 5}'])
    def test_what_is_empty_but_valid(self, text: str) -> None:
        assert built(cluster={SWITCH_CODES_KEY: text}).switches.levels() == {}


class TestConvert:
    """Decision 15: the same effective level for every code."""

    def test_there_and_back(self) -> None:
        document = switch_levels_json(shipped_switches())
        assert list(json.loads(document)) == [
            "NotHandleFaultCodes",
            "SubHealthFaultCodes",
            "RestartRequestFaultCodes",
            "PreSeparateFaultCodes",
            "ResetFaultCodes",
            "SeparateFaultCodes",
        ]
        read = read_switch_levels("f", document)
        assert {e.text: e.level for e in read.entries} == shipped_switches().levels()
        yaml, left_out = switch_levels_yaml(read.entries, shipped_switches(), "x.json")
        assert left_out == []
        assert built(yaml).switches.levels() == shipped_switches().levels()

    def test_it_replaces_in_yaml_too_and_says_what_never_matches(self) -> None:
        read = read_switch_levels("f", json.dumps({"SeparateFaultCodes": [OTHER, "[0X1,2,cpu,na]"]}))
        yaml, left_out = switch_levels_yaml(read.entries, shipped_switches(), "x\ny")
        assert left_out == ["[0X1,2,cpu,na]"]
        assert built(yaml).switches.levels() == {OTHER: SwitchLevel.SEPARATE}
        empty, _ = switch_levels_yaml([], shipped_switches(), "x")
        assert built(empty).switches.levels() == {}

    def test_commands(self, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]) -> None:
        folder = tmp_path_factory.mktemp("convert")
        assert main(["table", "convert", "shipped", "--to", SWITCH_CODES_KEY]) == 0
        (folder / "saved.json").write_text(capsys.readouterr().out)
        assert main(["table", "convert", str(folder / "saved.json")]) == 0
        (folder / "s.yaml").write_text(capsys.readouterr().out)
        for name in ("saved.json", "s.yaml"):
            assert main(["table", "diff", "shipped", str(folder / name)]) == 0
        (folder / "s.yaml").write_text(entry(CODE, "level: NotHandle") + "replace: [switch_levels]\n")
        capsys.readouterr()
        assert main(["table", "diff", "shipped", str(folder / "s.yaml"), "--output", "json"]) == 1
        others = json.loads(capsys.readouterr().out)["others"]
        assert len(others) == 30
        changed = {"what": "switch fault", "code": CODE, "before": "Separate", "after": "NotHandle"}
        assert changed in others
        assert main(["table", "lint", str(folder / "s.yaml"), str(folder / "saved.json")]) == 0
        assert "all its switch levels (1) are shadowed by" in capsys.readouterr().out
        (folder / "saved.json").write_text('{"SeparateFaultCodes": [5]}')
        assert main(["table", "lint", str(folder / "saved.json")]) == 1
        assert "a member of SeparateFaultCodes must be a text" in capsys.readouterr().out


def test_a_described_code_without_level_is_in_no_table() -> None:
    table = shipped_switches().with_levels([])
    assert not table.level_of(parse_switch_code(CODE)).known
    assert table.name_of(parse_switch_code(CODE))
    assert replace(table, alias_old_ids=False).lookup(parse_switch_code("[0x00f1ff09,1,na,na]")) is None
