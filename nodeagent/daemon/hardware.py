"""How the BMC and the storage clients of this node are reached, from settings. Shared by `run`, `scan` and `why`.

A dry run reaches those of the pretended node.
"""

import logging
import os
import threading
from dataclasses import replace

from nodeagent.core.settings import Settings, StorageSettings
from nodeagent.core.telemetry import Metrics
from nodeagent.drivers.host import Reaper
from nodeagent.drivers.ipmi import Connect

log = logging.getLogger("nodeagent.board")

BUSY_PAUSE_S = 0.5
NODE_MARK = "{node}"
"""Stands for the name of the node in `ipmi.address`, as every node has a BMC of its own."""


def transport_text(settings: Settings) -> str:
    """The way to the BMC in a few words."""
    ipmi = settings.ipmi
    if ipmi.transport == "lan":
        return f"LAN, {_address(settings) or 'the address of the Secret'}, port {ipmi.port}"
    return "the pretended BMC" if settings.mock.socket else ipmi.device


def connect_board(settings: Settings, metrics: Metrics) -> Connect:
    """Opens the way to the BMC; the setting `ipmi.transport` is not `off`."""
    ipmi = settings.ipmi
    deadline_s = ipmi.command_deadline_s
    if ipmi.transport == "lan":
        from nodeagent.drivers.ipmi_lan import LanConnector, LanSettings

        lan = LanSettings(_address(settings), ipmi.port, ipmi.credentials_dir, deadline_s)
        return LanConnector(lan, Reaper(), lambda sentence: log.warning("credentials of the BMC: %s", sentence))
    if settings.mock.socket:
        from nodeagent.drivers.ipmi_mock import MockTransport

        return lambda: MockTransport(settings.mock.socket, deadline_s)
    from nodeagent.drivers.ipmi_device import DeviceTransport

    return lambda: DeviceTransport(ipmi.device, deadline_s, lambda: metrics.count("ipmi_discarded_answers_total"))


def pause() -> None:
    """Between two tries of a command whose answer is that the BMC is busy."""
    threading.Event().wait(BUSY_PAUSE_S)


def hang_s(settings: Settings) -> float:
    """Real seconds after which a question to the BMC is told as no answer: more than its commands may take."""
    return max(120.0, 4 * settings.ipmi.command_deadline_s)


def storage_settings(settings: Settings) -> StorageSettings:
    """With the folder of the pretended node in a dry run, unless a site names another one."""
    storage = settings.storage
    if settings.mock.socket and storage.proc == StorageSettings().proc:
        from nodeagent.mock.folder import proc_of

        return replace(storage, proc=str(proc_of(settings.mock.socket)))
    return storage


def trusted_uids(settings: Settings) -> frozenset[int]:
    """Owners whose state files are believed: root (node-faults 11.1), in a dry run also who runs it."""
    return frozenset({0, os.getuid()}) if settings.mock.socket else frozenset({0})


def _address(settings: Settings) -> str:
    return settings.ipmi.address.replace(NODE_MARK, settings.node.name)
