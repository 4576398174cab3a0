"""Strict JSON for the contract check: what Go's decoder takes, and Go's own form written anew.

Deliberately a second implementation of device-info 5.1 beside `gojson`, character by character instead of
by the standard library's writer.
"""

import json
import re
from collections.abc import Sequence

from nodeagent.core.errors import ContractError

INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)

_SPECIAL = re.compile('["\\\\\x00-\x1f<>&\u2028\u2029]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class ContractBreach(ContractError):
    """A data key breaks a rule of the writer's checklist (device-info 15).

    data_key: e.g. `DeviceInfoCfg`, or `metadata`. rule: number in the checklist.
    """

    def __init__(self, data_key: str, rule: int, problem: str) -> None:
        super().__init__(
            f"{data_key} breaks rule {rule} of device-info 15: {problem}",
            "the object was not sent; please report this with the object's text",
        )
        self.data_key = data_key
        self.rule = rule


def parse(data_key: str, text: str) -> object:
    """The value of a JSON text as Go's decoder for integers, strings, lists and maps would take it.

    Raises ContractBreach: rule 2 for a fraction or exponent, rule 7 for anything that is not JSON or not unique.
    """

    def refuse(number: str) -> object:
        raise ContractBreach(data_key, 2, f"the number {number} is not an integer")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ContractBreach(data_key, 7, "a member is there twice")
        return members

    try:
        return json.loads(text, parse_float=refuse, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise ContractBreach(data_key, 7, f"it is not JSON ({type(error).__name__})") from None


def canonical(value: object) -> str:
    """Go's text of a parsed value, members in the order in which they stand (device-info 5.1)."""
    if isinstance(value, str):
        return '"' + _SPECIAL.sub(_escape, value) + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(key)}:{canonical(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(member) for member in value) + "]"
    if value is None:
        return "null"
    return str(value).lower()


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04x}"


def canonical_text(data_key: str, text: str) -> object:
    """Parse, and refuse text that is not already in Go's form. Raises ContractBreach (rules 2 and 7)."""
    value = parse(data_key, text)
    # Go versions differ in how they write these two (device-info 5.1), so a digest over them is a gamble.
    if "\\b" in text.replace("\\\\", "") or "\\f" in text.replace("\\\\", ""):
        raise ContractBreach(data_key, 7, "there is a backspace or form feed")
    if canonical(value) != text:
        raise ContractBreach(data_key, 7, "it is not in the form in which Go writes it")
    return value


def members(data_key: str, value: object, what: str) -> dict[str, object]:
    """The value as a JSON object. Raises ContractBreach (rule 2)."""
    if not isinstance(value, dict):
        raise ContractBreach(data_key, 2, f"{what} is not an object")
    return value


def struct(data_key: str, value: object, what: str, order: Sequence[str]) -> dict[str, object]:
    """The value as a JSON object with exactly these members in this order. Raises ContractBreach (rules 2, 7)."""
    found = members(data_key, value, what)
    if list(found) != list(order):
        raise ContractBreach(data_key, 7, f"{what} does not have the members {', '.join(order)} in this order")
    return found


def sorted_map(data_key: str, value: object, what: str) -> dict[str, object]:
    """The value as a free-form map, keys sorted by bytes. Raises ContractBreach (rules 2, 7)."""
    found = members(data_key, value, what)
    # Code-point order and byte order of UTF-8 are the same.
    if list(found) != sorted(found):
        raise ContractBreach(data_key, 7, f"the keys of {what} are not sorted")
    return found


def text_of(data_key: str, value: object, what: str) -> str:
    """The value as a string. Raises ContractBreach (rule 2)."""
    if not isinstance(value, str):
        raise ContractBreach(data_key, 2, f"{what} is not a string")
    return value


def integer(data_key: str, value: object, what: str, allowed: range) -> int:
    """The value as an integer within `allowed`. Raises ContractBreach (rule 2)."""
    if type(value) is not int or value not in allowed:  # bool is an int to Python, not to Go
        raise ContractBreach(data_key, 2, f"{what} is not an integer of its range: {value!r}")
    return value
