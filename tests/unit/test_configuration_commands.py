"""`nodeagent table lint | diff | convert` on documents of every kind."""

import argparse
import json
from pathlib import Path

import pytest

from nodeagent.cli import table
from nodeagent.core.errors import TableError
from nodeagent.core.files import SHIPPED_NODES, SHIPPED_RULES, SHIPPED_SWITCHES, SHIPPED_TABLES, read_shipped
from nodeagent.policy.configuration_lint import DocumentKind, kind_of, lint_documents
from nodeagent.sources.config_documents import shipped


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser(prog="nodeagent")
    table.register(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["table", *map(str, arguments)])
    return int(parsed.run(parsed))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a/faultCode.json", "{}", DocumentKind.LEVELS),
        ("x.json", '{"separatenpucodes": []}', DocumentKind.LEVELS),
        ("x", ' \n{"SubHealthFaultNetworkCodes" : []}', DocumentKind.LEVELS),
        ("faultCustomization.json", "", DocumentKind.CUSTOMIZATION),
        ("x.json", '{"FaultDuration": []}', DocumentKind.CUSTOMIZATION),
        ("x.json", "{}", DocumentKind.UNCLEAR),
        ("x.json", "faults: []", DocumentKind.UNCLEAR),
        ("a/PollInterval", "30", DocumentKind.POLL_INTERVAL),
        ("x.yaml", "{faults: []}", DocumentKind.OURS),
        ("x", "faults: []", DocumentKind.OURS),
        ("x.yml", "vocabulary: 1\n", DocumentKind.VOCABULARY),
    ],
)
def test_kinds(name: str, text: str, kind: DocumentKind) -> None:
    assert kind_of(name, text) is kind


def test_shipped_documents_are_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = (*SHIPPED_TABLES, SHIPPED_RULES, SHIPPED_SWITCHES, SHIPPED_NODES)
    paths = [write(tmp_path / name, read_shipped(name)[1]) for name in names]
    assert run("lint", *paths) == 0
    assert capsys.readouterr().out == ""


def test_lint_of_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = write(
        tmp_path / "s.yaml",
        'faults: [{code: "80E01801", level: RestartNPU}]\nfrequency:\n  - {codes: ["80E18005"], window_s: 1}\n'
        'duration: [{codes: ["8F000001"], fault_s: 1, recover_s: 1, handling: SeparateNPU}]\n',
    )
    levels = write(tmp_path / "faultCode.json", '{"SeparateNPUCodes": ["80E01801", "zz"],\n"SeparateNPUcode": 1}')
    rules = write(tmp_path / "faultCustomization.json", '{"FaultDuration":\n[{"EventId": []}]}')
    poll = write(tmp_path / "PollInterval", "5")
    strange = write(tmp_path / "strange.json", "{}")
    assert run("lint", ours, levels, rules, poll, strange) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{ours}: all its levels (1) are shadowed by {levels}, which replaces levels (warning)",
        f"{ours}: all its rules (1) are shadowed by {rules}, which replaces rules (warning)",
        f"{ours}:3: code 80E18005: times is missing; this whole group of frequency is dropped",
        f"{levels}:1: 'zz' in SeparateNPUCodes is not a hexadecimal code and is skipped (warning)",
        f"{levels}:2: unknown key 'SeparateNPUcode' is ignored; did you mean 'SeparateNPUCodes'? (warning)",
        f"{rules}:2: EventId is empty; this whole group of FaultDuration is dropped",
        f"{poll}:1: '5' is not a number of seconds in 30..3600; 300 is used (warning)",
        f"{strange}:1: this document is neither faultCode.json nor faultCustomization.json nor SwitchFaultCode.json nor"
        " NodeDConfiguration.json",
    ]


def test_lint_says_what_is_shadowed_and_what_no_table_knows() -> None:
    rule = 'duration: [{codes: ["8F000001"], fault_s: 1, recover_s: 1, handling: SeparateNPU}]\n'
    low, high = (
        'faults: [{code: "80E01801", level: RestartNPU}]\n' + rule,
        'faults: [{code: "80E01801", level: null}]\n',
    )
    findings = lint_documents([("low", low), ("high", high + rule)], shipped())
    assert [str(finding) for finding in findings] == [
        "low:1: code 80E01801: its level is shadowed by high:1",
        "low:2: code 8F000001: its duration rule is shadowed by high:2",
        "high:1: code 80E01801: a site file must name a level; leave the key away to keep the level below",
        "high:2: code 8F000001: has a rule, but no table knows this code",
    ]


def test_lint_of_a_folder_and_of_a_saved_config_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "cm" / "faultCode.json", "[")
    saved = write(
        tmp_path / "saved.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  PollInterval: '1'\nbinaryData: {y: ''}\n",
    )
    assert run("lint", tmp_path / "cm", saved) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{saved}/y: stands in binaryData, which is not read (warning)",
        f"{tmp_path}/cm/faultCode.json:1: column 2: the text ends too early",
        f"{saved}/PollInterval:1: '1' is not a number of seconds in 30..3600; 300 is used (warning)",
    ]


