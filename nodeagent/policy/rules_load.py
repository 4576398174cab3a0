"""Rules from YAML: frequency, duration, association and ports, beside or apart from a fault table (docs/rules.md).

One document may hold a fault table and rules; this module looks only at its own keys, nodeagent.policy.table at the
others. A group with any mistake is dropped as a whole and the other groups count (chip-faults 5.2, 5.3); a document
whose form is wrong is not usable at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from nodeagent.core.levels import Level
from nodeagent.policy.rules import NEVER_S, AssociationRule, DurationRule, FrequencyRule, PortRule, RuleSet
from nodeagent.policy.rules_load_checks import (
    DURATION_LEVELS,
    FREQUENCY_LEVELS,
    GRACE_RANGES,
    duration_violation,
    frequency_violation,
    grace_problem,
)
from nodeagent.policy.rules_load_fields import DroppedGroupError, Group
from nodeagent.policy.table_document import GRACE_KEY, REMOVE_KEY, REPLACE_KEY, RULE_SECTIONS
from nodeagent.policy.table_draft import nearest, read_code
from nodeagent.policy.table_records import Finding, Place
from nodeagent.policy.table_yaml import BrokenText, Items, Node, Pairs, Piece, Scalar, shown, walk

NODE_LEVELS = "node_levels"
"""The word of `replace` for the levels of node faults; nodeagent.policy.node_document acts on it."""
REPLACEABLE = ("levels", "rules", "switch_levels", NODE_LEVELS)
"""What `replace` may name: the levels, the frequency and duration rules, the levels of switch faults, or those of node
faults, of all lower layers."""

_Rule = TypeVar("_Rule", FrequencyRule, DurationRule, AssociationRule, PortRule)


@dataclass(slots=True)
class RulesRead:
    """What one document says about rules.

    frequency, duration, association, ports: by code (association: by trigger); all of them keep within the ranges.
    removed: section -> code -> where that is said. replaced: members of REPLACEABLE.
    grace: upstream's GraceTolerance in seconds, unread; None = not said.
    findings: in file order. A serious one means a dropped group as long as `usable` is true; false: the whole
    document must be refused.
    """

    frequency: dict[int, FrequencyRule] = field(default_factory=dict)
    duration: dict[int, DurationRule] = field(default_factory=dict)
    association: dict[int, AssociationRule] = field(default_factory=dict)
    ports: dict[int, PortRule] = field(default_factory=dict)
    removed: dict[str, dict[int, Place]] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    grace: Mapping[str, int] | None = None
    findings: list[Finding] = field(default_factory=list)
    usable: bool = True

    def section(self, name: str) -> "Mapping[int, FrequencyRule | DurationRule | AssociationRule | PortRule]":
        """The rules of one of RULE_SECTIONS by code."""
        sections: dict[str, Mapping[int, FrequencyRule | DurationRule | AssociationRule | PortRule]] = {
            "frequency": self.frequency,
            "duration": self.duration,
            "association": self.association,
            "ports": self.ports,
        }
        return sections[name]


def read_rules(label: str, text: str) -> RulesRead:
    """The rules of one YAML document. Never raises: every problem is a finding.

    label: file name or object key, for places. text: the whole document; keys of fault tables are passed over.
    """
    reader = _Reader(label)
    reader.read(text)
    return reader.read_so_far


def overlaid_rules(below: RuleSet, above: RulesRead) -> tuple[RuleSet, list[Finding]]:
    """The rules of one document on top of others, code by code, and warnings about what it wanted to remove.

    A rule is taken as a whole: there is no merging of its numbers with those of the rule below it.
    """
    findings: list[Finding] = []
    association = {rule.trigger: rule for rule in below.association}
    emptied = "rules" in above.replaced
    merged = RuleSet(
        _merged("frequency", {} if emptied else below.frequency, above.frequency, above, findings),
        _merged("duration", {} if emptied else below.duration, above.duration, above, findings),
        tuple(_merged("association", association, above.association, above, findings).values()),
        _merged("ports", below.ports, above.ports, above, findings),
    )
    return merged, findings


def _merged(
    section: str, below: Mapping[int, _Rule], own: Mapping[int, _Rule], above: RulesRead, findings: list[Finding]
) -> dict[int, _Rule]:
    removed = above.removed.get(section, {})
    for code, place in removed.items():
        if code in own:
            findings.append(
                Finding(place, f"{code:X}", f"removed from {section} and given in the same file: it stays", False)
            )
        elif code not in below:
            findings.append(Finding(place, f"{code:X}", f"there is no {section} rule below to remove", False))
    return {code: rule for code, rule in below.items() if code not in removed} | dict(own)


class _Reader:
    """One document, piece by piece."""

    def __init__(self, label: str) -> None:
        self.read_so_far = RulesRead()
        self._label = label
        self._codes: dict[str, dict[int, int]] = {name: {} for name in RULE_SECTIONS}
        self._groups: dict[str, Callable[[Group], None]] = {
            "frequency": self._frequency,
            "duration": self._duration,
            "association": self._association,
            "ports": self._port,
        }

    def read(self, text: str) -> None:
        try:
            # A key that stands twice is found by the reader of the table.
            for piece in walk(text, lambda _line, _sentence: None):
                if piece.key.text in self._groups:
                    self._section(piece)
                elif piece.key.text == REMOVE_KEY:
                    self._remove(piece.node)
                elif piece.key.text == REPLACE_KEY:
                    self._replace(piece)
                elif piece.key.text == GRACE_KEY:
                    self._grace(piece.node)
        except BrokenText as broken:
            self._refuse(broken.line, broken.sentence)

    def _section(self, piece: Piece) -> None:
        name = piece.key.text
        if piece.empty:
            return
        if not piece.in_list:
            self._refuse(piece.node.line, f"{name} must be a list of rules")
            return
        if not isinstance(piece.node, Pairs):
            self._drop(name, piece.node.line, "a rule must be a mapping of names to values", "")
            return
        group = Group(piece.node)
        try:
            self._groups[name](group)
        except DroppedGroupError as dropped:
            self._drop(name, dropped.line, dropped.sentence, group.only_code)

    def _frequency(self, group: Group) -> None:
        group.allow("codes", "window_s", "times", "handling", "release_s")
        codes = group.codes("codes")
        window_s, times = group.number("window_s"), group.number("times")
        release_s = group.release("release_s")
        handling = group.word("handling", FREQUENCY_LEVELS)
        group.refuse(frequency_violation(window_s, times, handling, release_s))
        level, place = Level.parse(handling), self._place(group.line)
        never = NEVER_S if release_s is None else release_s
        for code in self._new("frequency", codes):
            self.read_so_far.frequency[code] = FrequencyRule(code, window_s, times, level, never, place)

    def _duration(self, group: Group) -> None:
        group.allow("codes", "fault_s", "recover_s", "handling")
        codes = group.codes("codes")
        fault_s, recover_s = group.number("fault_s"), group.number("recover_s")
        handling = group.word("handling", DURATION_LEVELS)
        group.refuse(duration_violation(fault_s, recover_s, handling))
        level, place = Level.parse(handling), self._place(group.line)
        for code in self._new("duration", codes):
            self.read_so_far.duration[code] = DurationRule(code, fault_s, recover_s, level, place)

    def _association(self, group: Group) -> None:
        group.allow("trigger", "hold", "window_s", "needs_duration_rule")
        trigger = group.code("trigger")
        held = group.codes("hold")
        if any(code == trigger[0] for code, _ in held):
            raise DroppedGroupError(group.line_of("hold"), "a code cannot hold back itself")
        rule = AssociationRule(
            trigger[0],
            frozenset(code for code, _ in held),
            group.window_ms("window_s"),
            group.truth("needs_duration_rule"),
            self._place(group.line),
        )
        for code in self._new("association", [trigger]):
            self.read_so_far.association[code] = rule

    def _port(self, group: Group) -> None:
        group.allow("code", "by_down", "always", "when_all")
        code = group.code("code")
        by_down = group.numbered_codes("by_down")
        always, when_all = group.optional_code("always"), group.optional_code("when_all")
        if not by_down and not always:
            raise DroppedGroupError(group.line, "a port rule needs by_down or always")
        if when_all and not always:
            raise DroppedGroupError(group.line_of("when_all"), "when_all replaces `always`, which is not given")
        rule = PortRule(code[0], by_down, always, when_all, self._place(group.line))
        for number in self._new("ports", [code]):
            self.read_so_far.ports[number] = rule

    def _new(self, section: str, codes: list[tuple[int, int]]) -> list[int]:
        """Codes that have no rule of this section in this document yet: the first valid one wins (chip-faults 5.2)."""
        fresh, seen = [], self._codes[section]
        for code, line in codes:
            if code in seen:
                sentence = f"already has a {section} rule in line {seen[code]}; that one counts"
                self._find(line, f"{code:X}", sentence, serious=False)
            else:
                seen[code] = line
                fresh.append(code)
        return fresh

    def _remove(self, node: Node) -> None:
        if not isinstance(node, Pairs):
            self._refuse(node.line, f"{REMOVE_KEY} must be a mapping of sections to lists of codes")
            return
        for key, codes in node.pairs:
            if key.text not in RULE_SECTIONS:
                self._refuse(key.line, f"there is no section {shown(key.text)}{nearest(key.text, RULE_SECTIONS)}")
            elif not isinstance(codes, Items):
                self._refuse(codes.line, f"{REMOVE_KEY}.{key.text} must be a list of quoted codes")
            else:
                known = self.read_so_far.removed.setdefault(key.text, {})
                for each in codes.nodes:
                    if (code := read_code(each, self._refuse)) is not None:
                        known.setdefault(code[0], self._place(each.line))

    def _replace(self, piece: Piece) -> None:
        node = piece.node
        if piece.empty:
            return
        if not piece.in_list or not isinstance(node, Scalar) or node.text not in REPLACEABLE:
            self._refuse(node.line, f"{REPLACE_KEY} must be a list of the words {', '.join(REPLACEABLE)}")
            return
        self.read_so_far.replaced |= {node.text}

    def _grace(self, node: Node) -> None:
        if not isinstance(node, Pairs):
            self._refuse(node.line, f"{GRACE_KEY} must be a mapping of names to seconds")
            return
        values: dict[str, int] = {}
        for key, value in node.pairs:
            if key.text not in GRACE_RANGES:
                self._refuse(key.line, f"unknown key {shown(key.text)} in {GRACE_KEY}{nearest(key.text, GRACE_RANGES)}")
            elif not isinstance(value, Scalar) or not value.text.isascii() or not value.text.isdigit():
                self._refuse(value.line, f"{key.text} must be a number of seconds")
            elif len(value.text) > 19:
                self._refuse(value.line, f"{key.text} is too large")
            else:
                values[key.text] = int(value.text)
                if problem := grace_problem(key.text, values[key.text]):
                    self._find(value.line, "", problem, serious=False)
        self.read_so_far.grace = values

    def _drop(self, section: str, line: int, sentence: str, code: str) -> None:
        self._find(line, code, f"{sentence}; this whole group of {section} is dropped", serious=True)

    def _refuse(self, line: int, sentence: str) -> None:
        self.read_so_far.usable = False
        self._find(line, "", sentence, serious=True)

    def _find(self, line: int, code: str, sentence: str, serious: bool) -> None:
        self.read_so_far.findings.append(Finding(self._place(line), code, sentence, serious))

    def _place(self, line: int) -> Place:
        return Place(self._label, line)
