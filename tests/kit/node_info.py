"""Pretended neighbours of the node-info object: a place to keep it, and ClusterD, which hears of it."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.core.instant import Instant
from nodeagent.core.telemetry import Event, EventReason, NullTelemetry
from nodeagent.publish.targets import ObjectChanged, identity
from nodeagent.render.node_info_contract import judge_node_info

Object = dict[str, Any]


@dataclass
class Clusterd:
    """What ClusterD believes of one node (node-faults 9.1): it drops an event whose old or new object it refuses.

    status: None = it knows no node-info of the node. heard: business content of each event that it took, None = gone.
    """

    status: str | None = None
    heard: list[str | None] = field(default_factory=list)

    def hear(self, old: Object | None, new: Object | None) -> None:
        """An event of its informer."""
        if any(each is not None and judge_node_info(each) for each in (old, new)):
            return
        status = None if new is None else str(json.loads(new["data"]["NodeInfo"])["NodeInfo"]["NodeStatus"])
        if status != self.status:
            self.status = status
            self.heard.append(status)


class MemoryTarget:
    """Keeps one object with a version, as a server does; raises the planned errors first.

    calls: what was asked of it, in order, e.g. `read`, `write`, `delete`. present: change it behind everybody's back
    with `edit`.
    """

    def __init__(self) -> None:
        self.clusterd = Clusterd()
        self.present: Object | None = None
        self.calls: list[str] = []
        self.errors: list[Exception] = []
        self.times: list[str] = []
        self._version = self._known = 0

    def edit(self, obj: Object | None) -> None:
        """Somebody else changes the object."""
        old, self.present = self.present, obj
        self._version += 1
        self.clusterd.hear(old, obj)

    def read(self, namespace: str, name: str) -> Object | None:
        self._begin("read")
        self._known = self._version
        return copy.deepcopy(self.present)

    def write(self, obj: Object) -> None:
        self._begin("write")
        identity(obj)
        self._unless_changed()
        self._set(copy.deepcopy(obj))
        self.times.append(obj["data"]["updateTime"])

    def delete(self, namespace: str, name: str) -> None:
        self._begin("delete")
        self._unless_changed()
        self._set(None)

    def describe(self) -> str:
        return "memory"

    def edited(self, namespace: str, name: str) -> Object | None:
        raise AssertionError("nothing follows this object")

    def edit_period_s(self) -> float | None:
        return None

    def _begin(self, call: str) -> None:
        self.calls.append(call)
        if self.errors:
            error = self.errors.pop(0)
            raise ReadBackError("away") if call == "read" and isinstance(error, PublishError) else error

    def _unless_changed(self) -> None:
        if self._known != self._version:
            self._known = self._version
            raise ObjectChanged("it was changed by somebody else", copy.deepcopy(self.present) or {})

    def _set(self, obj: Object | None) -> None:
        old, self.present = self.present, obj
        self._version += 1
        self._known = self._version
        self.clusterd.hear(old, obj)


class Heard(NullTelemetry):
    """Remembers Events and metrics."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.counts: dict[tuple[str, ...], float] = {}
        self.gauges: dict[tuple[str, ...], float] = {}
        self.samples: list[float] = []

    @property
    def reasons(self) -> list[EventReason]:
        """Reasons of the Events so far."""
        return [event.reason for event in self.events]

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        key = (name, *labels.values())
        self.counts[key] = self.counts.get(key, 0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        self.gauges[(name, *labels.values())] = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        self.samples.append(value)


@dataclass
class Acknowledged:
    """Who hears of acknowledgements."""

    generations: list[int] = field(default_factory=list)

    def __call__(self, generation: int, at: Instant) -> None:
        self.generations.append(generation)


def written_by(obj: Mapping[str, Any], manager: str, time: str, key: str = "NodeInfo") -> Object:
    """The object as a server shows it after a write of its main key."""
    entry = {"manager": manager, "operation": "Update", "time": time, "fieldsV1": {"f:data": {f"f:{key}": {}}}}
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [entry]}}
