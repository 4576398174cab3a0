"""The part of `nodeagent scan` about LingQu switches, for people."""

from typing import Any

from nodeagent.cli.why_switch import time_text, why_unknown

NOTHING: dict[str, Any] = {"faults": [], "silent_since_ms": None}
"""What an answer says of switches where there are none, as far as the exit code is concerned."""
_HEAD = ("SWITCH", "PORT", "PEER", "LEVEL", "FAULT")


def lines(switches: dict[str, Any] | None) -> list[str]:
    """Lines of text; none on products without switches."""
    if switches is None:
        return []
    if not switches["known"]:
        return [f"switches: nothing is known, {why_unknown(switches)}"]
    count = len(switches["faults"])
    text = f"switches: {count} fault{'' if count == 1 else 's'}, node {switches['node_status']}"
    if switches["level"]:
        text += f" ({switches['level']})"
    if switches["planes_down"]:
        text += f", L1-L2 plane down: switch {', '.join(map(str, switches['planes_down']))}"
    if switches["silent_since_ms"] is not None:
        text += f", no answer since {time_text(switches['silent_since_ms'])}: {switches['why_silent']}"
    rows = [_HEAD] + [_row(fault) for fault in switches["faults"]]
    if len(rows) == 1:
        return [text]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD) - 1)]
    return [text] + ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]


def _row(fault: dict[str, Any]) -> tuple[str, str, str, str, str]:
    port = "-" if fault["port"] is None else str(fault["port"])
    what = f"{fault['code']} {fault['name']}, since {time_text(fault['since_ms'])}"
    return str(fault["switch_chip"]), port, fault["peer"] or "-", fault["level"], what
