"""The ways to the BMC and to the storage clients, from settings."""

import os

import pytest

from nodeagent.core.settings import IpmiSettings, MockSettings, NodeSettings, Settings, StorageSettings
from nodeagent.daemon.hardware import hang_s, storage_settings, transport_text, trusted_uids
from nodeagent.mock.folder import proc_of

DRY = MockSettings(socket="/tmp/mock/socket")


@pytest.mark.parametrize(
    ("ipmi", "mock", "text"),
    [
        (IpmiSettings(), MockSettings(), "/dev/ipmi0"),
        (IpmiSettings(), DRY, "the pretended BMC"),
        (IpmiSettings(transport="lan", address="bmc-{node}.lab"), DRY, "LAN, bmc-worker-1.lab, port 623"),
        (IpmiSettings(transport="lan"), MockSettings(), "LAN, the address of the Secret, port 623"),
    ],
)
def test_the_way_to_the_bmc_in_words(ipmi: IpmiSettings, mock: MockSettings, text: str) -> None:
    assert transport_text(Settings(node=NodeSettings("worker-1"), ipmi=ipmi, mock=mock)) == text


def test_a_dry_run_reads_the_files_of_the_pretended_node_unless_others_are_named() -> None:
    assert storage_settings(Settings(mock=DRY)).proc == str(proc_of(DRY.socket))
    named = StorageSettings(proc="/host/proc")
    assert storage_settings(Settings(mock=DRY, storage=named)) == named
    assert storage_settings(Settings()).proc == "/proc"


def test_only_root_is_believed_but_for_a_dry_run() -> None:
    assert trusted_uids(Settings()) == {0}
    assert trusted_uids(Settings(mock=DRY)) == {0, os.getuid()}


@pytest.mark.parametrize(("deadline_s", "limit_s"), [(10.0, 120.0), (60.0, 240.0)])
def test_a_question_hangs_when_its_commands_cannot_take_so_long(deadline_s: float, limit_s: float) -> None:
    assert hang_s(Settings(ipmi=IpmiSettings(command_deadline_s=deadline_s))) == limit_s


def test_the_mock_is_not_the_way_over_lan() -> None:
    """Even in a dry run `lan` means the network: the demonstration asks a simulator so."""
    text = transport_text(Settings(ipmi=IpmiSettings(transport="lan", address="127.0.0.1", port=9623), mock=DRY))
    assert text == "LAN, 127.0.0.1, port 9623"
