"""Node faults of the daemon as a process: the pretended BMC and storage clients of the mock to objects in files."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.daemon import Daemon, daemon_on, run_command, wait_until

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer
from nodeagent.render.node_info_contract import judge_node_info

CPU, SYSTEM, MILD, UNLISTED = "0000001D", "2C000031", "03000009", "29000017"
QUICK: dict[str, object] = {
    "ipmi__poll_period_s": 0.2,
    "ipmi__report_interval_s": 0.1,
    "storage__read_period_s": 0.1,
}
SLOW: dict[str, object] = {**QUICK, "ipmi__poll_period_s": 600}
"""One poll at the start, and no other in the time of a test."""


class Board:
    """What a daemon publishes of its node beside the chips."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.folder = daemon.out / "mindx-dl"

    @property
    def file(self) -> Path:
        return self.folder / f"mindx-dl-nodeinfo-{self.daemon.settings['node.name']}.yaml"

    def inner(self) -> dict[str, Any] | None:
        """`NodeInfo` as consumers read it; None without an object. It must be one that ClusterD takes."""
        try:
            obj = yaml.safe_load(self.file.read_text())
        except FileNotFoundError:
            return None
        assert judge_node_info(obj) == ""
        found: dict[str, Any] = json.loads(obj["data"]["NodeInfo"])["NodeInfo"]
        return found

    def check_code(self) -> str | None:
        """Of the object as it is now; None without one."""
        try:
            return str(json.loads(yaml.safe_load(self.file.read_text())["data"]["NodeInfo"])["CheckCode"])
        except FileNotFoundError:
            return None

    def status(self) -> str | None:
        inner = self.inner()
        return None if inner is None else str(inner["NodeStatus"])

    def wait_status(self, status: str | None) -> None:
        wait_until(lambda: self.status() == status, f"node status {status}, log:\n{self.daemon.words()[-3000:]}")

    def public(self, client: str) -> dict[str, str]:
        """Code to assertion of the public fault object; empty without one."""
        path = self.folder / f"nodeagent-publicfault-{client}-{self.daemon.settings['node.name']}.yaml"
        if not path.exists():
            return {}
        message = json.loads(yaml.safe_load(path.read_text())["data"]["PublicFault"])
        return {fault["faultCode"]: fault["assertion"] for fault in message["faults"]}

    def state(self) -> dict[str, Any]:
        """What the socket says."""
        found: dict[str, Any] = json.loads(self.ask("scan", "--output", "json").stdout)
        return found

    def ask(self, *words: str) -> Any:
        return run_command(*words, "--set", f"daemon.socket={self.daemon.settings['daemon.socket']}")

    def polled(self) -> None:
        """Wait for a good poll."""
        wait_until(lambda: "table of node faults in force" in self.daemon.words())
        wait_until(lambda: self.state()["board"]["known"])


@pytest.fixture
def run(server: MockServer, tmp_path: Path) -> Iterator[Callable[..., Board]]:
    running: list[Any] = []

    def start(**settings: object) -> Board:
        context = daemon_on(server, tmp_path, **{**QUICK, **settings})
        running.append(context)
        return Board(context.__enter__())

    yield start
    for context in running:
        context.__exit__(None, None, None)


