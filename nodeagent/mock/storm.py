"""A storm of fault events with an exact number of events and an exact end state."""

from collections.abc import Iterator
from dataclasses import dataclass

_BATCH_MS = 5
"""Events are sent in batches this far apart; finer steps would only cost wake-ups."""


@dataclass(frozen=True, slots=True)
class StormStep:
    """One event of a storm: an occurrence or a recovery."""

    logic_id: int
    code: int
    occurs: bool


class Storm:
    """`events_per_s` × `seconds` events, rounded to whole rounds.

    A round raises each code on each chip once, or clears each once; rounds alternate, beginning with a raise.
    The number of rounds is the one nearest to the wanted number of events (at least one) that ends the wanted way:
    all codes cleared, or all raised with `leave_raised`. So `total` is known at the start and so is the end.
    """

    def __init__(
        self,
        start_ms: int,
        events_per_s: float,
        seconds: float,
        chips: tuple[int, ...],
        codes: tuple[int, ...],
        leave_raised: bool,
    ) -> None:
        self._pairs = tuple((chip, code) for code in codes for chip in chips)
        self._start_ms = start_ms
        self._events_per_ms = events_per_s / 1000
        last = 1 if leave_raised else 0
        pairs_of_rounds = (events_per_s * seconds / len(self._pairs) - last) / 2
        rounds = max(1 - last, round(pairs_of_rounds)) * 2 + last
        self.total = rounds * len(self._pairs)
        self.sent = 0

    @property
    def finished(self) -> bool:
        """Whether all events were sent."""
        return self.sent >= self.total

    def due(self, now_ms: int) -> Iterator[StormStep]:
        """The steps that should have happened by `now_ms` and did not yet."""
        want = min(self.total, int((now_ms - self._start_ms) * self._events_per_ms))
        while self.sent < want:
            round_number, place = divmod(self.sent, len(self._pairs))
            self.sent += 1
            chip, code = self._pairs[place]
            yield StormStep(chip, code, round_number % 2 == 0)

    def wait_ms(self, now_ms: int) -> int:
        """Milliseconds until the next batch is due, at least 1."""
        next_ms = self._start_ms + int((self.sent + 1) / self._events_per_ms) + 1
        return max(_BATCH_MS, next_ms - now_ms)
