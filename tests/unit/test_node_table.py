"""Levels of node faults: our YAML, upstream's document, layers, conversion, commands (node-faults 7)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.cli.main import main
from nodeagent.core.alarms import NodeLevel
from nodeagent.policy.configuration import OUR_KEY, BadConfigurationError, ClusterDocuments, build_configuration
from nodeagent.policy.configuration_lint import DocumentKind, kind_of, lint_documents
from nodeagent.policy.node_configuration import build_node_configuration, first_node_configuration
from nodeagent.policy.node_document import read_node_section
from nodeagent.policy.node_table import NodeConfiguration
from nodeagent.policy.upstream_node import NODE_CODES_KEY, node_levels_json, node_levels_yaml, read_node_levels
from nodeagent.sources.config_documents import documents_of_object, shipped, shipped_nodes

CPU = "0000001D"
FATAL = "2C000031"
OTHER = "29000017"
"""In no shipped table."""


def built(*site: str, cluster: dict[str, str] | None = None, alone: bool = True) -> NodeConfiguration:
    documents = [(f"site{n}.yaml", text) for n, text in enumerate(site)]
    layers = [ClusterDocuments("ns/cm", cluster, alone=alone)] if cluster is not None else []
    return build_node_configuration(shipped_nodes(), documents, layers)[0]


def level(configuration: NodeConfiguration, text: str = CPU) -> str | None:
    found = configuration.table.level_of(text)
    return None if found is None else found.text


def entry(text: str, more: str) -> str:
    return f'node: {{faults: [{{code: "{text}", {more}}}]}}\n'


def upstream(**lists: Any) -> str:
    return json.dumps({"FaultTypeCode": {f"{name}Codes": codes for name, codes in lists.items()}})


def refusals(text: str) -> list[str]:
    read = read_node_levels("f", text)
    assert not read.usable
    assert read.entries == []
    return [str(finding) for finding in read.findings if finding.serious]


def warnings(text: str) -> list[str]:
    read = read_node_levels("f", text)
    assert read.usable
    return [str(finding) for finding in read.findings]


class TestYaml:
    def test_a_site_changes_single_fields(self) -> None:
        changed = built(entry("0x0000001d", "level: SeparateFault"))
        assert level(changed) == "SeparateFault"
        record, below = changed.table.records[CPU], shipped_nodes().table.records[CPU]
        assert (record.name_zh, record.place) == (below.name_zh, below.place)
        assert (str(record.level_place), record.place.label) == ("site0.yaml:1", "fault_codes/node.yaml")
        named = built(entry(CPU, "name: {en: Our CPU}"))
        assert (named.table.name_of(CPU), level(named)) == ("Our CPU", "PreSeparateFault")

    def test_a_code_of_its_own_needs_a_level(self) -> None:
        assert level(built(entry(OTHER, "level: NotHandleFault")), OTHER) == "NotHandleFault"
        with pytest.raises(BadConfigurationError, match=r"site0.yaml:1: code 29000017: the entry has no level"):
            built(entry(OTHER, "notes: mine"))

    def test_it_stands_beside_a_fault_table_rules_and_switches(self) -> None:
        text = (
            'version: 1\nfaults: [{code: "80E01801", level: SubHealthFault}]\n'
            'switch: {faults: [{code: "[0x08520003,na,npu,na]", level: NotHandle}]}\n'
        ) + entry(CPU, "level: SeparateFault")
        assert level(built(text)) == "SeparateFault"
        build_configuration(shipped(), [("site.yaml", text)])

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("node: [1]\n", "node must be a mapping"),
            ("node: {fault: []}\n", "unknown key 'fault' in node; did you mean 'faults'?"),
            ("node: {faults: {}}\n", "node.faults must be a list of mappings"),
            ("node: {faults: [x]}\n", "an entry of node.faults must be a mapping"),
            ("node: {faults: [{level: SeparateFault}]}\n", "the entry has no code"),
            ("node: {faults: [{code: 0000001D, level: SeparateFault}]}\n", 'the code must be quoted: write "0000001D"'),
            ('node: {faults: [{code: ["0000001D"], level: SeparateFault}]}\n', "the code must be one quoted text"),
            (entry("000001D", "level: SeparateFault"), "'000001D' has not the shape of an alarm code"),
            (entry("0000-01D", "level: SeparateFault"), "has not the shape of an alarm code"),
            (entry(CPU, "level: SeparateNPU"), "level 'SeparateNPU' is no level of node faults; did you mean"),
            (entry(CPU, "levle: SeparateFault"), "unknown key 'levle'; did you mean 'level'?"),
            (entry(CPU, "name: {de: x}"), "unknown language 'de' in name"),
            (entry(CPU, f'level: SeparateFault}}, {{code: "{CPU.lower()}", notes: x'), "listed twice (first at site0"),
            (entry(CPU, "level: SeparateFault, level: SeparateFault"), "key 'level' stands twice"),
            ("{node: {}, node: {}}\n", "key 'node' stands twice"),
            ("a: &x 1\n", "anchors and aliases of YAML are not accepted"),
            ("\n", "the file is empty"),
        ],
    )
    def test_mistakes_refuse_the_section_with_one_clear_line(self, text: str, words: str) -> None:
        with pytest.raises(BadConfigurationError) as caught:
            built(text)
        (serious,) = [str(finding) for finding in caught.value.findings if finding.serious]
        assert words in serious
        assert serious.startswith("site0.yaml:1: ")

    def test_each_reader_minds_its_own_section(self) -> None:
        bad_node = entry(CPU, "level: SeparateFault, level: x, levle: x")
        build_configuration(shipped(), [("site.yaml", bad_node)])
        bad_chips = 'faults: [{code: "80E01801", level: x}]\nreplace: [x]\nfaultz: 1\n'
        build_node_configuration(shipped_nodes(), [("site.yaml", bad_chips)])
        for text, build in ((bad_node, build_node_configuration), (bad_chips, build_configuration)):
            base = shipped_nodes() if build is build_node_configuration else shipped()
            with pytest.raises(BadConfigurationError):
                build(base, [("site.yaml", text)])  # type: ignore[operator]

    def test_a_shipped_entry_must_be_complete(self) -> None:
        with pytest.raises(BadConfigurationError, match="the entry lacks name_en, name_zh, name_basis"):
            built("layer: builtin\n" + entry(CPU, "level: SeparateFault"))

    def test_a_code_that_no_alarm_can_have_is_a_warning(self) -> None:
        read = read_node_section("f", entry("0000O01D", "level: SeparateFault"))
        assert read.usable
        assert [str(each) for each in read.findings] == [
            "f:1: code 0000O01D: no alarm can have this code: alarm codes are hexadecimal"
        ]

    def test_where_nobody_else_reads_the_document_all_of_it_counts(self) -> None:
        """The ConfigMap of node faults: a misspelled section must not pass in silence."""
        for text, words in (
            ("nodes: {faults: []}\n", "unknown key 'nodes'; did you mean 'node'?"),
            ("version: 2\n", "version '2' is none of 1"),
            ("replace: [levels]\n", "replace must be a list of the word node_levels here"),
            ("version: 1\nversion: 1\n", "key 'version' stands twice"),
        ):
            with pytest.raises(BadConfigurationError, match=words):
                built(cluster={OUR_KEY: text})
            assert level(built(cluster={OUR_KEY: text}, alone=False)) == "PreSeparateFault"
        read = read_node_section("f", "faults: [1, 2]\n" + entry(CPU, "level: SeparateFault"), alone=True)
        assert [str(each) for each in read.findings] == ["f:1: 'faults' is not read here, only 'node' is"]
        assert read.usable


class TestUpstreamsDocument:
    """7.2, rule by rule."""

    def test_the_example_of_the_sheet(self) -> None:
        text = """{"FaultTypeCode": {
   "NotHandleFaultCodes":   ["0100000D"],
   "PreSeparateFaultCodes": ["0000001D", "0000001f"],
   "SeparateFaultCodes":    ["2C000031"]
}}"""
        read = read_node_levels("f", text)
        assert [(each.text, each.level.text, each.place.line) for each in read.entries] == [
            ("0100000D", "NotHandleFault", 2),
            ("0000001D", "PreSeparateFault", 3),
            ("0000001F", "PreSeparateFault", 3),
            ("2C000031", "SeparateFault", 4),
        ]
        assert read.findings == []

    @pytest.mark.parametrize("text", ["{}", '{"FaultTypeCode": null}', '{"SeparateFaultCodes": []}'])
    def test_the_top_object_must_be_there(self, text: str) -> None:
        assert any("FaultTypeCode is missing or null" in each for each in refusals(text))

    @pytest.mark.parametrize("inside", ["{}", '{"SeparateFaultCodes": null}', '{"SeparateFaultCodes": []}'])
    def test_a_missing_list_is_empty(self, inside: str) -> None:
        assert warnings(f'{{"FaultTypeCode": {inside}}}') == []
        assert built(cluster={NODE_CODES_KEY: f'{{"FaultTypeCode": {inside}}}'}).table.levels() == {}

    def test_unknown_keys_and_letter_case_of_keys(self) -> None:
        text = '{"x": 1, "faulttypeCODE": {"separatefaultcodes": ["2C000031"],\n"SeperateFaultCodes": ["00000003"]}}'
        assert [each.text for each in read_node_levels("f", text).entries] == [FATAL]
        assert warnings(text) == [
            "f:1: unknown key 'x' is ignored",
            "f:2: unknown key 'SeperateFaultCodes' is ignored; did you mean 'SeparateFaultCodes'?",
        ]

    @pytest.mark.parametrize(
        ("written", "code"),
        [("0000001d", CPU), ("zzzz0000", "ZZZZ0000"), ("0X000000", "0X000000")],
    )
    def test_codes_that_upstream_takes(self, written: str, code: str) -> None:
        read = read_node_levels("f", upstream(SeparateFault=[written]))
        assert [each.text for each in read.entries] == [code]
        assert len(read.findings) == (code != CPU)
        assert all("no alarm can have this code" in str(each) for each in read.findings)

    @pytest.mark.parametrize(
        "written",
        ["", "000001D", "000000001D", "0x0000001D", " 000001D", "0000001D ", "0000-01D", "ß000000", "٣0000001"],
    )
    def test_codes_that_refuse_the_document(self, written: str) -> None:
        """T9 counts a 7-digit code as bad content."""
        (sentence,) = refusals(upstream(SeparateFault=[FATAL, written]))
        assert sentence.endswith("in SeparateFaultCodes is no code of eight letters and digits")

    def test_every_bad_code_is_named(self) -> None:
        assert len(refusals(upstream(SeparateFault=["1", "2"], NotHandleFault=["3"]))) == 3

    def test_twice_in_one_list_is_once(self) -> None:
        text = upstream(SeparateFault=[CPU, CPU.lower()])
        assert len(read_node_levels("f", text).entries) == 1
        assert warnings(text) == ["f:1: code 0000001D: is listed twice as SeparateFault"]

    def test_in_two_lists_refuses_the_document(self) -> None:
        text = '{"FaultTypeCode": {"NotHandleFaultCodes": ["0000001D"],\n "SeparateFaultCodes": ["0000001d"]}}'
        assert refusals(text) == [
            "f:2: code 0000001D: is in two lists: as SeparateFault here, as NotHandleFault at f:1"
        ]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "null",
            '{"FaultTypeCode": []}',
            '{"FaultTypeCode": {"SeparateFaultCodes": "x"}}',
            '{"FaultTypeCode": {"SeparateFaultCodes": [1]}}',
            '{"FaultTypeCode": {"SeparateFaultCodes": [null]}}',
            '{"FaultTypeCode": {}',
            '{"FaultTypeCode": {}} {}',
        ],
    )
    def test_what_makes_it_invalid(self, text: str) -> None:
        refusals(text)
        with pytest.raises(BadConfigurationError):
            built(cluster={NODE_CODES_KEY: text})

    def test_a_byte_order_mark_and_keys_that_stand_twice_are_warnings(self) -> None:
        text = '\ufeff{"FaultTypeCode": {"SeparateFaultCodes": ["00000003"], "SeparateFaultCodes": ["2C000031"]}}'
        assert [each.text for each in read_node_levels("f", text).entries] == [FATAL]
        assert len(warnings(text)) == 2


class TestLayers:
    """Decision 12."""

    def test_json_replaces_all_levels_and_the_texts_stay(self) -> None:
        found = built(cluster={NODE_CODES_KEY: upstream(SeparateFault=[CPU])})
        assert found.table.levels() == {CPU: NodeLevel.SEPARATE}
        assert found.table.name_of(FATAL)
        assert found.layers == ("fault_codes/node.yaml", f"ns/cm/{NODE_CODES_KEY}")

    def test_site_below_and_our_key_above_it(self) -> None:
        site, document = entry(CPU, "level: NotHandleFault"), upstream(NotHandleFault=[FATAL])
        assert level(built(site)) == "NotHandleFault"
        assert level(built(site, cluster={NODE_CODES_KEY: document})) is None
        both = built(site, cluster={NODE_CODES_KEY: document, OUR_KEY: entry(CPU, "level: SeparateFault")})
        assert (level(both), level(both, FATAL)) == ("SeparateFault", "NotHandleFault")
        only = built(site, cluster={OUR_KEY: entry(FATAL, "level: NotHandleFault")})
        assert (level(only), level(only, FATAL)) == ("NotHandleFault", "NotHandleFault")

    def test_an_object_with_neither_key_is_told_and_leaves_what_lies_below(self) -> None:
        layer = documents_of_object({"metadata": {}, "data": {"x": "y"}}, "ns/cm", (NODE_CODES_KEY, OUR_KEY), True)
        found, findings = build_node_configuration(shipped_nodes(), [], [layer])
        assert found.table == shipped_nodes().table
        assert [str(each) for each in findings if each.serious] == [
            "ns/cm: has neither NodeDConfiguration.json nor nodeagent.yaml; the layers below it are in force"
        ]

    def test_the_version_follows_what_is_said_of_nodes(self) -> None:
        chips = 'faults: [{code: "80E01801", level: SubHealthFault}]\n'
        assert built(chips) == built()
        assert built(chips).version != built(entry(CPU, "level: SeparateFault")).version
        text = {NODE_CODES_KEY: upstream(SeparateFault=[CPU])}
        elsewhere = ClusterDocuments("other/cm", text)
        assert built(cluster=text).version == build_node_configuration(shipped_nodes(), [], [elsewhere])[0].version

    def test_a_start_goes_on_without_a_bad_section(self) -> None:
        good, bad = ("s", entry(CPU, "level: SeparateFault")), ("s", entry(CPU, "level: x"))
        assert first_node_configuration(shipped_nodes(), [good])[1] == (good,)
        found, site = first_node_configuration(shipped_nodes(), [bad])
        assert (found, site) == (built(), ())


class TestConvert:
    """Decision 15: the same effective level for every code."""

    def test_there_and_back(self) -> None:
        table = shipped_nodes().table
        document = node_levels_json(table)
        assert list(json.loads(document)["FaultTypeCode"]) == [
            "NotHandleFaultCodes",
            "PreSeparateFaultCodes",
            "SeparateFaultCodes",
        ]
        read = read_node_levels("f", document)
        assert {each.text: each.level for each in read.entries} == table.levels()
        assert built(node_levels_yaml(read.entries, table, "x.json")).table.levels() == table.levels()

    def test_it_replaces_in_yaml_too(self) -> None:
        read = read_node_levels("f", upstream(SeparateFault=[OTHER, "ZZZZ0000"]))
        text = node_levels_yaml(read.entries, shipped_nodes().table, "x\ny")
        wanted = {OTHER: NodeLevel.SEPARATE, "ZZZZ0000": NodeLevel.SEPARATE}
        assert built(text).table.levels() == wanted
        assert built(cluster={OUR_KEY: text}).table.levels() == wanted
        assert built(node_levels_yaml([], shipped_nodes().table, "x")).table.levels() == {}

    def test_commands(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        saved, site = tmp_path / "saved.json", tmp_path / "s.yaml"
        assert main(["table", "convert", "shipped", "--to", NODE_CODES_KEY]) == 0
        saved.write_text(capsys.readouterr().out)
        assert main(["table", "convert", str(saved)]) == 0
        site.write_text(capsys.readouterr().out)
        for path in (saved, site):
            assert main(["table", "diff", "shipped", str(path)]) == 0
            assert main(["table", "lint", str(path)]) == 0
        saved.write_text(upstream(SeparateFault=[CPU]))
        capsys.readouterr()
        assert main(["table", "diff", "shipped", str(saved)]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert f"node fault {CPU}: PreSeparateFault => SeparateFault" in lines
        assert f"node fault {FATAL}: SeparateFault => (none)" in lines
        assert lines[-1] == "0 codes change level, 59 other differences"
        site.write_text("replace: [node_levels]\n" + entry(FATAL, "level: NotHandleFault"))
        assert main(["table", "convert", str(site), "--to", NODE_CODES_KEY]) == 0
        assert json.loads(capsys.readouterr().out)["FaultTypeCode"]["NotHandleFaultCodes"] == [FATAL]
        saved.write_text(upstream(SeparateFault=["7"]))
        assert main(["table", "convert", str(saved)]) == 2


class TestLint:
    def test_kinds(self) -> None:
        for name, text in (
            (f"a/{NODE_CODES_KEY}", ""),
            ("x.json", upstream(PreSeparateFault=[])),
            ("x", '{"faulttypecode":{}}'),
        ):
            assert kind_of(name, text) is DocumentKind.NODE_LEVELS

    def test_findings_of_both_forms_and_what_is_shadowed(self) -> None:
        documents = [
            ("low.yaml", entry(CPU, "level: NotHandleFault")),
            ("mid.json", upstream(SeparateFault=[CPU])),
            ("high.yaml", entry(CPU.lower(), "level: PreSeparateFault") + "nodes: 1\n"),
            ("bad.json", upstream(SeparateFault=["7"])),
        ]
        assert [str(each) for each in lint_documents(documents, shipped(), shipped_nodes())] == [
            "low.yaml: all its node levels (1) are shadowed by mid.json, which replaces node levels",
            "mid.json:1: code 0000001D: its level is shadowed by high.yaml:1",
            "high.yaml:2: unknown key 'nodes'; did you mean 'node'?",
            "bad.json:1: '7' in SeparateFaultCodes is no code of eight letters and digits",
        ]

    def test_a_saved_config_map_and_a_folder(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        saved = tmp_path / "cm.yaml"
        text = json.dumps(upstream(SeparateFault=["7"]))
        saved.write_text(f"kind: ConfigMap\nmetadata: {{}}\ndata: {{{NODE_CODES_KEY}: {text}}}\n")
        assert main(["table", "lint", str(saved)]) == 1
        assert capsys.readouterr().out.startswith(f"{saved}/{NODE_CODES_KEY}:1: '7' in ")
        saved.unlink()
        (tmp_path / NODE_CODES_KEY).write_text(upstream(SeparateFault=[CPU]))
        assert main(["table", "lint", str(tmp_path)]) == 0
        assert main(["table", "diff", "shipped", str(tmp_path)]) == 1

    def test_list(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["table", "list", "--node-faults", "--level", "SeparateFault"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "2C000031  SeparateFault     Fatal system error diagnosed by the BMC (CPU CatError)"
        ]
        assert main(["table", "list", "--node-faults", "--output", "json"]) == 0
        assert len(json.loads(capsys.readouterr().out)) == 59


class TestExplain:
    @pytest.mark.parametrize("spelling", ["0000001D", "0000001d", "0x0000001D", "0X1d", "0000 001d"])
    def test_any_spelling(self, spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
        for flags in ((), ("--node",)):
            assert main(["explain", spelling, *flags]) == 0
            out = capsys.readouterr().out
            assert out.startswith("0000001D  Uncorrectable error inside the CPU")
            assert "PreSeparateFault -> node PreSeparate" in out

    def test_an_unlisted_code_needs_the_flag(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["explain", OTHER]) == 2
        assert "--node" in capsys.readouterr().err
        assert main(["explain", OTHER, "--node", "--lang", "en"]) == 1
        out = capsys.readouterr().out
        assert out.startswith("29000017  Port alarm 29000017: text not known")
        assert "published nowhere" in out
        assert main(["explain", "--node", "zz", CPU]) == 2
        assert capsys.readouterr().out.startswith(CPU)

    def test_a_code_of_chip_and_node_is_explained_twice(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        site = tmp_path / "s.yaml"
        site.write_text(
            'node: {faults: [{code: "80E01801", level: SeparateFault}, {code: "8F1802FF", level: SeparateFault},'
            ' {code: "08520003", level: NotHandleFault}]}\n'
        )
        run = ["--site-file", str(site), "--output", "json"]
        assert main(["explain", "80E01801", *run]) == 0
        both = json.loads(capsys.readouterr().out)
        assert [each["level"] for each in both] == ["RestartBusiness", "SeparateFault"]
        assert main(["explain", "8F1802FF", *run]) == 0
        (only,) = json.loads(capsys.readouterr().out)
        assert (only["domain"], only["node_status"]) == ("node", "UnHealthy")
        assert main(["explain", "08520003", *run]) == 0
        assert {each["domain"] for each in json.loads(capsys.readouterr().out)} == {"switch", "node"}


codes = st.one_of(
    st.text(alphabet="0123456789ABCDEFabcdef", min_size=8, max_size=8), st.text(max_size=9), st.none(), st.integers()
)
lists = st.dictionaries(
    st.sampled_from(["NotHandleFaultCodes", "PreSeparateFaultCodes", "separatefaultcodes", "x"]),
    st.lists(codes, max_size=5) | codes,
    max_size=4,
)
documents = st.fixed_dictionaries({"FaultTypeCode": lists | st.none()}).map(json.dumps)


@given(st.one_of(st.text(max_size=100), documents, documents.map(lambda text: text[: len(text) * 2 // 3])))
def test_any_text_is_read_or_refused_and_no_code_has_two_levels(text: str) -> None:
    read = read_node_levels("f", text)
    assert read.usable or read.entries == []
    assert len({each.text for each in read.entries}) == len(read.entries)
    if read.usable:
        levels = {each.text: each.level for each in read.entries}
        yaml = node_levels_yaml(read.entries, shipped_nodes().table, "x")
        assert built(yaml).table.levels() == levels
        assert built(cluster={NODE_CODES_KEY: node_levels_json(built(yaml).table)}).table.levels() == levels
        found = [finding for finding in read_node_section("f", yaml).findings if finding.serious]
        assert found == []


hexes = st.text(alphabet="0123456789ABCDEF", min_size=8, max_size=8)


@given(st.dictionaries(hexes, st.sampled_from(NodeLevel), max_size=12))
def test_every_set_of_levels_survives_upstreams_form(levels: dict[str, NodeLevel]) -> None:
    text = upstream(**{each.text: [code.lower() for code, its in levels.items() if its is each] for each in NodeLevel})
    assert built(cluster={NODE_CODES_KEY: text}).table.levels() == levels


@given(st.one_of(st.text(max_size=60), hexes.map(lambda code: entry(code, "level: SeparateFault"))), st.booleans())
def test_any_text_is_a_section_or_a_finding(text: str, alone: bool) -> None:
    read = read_node_section("f", text, alone)
    assert all("\n" not in str(finding) for finding in read.findings)
    assert read.present or read.drafts == {}
