"""The state of a mock node as lines for people."""

from collections.abc import Mapping, Sequence
from typing import Any

_HEADS = ("chip", "card", "dev", "phy", "name", "health", "link", "gateway", "boot", "codes")
_HEALTHS = ("ok", "minor", "major", "critical")


def state_lines(state: Mapping[str, Any]) -> list[str]:
    """What `nodeagent mock state` prints. state: the answer of the server (`nodeagent.mock.state`)."""
    rows: list[Sequence[str]] = [_HEADS]
    for chip in state["chips"]:
        health = "dropped" if chip["dropped"] else _HEALTHS[chip["health"]]
        cells = [chip[key] for key in ("chip", "card", "device", "phy_id", "name")]
        cells += [health, chip["link"], chip["gateway"], chip["boot_status"], " ".join(chip["codes"]) or "-"]
        rows.append([str(cell) for cell in cells])
    lines = [f"{state['title']} ({state['profile']}), {state['events']} events so far", *table_lines(rows)]
    for fault in state["switch_faults"]:
        where = f"switch {fault['chip']}" + ("" if fault["port"] is None else f" port {fault['port']}")
        lines.append(f"switch fault: {fault['code']} on {where}")
    lines += [*_board_lines(state["board"]), *_storage_lines(state["storage"])]
    for rule in state["rules"]:
        where = "any chip" if rule["chip"] is None else f"chip {rule['chip']}"
        lines.append(
            f"rule: {rule['kind']} {rule['function']} on {where}, value {rule['value']}, times {rule['times']}"
        )
    lines += [f"storm: {storm['sent']} of {storm['total']} events sent" for storm in state["storms"]]
    for entry in state["subscribers"] + state["switch_rings"]:
        lines.append(
            f"subscriber: process {entry['pid']}, {entry['delivered']} delivered, {entry['dropped']} dropped, "
            f"{entry['waiting']} waiting, delay mean {entry['delay_mean_ms']:.3f} ms, "
            f"max {entry['delay_max_ms']:.3f} ms"
        )
    return lines + [f"problem: {problem}" for problem in state["problems"]]


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with their cells below each other. rows: at least one, all of one length."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _board_lines(board: Mapping[str, Any]) -> list[str]:
    if not board["present"]:
        return ["board: no BMC"]
    wrong = ", ".join(f"{name} {value}" for name, value in board["fault"].items())
    serial = f"serial number {board['serial_number']}" if board["serial_number"] else "no serial number"
    lines = [f"board: {serial}, BMC {wrong or 'well'}"]
    for alarm in board["alarms"]:
        where = f"{alarm['device_type']} {alarm['device_id']}"
        lines.append(f"alarm: {alarm['code']} on {where}, {alarm['severity']}")
    return lines


def _storage_lines(storage: Mapping[str, Any]) -> list[str]:
    lines = []
    for client, file in storage.items():
        if file is not None:
            told = "other text" if file["instances"] is None else " ".join(file["instances"]) or "no instance"
            lines.append(f"storage {client}: {told}, mode {file['mode']}")
    return lines
