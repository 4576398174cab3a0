"""`nodeagent mock` as an operator uses it: a served node in one process, commands in another."""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kit.abi_client import AbiClient, out

from nodeagent.cli import mock
from nodeagent.mock.actions import ACTIONS
from nodeagent.mock.launch import MockServer, library_dir

ROOT = Path(mock.__file__).parents[2]
MAIN = (
    "import sys, argparse; sys.path.insert(0, sys.argv.pop(1))\n"
    "from nodeagent.cli import mock\n"
    "from nodeagent.core.errors import NodeAgentError\n"
    "top = argparse.ArgumentParser(prog='nodeagent'); mock.register(top.add_subparsers())\n"
    "args = top.parse_args()\n"
    "try: sys.exit(args.run(args))\n"
    "except NodeAgentError as error: sys.exit(str(error))\n"
)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="nodeagent")
    mock.register(top.add_subparsers())
    return top


@pytest.fixture
def server():
    with MockServer.start("a2") as running:
        yield running


@pytest.fixture
def run(server, capsys):
    """Run a command against the server: exit code, output, error output."""

    def go(*words: str, socket: str | None = None):
        names = 2 if words[0] in ("switch", "storage") else 1
        args = parser().parse_args(["mock", *words[:names], "--socket", socket or server.socket, *words[names:]])
        code = args.run(args)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


@pytest.fixture
def client(server):
    process = AbiClient(library_dir() / "libdcmi.so", server.environment())
    assert process.call("dcmi_init").rc == 0
    yield process
    process.close()


def test_injection_tells_the_callback_time(run, client):
    assert run("raise", "--chip", "3", "--code", "80E18005") == (
        0,
        "event 1: 80E18005 on chip 3, nobody is subscribed\n",
        "",
    )
    client.subscribe()
    code, output, _ = run("clear", "--chip", "3", "--code", "0x80e18005")
    pattern = r"event 2: 80E18005 on chip 3, callback in process (\d+) at \d+\.\d{6} after \d+\.\d{3} ms\n"
    assert code == 0
    assert re.fullmatch(pattern, output)[1] == str(client.process.pid)
    assert [event.assertion for event in client.heard(1)] == [0]


def command_of(action: str) -> list[str]:
    """The words by which an action is done on the command line."""
    group, _, name = action.partition("_")
    return [group, name] if group in ("switch", "storage") else [action.replace("_", "-")]


def test_every_action_by_its_example(run):
    """What --help shows works."""
    with MockServer.start("a3") as other:
        client = AbiClient(library_dir() / "libdcmi.so", other.environment())
        assert client.call("dcmi_init").rc == 0
        for action in ACTIONS.values():
            words = shlex.split(action.example)
            assert words[: 2 + len(command_of(action.name))] == ["nodeagent", "mock", *command_of(action.name)]
            assert run(*words[2:], socket=other.socket)[0] == 0, action.example
        with pytest.raises(EOFError):
            client.call("dcmi_get_device_health", 0, 0, out(4))
        client.close()


def test_state_as_table_and_json(run, client):
    client.subscribe()
    run("raise", "--chip", "3", "--code", "80E18005", "--severity", "critical")
    run("drop", "--card", "5")
    run("hang", "--function", "dcmi_get_device_health", "--chip", "4", "--seconds", "30")
    code, table, _ = run("state")
    lines = table.splitlines()
    assert code == 0
    assert lines[0] == "Atlas 800T A2 (a2), 1 events so far"
    assert lines[1].split() == ["chip", "card", "dev", "phy", "name", "health", "link", "gateway", "boot", "codes"]
    assert lines[5].split() == ["3", "3", "0", "3", "910B4", "critical", "up", "0", "16", "80E18005"]
    assert lines[7].split()[5] == "dropped"
    assert "rule: hang dcmi_get_device_health on chip 4" in table
    assert f"subscriber: process {client.process.pid}, 1 delivered, 0 dropped" in table
    state = json.loads(run("state", "--output", "json")[1])
    assert state["chips"][3]["codes"] == ["80E18005"]
    assert state["chips"][5]["health_rc"] == -8012


