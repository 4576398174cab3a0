"""One look at the board and the storage clients, for `nodeagent scan` and `why node` without a daemon."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from nodeagent.core.clock import SystemClock
from nodeagent.core.settings import Settings
from nodeagent.core.telemetry import NullTelemetry
from nodeagent.daemon.build import site_documents
from nodeagent.daemon.hardware import connect_board, pause, storage_settings, transport_text, trusted_uids
from nodeagent.drivers.ipmi_alarms import poll_alarms
from nodeagent.drivers.storage_files import read_client
from nodeagent.policy.board_listing import BoardAccess, board_json
from nodeagent.policy.board_why import explain_board
from nodeagent.policy.node_configuration import first_node_configuration
from nodeagent.policy.storage_listing import storage_json
from nodeagent.sources.board_calls import look_at_board
from nodeagent.sources.config_documents import shipped_nodes
from nodeagent.sources.storage_look import look_at_storage

_SOURCE = "look"


@dataclass(frozen=True, slots=True)
class NodeFaultsLook:
    """What one look found, as JSON. board: for `scan`, why: for `why node`; None = `ipmi.transport=off`."""

    board: dict[str, Any] | None
    why: dict[str, Any] | None
    storage: list[dict[str, Any]]


def look_at_node_faults(settings: Settings) -> NodeFaultsLook:
    """Ask the BMC for its alarms and read the files of the storage clients, once each.

    No error of theirs is one of the look. Levels are those of the package and of the site's file. May take the time of
    a few commands to the BMC (`ipmi.command_deadline_s`). Raises TableError when the site's file cannot be read.
    """
    clock = SystemClock()
    read = partial(read_client, trusted_uids=trusted_uids(settings))
    storage = storage_json(look_at_storage(storage_settings(settings), clock, read), clock.now())
    if settings.ipmi.transport == "off":
        return NodeFaultsLook(None, None, storage)
    config, _ = first_node_configuration(shipped_nodes(), site_documents(settings))
    telemetry = NullTelemetry()
    poll = partial(poll_alarms, pause=pause)
    state = look_at_board(connect_board(settings, telemetry), poll, clock, telemetry, config.table)
    access = BoardAccess(transport_text(settings))
    return NodeFaultsLook(
        board_json(state, config, access, _SOURCE),
        explain_board(state, config, access, clock.now(), _SOURCE),
        storage,
    )
