"""What changes between two configurations, and what that does to chips that have faults now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeagent.core.levels import Level, Plane, Severity
from nodeagent.policy.node_table import NodeTable
from nodeagent.policy.rules import (
    NEVER_S,
    AssociationRule,
    Configuration,
    DurationRule,
    FrequencyRule,
    PortRule,
    RuleSet,
)
from nodeagent.policy.switch_table import SwitchTable
from nodeagent.policy.table_records import UnknownRules

_Rule = FrequencyRule | DurationRule | AssociationRule | PortRule


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A code whose own level differs. before, after: None = listed without a level, or not at all. place: of the new
    level, of the old one where there is no new one."""

    code: int
    text: str
    before: Level | None
    after: Level | None
    place: str


@dataclass(frozen=True, slots=True)
class TextChange:
    """Something else that differs. what: a rule of a section, the rule for unlisted codes, suppressions, the level of a
    switch fault or a node fault. code: its text, or what it is about. before, after: in words, None = there is none."""

    what: str
    code: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Differences:
    """All that differs between two configurations; texts and places do not count."""

    levels: tuple[LevelChange, ...]
    others: tuple[TextChange, ...]

    @property
    def none(self) -> bool:
        """Both mean the same."""
        return not self.levels and not self.others


@dataclass(frozen=True, slots=True)
class ActiveCode:
    """One code that a chip has now. severity: of its event, None = nobody told it."""

    chip: str
    code: int
    severity: Severity | None


@dataclass(frozen=True, slots=True)
class CodeEffect:
    """A code of a chip whose own level would change."""

    text: str
    before: Level
    after: Level


@dataclass(frozen=True, slots=True)
class Effect:
    """A chip on which something would change. before, after: the maximum of its codes on each plane; rules and
    upgrades are not part of it, as they follow in the next step."""

    chip: str
    codes: tuple[CodeEffect, ...]
    chip_level: tuple[Level, Level]
    network_level: tuple[Level, Level]


def differences(old: Configuration, new: Configuration) -> Differences:
    """Codes that change level, in their order; rules, rulings for unlisted codes and suppressions that differ."""
    return Differences(tuple(_level_changes(old, new)), tuple(_other_changes(old, new)))


def node_differences(old: NodeTable, new: NodeTable) -> tuple[TextChange, ...]:
    """Codes of node faults that change level, in their order."""
    before, after = old.levels(), new.levels()
    words = [{text: level.text for text, level in levels.items()} for levels in (before, after)]
    return tuple(
        TextChange("node fault", text, words[0].get(text), words[1].get(text))
        for text in sorted(before.keys() | after.keys())
        if before.get(text) is not after.get(text)
    )


def effects(active: Iterable[ActiveCode], old: Configuration, new: Configuration) -> tuple[Effect, ...]:
    """What a new configuration would do to codes that are active now, chip by chip in the given order.

    Codes are levelled by themselves; a chip without any change is left out.
    """
    chips: dict[str, list[ActiveCode]] = {}
    for each in active:
        chips.setdefault(each.chip, []).append(each)
    return tuple(effect for chip, codes in chips.items() if (effect := _effect(chip, codes, old, new)).codes)


def _effect(chip: str, codes: list[ActiveCode], old: Configuration, new: Configuration) -> Effect:
    changed: list[CodeEffect] = []
    board, network = [Level.NORMAL, Level.NORMAL], [Level.NORMAL, Level.NORMAL]
    for each in codes:
        before = old.table.level_of(each.code, each.severity)
        after = new.table.level_of(each.code, each.severity)
        plane = network if after.plane is Plane.NETWORK else board
        plane[0], plane[1] = max(plane[0], before.level), max(plane[1], after.level)
        if before.level is not after.level:
            changed.append(CodeEffect(new.table.text_of(each.code), before.level, after.level))
    return Effect(chip, tuple(changed), (board[0], board[1]), (network[0], network[1]))


