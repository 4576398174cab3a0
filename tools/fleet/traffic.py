"""What a fleet asked of the API server: counted where the real client and the real publisher count."""

import threading
from collections import Counter
from dataclasses import dataclass

from nodeagent.core.clock import monotonic_s
from nodeagent.core.telemetry import NullTelemetry

NO_ANSWER = "none"
_REFUSED_LATER = "429"
_CONFLICT = "409"


@dataclass(frozen=True, slots=True)
class Span:
    """What happened between two moments. Requests by status; bytes of bodies, without headers and TLS.

    per_second, unanswered_per_second: requests with and without an answer, by second since the beginning of the span.
    seconds_each: duration of each write (`update`), seconds.
    """

    seconds: float
    by_code: Counter[str]
    sent_bytes: int
    received_bytes: int
    failed_writes: int
    per_second: Counter[int]
    unanswered_per_second: Counter[int]
    seconds_each: tuple[float, ...]

    @property
    def answered(self) -> int:
        """Requests with an answer, whatever it was."""
        return sum(count for code, count in self.by_code.items() if code != NO_ANSWER)

    @property
    def written(self) -> int:
        """Requests that were answered with success."""
        return sum(count for code, count in self.by_code.items() if code.startswith("2"))

    @property
    def told_to_wait(self) -> int:
        """Answers of status 429."""
        return self.by_code[_REFUSED_LATER]

    @property
    def conflicts(self) -> int:
        """Answers of status 409."""
        return self.by_code[_CONFLICT]

    @property
    def unanswered(self) -> int:
        """Requests without an answer."""
        return self.by_code[NO_ANSWER]

    def peak_per_s(self, first_s: int = 10**9) -> int:
        """Most answers within one second, among the first `first_s`."""
        return max((n for second, n in self.per_second.items() if second < first_s), default=0)


class Traffic(NullTelemetry):
    """Takes the metrics of all clients and publishers of a fleet; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._began_s = monotonic_s()
        self._by_code: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._failed = 0
        self._per_second: Counter[int] = Counter()
        self._unanswered_per_second: Counter[int] = Counter()
        self._seconds: list[float] = []

    def begin(self) -> None:
        """A new span begins; what was counted before is forgotten."""
        with self._lock:
            self._begin()

    def span(self) -> Span:
        """What happened since `begin`."""
        with self._lock:
            return Span(
                monotonic_s() - self._began_s,
                Counter(self._by_code),
                self._bytes["api_request_bytes_total"],
                self._bytes["api_response_bytes_total"],
                self._failed,
                Counter(self._per_second),
                Counter(self._unanswered_per_second),
                tuple(self._seconds),
            )

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """A counter of the client or of a publisher; those that are not needed here are passed over."""
        with self._lock:
            if name == "api_requests_total":
                self._by_code[labels["code"]] += amount
                answered = labels["code"] != NO_ANSWER
                seconds = self._per_second if answered else self._unanswered_per_second
                seconds[int(monotonic_s() - self._began_s)] += amount
            elif name.startswith("api_") and name.endswith("_bytes_total"):
                self._bytes[name] += amount
            elif name == "publish_writes_total" and labels["result"] == "failed":
                self._failed += amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        """A sample of a histogram; only the duration of writes is kept."""
        if name == "api_request_seconds" and labels["verb"] == "update":
            with self._lock:
                self._seconds.append(value)
