"""User and password from a folder: what is refused, what is warned of, and that the password shows nowhere."""

import os
from pathlib import Path

import pytest

from nodeagent.core.errors import IpmiAccessError
from nodeagent.drivers.ipmi_credentials import Credentials, read_address, read_credentials

SECRET = "Hua-wei_12#$"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("username", "monitor"), ("password", SECRET)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o400)
    return tmp_path


def replace(path: Path, content: bytes, mode: int = 0o600) -> None:
    path.unlink()
    path.write_bytes(content)
    path.chmod(mode)


def test_both_files(folder: Path) -> None:
    assert read_credentials(str(folder)) == Credentials("monitor", SECRET)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n"])
def test_newlines_at_the_end_do_not_count_and_blanks_do(folder: Path, end: bytes) -> None:
    replace(folder / "password", b" pass word " + end)
    assert read_credentials(str(folder)).password == " pass word "


def test_the_password_shows_in_no_text() -> None:
    assert SECRET not in f"{Credentials('monitor', SECRET)!r} {Credentials('monitor', SECRET)}"


@pytest.mark.parametrize("name", ["username", "password"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"p4ss" * 6, "more than the (16|20) bytes"),
        (b"p4ss" * 10_000, "more than the (16|20) bytes"),
    ],
)
def test_a_content_that_is_of_no_use(folder: Path, name: str, content: bytes, words: str) -> None:
    replace(folder / name, content)
    with pytest.raises(IpmiAccessError, match=f"{folder / name} .*{words}") as caught:
        read_credentials(str(folder))
    assert "p4ss" not in str(caught.value)


def test_the_longest_that_ipmi_has_room_for(folder: Path) -> None:
    replace(folder / "username", b"u" * 16 + b"\n")
    replace(folder / "password", b"p" * 20 + b"\n")
    assert read_credentials(str(folder)) == Credentials("u" * 16, "p" * 20)


@pytest.mark.parametrize("name", ["username", "password"])
def test_a_file_that_is_missing_or_cannot_be_read(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(IpmiAccessError, match=f"there is no {folder / name}") as caught:
        read_credentials(str(folder))
    assert "username and password" in caught.value.hint
    (folder / name).mkdir()
    with pytest.raises(IpmiAccessError, match=f"{folder / name} cannot be read: Is a directory"):
        read_credentials(str(folder))


def test_no_folder_is_named() -> None:
    with pytest.raises(IpmiAccessError, match="no credentials") as caught:
        read_credentials("")
    assert "ipmi.credentials_dir" in caught.value.hint


@pytest.mark.parametrize(
    ("mode", "told"),
    [(0o400, False), (0o600, False), (0o640, False), (0o644, True), (0o660, True), (0o604, True), (0o602, True)],
)
def test_a_file_that_others_may_read_or_change_is_told(folder: Path, mode: int, told: bool) -> None:
    (folder / "password").chmod(mode)
    warnings: list[str] = []
    assert read_credentials(str(folder), warnings.append).password == SECRET
    assert bool(warnings) == told
    for warning in warnings:
        assert f"{folder / 'password'} has mode {mode:04o}" in warning


def test_the_files_of_a_mounted_secret_are_as_the_kubelet_makes_them(folder: Path, tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    real = mount / "..2026_11_30_22_00_00.1"
    real.mkdir(parents=True)
    for name in ("username", "password"):
        (folder / name).rename(real / name)
        (real / name).chmod(0o644)
        (mount / name).symlink_to(os.path.join("..data", name))
    (mount / "..data").symlink_to(real.name)
    warnings: list[str] = []
    assert read_credentials(str(mount), warnings.append) == Credentials("monitor", SECRET)
    assert warnings == []


class TestAddress:
    @pytest.mark.parametrize("text", ["bmc-7.example.com\n", "192.0.2.7", " fd00::7 \n"])
    def test_it_may_stand_beside_the_credentials(self, folder: Path, text: str) -> None:
        (folder / "address").write_text(text)
        assert read_address(str(folder)) == text.strip()

    @pytest.mark.parametrize("content", [b"", b" \n", b"a b", b"bmc\x00", b"\xff\xfe", b"x" * 254])
    def test_what_is_no_address(self, folder: Path, content: bytes) -> None:
        (folder / "address").write_bytes(content)
        with pytest.raises(IpmiAccessError, match="address"):
            read_address(str(folder))

    def test_no_file_and_no_setting(self, folder: Path) -> None:
        with pytest.raises(IpmiAccessError, match="No such file") as found:
            read_address(str(folder))
        assert "ipmi.address" in found.value.hint
