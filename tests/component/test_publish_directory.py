"""The directory target on a real file system: replaced in one step, and clear about what it cannot do."""

import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from contract.data.device_info.cases import VIEWS

import nodeagent
from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.publish.directory import DirectoryTarget
from nodeagent.publish.targets import ObjectChanged
from nodeagent.render.contract import check_object
from nodeagent.render.device_info import NAMESPACE, config_map, object_name, render_device_info

NAME = object_name("worker-1")
FILE = Path(NAMESPACE) / f"{NAME}.yaml"
NOBODY = 65534
TESTS = Path(__file__).parents[1]
PACKAGE_PARENT = Path(nodeagent.__file__).parents[1]


def some_object(case: str = "A4", update_time_s: int = 1760000000) -> dict[str, object]:
    return config_map("worker-1", render_device_info(VIEWS[case](), update_time_s))


def test_written_object_is_read_back_and_is_a_complete_manifest(tmp_path: Path) -> None:
    target = DirectoryTarget(tmp_path)
    target.write(some_object("A1"))
    target.write(some_object("A4"))
    assert target.read(NAMESPACE, NAME) == some_object("A4")
    assert yaml.safe_load((tmp_path / FILE).read_text(encoding="utf-8")) == some_object("A4")
    assert [path.name for path in (tmp_path / NAMESPACE).iterdir()] == [FILE.name]
    assert str(tmp_path) in target.describe()


def test_missing_file_is_surely_no_object(tmp_path: Path) -> None:
    assert DirectoryTarget(tmp_path / "absent").read(NAMESPACE, NAME) is None


@pytest.mark.parametrize("content", [b"", b"{", b"- a", b"\xff", b"a: \0"])
def test_damaged_file_counts_as_an_object_that_says_nothing(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / NAMESPACE).mkdir()
    (tmp_path / FILE).write_bytes(content)
    assert DirectoryTarget(tmp_path).read(NAMESPACE, NAME) == {}
    assert FILE.name in caplog.text


