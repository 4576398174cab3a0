"""Node descriptions and timelines: one YAML format, checked to the line.

`node:` holds the fields of `NodeSpec` (all but the profile optional), `timeline:` a list of the actions of
`nodeagent.mock.actions`, each with `at_s`, in order of time. Every error is a ScenarioError that names file, line
and key. Codes must be quoted: YAML would read an unquoted 80990000 or 8E180055 as a number.
"""

from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import yaml

from nodeagent.core.errors import ScenarioError
from nodeagent.core.storage import StorageClient
from nodeagent.core.switch import WHOLE_CHIP_PORT
from nodeagent.mock.actions import Bound, bind
from nodeagent.mock.board import StartAlarm
from nodeagent.mock.events import MAJOR, MINOR, Module
from nodeagent.mock.kinds import (
    ALARM_SEVERITY,
    BYTE,
    CARDS,
    CHIP,
    CODE,
    COUNT,
    DPC_INSTANCES,
    DTFS_INSTANCES,
    FLAG,
    FUNCTION,
    FUNCTIONS,
    GATEWAY,
    ID,
    IP,
    LABEL,
    PAGE,
    PEER,
    PRESENT,
    PROFILE,
    RC,
    SECONDS,
    SEVERITY,
    SUBJECT,
    SWITCH_CODE,
    TEXT,
    TIME_MS,
    TIMES,
    U16,
    U32,
    Kind,
    ValueProblem,
)
from nodeagent.mock.line_reader import LineReader
from nodeagent.mock.products import PRODUCTS
from nodeagent.mock.spec import ChipSpec, NodeSpec, StartFailure, StartFault
from nodeagent.mock.storage import Instances
from nodeagent.mock.switches import Place, StartSwitchFault

_NODE_KINDS: dict[str, Kind] = {
    "profile": PROFILE,
    "chips": TIMES,
    "chips_per_card": TIMES,
    "card_ids": CARDS,
    "dropped_cards": CARDS,
    "chip_name": TEXT,
    "board_id": ID,
    "mainboard_id": ID,
    "product_type": TEXT,
    "aicore_count": COUNT,
    "hbm_mb": COUNT,
    "dcmi_version": TEXT,
    "work_mode": BYTE,
    "recovery_lag_ms": COUNT,
    "init_delay_s": SECONDS,
    "subscribe_failures": COUNT,
    "subscribe_slots": COUNT,
    "early_events": FLAG,
    "queue_events": TIMES,
    "privileged": FLAG,
    "unsupported": FUNCTIONS,
    "supported": FUNCTIONS,
    "strict_pingmesh": FLAG,
    "raw_pingmesh": FLAG,
    "boot_step_ms": COUNT,
    "super_pod_id": ID,
    "server_id": COUNT,
    "super_pod_size": COUNT,
    "super_pod_type": COUNT,
    "chassis_id": ID,
    "log_calls": FLAG,
    "switch_subscribe_failures": COUNT,
    "bmc": PRESENT,
    "alarm_page": PAGE,
    "serial_number": LABEL,
    "manufacturer": LABEL,
}
_CHIP_KINDS: dict[str, Kind] = {
    "chip": CHIP,
    "phy_id": CHIP,
    "chip_name": TEXT,
    "board_id": ID,
    "mainboard_id": ID,
    "ip": IP,
    "product_type": TEXT,
    "serial_number": TEXT,
    "affinity": TEXT,
    "gateway": GATEWAY,
    "temperature_c": COUNT,
    "power_w": SECONDS,
    "utilization_percent": BYTE,
    "hbm_used_mb": COUNT,
}
_FAULT_KINDS: dict[str, Kind] = {
    "chip": CHIP,
    "code": CODE,
    "severity": SEVERITY,
    "node_type": BYTE,
    "node_id": BYTE,
    "sub_node_type": BYTE,
    "sub_node_id": BYTE,
}
_SWITCH_FAULT_KINDS: dict[str, Kind] = {
    "chip": U16,
    "port": U16,
    "code": SWITCH_CODE,
    "peer": PEER,
    "peer_id": U16,
    "severity": SEVERITY,
    "time_ms": TIME_MS,
}
_ALARM_KINDS: dict[str, Kind] = {
    "code": CODE,
    "device_id": BYTE,
    "severity": ALARM_SEVERITY,
    "subject": SUBJECT,
    "raised_s": U32,
}
_STORAGE_KINDS: dict[str, Kind] = {"dpc": DPC_INSTANCES, "dtfs": DTFS_INSTANCES}
_FAILURE_KINDS: dict[str, Kind] = {"function": FUNCTION, "chip": CHIP, "code": RC, "times": TIMES}
_NESTED = ("per_chip", "faults", "failing", "switch_faults", "alarms")
_PROCESS_KINDS: dict[str, Kind] = {"pid": COUNT, "bytes": COUNT}


