"""What is left out when an object would be too large: the mildest and oldest faults, of chips and switches alike
(device-info 15.12)."""

from collections.abc import Sequence
from dataclasses import replace

from nodeagent.core.model import SwitchFaultView
from nodeagent.render.faults import CodeEntry, Element
from nodeagent.render.gojson import go_json
from nodeagent.render.switch_info import size_bytes_of


def shorten(
    elements: Sequence[Element], switch_faults: Sequence[SwitchFaultView], excess_bytes: int
) -> tuple[list[Element], list[SwitchFaultView], int]:
    """Leave out codes until about `excess_bytes` are saved; at least one.

    The mildest go first, of equal level the oldest. An element without codes goes too, unless its device is isolated:
    then it stays, as the unhealthy list must not name a device without an element (device-info 15.5). Returns what
    remains and the number of codes left out, 0 when none is left.
    """
    ranked = [
        (entry.level, entry.time_ms, 0, place, text_place)
        for place, element in enumerate(elements)
        for text_place, entry in enumerate(element.codes)
    ]
    ranked += [(fault.level.rank, fault.record.raised_ms, 1, place, 0) for place, fault in enumerate(switch_faults)]
    dropped: set[tuple[int, int, int]] = set()
    saved = 0
    for _, _, kind, place, text_place in sorted(ranked):
        if saved >= excess_bytes and dropped:
            break
        dropped.add((kind, place, text_place))
        saved += size_bytes_of(switch_faults[place]) if kind else _size(elements[place].codes[text_place])
    remaining = []
    for place, element in enumerate(elements):
        kept = tuple(entry for number, entry in enumerate(element.codes) if (0, place, number) not in dropped)
        if kept or element.isolated:
            remaining.append(replace(element, codes=kept))
    switches = [fault for place, fault in enumerate(switch_faults) if (1, place, 0) not in dropped]
    return remaining, switches, len(dropped)


def _size(entry: CodeEntry) -> int:
    """Bytes of one code in `DeviceInfoCfg`: its text twice, its map member, six quotes that are escaped."""
    member = go_json({entry.text: {"fault_time": entry.time_ms, "fault_level": entry.level.text}})
    return len(entry.text) + len(member) + member.count('"')
