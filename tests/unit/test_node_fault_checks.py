"""Verdicts of the self-check on the ways to node faults."""

from typing import Any

import pytest

from nodeagent.core.errors import PublicFaultError, TableError
from nodeagent.core.settings import PublicFaultSettings
from nodeagent.daemon.oneshot_node_faults import NodeFaultsLook
from nodeagent.daemon.selfcheck.check import Verdict
from nodeagent.daemon.selfcheck.node_fault_checks import check_board, check_public_faults, check_storage

GOOD = {"known": True, "alarms": [{}], "status": "PreSeparate", "transport": "/dev/ipmi0", "why_silent": None}
NO_DEVICE = {**GOOD, "known": False, "why_silent": "there is no /dev/ipmi0"}
BAD_LEVELS = TableError("site.yaml cannot be read")


def client(name: str = "DPC", watched: bool = True, problem: str | None = None) -> dict[str, Any]:
    return {"name": name, "watched": watched, "problem": problem, "instances": [{}] if watched else []}


def look(board: dict[str, Any] | None = None, *storage: dict[str, Any]) -> NodeFaultsLook:
    return NodeFaultsLook(board, None, list(storage))


class TestBoard:
    def test_one_that_answers(self) -> None:
        check = check_board(look(GOOD), "inband")
        assert check.verdict is Verdict.OK
        assert check.detail == "the BMC answers (/dev/ipmi0): 1 alarm, node PreSeparate"

    @pytest.mark.parametrize(("transport", "hint"), [("inband", "ipmi_devintf"), ("lan", "ipmi.credentials_dir")])
    def test_without_a_way_chips_are_watched_all_the_same(self, transport: str, hint: str) -> None:
        check = check_board(look(NO_DEVICE), transport)
        assert check.verdict is Verdict.WARN
        assert "there is no /dev/ipmi0" in check.detail
        assert hint in check.hint
        assert "ipmi.transport=off" in check.hint

    def test_switched_off(self) -> None:
        assert check_board(look(None), "off").verdict is Verdict.SKIPPED

    def test_levels_that_cannot_be_read_are_told_elsewhere(self) -> None:
        assert check_board(BAD_LEVELS, "inband").verdict is Verdict.SKIPPED


class TestStorage:
    def test_clients_that_are_not_there_are_no_trouble(self) -> None:
        check = check_storage(look(None, client(), client("DTFS", watched=False)))
        assert (check.verdict, check.detail) == (Verdict.OK, "DPC has 1 instance; DTFS is not watched")

    def test_a_file_that_is_not_trusted(self) -> None:
        check = check_storage(look(None, client(problem="it belongs to uid 1000"), client("DTFS")))
        assert (check.verdict, check.detail) == (Verdict.WARN, "DPC: it belongs to uid 1000")

    def test_not_looked_at(self) -> None:
        assert check_storage(BAD_LEVELS).verdict is Verdict.SKIPPED


class TestPublicFaults:
    def test_by_configmap(self) -> None:
        check = check_public_faults(PublicFaultSettings(), None, ["DPC"])
        assert (check.verdict, check.detail) == (Verdict.OK, "ClusterD is told by ConfigMaps in mindx-dl")
        assert "no storage client" in check_public_faults(PublicFaultSettings(), None, []).detail

    def test_by_grpc_that_cannot_be_used(self) -> None:
        problem = PublicFaultError("grpcio is not installed", "pip install nodeagent[grpc]")
        check = check_public_faults(PublicFaultSettings(delivery="grpc"), problem, [])
        assert (check.verdict, check.detail, check.hint) == (Verdict.WARN, problem.sentence, problem.hint)

    def test_by_nobody(self) -> None:
        assert check_public_faults(PublicFaultSettings(delivery="off"), None, []).verdict is Verdict.SKIPPED
