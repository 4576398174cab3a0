"""The BMC over the network (RMCP+), parent side: one child process for each session (node-faults 5).

A transport lives as long as its child. Whatever goes wrong ends both, and the next one begins from nothing: pyghmi is
no good at recovering, and a process costs 0.1 s of processor time. So nothing of it stays in memory between polls.
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from nodeagent.core.errors import HostError, IpmiAccessError, IpmiError, NodeAgentError
from nodeagent.drivers import ipmi_lan_child as child
from nodeagent.drivers.host import DriverHost, HostSpec, HostStuckError, Reaper
from nodeagent.drivers.ipmi import LoginRefusedError, NoAnswerError
from nodeagent.drivers.ipmi_credentials import read_address, read_credentials

LOAD_DEADLINE_S = 30.0
"""For the start of Python and the import of pyghmi: 0.2 s, but a node may be very busy."""
LOGIN_DEADLINES = 3
"""A login is several commands; it may take as many times the deadline of one."""
LOGOUT_DEADLINE_S = 1.0
_SPEC = HostSpec("ipmi-lan", "nodeagent.drivers.ipmi_lan_child:LanAdapter")
_KINDS: dict[str, type[IpmiError]] = {
    child.ACCESS: IpmiAccessError,
    child.REFUSED: LoginRefusedError,
    child.SILENT: NoAnswerError,
}


@dataclass(frozen=True, slots=True)
class LanSettings:
    """Where the BMC is. address: host name or IP; empty = as the file `address` beside the credentials says, which is
    read for each session. credentials_dir: see `read_credentials`. deadline_s: per command."""

    address: str
    port: int
    credentials_dir: str
    deadline_s: float


class LanConnector:
    """Opens sessions (see `Connect`).

    reaper: one of its own, so that children which cannot be killed never count against those of fault detection.
    warn: told of each credentials file that is open to others, in one sentence, once for each file in the life of this
    object.
    """

    def __init__(self, settings: LanSettings, reaper: Reaper, warn: Callable[[str], None]) -> None:
        self._settings = settings
        self._reaper = reaper
        self._warn = warn
        self._warned: set[str] = set()

    def __call__(self) -> "LanTransport":
        """Log in.

        Raises LoginRefusedError (the caller must wait long before the next try), IpmiAccessError, NoAnswerError.
        """
        settings = self._settings
        if not settings.address:
            settings = replace(settings, address=read_address(settings.credentials_dir))
        # The child reads them again for itself. Here they are only looked at, before a process is started for nothing.
        read_credentials(self._settings.credentials_dir, self._warn_once)
        return LanTransport(settings, self._reaper)

    def _warn_once(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            self._warn(sentence)


class LanTransport:
    """One session in one child process (see `Transport`). `close` may be called from another thread."""

    def __init__(self, settings: LanSettings, reaper: Reaper) -> None:
        self._settings = settings
        self._calling = threading.Lock()
        self._broken = ""
        try:
            self._host = DriverHost(_SPEC, reaper, _no_events, _no_news)
        except HostError as error:
            raise IpmiError(error.sentence, error.hint) from error
        try:
            self._ask("load", deadline_s=LOAD_DEADLINE_S)
            self._ask(
                "login",
                settings.address,
                settings.port,
                settings.credentials_dir,
                deadline_s=LOGIN_DEADLINES * settings.deadline_s,
            )
        except IpmiError:
            self._host.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._host.pid

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """One command; after any error this transport is of no further use."""
        return bytes(self._ask("raw", netfn, command, data.hex(), deadline_s=self._settings.deadline_s))

    def close(self) -> None:
        """Log out, if no command runs, and end the child."""
        if not self._broken and self._calling.acquire(blocking=False):
            try:
                with contextlib.suppress(NodeAgentError):
                    self._host.call("logout", deadline_s=LOGOUT_DEADLINE_S)
            finally:
                self._calling.release()
        self._broken = self._broken or "the session was closed"
        self._host.close()

    def _ask(self, name: str, *args: Any, deadline_s: float) -> Any:
        with self._calling:
            if self._broken:
                raise IpmiError(self._broken)
            try:
                kind, *rest = self._host.call(name, *args, deadline_s=deadline_s)
            except HostStuckError as error:
                silent = f"the BMC at {self._settings.address} port {self._settings.port} did not answer {name}"
                raise self._give_up(NoAnswerError(f"{silent} within {deadline_s:g} s")) from error
            except HostError as error:
                raise self._give_up(IpmiError(error.sentence, error.hint)) from error
        if kind == child.OK:
            return rest[0]
        raise self._give_up(_KINDS[kind](*rest))

    def _give_up(self, error: IpmiError) -> IpmiError:
        self._broken = f"the session was given up: {error.sentence}"
        self._host.close()
        return error


def _no_events(_events: tuple[tuple[Any, ...], ...], _dropped: int) -> None:
    """A BMC sends no events."""


def _no_news(_reason: str) -> None:
    """The next command finds out that the child has ended."""
