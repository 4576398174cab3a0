"""Figures of a fleet for people and for machines."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from fleet.scenarios import FIRST_S, Grown, Rest, Restart, Storm

Result = Grown | Rest | Storm | Restart


def as_json(results: Sequence[Result]) -> str:
    """A list with one object for each scenario, in the order in which they were played."""
    return json.dumps([asdict(result) for result in results], indent=2)


def as_text(result: Result) -> str:
    """A few lines."""
    match result:
        case Grown():
            return (
                f"{result.nodes:>5} nodes  first writes: {result.new} new nodes, each one GET and one POST, in "
                f"{result.seconds:.1f} s ({result.requests_per_s:.0f} requests/s)"
            )
        case Rest():
            return _rest(result)
        case Storm():
            return _storm(result)
        case Restart():
            return _restart(result)


def _rest(r: Rest) -> str:
    others = f", other answers: {_counts(r.other_answers)}" if r.other_answers else ""
    return (
        f"{r.nodes:>5} nodes  at rest for {r.seconds:.0f} s, a refresh every {r.refresh_s:g} s: {r.requests} requests, "
        f"{r.requests_per_s:.2f}/s (expected {r.expected_per_s:.2f}), {r.sent_bytes_per_s / 1024:.1f} KiB/s sent, "
        f"{r.received_bytes_per_s / 1024:.1f} KiB/s received{others}\n"
        f"{'':13}PUT median {r.write_median_ms:.1f} ms, p99 {r.write_p99_ms:.1f} ms; CPU of API server "
        f"{r.cpu_api_server_percent:.1f} %, etcd {r.cpu_etcd_percent:.1f} %, fleet {r.cpu_fleet_percent:.1f} % of a "
        f"core; API server {r.api_server_rss_mib:.0f} MiB"
    )


def _storm(r: Storm) -> str:
    return (
        f"{r.nodes:>5} nodes  storm: {r.transitions} transitions in {r.seconds:.0f} s -> {r.writes} writes, "
        f"{r.writes_per_node:.1f} a node; {r.requests_per_s:.0f} requests/s, at most {r.peak_per_s} in a second\n"
        f"{'':13}all final states acknowledged {r.settled_s:.2f} s after its end (last change -> acknowledged: "
        f"median {r.last_change_median_ms:.0f} ms, p99 {r.last_change_p99_ms:.0f} ms)\n"
        f"{'':13}status 429: {r.told_to_wait}, 409: {r.conflicts}, attempts repeated: {r.retries}; "
        f"CPU of API server {r.cpu_api_server_percent:.0f} %, etcd {r.cpu_etcd_percent:.0f} %, fleet "
        f"{r.cpu_fleet_percent:.0f} % of a core; {_verdict(r.wrong)}"
    )


def _restart(r: Restart) -> str:
    return (
        f"{r.nodes:>5} nodes  API server killed, away for {r.outage_s:g} s while every node changes; takes the "
        f"first write {r.back_s:.1f} s after its start\n"
        f"{'':13}all final states acknowledged {r.settled_s:.1f} s later, half of them "
        f"{r.settled_median_s:.1f} s later\n"
        f"{'':13}at most {r.peak_per_s} requests in a second of the first {FIRST_S} s; answers {_counts(r.answers)}\n"
        f"{'':13}{r.tries} attempts while it was away, at most {r.tries_peak_per_s} in a second; attempts repeated: "
        f"{r.retries}; {_verdict(r.wrong)}"
    )


def _verdict(wrong: int) -> str:
    return f"{wrong} objects are WRONG in the cluster" if wrong else "all objects are right in the cluster"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{code}: {count}" for code, count in counts.items()) or "none"
