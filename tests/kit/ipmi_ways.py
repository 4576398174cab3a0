"""The two ways to the alarms of a simulated BMC, alike for tests: over the LAN, and through the driver in a guest."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol

import pytest
from kit.bmc_simulator import PASSWORD, USER, BmcSimulator
from kit.guest import GuestError

from nodeagent.core.alarms import Alarm
from nodeagent.core.errors import IpmiError
from nodeagent.drivers.host import Reaper
from nodeagent.drivers.ipmi import Transport
from nodeagent.drivers.ipmi_alarms import poll_alarms
from nodeagent.drivers.ipmi_label import read_serial_number
from nodeagent.drivers.ipmi_lan import LanConnector, LanSettings

LAN_DEADLINE_S = 10.0
"""As the daemon's (node-faults 2.3)."""


class Way(Protocol):
    """A transport of ours and what it brings. Opens when it is first used, and again after an error.

    LanWay is one, and a guest (kit.guest.IpmiGuest) is the other.
    """

    def poll(self) -> tuple[Alarm, ...]:
        """The present alarms, by `poll_alarms`. Raises IpmiError."""

    def serial_number(self) -> str:
        """The serial number, by `read_serial_number`. Raises IpmiError."""

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """One command: completion code and payload. Raises IpmiError."""


class LanWay:
    """Our LAN transport, in this process. folder: for the credentials; must exist."""

    def __init__(
        self, bmc: BmcSimulator, folder: Path, password: str = PASSWORD, deadline_s: float = LAN_DEADLINE_S
    ) -> None:
        for name, text in (("username", USER), ("password", password)):
            file = folder / name
            file.write_text(text)
            file.chmod(0o400)
        self.warnings: list[str] = []
        settings = LanSettings("127.0.0.1", bmc.lan_port, str(folder), deadline_s)
        self._connect = LanConnector(settings, Reaper(), self.warnings.append)
        self._transport: Transport | None = None

    def __enter__(self) -> "LanWay":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def poll(self) -> tuple[Alarm, ...]:
        """See Way."""
        with self._closed_by_errors():
            return poll_alarms(self.raw)

    def serial_number(self) -> str:
        """See Way."""
        with self._closed_by_errors():
            return read_serial_number(self.raw)

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """See Way."""
        if self._transport is None:
            self._transport = self._connect()
        return self._transport.raw(netfn, command, data)

    def close(self) -> None:
        """Log out."""
        if self._transport is not None:
            self._transport.close()
        self._transport = None

    @contextlib.contextmanager
    def _closed_by_errors(self) -> Iterator[None]:
        try:
            yield
        except IpmiError:
            self.close()
            raise


def failure(way: Way) -> tuple[str, str]:
    """Poll, which must fail: the class of the error and its sentence, the same for both ways."""
    with pytest.raises(IpmiError) as caught:
        way.poll()
    error = caught.value
    return (error.kind if isinstance(error, GuestError) else type(error).__name__, error.sentence)
