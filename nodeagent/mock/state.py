"""A mock node as plain JSON values, for the state report and for tests."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodeagent.mock.node import MockNode


def describe(node: "MockNode") -> dict[str, object]:
    """Product, chips with all that can be seen of them, board, storage clients, rules in force, storms under way.

    Codes are hexadecimal texts of eight digits. Reading the state uses up no rule.
    """
    now_ms = node.clock.now().mono_ms
    chips = []
    for chip in node.chips.values():
        health_rc, health = chip.health_answer(now_ms)
        _, codes = chip.codes_answer(now_ms)
        chips.append(
            {
                "chip": chip.logic_id,
                "card": chip.card_id,
                "device": chip.device_id,
                "phy_id": chip.phy_id,
                "name": chip.chip_name,
                "dropped": chip.dropped,
                "health_rc": health_rc,
                "health": health,
                "codes": [f"{code:08X}" for code in codes],
                "gateway": chip.gateway,
                "link": "up" if chip.link_up else "down",
                "ip": str(chip.ip) if chip.ip and chip.has_roce else "",
                "boot_status": chip.boot_status(now_ms),
            }
        )
    return {
        "profile": node.spec.profile,
        "title": node.spec.product.title,
        "chips": chips,
        "switch_faults": [event.report() for event in node.switches.active],
        "board": node.board.report(),
        "storage": {client.value: file and file.report() for client, file in node.storage.files.items()},
        "rules": node.rules.describe(),
        "storms": [{"total": storm.total, "sent": storm.sent} for storm in node.storms],
        "events": node.event_count,
    }
