"""What can be done to the switches of a mock node: rows of the table in nodeagent.mock.actions."""

from collections.abc import Mapping
from typing import Any

from nodeagent.core.switch import WHOLE_CHIP_PORT
from nodeagent.mock.action import Action, Outcome, Param
from nodeagent.mock.events import MINOR
from nodeagent.mock.kinds import (
    CLAIM,
    COUNT,
    FLAG,
    PEER,
    SEVERITY,
    SWITCH_CODE,
    TIME_MS,
    TIMES,
    U16,
)
from nodeagent.mock.node import MockNode
from nodeagent.mock.switches import CHIPS, PORTS, Place

GROUP = "switch_"
"""Prefix of the names of these actions; on the command line they are `nodeagent mock switch NAME`."""

_WHERE = (
    Param("chip", U16, "switch chip, 0..6", required=True),
    Param("port", U16, "port, 0..47 (default: the whole chip)", default=WHOLE_CHIP_PORT),
    Param("code", SWITCH_CODE, "code as in the level table (quoted in YAML), its peer may be left out", required=True),
    Param("peer", PEER, "device at the other end: cpu, npu, L2, na or a number (default: that of the code)"),
    Param("peer_id", U16, "number of that device (default: 0, 65535 where there is none)"),
)
_SEVERITY = Param("severity", SEVERITY, "hint, minor, major or critical", default=MINOR)
_LISTED = Param("listed", FLAG, "whether the list changes", default=True)
_EVENT = Param("event", FLAG, "whether an event is sent", default=True)
_REPEAT = Param("repeat", FLAG, "send the event although nothing changes", default=False)


def _place(v: Mapping[str, Any]) -> Place:
    return Place(v["chip"], v["port"], v["peer"], v["peer_id"])


def _raise(node: MockNode, v: Mapping[str, Any]) -> Outcome:
    return node.switches.raise_fault(
        v["code"],
        _place(v),
        severity=v["severity"],
        raised_ms=v["time_ms"],
        listed=v["listed"],
        event=v["event"],
        repeat=v["repeat"],
    )


def _clear(node: MockNode, v: Mapping[str, Any]) -> Outcome:
    return node.switches.clear_fault(v["code"], _place(v), listed=v["listed"], event=v["event"], repeat=v["repeat"])


SWITCH_ACTIONS = (
    Action(
        "switch_raise",
        "let a fault of a switch occur: the list shows it, and an event is sent unless it is there already",
        (
            *_WHERE,
            _SEVERITY,
            Param("time_ms", TIME_MS, "raised time, Unix milliseconds, 0 = unknown (default: now)"),
            _LISTED,
            _EVENT,
            _REPEAT,
        ),
        _raise,
        "nodeagent mock switch raise --chip 2 --port 11 --code 0x08520003,na,npu --peer-id 5",
    ),
    Action(
        "switch_clear",
        "let a fault of a switch recover",
        (*_WHERE, _LISTED, _EVENT, _REPEAT),
        _clear,
        "nodeagent mock switch clear --chip 2 --port 11 --code 0x08520003,na,npu --peer-id 5",
    ),
    Action(
        "switch_notice",
        "send a one-shot notice of a switch; the list never shows it",
        (*_WHERE, _SEVERITY),
        lambda node, v: node.switches.notice(v["code"], _place(v), severity=v["severity"]),
        "nodeagent mock switch notice --chip 4 --code '[0x00f1ff06,155911,na,na]'",
    ),
    Action(
        "switch_count",
        "let queries claim to return so many records, whatever they return; without a value the truth again",
        (Param("value", CLAIM, "for example 129 or -1"),),
        lambda node, v: node.switches.claim_count(v["value"]),
        "nodeagent mock switch count --value 129",
    ),
    Action(
        "switch_storm",
        "let three codes occur on every port of all switch chips at once, and recover unless left raised",
        (
            Param("chips", TIMES, "number of chips", default=CHIPS),
            Param("ports", COUNT, "ports of each", default=PORTS),
            Param("leave_raised", FLAG, "end with all of them raised", default=False),
        ),
        lambda node, v: node.switches.storm(v["chips"], v["ports"], leave_raised=v["leave_raised"]),
        "nodeagent mock switch storm --leave-raised true",
    ),
)
