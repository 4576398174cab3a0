"""The device-info ConfigMap of a node, from its view (device-info 1 to 6).

Pure: the same view and the same second give the same bytes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodeagent.core.model import ChipView, Family, NodeView, Reason, SwitchFaultView, device_name
from nodeagent.render.faults import Element, fault_elements, fault_list_text
from nodeagent.render.gojson import check_code, go_json, go_map
from nodeagent.render.shorten import shorten
from nodeagent.render.switch_info import comparable, listed_faults, switch_info_text

NAMESPACE = "kube-system"
NAME_PREFIX = "mindx-dl-deviceinfo-"
LABELS: Mapping[str, str] = {"mx-consumer-cim": "true"}
SHADOW_SUFFIX = "-shadow"
SHADOW_LABELS: Mapping[str, str] = {"app.kubernetes.io/managed-by": "nodeagent"}
"""A shadow object lacks the label that consumers select on, so nobody acts on it."""

DEVICE_KEY = "DeviceInfoCfg"
SWITCH_KEY = "SwitchInfoCfg"
MANUAL_KEY = "ManuallySeparateNPU"
REASON_KEY = "UpgradeFaultReason"
DESCRIPTION_KEY = "Description"
KEYS = frozenset({DEVICE_KEY, SWITCH_KEY, MANUAL_KEY, REASON_KEY, DESCRIPTION_KEY})
"""Every data key that there can be (device-info 2)."""

SIZE_BUDGET_BYTES = 960 * 1024
"""Where the fault list is cut: 64 KiB below what the API server takes (device-info 12, 15.12)."""

DESCRIPTION = (
    "Written by nodeagent. To release a chip, delete its name from ManuallySeparateNPU; other edits are overwritten."
)
POD_TYPES_WITH_RACK = (1, 2)
"""Super-pod types of the 950 that have racks: 1D and 2D pods (device-info 3)."""
_TIMES = re.compile(r'\\"fault_time\\":-?\d+,|"UpdateTime":-?\d+|"CheckCode":"[0-9a-f]*"')


@dataclass(frozen=True, slots=True)
class Rendered:
    """`data` of the ConfigMap and the number of codes that were left out for size (device-info 15.12)."""

    data: dict[str, str]
    left_out: int


def object_name(node_name: str, shadow: bool = False) -> str:
    """Name of the object of a node (device-info 1), or of its shadow."""
    return NAME_PREFIX + node_name + (SHADOW_SUFFIX if shadow else "")


def config_map(node_name: str, data: Mapping[str, str], shadow: bool = False) -> dict[str, object]:
    """The complete object as the API server takes it, exactly one label included (device-info 1), or its shadow."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": object_name(node_name, shadow),
            "namespace": NAMESPACE,
            "labels": dict(SHADOW_LABELS if shadow else LABELS),
        },
        "data": dict(data),
    }


def render_device_info(view: NodeView, update_time_s: int) -> dict[str, str]:
    """`data` of the ConfigMap (device-info 2). update_time_s: Unix seconds, greater than in the last write."""
    return render_bounded(view, update_time_s).data


def render_bounded(view: NodeView, update_time_s: int, budget_bytes: int = SIZE_BUDGET_BYTES) -> Rendered:
    """`data` within `budget_bytes` where leaving out codes can achieve that (device-info 15.12).

    An object that is still too large comes back whole: refusing it is the contract check's task.
    """
    elements = fault_elements(view)
    switch_faults = listed_faults(view.switch) if view.product.family.has_switch_key else []
    data = _data(view, update_time_s, elements, switch_faults, 0)
    left_out = 0
    while (excess := size_bytes(data) - budget_bytes) > 0:
        elements, switch_faults, dropped = shorten(elements, switch_faults, excess)
        if not dropped:
            break
        left_out += dropped
        data = _data(view, update_time_s, elements, switch_faults, left_out)
    return Rendered(data, left_out)


