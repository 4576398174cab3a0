"""hccn_tool as a real program that answers, hangs with children, floods or fails."""

import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeagent.drivers import hccn
from nodeagent.drivers.command import CommandRunner, minimal_environment
from nodeagent.drivers.hccn import HccnTool, PortCount, tool_path
from nodeagent.drivers.hccn_text import ToolError

LIMIT_S = 10.0
ENVIRON = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/a:/b", "SECRET": "x"}
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Make a shell program of a body; programs that are left over in the end fail the test."""

    def make(body: str) -> Path:
        path = tmp_path / "hccn_tool"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    yield make
    deadline = time.monotonic() + LIMIT_S
    while left := [p for p in pids(str(tmp_path))]:
        assert time.monotonic() < deadline, f"left over: {left}"
        time.sleep(0.02)


def pids(word: str) -> list[int]:
    """Processes with a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if word in (entry / "cmdline").read_text(errors="replace"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def tool(path: Path, deadline_s: float = LIMIT_S) -> HccnTool:
    return HccnTool(str(path), deadline_s, ENVIRON, trust=True)


class TestAnswers:
    @pytest.mark.parametrize(("word", "up"), [("UP", True), ("DOWN", False)])
    def test_link_of_the_physical_id(self, write: Write, word: str, up: bool) -> None:
        asks = tool(write(f'[ "$*" = "-i 13 -link -g" ] && echo "link status: {word}"'))
        assert asks.link_up(13) is up

    def test_ports_of_the_logic_id_without_those_that_are_not_wired(self, write: Write, tmp_path: Path) -> None:
        path = write(
            f"""echo "$*" >> {tmp_path}/log
case "$*" in
"-g -dev_info -i 3") cat <<END
+-+
| UdieID | PortID | Speed | PortType | Link Status | Media Type |
+-+
| 0 | 0 | 400G | ETH | DOWN | x |
| 0 | 1 | 200G | UB | DOWN | x |
| 0 | 2 | 200G | UB | DOWN | x |
| 1 | 3 | 200G | UB | DOWN | x |
| 1 | 4 | 200G | UB | UP | x |
+-+
END
;;
"-g -port_info -i 3 -u 0 -p 1") echo "port_enable: on" ;;
"-g -port_info -i 3 -u 0 -p 2") echo "port_enable: off" ;;
*) exit 3 ;;
esac"""
        )
        asks = tool(path)
        assert asks.ports_down(3) == PortCount(bonding=1, ub=2), "a port that does not tell counts as wired"
        asks.ports_down(3)
        log = (tmp_path / "log").read_text().splitlines()
        assert log.count("-g -port_info -i 3 -u 0 -p 1") == 1, "a told answer is remembered"
        assert log.count("-g -port_info -i 3 -u 1 -p 3") == 2, "a failed one is asked for again"

    def test_the_wiring_is_asked_for_again_after_an_hour(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        table = "+-+\\n| 0 | 1 | 200G | UB | DOWN | x |\\n+-+"
        path = write(f'case "$*" in *port_info*) cat "$0.enabled" ;; *) printf "{table}\\n" ;; esac')
        asks, wired = tool(path), Path(f"{path}.enabled")
        wired.write_text("port_enable: off\n")
        assert asks.ports_down(0) == PortCount(0, 0)
        wired.write_text("port_enable: on\n")
        assert asks.ports_down(0) == PortCount(0, 0)
        monkeypatch.setattr(hccn, "ENABLED_S", 0.0)
        assert asks.ports_down(0) == PortCount(0, 1)

    def test_the_environment_is_minimal(self, write: Write) -> None:
        path = write('env | cut -d= -f1 | sort | tr "\\n" " " >&2; exit 1')
        with pytest.raises(ToolError) as caught:
            tool(path).link_up(0)
        shown = set(caught.value.sentence.partition(": ")[2].split())
        assert {"PATH", "LD_LIBRARY_PATH"} <= shown
        assert shown <= {"PATH", "LD_LIBRARY_PATH", "PWD", "_", "SHLVL", "OLDPWD"}, "the rest is the shell's own"

    def test_values_with_nul_are_left_out(self) -> None:  # lesson 86
        assert minimal_environment({"PATH": "/bin\0", "LD_LIBRARY_PATH": "/a", "HOME": "/"}) == {
            "LD_LIBRARY_PATH": "/a"
        }
        assert minimal_environment({}) == {}


class TestMisbehaviour:
    def test_a_hang_with_children_ends_with_all_of_them(self, write: Write, tmp_path: Path) -> None:
        path = write(f"sh -c 'sleep 1000; : {tmp_path}' & sh -c 'trap \"\" TERM; sleep 1000; : {tmp_path}' & wait")
        began = time.monotonic()
        with pytest.raises(ToolError, match="in time"):
            tool(path, 0.5).link_up(0)
        assert time.monotonic() - began < 5

    def test_children_that_keep_the_output_open_do_not_delay_the_answer(self, write: Write, tmp_path: Path) -> None:
        path = write(f"sh -c 'sleep 1000; : {tmp_path}' & echo 'link status: UP'")
        began = time.monotonic()
        assert tool(path).link_up(0)
        assert time.monotonic() - began < 5

    @pytest.mark.parametrize("stream", ["1", "2"])
    def test_a_flood_ends_at_the_limit(self, write: Write, stream: str) -> None:
        path = write(f"exec yes >&{stream}")
        with pytest.raises(ToolError, match="more than 1048576 bytes"):
            tool(path).link_up(0)

    def test_output_up_to_the_limit_is_read(self, write: Write) -> None:
        path = write("head -c 1000 /dev/zero | tr '\\0' 'x'")
        runner = CommandRunner(ENVIRON, limit_bytes=1000)
        assert runner.run([str(path)], LIMIT_S) == "x" * 1000
        with pytest.raises(ToolError, match="more than 999 bytes"):
            CommandRunner(ENVIRON, limit_bytes=999).run([str(path)], LIMIT_S)

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("echo 'cannot open device' >&2; exit 4", "status 4: cannot open device"),
            ("echo 'link status: DOWN'; exit 1", "status 1: link status: DOWN"),
            ("exit 1", "status 1: it said nothing"),
            ("kill -9 $$", "status -9"),
            ("printf '\\377\\376'", "not a link status"),
        ],
    )
    def test_failures_are_unknown_not_down(self, write: Write, body: str, said: str) -> None:  # R15
        with pytest.raises(ToolError, match=said):
            tool(write(body)).link_up(0)

    def test_one_deadline_for_all_questions_about_a_chip(self, write: Write) -> None:
        rows = "\\n".join(f"| 0 | {i} | 200G | UB | DOWN | x |" for i in range(30))
        path = write(f'case "$*" in *port_info*) sleep 0.4 ;; *) printf "+-+\\n{rows}\\n+-+\\n" ;; esac')
        began = time.monotonic()
        assert tool(path, 1.0).ports_down(0) == PortCount(0, 30)
        assert time.monotonic() - began < 5

    def test_stopping_ends_a_question_at_once(self, write: Write) -> None:
        asks = tool(write("echo $$ > $0.pid; exec sleep 1000"))
        path = Path(f"{asks._path}.pid")

        def stop() -> None:
            while not path.exists() or not path.read_text().strip():
                time.sleep(0.01)
            asks.stop()

        threading.Thread(target=stop).start()
        began = time.monotonic()
        with pytest.raises(ToolError, match="status -9"):
            asks.link_up(0)
        assert time.monotonic() - began < LIMIT_S
        asks.stop()

    def test_no_question_is_begun_after_the_stop(self, write: Write, tmp_path: Path) -> None:
        asks = tool(write(f"touch {tmp_path}/began; echo 'link status: UP'"))
        asks.stop()
        with pytest.raises(ToolError, match="not started any more"):
            asks.link_up(0)
        assert not (tmp_path / "began").exists()

    def test_questions_are_answered_again_after_a_resume(self, write: Write) -> None:
        asks = tool(write("echo 'link status: UP'"))
        asks.stop()
        asks.resume()
        assert asks.link_up(0)
        assert asks.pids() == []

    def test_a_question_that_runs_is_named(self, write: Write) -> None:
        asks = tool(write("echo $$ > $0.pid; exec sleep 1000"))
        path = Path(f"{asks._path}.pid")

        def question() -> None:
            with pytest.raises(ToolError):
                asks.link_up(0)

        thread = threading.Thread(target=question)
        thread.start()
        while not path.exists() or not path.read_text().strip():
            time.sleep(0.01)
        assert asks.pids() == [int(path.read_text())]
        asks.stop()
        thread.join(LIMIT_S)
        assert asks.pids() == []

    def test_a_program_that_cannot_be_killed_is_not_started_again(self, write: Write) -> None:  # lesson 35
        class Undead:
            alive: int | None = None

            def poll(self) -> int | None:
                return self.alive

        runner, undead = CommandRunner(ENVIRON), Undead()
        runner._left.append(undead)  # type: ignore[arg-type]
        path = str(write("echo hello"))
        with pytest.raises(ToolError, match="hangs in the kernel"):
            runner.run([path], LIMIT_S)
        undead.alive = -9
        assert runner.run([path], LIMIT_S) == "hello\n"

    def test_many_runs_leave_no_zombies_and_no_descriptors(self, write: Write) -> None:  # lesson 79
        asks = tool(write("echo 'link status: UP'"))
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            asks.link_up(0)
        assert len(os.listdir("/proc/self/fd")) == before
        stats = [p.read_text() for p in Path("/proc").glob("[0-9]*/stat") if p.exists()]
        assert not [s for s in stats if ") Z " in s and s.rpartition(")")[2].split()[1] == str(os.getpid())]


