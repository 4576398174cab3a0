"""Every kind of bad table file: one clear sentence with file, line and code."""

import pytest
import yaml

from nodeagent.core.errors import TableError
from nodeagent.policy import table_yaml
from nodeagent.policy.table import lint, lint_all, load_table
from nodeagent.policy.table_records import BadTableError

RECORD = '  - code: "80E01801"\n    level: RestartBusiness\n'


@pytest.fixture(params=["C", "pure Python"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers must give the same sentences; the pure one is used where PyYAML was built without libyaml."""
    if request.param == "C":
        if not hasattr(yaml, "CSafeLoader"):
            pytest.skip("PyYAML has no C parser here")
        monkeypatch.setattr(table_yaml, "_PARSER", yaml.CSafeLoader)
    else:
        monkeypatch.setattr(table_yaml, "_PARSER", yaml.SafeLoader)


def sentences(text: str) -> list[str]:
    return [str(finding) for finding in lint("site.yaml", text)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "site.yaml:1: the file is empty"),
        ("  \n\n", "site.yaml:1: the file is empty"),
        ("# only a comment\n", "site.yaml:1: the file has no content"),
        ("---\n", "site.yaml:1: the file has no content"),
        ("just words", "site.yaml:1: the file holds a single value where a mapping is due"),
        ("- a\n- b\n", "site.yaml:1: the file holds a list where a mapping is due"),
        ("version: 1\nfaults: \x00\x01", "site.yaml:2: this is not text: it has a control character"),
        ("faults: &a\n  - *a\n", "site.yaml:1: anchors and aliases of YAML are not accepted in a table"),
        (
            'faults:\n  - code: !!str "80E01801"\n',
            "site.yaml:2: tags of YAML such as 'tag:yaml.org,2002:str' are not accepted in a table",
        ),
        ("faults:\n  - ? [a]\n    : b\n", "site.yaml:2: a key is a list or a mapping; keys are single words"),
        ("faults: [[[[[[[[[1]]]]]]]]]\n", "site.yaml:1: nested too deeply"),
        (
            "version: 1\n---\nversion: 1\n",
            "site.yaml:3: a second YAML document begins here; one file holds one document",
        ),
        ("version: 2\n", "site.yaml:1: version '2' is none of 1"),
        ("layer: shipped\n", "site.yaml:1: layer 'shipped' is none of builtin, site"),
        ("fault: []\n", "site.yaml:1: unknown key 'fault'; did you mean 'faults'?"),
        ("faults:\n  -\n", "site.yaml:2: faults must be a list of mappings"),
        ("faults:\n  - []\n", "site.yaml:2: faults must be a list of mappings"),
        ("faults: {}\n", "site.yaml:1: faults must be a list of mappings"),
        ("unknown:\n  - {severity_unknown: SeparateNPU}\n", "site.yaml:2: unknown must be a mapping"),
        ("version: [1]\n", "site.yaml:1: version cannot be a list"),
        ('layer: "\\x01"\n', "site.yaml:1: an escape writes a control character"),
        ("faults: 7\n", "site.yaml:1: faults must be a list of mappings"),
        ("faults:\n  - 80E01801\n", "site.yaml:2: faults must be a list of mappings"),
        ("unknown: SeparateNPU\n", "site.yaml:1: unknown must be a mapping"),
        ("defaults: []\n", "site.yaml:1: defaults must be a mapping"),
        (
            "faults:\n" + RECORD + "layer: site\n",
            "site.yaml:4: key 'layer' must stand before `unknown`, `faults`, `suppress`",
        ),
        ("version: 1\nversion: 1\n", "site.yaml:2: key 'version' stands twice (first in line 1)"),
        ("faults:\n" + RECORD + "    level: SeparateNPU\n", "site.yaml:4: code 80E01801: key 'level' stands twice"),
        ("faults:\n  - level: SeparateNPU\n", "site.yaml:2: the entry has no code"),
        (
            "faults:\n  - code: 80E21007\n    level: NotHandleFault\n",
            'site.yaml:2: code 80E21007: the code must be quoted: write "80E21007"',
        ),
        (
            "faults:\n  - code: 81078603\n    level: NotHandleFault\n",
            'site.yaml:2: code 81078603: the code must be quoted: write "81078603"',
        ),
        (
            "faults:\n  - code: 8C2FA001\n    level: NotHandleFault\n",
            'site.yaml:2: code 8C2FA001: the code must be quoted: write "8C2FA001"',
        ),
        ("faults:\n  - code: [a]\n    level: NotHandleFault\n", "site.yaml:2: the code must be one quoted text"),
        (
            'faults:\n  - code: "zz"\n    level: NotHandleFault\n',
            "site.yaml:2: code zz: 'zz' has not the shape of a chip code: 8 hex digits of which the first is"
            " 4, 8, 9, A or B, or 9 decimal digits",
        ),
        ('faults:\n  - code: "80E01801"\n', "site.yaml:2: code 80E01801: the entry has no level"),
        (
            'faults:\n  - code: "80E01801"\n    level: SubHealth\n',
            "site.yaml:3: code 80E01801: level 'SubHealth' is not a level; did you mean 'SubHealthFault'?",
        ),
        (
            'faults:\n  - code: "80E01801"\n    level: ManuallySeparateNPU\n',
            "site.yaml:3: code 80E01801: level ManuallySeparateNPU is not allowed here; allowed are NotHandleFault,"
            " SubHealthFault, RestartRequest, RestartBusiness, FreeRestartNPU, RestartNPU, PreSeparateNPU, SeparateNPU",
        ),
        (
            'faults:\n  - code: "80E01801"\n    level: null\n',
            "site.yaml:2: code 80E01801: a site file must name a level; leave the key away to keep the level below",
        ),
        (
            "faults:\n" + RECORD + "    leve: x\n",
            "site.yaml:4: code 80E01801: unknown key 'leve'; did you mean 'level'?",
        ),
        (
            "faults:\n" + RECORD + "    name: HBM\n",
            "site.yaml:4: code 80E01801: name must be a mapping with `en` and `zh`",
        ),
        (
            "faults:\n" + RECORD + "    name: {de: HBM}\n",
            "site.yaml:4: code 80E01801: unknown language 'de' in name; it takes `en` and `zh`",
        ),
        (
            "faults:\n" + RECORD + "    module: []\n",
            "site.yaml:4: code 80E01801: module must be a single text, not a list",
        ),
        ("faults:\n" + RECORD + '    module: ""\n', "site.yaml:4: code 80E01801: module is empty"),
        ("faults:\n" + RECORD + "    refs: kb\n", "site.yaml:4: code 80E01801: refs must be a list"),
        ("faults:\n" + RECORD + "    twins: x\n", "site.yaml:4: code 80E01801: twins must be a list of quoted codes"),
        (
            "faults:\n" + RECORD + "    twins: [A8028802]\n",
            'site.yaml:4: code 80E01801: the code must be quoted: write "A8028802"',
        ),
        (
            "faults:\n" + RECORD + "    kind: often\n",
            "site.yaml:4: code 80E01801: kind 'often' is none of occur_recover, once, recover",
        ),
        (
            "faults:\n" + RECORD + "    severity: fatal\n",
            "site.yaml:4: code 80E01801: severity 'fatal' is none of notice, minor, major, critical",
        ),
        (
            "faults:\n" + RECORD + "    plane: parameter_plane\n",
            "site.yaml:2: code 80E01801: the plane of this code is chip, not parameter_plane",
        ),
        (
            "unknown: {by_severity: {mayor: SeparateNPU}}\n",
            "site.yaml:1: unknown severity 'mayor'; did you mean 'major'?",
        ),
        ("unknown: {by_severity: SeparateNPU}\n", "site.yaml:1: by_severity must be a mapping of severities to levels"),
        ("unknown: {chip: SeparateNPU}\n", "site.yaml:1: unknown key 'chip' in unknown"),
        (
            "unknown: {parameter_plane: RestartNPU}\n",
            "site.yaml:1: parameter_plane RestartNPU is not allowed here; allowed are NotHandleFault, SubHealthFault,"
            " PreSeparateNPU, SeparateNPU",
        ),
        (
            "layer: builtin\nsuppress:\n  - {}\n",
            "site.yaml:3: a built-in table cannot suppress a code; write it into the site file",
        ),
        (
            'suppress:\n  - code: "80E01801"\n',
            "site.yaml:2: code 80E01801: the suppression lacks `chips`, `reason`, `until`",
        ),
        (
            'suppress:\n  - {code: "80E01801", chips: some, reason: x, until: 2027-01-31}\n',
            "site.yaml:2: code 80E01801: chips must be `all` or a list of physical chip ids such as [0, 3]",
        ),
        (
            'suppress:\n  - {code: "80E01801", chips: all, reason: x, until: soon}\n',
            "site.yaml:2: code 80E01801: until must be a date such as 2027-03-31, not 'soon'",
        ),
        (
            'suppress:\n  - {code: "80E01801", chips: all, reason: x, until: 2027-01-31, why: y}\n',
            "site.yaml:2: code 80E01801: unknown key 'why'",
        ),
    ],
)
def test_one_clear_sentence(text: str, sentence: str) -> None:
    assert sentences(text) == [sentence]
    with pytest.raises(TableError) as caught:
        load_table([("site.yaml", text)])
    assert caught.value.sentence == sentence


@pytest.mark.parametrize("text", ["faults: [", "faults:\n  - code: '80E01801\n", "version: 1: c\n", "\tx: y\n"])
def test_text_that_is_not_yaml(text: str) -> None:
    found = sentences(text)
    assert len(found) == 1
    assert found[0].startswith("site.yaml:")
    assert "the file is not YAML: " in found[0]


def test_all_problems_of_a_file_are_found() -> None:
    text = (
        'faults:\n  - code: 80E21007\n    level: X\n  - code: "80E01801"\n    level: RestartNPU\n    foo: bar\n'
        '  - code: "80e01801"\n    level: RestartNPU\n'
    )
    assert [(finding.place.line, finding.code) for finding in lint("f", text)] == [
        (2, "80E21007"),
        (3, "80E21007"),
        (6, "80E01801"),
        (7, "80E01801"),
    ]
    with pytest.raises(BadTableError) as caught:
        load_table([("f", text)])
    assert caught.value.sentence == 'f:2: code 80E21007: the code must be quoted: write "80E21007" (and 3 more)'
    assert len(caught.value.findings) == 4
    assert caught.value.code == "NA201"


def test_a_break_in_the_middle_keeps_what_was_found_before() -> None:
    found = lint("f", 'faults:\n  - code: 81078603\n    level: NotHandleFault\n  - code: "80E01801\n')
    assert found[0].place.line == 2
    assert "not YAML" in found[-1].sentence


@pytest.mark.parametrize("second", ['"80E01801"', '"80e01801"', '"0x80E01801"', '" 80E01801 "', "'80E01801'"])
def test_one_code_in_several_spellings_is_a_duplicate(second: str) -> None:
    text = f"faults:\n{RECORD}  - code: {second}\n    level: RestartNPU\n"
    assert sentences(text) == ["site.yaml:4: code 80E01801: listed twice (first at site.yaml:2)"]


def test_duplicates_across_aliases() -> None:
    text = f'faults:\n{RECORD}    aliases: ["8F000001"]\n  - code: "8F000001"\n    level: RestartNPU\n'
    assert sentences(text) == ["site.yaml:5: code 8F000001: listed twice (first at site.yaml:2)"]


def test_an_alias_may_not_be_the_code_of_a_lower_layer_or_of_another_plane() -> None:
    base, _ = load_table([("base", 'faults:\n  - code: "8F000001"\n    level: RestartNPU\n')])
    text = f'faults:\n{RECORD}    aliases: ["8F000001"]\n'
    assert [finding.sentence for finding in lint("f", text, base)] == [
        "the alias 8F000001 is a code of its own (at base:2)"
    ]
    text = f'faults:\n{RECORD}    aliases: ["81078603"]\n'
    assert [finding.sentence for finding in lint("f", text)] == ["the alias 81078603 belongs to another plane"]


BUILTIN = """layer: builtin
defaults: {module: HBM, name_basis: kb}
faults:
  - code: "80E01801"
    level: RestartBusiness
    name: {en: a fault, zh: 故障}
"""


def test_a_code_stands_in_one_builtin_table_only() -> None:
    assert lint("a.yaml", BUILTIN) == []
    found = lint_all([("a.yaml", BUILTIN), ("b.yaml", BUILTIN)])
    assert [str(finding) for finding in found] == ["b.yaml:4: code 80E01801: listed twice (first at a.yaml:4)"]


def test_builtin_records_are_complete() -> None:
    text = 'layer: builtin\nfaults:\n  - code: "80E01801"\n    name: {en: x}\n'
    assert sentences(text) == [
        "site.yaml:3: code 80E01801: the entry has no level",
        "site.yaml:3: code 80E01801: the entry lacks name.zh, module, name_basis",
    ]


def test_empty_sections_are_fine() -> None:
    assert sentences("version: 1\nfaults:\nsuppress: []\nunknown: {}\n") == []


def test_a_large_file_is_read_to_its_end() -> None:
    line = '  - {code: "80E01801", level: RestartNPU}\n'
    text = "faults:\n" + line * 20_000
    assert len(lint("big", text)) == 19_999


def test_a_long_or_broken_text_is_shown_short_and_on_one_line() -> None:
    (finding,) = lint("f", f'faults:\n  - code: "{"8" * 5000}\\n"\n    level: RestartNPU\n')
    assert len(str(finding)) < 300
    assert "\n" not in str(finding)


def test_keys_that_stand_twice_further_down() -> None:
    text = "faults:\n" + RECORD + "    name: {en: a, en: b}\n"
    assert sentences(text) == ["site.yaml:4: code 80E01801: key 'en' stands twice"]
    assert sentences("unknown: {by_severity: {major: SeparateNPU, major: RestartNPU}}\n") == [
        "site.yaml:1: key 'major' stands twice"
    ]