def size_bytes(data: Mapping[str, str]) -> int:
    """Size as the API server counts it against 1 MiB: bytes of all keys and values (device-info 12)."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in data.items())


def fingerprint(data: Mapping[str, str]) -> str:
    """What two contents have in common when the second need not be written (device-info 7, step 5).

    The moments of faults, `UpdateTime` and `CheckCode` do not count; the times of upgrade reasons and of switch faults
    do. Unlike upstream the super-pod ids and the levels of single switch faults count: a change of these must not wait
    for the refresh. Equal text, equal content; the text itself means nothing.
    """
    parts = dict(data)
    parts[DEVICE_KEY] = _TIMES.sub("", data.get(DEVICE_KEY, ""))
    if SWITCH_KEY in data:
        parts[SWITCH_KEY] = comparable(data[SWITCH_KEY])
    return go_json(go_map(parts))


def _data(
    view: NodeView,
    update_time_s: int,
    elements: Sequence[Element],
    switch_faults: Sequence[SwitchFaultView],
    left_out: int,
) -> dict[str, str]:
    data = {DEVICE_KEY: _device_info(view, update_time_s, elements)}
    if view.product.family.has_switch_key:
        data[SWITCH_KEY] = switch_info_text(view.switch, switch_faults, update_time_s)
    separated = [chip for chip in view.chips if chip.manually_separated]
    separated.sort(key=lambda chip: chip.chip.logic_id)
    data[MANUAL_KEY] = ",".join(_name(view, chip) for chip in separated)
    data[REASON_KEY] = go_json(
        go_map({_name(view, chip): _reasons(chip.reasons) for chip in view.chips if chip.reasons})
    )
    data[DESCRIPTION_KEY] = DESCRIPTION
    if left_out:
        data[DESCRIPTION_KEY] += (
            f" Shortened: the fault lists lack the {left_out} mildest and oldest codes, the object would be too large."
        )
    return data


def _device_info(view: NodeView, update_time_s: int, elements: Sequence[Element]) -> str:
    product = view.product
    device_list = _device_list(view, elements)
    document: dict[str, object] = {
        "DeviceInfo": {"DeviceList": device_list, "UpdateTime": update_time_s},
        "SuperPodID": product.super_pod.super_pod_id,
        "ServerIndex": product.super_pod.server_index,
        "CheckCode": check_code(device_list, update_time_s),
    }
    # Only the 1D and 2D pods of the 950 have racks, and the member comes last (device-info 3).
    if product.family is Family.A5 and product.super_pod.pod_type in POD_TYPES_WITH_RACK:
        document["RackID"] = product.super_pod.rack_id
    return go_json(document)


def _device_list(view: NodeView, elements: Sequence[Element]) -> dict[str, str]:
    family = view.product.family
    chips = view.chips
    # A chip in hot reset is not offered either: whoever takes the value as written would place a pod on it.
    free = [chip for chip in chips if chip.healthy and not (chip.used or chip.recovering or chip.vnpus)]
    lists = {
        family.resource: _names(view, free),
        # A vNPU is isolated by the name of its parent chip (device-info 4.2).
        f"{family.resource}-Unhealthy": _names(view, [chip for chip in chips if not chip.healthy]),
        # On the 310 this is not the key that upstream writes, but the one consumers read (device-info 4.1).
        f"{family.resource}-Fault": fault_list_text(elements),
    }
    if family.has_network_plane:
        unreachable = [chip for chip in chips if not chip.network_healthy]
        lists[f"{family.resource}-NetworkUnhealthy"] = _names(view, unreachable)
        lists[f"{family.resource}-Recovering"] = _names(view, [chip for chip in chips if chip.recovering])
    return go_map(lists)


def _names(view: NodeView, chips: Sequence[ChipView]) -> str:
    return ",".join(sorted({_name(view, chip) for chip in chips}))


def _name(view: NodeView, chip: ChipView) -> str:
    return device_name(view.product.family, chip.chip.physical_id)


def _reasons(reasons: Sequence[Reason]) -> list[dict[str, object]]:
    newest: dict[tuple[str, str, str], int] = {}
    for reason in reasons:
        key = (reason.code_text, reason.level.text, reason.upgrade_type.value)
        newest[key] = max(reason.upgrade_time_ms, newest.get(key, reason.upgrade_time_ms))
    return [
        {"upgrade_time": newest[key], "fault_code": key[0], "fault_level": key[1], "upgrade_type": key[2]}
        for key in sorted(newest)
    ]
