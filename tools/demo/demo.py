"""The demonstration behind `make demo`: real daemon, mock driver library, files instead of a cluster.

Starts a mock node and `nodeagent run` as processes of their own, does to the hardware what timeline.yaml says, and
prints what the daemon published after each step and how long that took. Feel free to `kill -SEGV` the driver host
that the first lines name while it runs.
"""

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from nodeagent.cli.documents import configuration_of
from nodeagent.mock import scenario
from nodeagent.mock.client import injected
from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.render.reading import ParsedDeviceInfo, ReadBackError, parse_device_info

HERE = Path(__file__).parent
OUT = Path(".demo")
NODE = "demo-node"
OBJECT = OUT / "kube-system" / f"mindx-dl-deviceinfo-{NODE}.yaml"
WAIT_S = 15.0
FACTOR = 40
OUTAGES, KILLED = 5, (3,)
LINK, LINK_NUMBER = "81078603", 2
LINK_CHIP = f"Ascend910-{LINK_NUMBER}"
COLOUR = sys.stdout.isatty()


@dataclass(frozen=True, slots=True)
class Published:
    """One state of the published object. seen_ns: monotonic clock when its file was in place."""

    seen_ns: int
    faults: dict[tuple[str, str], str]
    avoided: frozenset[str]


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
                parsed = parse_device_info(yaml.safe_load(OBJECT.read_text())["data"])
            except (FileNotFoundError, ReadBackError):
                continue
            stamp = now
            state = _state(seen_ns, parsed)
            if last is None or (state.faults, state.avoided) != (last.faults, last.avoided):
                self.states.put(state)
            last = state


def _state(seen_ns: int, parsed: ParsedDeviceInfo) -> Published:
    faults = {(f.device, f.code_text): f.level.text for f in parsed.faults}
    return Published(seen_ns, faults, frozenset(parsed.unhealthy + parsed.network_unhealthy))


def main() -> int:
    """Both acts; 0 when every step was published."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    begun = time.monotonic()
    try:
        with Stage(HERE / "node.yaml", {"chips.health_period_s": "1"}) as stage:
            first_act(stage)
        anchor = {"mock.time_factor": str(FACTOR), "mock.time_anchor_s": f"{time.monotonic():.3f}"}
        with Stage(HERE / "node.yaml", anchor) as stage:
            second_act(stage)
    except queue.Empty:
        print(f"\nnothing was published within {WAIT_S:g} s; see {OUT / 'daemon.log'}", file=sys.stderr)
        return 1
    print(f"\nThe demonstration took {time.monotonic() - begun:.0f} s.")
    return 0


class Stage:
    """A mock node, a daemon on it, and an eye on what it publishes."""

    def __init__(self, node: Path, settings: dict[str, str]) -> None:
        self.server = MockServer.start(node)
        self.control = self.server.control()
        shutil.rmtree(OBJECT.parent, ignore_errors=True)
        shutil.rmtree(OUT / ".state", ignore_errors=True)
        self._settings = settings
        self._log = (OUT / "daemon.log").open("a")
        self.started_ns = time.monotonic_ns()
        self.daemon = self._start()
        self.watcher = Watcher()
        self.watcher.start()
        self.last = self.watcher.states.get(timeout=WAIT_S)
        self.begin = time.monotonic()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(_command(self.server.socket, self._settings), stderr=self._log)

    def kill_and_start(self) -> None:
        """kill -9, and a new daemon."""
        self.daemon.kill()
        self.daemon.wait(10)
        self.daemon = self._start()

    def say(self, text: str) -> None:
        """What somebody did."""
        _line(time.monotonic() - self.begin, text, bold=True)

    def show(self, since_ns: int, what: str) -> Published:
        """Wait for the next published state and print what is new in it."""
        after = self.watcher.states.get(timeout=WAIT_S)
        delay = f"{(after.seen_ns - since_ns) / 1e6:.1f} ms after {what}"
        before = self.last
        added = (item for item in after.faults.items() if before.faults.get(item[0]) != item[1])
        changes = [f"+ {device} {code} {level}" for (device, code), level in added]
        changes += [f"- {device} {code}" for device, code in before.faults if (device, code) not in after.faults]
        avoid = f", avoid {', '.join(sorted(after.avoided))}" if after.avoided else ", no chip to avoid"
        _line(time.monotonic() - self.begin, f"  published {'; '.join(changes) or 'lists'}{avoid}   ({delay})")
        self.last = after
        return after

    def show_until(self, wanted: str | None, since_ns: int, what: str) -> None:
        """Print states until the link code has this level (None: is gone)."""
        while self.show(since_ns, what).faults.get((LINK_CHIP, LINK)) != wanted:
            continue

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


def first_act(stage: Stage) -> None:
    """Chips break and heal, in real time, as timeline.yaml says."""
    _opening(stage)
    config, _ = configuration_of([])
    timeline = HERE / "timeline.yaml"
    raw = yaml.safe_load(timeline.read_text())["timeline"]
    for step, action in zip(raw, scenario.load(timeline).timeline, strict=True):
        time.sleep(max(0.0, stage.begin + action.at_s - time.monotonic()))
        fields = {key: value for key, value in step.items() if key != "at_s"}
        done_ns = time.monotonic_ns()
        answer = stage.control.command(**fields)
        callbacks = [c.mono_ns for e in injected(answer) for c in e.callbacks] if "events" in answer else []
        stage.say(_what(fields, config.table.lookup))
        since_ns, what = (callbacks[0], "the callback") if callbacks else (done_ns, "the change")
        stage.show(since_ns, what)
        if fields["do"] == "notice":  # shown by exactly one report, so the next one is without it
            stage.show(since_ns, what)
    left = ", ".join(f"{d} {c} {level}" for (d, c), level in stage.last.faults.items())
    print(f"\nLeft at the end: {left or 'no fault'}")
    print(f"The ConfigMap as ClusterD would read it ({OBJECT}):\n\n{OBJECT.read_text()}")


def second_act(stage: Stage) -> None:
    """Rules: a link that stays down, five of them, an isolation, kills, and an operator."""
    print(f"\nSecond act, in accelerated time: policy time runs {FACTOR} times as fast as yours,")
    print("so 20 s of outage pass in half a second and 60 s of hold in one and a half; writes keep their distance.\n")
    time.sleep(1.1)
    for outage in range(1, OUTAGES + 1):
        done_ns = time.monotonic_ns()
        stage.control.set_link(LINK_NUMBER, up=False)
        stage.say(f"outage {outage}: the link of chip {LINK_NUMBER} goes down")
        if outage in KILLED:
            stage.kill_and_start()
            stage.say("  the daemon is killed with -9 and started again")
        stage.show_until("ManuallySeparateNPU" if outage == OUTAGES else "PreSeparateNPU", done_ns, "it went down")
        done_ns = time.monotonic_ns()
        stage.control.set_link(LINK_NUMBER, up=True)
        stage.say("  the link is up again; the level is held for 60 s")
        if outage < OUTAGES:
            stage.show_until(None, done_ns, "it came up")
    time.sleep(2.5)
    stage.kill_and_start()
    stage.say("the fault is gone, the isolation stays; the daemon is killed with -9 and started again")
    time.sleep(1.5)
    named = yaml.safe_load(OBJECT.read_text())["data"]["ManuallySeparateNPU"]
    _line(time.monotonic() - stage.begin, f"  published ManuallySeparateNPU: {named}")
    done_ns = time.monotonic_ns()
    _lift()
    stage.say("an operator deletes the name from ManuallySeparateNPU")
    stage.show_until(None, done_ns, "the edit")


def _lift() -> None:
    """What an operator's editor does to the file."""
    obj = yaml.safe_load(OBJECT.read_text())
    obj["data"]["ManuallySeparateNPU"] = ""
    temporary = OBJECT.with_suffix(".edit")
    temporary.write_text(yaml.safe_dump(obj))
    temporary.replace(OBJECT)


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


