"""Every metric of the daemon, declared once with kind, labels and help, and the registry that holds their values.

`/metrics` prints them with the prefix `nodeagent_` (nodeagent.daemon.exposition); the log shows them now and then
(`summary`).
"""

import threading
from dataclasses import dataclass, field, replace
from enum import Enum

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
"""Upper bounds of a histogram's buckets, seconds, where its declaration names none."""
_CALL_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0)
_FAULT_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 5.0, 30.0, 300.0, 1800.0)


class Kind(Enum):
    """Kinds of metrics in the words of the Prometheus text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One metric: kind, one sentence, label names in order; for a histogram the upper bounds of its buckets."""

    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = BUCKETS_S


_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
DECLARED: dict[str, Declaration] = {
    "api_credentials_reloaded_total": Declaration(_C, "Requests refused with 401, repeated with the token read anew."),
    "api_request_bytes_total": Declaration(_C, "Bytes of request bodies to the API server.", ("object",)),
    "api_request_seconds": Declaration(_H, "Requests to the API server; of a watch its opening.", ("object", "verb")),
    "api_requests_total": Declaration(
        _C, "Requests to the API server by object, verb and status (`none` = no answer).", ("object", "verb", "code")
    ),
    "api_response_bytes_total": Declaration(_C, "Bytes of answers from the API server.", ("object",)),
    "build_info": Declaration(_G, "1, with the version of nodeagent.", ("version",)),
    "chip_last_answer_seconds": Declaration(_G, "Unix time of the last successful full query of a chip.", ("chip",)),
    "chip_silent": Declaration(_G, "1 while a chip gives no usable answer.", ("chip", "device")),
    "chip_unhealthy": Declaration(_G, "1 while a chip must be avoided on a plane.", ("chip", "device", "plane")),
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
    "cpu_seconds_total": Declaration(_C, "Processor time of the daemon and of its children.", ("process",)),
    "discarded_events_total": Declaration(_C, "Events that do not apply to this product."),
    "driver_calls_total": Declaration(_C, "Driver calls by name and kind of answer.", ("call", "result")),
    "driver_call_seconds": Declaration(
        _H, "Duration of driver calls, those without an answer included.", ("call",), _CALL_BUCKETS_S
    ),
    "driver_deadlines_missed_total": Declaration(_C, "Driver calls that did not return in time.", ("call",)),
    "driver_events_total": Declaration(_C, "Fault events taken from the driver."),
    "driver_release_end_timestamp_seconds": Declaration(_G, "Unix time at which a driver release ends; 0 without one."),
    "driver_released": Declaration(_G, "1 while the driver is released for an upgrade and nothing new is seen."),
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
    "fault_acknowledged_seconds": Declaration(
        _H, "From the driver's stamp of a fault to the acknowledged write that shows it.", (), _FAULT_BUCKETS_S
    ),
    "faults": Declaration(_G, "Active fault codes by level.", ("level",)),
    "gateway_calls_total": Declaration(_C, "Gateway samples by kind of answer.", ("result",)),
    "gateway_sessions_lost_total": Declaration(_C, "Gateway driver hosts that hung or ended."),
    "gateway_unsupported_chips": Declaration(_G, "Chips that are not asked because they have no gateway detection."),
    "http_listening": Declaration(_G, "1 while the HTTP endpoint listens, 0 while its port cannot be had."),
    "http_requests_total": Declaration(_C, "Answered HTTP requests by status code.", ("code",)),
    "link_queries_total": Declaration(_C, "Questions to hccn_tool by result.", ("result",)),
    "links_bad": Declaration(_G, "Chips whose link is bad by event, query or gateway."),
    "faults_suppressed": Declaration(_G, "Present fault codes that the site does not want reported."),
    "loop_restarts_total": Declaration(_C, "Restarts of a supervised loop after an unforeseen error.", ("loop",)),
    "missing_rights": Declaration(_G, "Rights at the API server that the start-up self-check found missing."),
    "node_object_synced": Declaration(_G, "1 while the node object has our labels and annotations."),
    "node_configuration_stale": Declaration(
        _G, "1 while older levels of node faults stay in force because the new are bad."
    ),
    "node_configuration_version_info": Declaration(
        _G, "1 for the levels of node faults in force, 0 for former.", ("version",)
    ),
    "notices_dropped_total": Declaration(_C, "Once-only codes that no target acknowledged in time."),
    "board_alarms": Declaration(_G, "Present alarms of the BMC, those that no table lists included."),
    "board_alarms_unlisted": Declaration(
        _G, "Present alarms of the BMC whose code no table lists; they are published nowhere."
    ),
    "board_stale": Declaration(_G, "1 after three failed polls of the BMC in a row: node faults may be out of date."),
    "ipmi_command_seconds": Declaration(
        _H, "Duration of commands to the BMC, those without an answer included.", (), _CALL_BUCKETS_S
    ),
    "ipmi_commands_total": Declaration(_C, "Commands to the BMC by kind of answer.", ("result",)),
    "ipmi_discarded_answers_total": Declaration(_C, "Late and foreign answers of the BMC that were thrown away."),
    "ipmi_polls_total": Declaration(_C, "Polls of the alarms of the BMC by result.", ("result",)),
    "node_faults": Declaration(_G, "Present node faults (codes of devices of the board) by level.", ("level",)),
    "node_unhealthy": Declaration(
        _G, "1 while node faults keep jobs off the node: status PreSeparate or UnHealthy.", ("status",)
    ),
    "public_fault_messages_total": Declaration(
        _C, "Public fault messages by sender and result.", ("resource", "result")
    ),
    "public_fault_waiting": Declaration(_G, "1 while a public fault message is not acknowledged.", ("resource",)),
    "storage_fault": Declaration(_G, "1 while a storage client has a fault.", ("client", "fault")),
    "storage_file_gone": Declaration(
        _G, "1 while the state file of a storage client, which was there, is gone.", ("client",)
    ),
    "storage_reads_total": Declaration(
        _C, "Readings of the state files of storage clients by result.", ("client", "result")
    ),
    "unlisted_alarms_total": Declaration(_C, "Alarms that appeared with a code in no table, by code.", ("code",)),
    "process_start_time_seconds": Declaration(_G, "Unix time at which the daemon was started."),
    "publish_foreign_changes_total": Declaration(_C, "Changes of our object by somebody else.", ("object",)),
    "publish_other_writer": Declaration(_G, "1 while somebody else writes our object.", ("object",)),
    "publish_last_success_timestamp_seconds": Declaration(_G, "Unix time of the last acknowledged write.", ("object",)),
    "publish_latency_seconds": Declaration(_H, "From a new view to its acknowledgement.", ("object",)),
    "publish_left_out_codes": Declaration(_G, "Fault codes cut from an object that was too large.", ("object",)),
    "publish_loop_errors_total": Declaration(_C, "Unforeseen errors of the publisher.", ("object",)),
    "publish_refused_total": Declaration(_C, "Objects that the contract self-check refused to send.", ("object",)),
    "publish_writes_total": Declaration(_C, "Writes by object and result.", ("object", "result")),
    "queue_depth": Declaration(_G, "Messages that wait in a queue.", ("queue",)),
    "ready": Declaration(_G, "1 when /readyz says so: every chip was asked and the result is published."),
    "resident_memory_bytes": Declaration(_G, "Resident memory of the daemon and of its children.", ("process",)),
    "shadow_comparable": Declaration(
        _G,
        "1 while shadow mode knows both objects, 0 while one of them cannot be read.",
    ),
    "shadow_difference_seconds_total": Declaration(
        _C, "Seconds with a settled difference between the live object and ours, by kind.", ("kind",)
    ),
    "shadow_differences": Declaration(
        _G, "Settled differences between the live object and ours now, by kind; only in shadow mode.", ("kind",)
    ),
    "source_last_success_timestamp_seconds": Declaration(
        _G, "Unix time at which a source last learned something.", ("source",)
    ),
    "state_file_errors_total": Declaration(_C, "Failed reads and writes of the state file."),
    "switch_chips_unhealthy": Declaration(_G, "Switch chips with a fault, or a plane that is down, that separates."),
    "switch_faults": Declaration(_G, "Present faults of LingQu switches by level.", ("level",)),
    "switch_faults_unlisted": Declaration(_G, "Those of them whose code no table lists."),
    "switch_odd_records_total": Declaration(_C, "Records of switches with numbers or times out of range."),
    "switches_known": Declaration(_G, "1 while something is known of the LingQu switches of the node."),
    "switches_silent": Declaration(_G, "1 while queries of the LingQu library fail."),
    "switch_events_total": Declaration(_C, "Events taken from the switch library."),
    "switch_queries_total": Declaration(_C, "Queries of switch faults by kind of answer.", ("result",)),
    "switch_ring_dropped_total": Declaration(_C, "Switch events lost because the ring was full."),
    "switch_sessions_lost_total": Declaration(_C, "Driver hosts of the switch library that hung or ended."),
    "switch_subscribed": Declaration(_G, "1 while switch events are subscribed."),
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
"""Names and values of labels, by name."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with the values it has now, by labels; a histogram's are in `histograms`."""

    declared: Declaration
    values: dict[Labels, float] = field(default_factory=dict)
    histograms: dict[Labels, Histogram] = field(default_factory=dict)


class Registry:
    """Values of the declared metrics; safe from any thread. An undeclared name or label is a KeyError."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[tuple[str, Labels], float] = {}
        self._histograms: dict[tuple[str, Labels], Histogram] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
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
            bounds = DECLARED[name].buckets
            histogram = self._histograms.setdefault(key, Histogram([0] * (len(bounds) + 1)))
            slot = next((i for i, bound in enumerate(bounds) if value <= bound), len(bounds))
            histogram.buckets[slot] += 1
            histogram.total += value
            histogram.count += 1

    def value(self, name: str, **labels: str) -> float:
        """Present value of a counter or gauge; 0 when it was never touched."""
        with self._lock:
            return self._values.get((name, tuple(sorted(labels.items()))), 0)

    def families(self) -> dict[str, Family]:
        """What there is now of every declared metric, by name in alphabetical order; a copy."""
        found = {name: Family(DECLARED[name]) for name in sorted(DECLARED)}
        with self._lock:
            for (name, labels), value in self._values.items():
                found[name].values[labels] = value
            for (name, labels), histogram in self._histograms.items():
                found[name].histograms[labels] = replace(histogram, buckets=list(histogram.buckets))
        return found

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
