"""A Linux guest with a real /dev/ipmi0, whose BMC is a simulator on this machine (kit.bmc_simulator).

QEMU emulates the processor, so neither rights nor hardware help are needed. The root of the guest is the root of this
machine, read-only: a program runs there with the same interpreter, packages and checkout as here.
"""

import contextlib
import json
import platform
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kit.bmc_simulator import BINARIES, RIG, BmcSimulator
from kit.daemon import wait_until
from kit.server_process import ServerProcess

from nodeagent.core.alarms import Alarm
from nodeagent.core.errors import IpmiError

START_LIMIT_S = 90.0
ANSWER_LIMIT_S = 60.0
"""Bounds of the waits on a guest: at least three times what a machine with three programs for each processor took. That
was 10 s (at rest 4 s) for the start up to the first words of a program of ours, 15 s for those of the daemon, 12 s for
an answer where QEMU gives up three times."""
DEADLINE_S = 10.0
"""Of a command to the BMC, as the daemon's (node-faults 2.3)."""
SHARE = "/run/share"
"""Where the guest sees `Guest.share`."""
_DEVICE_ID = (0x06, 0x01)
"""Network function and command that every BMC answers."""
_MEMORY = "320"
_CONSOLE = "console.log"


class GuestEnded(AssertionError):
    """The guest is gone, or its program has closed its output."""


class Guest:
    """A guest that runs one program, with a BMC at a port of this machine. Nothing need listen there.

    folder: for its files; must exist. words: the program; its standard input and output are `tell` and `hear`. What it
    writes to stderr is in the console's log, which failures show.
    """

    def __init__(self, folder: Path, guest_port: int, words: Sequence[object]) -> None:
        self.share = folder / "share"
        """Both sides may read and write here; the guest calls it SHARE."""
        self.share.mkdir()
        command = shlex.join(map(str, words))
        (self.share / "program").write_text(f"cd /run && {command}\n")
        self._folder = folder
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0)
        self._line: socket.socket | None = None
        self._heard = b""
        self._qemu = ServerProcess(
            "qemu", _qemu(guest_port, self._listener.getsockname()[1], self.share), folder, self._connected
        )

    def __enter__(self) -> "Guest":
        self._qemu.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._qemu.kill()
        self._listener.close()
        if self._line is not None:
            self._line.close()

    def tell(self, line: str) -> None:
        """A line for the program's standard input."""
        assert self._line is not None
        self._line.sendall(line.encode() + b"\n")

    def hear(self, limit_s: float = ANSWER_LIMIT_S) -> str:
        """The next line that the program writes. GuestEnded, or AssertionError after the limit."""
        assert self._line is not None
        self._line.settimeout(limit_s)
        while b"\n" not in self._heard:
            try:
                more = self._line.recv(65536)
            except (TimeoutError, ConnectionResetError):
                more = b""
                assert not self._qemu.running, f"no line from the guest within {limit_s:g} s\n{self.console()}"
            if not more:
                raise GuestEnded(f"the guest has ended\n{self.console()}")
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode().rstrip("\r")

    def exit_status(self) -> int:
        """Wait for the end of the program, whatever it still writes; its exit status."""
        with contextlib.suppress(GuestEnded):
            while True:
                self.hear()
        file = self.share / "status"
        assert file.exists(), f"the guest ended without a status\n{self.console()}"
        return int(file.read_text())

    def console(self) -> str:
        """The end of what kernel, first process and stderr of the program said."""
        log = self._folder / _CONSOLE
        words = log.read_text(errors="replace") if log.exists() else ""
        return f"end of {log}:\n{words[-4000:]}\n{self._qemu.words()[-2000:]}"

    def _connected(self) -> bool:
        """QEMU has the serial line in its hand."""
        try:
            self._line, _ = self._listener.accept()
        except BlockingIOError:
            return False
        return True


