"""Driver sessions as the chip source sees them: the one in use, and the one that it replaces.

A session that is being replaced keeps delivering events until its successor has subscribed.
"""

from dataclasses import dataclass, field

from nodeagent.drivers.chips import ChipDriver, DriverNews


@dataclass(slots=True, eq=False)
class Session:
    """A driver session and what it has told so far.

    driver: None until it is open. dropped: events that its ring lost. early: news from before it was known to be open.
    """

    driver: ChipDriver | None = None
    dropped: int = 0
    early: list[DriverNews] = field(default_factory=list)

    def close(self) -> None:
        """End it, if it was ever open; never waits."""
        if self.driver is not None:
            self.driver.close()


class Sessions:
    """What the source's loop has open. current: for calls and events. retiring: for events only."""

    def __init__(self) -> None:
        self.current: Session | None = None
        self.retiring: Session | None = None

    def replace(self, successor: Session | None, *, subscribed: bool) -> None:
        """Make calls on another session, or on none.

        subscribed: the one in use has events to give meanwhile. One that has not must not push out one that has.
        """
        if subscribed:
            self.retire()
            self.retiring = self.current
        elif self.current is not None:
            self.current.close()
        self.current = successor

    def retire(self) -> None:
        """The successor is complete: end the session it replaced."""
        if self.retiring is not None:
            self.retiring.close()
        self.retiring = None

    def close(self) -> None:
        """End both."""
        for session in (self.current, self.retiring):
            if session is not None:
                session.close()
        self.current = self.retiring = None
