"""How a publisher is to write its object, and how that stands."""

from dataclasses import dataclass

from nodeagent.publish.other_writer import WriterGuard


@dataclass(frozen=True, slots=True)
class Manner:
    """How objects are written. shadow: to the name that no consumer sees. guard: looks for other writers, None =
    there can be none."""

    shadow: bool = False
    guard: WriterGuard | None = None


@dataclass(frozen=True, slots=True)
class PublisherStatus:
    """How publishing stands.

    pending: something is not yet acknowledged. waits_for: the program that writes our object, while we wait for it
    to go; empty = none.
    """

    pending: bool
    acknowledged_generation: int | None
    failures: int
    problem: str
    waits_for: str = ""
