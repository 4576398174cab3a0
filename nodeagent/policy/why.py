"""Why a chip has the level it has: from the raw codes to the published field, step by step. Pure.

The report is made from the same state and configuration as the view, so that it can be checked against it: the
levels of `codes` and `reasons`, taken together, are the levels of the chip.
"""

from dataclasses import dataclass
from typing import Any

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level, Plane
from nodeagent.core.model import ChipView, Family, UpgradeType, device_name
from nodeagent.policy import duration
from nodeagent.policy.frequency import FrequencyState, release_mono_ms
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import ActiveFault, ChipState, NodeState, Notice, Why
from nodeagent.policy.switch_listing import hints

_DURATION_STATES = {
    (False, False): "quiet",
    (False, True): "waiting for the limit",
    (True, False): "limit passed",
    (True, True): "recovered, held",
}


@dataclass(frozen=True, slots=True)
class CodeWhy:
    """One code that is shown. said_by: the line of the table, or the rule for unlisted codes, that gave the level."""

    text: str
    name: str
    plane: Plane
    level: Level
    said_by: str
    since_ms: int
    once: bool


@dataclass(frozen=True, slots=True)
class RuleWhy:
    """One rule that watches or raises this chip. left_ms: until it acts by itself; None = only after an event."""

    text: str
    kind: str
    says: str
    place: str
    state: str
    level: Level
    left_ms: int | None
    raises: bool


@dataclass(frozen=True, slots=True)
class ChipWhy:
    """Everything about one chip. fields: what it does to the published object, key -> sentence. hints: switch faults
    that name it as their peer; no level comes from them."""

    name: str
    view: ChipView
    codes: tuple[CodeWhy, ...]
    rules: tuple[RuleWhy, ...]
    fields: tuple[tuple[str, str], ...]
    version: str
    layers: tuple[str, ...]
    hints: tuple[str, ...] = ()


def explain_chip(state: NodeState, logic_id: int, config: Configuration, now: Instant) -> ChipWhy | None:
    """The report; None when there is no such chip or nothing is known of it yet."""
    chip, view = state.chips.get(logic_id), state.views.get(logic_id)
    if chip is None or view is None or state.inventory is None:
        return None
    family = state.inventory.product.family
    return ChipWhy(
        name=device_name(family, chip.chip.physical_id),
        view=view,
        codes=tuple(_codes(chip, view, config)),
        rules=tuple(r for r in [*_duration(chip, config, now), *_frequency(chip, config, now)] if _counts(r, view)),
        fields=tuple(_fields(view, family)),
        version=config.version,
        layers=config.layers,
        hints=() if state.view is None else hints(state.view.switch, chip.chip.physical_id),
    )


def as_json(report: ChipWhy) -> dict[str, Any]:
    """The report for machines and for the socket."""
    view = report.view
    return {
        "name": report.name,
        "logic_id": view.chip.logic_id,
        "physical_id": view.chip.physical_id,
        "card_id": view.chip.card_id,
        "device_id": view.chip.device_id,
        "chip_level": view.chip_level.text,
        "network_level": view.network_level.text,
        "healthy": view.healthy,
        "network_healthy": view.network_healthy,
        "used": view.used,
        "silent_since_ms": view.silent_since_ms,
        "suppressed": list(view.suppressed),
        "codes": [
            {
                "code": code.text,
                "name": code.name,
                "plane": code.plane.value,
                "level": code.level.text,
                "said_by": code.said_by,
                "since_ms": code.since_ms,
                "once": code.once,
            }
            for code in report.codes
        ],
        "rules": [
            {
                "code": rule.text,
                "kind": rule.kind,
                "rule": rule.says,
                "place": rule.place,
                "state": rule.state,
                "level": rule.level.text,
                "left_s": None if rule.left_ms is None else rule.left_ms / 1000,
                "raises": rule.raises,
            }
            for rule in report.rules
        ],
        "fields": dict(report.fields),
        "hints": list(report.hints),
        "configuration": {"version": report.version, "layers": list(report.layers)},
    }


