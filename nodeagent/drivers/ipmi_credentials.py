"""User and password of a BMC, from a folder with two files: a mounted Secret, or one that an operator keeps."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nodeagent.core.errors import IpmiAccessError

MAX_USER_BYTES = 16
MAX_PASSWORD_BYTES = 20
MAX_ADDRESS_LETTERS = 253
"""What IPMI 2.0 has room for (22.28, 22.30)."""
_TOO_OPEN = stat.S_IWGRP | stat.S_IRWXO
_MOUNTED = "..data/"
"""Where the files of a mounted Secret point to: the kubelet changes all of them at once by turning one link."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a login needs. The password shows in no text of this object."""

    user: str
    password: str = field(repr=False)


def read_credentials(folder: str, warn: Callable[[str], None] = lambda _: None) -> Credentials:
    """Read the files `username` and `password`; newlines at their ends do not count.

    warn: told in one sentence of a file that its group may write or that everybody may read. Files of a mounted
    Secret are left out: there 0644 is the rule, and nobody but the pod sees the mount.

    Raises IpmiAccessError naming the file: missing, not readable, empty, too long for IPMI, not UTF-8. No sentence
    has a part of the content.
    """
    if not folder:
        raise IpmiAccessError(
            "no credentials for the BMC", "name a folder with the files username and password in ipmi.credentials_dir"
        )
    return Credentials(
        _read(Path(folder, "username"), MAX_USER_BYTES, warn),
        _read(Path(folder, "password"), MAX_PASSWORD_BYTES, warn),
    )


def read_address(folder: str) -> str:
    """The text of the file `address`, where the Secret says which BMC its user belongs to.

    Raises IpmiAccessError, also where there is no such file.
    """
    path = Path(folder or ".", "address")
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise IpmiAccessError(
            f"no address of the BMC: {path} cannot be read: {reason}",
            "set ipmi.address, or give the Secret a key `address`",
        ) from error
    if not text or len(text) > MAX_ADDRESS_LETTERS or not text.isprintable() or " " in text:
        raise IpmiAccessError(f"{path} is no host name and no IP address")
    return text


def _read(path: Path, limit_bytes: int, warn: Callable[[str], None]) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(limit_bytes + 16).rstrip(b"\r\n")
        mounted = path.is_symlink() and os.readlink(path).startswith(_MOUNTED)
    except FileNotFoundError as error:
        raise IpmiAccessError(
            f"there is no {path}", "the Secret of the BMC needs the keys username and password"
        ) from error
    except OSError as error:
        raise IpmiAccessError(f"{path} cannot be read: {error.strerror or error}") from error
    if not content:
        raise IpmiAccessError(f"{path} is empty")
    if len(content) > limit_bytes:
        raise IpmiAccessError(f"{path} holds more than the {limit_bytes} bytes that IPMI has room for")
    if mode & _TOO_OPEN and not mounted:
        warn(f"{path} has mode {stat.S_IMODE(mode):04o}: others on this machine may read or change it; chmod 0400")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise IpmiAccessError(f"{path} is not UTF-8") from None
