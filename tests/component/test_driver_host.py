"""The driver host as a process: it hangs, crashes, prints, outlives nobody, and is never waited for."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kit.daemon import alive, compile_library, wait_until

from nodeagent.core.errors import HostError, LibraryError
from nodeagent.drivers.host import DriverHost, HostGoneError, HostSpec, HostStuckError, Reaper

ADAPTER = "nodeagent.drivers.dcmi_adapter:DcmiAdapter"
LIMIT_S = 30.0
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

# MARK names a file that the library makes when it has come so far.
ODD = """
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "na_dcmi.h"
#define PUBLIC __attribute__((visibility("default")))
static void mark(void) { if (getenv("MARK")) close(open(getenv("MARK"), O_CREAT | O_WRONLY, 0644)); }
static void stop_here(void) { mark(); for (;;) pause(); }
/* Something that writes into a foreign descriptor, as programs with a damaged number of one do. */
static void garbage(void)
{
    int type = 0;
    for (int fd = 3; fd < 64; fd++) {
        socklen_t room = sizeof type;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &room) == 0 && type == SOCK_SEQPACKET)
            (void)!write(fd, "{\\"id\\": 1e999}", 13);
    }
}
__attribute__((constructor)) static void loaded(void)
{
    if (getenv("HANG_IN_LOADING")) stop_here();
    if (getenv("GARBAGE")) garbage();
}
PUBLIC int dcmi_init(void)
{
    printf("vendor words without a newline or a flush");
    fflush(stdout);
    if (getenv("HANG_IN_INIT")) stop_here();
    if (getenv("EXIT_IN_INIT")) exit(7);
    return 0;
}
PUBLIC int dcmi_get_card_list(int *n, int *ids, int room) { (void)ids; (void)room; *n = 0; raise(SIGSEGV); return 0; }
PUBLIC int dcmi_get_device_num_in_card(int c, int *n) { (void)n; mark(); sleep(c); return -8006; }
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that misbehaves as its environment says."""
    return str(compile_library(tmp_path_factory.mktemp("odd"), ODD))


class Hosts:
    """Starts hosts and ends them with the test. gone: what on_gone was told."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.reaper = Reaper()
        self.gone: list[str] = []

    def start(self, **environment: str) -> DriverHost:
        spec = HostSpec("odd", ADAPTER, environment)
        host = DriverHost(spec, self.reaper, lambda *_: None, self.gone.append)
        self.stack.callback(host.close)
        return host


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with ExitStack() as stack:
        yield Hosts(stack)


class TestHangs:
    def test_a_call_that_hangs_is_given_up_at_its_deadline_and_the_host_takes_no_further_one(
        self, hosts: Hosts, odd: str
    ) -> None:
        host = hosts.start(HANG_IN_INIT="1")
        host.call("open", odd, deadline_s=LIMIT_S)
        with pytest.raises(HostStuckError, match=r"init\('auto'\) did not return within 0.2 s"):
            host.call("init", "auto", deadline_s=0.2)
        with pytest.raises(HostStuckError, match="did not return"):
            host.call("version", deadline_s=LIMIT_S)
        assert host.stuck
        assert hosts.gone == []

    def test_closing_a_host_that_hangs_does_not_wait_and_leaves_neither_process_nor_zombie(
        self, hosts: Hosts, odd: str
    ) -> None:
        host = hosts.start(HANG_IN_INIT="1")
        host.call("open", odd, deadline_s=LIMIT_S)
        with pytest.raises(HostStuckError):
            host.call("init", "auto", deadline_s=0.2)
        host.close()
        host.close()
        wait_until(lambda: not alive(host.pid), "the child is collected")
        wait_until(lambda: hosts.reaper.alive() == 0)
        assert hosts.gone == []  # ended by us: no news

    def test_an_answer_that_comes_after_its_deadline_reaches_nobody(self, hosts: Hosts, odd: str) -> None:
        host = hosts.start()
        host.call("open", odd, deadline_s=LIMIT_S)
        with pytest.raises(HostStuckError):
            host.call("devices_in_card", 1, deadline_s=0.1)
        with pytest.raises(HostStuckError):
            host.call("devices_in_card", 0, deadline_s=LIMIT_S)
        assert host._waiting == {}

    def test_a_second_host_is_not_disturbed(self, hosts: Hosts, odd: str) -> None:
        stuck, other = hosts.start(HANG_IN_INIT="1"), hosts.start()
        for host in (stuck, other):
            host.call("open", odd, deadline_s=LIMIT_S)
        with pytest.raises(HostStuckError):
            stuck.call("init", "auto", deadline_s=0.1)
        assert other.call("init", "auto", deadline_s=LIMIT_S) == "v1"

    def test_loading_that_hangs_is_given_up_too(self, hosts: Hosts, odd: str) -> None:
        host = hosts.start(HANG_IN_LOADING="1")
        with pytest.raises(HostStuckError):
            host.call("open", odd, deadline_s=0.3)


