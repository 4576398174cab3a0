"""`scan`, `why switch` and `doctor` on an A3 node without a daemon: the command asks the LingQu library itself."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.daemon import compile_library, flags, run_command
from kit.switch_library import INIT, PARTS, QUERY, library_text, without

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer, library_dir

X = "80E18005"
PORT_DOWN = "0x08520003,na,npu"


@pytest.fixture(scope="module")
def a3() -> Iterator[MockServer]:
    with MockServer.start("a3") as server:
        yield server


@pytest.fixture
def control(a3: MockServer) -> Iterator[MockControl]:
    """The node without switch faults, and left so."""
    with a3.control() as control:
        yield control
        control.fail(QUERY, 0)
        control.hang(QUERY, 0)
        control.clear_switch_fault(2, PORT_DOWN, port=11, peer_id=5)


def command(a3: MockServer, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    settings = {
        "driver.library": library_dir() / "libdcmi.so",
        "driver.trust_library": "true",
        "switches.library": library_dir() / "liblingqu-dcmi.so",
        "mock.socket": a3.socket,
        "daemon.socket": "",
        "publish.target": "stdout",
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    return run_command(*words, *flags(settings))


def line_of_switches(text: str) -> str:
    """The line of `scan` about all switches."""
    (line,) = [line for line in text.splitlines() if line.startswith("switches:")]
    return line


class TestScan:
    def test_no_fault(self, a3: MockServer, control: MockControl) -> None:
        done = command(a3, "scan")
        assert (done.returncode, done.stderr) == (0, "")
        assert line_of_switches(done.stdout) == "switches: 0 faults, node Healthy"
        assert control.state()["switch_rings"] == []

    def test_a_fault_of_a_switch_alone(self, a3: MockServer, control: MockControl) -> None:
        control.raise_switch_fault(2, PORT_DOWN, port=11, peer_id=5)
        done, text = command(a3, "scan", "--output", "json"), command(a3, "scan", "--once")
        assert done.returncode == text.returncode == 1
        switches = json.loads(done.stdout)["switches"]
        assert (switches["known"], switches["level"], switches["node_status"]) == (True, "Separate", "UnHealthy")
        assert [(f["code"], f["switch_chip"], f["port"], f["peer"]) for f in switches["faults"]] == [
            ("[0x08520003,na,npu,na]", 2, 11, "npu 5")
        ]
        assert "switches: 1 fault, node UnHealthy (Separate)" in text.stdout

    def test_a_missing_library_is_said_and_is_no_error(self, a3: MockServer, tmp_path: Path) -> None:
        path = tmp_path / "liblingqu-dcmi.so"
        done = command(a3, "scan", switches__library=path)
        assert (done.returncode, done.stderr) == (0, "")
        assert line_of_switches(done.stdout) == (
            f"switches: nothing is known, there is no LingQu library: {path} does not exist or is no file"
        )

    def test_one_that_refuses_to_begin_is_none(self, a3: MockServer, tmp_path: Path) -> None:
        no = {**PARTS, INIT: PARTS[INIT].replace("return 0", "return 1")}
        path = compile_library(tmp_path, library_text(no), "liblingqu-dcmi.so")
        done = command(a3, "scan", "--output", "json", switches__library=path)
        assert done.returncode == 0
        switches = json.loads(done.stdout)["switches"]
        assert (switches["watched"], switches["known"], switches["silent_since_ms"]) == (False, False, None)
        assert "lq_dcmi_init returned 1" in switches["why_absent"]

    def test_switched_off(self, a3: MockServer) -> None:
        done = command(a3, "scan", switches__enabled="false")
        assert done.returncode == 0
        assert line_of_switches(done.stdout).endswith("there is no LingQu library: switches.enabled is false")

    @pytest.mark.parametrize("how", ["fails", "hangs", "crashes"])
    def test_one_that_gives_no_answer_is_unknown_and_hides_no_chip(
        self, a3: MockServer, control: MockControl, how: str
    ) -> None:
        if how == "fails":
            control.fail(QUERY, -8005)
        elif how == "hangs":
            control.hang(QUERY, 600)
        else:
            control.crash(QUERY)
        done = command(a3, "scan", driver__call_deadline_s="0.5")
        assert done.returncode == 2
        assert len([line for line in done.stdout.splitlines() if " healthy " in line]) == 16
        word = {"fails": "-8005", "hangs": "did not return within 0.5 s", "crashes": "SIGSEGV"}[how]
        line = line_of_switches(done.stdout)
        assert line.startswith("switches: nothing is known, the LingQu library gives no answer: ")
        assert word in line

    def test_a_node_without_switches_says_nothing(self) -> None:
        done = run_command("scan", "--dry-run", "--node", "a2")
        assert done.returncode == 0
        assert "switch" not in done.stdout

    def test_dry_run(self) -> None:
        done = run_command("scan", "--dry-run", "--node", "a3-bad-switches", "--output", "json")
        assert done.returncode == 1
        assert json.loads(done.stdout)["switches"]["faults"]


class TestWhySwitch:
    def test_a_port_and_another_one(self, a3: MockServer, control: MockControl) -> None:
        control.raise_switch_fault(2, PORT_DOWN, port=11, peer_id=5)
        done = command(a3, "why", "switch", "2/11", "--once")
        assert done.returncode == 1
        assert "[0x08520003,na,npu,na] Separate" in done.stdout
        other = command(a3, "why", "switch", "2/12", "--once")
        assert other.returncode == 0
        assert "faults: none" in other.stdout

    def test_a_missing_library(self, a3: MockServer, tmp_path: Path) -> None:
        done = command(a3, "why", "switch", "2", "--once", switches__library=tmp_path / "none.so")
        assert done.returncode == 2
        assert "nothing is known of switches, there is no LingQu library: " in done.stdout

    def test_dry_run(self) -> None:
        done = run_command("why", "switch", "0", "--dry-run", "--node", "a3")
        assert (done.returncode, done.stderr) == (0, "")
        none = run_command("why", "switch", "0", "--dry-run", "--node", "a2")
        assert none.returncode == 2
        assert "this node has no switches" in none.stderr


class TestDoctor:
    def check(self, a3: MockServer, **more: object) -> tuple[str, str]:
        done = command(a3, "doctor", "--only", "switch-library", "--output", "json", **more)
        (check,) = json.loads(done.stdout)["checks"]
        return check["verdict"], " ".join([*check["detail"], check["hint"]])

    def test_found(self, a3: MockServer) -> None:
        verdict, text = self.check(a3)
        assert verdict == "ok"
        assert "liblingqu-dcmi.so, all 3 functions, the mock" in text

    def test_missing(self, a3: MockServer, tmp_path: Path) -> None:
        verdict, text = self.check(a3, switches__library=tmp_path / "none.so")
        assert verdict == "warn"
        assert "does not exist or is no file" in text
        assert "switches.enabled=false" in text

    def test_without_a_function(self, a3: MockServer, tmp_path: Path) -> None:
        path = compile_library(tmp_path, library_text(without(QUERY)), "liblingqu-dcmi.so")
        verdict, text = self.check(a3, switches__library=path)
        assert verdict == "warn"
        assert f"has no {QUERY}" in text

    def test_without_the_driver_nobody_knows_the_product(self, a3: MockServer, tmp_path: Path) -> None:
        verdict, text = self.check(a3, driver__library=tmp_path / "libdcmi.so")
        assert verdict == "skipped"
        assert "the driver library cannot be used" in text

    def test_switched_off_and_other_products(self, a3: MockServer) -> None:
        assert self.check(a3, switches__enabled="false") == ("skipped", "switches.enabled is false ")
        with MockServer.start("a2") as a2:
            assert self.check(a2) == ("skipped", "Ascend910B has no LingQu switches ")
