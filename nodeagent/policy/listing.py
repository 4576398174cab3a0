"""All chips of the node as JSON: what `nodeagent scan`, the socket and `/state` show. Pure."""

from dataclasses import dataclass
from typing import Any

from nodeagent.core.codes import CARD_DROPPED
from nodeagent.core.model import ChipView, FaultView, device_name
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import ChipState, NodeState
from nodeagent.policy.switch_listing import switches_json
from nodeagent.policy.table import FaultTable


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """What is known of the driver library beside the chips.

    path: of the library in use, empty while none is open. problems: parts of the node that could not be identified,
    or why no library is open; one sentence each. no_switches: why no LingQu library serves the node; empty where one
    does or that is told elsewhere.
    """

    path: str = ""
    problems: tuple[str, ...] = ()
    no_switches: str = ""


def node_json(state: NodeState, config: Configuration, library: LibraryFacts, source: str) -> dict[str, Any]:
    """The node for machines. source: `daemon`, which knows since when things are so, or `library`, one look at it.

    product is null while the driver has not listed the chips. A chip that gives no answer has `answered` false; what
    is shown of it besides is what was known before. Times are Unix milliseconds. switches is null on products without.
    """
    inventory = state.inventory
    product = None if inventory is None else inventory.product
    listed = [] if inventory is None else [state.views[c.logic_id] for c in inventory.chips]
    return {
        "source": source,
        "product": None
        if product is None
        else {
            "family": product.family.value,
            "chip_name": product.chip_name,
            "driver_version": product.driver_version,
            "generation": product.generation,
            "library": library.path,
        },
        "chips": [_chip(view, state, config.table, source) for view in (state.view.chips if state.view else listed)],
        "switches": switches_json(state, config.switches, library.no_switches),
        "problems": list(library.problems),
    }


def was_asked(chip: ChipState) -> bool:
    """The chip has answered or missed its deadline since the start; a dropped card that lists nothing has answered."""
    drop = chip.faults.get(CARD_DROPPED)
    return chip.answered is not None or chip.silent_since is not None or (drop is not None and drop.carried is None)


def _chip(view: ChipView, state: NodeState, table: FaultTable, source: str) -> dict[str, Any]:
    names, chip, inventory = view.chip, state.chips[view.chip.logic_id], state.inventory
    assert inventory is not None  # else there were no chips
    silent = chip.silent_since is not None
    answered = not silent and was_asked(chip)
    return {
        "name": device_name(inventory.product.family, names.physical_id),
        "logic_id": names.logic_id,
        "physical_id": names.physical_id,
        "card_id": names.card_id,
        "device_id": names.device_id,
        "answered": answered,
        "why_silent": None if answered else chip.silent_why if silent else "not asked yet",
        "silent_since_ms": view.silent_since_ms if source == "daemon" else None,
        "healthy": view.healthy,
        "network_healthy": view.network_healthy,
        "suppressed": list(view.suppressed),
        "level": max(view.chip_level, view.network_level).text,
        "faults": [_fault(fault, table, source) for fault in view.faults],
    }


def _fault(fault: FaultView, table: FaultTable, source: str) -> dict[str, Any]:
    record = table.lookup(fault.code)
    return {
        "code": fault.text,
        "name": record.name_en if record is not None else "not in the fault table",
        "level": fault.level.text,
        "plane": fault.plane.value,
        "known": fault.known,
        "since_ms": fault.since_ms if source == "daemon" else None,
    }
