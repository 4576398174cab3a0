"""Run a mock node server as a child process, for dry runs, tests and benchmarks."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType

import nodeagent
from nodeagent.core.errors import MockError, ScenarioError
from nodeagent.mock.client import MockControl
from nodeagent.mock.folder import alarm_file_of, proc_of

SOCKET_VARIABLE = "NODEAGENT_MOCK_SOCKET"
_START_LIMIT_S = 30.0
_STOP_LIMIT_S = 10.0
_CHILD = (
    "import sys; root, *words = sys.argv[1:]; sys.path.insert(0, root); "
    "from nodeagent.mock.serve import child; sys.exit(child(words))"
)


def library_dir() -> Path:
    """The folder of the installed mock library.

    Raises MockError when the package was not installed by its build (as in a bare source tree).
    """
    folder = Path(nodeagent.__file__).resolve().parent / "mocklib"
    if not (folder / "libdcmi.so").is_file():
        raise MockError(f"there is no mock library in {folder}", "install the package: pip install .")
    return folder


class MockServer:
    """A served node in a child process, which ends with this process however that ends.

    socket: path of its socket. pid: process id of the server.
    """

    def __init__(self, child: subprocess.Popen[bytes], socket: str, cleanup: contextlib.ExitStack) -> None:
        self.socket = socket
        self.pid = child.pid
        self._child = child
        self._cleanup = cleanup
        self._stopped = False

    @classmethod
    def start(
        cls,
        node: str | Path = "a2",
        timeline: str | Path | None = None,
        *,
        socket: str | Path | None = None,
        log_calls: str | Path | None = None,
    ) -> "MockServer":
        """Start a server and wait until it answers.

        node: profile, installed description or YAML file. timeline: YAML file to play from now.
        socket: where to serve, default in a folder of its own that `stop` removes.
        log_calls: file that gets a JSON line for every library call.
        Raises ScenarioError for a bad node or timeline, MockError with the child's own words when it does not start.
        """
        with contextlib.ExitStack() as cleanup:
            if socket is None:
                folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="nodeagent-mock-"))
                socket = Path(folder) / "socket"
            words = [str(socket), str(node), str(timeline or ""), str(log_calls or "")]
            root = str(Path(nodeagent.__file__).resolve().parent.parent)
            child = subprocess.Popen(
                [sys.executable, "-I", "-c", _CHILD, root, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            _wait_until_ready(child)
            return cls(child, str(socket), cleanup.pop_all())

    def stop(self) -> None:
        """End the child; nothing happens when this was done before."""
        if self._stopped:
            return
        self._stopped = True
        self._child.terminate()
        try:
            self._child.communicate(timeout=_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.communicate()
        self._cleanup.close()

    @property
    def alarm_file(self) -> Path:
        """The board as the module of ipmi_sim reads it; there is no such file while the node has no BMC."""
        return alarm_file_of(self.socket)

    @property
    def proc(self) -> Path:
        """What stands for /proc of the node."""
        return proc_of(self.socket)

    def control(self) -> MockControl:
        """A new control connection."""
        return MockControl(self.socket)

    def environment(self) -> dict[str, str]:
        """The environment for a client process: ours, with the library folder first and the socket named."""
        path = os.environ.get("LD_LIBRARY_PATH", "")
        folders = f"{library_dir()}:{path}" if path else str(library_dir())
        return {**os.environ, "LD_LIBRARY_PATH": folders, SOCKET_VARIABLE: self.socket}

    def __enter__(self) -> "MockServer":
        """The running server."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()


def _wait_until_ready(child: subprocess.Popen[bytes]) -> None:
    if child.stdout is None:
        raise MockError("the mock node server has no output to read")
    guard = threading.Timer(_START_LIMIT_S, child.kill)
    guard.start()
    try:
        line = child.stdout.readline()
    finally:
        guard.cancel()
    if not line.startswith(b"ready"):
        child.kill()
        _, complaint = child.communicate()
        words = complaint.decode(errors="replace").strip().splitlines()
        last = words[-1] if words else "it said nothing"
        if last.startswith(prefix := f"{ScenarioError.code}: "):
            raise ScenarioError(last.removeprefix(prefix))
        raise MockError(f"the mock node server did not start: {last.removeprefix(f'{MockError.code}: ')}")