class TestBoard:
    def test_t2_t3_t4_an_alarm_is_published_and_its_end_deletes_the_object(
        self, run: Callable[..., Board], control: MockControl
    ) -> None:
        board = run()
        board.polled()
        assert board.inner() is None
        control.raise_alarm(CPU, device_id=1)
        board.wait_status("PreSeparate")
        control.raise_alarm(SYSTEM)
        control.raise_alarm(UNLISTED, device_id=3)
        board.wait_status("UnHealthy")
        inner = board.inner()
        assert inner is not None
        assert [(d["DeviceType"], d["DeviceId"], d["FaultCode"]) for d in inner["FaultDevList"]] == [
            ("CPU", 1, [CPU]),
            ("System", 255, [SYSTEM]),
        ]
        control.clear_alarm(SYSTEM)
        board.wait_status("PreSeparate")
        control.clear_alarm(CPU)
        board.wait_status(None)
        words = board.daemon.words()
        assert "Occur board CPU 1: 0000001D" in words
        assert "Recovery board CPU 1: 0000001D" in words
        assert words.count(f"code={UNLISTED}") == 1, "an alarm in no table is said once"

    def test_t5_unlisted_alarms_are_shown_and_published_nowhere(
        self, run: Callable[..., Board], control: MockControl
    ) -> None:
        control.raise_alarm(UNLISTED, device_id=255)
        board = run()
        board.polled()
        assert board.inner() is None
        text = board.ask("scan")
        assert (text.returncode, text.stderr) == (0, "")
        assert "board: 1 alarm, node Healthy, 1 in no table" in text.stdout
        assert "left out: 1 alarm in no table of node faults" in board.ask("why", "node").stdout

    def test_t1_on_a_healthy_node_an_object_of_an_earlier_run_goes(
        self, run: Callable[..., Board], control: MockControl
    ) -> None:
        board = run()
        control.raise_alarm(CPU, device_id=1)
        board.wait_status("PreSeparate")
        board.daemon.kill()
        control.clear_alarm(CPU)
        assert board.status() == "PreSeparate"
        board.daemon.start()
        board.wait_status(None)
        assert "Recovery board" not in board.daemon.words(), "nobody of this run saw it end"

    def test_t6_t7_a_mild_list_is_published_and_order_does_not_count(
        self, run: Callable[..., Board], control: MockControl
    ) -> None:
        control.raise_alarm(MILD, device_id=2)
        board = run()
        board.wait_status("Healthy")
        assert board.check_code() == "6c03d36d1a3e9f2cf26ac4f3c01aaeb117f7e184e443390636259f73916b6d82"
        control.raise_alarm("0000001F", device_id=1)
        control.raise_alarm(CPU, device_id=1)
        control.clear_alarm(MILD)
        # The sheet's value for the same two codes in the other order, one of them twice.
        wait_until(lambda: board.check_code() == "0d096284c17add099236f000344923fc63c5ac72acb1c63544e9de9b170cb74c")

    def test_t8_new_levels_count_for_the_alarms_of_the_last_poll(
        self, run: Callable[..., Board], control: MockControl, tmp_path: Path
    ) -> None:
        folder = tmp_path / "levels"
        folder.mkdir()
        file = folder / "NodeDConfiguration.json"

        def levels(**lists: list[str]) -> None:
            part = folder / "new"
            part.write_text(json.dumps({"FaultTypeCode": {f"{key}FaultCodes": codes for key, codes in lists.items()}}))
            part.replace(file)

        control.raise_alarm(CPU, device_id=1)
        board = run(**SLOW, faults__config_dir=str(folder), faults__reload_period_s=0.1)
        board.wait_status("PreSeparate")
        levels(Separate=[CPU])
        board.wait_status("UnHealthy")
        levels(Separate=[CPU], PreSeparate=[CPU])
        wait_until(lambda: "levels of node faults are refused, the last good ones stay" in board.daemon.words())
        assert board.status() == "UnHealthy"
        file.write_text("{broken")
        wait_until(lambda: board.daemon.words().count("levels of node faults are refused") >= 2)
        assert board.status() == "UnHealthy"
        file.unlink()
        board.wait_status("PreSeparate")
        levels(Separate=[SYSTEM])
        board.wait_status(None)
        assert board.daemon.published() is not None, "chips go on"

    def test_t12_silence_keeps_the_object_and_is_said(self, run: Callable[..., Board], control: MockControl) -> None:
        board = run(ipmi__command_deadline_s=0.2)
        control.raise_alarm(CPU, device_id=1)
        board.wait_status("PreSeparate")
        before = board.file.read_bytes()
        control.set_bmc(completion_code="C3")
        wait_until(lambda: board.state()["board"]["stale"])
        shown, why = board.ask("scan"), board.ask("why", "node")
        assert "no answer since" in shown.stdout
        assert "what is shown may be old" in why.stdout
        assert (shown.returncode, why.returncode) == (1, 1), "what is known stays known"
        assert board.file.read_bytes() == before
        assert board.daemon.words().count("BoardDoesNotAnswer") == 1
        control.clear_alarm(CPU)
        control.set_bmc()
        board.wait_status(None)
        assert board.daemon.words().count("BoardAnswersAgain") == 1

    def test_t13_a_bmc_that_comes_later_is_found(self, run: Callable[..., Board], control: MockControl) -> None:
        control.set_bmc(gone=True)
        control.raise_alarm(CPU, device_id=1)
        board = run()
        board.daemon.wait(lambda _: True)
        wait_until(lambda: board.state()["board"]["stale"])
        assert board.inner() is None
        assert board.ask("scan").returncode == 0, "no way to a BMC is said, and is no riddle"
        control.set_bmc()
        board.wait_status("PreSeparate")

    def test_t15_a_kill_never_takes_a_fault_away(self, run: Callable[..., Board], control: MockControl) -> None:
        board = run()
        control.raise_alarm(CPU, device_id=1)
        board.wait_status("PreSeparate")
        before = board.file.read_bytes()
        control.set_bmc(completion_code="C3")
        board.daemon.kill()
        board.daemon.start()
        wait_until(lambda: board.daemon.words().count("BoardDoesNotAnswer") == 1)
        assert board.file.read_bytes() == before, "nothing is known, so nothing is deleted"
        control.set_bmc()
        board.polled()
        assert board.file.read_bytes() == before, "the same fault: not even written again"
        control.clear_alarm(CPU)
        board.wait_status(None)

    def test_a_bmc_that_hangs_delays_neither_chips_nor_the_end(
        self, run: Callable[..., Board], control: MockControl
    ) -> None:
        control.set_bmc(silent=True)
        board = run(ipmi__command_deadline_s=60)
        board.daemon.wait(lambda _: True)
        control.raise_fault(3, "80E18005")
        board.daemon.wait_for_faults({("Ascend910-3", "80E18005"): "RestartNPU"})
        assert board.daemon.stop() == 0

    def test_a_serial_number_that_is_none_is_said(self, run: Callable[..., Board]) -> None:
        board = run()
        wait_until(lambda: "serial number of the board: it has none" in board.daemon.words())
        assert board.state()["board"]["serial_number"] is None

    def test_fault_diag_reads_its_lines(self, run: Callable[..., Board], control: MockControl, tmp_path: Path) -> None:
        file = tmp_path / "noded.log"
        control.raise_alarm(CPU, device_id=1)
        board = run(log__fault_diag_file=str(file))
        board.wait_status("PreSeparate")
        wait_until(file.exists)
        wait_until(lambda: "[device type: CPU]-[device id: 1]-[error code: 0000001D]" in file.read_text())

    def test_switched_off_it_is_not_shown(self, run: Callable[..., Board], control: MockControl) -> None:
        control.raise_alarm(CPU)
        board = run(ipmi__transport="off")
        board.daemon.wait(lambda _: True)
        assert board.state()["board"] is None
        assert "board" not in board.ask("scan").stdout
        assert board.ask("why", "node").stdout.startswith("board: not asked (ipmi.transport=off)")
        assert board.inner() is None


