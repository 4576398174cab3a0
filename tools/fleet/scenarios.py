"""What a fleet goes through: rest, a storm of faults, a restart of the API server. Each gives figures."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleet.fleet_of_nodes import Fleet
from fleet.node import CHIPS
from fleet.server import Server
from fleet.traffic import NO_ANSWER, Span, Traffic
from nodeagent.core.clock import monotonic_s

FIRST_S = 30
"""After an outage the request rate is looked at for so long (the cap of the back-off, decision 26)."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Scene:
    """What every scenario needs. say: shows progress."""

    fleet: Fleet
    traffic: Traffic
    server: Server
    say: Say


@dataclass(frozen=True, slots=True)
class Grown:
    """New nodes came up: each read its object, then created it."""

    scenario: str
    nodes: int
    new: int
    seconds: float
    requests_per_s: float


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing happens; each node refreshes its object once in `refresh_s`. CPU in percent of one core."""

    scenario: str
    nodes: int
    seconds: float
    refresh_s: float
    requests: int
    requests_per_s: float
    expected_per_s: float
    sent_bytes_per_s: float
    received_bytes_per_s: float
    write_median_ms: float
    write_p99_ms: float
    cpu_api_server_percent: float
    cpu_etcd_percent: float
    cpu_fleet_percent: float
    api_server_rss_mib: float
    other_answers: dict[str, int]


@dataclass(frozen=True, slots=True)
class Storm:
    """Faults come and go on every node. settled_s: from the end of the storm until the last node is acknowledged.

    retries: attempts that failed and were repeated. wrong: nodes
    whose object in the cluster differs from their last report.
    """

    scenario: str
    nodes: int
    seconds: float
    transitions: int
    writes: int
    writes_per_node: float
    requests_per_s: float
    peak_per_s: int
    settled_s: float
    last_change_median_ms: float
    last_change_p99_ms: float
    told_to_wait: int
    conflicts: int
    retries: int
    cpu_api_server_percent: float
    cpu_etcd_percent: float
    cpu_fleet_percent: float
    wrong: int


@dataclass(frozen=True, slots=True)
class Restart:
    """The API server is killed, every node changes while it is away, the server is started again.

    back_s: from its start until it took the first write. settled_s, settled_median_s: from then until the last node,
    and half of them, are acknowledged. peak_per_s: most answered requests within one second of the first FIRST_S after
    the start; answers: by status, after the start. tries: attempts while it was away.
    """

    scenario: str
    nodes: int
    outage_s: float
    back_s: float
    settled_s: float
    settled_median_s: float
    peak_per_s: int
    tries: int
    tries_peak_per_s: int
    answers: dict[str, int]
    retries: int
    wrong: int


def grow(scene: Scene, count: int) -> Grown:
    """Let the fleet have `count` nodes."""
    new = count - len(scene.fleet.nodes)
    scene.traffic.begin()
    scene.fleet.grow(count)
    scene.fleet.settle(scene.say)
    span = scene.traffic.span()
    return Grown("first writes", count, new, span.seconds, span.answered / span.seconds)


def rest(scene: Scene, seconds: float, refresh_s: float) -> Rest:
    """Watch the fleet for a while."""
    scene.fleet.spread()
    time.sleep(2)  # those whose refresh fell due by the spreading
    scene.traffic.begin()
    with scene.server.cpu() as cpu:
        _pass(scene.say, seconds, "at rest")
    span = scene.traffic.span()
    nodes = len(scene.fleet.nodes)
    return Rest(
        "rest",
        nodes,
        span.seconds,
        refresh_s,
        span.answered,
        span.answered / span.seconds,
        nodes / refresh_s,
        span.sent_bytes / span.seconds,
        span.received_bytes / span.seconds,
        1000 * _median(span.seconds_each),
        1000 * _p99(span.seconds_each),
        cpu.api_server_percent,
        cpu.etcd_percent,
        cpu.own_percent,
        scene.server.rss_mib(),
        {code: n for code, n in span.by_code.items() if code != "200"},
    )


def storm(scene: Scene, seconds: float, each: int) -> Storm:
    """`each` transitions on every node, at random moments within `seconds`."""
    fleet, draw = scene.fleet, random.Random(each)
    plan = sorted((draw.uniform(0, seconds), number) for number in range(len(fleet.nodes)) for _ in range(each))
    scene.traffic.begin()
    with scene.server.cpu() as cpu:
        ended_s = _play(scene, plan, seconds, draw, "storm")
        fleet.settle(scene.say)
    span = scene.traffic.span()
    settled = fleet.settled().values()
    waits_ms = [1000 * (acknowledged - reported) for reported, acknowledged in settled]
    return Storm(
        "storm",
        len(fleet.nodes),
        seconds,
        len(plan),
        span.written,
        span.written / len(fleet.nodes),
        span.answered / span.seconds,
        span.peak_per_s(),
        max(0.0, max(acknowledged for _, acknowledged in settled) - ended_s),
        _median(waits_ms),
        _p99(waits_ms),
        span.told_to_wait,
        span.conflicts,
        span.failed_writes,
        cpu.api_server_percent,
        cpu.etcd_percent,
        cpu.own_percent,
        _wrong(scene),
    )


def restart(scene: Scene, outage_s: float) -> Restart:
    """Kill the API server; one transition on every node while it is away; start it again."""
    fleet, draw = scene.fleet, random.Random(7)
    plan = sorted((draw.uniform(0, outage_s), number) for number in range(len(fleet.nodes)))
    scene.server.kill()
    scene.traffic.begin()
    _play(scene, plan, outage_s, draw, "outage")
    away = scene.traffic.span()
    scene.traffic.begin()
    scene.say("the API server is started again")
    started_s = monotonic_s()
    scene.server.start()
    fleet.settle(scene.say)
    after = scene.traffic.span()
    acknowledged_s = sorted(acknowledged for _, acknowledged in fleet.settled().values())
    first_s = acknowledged_s[0]
    return Restart(
        "restart",
        len(fleet.nodes),
        outage_s,
        first_s - started_s,
        acknowledged_s[-1] - first_s,
        _median(acknowledged_s) - first_s,
        after.peak_per_s(FIRST_S),
        away.unanswered,
        max(away.unanswered_per_second.values(), default=0),
        _answers(after),
        away.failed_writes + after.failed_writes,
        _wrong(scene),
    )


def _play(scene: Scene, plan: Sequence[tuple[float, int]], seconds: float, draw: random.Random, what: str) -> float:
    """Let a random chip of these nodes change at these seconds from now; returns the moment of the end."""
    began_s = monotonic_s()
    for at_s, number in plan:
        if (left_s := began_s + at_s - monotonic_s()) > 0:
            scene.say(f"{what}: {at_s:.0f} of {seconds:.0f} s, {scene.fleet.waiting} nodes wait")
            time.sleep(left_s)
        scene.fleet.report(number, draw.randrange(CHIPS))
    _pass(scene.say, began_s + seconds - monotonic_s(), what)
    return monotonic_s()


def _pass(say: Say, seconds: float, what: str) -> None:
    end_s = monotonic_s() + seconds
    while (left_s := end_s - monotonic_s()) > 0:
        say(f"{what}: {left_s:.0f} s left")
        time.sleep(min(0.5, left_s))


def _wrong(scene: Scene) -> int:
    scene.say("reading what the cluster has")
    found = scene.server.devices_with_faults()
    return sum(found.get(name) != devices for name, devices in scene.fleet.expected().items())


def _answers(span: Span) -> dict[str, int]:
    return {code: n for code, n in sorted(span.by_code.items()) if code != NO_ANSWER}


def _median(samples: Sequence[float]) -> float:
    return statistics.median(samples) if samples else 0.0


def _p99(samples: Sequence[float]) -> float:
    return sorted(samples)[max(0, -(-len(samples) * 99 // 100) - 1)] if samples else 0.0
