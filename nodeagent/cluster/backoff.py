"""Growing pauses drawn at random, so that a fleet whose server was away does not come back in one moment. Pure."""

from collections.abc import Callable

from nodeagent.cluster.calls import FORBIDDEN


class Backoff:
    """Pauses after failures in a row. draw: a random number from [0, 1).

    base_s, cap_s: bound of the first pause, doubled by each further failure up to the cap (decision 26).
    forbidden_cap_s: the cap while a right is missing: somebody must grant it first.
    """

    def __init__(
        self, draw: Callable[[], float], base_s: float = 1.0, cap_s: float = 30.0, forbidden_cap_s: float = 300.0
    ) -> None:
        self._draw = draw
        self._base_s = base_s
        self._cap_s = cap_s
        self._forbidden_cap_s = forbidden_cap_s
        self.failures = 0

    def failed(self, status: int = 0, retry_after_s: float = 0.0) -> float:
        """One more failure; the seconds to wait.

        status: of the refusal, 0 = no answer. retry_after_s: what the server wants, a tenth is added at random.
        """
        chance = self._draw()
        cap_s = self._forbidden_cap_s if status == FORBIDDEN else self._cap_s
        bound_s = min(cap_s, self._base_s * float(1 << min(self.failures, 20)))
        self.failures += 1
        return max(chance * bound_s, retry_after_s * (1 + chance / 10))

    def succeeded(self) -> None:
        """The row of failures ends."""
        self.failures = 0
