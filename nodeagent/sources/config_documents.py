"""Documents of a configuration from where they lie: a folder, single files, an object of the API.

A folder may be a mounted ConfigMap: then its files are links into a version that the kubelet replaces as a whole, and
one reading must not mix two versions.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from nodeagent.core.errors import ReadBackError
from nodeagent.core.files import (
    LIMIT_BYTES,
    SHIPPED_NODES,
    SHIPPED_RULES,
    SHIPPED_SWITCHES,
    SHIPPED_TABLES,
    read_shipped,
)
from nodeagent.policy.configuration import DOCUMENT_KEYS, ClusterDocuments, shipped_configuration
from nodeagent.policy.node_configuration import NODE_DOCUMENT_KEYS, shipped_node_configuration
from nodeagent.policy.node_table import NodeConfiguration
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table import Document
from nodeagent.policy.table_draft import nearest
from nodeagent.policy.table_records import Finding, Place
from nodeagent.policy.table_yaml import shown

VERSION_LINK = "..data"
"""The link inside a mounted ConfigMap that names its present version."""
_SWAPS = 5
"""How often a folder is read again when its version changed meanwhile."""
ALL_KEYS = tuple(dict.fromkeys((*DOCUMENT_KEYS, *NODE_DOCUMENT_KEYS)))
"""All keys that somebody reads; a folder has the documents of chips and of node faults."""


def shipped(texts: bool = False) -> Configuration:
    """The lowest layer: tables and rules of the package. texts: with everything that `explain` shows.

    Raises TableError when the installation is damaged.
    """
    tables = [read_shipped(name) for name in SHIPPED_TABLES]
    return shipped_configuration(tables, [read_shipped(SHIPPED_RULES)], texts, [read_shipped(SHIPPED_SWITCHES)])


def shipped_nodes() -> NodeConfiguration:
    """The lowest layer of node faults. Raises TableError when the installation is damaged."""
    return shipped_node_configuration([read_shipped(SHIPPED_NODES)])


def documents_of_object(
    obj: dict[str, object], where: str, keys: Sequence[str] = DOCUMENT_KEYS, alone: bool = False
) -> ClusterDocuments:
    """The documents of a ConfigMap as the API gives it.

    where: `namespace/name`, for places. keys: what is read of it. alone: see ClusterDocuments.

    An object without any of our keys has nothing to say. `binaryData` is no text: a key of ours that is only there
    is bad content, all others are passed over with a warning. Anything that is not shaped like a ConfigMap is bad.
    """
    problems: list[Finding] = []
    place = Place(where, 0)
    if not isinstance(obj.get("metadata"), dict):
        problems.append(Finding(place, "", "this is no object of the API: it has no metadata"))
    data, binary = (_mapping(obj, key, place, problems) for key in ("data", "binaryData"))
    texts: dict[str, str] = {}
    for key, value in data.items():
        if key not in keys:
            problems.append(Finding(place, "", f"key {shown(key)} is not read{nearest(key, keys)}", False))
        elif isinstance(value, str):
            texts[key] = value
        else:
            problems.append(Finding(Place(f"{where}/{key}", 0), "", "the value is no text"))
    for key in binary:
        label = Place(f"{where}/{key}", 0)
        if key in keys and key not in texts:
            problems.append(Finding(label, "", "stands in binaryData, so it is no UTF-8 text; it belongs into data"))
        else:
            problems.append(Finding(label, "", "stands in binaryData, which is not read", serious=False))
    return ClusterDocuments(where, texts, tuple(problems), alone=alone)


def read_folder(folder: Path, keys: Sequence[str] = DOCUMENT_KEYS) -> ClusterDocuments | None:
    """The documents of a folder; None when there surely is no such folder. keys: names of the files that are read.

    A file that is not UTF-8 or too large is bad content. Raises ReadBackError when the folder or a file cannot be
    read just now, or when a mounted ConfigMap is replaced again and again while it is read.
    """
    for _ in range(_SWAPS):
        before = _version(folder)
        try:
            found = _read_folder(folder, keys)
        except FileNotFoundError:
            continue  # the version went away under our hands
        if _version(folder) == before:
            return found
    raise ReadBackError(f"{folder} cannot be read in one piece: it keeps changing, or a link in it leads nowhere")


def read_site(path: Path) -> Document:
    """Label and text of the site file. Bytes that are not UTF-8 become letters that no table accepts.

    Raises ReadBackError when it cannot be read just now; a missing file is one of these, since the settings name it.
    """
    try:
        return str(path), _read_file(path, str(path))[0]
    except FileNotFoundError:
        raise ReadBackError(f"{path} does not exist") from None


def _read_folder(folder: Path, keys: Sequence[str]) -> ClusterDocuments | None:
    """One reading. Raises FileNotFoundError when a mounted version vanishes meanwhile."""
    where = str(folder)
    try:
        present = set(os.listdir(folder))
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return ClusterDocuments(where, {}, (Finding(Place(where, 0), "", "this is no folder"),))
    except OSError as error:
        raise ReadBackError(f"{folder} cannot be read: {error.strerror or error}") from error
    texts: dict[str, str] = {}
    problems: list[Finding] = []
    for key in keys:
        if key in present:
            text, problem = _read_file(folder / key, f"{where}/{key}")
            texts[key] = text
            problems += [problem] if problem else []
    for name in sorted(present - set(ALL_KEYS)):
        if not name.startswith(".") and (hint := nearest(name, keys)):
            problems.append(Finding(Place(where, 0), "", f"file {shown(name)} is not read{hint}", serious=False))
    return ClusterDocuments(where, texts, tuple(problems))


def _read_file(path: Path, label: str) -> tuple[str, Finding | None]:
    """Text of one file, and what refuses it. Raises FileNotFoundError, and ReadBackError for a passing trouble."""
    try:
        # Asked before opening: opening a pipe would wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            return "", Finding(Place(label, 0), "", "this is no regular file")
        with path.open("rb") as stream:
            content = stream.read(LIMIT_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ReadBackError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > LIMIT_BYTES:
        sentence = f"the file is larger than the limit of {LIMIT_BYTES // (1024 * 1024)} MiB"
        return "", Finding(Place(label, 0), "", sentence)
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        # The bytes are kept, so that another bad version is seen to be another one.
        return content.decode("utf-8", "surrogateescape"), Finding(Place(label, line), "", "this is not UTF-8 text")


def _version(folder: Path) -> str:
    """Where the link of a mounted ConfigMap points to; empty for an ordinary folder."""
    try:
        return os.readlink(folder / VERSION_LINK)
    except OSError:
        return ""


def _mapping(obj: dict[str, object], key: str, place: Place, problems: list[Finding]) -> dict[str, object]:
    value = obj.get(key)
    if value is None:
        return {}
    if isinstance(value, dict):
        return {str(name): each for name, each in value.items()}
    problems.append(Finding(place, "", f"{key} is no mapping of keys to texts"))
    return {}
