"""`make bench`: figures, not tests. Targets are those of docs/benchmarks.md; nothing fails when one is missed.

Usage: bench.py [latency] [api-latency] [api-requests] [step] [storm] [switch-latency] [switch-storm]
[board-latency] [start] [footprint] [kills]; without words all of them, about eleven minutes. The two of the API server
need a control plane (docs/testing.md) and are left out without.
"""

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from api_latency import api_latency
from api_requests import api_requests
from board import board_latency
from footprint import footprint
from rig import Inotify, last_words, p99, running, wait_for_file
from switches import switch_latency, switch_storm

from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId, Family, Inventory, Product
from nodeagent.core.observation import FaultOccurred, FaultRecovered, InventorySeen, Observation, SourceComplete
from nodeagent.policy.engine import step
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import NodeState
from nodeagent.sources.config_documents import shipped

SAMPLES = 500
KILLED_RUNS = 1000
STORM_RATE, STORM_S = 1000, 10
CODE = "80F78006"
"""A code without a rule, so that the thousandth occurrence costs what the first did."""


def latency() -> None:
    """Entry of the C callback -> file in place. Minimum distance of writes 20 ms, to gather samples (decision 32)."""
    with tempfile.TemporaryDirectory() as name, running(Path(name), **{"publish.min_distance_s": "0.02"}) as it:
        wait_for_file(it.object_file)
        watch, control = Inotify(it.object_file.parent), it.node.control()
        samples = []
        for number in range(SAMPLES):
            chip = number % 8
            time.sleep(0.03)
            (event,) = control.raise_fault(chip, CODE)
            seen = watch.wait(5)
            if seen is not None and event.callbacks:
                samples.append((seen - event.callbacks[0].mono_ns) / 1e6)
            time.sleep(0.03)
            control.clear_fault(chip, CODE)
            watch.wait(5)
    print(
        f"callback -> published file   n={len(samples)}  median {statistics.median(samples):.1f} ms"
        f"  p99 {p99(samples):.1f} ms  max {max(samples):.1f} ms   (targets 15 / 50 ms)"
    )


def policy_step() -> None:
    """Cost of one step against chips, active codes per chip, and events in the step."""
    config = shipped()
    print("policy step, one event       " + "".join(f"{n:>5} codes" for n in (1, 8, 32, 128)) + "   active per chip")
    for chips in (1, 8, 16, 64):
        costs = [_step_us(config, chips, codes, 1) for codes in (1, 8, 32, 128)]
        print(f"  {chips:>3} chips                  " + "".join(f"{c:>8.0f} us" for c in costs))
    base = _step_us(config, 16, 8, 10) / 10
    print("policy step, 16 chips        events in one step -> cost of each, and growth against 10")
    for events in (10, 100, 1000, 10000):
        each = _step_us(config, 16, 8, events) / events
        print(f"  {events:>6} events             {each:>8.2f} us each   x{each / base:.2f}")


def _step_us(config: Configuration, chips: int, codes: int, events: int) -> float:
    records = [r.code for r in config.table.records()][: codes + 8]
    ids = tuple(ChipId(i, i, i, 0) for i in range(chips))
    begin = Instant(0, 1_760_000_000_000)
    facts: list[Observation] = [InventorySeen(Inventory(Product(Family.A2, "x"), ids), begin), SourceComplete(begin)]
    facts += [FaultOccurred(i, code, None, begin) for i in range(chips) for code in records[:codes]]
    state = step(NodeState(), facts, begin, config).state
    spare = records[codes:]
    now = Instant(1000, 1_760_000_001_000)
    batch: list[Observation] = []
    for n in range(events):
        make = FaultRecovered if n // (chips * 8) % 2 else None
        chip, code = n % chips, spare[n // chips % 8]
        batch.append(make(chip, code, now) if make else FaultOccurred(chip, code, None, now))
    repeats = max(3, 2000 // events)
    began = time.perf_counter()
    for _ in range(repeats):
        step(state, batch, now, config)
    return (time.perf_counter() - began) / repeats * 1e6


def storm() -> None:
    """10,000 events in 10 s: writes, drops, and whether the end state is right."""
    with tempfile.TemporaryDirectory() as name, running(Path(name)) as it:
        wait_for_file(it.object_file)
        time.sleep(1.5)
        watch, control = Inotify(it.object_file.parent), it.node.control()
        control.raise_fault(7, "80E18402")
        before = sum(p.memory_info().rss for p in it.processes())
        sent = control.storm(STORM_RATE, STORM_S, codes=[CODE])
        writes = watch.count(STORM_S + 1)
        after = sum(p.memory_info().rss for p in it.processes())
        watch.count(4)  # recoveries may wait for their re-check, the write for its second
        found = {(f.device, f.code_text) for f in it.published().faults}
        right = found == {("Ascend910-7", "80E18402")}
        it.process.terminate()
        it.process.wait(10)
        log = it.log.read_text()
    taken = last_words(log, "driver_events_total")
    print(
        f"storm                        {sent} events in {STORM_S} s: {taken:.0f} taken, "
        f"{last_words(log, 'driver_ring_dropped_total'):.0f} dropped by the ring, {writes} writes, end state "
        f"{'right' if right else f'WRONG: {sorted(found)}'}, memory {(after - before) / 2**20:+.1f} MiB"
    )


def start() -> None:
    """From starting the program to the first published object."""
    times = []
    for _ in range(7):
        with tempfile.TemporaryDirectory() as name, running(Path(name)) as it:
            times.append((wait_for_file(it.object_file) - it.started_ns) / 1e9)
    print(
        f"start -> first publish       n={len(times)}  median {statistics.median(times):.2f} s"
        f"  max {max(times):.2f} s   (target 1.5 s)"
    )


def kills() -> None:
    """The story of five outages, isolation and lift, killed at random points: how many runs end the same."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    from kit.story import END_S, Run

    draw = random.Random(4)
    wanted = Run().play()
    agreed = 0
    for number in range(KILLED_RUNS):
        points = sorted(round(draw.uniform(1, END_S - 10), 3) for _ in range(1 + number % 3))
        agreed += Run(points, late_write=bool(number % 2)).play() == wanted
    print(f"kill -9 (in process)         {agreed} of {KILLED_RUNS} runs with 1 to 3 kills end in the same ConfigMap")


ALL = {
    "latency": latency,
    "api-latency": api_latency,
    "api-requests": api_requests,
    "step": policy_step,
    "storm": storm,
    "switch-latency": switch_latency,
    "switch-storm": switch_storm,
    "board-latency": board_latency,
    "start": start,
    "footprint": footprint,
    "kills": kills,
}


def main() -> None:
    """Run the named benchmarks."""
    names = sys.argv[1:] or list(ALL)
    if unknown := [n for n in names if n not in ALL]:
        sys.exit(f"unknown benchmark {unknown[0]}; there are {', '.join(ALL)}")
    for name in names:
        ALL[name]()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
