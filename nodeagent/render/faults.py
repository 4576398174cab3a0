"""The fault list of one node: which elements exist, their order, and level and time of each code.

One element is a device in one plane (device-info 4.3). The level of a code is its own or that of its own
upgrade reasons, never that of a neighbour (chip-faults 12.4, R4).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nodeagent.core.levels import Level, Plane, plane_of
from nodeagent.core.model import ChipView, FaultView, NodeView, Reason, device_name
from nodeagent.render.gojson import go_json, go_map

CHIP_FAULT = "CardUnhealthy"
NETWORK_FAULT = "CardNetworkUnhealthy"


@dataclass(frozen=True, slots=True)
class CodeEntry:
    """One code of an element: upper-case text, level, and time in Unix ms."""

    text: str
    level: Level
    time_ms: int


@dataclass(frozen=True, slots=True)
class Element:
    """One member of the `-Fault` array. isolated: the device is in the unhealthy list of this plane."""

    fault_type: str
    npu_name: str
    level: Level
    codes: tuple[CodeEntry, ...]
    isolated: bool


def fault_elements(view: NodeView) -> list[Element]:
    """All elements of a node in published order (device-info 4.3).

    Devices in the driver's order, those of one device type together and the types sorted (device-info 15.9);
    per device the network element first.
    """
    devices: list[tuple[str, str, ChipView]] = []
    for chip in view.chips:
        for name in chip.vnpus:
            devices.append(("-".join(name.split("-")[:2]), name, chip))
        if not chip.vnpus:
            prefix = view.product.family.prefix
            devices.append((prefix, device_name(view.product.family, chip.chip.physical_id), chip))
    devices.sort(key=lambda device: device[0])
    return [element for _, name, chip in devices for element in _elements_of(name, chip)]


def _elements_of(name: str, chip: ChipView) -> Iterator[Element]:
    network_faults = [fault for fault in chip.faults if fault.plane is Plane.NETWORK]
    chip_faults = [fault for fault in chip.faults if fault.plane is not Plane.NETWORK]
    network_reasons = [reason for reason in chip.reasons if _is_network(reason)]
    chip_reasons = [reason for reason in chip.reasons if not _is_network(reason)]
    # A reason without a current code also makes an element (chip-faults 12.4, R6).
    if network_faults or network_reasons or not chip.network_healthy:
        codes = _codes(network_faults, network_reasons)
        yield Element(NETWORK_FAULT, name, chip.network_level, codes, not chip.network_healthy)
    if chip_faults or chip_reasons or not chip.healthy:
        yield Element(CHIP_FAULT, name, chip.chip_level, _codes(chip_faults, chip_reasons), not chip.healthy)


def _is_network(reason: Reason) -> bool:
    code = reason.code
    return code is not None and plane_of(code) is Plane.NETWORK


def _codes(faults: Sequence[FaultView], reasons: Sequence[Reason]) -> tuple[CodeEntry, ...]:
    decisive: dict[int, Reason] = {}
    for reason in reasons:
        code = reason.code
        if code is None:
            continue
        known = decisive.get(code)
        # The most serious reason decides, with its time (chip-faults 12.4, R5); of equals the latest.
        if known is None or (reason.level, reason.upgrade_time_ms) > (known.level, known.upgrade_time_ms):
            decisive[code] = reason
    active: dict[int, CodeEntry] = {}
    for fault in faults:
        if fault.code not in active:
            active[fault.code] = _entry(fault, decisive.get(fault.code))
    upgrade_only = [
        CodeEntry(reason.code_text.upper(), reason.level, reason.upgrade_time_ms)
        for code, reason in decisive.items()
        if code not in active
    ]
    return (*active.values(), *sorted(upgrade_only, key=lambda entry: entry.text))


def _entry(fault: FaultView, reason: Reason | None) -> CodeEntry:
    # A reason as serious as the code itself replaces it: the entry then tells when it was upgraded
    # (device-info 4.3). A milder one changes nothing (chip-faults 12.4, R4).
    if reason is not None and reason.level >= fault.level:
        return CodeEntry(fault.text.upper(), reason.level, reason.upgrade_time_ms)
    return CodeEntry(fault.text.upper(), fault.level, fault.since_ms)


def fault_list_text(elements: Sequence[Element]) -> str:
    """The `-Fault` value: a JSON array in one string, to be stored as an ordinary text (device-info 4.3)."""
    return go_json([_members(element) for element in elements])


def _members(element: Element) -> dict[str, object]:
    level = element.level.text
    return {
        "fault_type": element.fault_type,
        "npu_name": element.npu_name,
        "large_model_fault_level": level,
        "fault_level": level,
        "fault_handling": level,
        "fault_code": ",".join(entry.text for entry in element.codes),
        "fault_time_and_level_map": go_map(
            {entry.text: {"fault_time": entry.time_ms, "fault_level": entry.level.text} for entry in element.codes}
        ),
    }
