"""The daemon as probes, Prometheus and `nodeagent scan` meet it."""

import contextlib
import http.client
import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kit.daemon import Daemon, daemon_on, flags, hangs, run_command, somebody_at, wait_until
from kit.promtool import promtool
from prometheus_client.parser import text_string_to_metric_families

from nodeagent.daemon.metrics import DECLARED
from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

X = "80E18005"
CODES, HEALTH = "dcmi_get_device_errorcode_v2", "dcmi_get_device_health"


@pytest.fixture
def port() -> int:
    """A port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body; (0, "") while nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
        except ConnectionRefusedError:
            return 0, ""
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def metric(port: int, name: str, **labels: str) -> float:
    """Value of one sample, 0 when it is not there."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(get(port, "/metrics")[1])
        for sample in family.samples
        if sample.name == f"nodeagent_{name}" and labels.items() <= sample.labels.items()
    )


class TestProbes:
    def test_not_ready_until_every_chip_was_asked_and_the_result_is_published(
        self, server: MockServer, control: MockControl, tmp_path: Path, port: int
    ) -> None:
        control.hang(CODES, 1.5, chip=7, times=1)
        with daemon_on(server, tmp_path, driver__call_deadline_s=60, http__port=port) as daemon:
            wait_until(lambda: hangs(control), "chip 7 is being asked, after all others")
            status, body = get(port, "/readyz")
            assert (status, body.splitlines()[0]) == (503, "chips: 1 of 8 not asked yet")
            assert get(port, "/healthz") == (200, "ok\n")
            assert metric(port, "ready") == 0
            wait_until(lambda: get(port, "/readyz") == (200, "ok\n"))
            assert daemon.published() is not None
            assert metric(port, "ready") == 1

    def test_a_target_that_takes_nothing_is_the_reason(self, server: MockServer, tmp_path: Path, port: int) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "kube-system").write_text("a file where a folder should be")
        with daemon_on(server, tmp_path, http__port=port):
            wait_until(lambda: get(port, "/readyz")[1].startswith(("publish: not ack", "restore: ")))
            assert get(port, "/readyz")[0] == 503
            assert get(port, "/healthz")[0] == 200

    def test_a_driver_that_hangs_is_not_unhealthy(
        self, server: MockServer, control: MockControl, tmp_path: Path, port: int
    ) -> None:
        with daemon_on(server, tmp_path, driver__call_deadline_s=60, http__port=port) as daemon:
            wait_until(lambda: get(port, "/readyz")[0] == 200)
            control.hang(HEALTH, 100_000, chip=3, times=1)
            wait_until(lambda: hangs(control), "a call hangs now")
            assert get(port, "/healthz") == (200, "ok\n")
            assert get(port, "/readyz") == (200, "ok\n")
            assert metric(port, "resident_memory_bytes", process="children") > 0
            assert daemon.stop() == 0

    def test_nor_is_one_that_does_not_open(
        self, server: MockServer, control: MockControl, tmp_path: Path, port: int
    ) -> None:
        control.fail("dcmi_init", -8005)
        with daemon_on(server, tmp_path, http__port=port):
            wait_until(lambda: "the driver is not open: dcmi_init returned -8005" in get(port, "/readyz")[1])
            assert get(port, "/healthz")[0] == 200
            found = json.loads(get(port, "/state")[1])
            assert (found["product"], found["chips"]) == (None, [])

    def test_a_second_daemon_of_the_node_waits_and_says_so(self, server: MockServer, tmp_path: Path, port: int) -> None:
        lock = tmp_path / "lock"
        (tmp_path / "second").mkdir()
        with daemon_on(server, tmp_path, daemon__lock=lock) as first:
            first.wait(lambda _: True)
            with daemon_on(server, tmp_path / "second", daemon__lock=lock, http__port=port) as second:
                wait_until(lambda: "\nlock: waits for the end of another daemon" in get(port, "/readyz")[1])
                assert get(port, "/healthz") == (200, "ok\n")
                assert not second.object_file.exists()
                assert first.stop() == 0
                wait_until(lambda: get(port, "/readyz") == (200, "ok\n"))

    def test_a_port_in_use_stops_nothing_else(self, server: MockServer, tmp_path: Path) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as other,
            daemon_on(server, tmp_path, http__port=other.getsockname()[1]) as daemon,
        ):
            daemon.wait(lambda p: len(p.available) == 8)
            assert daemon.words().count("no HTTP endpoint") == 1
            assert daemon.stop() == 0

    def test_a_killed_daemon_gives_its_port_to_the_next(self, server: MockServer, tmp_path: Path, port: int) -> None:
        with daemon_on(server, tmp_path, http__port=port) as daemon:
            wait_until(lambda: get(port, "/readyz")[0] == 200)
            daemon.kill()
            daemon.start()
            wait_until(lambda: get(port, "/readyz")[0] == 200)
            assert "no HTTP endpoint" not in daemon.words()


