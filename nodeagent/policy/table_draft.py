"""One entry of a fault table: YAML pieces checked field by field into a draft, before it is merged.

A draft holds only what the entry says, so that a site file can change one field of a shipped record.
"""

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from nodeagent.core.codes import SYNTHETIC_CODES
from nodeagent.core.levels import Level, Plane, Severity
from nodeagent.policy.table_records import Domain, Kind, Place
from nodeagent.policy.table_yaml import Complain, Items, Node, Pairs, Scalar, shown

TABLE_LEVELS = (
    Level.NOT_HANDLE,
    Level.SUB_HEALTH,
    Level.RESTART_REQUEST,
    Level.RESTART_BUSINESS,
    Level.FREE_RESTART,
    Level.RESTART_NPU,
    Level.PRE_SEPARATE,
    Level.SEPARATE,
)
"""Levels that a table may give; ManuallySeparateNPU comes from frequency rules only (chip-faults 3.1)."""
NETWORK_LEVELS = (Level.NOT_HANDLE, Level.SUB_HEALTH, Level.PRE_SEPARATE, Level.SEPARATE)
"""Levels of the parameter plane (fault-catalogue 9)."""
CATEGORIES = ("HW_NODE", "NET_FABRIC", "OOM_HOST", "OOM_GPU", "COMM_HANG", "APP_ERROR", "ENV_ERROR", "UNKNOWN")
"""Where to look for the cause (fault-catalogue 13)."""
NAME_BASES = ("kb", "docs", "driver", "decoded", "opaque")
"""How far the name of a code can be trusted (fault-catalogue 1)."""
SEVERITIES = {severity.name.lower(): severity for severity in Severity}

_CODE = re.compile(r"[489AB][0-9A-F]{7}|[0-9]{9}")
_HEX = re.compile(r"[0-9A-F]{1,10}")
_NULLS = ("", "~", "null", "Null", "NULL")
_Member = TypeVar("_Member", bound=Enum)


@dataclass(slots=True)
class Draft:
    """What one entry says; None means that it does not say.

    level_given: there is a level key. level_null: it says null, "described but without a level".
    """

    place: Place
    code: int = 0
    text: str = ""
    level_given: bool = False
    level_null: bool = False
    level: Level | None = None
    domain: Domain | None = None
    plane: Plane | None = None
    name_en: str | None = None
    name_zh: str | None = None
    module: str | None = None
    kind: Kind | None = None
    severity: Severity | None = None
    category: str | None = None
    advice_en: str | None = None
    advice_zh: str | None = None
    notes: str | None = None
    name_basis: str | None = None
    refs: tuple[str, ...] | None = None
    products: tuple[str, ...] | None = None
    twins: tuple[int, ...] | None = None
    aliases: tuple[int, ...] | None = None


def read_fields(draft: Draft, pairs: Pairs, keys: Iterable[str], complain: Complain) -> None:
    """Fill `draft` from the fields of one mapping.

    keys: names that this mapping may use. complain: gets every problem; a bad field is left unsaid.
    `code` is left to the caller, who needs it for the places of all other findings.
    """
    allowed = tuple(keys)
    for key, node in pairs.pairs:
        if key.text not in allowed:
            complain(key.line, f"unknown key {shown(key.text)}{nearest(key.text, allowed)}")
        elif key.text != "code":
            _FIELDS[key.text](draft, key, node, complain)


def read_code(node: Node, complain: Complain) -> tuple[int, str] | None:
    """Number and upper-case spelling of a quoted code (fault-catalogue 2, 12.2, 12.3), None after a complaint.

    `0x` and blanks around it are dropped. A plain scalar is refused whatever it looks like: unquoted codes turn
    into numbers, octal numbers or infinity as soon as somebody edits the file with another tool.
    """
    if not isinstance(node, Scalar):
        complain(node.line, "the code must be one quoted text")
        return None
    if not node.quoted:
        complain(node.line, f'the code must be quoted: write "{shown(node.text)[1:-1]}"')
        return None
    text = node.text.strip().upper().removeprefix("0X")
    if is_code_text(text):
        return int(text, 16), sys.intern(text)
    complain(
        node.line,
        f"{shown(node.text)} has not the shape of a chip code: 8 hex digits of which the first is 4, 8, 9, A or B,"
        " or 9 decimal digits",
    )
    return None


def is_code_text(text: str) -> bool:
    """Whether an upper-case text has the shape of a code that a chip can report."""
    return bool(_CODE.fullmatch(text) or (_HEX.fullmatch(text) and int(text, 16) in SYNTHETIC_CODES))


def read_level(node: Node, key: str, complain: Complain, allowed: tuple[Level, ...] = TABLE_LEVELS) -> Level | None:
    """A level by its exact text, None after a complaint. key: what is being read, for the sentence."""
    word = read_word(node, key, complain)
    if word is None:
        return None
    try:
        level = Level.parse(word)
    except ValueError:
        complain(node.line, f"{key} {shown(word)} is not a level{nearest(word, [each.text for each in allowed])}")
        return None
    if level not in allowed:
        complain(node.line, f"{key} {word} is not allowed here; allowed are {', '.join(x.text for x in allowed)}")
        return None
    return level