class TestApart:
    def test_node_faults_need_no_driver(self, run: Callable[..., Board], control: MockControl) -> None:
        control.raise_alarm(SYSTEM)
        control.set_storage("dtfs", "link")
        board = run(driver__library="/nowhere/libdcmi.so", public_faults__chips_deadline_s=0)
        board.wait_status("UnHealthy")
        wait_until(lambda: board.public("dtfs").get("110001023") == "occur")
        assert board.daemon.published() is None
        assert "PublicFaultWithoutChips" in board.daemon.words()
        shown = board.ask("scan")
        assert shown.returncode == 1
        assert "node UnHealthy (SeparateFault)" in shown.stdout

    @pytest.mark.parametrize(
        "settings",
        [
            {"ipmi__transport": "lan", "ipmi__address": "192.0.2.1", "ipmi__credentials_dir": "/nowhere"},
            {"ipmi__transport": "lan"},
        ],
    )
    def test_chips_need_no_bmc(
        self, run: Callable[..., Board], control: MockControl, settings: dict[str, object]
    ) -> None:
        board = run(**settings)
        control.raise_fault(3, "80E18005")
        board.daemon.wait_for_faults({("Ascend910-3", "80E18005"): "RestartNPU"})
        wait_until(lambda: board.state()["board"]["no_way"])
        assert board.inner() is None


