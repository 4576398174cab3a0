"""The daemon in the guest, on a node whose chips have no driver library: alarms become the node-info object."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kit.alarms import CPU_1
from kit.bmc_simulator import BmcSimulator
from kit.daemon import NODE, wait_until
from kit.guest import ANSWER_LIMIT_S, IpmiGuest
from kit.guest_daemon import GuestDaemon

FAULT = {
    "FaultDevList": [
        {"DeviceType": "CPU", "DeviceId": 1, "FaultCode": ["0000001D"], "FaultLevel": "PreSeparateFault"},
    ],
    "NodeStatus": "PreSeparate",
}


@pytest.fixture
def daemon(guest: IpmiGuest, request: pytest.FixtureRequest) -> Iterator[GuestDaemon]:
    """A daemon that polls twice a second."""
    daemon = GuestDaemon(guest, request.node.name)
    yield daemon
    assert daemon.stop() == 0


def node_info(daemon: GuestDaemon) -> dict[str, Any] | None:
    """The node information that is published; None while there is none."""
    found = daemon.object("mindx-dl", f"mindx-dl-nodeinfo-{NODE}")
    if found is None:
        return None
    info: dict[str, Any] = json.loads(found["data"]["NodeInfo"])["NodeInfo"]
    return info


def wait_for(daemon: GuestDaemon, wanted: dict[str, Any] | None) -> None:
    """Until that is published."""
    try:
        wait_until(lambda: node_info(daemon) == wanted, f"{wanted}", ANSWER_LIMIT_S)
    except AssertionError as error:
        raise AssertionError(f"{error}\npublished: {node_info(daemon)}\n{daemon.words()[-4000:]}") from None


def polls(bmc: BmcSimulator, count: int) -> None:
    """Wait for so many more polls of an empty or short list."""
    wanted = len(bmc.asked()) + count
    wait_until(lambda: len(bmc.asked()) >= wanted, f"{count} polls", ANSWER_LIMIT_S)


def test_alarms_come_and_go(bmc: BmcSimulator, daemon: GuestDaemon) -> None:
    polls(bmc, 2)
    assert node_info(daemon) is None
    bmc.say([CPU_1])
    wait_for(daemon, FAULT)
    bmc.say()
    wait_for(daemon, None)


def test_t12_a_bmc_that_is_lost_keeps_the_object_and_is_reported(bmc: BmcSimulator, daemon: GuestDaemon) -> None:
    bmc.say([CPU_1])
    wait_for(daemon, FAULT)
    bmc.kill()
    daemon.wait_for_words("BoardDoesNotAnswer")
    assert node_info(daemon) == FAULT
    bmc.say()
    bmc.start()
    daemon.wait_for_words("BoardAnswersAgain")
    wait_for(daemon, None)


def test_t15_a_daemon_that_is_killed_leaves_the_object(bmc: BmcSimulator, guest: IpmiGuest) -> None:
    bmc.say([CPU_1])
    first = GuestDaemon(guest, "killed")
    wait_for(first, FAULT)
    first.kill()
    second = GuestDaemon(guest, "killed")
    polls(bmc, 3)
    assert node_info(second) == FAULT
    bmc.say()
    wait_for(second, None)
    assert second.stop() == 0
