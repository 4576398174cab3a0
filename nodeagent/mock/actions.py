"""Everything that can be done to a mock node, as one table.

A timeline entry, a control command and a command of `nodeagent mock` are all a row of this table with values for
its parameters; each row ends in one method of `MockNode`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.mock.action import Action, Outcome, Param
from nodeagent.mock.board_actions import BOARD_ACTIONS
from nodeagent.mock.events import HINT, MAJOR, Module
from nodeagent.mock.kinds import (
    ANY_CHIP,
    BYTE,
    BYTES,
    CARD,
    CHIP,
    CODE,
    CODES,
    FLAG,
    FUNCTION,
    GATEWAY,
    IP_OR_NONE,
    RATE,
    RC,
    SECONDS,
    SEVERITY,
    SIGNAL,
    TEXT,
    TIME_MS,
    TIMES,
    UP_DOWN,
    ValueProblem,
)
from nodeagent.mock.node import MockNode
from nodeagent.mock.switch_actions import SWITCH_ACTIONS

_CHIP = Param("chip", CHIP, "logic id of the chip", required=True)
_ANY = Param("chip", ANY_CHIP, "logic id; one the node does not have gives an event only", required=True)
_CARD = Param("card", CARD, "card id", required=True)
_CODE = Param("code", CODE, "fault code, hexadecimal text (quoted in YAML)", required=True)
_FUNCTION = Param("function", FUNCTION, "name in the ABI, v1, v2 (its twin is meant too) or lq_dcmi_*", required=True)
_WHERE = Param("chip", CHIP, "only calls about this logic id (default: all)")
_TIMES = Param("times", TIMES, "how many calls (default: all)")
_NAME = Param("name", TEXT, "event name", default="")
_MODULE = (
    Param("node_type", BYTE, "module type, for example 0x40 SoC, 0x5D RoCE, 0x70 HBM"),
    Param("node_id", BYTE, "module index", default=0),
    Param("sub_node_type", BYTE, "sub-module type", default=0),
    Param("sub_node_id", BYTE, "sub-module index", default=0),
)
_LISTED = Param("listed", FLAG, "whether the code list changes", default=True)
_EVENT = Param("event", FLAG, "whether an event is sent", default=True)


def _module(values: Mapping[str, Any]) -> Module:
    node_type = Module().node_type if values["node_type"] is None else values["node_type"]
    return Module(node_type, values["node_id"], values["sub_node_type"], values["sub_node_id"])


def _raise(node: MockNode, v: Mapping[str, Any]) -> Outcome:
    return node.raise_fault(
        v["chip"],
        v["code"],
        severity=v["severity"],
        module=_module(v),
        time_ms=v["time_ms"],
        name=v["name"],
        info=v["info"],
        listed=v["listed"],
        event=v["event"],
    )


def _clear(node: MockNode, v: Mapping[str, Any]) -> Outcome:
    return node.clear_fault(v["chip"], v["code"], listed=v["listed"], event=v["event"], name=v["name"])


def _notice(node: MockNode, v: Mapping[str, Any]) -> Outcome:
    return node.notice(v["chip"], v["code"], severity=v["severity"], module=_module(v), name=v["name"])


def _storm(node: MockNode, v: Mapping[str, Any]) -> Outcome:
    return node.storm(
        v["events_per_s"], v["seconds"], logic_id=v["chip"], codes=v["codes"], leave_raised=v["leave_raised"]
    )


ACTIONS: dict[str, Action] = {
    action.name: action
    for action in (
        Action(
            "raise",
            "let a fault occur: the code list shows it and an occurrence event is sent",
            (
                _ANY,
                _CODE,
                Param("severity", SEVERITY, "hint, minor, major or critical", default=MAJOR),
                *_MODULE,
                Param("time_ms", TIME_MS, "raised time, Unix milliseconds (default: now)"),
                _NAME,
                Param("info", BYTES, "additional info, at most 32 bytes, as hexadecimal text", default=b""),
                _LISTED,
                _EVENT,
            ),
            _raise,
            "nodeagent mock raise --chip 3 --code 80E18005 --severity major",
        ),
        Action(
            "clear",
            "let a fault recover: a recovery event is sent, the code leaves the list after recovery_lag_ms",
            (_ANY, _CODE, _LISTED, _EVENT, _NAME),
            _clear,
            "nodeagent mock clear --chip 3 --code 80E18005",
        ),
        Action(
            "notice",
            "send a one-off event; the code list never shows it",
            (_ANY, _CODE, Param("severity", SEVERITY, "hint, minor, major or critical", default=HINT), *_MODULE, _NAME),
            _notice,
            "nodeagent mock notice --chip 0 --code 80C98006",
        ),
        Action(
            "drop",
            "lose a card: health of its chips answers -8012, most other calls -8005, no event",
            (_CARD,),
            lambda node, v: node.drop_card(v["card"]),
            "nodeagent mock drop --card 5",
        ),
        Action(
            "return",
            "bring a lost card back with the faults it had",
            (_CARD,),
            lambda node, v: node.return_card(v["card"]),
            "nodeagent mock return --card 5",
        ),
        Action(
            "gateway",
            "set the network health value: 0 and 6 are good, 1..5, 7 and 8 are not, 255 is invalid",
            (_CHIP, Param("value", GATEWAY, "0..8 or 255", required=True)),
            lambda node, v: node.set_gateway(v["chip"], v["value"]),
            "nodeagent mock gateway --chip 1 --value 2",
        ),
        Action(
            "address",
            "give the network port another address, or take it away",
            (_CHIP, Param("ip", IP_OR_NONE, "IPv4 or IPv6 address, or none", required=True)),
            lambda node, v: node.set_address(v["chip"], v["ip"]),
            "nodeagent mock address --chip 2 --ip 10.20.0.3",
        ),
        Action(
            "link",
            "take the network port down (raises 81078603, on a 950 81078607) or bring it up (clears it)",
            (_CHIP, Param("state", UP_DOWN, "up or down", required=True)),
            lambda node, v: node.set_link(v["chip"], up=v["state"]),
            "nodeagent mock link --chip 2 --state down",
        ),
        Action(
            "fail",
            "answer a return code in place of a function's answer; code 0 ends it",
            (
                _FUNCTION,
                Param("code", RC, "return code, for example -8005; 0 = work again", required=True),
                _WHERE,
                _TIMES,
            ),
            lambda node, v: node.fail(v["function"], v["chip"], v["code"], v["times"]),
            "nodeagent mock fail --function dcmi_get_device_errorcode_v2 --chip 4 --code -8005 --times 3",
        ),
        Action(
            "hang",
            "for some seconds from now, let calls of a function sleep until they are over; 0 seconds ends it",
            (_FUNCTION, Param("seconds", SECONDS, "seconds, 0 or more", required=True), _WHERE, _TIMES),
            lambda node, v: node.hang(v["function"], v["chip"], v["seconds"], v["times"]),
            "nodeagent mock hang --function dcmi_get_device_health --chip 4 --seconds 30",
        ),
        Action(
            "crash",
            "end the process that makes the next call of a function with a signal",
            (_FUNCTION, _WHERE, Param("signal", SIGNAL, "number or name (default: SEGV)", default=11)),
            lambda node, v: node.crash(v["function"], v["chip"], v["signal"]),
            "nodeagent mock crash --function dcmi_get_device_health",
        ),
        Action(
            "storm",
            "send many events: all codes raised and cleared in turn on all chips; ends with all cleared",
            (
                Param("events_per_s", RATE, "events per second", default=1000.0),
                Param("seconds", RATE, "seconds", default=10.0),
                Param("chip", CHIP, "only on this logic id (default: all)"),
                Param("codes", CODES, "fault codes", default=(0x80E18005,)),
                Param("leave_raised", FLAG, "end with all codes raised", default=False),
            ),
            _storm,
            "nodeagent mock storm --events-per-s 1000 --seconds 10",
        ),
        Action(
            "reset",
            "reset a chip: its faults are gone, boot status runs 1, 2, 3, 16, then event 8C2FA009",
            (_CHIP,),
            lambda node, v: node.reset(v["chip"]),
            "nodeagent mock reset --chip 2",
        ),
        *SWITCH_ACTIONS,
        *BOARD_ACTIONS,
    )
}


@dataclass(frozen=True, slots=True)
class Bound:
    """An action with checked values for all its parameters."""

    action: Action
    values: Mapping[str, Any]

    def run(self, node: MockNode) -> Outcome:
        """Do it; MockError when the node refuses."""
        return self.action.apply(node, self.values)


def find(name: object) -> Action:
    """The action of that name; ValueProblem for another."""
    action = ACTIONS.get(name) if isinstance(name, str) else None
    if action is None:
        raise ValueProblem("do", f"{name!r} is not an action; known: {', '.join(ACTIONS)}")
    return action


def bind(name: object, raw: Mapping[str, object], chips: int | None = None) -> Bound:
    """Check the raw values (as JSON or YAML has them) of an action.

    chips: number of chips of the node, to refuse others early; None if unknown.
    Raises ValueProblem naming the key.
    """
    action = find(name)
    known = {param.name: param for param in action.params}
    for key in raw:
        if key not in known:
            raise ValueProblem(key, f"{action.name} has no such key; known: {', '.join(known)}")
    values: dict[str, Any] = {}
    for param in action.params:
        given = raw.get(param.name)
        if given is None:
            if param.required:
                raise ValueProblem(param.name, f"{action.name} needs it: {param.help}")
            values[param.name] = param.default
            continue
        values[param.name] = param.kind.check(param.name, given)
        if param.kind is CHIP and chips is not None and values[param.name] >= chips:
            raise ValueProblem(param.name, f"the node has chips 0..{chips - 1}, not {given}")
    return Bound(action, values)
