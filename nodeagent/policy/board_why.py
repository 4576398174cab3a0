"""Why the board makes the node what it is, for `nodeagent why node`. Pure.

Made from the same state as the view, so that it can be checked against it: the worst level of `faults` is the level.
"""

from typing import Any

from nodeagent.core.alarms import HEALTHY, NodeLevel
from nodeagent.core.instant import Instant
from nodeagent.policy.board import BoardState
from nodeagent.policy.board_listing import BoardAccess, alarms_json, board_json
from nodeagent.policy.node_table import NodeConfiguration


def explain_board(
    state: BoardState, config: NodeConfiguration | None, access: BoardAccess, now: Instant, source: str = "daemon"
) -> dict[str, Any]:
    """The report as JSON: that of `board_json`, but with `alarms` divided, and what follows from what.

    faults: alarms that a table lists, each with `said_by` (the line that gave the level), `advice` and `decides`
    (nothing present is worse). unlisted: alarms that are left out. ends: what must happen for a better status, null
    where there is none. last_try: the last poll that has ended, null before that; age_s in seconds. published: keys of
    the node-info object and why they are so.
    """
    known = board_json(state, config, access, source)
    alarms = alarms_json(state, config.table if config is not None and known["known"] else None, source)
    worst = None if state.view is None else state.view.level
    faults = [
        alarm | _because(alarm["code"], config) | {"decides": worst is not None and alarm["level"] == worst.text}
        for alarm in alarms
        if alarm["level"] is not None
    ]
    del known["alarms"]
    return known | {
        "faults": faults,
        "unlisted": [alarm for alarm in alarms if alarm["level"] is None],
        "ends": None if worst is None else _ends(faults, worst),
        "last_try": _last_try(state, now),
        "published": _published(state),
        "configuration": None if config is None else {"version": config.version, "layers": list(config.layers)},
    }


def _because(code: str, config: NodeConfiguration | None) -> dict[str, Any]:
    record = None if config is None else config.table.lookup(code)
    if record is None:
        return {"said_by": "a table before the one in force", "advice": None, "advice_zh": None}
    return {
        "said_by": str(record.level_place),
        "advice": record.advice_en or None,
        "advice_zh": record.advice_zh or None,
    }


def _ends(faults: list[dict[str, Any]], worst: NodeLevel) -> str:
    rest = [NodeLevel.parse(fault["level"]) for fault in faults if not fault["decides"]]
    then = max(rest).status if rest else HEALTHY
    codes = sorted({fault["code"] for fault in faults if fault["decides"]})
    count = sum(fault["decides"] for fault in faults)
    what = f"the alarm {codes[0]}" if count == 1 else f"the {count} alarms of level {worst.text}"
    goal = f"NodeStatus becomes {then}" if then != worst.status else f"NodeStatus stays {then}, with less to list,"
    gone = "is" if count == 1 else "are"
    return f"{goal} with the first good poll in which {what} {gone} gone, or with a table that gives another level"


def _last_try(state: BoardState, now: Instant) -> dict[str, Any] | None:
    at = state.answered if state.silence is None else state.silence.tried
    if at is None:
        return None
    return {
        "good": state.silence is None,
        "at_ms": at.wall_ms,
        "age_s": max(0, now.mono_ms - at.mono_ms) / 1000,
        "failed_in_a_row": 0 if state.silence is None else state.silence.tries,
        "why": None if state.silence is None else state.silence.why,
    }


def _published(state: BoardState) -> dict[str, str]:
    view = state.view
    if view is None:
        return {"nothing": "no poll was judged yet, so an object of an earlier run stays as it is"}
    if not view.devices:
        return {"nothing": "there is no fault that a table lists, so there is no object"}
    worst = max(device.level for device in view.devices)
    codes = sum(len(device.codes) for device in view.devices)
    left_out = f"; {len(view.unlisted)} alarm(s) are left out, no table lists them" if view.unlisted else ""
    return {
        "FaultDevList": f"names {codes} code(s) of {len(view.devices)} device(s){left_out}",
        "NodeStatus": f"{view.status!r}: the worst level of them is {worst.text}",
    }