def test_board_and_storage(run, server):
    assert "board: no serial number, BMC well\n" in run("state")[1]
    assert run("raise-alarm", "--code", "03000009", "--device-id", "2", "--subject", "PSU") == (0, "", "")
    assert run("bmc", "--silent", "true", "--times", "3")[0] == 0
    assert run("storage", "dpc", "--instances", "ok,process+memory")[0] == 0
    assert run("storage", "dtfs", "--instances", "", "--mode", "0644")[0] == 0
    lines = run("state")[1].splitlines()
    assert lines[10:] == [
        "board: no serial number, BMC silent True, times 3",
        "alarm: 03000009 on PSU 2, major",
        "storage dpc: ok memory+process, mode 0444",
        "storage dtfs: no instance, mode 0644",
    ]
    assert run("storage", "dtfs", "--text", "x")[0] == 0
    assert run("storage", "dpc", "--gone", "true")[0] == 0
    assert run("bmc", "--gone", "true")[0] == 0
    assert run("state")[1].splitlines()[10:] == ["board: no BMC", "storage dtfs: other text, mode 0444"]
    code, _, error = run("clear-alarm", "--code", "0000001D")
    assert (code, "no alarm 0000001D is present" in error) == (1, True)


def test_refusals_and_unreachable_servers(run, tmp_path):
    code, output, error = run("reset", "--chip", "8")
    assert (code, output) == (1, "")
    assert error.startswith("nodeagent: NA402: chip: the node has chips 0..7, not 8 (")
    code, _, error = run("drop", "--card", "9")
    assert (code, error.count("\n")) == (1, 1)
    code, _, error = run("state", socket=str(tmp_path / "nobody"))
    assert code == 2
    assert error.startswith(f"nodeagent: NA403: no mock node at {tmp_path / 'nobody'}: ")


def test_no_socket_named(monkeypatch, capsys):
    monkeypatch.delenv("NODEAGENT_MOCK_SOCKET", raising=False)
    args = parser().parse_args(["mock", "state"])
    assert args.run(args) == 2
    assert "no socket is named" in capsys.readouterr().err


def test_socket_from_the_environment(monkeypatch, server):
    monkeypatch.setenv("NODEAGENT_MOCK_SOCKET", server.socket)
    assert parser().parse_args(["mock", "state"]).socket == server.socket


def test_play(run, client, tmp_path):
    client.subscribe()
    good = tmp_path / "good.yaml"
    good.write_text(
        'timeline:\n  - {at_s: 0, do: raise, chip: 1, code: "80E18005"}\n'
        '  - {at_s: 0.1, do: drop, card: 77}\n  - {at_s: 0.1, do: clear, chip: 1, code: "80E18005"}\n'
    )
    code, output, error = run("play", str(good))
    assert code == 1
    assert output == f"played 3 entries of {good}\n"
    assert "timeline line 3: NA402: the node has no card 77" in error
    assert [event.assertion for event in client.heard(2)] == [1, 0]
    bad = tmp_path / "bad.yaml"
    bad.write_text("timeline:\n  - {at_s: 0, do: reset, chip: 99}\n")
    code, _, error = run("play", str(bad))
    assert code == 1
    assert f"{bad}:2: chip: the node has chips 0..7" in error
    assert run("play", str(tmp_path / "none.yaml"))[0] == 1


def test_log_and_calls(run, client):
    assert run("log", "on") == (0, "", "")
    client.call("dcmi_get_device_health", 3, 0, out(4))
    code, table, _ = run("calls", "--function", "dcmi_get_device_health")
    assert code == 0
    assert table.splitlines()[1].split()[1:] == [str(client.process.pid), "dcmi_get_device_health", "3", "0", "0"]
    assert json.loads(run("calls", "--output", "json", "--clear")[1])[0]["args"] == [3, 0]
    assert json.loads(run("calls", "--output", "json")[1]) == []


def test_path(capsys):
    args = parser().parse_args(["mock", "path"])
    assert args.run(args) == 0
    assert Path(capsys.readouterr().out.strip(), "libdcmi.so").is_file()


@pytest.mark.parametrize("word", [*ACTIONS, "serve", "play", "state", "log", "calls", "path"])
def test_help_teaches_with_an_example(word, capsys):
    words = command_of(word)
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["mock", *words, "--help"])
    assert ended.value.code == 0
    assert f"example:\n  nodeagent mock {' '.join(words)}" in capsys.readouterr().out


