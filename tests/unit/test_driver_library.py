"""Search for the vendor library and the ownership rules of native-abi 2.1, on real files of real owners."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.core.errors import LibraryError
from nodeagent.drivers.library import DCMI_FILE_NAME, check_ownership, explicit_library, find_library

SOMEBODY = 12345
RARE_NAME = "libnodeagent-nobody-has-this.so"  # the machine that runs the tests may have a driver


@pytest.fixture
def safe() -> Iterator[Path]:
    """A folder below which only root can write, as that of a driver: the temporary folder of pytest is none."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files to other users")
    for parent in ("/opt", "/var/lib", "/root", "/usr/local"):
        try:
            check_ownership(parent)
        except (LibraryError, OSError):
            continue
        folder = Path(tempfile.mkdtemp(prefix="nodeagent-test-", dir=parent))
        yield folder
        shutil.rmtree(folder)
        return
    pytest.skip("this machine has no folder that only root can write to")


def library_in(folder: Path, name: str = DCMI_FILE_NAME) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(b"\x7fELF")
    path.chmod(0o644)
    return path


def refusal(path: Path) -> LibraryError:
    with pytest.raises(LibraryError) as caught:
        check_ownership(str(path))
    return caught.value


class TestOwnership:
    def test_a_file_of_root_below_folders_of_root_passes(self, safe: Path) -> None:
        path = library_in(safe / "lib64")
        assert check_ownership(str(path)) == str(path)

    @pytest.mark.parametrize("what", ["file", "folder", "folder above"])
    def test_another_owner_anywhere_on_the_way_is_named(self, safe: Path, what: str) -> None:
        path = library_in(safe / "driver" / "lib64")
        culprit = {"file": path, "folder": path.parent, "folder above": path.parent.parent}[what]
        os.chown(culprit, SOMEBODY, 0)
        error = refusal(path)
        assert error.sentence == f"{culprit} belongs to uid {SOMEBODY}, not to root (needed for {path})"
        assert f"chown root:root {culprit}" in error.hint

    @pytest.mark.parametrize("bit", [0o020, 0o002])
    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_a_place_that_others_can_write_to_is_named_with_its_mode(self, safe: Path, what: str, bit: int) -> None:
        path = library_in(safe / "lib64")
        culprit = path if what == "file" else path.parent
        culprit.chmod(0o755 | bit)
        error = refusal(path)
        assert error.sentence == f"{culprit} can be written by others, mode {0o755 | bit:04o} (needed for {path})"
        assert "chmod go-w" in error.hint

    def test_a_sticky_folder_that_all_can_write_to_is_refused_too(self, safe: Path) -> None:
        path = library_in(safe / "tmp")
        path.parent.chmod(0o1777)
        assert "mode 1777" in refusal(path).sentence

    def test_the_group_may_be_anybodys_as_long_as_it_cannot_write(self, safe: Path) -> None:
        path = library_in(safe)
        os.chown(path, 0, SOMEBODY)
        assert check_ownership(str(path)) == str(path)

    def test_a_link_of_root_leads_to_the_file_that_is_loaded(self, safe: Path) -> None:
        path = library_in(safe / "real", "libdcmi.so.1")
        link = safe / DCMI_FILE_NAME
        link.symlink_to(path)
        assert check_ownership(str(link)) == str(path)

    def test_a_link_of_somebody_else_is_refused_although_its_target_is_fine(self, safe: Path) -> None:
        path = library_in(safe / "real")
        link = safe / DCMI_FILE_NAME
        link.symlink_to(path)
        os.chown(link, SOMEBODY, 0, follow_symlinks=False)
        assert refusal(link).sentence == f"the link {link} belongs to uid {SOMEBODY}, not to root"

    def test_a_link_does_not_hide_a_target_that_others_can_write(self, safe: Path) -> None:
        path = library_in(safe / "open")
        path.parent.chmod(0o777)
        link = safe / DCMI_FILE_NAME
        link.symlink_to(path)
        assert str(path.parent) in refusal(link).sentence

    def test_twenty_levels_up_are_looked_at_and_no_more(self, safe: Path) -> None:
        above = len(safe.parents)  # folders of `safe` up to and including /
        fits = safe.joinpath(*["d"] * (20 - above - 1))
        assert len(library_in(fits).parents) == 20
        assert check_ownership(str(fits / DCMI_FILE_NAME))
        error = refusal(library_in(fits / "d"))
        assert "more than 20 folders deep" in error.sentence
        assert "closer to /" in error.hint