class TestStorage:
    def test_t16_a_process_fault_of_dpc_is_told_and_taken_back(
        self, run: Callable[..., Board], control: MockControl
    ) -> None:
        control.set_storage("dpc", "ok", "ok")
        board = run()
        wait_until(lambda: board.state()["storage"][0]["watched"])
        control.set_storage("dpc", "ok", "process")
        wait_until(lambda: board.public("dpc").get("110001020") == "occur")
        shown = board.ask("scan")
        assert shown.returncode == 1
        assert "110001020" in shown.stdout
        control.set_storage("dpc", "ok", "ok")
        wait_until(lambda: board.public("dpc").get("110001020") == "recover")
        assert "Occur storage client DPC" in board.daemon.words()
        assert "Recovery storage client DPC" in board.daemon.words()

    def test_t19_one_fault_of_dtfs_goes_while_the_other_comes(
        self, run: Callable[..., Board], control: MockControl
    ) -> None:
        control.set_storage("dtfs", "ok", "process")
        board = run()
        wait_until(lambda: board.public("dtfs").get("110001022") == "occur")
        control.set_storage("dtfs", "ok", "link")
        wait_until(lambda: board.public("dtfs") == {"110001022": "recover", "110001023": "occur"})
        control.set_storage("dtfs", text="")
        wait_until(lambda: "StorageStateUnreadable" in board.daemon.words())
        assert board.public("dtfs") == {"110001022": "recover", "110001023": "occur"}, "an empty file says nothing"

    def test_t18_a_bad_file_keeps_what_was_known(self, run: Callable[..., Board], control: MockControl) -> None:
        control.set_storage("dpc", "process")
        board = run()
        wait_until(lambda: board.public("dpc").get("110001020") == "occur")
        control.set_storage("dpc", text="[instidx=a]\n")
        wait_until(lambda: "StorageStateUnreadable" in board.daemon.words())
        control.set_storage("dpc", gone=True)
        wait_until(lambda: "StorageClientGone" in board.daemon.words())
        assert board.public("dpc") == {"110001020": "occur"}
        control.set_storage("dpc", "ok")
        wait_until(lambda: board.public("dpc").get("110001020") == "recover")
        assert "StorageClientReturned" in board.daemon.words()

    def test_a_kill_does_not_make_clusterd_hear_of_it_twice(
        self, run: Callable[..., Board], control: MockControl
    ) -> None:
        control.set_storage("dtfs", "process")
        board = run()
        wait_until(lambda: board.public("dtfs").get("110001022") == "occur")

        def told(path: Path) -> list[object]:
            """The faults of the message; its id is new whenever it is sent again."""
            faults: list[object] = json.loads(yaml.safe_load(path.read_text())["data"]["PublicFault"])["faults"]
            return faults

        (file,) = board.folder.glob("nodeagent-publicfault-dtfs-*")
        before = told(file)
        board.daemon.process.send_signal(signal.SIGTERM)
        board.daemon.process.wait(30)
        board.daemon.start()
        wait_until(lambda: board.state()["storage"][1]["faults"][0]["present"])
        time.sleep(0.5)
        assert told(file) == before
