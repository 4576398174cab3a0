"""An action on a mock node as a row: name, parameters, and the method that it ends in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.mock.events import MockEvent
from nodeagent.mock.kinds import Kind
from nodeagent.mock.node import MockNode
from nodeagent.mock.storm import Storm
from nodeagent.mock.switch_event import MockSwitchEvent

Outcome = list[MockEvent] | list[MockSwitchEvent] | Storm


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: its key in YAML and JSON, its kind, whether it must be given, what it means."""

    name: str
    kind: Kind
    help: str
    required: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Action:
    """A row: its name (`do`), one sentence about it, parameters, and what it calls."""

    name: str
    help: str
    params: tuple[Param, ...]
    apply: Callable[[MockNode, Mapping[str, Any]], Outcome]
    example: str
