"""Rules on the running daemon: an accelerated clock, an operator's edits, a reload, `why`, and kills at any time.

Policy time runs 40 times as fast, so 20 s of outage take half a second and 60 s of hold one and a half.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kit.daemon import Daemon, daemon_on, run_command, wait_until

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer
from nodeagent.render.reading import ParsedDeviceInfo

LINK = "81078603"
CHIP, NAME = 2, "Ascend910-2"
FAST = {"mock__time_factor": 40}


@pytest.fixture
def daemon(server: MockServer, tmp_path: Path) -> Iterator[Daemon]:
    anchor = {"mock__time_anchor_s": round(time.monotonic(), 3)}
    with daemon_on(server, tmp_path, dry_run=True, **FAST, **anchor) as started:
        started.wait(lambda p: not p.faults, "the first object")
        yield started


def level(info: ParsedDeviceInfo) -> str | None:
    """Published level of the link code on the chip."""
    found = [f.level.text for f in info.faults if (f.device, f.code_text) == (NAME, LINK)]
    return found[0] if found else None


def reasons(daemon: Daemon) -> set[tuple[str, str]]:
    """(level, type) of the published upgrade reasons of the chip."""
    entries = json.loads(daemon.data()["UpgradeFaultReason"]).get(NAME, [])
    return {(e["fault_level"], e["upgrade_type"]) for e in entries}


def restart(daemon: Daemon) -> None:
    """kill -9 and a new start."""
    daemon.kill()
    daemon.start()


def edit_field(daemon: Daemon, text: str) -> None:
    """What an operator's editor does to the published file."""
    obj = yaml.safe_load(daemon.object_file.read_text())
    obj["data"]["ManuallySeparateNPU"] = text
    temporary = daemon.object_file.with_suffix(".edit")
    temporary.write_text(yaml.safe_dump(obj))
    temporary.replace(daemon.object_file)


@pytest.mark.timeout(180)
def test_ten_kills_in_the_story_of_five_outages_change_nothing(control: MockControl, daemon: Daemon) -> None:
    """Accepted when: link down -> PreSeparateNPU -> up -> hold -> clear; five of them isolate; a lift ends it."""
    for outage in range(1, 6):
        control.set_link(CHIP, up=False)
        if outage % 2:
            daemon.wait(lambda p: level(p) is not None, "the outage")
        restart(daemon)
        raised = "PreSeparateNPU" if outage < 5 else "ManuallySeparateNPU"
        daemon.wait(lambda p, raised=raised: level(p) == raised and NAME in p.network_unhealthy, raised)  # type: ignore[misc]
        control.set_link(CHIP, up=True)
        restart(daemon)
        if outage < 5:
            daemon.wait(lambda p: level(p) is None and not p.network_unhealthy, "the end of the hold")
    wait_until(lambda: reasons(daemon) == {("ManuallySeparateNPU", "FaultFrequency")}, "the isolation alone")
    assert daemon.data()["ManuallySeparateNPU"] == NAME
    restart(daemon)
    time.sleep(1)  # an isolation that a restart loses would be gone by now
    assert daemon.data()["ManuallySeparateNPU"] == NAME
    edit_field(daemon, "")
    daemon.wait(lambda p: level(p) is None and not p.network_unhealthy, "the lift")
    assert (daemon.data()["ManuallySeparateNPU"], reasons(daemon)) == ("", set())


def test_a_lift_while_the_daemon_is_down(control: MockControl, daemon: Daemon) -> None:
    control.raise_fault(5, "80C98008")
    daemon.wait(lambda p: bool(p.faults), "the fault")
    control.clear_fault(5, "80C98008")
    daemon.wait(lambda p: not p.faults, "the recovery")
    control.raise_fault(5, "80C98008")
    wait_until(lambda: daemon.data()["ManuallySeparateNPU"] == "Ascend910-5", "the isolation")
    control.clear_fault(5, "80C98008")
    daemon.kill()
    edit_field(daemon, "")
    daemon.start()
    daemon.wait(lambda p: not p.unhealthy and not p.faults, "the lift")


