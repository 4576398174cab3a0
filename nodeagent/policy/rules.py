"""Rules on top of levels, as immutable values: frequency, duration, association, ports (chip-faults 2.7, 4.5, 5).

Where they come from (fault_codes/rules.yaml, a site's file, the cluster's ConfigMap) is nodeagent.policy.rules_load's
business; what they do is the engine's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.core.levels import Level
from nodeagent.policy.switch_table import SwitchTable
from nodeagent.policy.table import FaultTable
from nodeagent.policy.table_records import Place

NEVER_S = 4294967296
"""A release window that means "never" (chip-faults 5.2)."""


@dataclass(frozen=True, slots=True)
class FrequencyRule:
    """`times` occurrences within `window_s` raise the chip to `handling` (chip-faults 5.2).

    release_s: seconds after the last recovery at which the raise ends by itself; NEVER_S = only by an operator.
    Ranges: window 60..864000, times 1..100, release 60..NEVER_S.
    """

    code: int
    window_s: int
    times: int
    handling: Level
    release_s: int
    place: Place


@dataclass(frozen=True, slots=True)
class DurationRule:
    """A code that stays longer than `fault_s` counts as `handling` until it was gone longer than `recover_s` (5.3).

    Ranges: fault 0..600 s, recover 0..86400 s; never ManuallySeparateNPU.
    """

    code: int
    fault_s: int
    recover_s: int
    handling: Level
    place: Place


@dataclass(frozen=True, slots=True)
class AssociationRule:
    """Codes that are held back, and dropped when `trigger` comes within `window_ms` before or after (2.7).

    needs_duration_rule: only in force while `trigger` has a duration rule.
    """

    trigger: int
    held: frozenset[int]
    window_ms: int
    needs_duration_rule: bool
    place: Place


@dataclass(frozen=True, slots=True)
class PortRule:
    """A port-down code that is refined by the number of ports that are down (4.5).

    by_down: number of ports down -> code that is added; the largest key also stands for more.
    always: code that is added without asking, 0 = none. when_all: replaces `always` on every chip when all chips
    of the node have the port-down code, 0 = none.
    """

    code: int
    by_down: Mapping[int, int]
    always: int
    when_all: int
    place: Place


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules in force. Keyed by integer code (R14)."""

    frequency: Mapping[int, FrequencyRule] = field(default_factory=dict)
    duration: Mapping[int, DurationRule] = field(default_factory=dict)
    association: tuple[AssociationRule, ...] = ()
    ports: Mapping[int, PortRule] = field(default_factory=dict)

    @property
    def longest_release_s(self) -> int | None:
        """Largest finite release window, which also ends autofilled reasons (7.4); None = there is none."""
        finite = [r.release_s for r in self.frequency.values() if r.release_s < NEVER_S]
        return max(finite, default=None)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One complete set of table and rules, swapped as a whole between two steps (R17).

    version: digest of everything it was made from. layers: names of the documents, lowest first. switches: levels of
    switch faults.
    """

    table: FaultTable
    rules: RuleSet
    version: str
    layers: tuple[str, ...] = ()
    switches: SwitchTable = field(default_factory=SwitchTable)