class TestEnds:
    def test_a_crash_in_a_call_names_the_signal_and_is_told_once(self, hosts: Hosts, odd: str) -> None:
        host = hosts.start()
        host.call("open", odd, deadline_s=LIMIT_S)
        with pytest.raises(HostGoneError, match=r"driver host odd was killed by SIGSEGV during cards\(\)"):
            host.call("cards", deadline_s=LIMIT_S)
        wait_until(lambda: hosts.gone)
        with pytest.raises(HostGoneError, match="SIGSEGV"):
            host.call("version", deadline_s=LIMIT_S)
        host.close()
        assert hosts.gone == ["driver host odd was killed by SIGSEGV"]
        wait_until(lambda: not alive(host.pid))

    def test_a_kill_while_nobody_asks_is_told_too(self, hosts: Hosts, odd: str) -> None:
        host = hosts.start()
        host.call("open", odd, deadline_s=LIMIT_S)
        os.kill(host.pid, signal.SIGKILL)
        wait_until(lambda: hosts.gone)
        assert hosts.gone == ["driver host odd was killed by SIGKILL"]
        with pytest.raises(HostGoneError, match="SIGKILL"):
            host.call("version", deadline_s=LIMIT_S)

    def test_a_kill_during_a_call_ends_the_call(self, hosts: Hosts, odd: str, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        host = hosts.start(HANG_IN_INIT="1", MARK=str(mark))
        host.call("open", odd, deadline_s=LIMIT_S)

        def kill() -> None:
            wait_until(mark.exists)
            os.kill(host.pid, signal.SIGTERM)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(HostGoneError, match="SIGTERM"):
            host.call("init", "auto", deadline_s=LIMIT_S)
        killer.join()

    def test_a_library_that_ends_its_process_gives_its_status(self, hosts: Hosts, odd: str) -> None:
        host = hosts.start(EXIT_IN_INIT="1")
        host.call("open", odd, deadline_s=LIMIT_S)
        with pytest.raises(HostGoneError, match="driver host odd ended with status 7"):
            host.call("init", "auto", deadline_s=LIMIT_S)

    def test_a_host_that_speaks_out_of_protocol_is_ended(self, hosts: Hosts, odd: str) -> None:
        host = hosts.start(GARBAGE="1")
        with pytest.raises(HostGoneError, match=r"driver host odd is of no use: .* no message"):
            host.call("open", odd, deadline_s=LIMIT_S)
        wait_until(lambda: hosts.gone)
        wait_until(lambda: hosts.reaper.alive() == 0)
        assert not alive(host.pid)
        assert len(hosts.gone) == 1

    def test_a_host_that_ends_before_it_reads_its_call_tells_its_status(
        self, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The socket says "connection reset" then, which helps nobody."""
        monkeypatch.setattr(
            DriverHost, "_command", lambda *_: [sys.executable, "-c", "import time; time.sleep(0.3); 1/0"]
        )
        with pytest.raises(HostGoneError, match="driver host odd ended with status 1"):
            hosts.start().call("open", "x", deadline_s=LIMIT_S)

    @pytest.mark.parametrize("place", ["HANG_IN_INIT", "HANG_IN_LOADING", ""])
    def test_a_host_ends_with_its_parent_however_that_ends(self, odd: str, tmp_path: Path, place: str) -> None:
        """Killed with SIGKILL, so that nothing of the parent can tell the child; also while its call hangs."""
        mark = tmp_path / "mark"
        with subprocess.Popen(
            [sys.executable, "-I", "-c", PARENT, odd, place, str(mark)], stdout=subprocess.PIPE, text=True
        ) as parent:
            try:
                pid = int(parent.stdout.readline())
                if place:
                    wait_until(mark.exists, "the call hangs")
                else:
                    assert parent.stdout.readline() == "idle\n"
                assert alive(pid)
            finally:
                parent.kill()
        wait_until(lambda: not alive(pid, zombie=False), "the child has ended")


PARENT = """
import sys, threading
from nodeagent.drivers.host import DriverHost, HostSpec, Reaper
odd, place, mark = sys.argv[1:]
environment = {place: "1", "MARK": mark} if place else {}
host = DriverHost(HostSpec("orphan", "nodeagent.drivers.dcmi_adapter:DcmiAdapter", environment), Reaper(), print, print)
print(host.pid, flush=True)
host.call("open", odd, deadline_s=600)
host.call("init", "auto", deadline_s=600)
print("idle", flush=True)
threading.Event().wait()
"""


class TestOutput:
    def test_what_a_library_prints_does_not_reach_our_output(self, odd: str) -> None:
        program = PARENT.replace("threading.Event().wait()", "host.close()")
        done = subprocess.run(
            [sys.executable, "-I", "-c", program, odd, "", ""],
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT_S,
        )
        assert done.stdout.splitlines()[1:] == ["idle"]
        assert "vendor words" not in done.stdout
        assert "vendor words" in done.stderr

    def test_settings_of_python_and_the_working_folder_do_not_reach_the_child(
        self, hosts: Hosts, odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "json.py").write_text("raise SystemExit('somebody else was imported')")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        assert hosts.start().call("open", odd, deadline_s=LIMIT_S) is None


class TestRefusals:
    def test_a_call_that_the_adapter_does_not_have(self, hosts: Hosts) -> None:
        with pytest.raises(HostError, match="this driver host has no call 'reboot'"):
            hosts.start().call("reboot", deadline_s=LIMIT_S)

    def test_an_error_keeps_its_class_and_hint_and_the_host_goes_on(self, hosts: Hosts, odd: str) -> None:
        host = hosts.start()
        with pytest.raises(LibraryError) as caught:
            host.call("open", "/nowhere/libdcmi.so", deadline_s=LIMIT_S)
        assert caught.value.hint
        host.call("open", odd, deadline_s=LIMIT_S)

    def test_a_message_that_fits_no_packet_is_refused_before_it_is_sent(self, hosts: Hosts, odd: str) -> None:
        host = hosts.start()
        with pytest.raises(HostError, match="larger than the 180000"):
            host.call("open", "x" * 200_000, deadline_s=LIMIT_S)
        host.call("open", odd, deadline_s=LIMIT_S)

    def test_no_process_left_is_one_sentence_and_leaks_no_descriptor(
        self, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = open_descriptors()
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(HostError, match="driver host odd could not be started: No such file or directory"):
            hosts.start()
        assert open_descriptors() <= before


def open_descriptors() -> set[str]:
    return {fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}


class Unkillable:
    """A child in D state, which only a broken driver can make: SIGKILL does nothing until `dead`."""

    dead = False

    def kill(self) -> None:
        """Nothing happens."""

    def poll(self) -> int | None:
        return -9 if self.dead else None


class TestReaper:
    def test_children_that_cannot_be_killed_bound_how_many_are_started(self) -> None:
        reaper, stuck = Reaper(limit=2), [Unkillable(), Unkillable()]
        reaper.take(stuck[0])  # type: ignore[arg-type]
        reaper.check()
        reaper.take(stuck[1])  # type: ignore[arg-type]
        with pytest.raises(HostError, match="2 driver hosts hang in the kernel") as caught:
            DriverHost(HostSpec("odd", ADAPTER), reaper, lambda *_: None, lambda _: None)
        assert "reboot" in caught.value.hint
        stuck[0].dead = True
        assert reaper.alive() == 1
        reaper.check()

    def test_a_child_that_can_be_killed_is_collected(self) -> None:
        reaper = Reaper()
        with subprocess.Popen(["sleep", "60"]) as child:
            reaper.take(child)
            wait_until(lambda: reaper.alive() == 0)
            assert child.returncode == -signal.SIGKILL
        assert not alive(child.pid)
