"""A simulated BMC: OpenIPMI's `ipmi_sim` with our module for Huawei's commands (tests/ipmi/ibmc_module.c).

It speaks IPMI over LAN, and gives a guest (kit.guest) the BMC behind its /dev/ipmi0.
"""

import os
import socket
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template

from kit.server_process import ServerProcess, free_ports

from nodeagent.core.alarms import Alarm

RIG = Path(__file__).parent.parent / "ipmi"
BINARIES = RIG / ".bin"
MODULE = BINARIES / "ibmc_module.so"
USER, PASSWORD = "admin", "password"
FAULTS = {"cc": "{:X}", "mid": "{:X}", "label_cc": "{:X}"} | dict.fromkeys(
    ("cut", "count", "total", "delay_ms", "empty", "silent", "times", "next_total", "shrink", "label_part"), "{}"
)
"""What can go wrong, and how its number is written; what each does: head of ibmc_module.c. `!from` is `from_index`."""
_PRESENCE_PING = bytes.fromhex("06 00 ff 06  00 00 11 be 80 00 00 00")
"""RMCP header of class ASF, message "presence ping" (ASF 2.0): the one request that needs no session."""
_PONG = 0x40
_LISTENS = "0A"
_SESSION_INFO = (0x06, 0x3D, 0x00)
_ACTIVE_SESSIONS = 2
"""The command of IPMI 2.0, 22.20, about the session that it comes by, and the byte of its answer that counts."""
_ASKED = "ibmc: asked for alarms from "


def alarm_file(
    alarms: Iterable[Alarm] = (),
    *,
    serial: str = "",
    vendor: str = "",
    page: int = 16,
    from_index: int = 0,
    **faults: int,
) -> str:
    """The text that the simulator reads: its alarms, its label, alarms in one answer (1 to 16), what goes wrong."""
    lines = [f"!page {page}", f"!from {from_index}"]
    lines += [f"!{word} {text}" for word, text in (("serial", serial), ("vendor", vendor)) if text]
    lines += [f"!{word} {FAULTS[word].format(number)}" for word, number in faults.items()]
    lines += [f"{a.code:08X} {a.raised_s} {a.severity} {a.subject:02X} {a.device_id}" for a in alarms]
    return "".join(f"{line}\n" for line in lines)


class BmcSimulator:
    """`ipmi_sim` on ports of 127.0.0.1 of its own, which stay the same when it is started again.

    folder: for its files; must exist. The BMC starts without alarms, and keeps what `say` told it when it is killed.
    """

    def __init__(self, folder: Path) -> None:
        assert MODULE.exists(), f"{MODULE} is missing: run tests/ipmi/build.py, as make test-ipmi does"
        (self.lan_port,) = free_ports(1, socket.SOCK_DGRAM)
        (self.guest_port,) = free_ports(1)
        self._file = folder / "alarms"
        self.say()
        state = folder / "state"
        state.mkdir()
        configuration = folder / "lan.conf"
        words = {"module": MODULE, "alarms": self._file, "user": USER, "password": PASSWORD}
        ports = {"lan_port": self.lan_port, "guest_port": self.guest_port}
        configuration.write_text(Template((RIG / "lan.conf").read_text()).substitute(words | ports))
        command = ["ipmi_sim", "-n", "-c", configuration, "-f", RIG / "bmc.emu", "-s", state]
        self._server = ServerProcess("ipmi_sim", command, folder, self._answers)

    def __enter__(self) -> "BmcSimulator":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    @property
    def running(self) -> bool:
        """It was started, and has neither ended nor been killed."""
        return self._server.running

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._server.start()

    def kill(self) -> None:
        """SIGKILL: sessions are lost, and whoever asks gets no answer."""
        self._server.kill()

    def say(self, alarms: Iterable[Alarm] = (), **settings: object) -> None:
        """From now on tell these alarms, and go wrong like this; arguments as of `alarm_file`. In one step."""
        self.write(alarm_file(alarms, **settings))  # type: ignore[arg-type]

    def write(self, text: str) -> None:
        """The same with a text of one's own."""
        new = self._file.with_suffix(".new")
        new.write_text(text)
        os.replace(new, self._file)

    def sessions(self) -> int:
        """Open sessions over LAN, without that of the question itself."""
        return self.ask(*_SESSION_INFO)[_ACTIVE_SESSIONS] - 1

    def asked(self) -> list[int]:
        """The index of each question for alarms so far; those that get no answer, or a wrong one, count too."""
        return [int(line.removeprefix(_ASKED)) for line in self.words().splitlines() if line.startswith(_ASKED)]

    def words(self) -> str:
        """What it logged."""
        return self._server.words()

    def ask(self, *data: int) -> bytes:
        """Ask over LAN by `ipmitool raw`; the answer without its completion code. AssertionError for other codes."""
        done = self.ipmitool("raw", *(f"0x{byte:02x}" for byte in data))
        assert done.returncode == 0, done.stderr
        return bytes.fromhex(done.stdout)

    def ipmitool(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `ipmitool` on it, with one try of 2 s for each message."""
        return subprocess.run(
            [*self._ipmitool(), *words], capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )

    def _ipmitool(self) -> Sequence[str]:
        where = ["-H", "127.0.0.1", "-p", str(self.lan_port), "-U", USER, "-P", PASSWORD]
        return ["ipmitool", "-I", "lanplus", "-C", "3", "-N", "2", "-R", "1", *where]  # ipmi_sim knows suite 3

    def _answers(self) -> bool:
        """It answers on its LAN port and listens on the other."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.settimeout(0.1)
            try:
                probe.connect(("127.0.0.1", self.lan_port))
                probe.send(_PRESENCE_PING)
                answer = probe.recv(64)
            except OSError:
                return False
        return len(answer) > 8 and answer[8] == _PONG and self._guest_port_listens()

    def _guest_port_listens(self) -> bool:
        """Read from the kernel's table: a connection would take the place of the guest's."""
        wanted = f"0100007F:{self.guest_port:04X}"
        rows = (row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return any(row[1] == wanted and row[3] == _LISTENS for row in rows)
