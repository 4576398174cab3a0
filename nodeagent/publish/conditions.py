"""Node conditions: what `kubectl describe node` says of the chips in three lines. Pure.

All are good when True, as the kubelet's `Ready` is. What is not known is Unknown, never False (lesson 3). Upstream
writes none (device-info 10), so their names are ours alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

from nodeagent.core.levels import Level
from nodeagent.core.model import ChipView, NodeView
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.publish.event_book import cut

MAX_MESSAGE_BYTES = 1024
"""Ours; the API server has no limit here, but a node object is read by many."""


class ConditionType(Enum):
    """Closed list of condition types."""

    CHIPS = "AscendChipsHealthy"
    NETWORK = "AscendNetworkHealthy"
    DRIVER = "NodeagentDriver"


@dataclass(frozen=True, slots=True)
class Condition:
    """status: `True`, `False` or `Unknown`. reason: CamelCase. message: at most MAX_MESSAGE_BYTES in UTF-8."""

    kind: ConditionType
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class DriverState:
    """Whether the driver's library works and what was said of it last; None = not told yet, or released on purpose."""

    works: bool | None = None
    sentence: str = ""

    def after(self, event: Event) -> "DriverState":
        """The state after an Event; most say nothing about the driver."""
        if event.reason is EventReason.DRIVER_LOST:
            return DriverState(False, event.message)
        if event.reason is EventReason.DRIVER_READY:
            return DriverState(True, event.message)
        if event.reason is EventReason.DRIVER_RELEASED:
            return DriverState(None, event.message)
        return self


def conditions_of(view: NodeView, driver: DriverState) -> tuple[Condition, ...]:
    """The conditions of a node; that of the network only where the product has a network plane."""
    conditions = [_plane(ConditionType.CHIPS, view.chips, {str(c.chip): c.chip_level for c in _ill(view)})]
    if view.product.family.has_network_plane:
        cut_off = {str(c.chip): c.network_level for c in view.chips if not c.network_healthy}
        conditions.append(_plane(ConditionType.NETWORK, view.chips, cut_off))
    return (*conditions, _driver(driver))


def known_conditions(node: Mapping[str, object]) -> dict[ConditionType, Condition]:
    """Our conditions in a node object; those that cannot be read count as missing."""
    status = node.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    known: dict[ConditionType, Condition] = {}
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and (kind := _KINDS.get(str(each.get("type")))) is not None:
            texts = (str(each.get(name) or "") for name in ("status", "reason", "message"))
            known[kind] = Condition(kind, *texts)
    return known


def patch_of(
    wanted: Iterable[Condition], known: Mapping[ConditionType, Condition], wall_ms: int
) -> dict[str, object] | None:
    """A strategic merge patch of the node's status that makes what is known as wanted; None when it is.

    Conditions merge by their type. `lastTransitionTime` is set only where the status changes.
    """
    at = datetime.fromtimestamp(wall_ms / 1000, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    conditions: list[dict[str, str]] = []
    for each in wanted:
        before = known.get(each.kind)
        if before == each:
            continue
        fields = {"type": each.kind.value, "status": each.status, "reason": each.reason, "message": each.message}
        fields["lastHeartbeatTime"] = at
        if before is None or before.status != each.status:
            fields["lastTransitionTime"] = at
        conditions.append(fields)
    return {"status": {"conditions": conditions}} if conditions else None


_KINDS = {kind.value: kind for kind in ConditionType}


def _ill(view: NodeView) -> list[ChipView]:
    return [chip for chip in view.chips if not chip.healthy]


def _plane(kind: ConditionType, chips: Sequence[ChipView], bad: Mapping[str, Level]) -> Condition:
    """bad: level of the chips to be avoided, by name."""
    silent = [str(chip.chip) for chip in chips if chip.silent_since_ms is not None]
    told = [f"{name} has {level.text}" for name, level in bad.items()]
    told += [f"{name} does not answer" for name in silent]
    if bad:
        return _condition(kind, "False", "SomeUnhealthy", "; ".join(told))
    if silent:
        return _condition(kind, "Unknown", "SomeSilent", "; ".join(told))
    if not chips:
        return _condition(kind, "Unknown", "NoChips", "the driver lists no chip")
    return _condition(kind, "True", "AllHealthy", f"all chips are healthy ({len(chips)})")


def _driver(driver: DriverState) -> Condition:
    if driver.works is None and driver.sentence:
        return _condition(ConditionType.DRIVER, "Unknown", "DriverReleased", driver.sentence)
    if driver.works is None:
        return _condition(ConditionType.DRIVER, "Unknown", "NotTold", "the driver was not asked yet")
    if driver.works:
        return _condition(ConditionType.DRIVER, "True", "DriverReady", driver.sentence)
    return _condition(ConditionType.DRIVER, "False", "DriverLost", driver.sentence)


def _condition(kind: ConditionType, status: str, reason: str, message: str) -> Condition:
    return Condition(kind, status, reason, cut(message, MAX_MESSAGE_BYTES))
