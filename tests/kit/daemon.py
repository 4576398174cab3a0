"""Processes for tests: `nodeagent` on a mock node, small C libraries, and what /proc says of a process."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import nodeagent
from nodeagent.core.errors import ReadBackError
from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.render.reading import ParsedDeviceInfo, parse_device_info

LIMIT_S = 30.0
"""Bound of every wait: five times more than anything should take on a busy machine."""
NODE = "test-node"
PROGRAM = Path(sys.executable).parent / "nodeagent"
INCLUDE = Path(nodeagent.__file__).parent / "include"


def wait_until(condition: Callable[[], Any], what: str = "", limit_s: float = LIMIT_S) -> Any:
    """The first true answer of a condition, asked every few milliseconds; AssertionError after the limit."""
    end = time.monotonic() + limit_s
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < end, f"not within {limit_s:g} s: {what or condition}"
        time.sleep(0.005)


def alive(pid: int, *, zombie: bool = True) -> bool:
    """A process exists; zombie=False: one that has ended and waits to be collected does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return zombie or state != "Z"


def children(pid: int) -> list[int]:
    """Living children of a process, by id."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = stat.read_text().rpartition(")")[2].split()
            if int(words[1]) == pid and words[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def command_line(pid: int) -> str:
    """Words of a process's command line; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def driver_hosts(pid: int) -> list[int]:
    """The driver hosts of a daemon that watch for faults; the one for gateway calls is another matter."""
    return [child for child in children(pid) if "nodeagent-dcmi" in command_line(child).split()]


def switch_hosts(pid: int) -> list[int]:
    """The driver hosts of a daemon that have the switch library."""
    return [child for child in children(pid) if "nodeagent-lingqu" in command_line(child).split()]


def compile_c(*words: object) -> None:
    """Run the C compiler; AssertionError with its words when it refuses."""
    done = subprocess.run(
        ["cc", "-std=c11", "-D_GNU_SOURCE", "-g", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def compile_library(folder: Path, source: str, name: str = "libdcmi.so", *words: object) -> Path:
    """A shared library from a C text, written against our ABI header."""
    text = folder / f"{name}.c"
    text.write_text(source)
    compile_c("-shared", "-fPIC", "-fvisibility=hidden", "-I", INCLUDE, text, "-o", folder / name, *words)
    return folder / name


def clean_environment() -> dict[str, str]:
    """Our environment without anything that would reach settings or driver search."""
    ours = ("NODEAGENT_", "NODE_NAME", "LD_LIBRARY_PATH")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}


def run_command(
    *words: object, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `nodeagent …` to its end."""
    return subprocess.run(
        [str(PROGRAM), *map(str, words)],
        env={**clean_environment(), **(environ or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def flags(settings: Mapping[str, object]) -> list[str]:
    """`--set` flags."""
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


def daemon_settings(server: MockServer, out: Path) -> dict[str, object]:
    """Settings of a daemon that talks to a mock node, publishes files, and is quick."""
    return {
        "driver.library": library_dir() / "libdcmi.so",
        "driver.trust_library": "true",
        "switches.library": library_dir() / "liblingqu-dcmi.so",
        "mock.socket": server.socket,
        "publish.target": "directory",
        "publish.directory": out,
        "publish.min_distance_s": "0.02",
        "chips.health_period_s": "0.5",
        "chips.poll_period_s": "0.5",
        "node.name": NODE,
        "http.port": 0,
        "daemon.state_dir": out / ".state",
        "daemon.socket": out / ".state" / "socket",
        "daemon.lock": out / ".state" / "lock",
    }


@dataclass
class Daemon:
    """A `nodeagent run` process. out: the folder it publishes to. log: its stderr. dry_run: for a policy
    clock that runs faster (`mock.time_factor`). read: where its object is, if not in `out`: gives its `data`.
    """

    settings: dict[str, object]
    out: Path
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)
    dry_run: bool = False
    read: Callable[[], Mapping[str, str] | None] | None = None

    def start(self, **options: Any) -> "Daemon":
        """Start the process; options go to Popen."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(PROGRAM), "run", *(["--dry-run"] if self.dry_run else []), *flags(self.settings)],
                stderr=log,
                env=clean_environment(),
                **options,
            )
        return self

    @property
    def object_file(self) -> Path:
        """The published device-info object."""
        return self.out / "kube-system" / f"mindx-dl-deviceinfo-{self.settings['node.name']}.yaml"

    def data(self) -> dict[str, str]:
        """`data` of the published object; empty while there is none that can be read."""
        if self.read is not None:
            return dict(self.read() or {})
        try:
            data: dict[str, str] = yaml.safe_load(self.object_file.read_text())["data"]
        except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError, yaml.YAMLError):
            return {}
        return data

    def published(self) -> ParsedDeviceInfo | None:
        """What a consumer reads there; None while there is none."""
        try:
            return parse_device_info(self.data())
        except ReadBackError:
            return None

    def wait(self, condition: Callable[[ParsedDeviceInfo], Any], what: str = "") -> ParsedDeviceInfo:
        """The first published object that fulfils a condition."""
        found: list[ParsedDeviceInfo] = []

        def good() -> bool:
            assert self.process.poll() is None, self.words()
            parsed = self.published()
            if parsed is None or not condition(parsed):
                return False
            found.append(parsed)
            return True

        try:
            wait_until(good, what)
        except AssertionError as error:
            tail = "".join(self.words().splitlines(keepends=True)[-40:])
            raise AssertionError(f"{error}\npublished: {self.data()}\nend of the log:\n{tail}") from None
        return found[0]

    def wait_for_faults(self, expected: Mapping[tuple[str, str], str]) -> ParsedDeviceInfo:
        """The first object with exactly these faults: (device, code) -> level."""
        return self.wait(
            lambda p: {(f.device, f.code_text): f.level.text for f in p.faults} == dict(expected), f"{expected}"
        )

    def words(self) -> str:
        """The log so far."""
        return self.log.read_text(errors="replace")

    def stop(self) -> int:
        """SIGTERM and the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT_S)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait(LIMIT_S)


@contextlib.contextmanager
def daemon_on(server: MockServer, folder: Path, *, dry_run: bool = False, **settings: object) -> Iterator[Daemon]:
    """A daemon on a mock node, stopped at the end. `a__b` in a name of a setting stands for `a.b`."""
    out = folder / "out"
    every = {**daemon_settings(server, out), **{key.replace("__", "."): value for key, value in settings.items()}}
    daemon = Daemon(every, out, folder / "daemon.log", dry_run=dry_run).start()
    try:
        yield daemon
    finally:
        daemon.stop()


@contextlib.contextmanager
def somebody_at(path: Path, answer: bytes) -> Iterator[None]:
    """Something that is no daemon of ours listens at a socket: it answers one client with these bytes."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(4096)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join(LIMIT_S)


def hangs(control: MockControl) -> bool:
    """A rule that hangs one call has met it: the call hangs now."""
    return not any(rule["kind"] == "hang" for rule in control.state()["rules"])


def node_file(folder: Path, **node: object) -> Path:
    """A YAML description of a mock node."""
    path = folder / "node.yaml"
    path.write_text(json.dumps({"node": node}))  # JSON is YAML, and quotes every text
    return path
