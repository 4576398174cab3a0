"""The gateway detection of the chips, in a driver host of its own (chip-faults 4.6, native-abi 6.2).

The call may block for long after a card drop. So it never shares a process with the calls that fault detection
needs: a hang costs this host and nothing else.
"""

from collections.abc import Callable
from typing import Any, Protocol

from nodeagent.core.model import ChipId
from nodeagent.drivers.answers import AnswerDamaged, check
from nodeagent.drivers.chips import DcmiSettings, address, open_dcmi
from nodeagent.drivers.host import DriverHost, HostSpec, Reaper

MAX_RESULT = 127
_HEALTHY = frozenset({0, 6})
_UNHEALTHY = frozenset({1, 2, 3, 4, 5, 7, 8})


class GatewayDriver(Protocol):
    """One session for gateway calls. `open` and `network_health` raise DriverError, LibraryError or HostError."""

    @property
    def ended(self) -> bool:
        """Nothing of this session lives on; false for a child that the kernel does not let die."""

    def open(self) -> None:
        """Load and initialise the library. Chips are not enumerated: the fault session knows them."""

    def network_health(self, chip: ChipId) -> int:
        """Result of the detection, 0..127; see `gateway_is_bad`."""

    def close(self) -> None:
        """End the session; never waits, may be called twice."""


ConnectGateway = Callable[[], GatewayDriver]
"""Makes a new session."""


class HostedGateway:
    """DCMI in a driver host that makes no other calls.

    deadline_s: longest time a call may take, real seconds. reaper: one of its own, so that children which hang in
    the kernel here never count against the hosts of fault detection.
    """

    def __init__(self, settings: DcmiSettings, deadline_s: float, reaper: Reaper) -> None:
        self._settings = settings
        self._deadline_s = deadline_s
        self._function = "dcmi_get_device_network_health"
        self._host = DriverHost(
            HostSpec("dcmi-gateway", "nodeagent.drivers.dcmi_adapter:DcmiAdapter", settings.environment),
            reaper,
            _no_events,
            _no_news,
        )

    @property
    def pid(self) -> int:
        """Process id of the driver host."""
        return self._host.pid

    @property
    def ended(self) -> bool:
        """The child has been seen to end."""
        return self._host.ended

    def open(self) -> None:
        """Library search, dlopen, init."""
        _, generation = open_dcmi(self._host, self._settings)
        if generation == "v2":
            self._function = "dcmiv2_get_device_network_health"

    def network_health(self, chip: ChipId) -> int:
        """Result of the gateway detection of one chip."""
        rc, value = self._host.call("network_health", *address(chip), deadline_s=self._deadline_s)
        return judge_network_health(self._function, int(rc), int(value))

    def close(self) -> None:
        """Kill the child."""
        self._host.close()


def judge_network_health(function: str, rc: int, value: int) -> int:
    """The result, if it is one: return code 0 and 0..127. Raises AnswerError (4.6: an error, never a state)."""
    check(function, rc)
    if not 0 <= value <= MAX_RESULT:
        raise AnswerDamaged(function, f"a result of {value}, outside 0..{MAX_RESULT}")
    return value


def gateway_is_bad(value: int) -> bool | None:
    """What a result means: 0 (reached) and 6 (not yet probed) are good, 1-5, 7 and 8 bad (4.6).

    None for a number that no sheet names: a newer driver says something that we do not understand.
    """
    if value in _HEALTHY:
        return False
    return True if value in _UNHEALTHY else None


def _no_events(_events: tuple[tuple[Any, ...], ...], _dropped: int) -> None:
    """This session subscribes to nothing."""


def _no_news(_reason: str) -> None:
    """The next call finds out that the child has ended."""
