"""Rules that tie codes together: faults explained by another one, ports, all chips at once (chip-faults 2.7, 4.5).

Works on the step's own copy of a chip.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from nodeagent.core.instant import Instant
from nodeagent.core.observation import FaultNoticed, FaultOccurred, FaultRecovered, PortsDown
from nodeagent.policy.rules import AssociationRule, RuleSet
from nodeagent.policy.state import ChipState, CodeFact

# -- association: a code that another one explains ------------------------------


def note_trigger(chip: ChipState, fact: CodeFact, rules: RuleSet) -> None:
    """Remember when a code occurred that explains others (2.7)."""
    if not isinstance(fact, FaultRecovered) and any(r.trigger == fact.code for r in _in_force(rules)):
        chip.triggers[fact.code] = fact.at


def holds_back(code: int, rules: RuleSet) -> bool:
    """Whether facts of this code wait until it is known whether another code explains them."""
    return any(code in rule.held for rule in _in_force(rules))


def judge_held(chip: ChipState, rules: RuleSet, now: Instant) -> list[CodeFact]:
    """Facts whose wait is over, in order of time; explained ones are dropped, the others go on waiting.

    Exactly the window is not yet over it (strict, 2.7). Without a rule in force nothing waits any more.
    """
    released: list[CodeFact] = []
    waiting: list[CodeFact] = []
    for fact in sorted(chip.held, key=lambda f: f.at.mono_ms):
        rule = next((r for r in _in_force(rules) if fact.code in r.held), None)
        if rule is None:
            released.append(fact)
            continue
        cause = chip.triggers.get(rule.trigger)
        near = cause is not None and abs(cause.mono_ms - fact.at.mono_ms) < rule.window_ms
        if near and not _ends_unexplained(chip, fact, [*released, *waiting]):
            if not isinstance(fact, FaultNoticed):
                chip.associated.add(fact.code)
        elif now.mono_ms - fact.at.mono_ms > rule.window_ms:
            released.append(fact)
        else:
            waiting.append(fact)
    chip.held = waiting
    return released


def _ends_unexplained(chip: ChipState, fact: CodeFact, earlier: list[CodeFact]) -> bool:
    """A recovery of an occurrence that nothing explains: swallowed, it would leave the code active."""
    return isinstance(fact, FaultRecovered) and (fact.code in chip.faults or any(f.code == fact.code for f in earlier))


def is_explained(chip: ChipState, code: int) -> bool:
    """A listed code that was dropped as explained, or waits already: a query does not bring it back."""
    return code in chip.associated or any(f.code == code for f in chip.held)


def held_until(chip: ChipState, rules: RuleSet) -> list[int]:
    """Monotonic times at which waits end."""
    windows = {code: rule.window_ms for rule in _in_force(rules) for code in rule.held}
    return [f.at.mono_ms + windows.get(f.code, 0) + 1 for f in chip.held]


def _in_force(rules: RuleSet) -> Iterator[AssociationRule]:
    return (r for r in rules.association if not r.needs_duration_rule or r.trigger in rules.duration)


# -- ports: a port-down code refined by how many are down -------------------------


def ports(chip: ChipState, fact: PortsDown) -> None:
    """Remember how many ports are down; None = not known, which changes nothing that is known."""
    if fact.bonding is not None:
        chip.bonding_down = fact.bonding
    if fact.ub is not None:
        chip.ub_down = fact.ub


def refined(chip: ChipState, fact: FaultOccurred, rules: RuleSet) -> list[FaultOccurred]:
    """Codes that a port-down code brings along; they come before it."""
    rule = rules.ports.get(fact.code)
    if rule is None:
        return []
    code = rule.always
    if rule.by_down and chip.bonding_down:
        code = rule.by_down[min(chip.bonding_down, max(rule.by_down))]
    if not code or code in chip.faults or (rule.when_all and rule.when_all in chip.faults):
        return []
    return [replace(fact, code=code, severity=None)]


def derived(code: int, rules: RuleSet) -> tuple[int, ...]:
    """Codes that go away together with a port-down code."""
    rule = rules.ports.get(code)
    if rule is None:
        return ()
    return tuple(dict.fromkeys(c for c in (*rule.by_down.values(), rule.always, rule.when_all) if c))


def still_down(chip: ChipState, code: int, at: Instant, rules: RuleSet) -> FaultOccurred | None:
    """A recovery while ports are still down: the code occurs again at once, refined anew."""
    rule = rules.ports.get(code)
    if rule is None or code not in chip.faults:
        return None
    down = chip.bonding_down if rule.by_down else chip.ub_down
    return FaultOccurred(chip.chip.logic_id, code, None, at) if down else None


def correction(chips: Mapping[int, ChipState], rules: RuleSet) -> list[tuple[int, int, int]]:
    """(logic id, code, code in its place) when all chips of the node have a port-down code (4.5)."""
    found = []
    for rule in rules.ports.values():
        if rule.when_all and chips and all(rule.code in c.faults for c in chips.values()):
            found += [(i, rule.always, rule.when_all) for i, c in chips.items() if rule.always in c.faults]
    return found