class IpmiGuest(Guest):
    """A guest whose program is our IPMI modules (tests/ipmi/guest_agent.py); each method is one command to it.

    Errors of ours that are raised in the guest are raised here as GuestError, with the same words.
    """

    def __init__(self, folder: Path, bmc: BmcSimulator) -> None:
        super().__init__(folder, bmc.guest_port, [sys.executable, RIG / "guest_agent.py"])

    def __enter__(self) -> "IpmiGuest":
        super().__enter__()
        hello = json.loads(self.hear(START_LIMIT_S))
        assert hello == {"is": "ready"}, hello
        return self

    def has_device(self) -> bool:
        """There is a /dev/ipmi0."""
        return bool(self.ask("device"))

    def wait_for_bmc(self) -> None:
        """Until the BMC answers: QEMU calls it once a second after it was lost."""
        wait_until(lambda: self.raw(*_DEVICE_ID, b"")[0] == 0, "the BMC answers the guest", ANSWER_LIMIT_S)

    def load_driver(self) -> None:
        """Load the driver again, as an operator would; it looks for the BMC anew."""
        for words in (["rmmod", "ipmi_si"], ["insmod", str(BINARIES / "modules/ipmi_si.ko")]):
            status, said = self.run("/bin/busybox", *words)
            assert status == 0, said

    def poll(self) -> tuple[Alarm, ...]:
        """The present alarms."""
        return tuple(Alarm(*fields) for fields in self.ask("poll"))

    def serial_number(self) -> str:
        """The serial number of the product."""
        return str(self.ask("serial_number"))

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """One command; completion code and payload. The device stays open whatever happens."""
        return bytes.fromhex(self.ask("raw", netfn=netfn, command=command, data=data.hex()))

    def close(self, deadline_s: float = DEADLINE_S) -> None:
        """Close the device; the next command opens it again, and may take so long."""
        self.ask("close", deadline_s=deadline_s)

    def run(self, *words: object) -> tuple[int, str]:
        """Run a program in the guest to its end: exit status, and what it wrote."""
        status, said = self.ask("run", words=[str(word) for word in words])
        return status, said

    def leave(self, status: int = 0) -> int:
        """End the program with this exit status, and the guest with it; the status that arrived here."""
        self.tell(json.dumps({"do": "leave", "status": status}))
        return self.exit_status()

    def ask(self, name: str, **arguments: object) -> Any:
        """Have the agent do something: what came of it."""
        self.tell(json.dumps({"do": name, **arguments}))
        answer = json.loads(self.hear())
        if "error" in answer:
            raise GuestError(answer["error"], answer["says"], answer["hint"])
        return answer["is"]


class GuestError(IpmiError):
    """An error of ours from inside the guest. kind: the name of its class."""

    def __init__(self, kind: str, sentence: str, hint: str) -> None:
        super().__init__(sentence, hint)
        self.kind = kind


class ProgramInGuest:
    """A program beside the agent, such as the daemon, from its start to `end`. log: what it writes, on this side."""

    def __init__(self, guest: IpmiGuest, name: str, *words: object) -> None:
        self._guest = guest
        self.log = guest.share / f"{name}.log"
        self.pid: int = guest.ask("start", words=[str(word) for word in words], log=self.log.name)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and wait for its end; the exit status."""
        return int(self._guest.ask("end", pid=self.pid, number=int(number)))


def no_guest() -> str:
    """Why no guest can be had here; empty when one can."""
    if platform.machine() != "x86_64":  # as GUESTS of tests/ipmi/build.py
        return f"no guest with an IPMI interface is known for {platform.machine()}"
    missing = [str(file) for file in (BINARIES / "vmlinux", BINARIES / "initramfs") if not file.exists()]
    return f"{' and '.join(missing)} missing: run tests/ipmi/build.py" if missing else ""


def _qemu(guest_port: int, line_port: int, share: Path) -> list[str]:
    """The command line. Two serial lines: the console, into a file; the program's, to us. No network."""
    program = shutil.which("qemu-system-x86_64")
    assert program is not None, "install qemu-system-x86"
    shares = [
        *("-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"),
        # security_model=none: the guest's root need not be root here, and what it cannot own it leaves as it is.
        *("-virtfs", f"local,path={share},mount_tag=share,security_model=none"),
    ]
    return [
        *(program, "-M", "pc", "-accel", "tcg", "-cpu", "qemu64,+rdrand", "-m", _MEMORY, "-smp", "1"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-serial", f"file:{_CONSOLE}"),
        *("-chardev", f"socket,id=line,host=127.0.0.1,port={line_port}", "-serial", "chardev:line"),
        # The driver is found through the ISA interface; QEMU calls the simulator again each second when it was lost.
        *("-chardev", f"socket,id=bmc,host=127.0.0.1,port={guest_port},reconnect=1"),
        *("-device", "ipmi-bmc-extern,id=bmc0,chardev=bmc", "-device", "isa-ipmi-kcs,bmc=bmc0,irq=5"),
        *("-kernel", str(BINARIES / "vmlinux"), "-initrd", str(BINARIES / "initramfs"), *shares),
        *("-append", "console=ttyS0 quiet panic=-1"),
    ]
