"""Every metric of the daemon, declared once with kind, labels and help, and the registry that holds their values.

The HTTP endpoint will print them; until then they show in the log (`summary`).
"""

import threading
from dataclasses import dataclass
from enum import Enum

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
"""Upper bounds of the latency histograms, seconds."""


class Kind(Enum):
    """Kinds of metrics in the words of the Prometheus text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One metric: kind, label names in order, one sentence."""

    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
DECLARED: dict[str, Declaration] = {
    "api_credentials_reloaded_total": Declaration(_C, "Requests refused with 401, repeated with the token read anew."),
    "api_request_bytes_total": Declaration(_C, "Bytes of request bodies to the API server.", ("object",)),
    "api_request_seconds": Declaration(_H, "Requests to the API server; of a watch its opening.", ("object", "verb")),
    "api_requests_total": Declaration(
        _C, "Requests to the API server by object, verb and status (`none` = no answer).", ("object", "verb", "code")
    ),
    "api_response_bytes_total": Declaration(_C, "Bytes of answers from the API server.", ("object",)),
    "chip_last_answer_seconds": Declaration(_G, "Unix time of the last successful full query of a chip.", ("chip",)),
    "chips": Declaration(_G, "Chips of the node."),
    "chips_in_use": Declaration(_G, "Chips that pods of this node use."),
    "chips_silent": Declaration(_G, "Chips that give no usable answer."),
    "chips_unhealthy": Declaration(_G, "Chips that must be avoided, by plane.", ("plane",)),
    "conditions_written_total": Declaration(
        _C, "Requests about node conditions: ok (written), read, failed (tried again).", ("result",)
    ),
    "configuration_rejected_total": Declaration(
        _C, "Contents of tables and rules that were refused: a whole configuration, or groups of rules.", ("what",)
    ),
    "configuration_stale": Declaration(_G, "1 while older tables and rules stay in force because the new are bad."),
    "configuration_version_info": Declaration(_G, "1 for the tables and rules in force, 0 for former.", ("version",)),
    "core_loop_batch": Declaration(_G, "Observations taken in by the last step."),
    "core_step_seconds": Declaration(_H, "Duration of one policy step."),
    "discarded_events_total": Declaration(_C, "Events that do not apply to this product."),
    "driver_calls_total": Declaration(_C, "Driver calls by name and kind of answer.", ("call", "result")),
    "driver_events_total": Declaration(_C, "Fault events taken from the driver."),
    "driver_ring_dropped_total": Declaration(_C, "Fault events lost because the ring was full."),
    "driver_sessions_lost_total": Declaration(_C, "Driver hosts that hung or ended."),
    "driver_subscribed": Declaration(_G, "1 while fault events are subscribed."),
    "events_dropped_total": Declaration(
        _C, "Events that the API server refused or that waited too long for it, by reason.", ("reason",)
    ),
    "events_merged_total": Declaration(_C, "Events told within another Event of the API server.", ("reason",)),
    "events_sent_total": Declaration(
        _C, "Event objects by result: ok, failed (tried again), refused and expired (both dropped).", ("result",)
    ),
    "events_total": Declaration(_C, "Events told to people, by reason.", ("reason",)),
    "faults": Declaration(_G, "Active fault codes by level.", ("level",)),
    "gateway_calls_total": Declaration(_C, "Gateway samples by kind of answer.", ("result",)),
    "gateway_sessions_lost_total": Declaration(_C, "Gateway driver hosts that hung or ended."),
    "gateway_unsupported_chips": Declaration(_G, "Chips that are not asked because they have no gateway detection."),
    "link_queries_total": Declaration(_C, "Questions to hccn_tool by result.", ("result",)),
    "links_bad": Declaration(_G, "Chips whose link is bad by event, query or gateway."),
    "faults_suppressed": Declaration(_G, "Present fault codes that the site does not want reported."),
    "loop_restarts_total": Declaration(_C, "Restarts of a supervised loop after an unforeseen error.", ("loop",)),
    "notices_dropped_total": Declaration(_C, "Once-only codes that no target acknowledged in time."),
    "publish_foreign_changes_total": Declaration(_C, "Changes of our object by somebody else.", ("object",)),
    "publish_other_writer": Declaration(_G, "1 while somebody else writes our object.", ("object",)),
    "publish_last_success_timestamp_seconds": Declaration(_G, "Unix time of the last acknowledged write.", ("object",)),
    "publish_latency_seconds": Declaration(_H, "From a new view to its acknowledgement.", ("object",)),
    "publish_left_out_codes": Declaration(_G, "Fault codes cut from an object that was too large.", ("object",)),
    "publish_loop_errors_total": Declaration(_C, "Unforeseen errors of the publisher.", ("object",)),
    "publish_refused_total": Declaration(_C, "Objects that the contract self-check refused to send.", ("object",)),
    "publish_writes_total": Declaration(_C, "Writes by object and result.", ("object", "result")),
    "state_file_errors_total": Declaration(_C, "Failed reads and writes of the state file."),
    "watch_restarts_total": Declaration(
        _C, "Watches begun anew: ended by the server, broken, gone (410), refused, no_answer.", ("object", "why")
    ),
    "unattributed_events_total": Declaration(_C, "Events that belong to no chip of the node or carry no code."),
    "unknown_codes_total": Declaration(_C, "Occurrences of codes that no table lists.", ("code",)),
}


@dataclass(slots=True)
class Histogram:
    """Counts per bucket (the last one is +Inf), sum and number of the samples."""

    buckets: list[int]
    total: float = 0.0
    count: int = 0


Labels = tuple[tuple[str, str], ...]


class Registry:
    """Values of the declared metrics; safe from any thread. An undeclared name or label is a KeyError."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[tuple[str, Labels], float] = {}
        self._histograms: dict[tuple[str, Labels], Histogram] = {}

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        key = _key(name, labels, Kind.COUNTER)
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        key = _key(name, labels, Kind.GAUGE)
        with self._lock:
            self._values[key] = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a sample to a histogram."""
        key = _key(name, labels, Kind.HISTOGRAM)
        with self._lock:
            histogram = self._histograms.setdefault(key, Histogram([0] * (len(BUCKETS_S) + 1)))
            slot = next((i for i, bound in enumerate(BUCKETS_S) if value <= bound), len(BUCKETS_S))
            histogram.buckets[slot] += 1
            histogram.total += value
            histogram.count += 1

    def value(self, name: str, **labels: str) -> float:
        """Present value of a counter or gauge; 0 when it was never touched."""
        with self._lock:
            return self._values.get((name, tuple(sorted(labels.items()))), 0)

    def summary(self) -> str:
        """All values that are not zero, as `name{label=value}=number`, for one log line."""
        with self._lock:
            lines = [_shown(name, labels, value) for (name, labels), value in self._values.items() if value]
            for (name, labels), histogram in self._histograms.items():
                mean_ms = histogram.total / histogram.count * 1000
                lines.append(f"{_shown(name, labels, histogram.count)} mean_ms={mean_ms:.2f}")
        return " ".join(sorted(lines))


def _key(name: str, labels: dict[str, str], kind: Kind) -> tuple[str, Labels]:
    declared = DECLARED[name]
    if declared.kind is not kind or set(labels) != set(declared.labels):
        raise KeyError(f"{name} is a {declared.kind.value} with labels {declared.labels}, not {sorted(labels)}")
    return name, tuple(sorted(labels.items()))


def _shown(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f"{k}={v}" for k, v in labels)
    return f"{name}{{{inside}}}={value:g}" if inside else f"{name}={value:g}"