def _level_changes(old: Configuration, new: Configuration) -> Iterable[LevelChange]:
    for code in sorted(_codes(old) | _codes(new)):
        before, after = old.table.lookup(code), new.table.lookup(code)
        levels = (before.level if before else None, after.level if after else None)
        if levels[0] is not levels[1]:
            record = after if after is not None and after.level is not None else before
            place = str(record.level_place) if record is not None else ""
            yield LevelChange(code, new.table.text_of(code), *levels, place)


def _codes(configuration: Configuration) -> set[int]:
    records = configuration.table.records()
    return {code for record in records for code in (record.code, *record.aliases)}


def _other_changes(old: Configuration, new: Configuration) -> Iterable[TextChange]:
    before, after = _sections(old.rules), _sections(new.rules)
    for section, rules in after.items():
        for code in sorted(before[section].keys() | rules.keys()):
            texts = tuple(_words(each.get(code), new) for each in (before[section], rules))
            if texts[0] != texts[1]:
                yield TextChange(f"{section} rule", new.table.text_of(code), *texts)
    yield from _switch_changes(old.switches, new.switches)
    for (case, ruling), (_, other) in zip(_rulings(old.table.unknown), _rulings(new.table.unknown), strict=True):
        if ruling is not other:
            yield TextChange("unlisted codes", case, ruling.text, other.text)
    suppressed = [
        {
            (each.code, each.text, tuple(sorted(each.chips)) if each.chips is not None else None, each.until)
            for each in configuration.table.suppressions
        }
        for configuration in (old, new)
    ]
    for _, text, chips, until in sorted(suppressed[0] ^ suppressed[1], key=repr):
        words = f"chips {'all' if chips is None else ', '.join(map(str, chips))} until {until}"
        gone = any(each[1:] == (text, chips, until) for each in suppressed[0])
        yield TextChange("suppression", text, words if gone else None, None if gone else words)


def _switch_changes(old: SwitchTable, new: SwitchTable) -> Iterable[TextChange]:
    before, after = old.levels(), new.levels()
    for text in sorted(before.keys() | after.keys()):
        levels = [None if level is None else level.text for level in (before.get(text), after.get(text))]
        if levels[0] != levels[1]:
            yield TextChange("switch fault", text, *levels)
    if old.alias_old_ids is not new.alias_old_ids:
        words = ["yes" if table.alias_old_ids else "no" for table in (old, new)]
        yield TextChange("switch setting", "alias_old_ids", *words)


def _sections(rules: RuleSet) -> dict[str, Mapping[int, _Rule]]:
    return {
        "frequency": rules.frequency,
        "duration": rules.duration,
        "association": {rule.trigger: rule for rule in rules.association},
        "ports": rules.ports,
    }


def _rulings(unknown: UnknownRules) -> list[tuple[str, Level]]:
    by_severity = [
        (f"severity {severity.name.lower()}", ruling.level)
        for severity, ruling in zip(Severity, unknown.by_severity, strict=True)
    ]
    return [
        *by_severity,
        ("severity unknown", unknown.severity_unknown.level),
        ("parameter plane", unknown.parameter_plane.level),
    ]


def _words(rule: _Rule | None, configuration: Configuration) -> str | None:
    """All that a rule says in one line, without its place."""
    text_of = configuration.table.text_of
    match rule:
        case FrequencyRule():
            release = "never released" if rule.release_s == NEVER_S else f"released after {rule.release_s} s"
            return f"{rule.times} times in {rule.window_s} s -> {rule.handling.text}, {release}"
        case DurationRule():
            return f"longer than {rule.fault_s} s -> {rule.handling.text}, recovered after {rule.recover_s} s"
        case AssociationRule():
            held = ", ".join(text_of(code) for code in sorted(rule.held))
            only = ", only while it has a duration rule" if rule.needs_duration_rule else ""
            return f"holds back {held} within {rule.window_ms / 1000:g} s{only}"
        case PortRule():
            parts = [f"{ports} down -> {text_of(code)}" for ports, code in sorted(rule.by_down.items())]
            parts += [f"always {text_of(rule.always)}"] if rule.always else []
            parts += [f"on all chips {text_of(rule.when_all)}"] if rule.when_all else []
            return ", ".join(parts)
        case None:
            return None