def _opening(stage: Stage) -> None:
    hosts = [child for child in _children(stage.daemon.pid) if "nodeagent-dcmi " in f"{_command_line(child)} "]
    print("An Atlas 800T A2 node with 8 chips, pretended by a mock of the driver library.")
    print(f"  daemon        pid {stage.daemon.pid}")
    print(f"  driver host   pid {', '.join(hosts) or '?'}  (kill -SEGV it, if you like)")
    print(f"  hardware      NODEAGENT_MOCK_SOCKET={stage.server.socket}")
    print(f"  publishes to  {OBJECT}")
    first_ms = (stage.last.seen_ns - stage.started_ns) / 1e6
    print(f"First complete object {first_ms:.0f} ms after the daemon was started: 8 chips, no fault.\n")
    print("   time  what happened -> what was published, and how long after")


def _children(pid: int) -> list[str]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for each in lists for child in each.read_text().split()]


def _command_line(pid: str) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def _what(fields: dict[str, object], lookup: object) -> str:
    do, code = fields["do"], str(fields.get("code", ""))
    record = lookup(int(code, 16)) if code else None  # type: ignore[operator]
    name = f"{code} {record.name_en if record else '(in no fault table)'}" if code else ""
    return {
        "raise": f"chip {fields.get('chip')} raises {name}",
        "clear": f"chip {fields.get('chip')} recovers from {name}",
        "notice": f"chip {fields.get('chip')} sends the once-only notice {name}",
        "link": f"chip {fields.get('chip')}: network link goes {fields.get('state')}",
        "drop": f"card {fields.get('card')} drops off the bus (no event; found by the health query)",
        "return": f"card {fields.get('card')} is back",
    }[str(do)]


def _line(at_s: float, text: str, *, bold: bool = False) -> None:
    start, end = ("\033[1m", "\033[0m") if bold and COLOUR else ("", "")
    print(f"{at_s:6.1f}s  {start}{text}{end}", flush=True)


if __name__ == "__main__":
    os.chdir(HERE.parent.parent)
    sys.exit(main())
