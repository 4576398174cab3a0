"""Labels and annotations of the node object that MindCluster reads, from the facts of the driver. Pure.

Names, values and conditions are those of device-info 10 and grace-tolerance 16; the serial number is that of node-
faults 10, by which ClusterD finds the node of a public fault. Volcano uses nothing of a node without `baseDeviceInfos`
and `accelerator` (device-info 11.2); ClusterD makes super pods of the annotations (pingmesh 3). Two things of upstream
are not there: `levelList` of the 950, which no sheet defines, and the removal of annotations that old versions of the
device plugin left behind.
"""

import ipaddress
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from nodeagent.core.errors import SettingsError
from nodeagent.core.model import Family, Product, device_name
from nodeagent.core.node_facts import ChipFacts, NodeFacts
from nodeagent.render.device_info import POD_TYPES_WITH_RACK
from nodeagent.render.gojson import go_json, go_map

CHIP_NAME = "node.kubernetes.io/npu.chip.name"
SERVER_TYPE_LABEL = "servertype"
DRIVER_VERSION = "huawei.com/driver.version"
CHIP_MEMORY = "mind-cluster/npu-chip-memory"
ACCELERATOR = "accelerator"
ACCELERATOR_TYPE = "accelerator-type"
INFER_CARD_TYPE = "infer-card-type"
TOPO_SUPER_POD = "huawei.com/topotree.superpodid"
TOPO_RACK = "huawei.com/topotree.rackid"
TOPO_SERVER = "huawei.com/topotree.serverid"
LABELS = (
    CHIP_NAME,
    SERVER_TYPE_LABEL,
    DRIVER_VERSION,
    CHIP_MEMORY,
    ACCELERATOR,
    ACCELERATOR_TYPE,
    INFER_CARD_TYPE,
    TOPO_SUPER_POD,
    TOPO_RACK,
    TOPO_SERVER,
)
"""Every label that is ever written."""

