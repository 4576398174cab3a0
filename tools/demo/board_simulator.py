"""OpenIPMI's `ipmi_sim` as the BMC of the pretended board: the alarms of the mock, over a real network protocol."""

import importlib.util
import shutil
import socket
import subprocess
import time
from pathlib import Path
from string import Template

RIG = Path("tests/ipmi")
MODULE_SOURCE = RIG / "ibmc_module.c"
HEADER = Path("/usr/include/OpenIPMI/mcserv.h")
USER, PASSWORD = "admin", "password"
_START_LIMIT_S = 5.0
_PRESENCE_PING = bytes.fromhex("06 00 ff 06  00 00 11 be 80 00 00 00")
"""RMCP header of class ASF, message "presence ping": the one request that needs no session."""


class NotPossible(Exception):
    """One sentence that says what to install."""


class BoardSimulator:
    """A running `ipmi_sim` that answers from an alarm file.

    folder: for its files, must exist. alarms: the file, which may come later. Raises NotPossible when it cannot be
    built or started.
    """

    def __init__(self, folder: Path, alarms: Path) -> None:
        _must_be_installed()
        self._port = _free_port(socket.SOCK_DGRAM)
        self._folder = folder
        module = folder / "ibmc_module.so"
        compile_it = ["cc", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-o", str(module), str(MODULE_SOURCE)]
        done = subprocess.run(compile_it, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotPossible(f"{MODULE_SOURCE} cannot be compiled: {done.stderr.splitlines()[0]}")
        state = folder / "ipmi_sim"
        state.mkdir(parents=True, exist_ok=True)
        words = {"module": module.resolve(), "alarms": alarms.resolve(), "user": USER, "password": PASSWORD}
        ports = {"lan_port": self._port, "guest_port": _free_port(socket.SOCK_STREAM)}
        configuration = folder / "lan.conf"
        configuration.write_text(Template((RIG / "lan.conf").read_text()).substitute(words | ports))
        command = ["ipmi_sim", "-n", "-c", str(configuration), "-f", str(RIG / "bmc.emu"), "-s", str(state)]
        with (folder / "ipmi_sim.log").open("w") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait_until_it_answers()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def settings(self) -> dict[str, str]:
        """What makes the daemon ask it."""
        credentials = self._folder / "bmc-credentials"
        credentials.mkdir(mode=0o700, exist_ok=True)
        for name, text in (("username", USER), ("password", PASSWORD)):
            (credentials / name).write_text(text)
            (credentials / name).chmod(0o600)
        return {
            "ipmi.transport": "lan",
            "ipmi.address": "127.0.0.1",
            "ipmi.port": str(self._port),
            "ipmi.credentials_dir": str(credentials),
        }

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_until_it_answers(self) -> None:
        end = time.monotonic() + _START_LIMIT_S
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.settimeout(0.1)
            probe.connect(("127.0.0.1", self._port))
            while time.monotonic() < end and self._process.poll() is None:
                try:
                    probe.send(_PRESENCE_PING)
                    probe.recv(64)
                except OSError:  # nobody listens yet
                    time.sleep(0.05)
                else:
                    return
        self.stop()
        raise NotPossible(f"ipmi_sim does not answer, see {self._folder / 'ipmi_sim.log'}")


def _must_be_installed() -> None:
    if not MODULE_SOURCE.exists():
        raise NotPossible(f"{MODULE_SOURCE} is not here")
    if shutil.which("ipmi_sim") is None or not HEADER.exists():
        raise NotPossible("apt-get install openipmi libopenipmi-dev")
    if shutil.which("cc") is None:
        raise NotPossible("apt-get install gcc")
    if importlib.util.find_spec("pyghmi") is None:
        raise NotPossible("pip install nodeagent[lan]")


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
