"""What the switch source needs of the LingQu library, and the library in a driver host of its own.

One `SwitchDriver` is one session: opened, used, and replaced by a new one when a call hangs or the child ends. It
shares nothing with the sessions of DCMI, so neither can take the other along.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from nodeagent.core.switch import RECOVERY, SwitchRecord
from nodeagent.drivers.host import DriverHost, HostSpec, Reaper
from nodeagent.drivers.library import LINGQU_FILE_NAME, LibrarySettings

FIRST_ROOM = 128
"""Records that are asked for at first, as upstream does (lingqu-switch-faults 3.2)."""
MAX_ROOM = 1024
"""Records that are asked for at last; the library's own list is not much larger (native-abi 16.6, decision 9)."""


@dataclass(frozen=True, slots=True)
class SwitchEvent:
    """One event. mono_ns: monotonic clock when the callback was entered."""

    record: SwitchRecord
    mono_ns: int


@dataclass(frozen=True, slots=True)
class SwitchNews:
    """What a session tells by itself.

    dropped: total of the events that were lost in its ring. gone: why it ended, empty while it lives.
    """

    events: tuple[SwitchEvent, ...] = ()
    dropped: int = 0
    gone: str = ""


class SwitchDriver(Protocol):
    """One session. `open`, `subscribe` and `faults` may raise DriverError, LibraryError or HostError."""

    def open(self) -> str:
        """Find, load and initialise the library; its path."""

    def subscribe(self) -> None:
        """Ask for events."""

    def faults(self) -> tuple[SwitchRecord, ...]:
        """Every fault that is present."""

    def close(self) -> None:
        """End the session; never waits, may be called twice."""


ConnectSwitches = Callable[[Callable[[SwitchNews], None]], SwitchDriver]
"""Makes a new session that tells its news to the given callable (on a thread of its own)."""


@dataclass(frozen=True, slots=True)
class LingquSettings(LibrarySettings):
    """How the LingQu library is found and called."""


class HostedSwitches:
    """The library in a driver host. It is never closed in there: the process ends (lingqu-switch-faults 2.1)."""

    def __init__(self, settings: LingquSettings, reaper: Reaper, on_news: Callable[[SwitchNews], None]) -> None:
        self._settings = settings
        self._on_news = on_news
        self._host = DriverHost(
            HostSpec("lingqu", "nodeagent.drivers.lq_adapter:LqAdapter", settings.environment),
            reaper,
            self._events,
            self._gone,
        )

    @property
    def pid(self) -> int:
        """Process id of the driver host."""
        return self._host.pid

    def open(self) -> str:
        """Library search, dlopen, look-up of all three functions, init."""
        path = lingqu_path(self._settings)
        self._host.call("open", path, deadline_s=self._settings.init_deadline_s)
        self._host.call("init", deadline_s=self._settings.init_deadline_s)
        return path

    def subscribe(self) -> None:
        """Subscription without a filter."""
        self._host.call("subscribe", deadline_s=self._settings.call_deadline_s)

    def faults(self) -> tuple[SwitchRecord, ...]:
        """The library cuts its list without a word, so a full answer is asked for again with more room (3.2)."""
        listed = self._host.call("faults", FIRST_ROOM, deadline_s=self._settings.call_deadline_s)
        if len(listed) == FIRST_ROOM:
            listed = self._host.call("faults", MAX_ROOM, deadline_s=self._settings.call_deadline_s)
        return judge_faults(listed)

    def close(self) -> None:
        """Kill the child."""
        self._host.close()

    def _events(self, events: tuple[tuple[Any, ...], ...], dropped: int) -> None:
        self._on_news(SwitchNews(tuple(SwitchEvent(record_of(e), int(e[9])) for e in events), dropped))

    def _gone(self, reason: str) -> None:
        self._on_news(SwitchNews(gone=reason))


def record_of(plain: Any) -> SwitchRecord:
    """A record from the adapter's numbers, as the library gave them."""
    return SwitchRecord(*(int(n) for n in plain[:9]))


def judge_faults(listed: list[list[int]]) -> tuple[SwitchRecord, ...]:
    """The faults of an answer, in its order: records that say recovery are none (D8)."""
    return tuple(record for record in map(record_of, listed) if record.assertion != RECOVERY)


def lingqu_path(settings: LingquSettings) -> str:
    """Where the library lies; see `LibrarySettings.path`."""
    return settings.path(LINGQU_FILE_NAME, setting="switches.library")
