"""Is the daemon healthy, is it ready: pure verdicts on a snapshot, each with a name.

Unhealthy is what a restart of the daemon would mend, and nothing else: a driver that hangs, an API server that is
away and bad configuration are reported elsewhere, because a restart would only hide them (lesson 37). Ready is a
daemon whose first complete query was done and published (decision 4).
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

BEAT_LIMIT_S = 60.0
"""Both loops pass at least every ten seconds; six missed in a row are a loop that is stuck."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the verdicts are made from, taken at one moment.

    beat_age_s, board_beat_age_s: seconds since the last pass of the core loop and of that of node faults, 0 before the
    first. dead: supervised loops whose thread
    has ended although nobody stopped it. publisher_dead: likewise. driver_open: the driver has listed its chips.
    chips, unasked: how many there are, and how many have neither answered nor missed their deadline. complete: the
    first complete query is done. acknowledged: a target has had a view of this run. publish_problem: why the last
    write failed, if it did. other_writer: the program whose writes of our object keep us from writing, if one does.
    said: conditions that other parts hold, name to sentence.
    """

    beat_age_s: float = 0.0
    board_beat_age_s: float = 0.0
    dead: tuple[str, ...] = ()
    publisher_dead: bool = False
    driver_open: bool = False
    driver_problem: str = ""
    chips: int = 0
    unasked: int = 0
    complete: bool = False
    acknowledged: bool = False
    publish_problem: str = ""
    other_writer: str = ""
    said: Mapping[str, str] = field(default_factory=dict)


Verdict = Callable[[Snapshot], str]
"""What is wrong, in a few words; empty when nothing is."""


def core_beats(seen: Snapshot) -> str:
    """The core loop still turns."""
    if seen.beat_age_s <= BEAT_LIMIT_S:
        return ""
    return f"the core loop has not turned for {seen.beat_age_s:.0f} s"


def board_beats(seen: Snapshot) -> str:
    """The loop of node faults still turns."""
    if seen.board_beat_age_s <= BEAT_LIMIT_S:
        return ""
    return f"the loop of node faults has not turned for {seen.board_beat_age_s:.0f} s"


def loops_live(seen: Snapshot) -> str:
    """Every supervised loop has a thread."""
    return f"the thread has ended of {', '.join(seen.dead)}" if seen.dead else ""


def publisher_lives(seen: Snapshot) -> str:
    """The publisher has a thread once it was started."""
    return "its thread has ended" if seen.publisher_dead else ""


def chips_asked(seen: Snapshot) -> str:
    """Every chip has answered or missed its deadline once."""
    if seen.complete:
        return ""
    if not seen.driver_open:
        return "the driver is not open" + (f": {seen.driver_problem}" if seen.driver_problem else " yet")
    return f"{seen.unasked} of {seen.chips} not asked yet"


def published(seen: Snapshot) -> str:
    """A target has acknowledged a view of this run; a write that fails later is no reason against readiness."""
    if seen.acknowledged:
        return ""
    if seen.other_writer:
        return f"waits for the end of another writer of the object: {seen.other_writer}"
    return "not acknowledged" + (f": {seen.publish_problem}" if seen.publish_problem else " yet")


HEALTHY: Mapping[str, Verdict] = {
    "core": core_beats,
    "board": board_beats,
    "loops": loops_live,
    "publisher": publisher_lives,
}
READY: Mapping[str, Verdict] = {"chips": chips_asked, "publish": published}


def unhealthy(seen: Snapshot) -> list[str]:
    """`name: problem` for each thing that a restart would mend."""
    return _problems(HEALTHY, seen)


def not_ready(seen: Snapshot) -> list[str]:
    """`name: reason` for everything that stands between the start and the first publication."""
    return _problems(READY, seen) + [f"{name}: {sentence}" for name, sentence in sorted(seen.said.items())]


def _problems(verdicts: Mapping[str, Verdict], seen: Snapshot) -> list[str]:
    return [f"{name}: {problem}" for name, verdict in verdicts.items() if (problem := verdict(seen))]


class Conditions:
    """Reasons against readiness that parts of the daemon hold, by name; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, str] = {}

    def hold(self, name: str, sentence: str) -> None:
        """Not ready because of this, until `clear`; a later sentence replaces the earlier one of the same name."""
        with self._lock:
            self._held[name] = " ".join(sentence.split())

    def clear(self, name: str) -> None:
        """This is no reason any more; nothing happens when it was none."""
        with self._lock:
            self._held.pop(name, None)

    def all(self) -> dict[str, str]:
        """What is held now."""
        with self._lock:
            return dict(self._held)
