"""`nodeagent table lint` and `nodeagent table list`."""

import argparse
import json
from pathlib import Path

import pytest

from nodeagent.cli import table
from nodeagent.core.errors import TableError
from nodeagent.core.files import SHIPPED_TABLES, VOCABULARY, read_shipped


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="nodeagent")
    table.register(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["table", *arguments])
    return int(parsed.run(parsed))


def test_the_shipped_files_are_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name in (*SHIPPED_TABLES, VOCABULARY):
        (tmp_path / name).write_text(read_shipped(name)[1], encoding="utf-8")
        paths.append(str(tmp_path / name))
    assert run("lint", *paths) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_every_finding_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(
        'faults:\n  - code: 80E21007\n  - code: "81078603"\n    level: RestartNPU\n'
        '  - code: "80E01801"\n    severity: fatal\n'
    )
    assert run("lint", str(path)) == 1
    assert capsys.readouterr().out.splitlines() == [
        f'{path}:2: code 80E21007: the code must be quoted: write "80E21007"',
        f"{path}:3: code 81078603: level RestartNPU does not exist on the parameter plane; NotHandleFault is used"
        " (warning)",
        f"{path}:6: code 80E01801: severity 'fatal' is none of notice, minor, major, critical",
    ]


def test_a_warning_alone_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "site.yaml"
    path.write_text('faults:\n  - code: "81078603"\n    level: RestartNPU\n')
    assert run("lint", str(path)) == 0
    assert "(warning)" in capsys.readouterr().out


def test_an_unreadable_file_is_one_sentence_and_the_others_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "bad").write_text("faults: 1\n")
    (tmp_path / "words").write_text("vocabulary: 1\nblocks: [1]\n")
    assert run("lint", str(tmp_path / "empty"), str(tmp_path / "bad"), str(tmp_path / "words")) == 2
    captured = capsys.readouterr()
    assert captured.err == f"nodeagent: NA201: {tmp_path}/empty is empty\n"
    assert captured.out.splitlines() == [
        f"{tmp_path}/words:2: an entry must be a mapping with id, en and zh",
        f"{tmp_path}/bad:1: faults must be a list of mappings",
    ]


def test_list_filters(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--module", "hbm", "--level", "SeparateNPU") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["80E0020B", "80E18402"]
    assert run("list") == 0
    assert len(capsys.readouterr().out.splitlines()) == 806


def test_list_as_json_with_a_site_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "site.yaml"
    path.write_text('faults:\n  - code: "8F000001"\n    level: SubHealthFault\n    module: Mine\n')
    assert run("list", "--module", "mine", "--output", "json", "--site-file", str(path)) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "code": "8F000001",
            "level": "SubHealthFault",
            "plane": "chip",
            "module": "Mine",
            "name": {"en": "", "zh": ""},
            "kind": "occur_recover",
            "severity": None,
            "category": None,
            "said_at": f"{path}:2",
        }
    ]


def test_list_refuses_a_bad_site_file(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("faults: 1\n")
    with pytest.raises(TableError):
        run("list", "--site-file", str(tmp_path / "bad"))


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("lint", "list"):
        with pytest.raises(SystemExit) as caught:
            run(action, "--help")
        assert caught.value.code == 0
        assert f"nodeagent table {action}" in capsys.readouterr().out


def test_list_of_switch_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--switches") == 0
    assert len(capsys.readouterr().out.splitlines()) == 30, "lingqu-switch-faults 5.1"
    assert run("list", "--switches", "--level", "RestartRequest") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[:2] == ["[0x00f1fef5,155914,npu,na]", "RestartRequest"]
    path = tmp_path / "site.yaml"
    path.write_text(
        'version: 1\nswitch:\n  faults:\n    - code: "[0x00f1fef5,155916,npu,na]"\n      level: PreSeparate\n'
    )
    words = ("--level", "PreSeparate", "--output", "json", "--site-file", str(path))
    assert run("list", "--switches", *words) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "code": "[0x00f1fef5,155916,npu,na]",
            "level": "PreSeparate",
            "node_status": "PreSeparate",
            "name": {"en": "", "zh": ""},
            "said_at": f"{path}:4",
        }
    ]
    with pytest.raises(SystemExit):
        run("list", "--switches", "--module", "HBM")