def read_word(node: Node, key: str, complain: Complain) -> str | None:
    """A single text that is not empty."""
    if not isinstance(node, Scalar):
        complain(node.line, f"{key} must be a single text, not a {'list' if isinstance(node, Items) else 'mapping'}")
        return None
    if not node.text.strip():
        complain(node.line, f"{key} is empty")
        return None
    return node.text


def read_choice(node: Node, key: str, choices: Iterable[str], complain: Complain) -> str | None:
    """One of the given words."""
    word = read_word(node, key, complain)
    if word is None or word in (words := tuple(choices)):
        return word
    complain(node.line, f"{key} {shown(word)} is none of {', '.join(words)}")
    return None


def nearest(word: str, words: Iterable[str]) -> str:
    """A hint for a misspelled word, or nothing."""
    import difflib

    if len(word) > 40:
        return ""
    matches = difflib.get_close_matches(word, list(words), 1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


_Reader = Callable[[Draft, Scalar, Node, Complain], None]


def _member(kind: type[_Member], key: Scalar, node: Node, complain: Complain) -> _Member | None:
    word = read_choice(node, key.text, [each.value for each in kind], complain)
    return None if word is None else kind(word)


def _level(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.level_given = True
    draft.level_null = isinstance(node, Scalar) and not node.quoted and node.text in _NULLS
    if not draft.level_null:
        draft.level = read_level(node, key.text, complain)


def _domain(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.domain = _member(Domain, key, node, complain)


def _plane(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.plane = _member(Plane, key, node, complain)


def _kind(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.kind = _member(Kind, key, node, complain)


def _severity(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    word = read_choice(node, key.text, SEVERITIES, complain)
    draft.severity = None if word is None else SEVERITIES[word]


def _category(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.category = read_choice(node, key.text, CATEGORIES, complain)


def _name_basis(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.name_basis = read_choice(node, key.text, NAME_BASES, complain)


def _module(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.module = _shared(read_word(node, key.text, complain))


def _notes(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.notes = _shared(read_word(node, key.text, complain))


def _name(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    english, chinese = two_languages(key, node, complain)
    draft.name_en, draft.name_zh = english or draft.name_en, chinese or draft.name_zh


def _advice(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    english, chinese = two_languages(key, node, complain)
    draft.advice_en, draft.advice_zh = _shared(english), _shared(chinese)


def _refs(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.refs = _words(key, node, complain)


def _products(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.products = _words(key, node, complain)


def _twins(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.twins = _codes(key, node, complain)


def _aliases(draft: Draft, key: Scalar, node: Node, complain: Complain) -> None:
    draft.aliases = _codes(key, node, complain)


_FIELDS: dict[str, _Reader] = {
    "level": _level,
    "domain": _domain,
    "plane": _plane,
    "name": _name,
    "module": _module,
    "kind": _kind,
    "severity": _severity,
    "category": _category,
    "advice": _advice,
    "notes": _notes,
    "name_basis": _name_basis,
    "refs": _refs,
    "products": _products,
    "twins": _twins,
    "aliases": _aliases,
}
RECORD_KEYS = ("code", *_FIELDS)
"""Keys of one record."""
DEFAULT_KEYS = ("domain", "plane", "kind", "module", "category", "name_basis", "refs", "products")
"""Keys that a file may give once for all its records."""


def two_languages(key: Scalar, node: Node, complain: Complain) -> tuple[str | None, str | None]:
    """English and Chinese text of a mapping with `en` and `zh`; None for what is not said."""
    if not isinstance(node, Pairs):
        complain(node.line, f"{key.text} must be a mapping with `en` and `zh`")
        return None, None
    found: dict[str, str | None] = {}
    for language, value in node.pairs:
        if language.text in ("en", "zh"):
            found[language.text] = read_word(value, f"{key.text}.{language.text}", complain)
        else:
            complain(language.line, f"unknown language {shown(language.text)} in {key.text}; it takes `en` and `zh`")
    return found.get("en"), found.get("zh")


def _words(key: Scalar, node: Node, complain: Complain) -> tuple[str, ...] | None:
    if not isinstance(node, Items):
        complain(node.line, f"{key.text} must be a list")
        return None
    words = [read_word(each, key.text, complain) for each in node.nodes]
    return tuple(sys.intern(word) for word in words if word is not None)


def _codes(key: Scalar, node: Node, complain: Complain) -> tuple[int, ...] | None:
    if not isinstance(node, Items):
        complain(node.line, f"{key.text} must be a list of quoted codes")
        return None
    codes = [read_code(each, complain) for each in node.nodes]
    return tuple(code[0] for code in codes if code is not None)


def _shared(text: str | None) -> str | None:
    # The same advice, note and module stand in many records; one string serves them all.
    return None if text is None else sys.intern(text)
