"""One simulated BMC and one guest for each file of this folder. They carry the marker `ipmi`, run by `make test-ipmi`.

`way` runs a test twice: over the LAN, and through the kernel's driver in the guest.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.bmc_simulator import BmcSimulator
from kit.guest import START_LIMIT_S, IpmiGuest, no_guest
from kit.ipmi_ways import LanWay, Way
from kit.outside import mark_below


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The first test of a file waits for the guest besides.
    mark_below(Path(__file__).parent, items, pytest.mark.ipmi, pytest.mark.timeout(2 * START_LIMIT_S))


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BmcSimulator]:
    """The BMC of a file, for fixtures that outlive a test; tests take `bmc`."""
    with BmcSimulator(tmp_path_factory.mktemp("bmc")) as bmc:
        yield bmc


@pytest.fixture
def bmc(simulator: BmcSimulator) -> BmcSimulator:
    """The BMC, without alarms and in good order, whatever a test before did to it."""
    simulator.say()
    if not simulator.running:
        simulator.start()
    return simulator


@pytest.fixture(scope="module")
def running_guest(simulator: BmcSimulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IpmiGuest]:
    """The guest of a file, for fixtures that outlive a test; tests take `guest`."""
    if reason := no_guest():
        pytest.skip(reason)
    with IpmiGuest(tmp_path_factory.mktemp("guest"), simulator) as guest:
        yield guest


@pytest.fixture
def guest(running_guest: IpmiGuest, bmc: BmcSimulator) -> IpmiGuest:
    """The guest, its BMC in good order."""
    running_guest.wait_for_bmc()
    return running_guest


@pytest.fixture(params=["lan", "device"])
def way(request: pytest.FixtureRequest, bmc: BmcSimulator) -> Way:
    """A way to the alarms of `bmc`."""
    way: Way = request.getfixturevalue("guest" if request.param == "device" else "lan")
    return way


@pytest.fixture
def lan(bmc: BmcSimulator, tmp_path: Path) -> Iterator[LanWay]:
    """The way over the LAN."""
    with LanWay(bmc, tmp_path) as lan:
        yield lan
