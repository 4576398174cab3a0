"""From the driver's callback to the acknowledgement of a real API server, beside a bare PUT of the same object."""

import contextlib
import http.client
import json
import os
import select
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from control_plane import ControlPlane, control_plane
from rig import NODE, p99, running

from nodeagent.mock.client import MockControl
from nodeagent.render.device_info import NAMESPACE, object_name

SAMPLES = 500
CODE = "80F78006"
BARE = "bare-put"
_TITLE = "callback -> acknowledged    "
_PAUSE_S = 0.03
_LIMIT_S = 20.0


class Stamps:
    """Monotonic nanoseconds of acknowledgements, from the daemon."""

    def __init__(self) -> None:
        self._read_fd, self.write_fd = os.pipe()
        self._text = b""

    def wait(self) -> int:
        """The next one. Raises SystemExit when none comes."""
        while b"\n" not in self._text:
            if not select.select([self._read_fd], [], [], _LIMIT_S)[0]:
                raise SystemExit(f"the daemon had no acknowledgement within {_LIMIT_S:g} s")
            self._text += os.read(self._read_fd, 4096)
        line, _, self._text = self._text.partition(b"\n")
        return int(line)

    def forget(self) -> None:
        """Drop those that came already."""
        self._text = b""
        while select.select([self._read_fd], [], [], 0)[0]:
            os.read(self._read_fd, 4096)

    def close(self) -> None:
        """Close both ends."""
        os.close(self._read_fd)
        os.close(self.write_fd)


class BarePut:
    """PUTs of one object on one connection that stays open, with the daemon's rights."""

    def __init__(self, plane: ControlPlane) -> None:
        context = ssl.create_default_context(cafile=str(plane.cluster.ca_file))
        self._connection = http.client.HTTPSConnection("127.0.0.1", plane.cluster.port, context=context)
        token = yaml.safe_load(plane.kubeconfig.read_text())["users"][0]["user"]["token"]
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        plane.cluster.create(plane.path_of("").rstrip("/"), "ConfigMap", BARE)
        self._path = plane.path_of(BARE)

    def ms(self, published: dict[str, Any]) -> float:
        """Milliseconds from sending the text of an object to the end of the answer. Only its name is another."""
        metadata = {"name": BARE, "namespace": NAMESPACE, "labels": published["metadata"]["labels"]}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": published["data"]}
        body = json.dumps(obj, ensure_ascii=False, separators=(",", ":")).encode()
        began_ns = time.monotonic_ns()
        self._connection.request("PUT", self._path, body, self._headers)
        response = self._connection.getresponse()
        response.read()
        passed_ms = (time.monotonic_ns() - began_ns) / 1e6
        if response.status != 200:
            raise SystemExit(f"the bare PUT was answered with {response.status}")
        return passed_ms

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def api_latency() -> None:
    """Both, one after the other, so that whatever else loads the machine hits both."""
    with tempfile.TemporaryDirectory() as name, control_plane(_TITLE, Path(name) / "plane") as plane:
        if plane is not None:
            through_us, bare = _measure(plane, Path(name))
            _show(through_us, bare)


def _measure(plane: ControlPlane, folder: Path) -> tuple[list[float], list[float]]:
    through_us: list[float] = []
    bare: list[float] = []
    with _daemon(plane, folder) as (control, stamps), contextlib.closing(BarePut(plane)) as put:
        for number in range(SAMPLES):
            chip = number % 8
            stamps.forget()
            (event,) = control.raise_fault(chip, CODE)
            acknowledged_ns = stamps.wait()
            through_us.append((acknowledged_ns - event.callbacks[0].mono_ns) / 1e6)
            published = plane.cluster.config_map(NAMESPACE, object_name(NODE))
            assert published is not None
            time.sleep(_PAUSE_S)
            bare.append(put.ms(published))
            time.sleep(_PAUSE_S)
            stamps.forget()
            control.clear_fault(chip, CODE)
            stamps.wait()
            time.sleep(_PAUSE_S)
    return through_us, bare


@contextlib.contextmanager
def _daemon(plane: ControlPlane, folder: Path) -> Iterator[tuple[MockControl, Stamps]]:
    """A daemon that has published once. Minimum distance of writes 20 ms, to gather samples (decision 32)."""
    stamps = Stamps()
    program = [sys.executable, str(Path(__file__).parent / "stamped_daemon.py"), str(stamps.write_fd)]
    settings = {**plane.settings(folder), "publish.min_distance_s": "0.02"}
    try:
        with (
            running(folder, program=program, pass_fds=[stamps.write_fd], **settings) as it,
            it.node.control() as control,
        ):
            stamps.wait()
            time.sleep(2)  # whatever a daemon asks for at its start
            yield control, stamps
    finally:
        stamps.close()


def _show(through_us: list[float], bare: list[float]) -> None:
    middle, middle_bare = statistics.median(through_us), statistics.median(bare)
    high, high_bare = p99(through_us), p99(bare)
    print(
        f"{_TITLE} n={len(through_us)}  median {middle:.1f} ms  p99 {high:.1f} ms  max {max(through_us):.1f} ms"
        f"   (targets 15 / 50 ms)\n"
        f"  a bare PUT in between        n={len(bare)}  median {middle_bare:.1f} ms  p99 {high_bare:.1f} ms  "
        f"max {max(bare):.1f} ms\n"
        f"  ratio                        median x{middle / middle_bare:.2f}  p99 x{high / high_bare:.2f};  "
        f"added by us: median {middle - middle_bare:.1f} ms"
    )