def test_directory_in_place_of_the_file_is_an_error_both_ways(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir(parents=True)
    with pytest.raises(ReadBackError):
        DirectoryTarget(tmp_path).read(NAMESPACE, NAME)
    with pytest.raises(PublishError):
        DirectoryTarget(tmp_path).write(some_object())
    assert [path.name for path in (tmp_path / NAMESPACE).iterdir()] == [FILE.name], "no temporary file stays"


def test_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(PublishError) as caught:
        DirectoryTarget(tmp_path / "file").write(some_object())
    assert str(tmp_path / "file") in caught.value.sentence
    assert caught.value.hint


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / NAMESPACE
    folder.mkdir()
    leftovers = [folder / f".{FILE.name}.tmp", folder / ".other.yaml.tmp"]
    for leftover in leftovers:
        leftover.write_text("half", encoding="utf-8")
    (folder / "other.yaml").write_text("a: b", encoding="utf-8")
    DirectoryTarget(tmp_path).write(some_object())
    assert sorted(path.name for path in folder.iterdir()) == [FILE.name, "other.yaml"]


@pytest.fixture
def as_ordinary_user() -> Iterator[Path]:
    """A fresh directory that this process, for the length of the test not root, can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        was_root = os.geteuid() == 0
        (folder / NAMESPACE).mkdir()
        if was_root:
            os.chown(folder / NAMESPACE, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            (folder / NAMESPACE).chmod(0o755)
            if was_root:
                os.seteuid(0)


def test_read_only_directory_is_a_publish_error_until_it_is_writable(as_ordinary_user: Path) -> None:
    target = DirectoryTarget(as_ordinary_user)
    target.write(some_object("A1"))
    (as_ordinary_user / NAMESPACE).chmod(0o555)
    with pytest.raises(PublishError) as caught:
        target.write(some_object("A4"))
    assert "right to write" in caught.value.hint
    assert target.read(NAMESPACE, NAME) == some_object("A1")
    (as_ordinary_user / NAMESPACE).chmod(0o755)
    target.write(some_object("A4"))
    assert target.read(NAMESPACE, NAME) == some_object("A4")


def test_directory_that_may_not_be_searched_is_not_taken_for_empty(as_ordinary_user: Path) -> None:
    target = DirectoryTarget(as_ordinary_user)
    target.write(some_object("A1"))
    (as_ordinary_user / NAMESPACE).chmod(0)
    with pytest.raises(ReadBackError):
        target.read(NAMESPACE, NAME)


_LIMITED_WRITE = """
import resource, sys
from pathlib import Path
from contract.data.device_info.cases import VIEWS
from nodeagent.core.errors import PublishError
from nodeagent.publish.directory import DirectoryTarget
from nodeagent.render.device_info import config_map, render_device_info
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
try:
    DirectoryTarget(Path(sys.argv[1])).write(config_map("worker-1", render_device_info(VIEWS["A4"](), 1760000001)))
except PublishError as error:
    print(error)
"""

_WRITE_LOOP = """
import sys
from itertools import count
from pathlib import Path
from contract.data.device_info.cases import VIEWS
from nodeagent.publish.directory import DirectoryTarget
from nodeagent.render.device_info import config_map, render_device_info
target = DirectoryTarget(Path(sys.argv[1]))
for number in count():
    target.write(config_map("worker-1", render_device_info(VIEWS["A4" if number % 2 else "A1"](), 1760000000 + number)))
    if number == 1:
        print("writing", flush=True)
"""


def _child(program: str, folder: Path) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": f"{TESTS}:{PACKAGE_PARENT}"}
    return subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True, env=environment
    )


def test_full_disk_leaves_the_old_object_whole(tmp_path: Path) -> None:
    # The limit on file size stops a write half way, as a full disk does, and needs no rights.
    target = DirectoryTarget(tmp_path)
    target.write(some_object("A1"))
    with _child(_LIMITED_WRITE, tmp_path) as child:
        printed, _ = child.communicate(timeout=30)
    assert "NA502" in printed
    assert "file-size limit" in printed
    assert target.read(NAMESPACE, NAME) == some_object("A1")
    assert [path.name for path in (tmp_path / NAMESPACE).iterdir()] == [FILE.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_really_full_disk(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine does not let us mount")
    try:
        target = DirectoryTarget(tmp_path)
        target.write(some_object("A1"))
        with suppress(OSError), (tmp_path / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 512)
        with pytest.raises(PublishError) as caught:
            target.write(some_object("A4"))
        assert "disk is full" in caught.value.hint
        assert target.read(NAMESPACE, NAME) == some_object("A1")
        (tmp_path / "filler").unlink()
        target.write(some_object("A4"))
        assert target.read(NAMESPACE, NAME) == some_object("A4")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_kill_at_any_moment_leaves_a_complete_file(tmp_path: Path) -> None:
    chance = random.Random(7)
    target = DirectoryTarget(tmp_path)
    for _ in range(8):
        with _child(_WRITE_LOOP, tmp_path) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "writing\n"
            time.sleep(chance.uniform(0, 0.05))
            child.send_signal(signal.SIGKILL)
            child.wait(30)
        obj = target.read(NAMESPACE, NAME)
        assert obj is not None
        check_object(obj)
    target.write(some_object())
    assert [path.name for path in (tmp_path / NAMESPACE).iterdir()] == [FILE.name]
    assert stat.S_ISREG((tmp_path / FILE).stat().st_mode)


def test_an_edit_right_behind_our_write_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = DirectoryTarget(tmp_path)
    replace = Path.replace

    def replace_and_edit(self: Path, goal: Path) -> Path:
        result = replace(self, goal)
        goal.write_text(goal.read_text() + "# an operator was quick\n")
        return result

    monkeypatch.setattr(Path, "replace", replace_and_edit)
    target.write(some_object())
    assert target.edited(NAMESPACE, NAME) is not None


def test_an_edit_that_cannot_be_read_yet_is_seen_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = DirectoryTarget(tmp_path)
    target.write(some_object("A1"))
    DirectoryTarget(tmp_path).write(some_object("A4"))

    def refuse(_: Path) -> bool:
        raise PermissionError("not yet")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", refuse)
        assert target.edited(NAMESPACE, NAME) is None
    assert target.edited(NAMESPACE, NAME) == some_object("A4")


class TestDelete:
    KEY = (NAMESPACE, object_name("worker-1"))

    def test_the_file_goes_and_a_missing_one_is_fine(self, tmp_path: Path) -> None:
        target = DirectoryTarget(tmp_path)
        target.write(some_object())
        target.delete(*self.KEY)
        target.delete(*self.KEY)
        assert target.read(*self.KEY) is None
        assert list(tmp_path.rglob("*.yaml")) == []

    def test_one_that_somebody_edited_is_shown_first(self, tmp_path: Path) -> None:
        target = DirectoryTarget(tmp_path)
        target.write(some_object())
        path = tmp_path / NAMESPACE / f"{self.KEY[1]}.yaml"
        path.write_text("{metadata: {}, data: {a: b}}")
        with pytest.raises(ObjectChanged) as caught:
            target.delete(*self.KEY)
        assert caught.value.obj["data"] == {"a": "b"}
        target.delete(*self.KEY)
        assert not path.exists()

    def test_a_folder_that_may_not_be_changed_is_named(self, as_ordinary_user: Path) -> None:
        target = DirectoryTarget(as_ordinary_user)
        target.write(some_object())
        folder = as_ordinary_user / NAMESPACE
        folder.chmod(0o500)
        with pytest.raises(PublishError, match="cannot be removed"):
            target.delete(*self.KEY)
        folder.chmod(0o700)
        target.delete(*self.KEY)