class TestPath:
    def test_a_symbolic_link_is_refused(self, write: Write, tmp_path: Path) -> None:
        path = write("echo 'link status: UP'")
        (tmp_path / "link").symlink_to(path)
        with pytest.raises(ToolError, match="symbolic link"):
            tool(tmp_path / "link").link_up(0)

    def test_a_folder_that_is_a_symbolic_link_is_refused(self, write: Write, tmp_path: Path) -> None:
        write("echo 'link status: UP'")
        (tmp_path.parent / f"{tmp_path.name}-link").symlink_to(tmp_path)
        with pytest.raises(ToolError, match="symbolic link"):
            tool(tmp_path.parent / f"{tmp_path.name}-link" / "hccn_tool").link_up(0)

    def test_a_missing_tool_is_unknown_and_may_come_later(self, write: Write, tmp_path: Path) -> None:
        asks = tool(tmp_path / "hccn_tool")
        with pytest.raises(ToolError, match="does not exist"):
            asks.link_up(0)
        write("echo 'link status: UP'")
        assert asks.link_up(0)

    def test_no_program_at_all(self, tmp_path: Path) -> None:
        path = tmp_path / "hccn_tool"
        path.write_text("not a program")
        path.chmod(stat.S_IRUSR)
        with pytest.raises(ToolError, match="could not be started"):
            tool(path).link_up(0)

    def test_one_that_others_could_have_written_is_not_run(self, write: Write) -> None:
        path = write("echo 'link status: UP'")
        path.chmod(0o777)
        with pytest.raises(ToolError, match="is not run"):
            HccnTool(str(path), LIMIT_S, ENVIRON).link_up(0)

    def test_what_the_setting_means(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert tool_path("") is None
        assert tool_path("/x/hccn_tool") == "/x/hccn_tool"
        monkeypatch.setattr(hccn, "DEFAULT_PATH", "/nowhere/hccn_tool")
        assert tool_path("auto") is None
        monkeypatch.setattr(hccn, "DEFAULT_PATH", sys.executable)
        assert tool_path("auto") == sys.executable