@dataclass(frozen=True, slots=True)
class TimedAction:
    """An action of a timeline: seconds after the start of play, file line, and what to do."""

    at_s: float
    line: int
    bound: Bound


@dataclass(frozen=True, slots=True)
class Scenario:
    """A read file. node: None when the file describes none. timeline: in order of time."""

    node: NodeSpec | None
    timeline: tuple[TimedAction, ...]


def load(path: str | Path, node: NodeSpec | None = None) -> Scenario:
    """Read a scenario file; see `parse`. ScenarioError also when it cannot be read."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise ScenarioError(f"{path}: cannot be read: {reason}") from None
    return parse(text, str(path), node)


def load_node(name_or_path: str) -> Scenario:
    """A scenario by file, by the name of an installed description (`nodeagent/mock/nodes`), or by profile."""
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return load(path)
    installed = resources.files("nodeagent.mock") / "nodes" / f"{name_or_path}.yaml"
    if installed.is_file():
        return parse(installed.read_text(encoding="utf-8"), f"{name_or_path}.yaml")
    if name_or_path in PRODUCTS:
        return Scenario(NodeSpec(profile=name_or_path), ())
    raise ScenarioError(
        f"there is no node {name_or_path!r}",
        f"name a YAML file, one of {', '.join(installed_nodes())}, or a profile: {', '.join(PRODUCTS)}",
    )


def installed_nodes() -> list[str]:
    """Names of the node descriptions that come with the package."""
    folder = resources.files("nodeagent.mock") / "nodes"
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def parse(text: str, file: str, node: NodeSpec | None = None) -> Scenario:
    """Check a scenario text.

    file: its name in errors. node: the node a timeline without `node:` will be played on, to check its chips.
    Raises ScenarioError.
    """
    return _Reader(file).scenario(text, node)


class _Reader(LineReader):
    """Reads a scenario from the YAML nodes of one file."""

    def scenario(self, text: str, outer: NodeSpec | None) -> Scenario:
        root = self.root(text)
        top = self.mapping(root, "the file")
        for key, (key_node, _) in top.items():
            if key not in ("node", "timeline"):
                self.complain(key_node, key, "unknown key; a scenario has node and timeline")
        spec = self._node(top["node"][1]) if "node" in top else None
        timeline: tuple[TimedAction, ...] = ()
        if "timeline" in top:
            timeline = self._timeline(top["timeline"][1], spec or outer)
        return Scenario(spec, timeline)

    def _node(self, root: yaml.Node) -> NodeSpec:
        parts = self.mapping(root, "node")
        nested = {name: self.items(parts.pop(name)[1], name) for name in _NESTED if name in parts}
        storage = self._storage(parts.pop("storage")[1]) if "storage" in parts else ()
        values = self.values(parts, _NODE_KINDS, "a node")
        chips = tuple(self._chip(item) for item in nested.get("per_chip", []))
        faults = tuple(self._fault(item) for item in nested.get("faults", []))
        failing = tuple(self._failure(item) for item in nested.get("failing", []))
        switch_faults = tuple(self._switch_fault(item) for item in nested.get("switch_faults", []))
        alarms = tuple(self._alarm(item) for item in nested.get("alarms", []))
        try:
            return NodeSpec(
                **values,
                per_chip=chips,
                faults=faults,
                failing=failing,
                switch_faults=switch_faults,
                alarms=alarms,
                storage=storage,
            )
        except ValueError as problem:
            self.complain(root, "node", str(problem))

    def _chip(self, root: yaml.Node) -> ChipSpec:
        parts = self.mapping(root, "per_chip")
        processes: list[tuple[int, int]] = []
        for item in self.items(parts.pop("processes")[1], "processes") if "processes" in parts else []:
            values = self.values(self.mapping(item, "processes"), _PROCESS_KINDS, "a process", ("pid", "bytes"))
            processes.append((values["pid"], values["bytes"]))
        values = self.values(parts, _CHIP_KINDS, "per_chip", ("chip",), root)
        return replace(ChipSpec(**values), processes=tuple(processes))

    def _fault(self, root: yaml.Node) -> StartFault:
        values = self.values(self.mapping(root, "faults"), _FAULT_KINDS, "a fault", ("chip", "code"), root)
        module = Module(
            values.get("node_type", Module().node_type),
            values.get("node_id", 0),
            values.get("sub_node_type", 0),
            values.get("sub_node_id", 0),
        )
        return StartFault(values["chip"], values["code"], values.get("severity", MAJOR), module)

    def _switch_fault(self, root: yaml.Node) -> StartSwitchFault:
        parts = self.mapping(root, "switch_faults")
        values = self.values(parts, _SWITCH_FAULT_KINDS, "a switch fault", ("chip", "code"), root)
        place = Place(values["chip"], values.get("port", WHOLE_CHIP_PORT), values.get("peer"), values.get("peer_id"))
        return StartSwitchFault(values["code"], place, values.get("severity", MINOR), values.get("time_ms"))

    def _failure(self, root: yaml.Node) -> StartFailure:
        values = self.values(self.mapping(root, "failing"), _FAILURE_KINDS, "a failure", ("function", "code"), root)
        return StartFailure(values["function"], values["code"], values.get("chip"), values.get("times"))

    def _alarm(self, root: yaml.Node) -> StartAlarm:
        return StartAlarm(**self.values(self.mapping(root, "alarms"), _ALARM_KINDS, "an alarm", ("code",), root))

    def _storage(self, root: yaml.Node) -> tuple[tuple[StorageClient, Instances], ...]:
        values = self.values(self.mapping(root, "storage"), _STORAGE_KINDS, "storage")
        return tuple((StorageClient(name), instances) for name, instances in values.items())

    def _timeline(self, root: yaml.Node, spec: NodeSpec | None) -> tuple[TimedAction, ...]:
        timeline: list[TimedAction] = []
        for item in self.items(root, "timeline"):
            entry = self.mapping(item, "timeline")
            for required in ("at_s", "do"):
                if required not in entry:
                    self.complain(item, required, "every entry of a timeline needs it")
            at_s = self.value(entry["at_s"][1], "at_s", SECONDS)
            if timeline and at_s < timeline[-1].at_s:
                self.complain(entry["at_s"][1], "at_s", "entries must be in order of time")
            name = self.raw(entry["do"][1], "do")
            raw = {key: self.raw(value, key) for key, (_, value) in entry.items() if key not in ("at_s", "do")}
            try:
                bound = bind(name, raw, spec.chips if spec else None)
            except ValueProblem as problem:
                where = entry.get(problem.key, (item, item))[1]
                self.complain(where, problem.key, problem.sentence)
            for param in bound.action.params:
                if param.kind.quoted and param.name in entry:
                    self.must_be_quoted(entry[param.name][1], param.name)
            timeline.append(TimedAction(at_s, item.start_mark.line + 1, bound))
        return tuple(timeline)