def test_lint_of_bytes_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "faultCode.json").write_bytes(b'{"a": "\xff"}')
    assert run("lint", tmp_path / "faultCode.json") == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = write(
        tmp_path / "s.yaml", 'faults: [{code: "80E01801", level: RestartNPU}]\nremove: {duration: ["81078603"]}\n'
    )
    assert run("diff", "shipped", site) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"80E01801   RestartBusiness => RestartNPU  ({site}:1)",
        "duration rule 81078603: longer than 20 s -> PreSeparateNPU, recovered after 60 s => (none)",
        "1 codes change level, 1 other differences",
    ]
    assert run("diff", "shipped", "shipped") == 0
    assert run("diff", site, site, "--site-file", site) == 0
    capsys.readouterr()
    assert run("diff", site, "shipped", "--output", "json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["levels"][0] | {"said_at": ""} == {
        "code": "80E01801",
        "before": "RestartNPU",
        "after": "RestartBusiness",
        "said_at": "",
    }
    assert answer["others"][0]["before"] is None


def test_diff_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "cm" / "faultCustomization.json", '{"FaultFrequency": []}')
    assert run("diff", "shipped", tmp_path / "cm") == 1
    assert "0 codes change level, 44 other differences" in capsys.readouterr().out


def test_diff_of_what_is_refused(tmp_path: Path) -> None:
    for name, text in (("faultCode.json", "["), ("x.json", "{}"), ("x.yaml", "faults: 1\n")):
        with pytest.raises(TableError):
            run("diff", "shipped", write(tmp_path / name, text))
    with pytest.raises(TableError):
        run("diff", "shipped", write(tmp_path / "empty" / "x", "").parent)
    with pytest.raises(TableError):
        run("diff", "shipped", tmp_path / "missing")


@pytest.mark.parametrize("key", ["faultCode.json", "faultCustomization.json"])
def test_convert_there_and_back(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Decision 15, with the command as an operator uses it."""
    assert run("convert", "shipped", "--to", key) == 0
    text = capsys.readouterr().out
    assert run("convert", write(tmp_path / key, text)) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    yaml = write(tmp_path / "converted.yaml", captured.out)
    assert run("lint", yaml) == 0
    assert capsys.readouterr().out == ""
    assert run("diff", "shipped", yaml) == 0
    assert run("diff", yaml, tmp_path / key) == 0
    capsys.readouterr()
    assert run("convert", yaml, "--to", key) == 0
    assert capsys.readouterr().out == text


def test_convert_of_documents_with_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(
        tmp_path / "faultCode.json",
        '{"SeparateNPUCodes": ["80E18005", "123"], "RestartNPUCodes": ["80E18005"], "SubHealthFaultCodes": null}',
    )
    assert run("convert", source) == 1
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [
        f"{source}:1: code 80E18005: is listed as RestartNPU too; SeparateNPU at {source}:1 counts (warning)",
        f"{source}: code 123: no chip can report it; it is left out",
    ]
    assert '{code: "80E18005", level: SeparateNPU}' in captured.out
    yaml = write(tmp_path / "c.yaml", captured.out)
    assert run("diff", source, yaml) == 1  # the code 123
    rules = write(
        tmp_path / "faultCustomization.json",
        '{"GraceTolerance": {"WaitDeviceResetTime": 99}, "FaultFrequency": [{"EventId": ["80E18005"]}],'
        '"FaultDuration": [{"EventId": ["9"], "FaultHandling": "RestartNPU"}]}',
    )
    capsys.readouterr()
    assert run("convert", rules) == 1
    captured = capsys.readouterr()
    assert "this whole group of FaultFrequency is dropped" in captured.err
    assert captured.out.endswith(
        "replace: [rules]\n\nfrequency: []\n\nduration: []\n\ngrace_tolerance:\n  WaitDeviceResetTime: 99\n"
    )


def test_convert_of_an_empty_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("faultCode.json", "faultCustomization.json"):
        source = write(tmp_path / name, "{}")
        assert run("convert", source) == 0
        yaml = write(tmp_path / "c.yaml", capsys.readouterr().out)
        assert run("diff", source, yaml) == 0
        capsys.readouterr()


def test_convert_keeps_a_release_that_never_comes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        '{"FaultFrequency": [{"EventId": ["80E18005"], "TimeWindow": 60, "Times": 1,'
        ' "FaultHandling": "PreSeparateNPU", "ReleaseTimeWindow": 4294967296}]}'
    )
    source = write(tmp_path / "faultCustomization.json", text)
    assert run("convert", source) == 0
    yaml = write(tmp_path / "c.yaml", capsys.readouterr().out)
    assert run("diff", source, yaml) == 0


def test_convert_takes_grace_tolerance_of_the_highest_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    yaml = write(tmp_path / "s.yaml", "grace_tolerance: {WaitDeviceResetTime: 99}\n")
    assert run("convert", yaml, "--to", "faultCustomization.json") == 0
    assert json.loads(capsys.readouterr().out)["GraceTolerance"] == {"WaitDeviceResetTime": 99}


def test_convert_refuses_what_it_cannot_convert(tmp_path: Path) -> None:
    for name, text in (("x.yaml", "faults: []\n"), ("faultCode.json", "["), ("faultCustomization.json", "5")):
        with pytest.raises(TableError):
            run("convert", write(tmp_path / name, text))
    with pytest.raises(TableError):
        run("convert", tmp_path / "a", tmp_path / "b")


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("diff", "convert"):
        with pytest.raises(SystemExit) as caught:
            run(action, "--help")
        assert caught.value.code == 0
        assert f"nodeagent table {action}" in capsys.readouterr().out