class TestMetrics:
    def test_a_fault_shows_and_promtool_is_content(
        self, server: MockServer, control: MockControl, tmp_path: Path, port: int
    ) -> None:
        with daemon_on(server, tmp_path, http__port=port, faults__config_dir=tmp_path) as daemon:
            daemon.wait(lambda _: True)
            control.raise_fault(3, X)
            daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"})
            wait_until(lambda: metric(port, "fault_acknowledged_seconds_count") == 1)
            assert metric(port, "fault_acknowledged_seconds_bucket", le="30") == 1
            assert metric(port, "faults", level="RestartNPU") == 1
            assert metric(port, "chip_unhealthy", chip="3", device="Ascend910-3", plane="chip") == 1
            assert metric(port, "chip_unhealthy") == 1
            assert metric(port, "driver_call_seconds_count", call="codes") >= 8
            wait_until(lambda: metric(port, "driver_call_seconds_count", call="gateway") >= 8)
            for source in ("chips", "links", "configuration"):
                assert metric(port, "source_last_success_timestamp_seconds", source=source) > 1.7e9
            status, text = get(port, "/metrics")
            assert status == 200
            names = {line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE ")}
            assert names == {f"nodeagent_{name}" for name in DECLARED}
            judged = subprocess.run(
                [promtool(), "check", "metrics"], input=text, text=True, capture_output=True, check=False
            )
            assert (judged.returncode, judged.stdout + judged.stderr) == (0, "")

    def test_a_missed_deadline_and_a_silent_chip_are_counted(
        self, server: MockServer, control: MockControl, tmp_path: Path, port: int
    ) -> None:
        with daemon_on(server, tmp_path, http__port=port, driver__call_deadline_s=0.3) as daemon:
            daemon.wait(lambda _: True)
            control.hang(CODES, 100_000, chip=5)
            control.hang(HEALTH, 100_000, chip=5)
            wait_until(lambda: metric(port, "chip_silent", chip="5") == 1)
            assert metric(port, "driver_deadlines_missed_total", call="health") >= 1
            assert metric(port, "driver_sessions_lost_total") >= 1


class TestScan:
    def scan(self, daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
        same = {key: daemon.settings[key] for key in ("driver.library", "driver.trust_library", "mock.socket")}
        return run_command("scan", *flags({**same, "daemon.socket": daemon.settings["daemon.socket"]}), *words)

    def json_of(self, daemon: Daemon, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scan(daemon, "--output", "json", *words).stdout)
        return found

    def test_the_daemon_answers_in_the_shape_of_the_library(
        self, server: MockServer, control: MockControl, tmp_path: Path, port: int
    ) -> None:
        control.raise_fault(3, X)
        with daemon_on(server, tmp_path, http__port=port) as daemon:
            since = daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"}).faults[0].since_ms
            ours, library = self.json_of(daemon), self.json_of(daemon, "--once")
            assert (ours["source"], library["source"]) == ("daemon", "library")
            assert json.loads(get(port, "/state")[1]) == ours
            assert ours["chips"][3]["faults"][0]["since_ms"] == since
            ours["chips"][3]["faults"][0]["since_ms"] = None
            assert ours.pop("public_faults")["delivery"], "only a daemon tells ClusterD anything"
            for found in (ours, library):
                found["board"]["answered_ms"] = 0
            assert {**ours, "source": ""} == {**library, "source": ""}
            text = self.scan(daemon)
            assert (text.returncode, text.stderr) == (1, "")
            assert text.stdout.splitlines()[0].endswith(", as the daemon knows it")
            assert f"{X} RestartNPU: " in text.stdout
            assert ", since 20" in text.stdout

    def test_a_silent_chip_is_unknown_and_keeps_what_was_known(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        control.raise_fault(5, X)
        with daemon_on(server, tmp_path, driver__call_deadline_s=0.3) as daemon:
            daemon.wait_for_faults({("Ascend910-5", X): "RestartNPU"})
            control.hang(HEALTH, 100_000, chip=5)
            control.hang(HEALTH, 100_000, chip=2)
            wait_until(lambda: daemon.words().count("ChipDoesNotAnswer chip") == 2)
            found = self.json_of(daemon)
            assert [c["answered"] for c in found["chips"]] == [i not in (2, 5) for i in range(8)]
            assert found["chips"][5]["silent_since_ms"] > 1.7e12
            assert "did not return" in found["chips"][5]["why_silent"]
            done = self.scan(daemon)
            assert done.returncode == 1
            row = next(line for line in done.stdout.splitlines() if line.startswith("5 "))
            assert " unknown " in row
            assert ", since 20" in row
            assert f"before that: {X} RestartNPU" in done.stdout
            control.clear_fault(5, X)

    def test_a_silent_chip_without_faults_leaves_the_answer_open(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        with daemon_on(server, tmp_path, driver__call_deadline_s=0.3) as daemon:
            daemon.wait(lambda _: True)
            assert self.scan(daemon).returncode == 0
            control.hang(HEALTH, 100_000, chip=2)
            wait_until(lambda: self.scan(daemon).returncode == 2)

    def test_a_daemon_whose_driver_is_not_open_says_so(
        self, server: MockServer, control: MockControl, tmp_path: Path
    ) -> None:
        control.fail("dcmi_init", -8005)
        with daemon_on(server, tmp_path) as daemon:
            wait_until(lambda: "dcmi_init returned -8005" in daemon.words())
            done = self.scan(daemon)
        assert done.returncode == 2
        assert done.stdout.startswith("the driver has not listed its chips yet")
        assert "no library is open: dcmi_init returned -8005" in done.stdout

    def test_without_a_daemon_the_library_is_asked_without_a_word(self, server: MockServer, tmp_path: Path) -> None:
        with daemon_on(server, tmp_path) as daemon:
            daemon.wait(lambda _: True)
            daemon.kill()  # the socket file stays
            assert Path(str(daemon.settings["daemon.socket"])).exists()
            done = self.scan(daemon)
            assert (done.returncode, done.stderr) == (0, "")
            assert self.json_of(daemon)["source"] == "library"
            Path(str(daemon.settings["daemon.socket"])).unlink()
            assert self.json_of(daemon)["source"] == "library"

    def test_a_daemon_that_does_not_understand_is_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "socket"
        with somebody_at(path, b'{"ok": false}\n'):
            done = run_command("scan", *flags({"daemon.socket": path}))
        assert done.returncode == 2
        assert "NA602" in done.stderr
        assert done.stdout == ""