class TestExplicitPath:
    def test_a_missing_file_is_one_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(LibraryError, match=r"nothing.so does not exist or is no file \(correct driver.library\)"):
            explicit_library(str(tmp_path / "nothing.so"), trust=False)

    def test_a_folder_is_no_library(self, tmp_path: Path) -> None:
        with pytest.raises(LibraryError, match="is no file"):
            explicit_library(str(tmp_path), trust=True)

    def test_trust_skips_the_check_and_nothing_else(self, tmp_path: Path) -> None:
        path = library_in(tmp_path / "lib64")
        path.parent.chmod(0o777)
        with pytest.raises(LibraryError, match=r"driver\.trust_library") as caught:
            explicit_library(str(path), trust=False)
        assert "can be written by others" in caught.value.sentence or "belongs to uid" in caught.value.sentence
        assert explicit_library(str(path), trust=True) == str(path)


class TestSearch:
    def test_the_first_folder_that_passes_wins(self, safe: Path) -> None:
        bad, good, later = library_in(safe / "bad"), library_in(safe / "good"), library_in(safe / "later")
        os.chown(bad, SOMEBODY, 0)
        search = ":".join(str(p.parent) for p in (bad, good, later))
        assert find_library(DCMI_FILE_NAME, {"LD_LIBRARY_PATH": search}) == str(good)

    @pytest.mark.parametrize("search", ["", ":", "::", "{empty}:", ":{empty}"])
    def test_an_empty_component_is_not_the_working_directory(
        self, safe: Path, search: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        library_in(safe, RARE_NAME)
        (safe / "empty").mkdir()
        monkeypatch.chdir(safe)
        with pytest.raises(LibraryError, match="was not found"):
            find_library(RARE_NAME, {"LD_LIBRARY_PATH": search.format(empty=safe / "empty")})

    def test_all_refusals_and_the_second_stage_are_in_one_sentence(self, safe: Path) -> None:
        bad = library_in(safe / "bad", RARE_NAME)
        os.chown(bad, SOMEBODY, 0)
        dangling = safe / "dangling"
        dangling.mkdir()
        (dangling / RARE_NAME).symlink_to(safe / "gone")
        with pytest.raises(LibraryError) as caught:
            find_library(RARE_NAME, {"LD_LIBRARY_PATH": f"{bad.parent}:{dangling}"})
        assert f"{bad} belongs to uid {SOMEBODY}" in caught.value.sentence
        assert str(safe / "gone") in caught.value.sentence
        assert "cache" in caught.value.sentence
        assert "LD_LIBRARY_PATH" in caught.value.hint

    def test_nothing_set_says_so(self) -> None:
        with pytest.raises(LibraryError, match="LD_LIBRARY_PATH is empty; the loader's cache does not name it"):
            find_library(RARE_NAME, {})

    def test_an_overlong_path_is_not_searched(self, safe: Path) -> None:
        path = library_in(safe, RARE_NAME)
        search = f"{path.parent}:" + "/x" * 512
        assert len(search) > 1024
        with pytest.raises(LibraryError, match="longer than 1024 characters"):
            find_library(RARE_NAME, {"LD_LIBRARY_PATH": search})

    def test_what_the_loader_knows_is_found_without_a_path(self) -> None:
        try:
            found = find_library("libc.so.6", {"LD_LIBRARY_PATH": "/nowhere"})
        except LibraryError as error:
            pytest.skip(f"no loader's cache with a library of root here: {error}")
        assert Path(found).is_absolute()
        assert Path(found).name.startswith("libc")
