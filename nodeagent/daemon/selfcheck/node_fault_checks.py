"""Verdicts on the ways to node faults: the BMC of the board, storage clients, and how ClusterD hears of them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from nodeagent.core.errors import NodeAgentError
from nodeagent.core.settings import PublicFaultSettings
from nodeagent.daemon.oneshot_node_faults import NodeFaultsLook
from nodeagent.daemon.selfcheck.check import Check, ok, skipped, warn

BOARD, STORAGE, PUBLIC_FAULTS = "board", "storage", "public-faults"

_IN_BAND = (
    "load the kernel modules ipmi_si (or ipmi_ssif) and ipmi_devintf; in a container mount /dev and run privileged"
)
_OVER_LAN = "see ipmi.address, ipmi.credentials_dir and the settings of IPMI over LAN in the BMC"
_NO_BMC = "a board without a BMC: ipmi.transport=off"


def check_board(found: NodeFaultsLook | NodeAgentError, transport: str) -> Check:
    """One poll of the alarms. found: an error is one of the levels. transport: the setting.

    Never a failure: chips are watched without a BMC, and some boards have none.
    """
    if transport == "off":
        return skipped(BOARD, "the BMC is not asked (ipmi.transport=off)")
    if isinstance(found, NodeAgentError):
        return skipped(BOARD, f"levels of node faults are not usable: {found.sentence}")
    board = found.board
    assert board is not None  # it was asked
    if not board["known"]:
        way = _OVER_LAN if transport == "lan" else _IN_BAND
        return warn(
            BOARD, f"node faults are not seen: {board['why_silent']} ({board['transport']})", f"{way}; {_NO_BMC}"
        )
    count = len(board["alarms"])
    alarms = f"{count} alarm{'' if count == 1 else 's'}"
    return ok(BOARD, f"the BMC answers ({board['transport']}): {alarms}, node {board['status']}")


def check_storage(found: NodeFaultsLook | NodeAgentError) -> Check:
    """The state files of the storage clients: there and readable, or not there, which is normal."""
    if isinstance(found, NodeAgentError):
        return skipped(STORAGE, f"not looked at: {found.sentence}")
    bad = [client for client in found.storage if client["watched"] and client["problem"]]
    if bad:
        detail = "; ".join(f"{client['name']}: {client['problem']}" for client in bad)
        return warn(
            STORAGE, detail, "the file must belong to root, be writable by nobody else, and have the known form"
        )
    return ok(STORAGE, "; ".join(_said(client) for client in found.storage))


def check_public_faults(settings: PublicFaultSettings, problem: NodeAgentError | None, clients: Sequence[str]) -> Check:
    """The way to ClusterD. problem: why gRPC cannot be used. clients: names of the storage clients that are watched."""
    if settings.delivery == "off":
        return skipped(PUBLIC_FAULTS, "nobody is told (public_faults.delivery=off)")
    if problem is not None:
        return warn(PUBLIC_FAULTS, problem.sentence, problem.hint)
    way = settings.address if settings.delivery == "grpc" else "ConfigMaps in mindx-dl"
    return ok(PUBLIC_FAULTS, f"ClusterD is told by {way}" + ("" if clients else "; no storage client is watched now"))


def _said(client: Mapping[str, Any]) -> str:
    if not client["watched"]:
        return f"{client['name']} is not watched"
    count = len(client["instances"])
    return f"{client['name']} has {count} instance{'' if count == 1 else 's'}"
