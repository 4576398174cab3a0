"""Known causes of differences between the device plugin's object and ours: its quirks, and what differs by intent.

Each cause is one function: the sentence when it applies, else an empty text. The first that applies is taken. A cause
is only named where the objects themselves show it; a difference without one deserves a look.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nodeagent.core.codes import NETWORK_CODES, parse_code
from nodeagent.core.levels import Level
from nodeagent.core.model import UpgradeType
from nodeagent.render.comparison_side import Side
from nodeagent.render.difference import ABSENT, Difference, Kind

NOTICE_S = 300
"""How long a once-only code may stay in our object when nothing is acknowledged (decision 3)."""
_PRESENT = "listed"
_LISTS_OF_FAULTS = (Kind.UNHEALTHY, Kind.NETWORK_UNHEALTHY)
_FAULT_KINDS = (Kind.FAULT_MISSING, Kind.FAULT_EXTRA, Kind.FAULT_LEVEL, Kind.FAULT_TYPE)
_DEVICE = re.compile(r".*-(\d{1,9})")


@dataclass(frozen=True, slots=True)
class _Case:
    """One difference (`it`) among all that there are."""

    it: Difference
    theirs: Side
    ours: Side
    every: Sequence[Difference]

    def about(self, device: str, *kinds: Kind) -> bool:
        """There is another difference of these kinds about a device."""
        return any(each.device == device and each.kind in kinds for each in self.every)

    def reason_differs(self) -> bool:
        """One side alone has an upgrade reason of the very code that this difference is about."""
        code = _number(self.it.code)
        return code is not None and any(
            each.kind is Kind.REASON
            and each.device == self.it.device
            and _number(each.code) == code
            and ABSENT in (each.theirs, each.ours)
            for each in self.every
        )


Cause = Callable[[_Case], str]


def with_causes(differences: Sequence[Difference], theirs: Side, ours: Side) -> tuple[Difference, ...]:
    """The same differences, each with the first cause that explains it."""
    cases = (_Case(each, theirs, ours, differences) for each in differences)
    return tuple(replace(case.it, explanation=_explained(case)) for case in cases)


def _explained(case: _Case) -> str:
    return next((text for cause in CAUSES if (text := cause(case))), "")


def _stopped_writer(case: _Case) -> str:
    """Device-info 7: both refresh every five minutes."""
    if case.it.kind is not Kind.STALE:
        return ""
    older = "theirs" if case.theirs.update_time_s < case.ours.update_time_s else "ours"
    return f"{older} is not refreshed any more, though both writers refresh every 300 s: does its writer run?"


def _renamed(case: _Case) -> str:
    """Device-info 13, custom names."""
    if case.it.kind is Kind.UNACCEPTABLE and "exactly one product" in case.theirs.problem:
        return "deviceNameCustomization.json renames devices, and ClusterD cannot tell the product any more"
    return ""


def _key_of_310(case: _Case) -> str:
    """Device-info 4.1."""
    keys = ("DeviceList huawei.com/Ascend310P-Fault", "DeviceList huawei.com/Ascend310-Fault")
    if case.it.kind is Kind.KEY and case.it.field in keys and case.theirs.product == "Ascend310":
        return "on a 310 the device plugin writes the faults under the key of the 310P, which is read at random"
    return ""


def _asked_once(case: _Case) -> str:
    """Device-info 3."""
    if case.it.kind is Kind.IDENTITY and case.it.theirs.startswith("-") and case.it.ours.isdigit():
        return "the device plugin asks for the super pod once, at its start, and keeps a failure; restart it"
    return ""


def _level_of_neighbour(case: _Case) -> str:
    """Device-info 4.3 and A13, chip-faults R4."""
    if case.it.kind is not Kind.FAULT_LEVEL or not case.it.code:
        return ""
    plane = _network(case.it.code)
    raised = [
        Level.parse(level)
        for code, level, _ in case.theirs.reasons_of(_physical_id(case.it.device))
        if _network(code) is plane
    ]
    theirs, ours = Level.parse(case.it.theirs), Level.parse(case.it.ours)
    if theirs > ours and theirs in raised:
        return (
            "the device plugin gives every code of a chip the level to which another one was raised; each has its own"
        )
    return ""


def _lowered(case: _Case) -> str:
    """Chip-faults 9.1, R4: an upgrade reason overwrites the entry of its code whatever the two levels are."""
    if case.it.kind is not Kind.FAULT_LEVEL or not case.it.code:
        return ""
    code = _number(case.it.code)
    reasons = case.theirs.reasons_of(_physical_id(case.it.device))
    lower = Level.parse(case.it.theirs) < Level.parse(case.it.ours)
    if lower and any(_number(reason) == code and level == case.it.theirs for reason, level, _ in reasons):
        return "the device plugin lets a rule lower the level of a code; for nodeagent the more serious one counts"
    return ""


def _raised_without_entry(case: _Case) -> str:
    """Chip-faults 9.1, R6: no entry while the plane counts as healthy and no code is there."""
    if case.it.kind is not Kind.FAULT_EXTRA or not case.it.code:
        return ""
    code = _number(case.it.code)
    if any(_number(reason) == code for reason, *_ in case.theirs.reasons_of(_physical_id(case.it.device))):
        return "the device plugin keeps the upgrade reason of this code, but no entry while the chip counts as healthy"
    return ""


def _autofilled(case: _Case) -> str:
    """Device-info 6.2, chip-faults R7."""
    extra = case.it.kind is Kind.FAULT_EXTRA and case.it.ours == Level.MANUALLY_SEPARATE.text
    if case.it.theirs != ABSENT or not (extra or case.it.kind in _LISTS_OF_FAULTS):
        return ""
    reasons = case.theirs.reasons_of(_physical_id(case.it.device))
    if any(upgrade_type == UpgradeType.AUTOFILL.value for *_, upgrade_type in reasons):
        return (
            "the device plugin names the chip in ManuallySeparateNPU, but does not isolate it for an autofilled reason"
        )
    return ""


def _preseparate_on_310(case: _Case) -> str:
    """Device-info 4.4."""
    if case.it.kind is not Kind.UNHEALTHY or case.it.theirs != _PRESENT:
        return ""
    held = any(
        fault.level is Level.PRE_SEPARATE for fault in case.theirs.faults.values() if fault.device == case.it.device
    )
    if held and case.theirs.product in ("Ascend310", "Ascend310P"):
        return (
            "on 310 and 310P the device plugin looks for pods under the key of the 910, so PreSeparateNPU never waits"
        )
    return ""


def _seconds(case: _Case) -> str:
    """Device-info 4.3, 950 with all UB ports down."""
    if case.it.kind is Kind.FAULT_TIME and abs(int(case.it.theirs) * 1000 - int(case.it.ours)) <= 60_000:
        return "with all UB ports of a 950 down the device plugin writes this time in seconds; it is milliseconds"
    return ""


def _own_detection(case: _Case) -> str:
    """Device-info 4.3: found by a query = the time of detection; chip-faults 7.4: drift of restored reasons."""
    if case.it.kind is Kind.FAULT_TIME:
        return "a code that is found by a query has the time of its detection, and each program queries by itself"
    if case.it.kind is Kind.REASON and case.it.device and ABSENT not in (case.it.theirs, case.it.ours):
        if UpgradeType.DURATION.value in case.it.field:
            return "a restart of the device plugin moves the time of a reason that a duration rule made"
        return "the reason was made anew at another time"
    return ""


def _once_only(case: _Case) -> str:
    """Device-info 7 (visible for exactly one pass), decision 3."""
    sides = {Kind.FAULT_MISSING: case.theirs, Kind.FAULT_EXTRA: case.ours}
    side = sides.get(case.it.kind)
    fault = (
        next((f for f in side.faults.values() if (f.device, f.text) == (case.it.device, case.it.code)), None)
        if side
        else None
    )
    if side is None or fault is None or fault.level is not Level.NOT_HANDLE or not fault.since_ms:
        return ""
    if side.update_time_s - fault.since_ms / 1000 <= NOTICE_S:
        return f"if it is a once-only notice, each program shows it at its own time, nodeagent for {NOTICE_S} s at most"
    return ""


def _released_on_one_side(case: _Case) -> str:
    """Device-info 6.1: an edit concerns one object; a failed read of the device plugin counts as one."""
    if case.it.kind is Kind.MANUAL and case.it.theirs == ABSENT:
        return (
            "released in their object only: an operator's edit (edit the shadow too), or the device plugin could not"
            " read it once, which it takes for one"
        )
    return ""


def _forgotten_counts(case: _Case) -> str:
    """Chip-faults 7.4: counters and queues are not kept."""
    if case.it.kind is Kind.REASON and case.it.theirs == ABSENT and UpgradeType.FREQUENCY.value in case.it.field:
        return "the device plugin counts from zero after a restart, nodeagent goes on; or it was released there"
    return ""


def _follows(case: _Case) -> str:
    """A list follows from levels, and the available list from the unhealthy one."""
    if case.it.kind in _LISTS_OF_FAULTS and case.about(case.it.device, *_FAULT_KINDS):
        return "follows from the difference in its faults"
    if case.it.kind is Kind.AVAILABLE and case.about(case.it.device, Kind.UNHEALTHY, Kind.RECOVERING):
        return "follows from the difference in the other lists"
    if (
        case.it.kind is Kind.FAULT_LEVEL
        and not case.it.code
        and case.about(case.it.device, Kind.FAULT_MISSING, Kind.FAULT_EXTRA)
    ):
        return "follows from the difference in its codes"
    if case.it.kind in _FAULT_KINDS and case.reason_differs():
        return "follows from the difference in the upgrade reason of this code"
    return ""


def _pods(case: _Case) -> str:
    """Decision 45, device-info 4.2 and 11.2."""
    if case.it.kind is Kind.AVAILABLE and case.it.theirs == _PRESENT:
        return (
            "a pod without the annotation huawei.com/AscendReal counts as using its chip for nodeagent only; Volcano"
            " does not read this value as it is set up"
        )
    return ""


CAUSES: tuple[Cause, ...] = (
    _stopped_writer,
    _renamed,
    _key_of_310,
    _asked_once,
    _level_of_neighbour,
    _lowered,
    _raised_without_entry,
    _autofilled,
    _preseparate_on_310,
    _seconds,
    _own_detection,
    _once_only,
    _released_on_one_side,
    _forgotten_counts,
    _follows,
    _pods,
)
"""In the order in which they are tried."""


def _physical_id(device: str) -> int:
    match = _DEVICE.fullmatch(device)
    return int(match.group(1)) if match else -1


def _number(code: str) -> int | None:
    try:
        return parse_code(code)
    except ValueError:
        return None


def _network(code: str) -> bool:
    return _number(code) in NETWORK_CODES
