"""Upstream's faultCustomization.json: frequency and duration rules and GraceTolerance (chip-faults 5).

It replaces all frequency and duration rules below it. A wrong type refuses the document, a wrong value only its
group. Nothing in this module raises.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from nodeagent.core.levels import Level
from nodeagent.policy.rules import NEVER_S, DurationRule, FrequencyRule
from nodeagent.policy.rules_load import RulesRead
from nodeagent.policy.rules_load_checks import (
    GRACE_RANGES,
    Violation,
    duration_violation,
    frequency_violation,
    grace_problem,
)
from nodeagent.policy.table_records import Place
from nodeagent.policy.table_yaml import shown
from nodeagent.policy.upstream import parse_code_text
from nodeagent.policy.upstream_document import Document, texts, typed
from nodeagent.policy.upstream_json import BadJson, Node

CUSTOMIZATION_KEY = "faultCustomization.json"
"""Key of the ConfigMap, and name of the file, with the rules."""
GRACE, FREQUENCY, DURATION = "GraceTolerance", "FaultFrequency", "FaultDuration"
_PARTS = {name.lower(): name for name in (GRACE, FREQUENCY, DURATION)}
_GRACE = {name.lower(): name for name in GRACE_RANGES}
_OURS = {
    "codes": "EventId",
    "window_s": "TimeWindow",
    "times": "Times",
    "handling": "FaultHandling",
    "release_s": "ReleaseTimeWindow",
    "fault_s": "FaultTimeout",
    "recover_s": "RecoverTimeout",
}
_FREQUENCY_FIELDS = ("codes", "window_s", "times", "handling", "release_s")
_DURATION_FIELDS = ("codes", "fault_s", "recover_s", "handling")

_Rule = TypeVar("_Rule", FrequencyRule, DurationRule)


def read_customization(label: str, text: str) -> RulesRead:
    """The rules of a faultCustomization.json; `replaced` says that they take the place of all rules below.

    label: file name or object key, for places. Order of validation and defaults as in chip-faults 5.2 and 5.3:
    any violation drops its group, of two rules for a code the first valid one wins, a ReleaseTimeWindow of 0 or
    none means never. GraceTolerance is checked and carried through as it is written.
    """
    return _Reader(label, text).read()


class _Group:
    """Fields of one group with their types checked; missing ones are zero, empty or none, as in Go."""

    def __init__(self, document: Document, node: Node | None, keys: tuple[str, ...]) -> None:
        self.offset = node.offset if node else 0
        self.codes: list[tuple[str, int]] = []
        self.numbers = dict.fromkeys(keys, 0)
        self.handling = ""
        self.offsets: dict[str, int] = {}
        names = {_OURS[key].lower(): key for key in keys}
        for key, value in document.fields(node, names) if node else ():
            self.offsets[key] = value.offset
            if key == "codes":
                self.codes = texts(value, _OURS[key])
            elif key == "handling":
                found = typed(value, "string", _OURS[key])
                self.handling = str(found.value) if found else ""
            else:
                found = typed(value, "number", _OURS[key])
                self.numbers[key] = found.value if found and isinstance(found.value, int) else 0


class _Reader:
    def __init__(self, label: str, text: str) -> None:
        self._document = Document(label, text)
        self._result = RulesRead(replaced=frozenset({"rules"}))

    def read(self) -> RulesRead:
        document, result = self._document, self._result
        result.findings = document.findings
        try:
            parts = dict(document.fields(document.root(), _PARTS))
            frequency = self._groups(parts, FREQUENCY, _FREQUENCY_FIELDS)
            duration = self._groups(parts, DURATION, _DURATION_FIELDS)
            self._grace(parts)
        except BadJson as bad:
            document.refuse(bad)
            return RulesRead(findings=document.findings, usable=False)
        self._add(FREQUENCY, frequency, result.frequency, _frequency_check, _frequency_rule)
        self._add(DURATION, duration, result.duration, _duration_check, _duration_rule)
        document.findings.sort(key=lambda finding: finding.place.line)
        return result

    def _groups(self, parts: Mapping[str, Node], part: str, keys: tuple[str, ...]) -> list[_Group]:
        """All groups of one part; a wrong type in any of them fails the document before a rule is made."""
        found = typed(parts[part], "list", part) if part in parts else None
        return [
            _Group(self._document, typed(each, "object", f"a member of {part}"), keys)
            for each in (found.items() if found else ())
        ]

    def _grace(self, parts: Mapping[str, Node]) -> None:
        found = typed(parts[GRACE], "object", GRACE) if GRACE in parts else None
        if found is None:
            return
        values: dict[str, int] = {}
        for name, value in self._document.fields(found, _GRACE):
            number = typed(value, "number", name)
            if number is None or not isinstance(number.value, int):
                continue
            values[name] = number.value
            if problem := grace_problem(name, number.value):
                self._document.warn(value.offset, "", problem)
        self._result.grace = values

    def _add(
        self,
        part: str,
        groups: list[_Group],
        rules: dict[int, _Rule],
        check: Callable[[_Group], Violation | None],
        rule: Callable[[int, _Group, Place], _Rule],
    ) -> None:
        """Make rules of the valid groups."""
        for group in groups:
            violation = ("codes", "is empty") if not group.codes else check(group)
            if violation is not None:
                key, sentence = violation
                only = group.codes[0][0] if len(group.codes) == 1 else ""
                self._document.drop(
                    group.offsets.get(key, group.offset),
                    shown(only)[1:-1],
                    f"{_OURS[key]} {sentence}; this whole group of {part} is dropped",
                )
                continue
            for code, written, offset in self._valid(part, group):
                if code in rules:
                    self._document.warn(
                        offset, written.upper(), f"already has a rule of {part} at {rules[code].place}; that one counts"
                    )
                else:
                    rules[code] = rule(code, group, self._document.place(group.offset))

    def _valid(self, part: str, group: _Group) -> list[tuple[int, str, int]]:
        valid: list[tuple[int, str, int]] = []
        for written, offset in group.codes:
            if (code := parse_code_text(written)) is None:
                self._document.warn(offset, "", f"{shown(written)} in {part} is not a hexadecimal code and is skipped")
            else:
                valid.append((code, written, offset))
        return valid


def _frequency_check(group: _Group) -> Violation | None:
    numbers = group.numbers
    return frequency_violation(numbers["window_s"], numbers["times"], group.handling, numbers["release_s"] or None)


def _frequency_rule(code: int, group: _Group, place: Place) -> FrequencyRule:
    numbers = group.numbers
    release_s = numbers["release_s"] or NEVER_S
    return FrequencyRule(code, numbers["window_s"], numbers["times"], Level.parse(group.handling), release_s, place)


def _duration_check(group: _Group) -> Violation | None:
    return duration_violation(group.numbers["fault_s"], group.numbers["recover_s"], group.handling)


def _duration_rule(code: int, group: _Group, place: Place) -> DurationRule:
    numbers = group.numbers
    return DurationRule(code, numbers["fault_s"], numbers["recover_s"], Level.parse(group.handling), place)
