"""Reading state files: real files, links, devices and procfs (node-faults 11.1, T18)."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.storage import StateFile

from nodeagent.core.errors import StorageStateError
from nodeagent.core.storage import StorageClient, StorageFault, StorageInstance
from nodeagent.drivers import storage_files
from nodeagent.drivers.storage_files import (
    LIMIT_BYTES,
    StorageFileMissingError,
    read_client,
    read_trusted,
    state_file,
)

ME = {os.getuid()}
NOBODY = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


@pytest.fixture
def dpc(tmp_path: Path) -> StateFile:
    file = StateFile(tmp_path, StorageClient.DPC)
    file.show((0, 0, 0), (1, -12, -1))
    return file


def refused(path: Path, trusted: set[int] = ME) -> str:
    with pytest.raises(StorageStateError) as raised:
        read_trusted(path, trusted)
    assert not isinstance(raised.value, StorageFileMissingError)
    assert str(path) in raised.value.sentence
    return raised.value.sentence


def test_where_the_files_are() -> None:
    assert state_file(Path("/host/proc"), StorageClient.DPC) == Path("/host/proc/odcs/dpc_status_check")
    assert state_file(Path("/host/proc"), StorageClient.DTFS) == Path("/host/proc/dtfs/dtfs_status_check")


def test_a_file_is_read(dpc: StateFile, tmp_path: Path) -> None:
    both = frozenset({StorageFault.DPC_MEMORY, StorageFault.DPC_PROCESS})
    assert read_client(tmp_path, StorageClient.DPC, ME) == (StorageInstance(0), StorageInstance(1, both))


def test_an_error_in_the_text_names_file_and_line(dpc: StateFile, tmp_path: Path) -> None:
    dpc.show((0, -2, 0))
    with pytest.raises(
        StorageStateError, match=r"dpc_status_check is not understood, line 2: 'DPC_INTERNAL_ERROR: -2'"
    ):
        read_client(tmp_path, StorageClient.DPC, ME)


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o444, 0o600, 0o644])
def test_modes_that_are_trusted(dpc: StateFile, mode: int) -> None:
    dpc.path.chmod(mode)
    assert read_trusted(dpc.path, ME)


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o544, 0o454, 0o445, 0o666, 0o700])
def test_t18_modes_that_are_not(dpc: StateFile, mode: int) -> None:
    dpc.path.chmod(mode)
    assert f"its mode {mode:04o} has" in refused(dpc.path)


@needs_root
def test_t18_a_file_of_somebody_else_is_not_trusted(dpc: StateFile, tmp_path: Path) -> None:
    os.chown(dpc.path, 1000, 0)
    assert "belongs to uid 1000, not to 0" in refused(dpc.path, {0})
    with pytest.raises(StorageStateError, match="belongs to uid 1000"):
        read_client(tmp_path, StorageClient.DPC)
    assert read_client(tmp_path, StorageClient.DPC, {0, 1000})


def test_who_runs_the_test_is_trusted_only_where_he_is_named(dpc: StateFile) -> None:
    assert "not to 4321" in refused(dpc.path, {4321})


def test_links_are_followed(dpc: StateFile, tmp_path: Path) -> None:
    content = read_trusted(dpc.path, ME)
    (tmp_path / "absolute").symlink_to(dpc.path)
    (tmp_path / "relative").symlink_to("odcs/dpc_status_check")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to("../relative")
    (tmp_path / "folder").symlink_to("odcs")
    for name in ("absolute", "relative", "sub/up", "folder/dpc_status_check"):
        assert read_trusted(tmp_path / name, ME) == content, name


@needs_root
def test_t18_a_link_of_somebody_else_is_not_trusted_wherever_it_leads(dpc: StateFile, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(dpc.path)
    (tmp_path / "second").symlink_to("link")
    os.chown(tmp_path / "link", NOBODY, 0, follow_symlinks=False)
    for name in ("link", "second"):
        assert f"a symbolic link that belongs to uid {NOBODY}" in refused(tmp_path / name, {0})


def test_a_link_to_a_file_that_is_not_trusted(dpc: StateFile, tmp_path: Path) -> None:
    dpc.path.chmod(0o666)
    (tmp_path / "link").symlink_to(dpc.path)
    assert "0666" in refused(tmp_path / "link")


def test_links_in_a_ring_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "symbolic links" in refused(tmp_path / "a")


@pytest.mark.parametrize("prepare", ["nothing", "no folder", "a file for a folder", "a link to nothing"])
def test_t18_what_is_not_there_is_an_error_of_its_own(tmp_path: Path, prepare: str) -> None:
    folder = tmp_path / "odcs"
    if prepare == "a file for a folder":
        folder.write_text("")
    elif prepare != "no folder":
        folder.mkdir()
    if prepare == "a link to nothing":
        (folder / "dpc_status_check").symlink_to("unloaded")
    with pytest.raises(StorageFileMissingError, match="does not exist"):
        read_client(tmp_path, StorageClient.DPC, ME)


@pytest.mark.timeout(20)
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "tty").symlink_to("/dev/null")
    for name in ("fifo", "folder", "tty"):
        assert "is not a regular file" in refused(tmp_path / name, {0, *ME})


@pytest.mark.timeout(20)
@pytest.mark.parametrize("other", ["fifo", "link", "foreign mode"])
def test_what_is_put_into_its_place_between_check_and_read_is_not_read(
    dpc: StateFile, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """The check of the first look passes; whoever is quick enough then still gets nothing read."""
    first_look: Callable[..., None] = storage_files._check
    looks = []

    def check(*arguments: object) -> None:
        first_look(*arguments)
        looks.append(arguments)
        if len(looks) == 1:
            dpc.path.rename(dpc.path.with_name("old"))
            if other == "fifo":
                os.mkfifo(dpc.path, 0o400)
            elif other == "link":
                dpc.path.symlink_to("old")
            else:
                dpc.write("", 0o666)

    monkeypatch.setattr(storage_files, "_check", check)
    refused(dpc.path)
    assert len(looks) == 1


def test_a_file_without_an_end_is_refused(dpc: StateFile) -> None:
    dpc.write("x" * LIMIT_BYTES)
    assert len(read_trusted(dpc.path, ME)) == LIMIT_BYTES
    dpc.write("x" * (LIMIT_BYTES + 1))
    assert "larger than" in refused(dpc.path)


def test_a_procfs_file_of_size_0_is_read_whole() -> None:
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    assert read_trusted(path, ME).startswith(b"Name:")


def test_a_reading_that_fails_inside_is_an_error() -> None:
    """Nothing is mapped at address 0, so the kernel answers the read, not the open, with EIO."""
    assert refused(Path("/proc/self/mem")) == "/proc/self/mem cannot be read: Input/output error"


def test_a_reading_that_fails_in_the_middle_gives_nothing_of_what_came(
    dpc: StateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[bytes] = [b"[instidx=0]\n"]

    def read(file: int, size: int) -> bytes:
        if parts:
            return parts.pop()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(storage_files.os, "read", read)
    assert "Input/output error" in refused(dpc.path)


def test_a_path_that_no_file_can_have(tmp_path: Path) -> None:
    refused(Path("/proc/\0"))
    refused(tmp_path / ("x" * 300))


def test_no_descriptor_is_left_open(dpc: StateFile, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        read_trusted(dpc.path, ME)
        for path in (tmp_path / "loop", tmp_path / "fifo", Path("/proc/self/mem")):
            refused(path)
        with pytest.raises(StorageFileMissingError):
            read_trusted(tmp_path / "none", ME)
    assert len(os.listdir("/proc/self/fd")) < before + 10  # other tests may have threads that open some


def test_a_file_that_is_replaced_all_the_time_is_read_whole_or_missing(dpc: StateFile, tmp_path: Path) -> None:
    """Like a module that is loaded and unloaded: never a part, never a mixture, never another error."""
    both = frozenset({StorageFault.DPC_MEMORY, StorageFault.DPC_PROCESS})
    allowed = {(StorageInstance(0),), (StorageInstance(0, both), StorageInstance(9))}
    ending = threading.Event()

    def change() -> None:
        while not ending.is_set():
            dpc.show((0, 0, 0))
            dpc.show((0, -12, -1), (9, 0, 0))
            dpc.remove()

    dpc.show((0, 0, 0))
    thread = threading.Thread(target=change)
    thread.start()
    seen = set()
    try:
        while len(seen) < 3:
            try:
                seen.add(read_client(tmp_path, StorageClient.DPC, ME))
            except StorageFileMissingError:
                seen.add(())
    finally:
        ending.set()
        thread.join()
    assert seen == allowed | {()}
