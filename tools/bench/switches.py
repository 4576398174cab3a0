"""Faults of LingQu switches on an A3 node: latency of one, and as many at once as the ports can have."""

import json
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml
from rig import Inotify, Running, last_words, p99, running, wait_for_file

from nodeagent.mock.client import MockControl

SAMPLES = 200
"""Fewer than of chips: the mock library looks for events every 300 ms, which passes before the callback."""
LIMIT_S = 30.0
SWITCHES, PORTS = 7, 48
PORT_DOWN = "[0x08520003,na,npu,na]"
CODES = PORT_DOWN, "[0x00f10509,132332,npu,na]", "[0x00f1fef5,155912,npu,na]"
"""Those of the mock's storm."""
EVERY = {(code, chip, port) for code in CODES for chip in range(SWITCHES) for port in range(PORTS)}

State = tuple[str, set[tuple[str, int, int]]]
"""Status of the node, and (code, switch, port) of its faults."""


def switch_latency() -> None:
    """Entry of the C callback -> file in place. Minimum distance of writes 20 ms, to gather samples (decision 32)."""
    with (
        tempfile.TemporaryDirectory() as name,
        running(Path(name), node="a3", **{"publish.min_distance_s": "0.02"}) as it,
        it.node.control() as control,
    ):
        watch = _begun(it, control)
        samples = []
        for number in range(SAMPLES):
            chip, port = number % SWITCHES, number % PORTS
            time.sleep(0.03)
            (event,) = control.raise_switch_fault(chip, PORT_DOWN, port=port)
            seen_ns = watch.wait(5)
            if seen_ns is not None and event.callbacks:
                samples.append((seen_ns - event.callbacks[0].mono_ns) / 1e6)
            time.sleep(0.03)
            control.clear_switch_fault(chip, PORT_DOWN, port=port)
            watch.wait(5)
    print(
        f"switch callback -> published n={len(samples)}  median {statistics.median(samples):.1f} ms"
        f"  p99 {p99(samples):.1f} ms  max {max(samples):.1f} ms   (targets 15 / 50 ms)"
    )


def switch_storm() -> None:
    """Three codes on every port of all switches at once, then all recoveries at once."""
    with tempfile.TemporaryDirectory() as name, running(Path(name), node="a3") as it, it.node.control() as control:
        watch = _begun(it, control)
        memory = [_memory_mib(it)]
        for title, left, wanted in (("faults", True, ("UnHealthy", EVERY)), ("recoveries", False, ("Healthy", set()))):
            print(f"switch storm                 {_burst(it, watch, control, title, left, wanted)}")
            memory.append(_memory_mib(it))
        lost = sum(ring["dropped"] for ring in control.state()["switch_rings"])
        it.process.terminate()
        it.process.wait(10)
        log = it.log.read_text()
    taken, dropped = last_words(log, "switch_events_total"), last_words(log, "switch_ring_dropped_total")
    print(
        f"  in all                     {taken:.0f} events taken, {lost} lost in the library, {dropped:.0f} dropped by"
        f" our ring; PSS before, with the faults, after: {', '.join(f'{each:.1f}' for each in memory)} MiB"
    )


def _begun(it: Running, control: MockControl) -> Inotify:
    """Wait until the library is listened to and its first answer published."""
    wait_for_file(it.object_file)
    end = time.monotonic() + LIMIT_S
    while _state(it) != ("Healthy", set()) or not control.state()["switch_rings"]:
        if time.monotonic() > end:
            raise SystemExit(f"nothing is known of the switches within {LIMIT_S:g} s")
        time.sleep(0.01)
    time.sleep(1.5)  # so that the next write need not keep its distance
    return Inotify(it.object_file.parent)


def _burst(it: Running, watch: Inotify, control: MockControl, title: str, left: bool, wanted: State) -> str:
    """What became of a storm. left: it raises; otherwise it clears what is raised."""
    writes, seen_ns, end = 0, None, time.monotonic() + LIMIT_S
    with ThreadPoolExecutor(1) as hand:
        done = hand.submit(control.switch_storm, leave_raised=left, wait_s=LIMIT_S)
        while seen_ns is None or _state(it) != wanted:
            if (seen_ns := watch.wait(max(0.0, end - time.monotonic()))) is None:
                return f"{title}: the end state is WRONG"
            writes += 1
        events = done.result()
    called_ns = [callback.mono_ns for event in events for callback in event.callbacks]
    writes += watch.count(3)
    right = "right" if _state(it) == wanted else "WRONG"
    return (
        f"{len(events)} {title} within {(max(called_ns) - min(called_ns)) / 1e6:.0f} ms of callbacks: {writes} writes,"
        f" end state {right} {(seen_ns - min(called_ns)) / 1e6:.0f} ms after the first callback,"
        f" {it.object_file.stat().st_size / 1024:.0f} KiB"
    )


def _state(it: Running) -> State | None:
    """As a consumer reads it, None while nothing is known."""
    info = json.loads(yaml.load(it.object_file.read_text(), yaml.CSafeLoader)["data"]["SwitchInfoCfg"])
    if info["FaultCode"] is None:
        return None
    faults = [json.loads(text) for text in info["FaultCode"]]
    return info["NodeStatus"], {(f["AssembledFaultCode"], f["SwitchChipId"], f["SwitchPortId"]) for f in faults}


def _memory_mib(it: Running) -> float:
    """Sum of the proportional set sizes of the daemon and its driver hosts."""
    return sum(process.memory_full_info().pss for process in it.processes()) / 2**20
