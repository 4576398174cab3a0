"""The commands as an operator meets them: exit codes, one clear sentence for bad input, scan, config, explain."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kit.daemon import INCLUDE, PROGRAM, clean_environment, flags, node_file, run_command, wait_until

from nodeagent.core.settings_docs import configuration_page
from nodeagent.mock.launch import MockServer, library_dir

X = "80E18005"


def refused(done: subprocess.CompletedProcess[str], *words: str) -> str:
    """Exit code 2 and one sentence on stderr, with these words in it."""
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert re.match(r"nodeagent: NA\d{3}: .", line)
    for word in words:
        assert word in line
    return line


class TestNodeName:
    def test_missing(self) -> None:
        refused(run_command("run"), "NA102", "the node name is not set", "spec.nodeName")

    @pytest.mark.parametrize("source", ["environment", "flag", "setting"])
    def test_231_characters(self, source: str) -> None:
        name = "n" * 231
        done = {
            "environment": lambda: run_command("run", environ={"NODE_NAME": name}),
            "flag": lambda: run_command("run", "--node-name", name),
            "setting": lambda: run_command("run", *flags({"node.name": name})),
        }[source]()
        refused(done, "NA102", "has 231 characters, at most 230")

    def test_letters_that_no_node_has(self) -> None:
        refused(run_command("run", environ={"NODE_NAME": "Worker_1"}), "NA102", "'Worker_1'")

    def test_no_way_to_any_cluster(self) -> None:
        refused(run_command("run", environ={"NODE_NAME": "worker-1"}), "NA101", "publish.kubeconfig")


class TestSettingsFile:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"chips:\n  helth_period_s: 1\n", [":2: ", "chips.helth_period_s", "did you mean chips.health_period_s?"]),
            (b"log: {level: debug}\nchps:\n  health_period_s: 1\n", [":3: ", "chps.health_period_s", "chips."]),
            (b"chps:\n", [":1: ", "no area 'chps'"]),
            (b"chips:\n  health_period_s: 0.1\n", [":2: ", "must be 0.5..300 s, not 0.1"]),
            (b"a: [\n", [":2: ", "not YAML"]),
            (b"", ["is empty"]),
            (b"\n \n", ["is empty"]),
            (b"\x7fELF\x02\x01\x01\0\0\0", ["is binary, not text"]),
            (b"node:\n  name: \xff\xfe\n", ["is not UTF-8 text (line 2)"]),
        ],
        ids=["unknown key", "unknown area", "empty area", "range", "not YAML", "empty", "blank", "binary", "not UTF-8"],
    )
    @pytest.mark.parametrize("command", ["run", "check"])
    def test_a_bad_file_is_one_sentence_that_names_it(
        self, tmp_path: Path, content: bytes, words: list[str], command: str
    ) -> None:
        path = tmp_path / "config.yaml"
        path.write_bytes(content)
        if command == "check":
            done = run_command("config", "check", path)
        else:
            done = run_command("run", "--config", path, environ={"NODE_NAME": "worker-1"})
        refused(done, "NA101", str(path), *words)

    def test_a_file_that_is_named_must_be_there(self, tmp_path: Path) -> None:
        path = tmp_path / "nothing.yaml"
        environ = {"NODE_NAME": "worker-1", "NODEAGENT_CONFIG": str(path)}
        refused(run_command("run", environ=environ), f"{path} does not exist")
        refused(run_command("config", "check", path), f"{path} does not exist")

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        refused(run_command("config", "check", tmp_path), f"{tmp_path} is not a regular file")


class TestSiteTable:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", ["is empty"]),
            (b"faults: [\n", [":2"]),
            (b"\x00\x01\x02", ["is binary"]),
            (b"# " + b"x" * (10 * 1024 * 1024), ["larger than the limit of 10 MiB"]),
            (b"version: 1\nfaults:\n  - code: 80E21007\n    level: SeparateNPU\n", [":3", "80E21007"]),
            (
                b'version: 1\nfaults:\n  - code: "80E21007"\n    level: SeparateNPU\n'
                b'  - code: "80e21007"\n    level: NotHandleFault\n',
                [":5", "80E21007"],
            ),
            (b'version: 1\nfaults:\n  - code: "80E21007"\n    level: SeparateNPU\n    level: NotHandleFault\n', [":5"]),
            (b'version: 1\nfaults:\n  - code: "80E21007"\n    level: separatenpu\n', [":4", "separatenpu"]),
        ],
        ids=[
            "empty",
            "not YAML",
            "binary",
            "10 MB",
            "code unquoted",
            "code twice",
            "key twice",
            "unknown level",
        ],
    )
    def test_a_daemon_does_not_start_on_a_bad_table(self, tmp_path: Path, content: bytes, words: list[str]) -> None:
        path = tmp_path / "site.yaml"
        path.write_bytes(content)
        settings = {
            "node.name": "worker-1",
            "publish.target": "directory",
            "publish.directory": tmp_path / "out",
            "faults.site_file": path,
        }
        done = run_command("run", *flags(settings))
        lines = [line for line in done.stderr.splitlines() if line.startswith("nodeagent: ")]
        assert done.returncode == 2
        (line,) = lines
        for word in ("NA201", str(path), *words):
            assert word in line
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "out").exists()

    def test_a_missing_table(self, tmp_path: Path) -> None:
        done = run_command("run", *flags({"node.name": "a", "faults.site_file": tmp_path / "site.yaml"}))
        assert done.returncode == 2
        assert f"{tmp_path}/site.yaml does not exist" in done.stderr


class TestTarget:
    def test_a_folder_must_be_named(self) -> None:
        refused(
            run_command("run", *flags({"node.name": "a", "publish.target": "directory"})), "publish.directory is empty"
        )


class TestHttp:
    def test_a_name_is_no_address(self, tmp_path: Path) -> None:
        target = {"publish.target": "directory", "publish.directory": tmp_path, "http.address": "node-1"}
        done = run_command("run", *flags({"node.name": "a", **target}))
        assert done.returncode == 2
        assert "NA101: http.address must be an IP address, not 'node-1'" in done.stderr


class TestConfig:
    def test_a_good_file(self, tmp_path: Path) -> None:
        path = tmp_path / "config.yaml"
        path.write_text("node: {name: worker-1}\npublish: {target: directory, directory: /out}\n")
        done = run_command("config", "check", path)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}: fine\n", "")

    def test_check_finds_what_a_start_would_find(self, tmp_path: Path) -> None:
        path = tmp_path / "config.yaml"
        path.write_text("http: {address: localhost}\n")
        refused(run_command("config", "check", path), str(path), "http.address must be an IP address", "127.0.0.1")
        path.write_text("node: {name: Worker}\n")
        refused(run_command("config", "check", path), "'Worker'")
        path.write_text("publish: {target: directory}\n")
        refused(run_command("config", "check", path), str(path), "publish.directory is empty")

    def test_show_prints_settings_that_can_be_read_back(self, tmp_path: Path) -> None:
        done = run_command(
            "config", "show", "--set", "chips.health_period_s=2", environ={"NODE_NAME": "worker-1"}, cwd=tmp_path
        )
        assert done.returncode == 0
        assert yaml.safe_load(done.stdout)["chips"]["health_period_s"] == 2
        marked = [line.split(":")[0].strip() for line in done.stdout.splitlines() if line.endswith("# set")]
        assert marked == ["name", "health_period_s"]
        path = tmp_path / "config.yaml"
        path.write_text(done.stdout)
        again = run_command("config", "show", "--config", path)
        assert again.stdout == done.stdout

    def test_docs_prints_the_page(self) -> None:
        done = run_command("config", "docs")
        assert (done.returncode, done.stdout) == (0, configuration_page())


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer.start("a2") as server:
        yield server


class TestScan:
    def scan(self, server: MockServer, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
        settings = {
            "driver.library": library_dir() / "libdcmi.so",
            "driver.trust_library": "true",
            "mock.socket": server.socket,
            "daemon.socket": "",
            **{key.replace("__", "."): value for key, value in more.items()},
        }
        return run_command("scan", *flags(settings), *words)

    def test_healthy(self, server: MockServer) -> None:
        done = self.scan(server)
        assert (done.returncode, done.stderr) == (0, "")
        head, names, *rows, board = done.stdout.splitlines()
        assert head.startswith("Ascend910B, chip 910B4, driver 25.2.0, ")
        assert board == "board: 0 alarms, node Healthy"
        assert names.split() == ["CHIP", "PHY", "CARD", "NAME", "HEALTH", "LEVEL", "FAULTS"]
        assert [row.split() for row in rows] == [
            [str(i), str(i), f"{i}/0", f"Ascend910-{i}", "healthy", "NormalNPU", "-"] for i in range(8)
        ]

    def test_faults(self, server: MockServer) -> None:
        with server.control() as control:
            for code in (X, "80E21007"):
                control.raise_fault(3, code)
            control.set_link(4, up=False)
            try:
                done, text = self.scan(server, "--output", "json"), self.scan(server)
            finally:
                for code in (X, "80E21007"):
                    control.clear_fault(3, code)
                control.set_link(4, up=True)
        assert done.returncode == text.returncode == 1
        chips = json.loads(done.stdout)["chips"]
        assert {(c["logic_id"], f["code"], f["level"], f["plane"]) for c in chips for f in c["faults"]} == {
            (3, X, "RestartNPU", "chip"),
            (3, "80E21007", "NotHandleFault", "chip"),
            (4, "81078603", "NotHandleFault", "parameter_plane"),
        }
        assert [c["healthy"] for c in chips] == [i != 3 for i in range(8)]
        assert chips[3]["level"] == "RestartNPU"
        assert all(c["answered"] for c in chips)
        assert f"{X} RestartNPU: " in text.stdout

    @pytest.mark.parametrize("how", ["fails", "hangs", "crashes"])
    def test_a_chip_that_gives_no_answer_is_unknown_and_hides_no_other(self, server: MockServer, how: str) -> None:
        function = "dcmi_get_device_errorcode_v2"
        with server.control() as control:
            if how == "fails":
                control.fail(function, -8005, chip=2)
            elif how == "hangs":
                control.hang(function, 10_000, chip=2)
            else:
                control.crash(function, chip=2)
            try:
                done = self.scan(server, "--output", "json", driver__call_deadline_s="0.5")
            finally:
                control.fail(function, 0, chip=2)
                control.hang(function, 0, chip=2)
        assert done.returncode == 2
        chips = json.loads(done.stdout)["chips"]
        assert [c["answered"] for c in chips] == [i != 2 for i in range(8)]
        word = {"fails": "-8005", "hangs": "did not return within 0.5 s", "crashes": "SIGSEGV"}[how]
        assert word in chips[2]["why_silent"]

    def test_a_fault_outweighs_a_chip_that_gives_no_answer(self, server: MockServer) -> None:
        with server.control() as control:
            control.fail("dcmi_get_device_errorcode_v2", -8005, chip=2)
            control.raise_fault(3, X)
            try:
                done = self.scan(server)
            finally:
                control.fail("dcmi_get_device_errorcode_v2", 0, chip=2)
                control.clear_fault(3, X)
        assert done.returncode == 1
        assert re.search(r"^2 .*unknown .*-8005", done.stdout, re.MULTILINE)

    def test_a_dropped_card(self, server: MockServer) -> None:
        with server.control() as control:
            control.fail("dcmi_get_device_health", -8012, chip=5)
            try:
                done = self.scan(server, "--output", "json")
            finally:
                control.fail("dcmi_get_device_health", 0, chip=5)
        assert done.returncode == 1
        assert [f["code"] for f in json.loads(done.stdout)["chips"][5]["faults"]] == ["40F84E00"]

    def test_a_card_that_cannot_be_identified(self, server: MockServer) -> None:
        with server.control() as control:
            control.fail("dcmi_get_device_num_in_card", -8006, chip=5, times=1)
            done = self.scan(server)
        assert done.returncode == 2
        assert "not identified: card 5 does not tell its chips" in done.stdout

    def test_no_library(self, tmp_path: Path) -> None:
        environ = {"LD_LIBRARY_PATH": str(tmp_path), "NODEAGENT_DAEMON_SOCKET": ""}
        refused(run_command("scan", environ=environ), "NA301", "libdcmi.so was not found")
        refused(run_command("scan", "--once", *flags({"driver.library": tmp_path / "x.so"})), "NA301", "does not exist")

    def test_no_right(self, server: MockServer) -> None:
        with server.control() as control:
            control.fail("dcmi_init", -8002)
            try:
                refused(self.scan(server), "NA302", "-8002", "privileged container")
            finally:
                control.fail("dcmi_init", 0)

    def test_dry_run_of_a_described_node(self, tmp_path: Path) -> None:
        path = node_file(tmp_path, profile="a3", faults=[{"chip": 15, "code": X}])
        done = run_command("scan", "--dry-run", "--node", path, "--output", "json")
        assert done.returncode == 1
        found = json.loads(done.stdout)
        assert found["product"]["family"] == "Ascend910A3"
        assert len(found["chips"]) == 16
        assert [c["name"] for c in found["chips"] if c["faults"]] == ["Ascend910-15"]

    def test_a_dry_run_that_is_ended_leaves_nothing_behind(self, tmp_path: Path) -> None:
        node = node_file(tmp_path, init_delay_s=40)
        places = {**clean_environment(), "TMPDIR": str(tmp_path)}
        with subprocess.Popen([PROGRAM, "scan", "--dry-run", "--node", str(node)], env=places) as process:
            wait_until(lambda: list(tmp_path.glob("nodeagent-mock-*/socket")))
            process.terminate()
            assert process.wait(30) == 143
        assert list(tmp_path.glob("nodeagent-mock-*")) == []

    def test_dry_run_of_a_node_that_does_not_exist(self) -> None:
        done = run_command("scan", "--dry-run", "--node", "b52")
        line = refused(done, "NA401: there is no node 'b52'")
        assert line.count("NA4") == 1


class TestRest:
    @pytest.mark.parametrize("spelling", [X, X.lower(), f"0x{X}"])
    def test_explain_takes_any_spelling(self, spelling: str) -> None:
        done = run_command("explain", spelling, "--lang", "en")
        assert done.returncode == 0
        assert X in done.stdout
        assert "RestartNPU" in done.stdout

    @pytest.mark.parametrize("words", [["config", "docs"], ["--help"], ["explain", X]])
    def test_a_reader_that_goes_away_is_no_error(self, words: list[str]) -> None:
        with subprocess.Popen(
            [PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()
        ) as process:
            process.stdout.close()
            complaint = process.stderr.read()
            assert process.wait(30) == 0
        assert complaint == b""

    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_output_that_cannot_be_written_is_one_sentence(self, unbuffered: str) -> None:
        environment = {**clean_environment(), "PYTHONUNBUFFERED": unbuffered}
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [PROGRAM, "explain", X], stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False
            )
        assert done.returncode == 2
        assert done.stderr == "nodeagent: the output cannot be written: No space left on device\n"

    def test_the_version_and_the_first_steps_are_told(self) -> None:
        assert re.fullmatch(r"nodeagent \d+\.\d+\.\d+\S*\n", run_command("--version").stdout)
        assert "nodeagent scan --dry-run" in run_command("--help").stdout

    def test_the_headers_of_the_mock_are_installed(self) -> None:
        assert (INCLUDE / "na_dcmi.h").is_file()
        assert run_command("mock", "path").stdout.strip() == str(library_dir())
        assert os.access(library_dir() / "libdcmi.so", os.R_OK)
