"""The part of `nodeagent scan` and `nodeagent why` about storage clients, for people."""

from typing import Any

from nodeagent.cli.why_switch import time_text

_HEAD = ("CLIENT", "CODE", "STATE", "LEVEL AT CLUSTERD", "FAULT")


def lines(clients: list[dict[str, Any]], *, everything: bool = False) -> list[str]:
    """Lines of text.

    clients: of `storage_json`. everything: clients that are not watched, and faults of the others that are not there;
    without it a node that has no storage client gets no line.
    """
    told = [client for client in clients if everything or client["watched"]]
    text = [_headline(client) for client in told]
    watched = [client for client in told if client["watched"]]
    rows = [_row(client, fault) for client in watched for fault in client["faults"] if everything or _counts(fault)]
    if not rows:
        return text
    table = [_HEAD, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(_HEAD) - 1)]
    return text + ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]) for row in table]


def has_fault(clients: list[dict[str, Any]]) -> bool:
    """A fault is known, for exit codes."""
    return any(fault["present"] for client in clients for fault in client["faults"])


def is_unknown(clients: list[dict[str, Any]]) -> bool:
    """A client that is watched cannot be read now, for exit codes; a debounce that runs is no lack of knowledge."""
    return any(client["watched"] and (client["problem"] or client["last_read_ms"] is None) for client in clients)


def _counts(fault: dict[str, Any]) -> bool:
    return bool(fault["present"] or (fault["pending"] and fault["pending"]["becomes"]))


def _headline(client: dict[str, Any]) -> str:
    name = f"storage client {client['name']}"
    if not client["watched"]:
        return f"{name}: not watched, {client['why']}"
    if client["gone_since_ms"] is not None:
        return f"{name}: gone since {time_text(client['gone_since_ms'])}, {client['why']}"
    if client["problem"]:
        return f"{name}: no good reading since {time_text(client['problem_since_ms'])}: {client['problem']}"
    if client["last_read_ms"] is None:
        return f"{name}: {client['why']}"
    bad = [f"{each['number']} ({', '.join(f['about'] for f in each['faults'])})" for each in _bad(client)]
    count = len(client["instances"])
    text = f"{name}: {count} instance{'' if count == 1 else 's'}"
    return f"{text}, not well: {', '.join(bad)}" if bad else text


def _bad(client: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in client["instances"] if each["faults"]]


def _row(client: dict[str, Any], fault: dict[str, Any]) -> tuple[str, str, str, str, str]:
    state = {None: "not known", False: "healthy", True: "FAULT"}[fault["present"]]
    what = fault["about"]
    if fault["remembered"]:
        what += ", known from before the restart"
    elif fault["present"]:
        what += f", since {time_text(fault['since_ms'])}"
    if fault["pending"]:
        word = "a fault" if fault["pending"]["becomes"] else "healthy"
        what += f"; counts as {word} in {fault['pending']['in_s']:.0f} s if nothing changes"
    return client["name"], fault["code"], state, fault["level_at_clusterd"], what
