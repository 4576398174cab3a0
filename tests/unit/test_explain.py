"""`nodeagent explain`: spellings, languages, exit codes, the JSON answer."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from nodeagent.cli import explain
from nodeagent.core.errors import TableError


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="nodeagent")
    explain.register(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["explain", *arguments])
    return int(parsed.run(parsed))


def facts(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    run(*arguments, "--output", "json")
    answer = json.loads(capsys.readouterr().out)
    assert isinstance(answer, list)
    return answer


@pytest.mark.parametrize("spelling", ["80E01801", "80e01801", "0x80E01801", "0X80e01801", " 80E0 1801 "])
def test_any_spelling(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(spelling) == 0
    out = capsys.readouterr().out
    assert out.startswith("80E01801  HBM multi-bit ECC error")
    assert "HBM 多比特 ECC 错误" in out
    assert "RestartBusiness" in out
    assert "A8028802" in out


@pytest.mark.parametrize("spelling", ["020001002", "20001002", "0x20001002", "0020001002"])
def test_leading_zeros_may_be_missing(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(spelling, "--lang", "en") == 0
    assert capsys.readouterr().out.startswith("020001002  UB optical member ports down")


def test_one_language(capsys: pytest.CaptureFixture[str]) -> None:
    run("81078603", "--lang", "en")
    english = capsys.readouterr().out
    assert english.isascii()
    run("81078603", "--lang", "zh")
    chinese = capsys.readouterr().out
    assert "RoCE 网口链路断开" in chinese
    assert "级别" in chinese
    assert "link down" not in chinese


def test_the_place_that_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    (answer,) = facts(capsys, "80E01801")
    label, line = answer["level_at"].rsplit(":", 1)
    assert label == "fault_codes/chip.yaml"
    assert int(line) > 1


def test_an_unlisted_code_is_decoded_and_levelled_at_each_severity(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("8F1802FF") == 1
    out = capsys.readouterr().out
    assert "meaning not published" in out
    assert "含义未公开" in out
    (answer,) = facts(capsys, "8F1802FF")
    assert (answer["known"], answer["level"], answer["opaque"]) == (False, None, True)
    assert {name: case["level"] for name, case in answer["if_unlisted"].items()} == {
        "notice": "NotHandleFault",
        "minor": "NotHandleFault",
        "major": "SeparateNPU",
        "critical": "SeparateNPU",
        "unknown": "NotHandleFault",
    }
    assert answer["if_unlisted"]["major"]["place"].startswith("fault_codes/chip.yaml:")
    assert answer["bits"]["node"] == "0x78C"
    assert answer["bits"]["sensor_name"] == {"en": "temperature", "zh": "温度"}


def test_a_described_code_without_a_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("80A84E00") == 0
    assert "SeparateNPU" in capsys.readouterr().out


def test_a_recovery_code_names_its_fault(capsys: pytest.CaptureFixture[str]) -> None:
    (answer,) = facts(capsys, "9419321B")
    assert (answer["recovers"], answer["kind"]) == ("A419321B", "recover")
    assert answer["bits"]["form"] == "black-box code"


def test_a_nine_digit_code_has_no_bit_fields(capsys: pytest.CaptureFixture[str]) -> None:
    (answer,) = facts(capsys, "110001024")
    assert (answer["bits"], answer["plane"], answer["level"]) == (None, "parameter_plane", "PreSeparateNPU")


@pytest.mark.parametrize(
    "text", ["zz", "", "-80E01801", "12345678901", "220001001", "12345678", "[0x08520003,na,L3,na]"]
)
def test_texts_that_are_no_chip_code(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--", text) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("nodeagent: NA202: ")
    assert captured.err.count("\n") == 1


def test_the_worst_of_several_codes_is_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("80E01801", "8F1802FF") == 1
    assert run("80E01801", "zz", "8F1802FF") == 2
    captured = capsys.readouterr()
    assert captured.out.count("80E01801  ") == 2
    assert "8F1802FF" in captured.out


def test_a_site_file_is_laid_on_top(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(
        "unknown: {severity_unknown: SeparateNPU}\n"
        'faults:\n  - {code: "80E01801", level: RestartNPU}\n  - {code: "81078603", level: RestartNPU}\n'
        '  - {code: "8F1802FF", level: SubHealthFault}\n'
        'suppress:\n  - {code: "80E01801", chips: [3, 1], reason: ticket 4711, until: 2027-01-31}\n'
    )
    assert run("80E01801", "--site-file", str(path)) == 0
    out = capsys.readouterr().out
    assert f"{path}:3" in out
    assert f"chips 1, 3, until 2027-01-31: ticket 4711 ({path}:7)" in out
    listed, network, fresh, unlisted = facts(
        capsys, "80E01801", "81078603", "8F1802FF", "8F1802FE", "--site-file", str(path)
    )
    assert listed["level"] == "RestartNPU"
    assert (network["level"], len(network["warnings"])) == ("NotHandleFault", 1)
    assert fresh["name"]["zh"] == "产品自定义对象 0x78C，温度传感器，状态 0xFF：含义未公开"
    assert unlisted["if_unlisted"]["unknown"] == {"level": "SeparateNPU", "place": f"{path}:1"}


def test_a_bad_site_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("faults: 1\n")
    with pytest.raises(TableError) as caught:
        run("80E01801", "--site-file", str(tmp_path / "bad"))
    assert "bad:1" in caught.value.sentence


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--help")
    assert caught.value.code == 0
    assert "nodeagent explain 80E01801" in capsys.readouterr().out


@pytest.mark.parametrize("code", ["80E01801", "8F1802FF", "81078603", "110001024", "B4060011", "9419321B", "A4FE0001"])
@pytest.mark.parametrize("language", ["en", "zh", "both"])
def test_every_form_can_be_printed(code: str, language: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(code, "--lang", language) in (0, 1)
    for line in capsys.readouterr().out.splitlines():
        assert line == line.rstrip()
        assert "None" not in line
