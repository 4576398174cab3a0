"""What must survive a kill of the switches beyond the published object: every fault with its first time. Pure.

The object lacks faults whose code is in no table and those that were cut for size, and it may be older than the last
thing seen. Notices are not remembered, as those of chips are not.
"""

from typing import Any

from nodeagent.core.observation import CarriedSwitches
from nodeagent.core.switch import SwitchRecord
from nodeagent.policy.state import NodeState
from nodeagent.policy.switch_records import unusable
from nodeagent.policy.switch_state import MAX_FAULTS

SWITCHES = "switches"
"""Key of the switches beside the chips in what is saved."""
_NUMBERS = 9


def remember_switches(state: NodeState) -> dict[str, Any]:
    """The faults under SWITCHES; nothing while nothing was ever known of switches."""
    switches = state.switches
    if not switches.known:
        return {}
    records = [fault.record for fault in switches.faults.values() if not fault.is_notice]
    return {SWITCHES: [[*r.identity, r.severity, r.assertion, r.raised_ms] for r in records]}


def recall_switches(memory: object) -> CarriedSwitches:
    """The remembered faults. Raises ValueError for anything that is not what `remember_switches` wrote."""
    if not isinstance(memory, list) or len(memory) > MAX_FAULTS:
        raise ValueError("the memory of switches is no list of faults")
    return CarriedSwitches(tuple((_record(each), None) for each in memory))


def _record(numbers: object) -> SwitchRecord:
    if not isinstance(numbers, list) or len(numbers) != _NUMBERS or any(type(each) is not int for each in numbers):
        raise ValueError(f"a fault of a switch is {_NUMBERS} integers, not {numbers!r}"[:200])
    record = SwitchRecord(*numbers)
    if problem := unusable(record):
        raise ValueError(problem[:200])
    if not 0 < record.raised_ms < 2**63:
        raise ValueError("the time of a fault is none")
    return record
