"""The gate between a source and the driver: shut for a driver upgrade, so that nothing keeps the library open.

Sessions that the source's loop does not know (yet) are entered here: one that is being opened, a probe. Shutting
ends them at once, from any thread, also while the loop is busy; the loop ends its own when it sees that the gate was
shut since it last looked.
"""

import threading
from collections.abc import Callable
from typing import Protocol

from nodeagent.core.errors import HostError


class Session(Protocol):
    """What a gate needs of a driver session."""

    def close(self) -> None:
        """End the session; never waits, may be called twice."""


class Gate:
    """Open at first. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shut = False
        self._times_shut = 0
        self._entered: list[Session] = []
        self._times_followed = 0
        self._holding = False

    def follow(self, let_go: Callable[[], None], resume: Callable[[], None]) -> None:
        """What the loop does before it takes anything in. let_go: end its sessions, as the gate was shut since the
        last time, be it open again by now. resume: the gate is open again, and the loop had let go."""
        shut, times = self._look()
        if times != self._times_followed:
            let_go()
            self._holding, self._times_followed = True, times
        if self._holding and not shut:
            self._holding = False
            resume()

    @property
    def held(self) -> bool:
        """The gate is shut and the loop has let go."""
        return self._look() == (True, self._times_followed)

    def _look(self) -> tuple[bool, int]:
        with self._lock:
            return self._shut, self._times_shut

    def shut(self) -> None:
        """End every session that was entered and let no further one in. Shut already: no effect."""
        with self._lock:
            if self._shut:
                return
            self._shut = True
            self._times_shut += 1
            sessions = list(self._entered)
        for session in sessions:
            session.close()

    def open(self) -> None:
        """Let sessions in again."""
        with self._lock:
            self._shut = False

    def enter(self, session: Session) -> None:
        """Before the library is loaded in a session. Raises HostError while the gate is shut."""
        with self._lock:
            if self._shut:
                raise HostError("the driver is released for an upgrade")
            self._entered.append(session)

    def leave(self, session: Session) -> None:
        """The session has ended, or the loop knows it now. May be called for one that never entered."""
        with self._lock:
            if session in self._entered:
                self._entered.remove(session)

    def look(self) -> tuple[bool, int]:
        """Whether it is shut, and how often it was: a loop that knew another number has sessions to end."""
        return self._look()
