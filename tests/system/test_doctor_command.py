"""`nodeagent doctor` as an operator meets it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.daemon import NODE, daemon_on, daemon_settings, flags, run_command, wait_until
from kit.fake_api import FakeApi, fake_api

from nodeagent.mock.launch import MockServer

ALL = [
    "settings",
    "fault-tables",
    "node-name",
    "api-server",
    "clock",
    "rights",
    "other-writer",
    "fault-configmap",
    "user",
    "device-files",
    "library",
    "chips",
    "switch-library",
    "board",
    "storage",
    "public-faults",
    "daemon",
    "state-folder",
    "target-folder",
    "versions",
]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        running.put_object({"metadata": {"name": NODE}}, "nodes")
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer.start("a2") as server:
        yield server


def found(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Name and verdict of each check."""
    return {check["name"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}


def doctor(server: MockServer, api: FakeApi, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command for a cluster."""
    settings = daemon_settings(server, folder / "out") | {
        "publish.target": "kubernetes",
        "publish.kubeconfig": api.kubeconfig(folder),
    }
    return run_command("doctor", *flags(settings), *words, environ={"no_proxy": "*"})


def test_a_dry_run_is_well_and_leaves_nothing(tmp_path: Path) -> None:
    done = run_command("doctor", "--dry-run", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["CHECK", "VERDICT", "DETAIL"]
    assert [row.split()[0] for row in rows] == ALL
    assert {row.split()[1] for row in rows} == {"ok", "skipped"}
    assert "\033" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_where_all_is_well(server: MockServer, api: FakeApi, tmp_path: Path) -> None:
    done = doctor(server, api, tmp_path, "--output", "json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["verdict"] == "ok"
    assert list(found(done)) == ALL
    skipped = {name for name, verdict in found(done).items() if verdict == "skipped"}
    assert skipped - {"user"} == {"device-files", "switch-library", "target-folder"}


def test_exit_code_and_hint_of_a_warning(server: MockServer, api: FakeApi, tmp_path: Path) -> None:
    api.ahead_s = 30
    done = doctor(server, api, tmp_path)
    assert done.returncode == 1, done.stdout
    below = done.stdout.partition("What to do:\n")[2]
    assert [line.strip().split(":")[0] for line in below.splitlines()] == ["clock"]


def test_exit_code_of_a_failure(server: MockServer, api: FakeApi, tmp_path: Path) -> None:
    api.ahead_s = 30
    api.denied = {("create", "configmaps")}
    done = doctor(server, api, tmp_path)
    assert done.returncode == 2
    assert '- {apiGroups: [""], resources: ["configmaps"], verbs: ["create"]}' in done.stdout


def test_a_real_node_without_anything() -> None:
    done = run_command("doctor", "--output", "json")
    assert done.returncode == 2
    checks = found(done)
    assert {name for name, verdict in checks.items() if verdict == "fail"} >= {"node-name", "api-server", "library"}
    assert checks["rights"] == checks["chips"] == "skipped"


def test_only_what_is_asked_for(server: MockServer, api: FakeApi, tmp_path: Path) -> None:
    done = doctor(server, api, tmp_path, "--only", "rights", "--only", "clock", "--output", "json")
    assert found(done) == {"clock": "ok", "rights": "ok"}
    done = doctor(server, api, tmp_path, "--only", "right")
    assert done.returncode == 2
    assert "NA101: there is no check 'right'" in done.stderr


def test_settings_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("chps: {}\n")
    done = run_command("doctor", "--config", tmp_path / "config.yaml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_a_running_daemon_is_seen_and_tells_its_versions(server: MockServer, tmp_path: Path) -> None:
    with daemon_on(server, tmp_path) as daemon:
        daemon.wait(lambda p: p.faults == ())
        done = run_command("doctor", *flags(daemon.settings), "--output", "json")
        (check,) = [c for c in json.loads(done.stdout)["checks"] if c["name"] == "daemon"]
        assert check["detail"] == [f"process {daemon.process.pid} runs and knows 8 chips"]
        assert done.returncode == 0
        wait_until(lambda: "compatibility nodeagent=" in daemon.words(), "the line of versions")
        assert "driver=25.2.0" in daemon.words()
        assert "self-check=" not in daemon.words()
        assert "Traceback" not in daemon.words()


def test_a_released_driver_is_left_alone(server: MockServer, tmp_path: Path) -> None:
    with daemon_on(server, tmp_path) as daemon:
        daemon.wait(lambda p: p.faults == ())
        assert run_command("release", "--set", f"daemon.socket={daemon.settings['daemon.socket']}").returncode == 0
        with server.control() as control:
            control.log_calls(True)
            control.calls(clear=True)
            done = run_command("doctor", *flags(daemon.settings), "--output", "json")
            assert [call for call in control.calls() if not call["function"].startswith("ipmi")] == [], "of the driver"
            control.log_calls(False)
        checks = found(done)
        assert checks["library"] == checks["chips"] == "skipped"
        assert "the driver is released until" in done.stdout
        assert done.returncode == 0
