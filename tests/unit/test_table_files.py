"""Reading of files at the edge: one sentence for everything that is not a small text file."""

import os
from pathlib import Path

import pytest

from nodeagent.core.errors import SettingsError, TableError
from nodeagent.core.files import LIMIT_BYTES, SHIPPED_TABLES, VOCABULARY, read_shipped, read_text


def sentence(path: Path, limit_bytes: int = LIMIT_BYTES) -> str:
    with pytest.raises(TableError) as caught:
        read_text(path, limit_bytes, TableError)
    return caught.value.sentence


def test_text_comes_back_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfzh: \xe6\x95\x85\n")
    assert read_text(path) == "zh: 故\n"


def test_symbolic_links_are_followed(tmp_path: Path) -> None:
    """A ConfigMap mounted as a volume consists of them."""
    (tmp_path / "..data").write_text("x: 1\n")
    (tmp_path / "a.yaml").symlink_to("..data")
    assert read_text(tmp_path / "a.yaml") == "x: 1\n"


def test_missing(tmp_path: Path) -> None:
    assert sentence(tmp_path / "no.yaml") == f"{tmp_path}/no.yaml does not exist"


def test_directory_and_pipe(tmp_path: Path) -> None:
    assert sentence(tmp_path) == f"{tmp_path} is not a regular file"
    os.mkfifo(tmp_path / "pipe")
    assert sentence(tmp_path / "pipe") == f"{tmp_path}/pipe is not a regular file"


def test_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert sentence(tmp_path / "file" / "x") == f"{tmp_path}/file/x cannot be read: Not a directory"


@pytest.mark.parametrize("content", [b"", b" \n\t\n"])
def test_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "e").write_bytes(content)
    assert sentence(tmp_path / "e") == f"{tmp_path}/e is empty"


def test_binary(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\x7fELF\x00\x01")
    assert sentence(tmp_path / "b") == f"{tmp_path}/b is binary, not text"


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes("a: b\nname: caf\u00e9\n".encode("latin-1"))
    assert sentence(tmp_path / "l") == f"{tmp_path}/l is not UTF-8 text (line 2)"


def test_the_limit_itself_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"#" * LIMIT_BYTES)
    assert len(read_text(path)) == LIMIT_BYTES
    path.write_bytes(b"#" * (LIMIT_BYTES + 1))
    assert sentence(path) == f"{path} is larger than the limit of 10 MiB"
    assert sentence(path, 100) == f"{path} is larger than the limit of 100 bytes"


def test_the_caller_chooses_the_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        read_text(tmp_path / "no", error=SettingsError)


@pytest.mark.parametrize("name", [*SHIPPED_TABLES, VOCABULARY])
def test_shipped_files_are_found(name: str) -> None:
    label, text = read_shipped(name)
    assert label == f"fault_codes/{name}"
    assert "\n" in text
