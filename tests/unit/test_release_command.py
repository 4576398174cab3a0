"""`nodeagent release` against a daemon that the test plays: waiting, words and exit codes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.played_daemon import Played

from nodeagent.cli import release
from nodeagent.cli.main import main

UNTIL_S = 1_760_001_800
RELEASED = {"released": True, "until_s": UNTIL_S, "left_s": 1799, "open": [], "kept": True, "ended": False}
NOT_RELEASED = {"released": False, "until_s": None, "left_s": None, "open": [], "kept": False, "ended": False}


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    daemon = Played(tmp_path / "socket", lambda _: RELEASED)
    yield daemon
    daemon.close()


def run(played: Played, *words: str) -> int:
    return main(["release", "--set", f"daemon.socket={played.path}", *words])


def test_released_says_until_when_and_what_is_next(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(played) == 0
    out = capsys.readouterr().out
    assert "until 2025-10-09 09:23:20 UTC, 29 min 59 s from now" in out
    assert "nodeagent release --end" in out
    assert played.questions == [{"ask": "release", "do": "begin", "duration_s": 1800}]


def test_it_waits_until_everything_is_closed(
    played: Played, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_LOOK_S", 0.001)
    played.answer = lambda _: {**RELEASED, "open": ["driver host with pid 77"] * (len(played.questions) < 4)}
    assert run(played, "--for", "2h") == 0
    assert "has no library and no device file open" in capsys.readouterr().out
    assert [q["do"] for q in played.questions] == ["begin", "status", "status", "status"]
    assert played.questions[0]["duration_s"] == 7200


@pytest.mark.parametrize("terminal", [True, False])
def test_what_does_not_close_is_named_and_is_exit_code_1(
    played: Played, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr(release, "CLOSE_LIMIT_S", 0.05)
    monkeypatch.setattr(release, "_QUIET_S", 0.0)
    monkeypatch.setattr(release, "_LOOK_S", 0.005)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    played.answer = lambda _: {**RELEASED, "open": ["driver host with pid 77"]}
    assert run(played) == 1
    out, err = capsys.readouterr()
    assert "Still open: driver host with pid 77. Do not upgrade the driver yet" in out
    assert err.count("waiting for driver host with pid 77") == terminal


def test_an_end_that_a_restart_would_forget_is_said(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    played.answer = lambda _: {**RELEASED, "kept": False}
    assert run(played) == 0
    assert "a restart of the daemon would end the release" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flag", "answer", "said"),
    [
        ("--end", {**NOT_RELEASED, "ended": True}, "opens the driver again and queries every chip"),
        ("--end", NOT_RELEASED, "not released; there is nothing to end."),
        ("--status", NOT_RELEASED, "The driver is not released."),
        ("--status", RELEASED, "29 min 59 s from now"),
    ],
)
def test_end_and_status(
    played: Played, capsys: pytest.CaptureFixture[str], flag: str, answer: dict[str, Any], said: str
) -> None:
    played.answer = lambda _: answer
    assert run(played, flag) == 0
    assert said in capsys.readouterr().out
    assert [q["do"] for q in played.questions] == [flag.removeprefix("--")]


def test_json(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(played, "--output", "json", "--status") == 0
    assert json.loads(capsys.readouterr().out) == RELEASED


@pytest.mark.parametrize("answer", [{"refused": "no"}, [], None])
def test_an_answer_that_is_not_understood(
    played: Played, capsys: pytest.CaptureFixture[str], answer: dict[str, Any]
) -> None:
    played.answer = lambda _: answer
    assert run(played) == 2
    assert "NA602: the daemon at" in capsys.readouterr().err


def test_no_daemon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release", "--set", f"daemon.socket={tmp_path}/socket"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "NA602: no daemon answers" in line
    assert "--dry-run" not in line


@pytest.mark.parametrize(
    "words", [["--for", "5h"], ["--for", "soon"], ["--end", "--for", "30m"], ["--end", "--status"]]
)
def test_wrong_arguments(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["release", *words])
    assert stopped.value.code == 2
