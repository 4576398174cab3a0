"""What a watch does next: list, or watch from the last version, and after which pause. Pure (decision 26).

A watch goes on from its last `resourceVersion`; it lists again only after 410 or a broken stream. Every pause is drawn
at random below a bound, so that a fleet whose server was away does not come back in one moment.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from nodeagent.cluster.backoff import Backoff


class Action(Enum):
    """The next request."""

    LIST = "list"
    WATCH = "watch"


@dataclass(frozen=True, slots=True)
class Next:
    """action, after delay_ms milliseconds; version: to watch from, empty for a list."""

    action: Action
    delay_ms: int
    version: str = ""


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """In milliseconds. gone_ms, broken_ms: bounds of the pause after a 410 and after a stream that broke, though it had
    lived. settled_ms: a stream that lived this long was no failure.
    """

    gone_ms: int = 1000
    broken_ms: int = 2000
    settled_ms: int = 5000


class WatchPlan:
    """The course of one watch. draw: a random number from [0, 1)."""

    def __init__(self, draw: Callable[[], float], times: WatchTimes | None = None) -> None:
        self._draw = draw
        self._times = times or WatchTimes()
        self._version = ""
        self._backoff = Backoff(draw)
        self._delay_ms = 0

    @property
    def failures(self) -> int:
        """Failures in a row."""
        return self._backoff.failures

    def next(self) -> Next:
        """What to do now."""
        action = Action.WATCH if self._version else Action.LIST
        return Next(action, self._delay_ms, self._version)

    def listed(self, version: str) -> None:
        """A list succeeded; its version is where the watch begins. Failures are forgotten when the watch lives."""
        self._version = version
        self._delay_ms = 0

    def event(self, version: str) -> None:
        """An event or bookmark with this version came."""
        if version:
            self._version = version

    def ended(self, lived_ms: int) -> None:
        """The server ended the watch properly, as it does every hour."""
        self._settle(lived_ms, 0)

    def broke(self, lived_ms: int) -> None:
        """The stream broke off, fell silent, or could not be understood: what was missed is found by a list."""
        self._version = ""
        self._settle(lived_ms, self._times.broken_ms)

    def gone(self, lived_ms: int) -> None:
        """410: the version is too old."""
        self._version = ""
        self._settle(lived_ms, self._times.gone_ms)

    def failed(self, status: int, retry_after_s: float) -> None:
        """A request was refused (status) or not answered (0)."""
        self._delay_ms = int(self._backoff.failed(status, retry_after_s) * 1000)

    def _settle(self, lived_ms: int, bound_ms: int) -> None:
        if lived_ms < self._times.settled_ms:
            self._delay_ms = int(self._backoff.failed() * 1000)
            return
        self._backoff.succeeded()
        self._delay_ms = int(self._draw() * bound_ms)
