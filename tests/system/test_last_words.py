"""Why the daemon did not start, for the status of its pod."""

from pathlib import Path

import pytest
from kit.daemon import run_command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A termination log, as the kubelet makes it."""
    path = tmp_path / "termination-log"
    path.write_text("what was there before, which is longer than a sentence: " + "x" * 5000)
    return path


def test_a_start_that_fails_leaves_its_sentence(file: Path) -> None:
    done = run_command("run", "--set", "log.level=loud", environ={"NODEAGENT_TERMINATION_LOG": str(file)})
    assert done.returncode == 2
    assert file.read_text() in done.stderr
    assert "log.level" in file.read_text()


def test_the_sentence_is_as_long_as_the_kubelet_reads(file: Path) -> None:
    environ = {"NODEAGENT_TERMINATION_LOG": str(file)}
    assert run_command("run", "--set", f"log.level={'ä' * 5000}", environ=environ).returncode == 2
    assert 4096 - 4 < len(file.read_bytes()) <= 4096
    assert file.read_text().endswith("ä")


def test_other_commands_leave_nothing(file: Path) -> None:
    before = file.read_text()
    environ = {"NODEAGENT_TERMINATION_LOG": str(file)}
    assert run_command("scan", "--set", "log.level=loud", environ=environ).returncode == 2
    assert file.read_text() == before


@pytest.mark.parametrize("kind", ["missing", "link", "folder"])
def test_no_file_is_made_and_no_link_followed(file: Path, tmp_path: Path, kind: str) -> None:
    before = file.read_text()
    place = tmp_path / "place"
    if kind == "link":
        place.symlink_to(file)
    if kind == "folder":
        place.mkdir()
    done = run_command("run", "--set", "log.level=loud", environ={"NODEAGENT_TERMINATION_LOG": str(place)})
    assert done.returncode == 2
    assert "log.level" in done.stderr
    assert file.read_text() == before
    assert place.exists() == (kind != "missing")
