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

from nodeagent.core.files import SHIPPED_TABLES, read_shipped
from nodeagent.mock import scenario
from nodeagent.mock.client import injected
from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.policy.table import load_table
from nodeagent.render.reading import ParsedDeviceInfo, ReadBackError, parse_device_info

HERE = Path(__file__).parent
OUT = Path(".demo")
NODE = "demo-node"
OBJECT = OUT / "kube-system" / f"mindx-dl-deviceinfo-{NODE}.yaml"
WAIT_S = 15.0
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

    def run(self) -> None:
        stamp, last = 0, None
        while True:
            time.sleep(0.001)
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
    """Run the demonstration; 0 when every step was published."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    table, _ = load_table([read_shipped(name) for name in SHIPPED_TABLES])
    timeline = HERE / "timeline.yaml"
    plan = scenario.load(timeline)
    raw = yaml.safe_load(timeline.read_text())["timeline"]
    watcher = Watcher()
    with MockServer.start(HERE / "node.yaml") as node, (OUT / "daemon.log").open("w") as log:
        started_ns = time.monotonic_ns()
        daemon = subprocess.Popen(_command(node.socket), stderr=log)
        try:
            watcher.start()
            before = watcher.states.get(timeout=WAIT_S)
            _opening(node.socket, daemon.pid, (before.seen_ns - started_ns) / 1e6)
            begin = time.monotonic()
            control = node.control()
            for step, action in zip(raw, plan.timeline, strict=True):
                time.sleep(max(0.0, begin + action.at_s - time.monotonic()))
                fields = {k: v for k, v in step.items() if k != "at_s"}
                done_ns = time.monotonic_ns()
                answer = control.command(**fields)
                events = injected(answer) if "events" in answer else []
                callbacks = [c.mono_ns for e in events for c in e.callbacks]
                _line(time.monotonic() - begin, _what(fields, table.lookup), bold=True)
                before = _show(watcher, before, callbacks[0] if callbacks else done_ns, bool(callbacks), begin)
                if fields["do"] == "notice":  # shown by exactly one report, so the next one is without it
                    before = _show(watcher, before, callbacks[0] if callbacks else done_ns, bool(callbacks), begin)
            _closing(before)
        except queue.Empty:
            print(
                f"\nnothing was published within {WAIT_S:g} s; the daemon's log is {OUT / 'daemon.log'}",
                file=sys.stderr,
            )
            return 1
        finally:
            stopping = time.monotonic()
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(10)
            stopped_ms = (time.monotonic() - stopping) * 1000
    print(f"The daemon stopped {stopped_ms:.0f} ms after SIGTERM, exit code {daemon.returncode}.")
    return daemon.returncode


def _command(socket: str) -> list[str]:
    settings = {
        "driver.library": library_dir() / "libdcmi.so",
        "driver.trust_library": "true",
        "mock.socket": socket,
        "publish.target": "directory",
        "publish.directory": OUT,
        "chips.health_period_s": "1",
        "node.name": NODE,
    }
    program = Path(sys.executable).parent / "nodeagent"
    return [str(program), "run", *(part for k, v in settings.items() for part in ("--set", f"{k}={v}"))]


def _opening(socket: str, pid: int, first_ms: float) -> None:
    hosts = [child for child in _children(pid) if "nodeagent-dcmi" in _command_line(child)]
    print("An Atlas 800T A2 node with 8 chips, pretended by a mock of the driver library.")
    print(f"  daemon        pid {pid}")
    print(f"  driver host   pid {', '.join(hosts) or '?'}  (kill -SEGV it, if you like)")
    print(f"  hardware      NODEAGENT_MOCK_SOCKET={socket}")
    print(f"  publishes to  {OBJECT}")
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


def _show(watcher: Watcher, before: Published, since_ns: int, event: bool, begin: float) -> Published:
    after = watcher.states.get(timeout=WAIT_S)
    delay = f"{(after.seen_ns - since_ns) / 1e6:.1f} ms after {'the callback' if event else 'the change'}"
    changes = [f"+ {d} {c} {level}" for (d, c), level in after.faults.items() if (d, c) not in before.faults]
    changes += [f"- {d} {c}" for d, c in before.faults if (d, c) not in after.faults]
    avoid = f", avoid {', '.join(sorted(after.avoided))}" if after.avoided else ", no chip to avoid"
    _line(time.monotonic() - begin, f"  published {'; '.join(changes) or 'lists'}{avoid}   ({delay})")
    return after


def _line(at_s: float, text: str, *, bold: bool = False) -> None:
    start, end = ("\033[1m", "\033[0m") if bold and COLOUR else ("", "")
    print(f"{at_s:6.1f}s  {start}{text}{end}", flush=True)


def _closing(last: Published) -> None:
    print(f"\nLeft at the end: {', '.join(f'{d} {c} {level}' for (d, c), level in last.faults.items()) or 'no fault'}")
    print(f"The ConfigMap as ClusterD would read it ({OBJECT}):\n")
    print(OBJECT.read_text())


if __name__ == "__main__":
    os.chdir(HERE.parent.parent)
    sys.exit(main())
