"""The stage of the demonstration: a mock node, a daemon on it, and an eye on what it publishes."""

import json
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.render.reading import ReadBackError, parse_device_info

OUT = Path(".demo")
NODE = "demo-node"
OBJECT = OUT / "kube-system" / f"mindx-dl-deviceinfo-{NODE}.yaml"
WAIT_S = 15.0
COLOUR = sys.stdout.isatty()


class Unexpected(Exception):
    """Something else was published than should have been."""


@dataclass(frozen=True, slots=True)
class Switches:
    """`SwitchInfoCfg` in short. codes: how many it lists, None while nothing is known."""

    codes: int | None
    level: str
    status: str

    def __str__(self) -> str:
        """As it is printed."""
        if self.codes is None:
            return "nothing known"
        codes = {0: "no code", 1: "1 code"}.get(self.codes, f"{self.codes} codes")
        return f"{codes}, {f'level {self.level}' if self.level else 'no level'}, node {self.status}"


@dataclass(frozen=True, slots=True)
class Published:
    """One state of the published object. seen_ns: monotonic clock when its file was in place.

    switches: None on nodes without any.
    """

    seen_ns: int
    faults: dict[tuple[str, str], str]
    avoided: frozenset[str]
    switches: Switches | None

    def says_the_same(self, other: "Published") -> bool:
        """Whether two states differ in nothing that matters here."""
        mine = self.faults, self.avoided, self.switches
        return mine == (other.faults, other.avoided, other.switches)


class Watcher(threading.Thread):
    """Looks at the published file every millisecond and hands over each state that differs from the one before."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.states: queue.SimpleQueue[Published] = queue.SimpleQueue()
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()

    def run(self) -> None:
        stamp, last = 0, None
        while not self._stopping.wait(0.001):
            try:
                now = OBJECT.stat().st_mtime_ns
                if now == stamp:
                    continue
                seen_ns = time.monotonic_ns()
                state = _state(seen_ns, yaml.safe_load(OBJECT.read_text())["data"])
            except (FileNotFoundError, ReadBackError):
                continue
            stamp = now
            if last is None or not state.says_the_same(last):
                self.states.put(state)
            last = state


def _state(seen_ns: int, data: Mapping[str, str]) -> Published:
    parsed = parse_device_info(data)
    faults = {(f.device, f.code_text): f.level.text for f in parsed.faults}
    return Published(seen_ns, faults, frozenset(parsed.unhealthy + parsed.network_unhealthy), _switches(data))


def _switches(data: Mapping[str, str]) -> Switches | None:
    if "SwitchInfoCfg" not in data:
        return None
    info = json.loads(data["SwitchInfoCfg"])
    codes = None if info["FaultCode"] is None else len(info["FaultCode"])
    return Switches(codes, info["FaultLevel"], info["NodeStatus"])


class Stage:
    """A mock node (a product, or a file that describes one), a daemon on it, and an eye on what it publishes.

    socket: of the mock node, None = anywhere.
    """

    def __init__(self, node: str | Path, settings: dict[str, str], socket: Path | None = None) -> None:
        self.server = MockServer.start(node, socket=socket)
        self.control = self.server.control()
        shutil.rmtree(OBJECT.parent, ignore_errors=True)
        shutil.rmtree(OUT / ".state", ignore_errors=True)
        self._settings = settings
        self._log = (OUT / "daemon.log").open("a")
        self.started_ns = time.monotonic_ns()
        self.daemon = self._start()
        self.watcher = Watcher()
        self.watcher.start()
        self.last = self.next_state()
        self.begin = time.monotonic()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(_command(self.server.socket, self._settings), stderr=self._log)

    def kill_and_start(self) -> None:
        """kill -9, and a new daemon."""
        self.daemon.kill()
        self.daemon.wait(10)
        self.daemon = self._start()

    def hosts(self, name: str) -> list[int]:
        """Process ids of the daemon's child processes of this name, for instance `nodeagent-dcmi`."""
        return [child for child in _children(self.daemon.pid) if name in _command_line(child).split()]

    def next_state(self) -> Published:
        """The next published state. Raises queue.Empty when there is none in time."""
        return self.watcher.states.get(timeout=WAIT_S)

    def say(self, text: str) -> None:
        """What somebody did."""
        self.line(text, bold=True)

    def line(self, text: str, *, bold: bool = False) -> None:
        """One line with the time."""
        start, end = ("\033[1m", "\033[0m") if bold and COLOUR else ("", "")
        print(f"{time.monotonic() - self.begin:6.1f}s  {start}{text}{end}", flush=True)

    def show(self, since_ns: int, what: str) -> Published:
        """Wait for the next published state and print what is new in it."""
        after = self.next_state()
        delay = f"{(after.seen_ns - since_ns) / 1e6:.1f} ms after {what}"
        self.line(f"  published {_news(self.last, after)}   ({delay})")
        self.last = after
        return after

    def expect_nothing_new(self) -> None:
        """Raise Unexpected if anything else than the last state was published meanwhile."""
        if not self.watcher.states.empty():
            raise Unexpected(f"published {_news(self.last, self.next_state())}")

    def expect(self, faults: dict[tuple[str, str], str]) -> None:
        """Raise Unexpected if the last state has not exactly these faults of chips."""
        if self.last.faults != faults:
            raise Unexpected(f"the faults of the chips are {self.last.faults}, not {faults}")

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        stopping = time.monotonic()
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait(10)
        stopped_ms = (time.monotonic() - stopping) * 1000
        self.watcher.stop()
        self.control.close()
        self.server.stop()
        self._log.close()
        print(f"The daemon stopped {stopped_ms:.0f} ms after SIGTERM, exit code {self.daemon.returncode}.")


def _news(before: Published, after: Published) -> str:
    added = (item for item in after.faults.items() if before.faults.get(item[0]) != item[1])
    changes = [f"+ {device} {code} {level}" for (device, code), level in added]
    changes += [f"- {device} {code}" for device, code in before.faults if (device, code) not in after.faults]
    avoid = f", avoid {', '.join(sorted(after.avoided))}" if after.avoided else ", no chip to avoid"
    if changes or after.switches == before.switches:
        return f"{'; '.join(changes) or 'lists'}{avoid}"
    return f"SwitchInfoCfg: {after.switches}{avoid if after.avoided else ''}"


def _command(socket: str, more: dict[str, str]) -> list[str]:
    settings = {
        "driver.library": library_dir() / "libdcmi.so",
        "driver.trust_library": "true",
        "mock.socket": socket,
        "publish.target": "directory",
        "publish.directory": OUT,
        "daemon.state_dir": OUT / ".state",
        "daemon.socket": OUT / ".state" / "socket",
        "node.name": NODE,
        "http.port": 0,
        **more,
    }
    program = Path(sys.executable).parent / "nodeagent"
    return [str(program), "run", "--dry-run", *(part for k, v in settings.items() for part in ("--set", f"{k}={v}"))]


def _children(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in lists for child in each.read_text().split()]


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:  # it has ended
        return ""
