"""Rules for engine tests: the shipped defaults that the worked examples need, and ways to vary them."""

from dataclasses import replace

from nodeagent.core.levels import Level
from nodeagent.policy.rules import NEVER_S, AssociationRule, DurationRule, FrequencyRule, PortRule, RuleSet
from nodeagent.policy.table_records import Place

HERE = Place("test", 1)
LINK = 0x81078603


def frequency(code: int, window_s: int, times: int, handling: Level, release_s: int = NEVER_S) -> FrequencyRule:
    """A frequency rule."""
    return FrequencyRule(code, window_s, times, handling, release_s, HERE)


def duration(code: int, fault_s: int, recover_s: int, handling: Level) -> DurationRule:
    """A duration rule."""
    return DurationRule(code, fault_s, recover_s, handling, HERE)


def rules(*parts: FrequencyRule | DurationRule, base: RuleSet | None = None) -> RuleSet:
    """A rule set of some rules, on top of another one."""
    base = base or RuleSet(association=(ASSOCIATION,), ports=PORTS)
    return replace(
        base,
        frequency={**base.frequency, **{p.code: p for p in parts if isinstance(p, FrequencyRule)}},
        duration={**base.duration, **{p.code: p for p in parts if isinstance(p, DurationRule)}},
    )


ASSOCIATION = AssociationRule(0x80E01801, frozenset({0x80C98009, 0x80CB8009}), 5000, True, HERE)
PORTS = {
    0x81078607: PortRule(0x81078607, {1: 0x110000002, 2: 0x110001024}, 0, 0, HERE),
    0x81B18603: PortRule(0x81B18603, {}, 0x020001002, 0x020000002, HERE),
}
DEFAULTS = rules(
    frequency(0x80C98008, 86400, 2, Level.MANUALLY_SEPARATE),
    frequency(0x80CB8008, 86400, 2, Level.MANUALLY_SEPARATE),
    frequency(0x80E01801, 86400, 2, Level.MANUALLY_SEPARATE),
    frequency(LINK, 86400, 5, Level.MANUALLY_SEPARATE, 172800),
    duration(LINK, 20, 60, Level.PRE_SEPARATE),
)
"""The shipped rules of chip-fault-customization that the examples touch."""