def test_why_asks_the_daemon_for_its_timers(control: MockControl, daemon: Daemon) -> None:
    control.set_link(CHIP, up=False)
    daemon.wait(lambda p: level(p) == "PreSeparateNPU", "the limit")
    socket = ("--set", f"daemon.socket={daemon.settings['daemon.socket']}")
    text = run_command("why", CHIP, *socket)
    assert text.returncode == 1, text.stdout
    for words in (
        "81078603 duration: limit passed; raises to PreSeparateNPU",
        "fault_codes/rules.yaml:",
        "seen 1 of 5",
    ):
        assert words in text.stdout, text.stdout
    report = json.loads(run_command("why", CHIP, "--output", "json", *socket).stdout)
    assert (report["network_level"], report["network_healthy"]) == ("PreSeparateNPU", False)
    assert run_command("why", 0, *socket).returncode == 0
    assert run_command("why", 99, *socket).returncode == 2


def test_why_without_a_daemon_says_so(tmp_path: Path) -> None:
    done = run_command("why", 0, "--set", f"daemon.socket={tmp_path / 'nobody'}")
    assert done.returncode == 2
    assert "NA602" in done.stderr
    assert "--dry-run" in done.stderr


def test_why_from_a_dry_run() -> None:
    done = run_command("why", 0, "--dry-run")
    assert (done.returncode, "chip level     NormalNPU -> healthy" in done.stdout) == (0, True)


def test_a_folder_of_configuration_is_followed_without_a_restart(
    server: MockServer, control: MockControl, tmp_path: Path
) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    settings = {"faults__config_dir": folder, "faults__reload_period_s": 1}
    with daemon_on(server, tmp_path, **settings) as daemon:
        control.raise_fault(1, "80E18005")
        daemon.wait_for_faults({("Ascend910-1", "80E18005"): "RestartNPU"})
        (folder / "nodeagent.yaml").write_text('faults:\n  - code: "80E18005"\n    level: SubHealthFault\n')
        daemon.wait_for_faults({("Ascend910-1", "80E18005"): "SubHealthFault"})
        (folder / "nodeagent.yaml").write_text("faults:\n  - code: 80E18005\n    level: NotHandleFault\n")
        wait_until(lambda: "BadConfiguration" in daemon.words(), "the refusal")
        daemon.wait_for_faults({("Ascend910-1", "80E18005"): "SubHealthFault"})
        (folder / "nodeagent.yaml").unlink()
        daemon.wait_for_faults({("Ascend910-1", "80E18005"): "RestartNPU"})


def test_what_another_table_would_do_to_the_running_daemon(
    server: MockServer, control: MockControl, tmp_path: Path
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text('faults:\n  - code: "80E18005"\n    level: NotHandleFault\n')
    with daemon_on(server, tmp_path) as daemon:
        control.raise_fault(1, "80E18005")
        daemon.wait_for_faults({("Ascend910-1", "80E18005"): "RestartNPU"})
        done = run_command("table", "diff", "shipped", other, "--socket", daemon.settings["daemon.socket"])
    assert done.returncode == 1
    assert "chip 1: 80E18005 RestartNPU => NotHandleFault" in done.stdout


def test_an_unwritable_state_folder_is_said_once_and_done_without(
    server: MockServer, control: MockControl, tmp_path: Path
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    with daemon_on(server, tmp_path, daemon__state_dir=blocked / "state") as daemon:
        control.raise_fault(1, "80E18005")
        daemon.wait_for_faults({("Ascend910-1", "80E18005"): "RestartNPU"})
        control.clear_fault(1, "80E18005")
        daemon.wait_for_faults({})
        assert daemon.words().count("state file cannot be written") == 1


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 9}', '{"version": 1, "boot_id": "x", "chips": {"0": 5}}']
)
def test_a_damaged_state_file_is_said_and_done_without(
    server: MockServer, control: MockControl, tmp_path: Path, content: str
) -> None:
    folder = tmp_path / "out" / ".state"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(content)
    with daemon_on(server, tmp_path) as daemon:
        control.raise_fault(1, "80E18005")
        daemon.wait_for_faults({("Ascend910-1", "80E18005"): "RestartNPU"})
        assert "state file is not usable" in daemon.words()