def served(*words: str, **options):
    """`nodeagent mock serve …` as its own process."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-I", "-c", MAIN, str(ROOT), "mock", "serve", *words]
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)


def test_serve_from_another_directory(tmp_path):
    """The two printed lines are what a client needs; SIGTERM ends it and takes the socket file away."""
    socket = tmp_path / "s"
    with served("--node", "a3", "--socket", str(socket), cwd=tmp_path) as process:
        assert process.stdout.readline() == (
            f"serving Atlas 900 A3 SuperPoD (a3, 16 chips) at {socket}; in the client's shell:\n"
        )
        line = process.stdout.readline()
        shell = f"{line} echo $LD_LIBRARY_PATH; echo $NODEAGENT_MOCK_SOCKET"
        environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
        done = subprocess.run(["sh", "-c", shell], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(library_dir()), str(socket)]
        assert socket.is_socket()
        with served("--socket", str(socket)) as second:
            assert "another mock node is served there" in second.stderr.read()
        assert second.returncode == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert not socket.exists()


def test_serve_replaces_a_dead_socket_file(tmp_path):
    socket = tmp_path / "s"
    with served("--socket", str(socket)) as process:
        process.stdout.readline()
        process.kill()
    assert socket.is_socket()
    with served("--socket", str(socket)) as process:
        assert process.stdout.readline().startswith("serving Atlas 800T A2")
        process.terminate()


def test_serve_plays_the_timeline_of_its_file(tmp_path):
    scenario = tmp_path / "x.yaml"
    scenario.write_text('node: {profile: 950}\ntimeline: [{at_s: 0, do: raise, chip: 7, code: "80E18005"}]\n')
    with MockServer.start(timeline=scenario, node="") as server, server.control() as control:
        state = control.state()
        while not state["chips"][7]["codes"]:
            state = control.state()
        assert (state["profile"], state["chips"][7]["codes"]) == ("950", ["80E18005"])


def test_what_cannot_be_served(tmp_path):
    scenario = tmp_path / "x.yaml"
    scenario.write_text("node: {profile: b5}\n")
    with served("--node", str(scenario), "--socket", str(tmp_path / "s")) as process:
        assert process.stderr.read().startswith(f"NA401: {scenario}:1: node: there is no profile 'b5'")
    with served("--node", "nope", "--socket", str(tmp_path / "s")) as process:
        assert "there is no node 'nope'" in process.stderr.read()
    with served("--socket", str(tmp_path / ("x" * 120))) as process:
        assert "too long for a socket" in process.stderr.read()
    with served("--socket", str(tmp_path / "no" / "s")) as process:
        assert "cannot be a socket" in process.stderr.read()


def test_the_child_ends_with_its_parent(tmp_path):
    """A killed test run leaves no server behind."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from nodeagent.mock.launch import MockServer\n"
        "server = MockServer.start(socket=sys.argv[2])\n"
        "print(server.pid, flush=True); sys.stdin.read()\n"
    )
    socket = tmp_path / "s"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code, str(ROOT), str(socket)], stdin=pipe, stdout=pipe, text=True
    ) as parent:
        pid = int(parent.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
    while socket.exists():
        pass  # pytest's time limit ends a test that waits in vain


def test_switches_of_an_a3(run):
    with MockServer.start("a3") as other:
        place = ("--chip", "2", "--port", "11", "--code", "[0x08520003,na,npu,na]")
        code, said, _ = run("switch", "raise", *place, socket=other.socket)
        assert (code, said) == (0, "event 1: [0x08520003,na,npu,na] on switch 2 port 11, nobody is subscribed\n")
        client = AbiClient(library_dir() / "liblingqu-dcmi.so", other.environment())
        assert (client.call("lq_dcmi_init").rc, client.subscribe_switches()) == (0, 0)
        said = run("switch", "raise", "--chip", "0", "--code", "0x00f103b0,155907", socket=other.socket)[1]
        assert f"[0x00f103b0,155907,na,na] on switch 0, callback in process {client.process.pid} at" in said
        shown = run("state", socket=other.socket)[1].splitlines()
        assert "switch fault: [0x08520003,na,npu,na] on switch 2 port 11" in shown
        assert "switch fault: [0x00f103b0,155907,na,na] on switch 0" in shown
        assert run("switch", "clear", *place, socket=other.socket)[0] == 0
        assert [
            e["chip"] for e in json.loads(run("state", "--output", "json", socket=other.socket)[1])["switch_faults"]
        ] == [0]
        client.close()


@pytest.mark.parametrize("code", ["08520003", "0x8520003,na,npu", "0x08520003,na,gpu", "0x08520003,4294967296", ""])
def test_a_switch_code_that_is_none_is_refused(run, code):
    with MockServer.start("a3") as other:
        exit_code, _, error = run("switch", "raise", "--chip", "0", "--code", code, socket=other.socket)
    assert exit_code == 1
    assert "code: a " in error


def test_a_node_without_switches_refuses(run):
    exit_code, _, error = run("switch", "storm")
    assert exit_code == 1
    assert "this node has no switches" in error