def _codes(chip: ChipState, view: ChipView, config: Configuration) -> list[CodeWhy]:
    found = []
    shown: list[ActiveFault | Notice] = list(chip.faults.values())
    shown += [n for c, n in chip.notices.items() if c not in chip.faults]
    visible = {f.code for f in view.faults}
    for fault in (f for f in shown if f.code in visible):
        decision = config.table.level_of(fault.code, fault.severity)
        record = config.table.lookup(fault.code)
        carried = fault.carried if isinstance(fault, ActiveFault) else None
        found.append(
            CodeWhy(
                text=config.table.text_of(fault.code),
                name=record.name_en if record is not None else "",
                plane=decision.plane,
                level=decision.level if carried is None else carried,
                said_by=decision.reason if carried is None else "our last published object; the chip has not answered",
                since_ms=fault.since.wall_ms,
                once=not isinstance(fault, ActiveFault),
            )
        )
    return found


def _duration(chip: ChipState, config: Configuration, now: Instant) -> list[RuleWhy]:
    found = []
    for code, state in chip.duration.items():
        rule = config.rules.duration.get(code)
        edges = duration.pending(state)
        if rule is None or not (edges or state.timed_out):
            continue
        says = f"longer than {rule.fault_s} s counts as {rule.handling.text} until gone longer than {rule.recover_s} s"
        due = duration.due_mono_ms(state, rule, now)
        left = None if due is None else max(0, due - now.mono_ms)
        raised = Why(code, rule.handling, UpgradeType.DURATION) in chip.reasons
        text = _DURATION_STATES[state.timed_out, bool(edges)]
        found.append(_rule(code, config, "duration", says, str(rule.place), text, rule.handling, left, raised))
    return found


def _frequency(chip: ChipState, config: Configuration, now: Instant) -> list[RuleWhy]:
    found = []
    counting = [w for w in chip.reasons if w.upgrade_type is not UpgradeType.DURATION]
    raised = {w.code: w for w in sorted(counting, key=lambda w: w.level)}  # the most serious one of a code (R5)
    for code in dict.fromkeys([*chip.frequency, *(c for c in raised)]):
        if code is None:
            why = raised[None]
            text = "restored from the published object, its code is not known any more"
            found.append(RuleWhy("AutofillFaultCode", "autofill", "", "", text, why.level, None, True))
            continue
        state = chip.frequency.get(code, FrequencyState())
        rule = config.rules.frequency.get(code)
        stands = raised.get(code)
        if rule is None:
            if stands is not None:
                gone = "its rule is gone; an operator can lift it"
                found.append(_rule(code, config, "frequency", "", "", gone, stands.level, None, True))
            continue
        says = f"{rule.times} times within {rule.window_s} s counts as {rule.handling.text}"
        if stands is None:
            text = f"seen {len(state.occurrences)} of {rule.times} times"
            found.append(_rule(code, config, "frequency", says, str(rule.place), text, rule.handling, None, False))
            continue
        due = release_mono_ms(state, rule)
        left = None if due is None else max(0, due - now.mono_ms)
        text = "raised; " + ("an operator can lift it" if due is None else "released by itself when quiet long enough")
        found.append(_rule(code, config, "frequency", says, str(rule.place), text, stands.level, left, True))
    return found


def _counts(rule: RuleWhy, view: ChipView) -> bool:
    """A rule on a suppressed code raises nothing and is not shown; the code itself is named as suppressed."""
    return not any(text.startswith(f"{rule.text} ") for text in view.suppressed)


def _rule(
    code: int,
    config: Configuration,
    kind: str,
    says: str,
    place: str,
    state: str,
    level: Level,
    left_ms: int | None,
    raises: bool,
) -> RuleWhy:
    return RuleWhy(config.table.text_of(code), kind, says, place, state, level, left_ms, raises)


def _fields(view: ChipView, family: Family) -> list[tuple[str, str]]:
    key, name = family.resource, device_name(family, view.chip.physical_id)
    found = []
    if view.faults or view.reasons:
        found.append((f"{key}-Fault", f"one element per plane names {name}"))
    if not view.healthy:
        found.append((f"{key}-Unhealthy", f"{name} is in it: chip level {view.chip_level.text}"))
    elif view.chip_level is Level.PRE_SEPARATE:
        found.append((f"{key}-Unhealthy", f"{name} is not in it, because a pod uses it ({view.chip_level.text})"))
    if family.has_network_plane and not view.network_healthy:
        found.append((f"{key}-NetworkUnhealthy", f"{name} is in it: network level {view.network_level.text}"))
    if view.manually_separated:
        found.append(("ManuallySeparateNPU", f"names {name}; delete the name there to lift"))
    if view.reasons:
        found.append(("UpgradeFaultReason", f"{len(view.reasons)} reason(s) of {name}"))
    if view.healthy and not view.used:
        found.append((key, f"{name} is available"))
    return found
