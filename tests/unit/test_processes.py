"""Memory and processor time from the real /proc."""

import subprocess
import sys

from kit.daemon import wait_until

from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.processes import ProcessMeter

_BUSY = """
import sys
data = bytearray(64 << 20)
sum(range(5_000_000))
print("done", flush=True)
sys.stdin.read()
"""


def test_a_child_counts_while_it_lives_and_its_time_stays() -> None:
    metrics = Registry()
    meter = ProcessMeter(metrics)
    meter.measure()
    without_bytes = metrics.value("resident_memory_bytes", process="children")
    with subprocess.Popen([sys.executable, "-c", _BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        meter.measure()
        assert metrics.value("resident_memory_bytes", process="children") > without_bytes + (64 << 20)
        spent_s = metrics.value("cpu_seconds_total", process="children")
        assert spent_s > 0.02
    meter.measure()
    assert metrics.value("resident_memory_bytes", process="children") == without_bytes
    assert metrics.value("cpu_seconds_total", process="children") >= spent_s


def test_our_own_time_grows() -> None:
    metrics = Registry()
    meter = ProcessMeter(metrics)
    meter.measure()
    before_s = metrics.value("cpu_seconds_total", process="daemon")

    def more() -> bool:
        sum(range(1_000_000))
        meter.measure()
        return metrics.value("cpu_seconds_total", process="daemon") > before_s

    wait_until(more)
