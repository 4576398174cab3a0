"""The daemon in the guest, on a node whose chips have no driver library."""

from kit.guest import IpmiGuest
from kit.guest_daemon import GuestDaemon


def test_it_runs_where_only_a_bmc_is(guest: IpmiGuest) -> None:
    daemon = GuestDaemon(guest, "without-chips")
    daemon.wait_for_words("DriverHostLost")
    assert daemon.stop() == 0
