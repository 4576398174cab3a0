"""Memory of all our processes on an A3 node with 16 chips, healthy and with node faults, and CPU at rest."""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rig import Running, cpu_s, running, scrape, scraped_port, show_memory, wait_for_file

REST_S = 60
SETTLE_S = 4.0
"""Until everything that a new daemon does once is done: its switches are known, its board and storage clients read."""
START_S = 15.0
"""Until the self-check is done too, which is no part of a rest."""
TOLD_S = 15.0
"""Until faults of the board and of storage clients are seen and told."""
ALARMS = ("0000001D", 1), ("0000002B", 1), ("2C000031", 255), ("FFFFFF01", 1)
"""Code and number of the device. The last is in no table."""
LEVELS = {
    "NotHandleFaultCodes": ["00000001", "03000009"],
    "PreSeparateFaultCodes": ["0000001D", "0000002B"],
    "SeparateFaultCodes": ["2C000031"],
}
"""What a site says of node faults, so that all layers are there."""
EVERYTHING = {
    "storage.dpc": "on",
    "storage.dtfs": "on",
    "public_faults.delivery": "configmap",
    "ipmi.poll_period_s": "10",
}
"""Every source of node faults. The board is asked each 10 s, so that nobody waits a minute."""


def footprint() -> None:
    """Memory with the target `directory` and with an API server, and CPU at rest."""
    with tempfile.TemporaryDirectory() as name, _daemon(Path(name)) as (it, port):
        wait_for_file(it.object_file)
        _show(it, port, "memory, target directory    ")
        time.sleep(START_S)
        used = cpu_s(it.processes())
        time.sleep(REST_S)
        spent = cpu_s(it.processes()) - used
        print(f"CPU at rest                  {spent / REST_S * 100:.2f} % of one core over {REST_S} s   (target 1 %)")
        show_sick_memory(it, port, "memory, with node faults    ")
    with tempfile.TemporaryDirectory() as name, _api_stand_in(Path(name)) as kubeconfig:
        target = {"publish.target": "kubernetes", "publish.kubeconfig": kubeconfig, "node_object.conditions": "true"}
        with _daemon(Path(name), **target) as (it, port):
            _show(it, port, "memory, target kubernetes   ")
            show_sick_memory(it, port, "memory, with node faults    ")


def show_sick_memory(it: Running, port: str, title: str) -> None:
    """Let board and storage clients have faults, and print the memory once they are told."""
    with it.node.control() as control:
        for code, device in ALARMS:
            control.raise_alarm(code, device_id=device)
        control.set_storage("dpc", "ok", "process")
        control.set_storage("dtfs", "link")
    _show(it, port, title, TOLD_S)


def _show(it: Running, port: str, title: str, after_s: float = SETTLE_S) -> None:
    time.sleep(after_s)
    scrape(port)
    show_memory(title, it.processes())


@contextlib.contextmanager
def _daemon(folder: Path, **settings: str) -> Iterator[tuple[Running, str]]:
    """A daemon with every source switched on, and the port at which it is scraped."""
    levels, port = folder / "levels", scraped_port()
    levels.mkdir()
    (levels / "NodeDConfiguration.json").write_text(json.dumps({"FaultTypeCode": LEVELS}))
    every = {**EVERYTHING, "faults.config_dir": str(levels), "http.port": port, **settings}
    with running(folder, node="a3", **every) as it:
        yield it, port


@contextlib.contextmanager
def _api_stand_in(folder: Path) -> Iterator[str]:
    """Path of the kubeconfig of a stand-in server in a process of its own."""
    command = [sys.executable, str(Path(__file__).parent / "api_stand_in.py"), str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        yield str(folder / "kubeconfig")
    finally:
        server.terminate()
        server.wait(10)