BASE_DEVICE_INFOS = "baseDeviceInfos"
SUPER_POD_ID = "superPodID"
SERVER_INDEX = "serverIndex"
SERVER_TYPE = "serverType"
RACK_ID = "rackID"
CARD_TYPE = "cardType"
SERIAL_NUMBER = "product-serial-number"
ANNOTATIONS = (BASE_DEVICE_INFOS, SUPER_POD_ID, SERVER_INDEX, SERVER_TYPE, RACK_ID, CARD_TYPE, SERIAL_NUMBER)
"""Every annotation that is ever written."""

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")
_WITH_MEMORY = frozenset({Family.A910, Family.A2, Family.A3, Family.A5})
_WITH_ADDRESS = frozenset({Family.A910, Family.A2, Family.A3})
_SUPER_POD_FAMILIES = frozenset({Family.A3, Family.A5})
_INFER_A2_BOARDS = frozenset({0x28, 0x29})
_ATLAS_350_BOARDS = frozenset({0x1A, 0x1B, 0x1C})
_CARD_TYPES = {0x68: "300I-Atlas350", 0x6C: "300I-Atlas350-4p"}
_MAX_U32 = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """What the node object should carry.

    only_if_absent: labels that somebody may have set to another value, which then stays (device-info 10).
    left_out: labels whose value the API server would refuse, so that they are not written.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    only_if_absent: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()


def node_marks(facts: NodeFacts, live_annotations: Mapping[str, str] | None = None) -> NodeMarks:
    """Labels and annotations of a node.

    live_annotations: those that the node has now. An address or a super-pod device id that the driver has not told
    since we started is taken from there: not knowing it is no reason to unpublish it.
    """
    labels = _labels(facts)
    # Upstream does not anchor this test; it lets everything pass (grace-tolerance W-43).
    left_out = tuple(name for name, value in labels.items() if _LABEL_VALUE.fullmatch(value) is None)
    return NodeMarks(
        {name: value for name, value in labels.items() if name not in left_out},
        _annotations(facts, (live_annotations or {}).get(BASE_DEVICE_INFOS, "")),
        frozenset() if facts.product.family is Family.A5 else frozenset({SERVER_TYPE_LABEL}),
        left_out,
    )


def with_serial_number(marks: NodeMarks | None, serial_number: str) -> NodeMarks:
    """The marks, and the serial number of the product (node-faults 10). Empty = not known, which changes nothing.

    marks: None = the driver has not told of the node yet, which is no reason to hold the number back.
    """
    marks = marks or NodeMarks({}, {})
    if not serial_number:
        return marks
    return replace(marks, annotations={**marks.annotations, SERIAL_NUMBER: serial_number})


def patch_of(
    marks: NodeMarks,
    live_labels: Mapping[str, str],
    live_annotations: Mapping[str, str],
    skip: Collection[str] = (),
) -> dict[str, object] | None:
    """JSON merge patch that brings the live node to its marks; None when it has them.

    Only what differs is in it, nothing is ever deleted. skip: names that the site does not want written.
    """
    absent_only = marks.only_if_absent & live_labels.keys()
    metadata = {
        "labels": _differing(marks.labels, live_labels, {*skip, *absent_only}),
        "annotations": _differing(marks.annotations, live_annotations, skip),
    }
    metadata = {part: values for part, values in metadata.items() if values}
    return {"metadata": metadata} if metadata else None


def parse_skip(text: str) -> frozenset[str]:
    """Names of the setting `node_object.skip`, e.g. `servertype, accelerator-type`; empty = none.

    Raises SettingsError for a name that is never written, because that is a typing mistake.
    """
    names = frozenset(word.strip() for word in text.split(",") if word.strip())
    if unknown := sorted(names - {*LABELS, *ANNOTATIONS}):
        raise SettingsError(
            f"node_object.skip names {unknown[0]!r}, which nodeagent never writes",
            f"known names: {', '.join([*LABELS, *ANNOTATIONS])}",
        )
    return names


def _differing(wanted: Mapping[str, str], live: Mapping[str, str], without: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in wanted.items() if name not in without and live.get(name) != value}


def _labels(facts: NodeFacts) -> dict[str, str]:
    """All labels that apply, valid or not. What is not known is not there."""
    product, family = facts.product, facts.product.family
    labels = {CHIP_NAME: product.chip_name, DRIVER_VERSION: product.driver_version}
    if facts.aicore_count is not None:
        kind = family.prefix if family is Family.A5 else family.value
        labels[SERVER_TYPE_LABEL] = f"{kind}-{facts.aicore_count}"
    if facts.memory_gib is not None and family in _WITH_MEMORY:
        labels[CHIP_MEMORY] = f"{facts.memory_gib}G"
    if family is not Family.A310B:
        labels[ACCELERATOR] = f"huawei-{family.prefix}"
    if family is Family.A2 and product.board_id in _INFER_A2_BOARDS:
        labels[ACCELERATOR_TYPE] = "card-910b-infer"
    if facts.all_duo:
        labels[INFER_CARD_TYPE] = "card-300i-duo"
    labels.update({name: str(number) for name, number in _places(product).items() if number >= 0})
    return {name: value for name, value in labels.items() if value}


def _places(product: Product) -> dict[str, int]:
    """Where the node stands in its super pod; negative = not known."""
    if product.family not in _SUPER_POD_FAMILIES:
        return {}
    pod = product.super_pod
    places = {TOPO_SUPER_POD: pod.super_pod_id}
    if product.family is Family.A5:
        places[TOPO_SERVER] = pod.server_index
        if pod.pod_type in POD_TYPES_WITH_RACK:
            places[TOPO_RACK] = pod.rack_id
    return places


def _annotations(facts: NodeFacts, live_infos: str) -> dict[str, str]:
    product, pod = facts.product, facts.product.super_pod
    annotations = {
        BASE_DEVICE_INFOS: _base_device_infos(facts, live_infos),
        SUPER_POD_ID: str(pod.super_pod_id),
        SERVER_INDEX: str(pod.server_index),
        SERVER_TYPE: {Family.A3: "A3", Family.A5: "npu"}.get(product.family, ""),
    }
    if product.family is Family.A5:
        if pod.pod_type in POD_TYPES_WITH_RACK:
            annotations[RACK_ID] = str(pod.rack_id)
        if product.board_id in _ATLAS_350_BOARDS and product.mainboard_id in _CARD_TYPES:
            annotations[CARD_TYPE] = _CARD_TYPES[product.mainboard_id]
    return annotations


def _base_device_infos(facts: NodeFacts, live_infos: str) -> str:
    """Device name to address and SDID. A chip that is cut is there by its vNPUs, like in the lists of device-info."""
    before = _parsed(live_infos)
    infos = {}
    for chip in facts.chips:
        for name in chip.vnpus or (device_name(facts.product.family, chip.chip.physical_id),):
            infos[name] = _device_info(facts.product.family, chip, before.get(name, {}))
    return go_json(go_map(infos))


def _device_info(family: Family, chip: ChipFacts, before: Mapping[str, object]) -> dict[str, object]:
    """One entry. Readers take a missing member for Go's zero value, so that is what unknown is written as."""
    # Upstream's source has the logic id here; the sheets name the member and its place only.
    info: dict[str, object] = {"DeviceID": chip.chip.logic_id} if family is Family.A5 else {}
    address, sdid = chip.address, chip.super_device_id
    if address is None and family in _WITH_ADDRESS:
        address = _valid_address(before.get("IP"))
    if sdid is None and family in _SUPER_POD_FAMILIES:
        old_sdid = before.get("SuperDeviceID")
        sdid = old_sdid if type(old_sdid) is int and 0 <= old_sdid <= _MAX_U32 else None
    return info | {"IP": address or "", "SuperDeviceID": sdid or 0}


def _valid_address(text: object) -> str:
    try:
        return str(ipaddress.ip_address(text)) if isinstance(text, str) else ""
    except ValueError:
        return ""


def _parsed(live_infos: str) -> dict[str, Mapping[str, object]]:
    """Entries of the present annotation; those that make no sense are as good as absent."""
    try:
        infos = json.loads(live_infos) if live_infos else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(infos, dict):
        return {}
    return {name: info for name, info in infos.items() if isinstance(info, dict)}
