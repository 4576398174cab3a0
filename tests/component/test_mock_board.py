"""Board and storage clients of a served mock node: asked over its socket, read from its folder."""

import os
import stat
import threading
from pathlib import Path

import pytest

from nodeagent.core.errors import IpmiAccessError, IpmiError, MockError
from nodeagent.drivers.ipmi_mock import MockTransport
from nodeagent.mock.alarm_file import parse_alarm_file
from nodeagent.mock.launch import MockServer

QUERY = bytes.fromhex("DB 07 00 40 00 00 00 0E FF")
SERIAL = bytes.fromhex("05 00 03 04 00 FF")
EMPTY = bytes.fromhex("00 DB 07 00 00 00 00 00")
CPU_1 = bytes.fromhex("00 DB 07 00 01 00 01 00  1D 00 00 00 00 00 A0 66 03 00 01 00 00 00 00")
DPC_FILE, DTFS_FILE = "odcs/dpc_status_check", "dtfs/dtfs_status_check"


@pytest.fixture
def connect(server):
    """Open connections to the BMC of `server`; closed at the end."""
    opened = []

    def go(deadline_s: float = 10.0) -> MockTransport:
        opened.append(MockTransport(server.socket, deadline_s))
        return opened[-1]

    yield go
    for transport in opened:
        transport.close()


def raise_cpu_1(control):
    control.raise_alarm("0000001D", device_id=1, severity="critical", raised_s=0x66A00000)


def test_an_alarm_comes_and_goes(connect, control, server):
    bmc = connect()
    assert bmc.raw(0x30, 0x94, QUERY) == EMPTY
    assert parse_alarm_file(server.alarm_file.read_text()).alarms == ()
    raise_cpu_1(control)
    assert bmc.raw(0x30, 0x94, QUERY) == CPU_1
    assert server.alarm_file.read_text() == "0000001D 1721761792 3 00 1\n!vendor Huawei\n"
    control.clear_alarm("0000001D")
    assert bmc.raw(0x30, 0x94, QUERY) == EMPTY
    assert parse_alarm_file(server.alarm_file.read_text()).alarms == ()
    with pytest.raises(MockError, match="no alarm 0000001D is present"):
        control.clear_alarm("0000001D")


def test_other_commands(connect):
    bmc = connect()
    assert bmc.raw(0x30, 0x90, SERIAL) == b"\x00\x80"
    assert bmc.raw(0x30, 0x94, b"") == b"\xc7"
    assert bmc.raw(0x06, 0x01, b"")[0] == 0
    assert bmc.raw(0x0A, 0x10, b"\x00") == b"\xc1"


def test_a_board_from_a_description(tmp_path):
    path = tmp_path / "node.yaml"
    alarms = "".join(f'\n    - {{code: "0000001D", device_id: {number}}}' for number in range(33))
    path.write_text(
        f"node:\n  serial_number: 2102310ABC\n  alarm_page: 12\n  storage: {{dpc: [ok]}}\n  alarms:{alarms}\n"
    )
    with MockServer.start(path) as server:
        bmc = MockTransport(server.socket)
        try:
            counts = []
            for index in (0, 12, 24):  # T10
                query = QUERY[:5] + index.to_bytes(2, "little") + QUERY[7:]
                told = bmc.raw(0x30, 0x94, query)
                counts.append((told[4], told[6], len(told)))
            assert counts == [(33, 12, 188), (33, 12, 188), (33, 9, 143)]
            assert bmc.raw(0x30, 0x90, SERIAL) == b"\x00\x802102310ABC"
        finally:
            bmc.close()
        assert parse_alarm_file(server.alarm_file.read_text()).serial == "2102310ABC"
        assert (server.proc / DPC_FILE).read_text().startswith("[instidx=0]\n")


def test_a_bmc_in_trouble_for_some_commands(connect, control):
    bmc = connect()
    raise_cpu_1(control)
    control.set_bmc(completion_code="C3", times=2)
    assert [bmc.raw(0x30, 0x94, QUERY)[0] for _ in range(3)] == [0xC3, 0xC3, 0]
    control.set_bmc(cut_bytes=1)
    assert bmc.raw(0x30, 0x94, QUERY) == CPU_1[:-1]
    control.set_bmc()
    assert bmc.raw(0x30, 0x94, QUERY) == CPU_1


def test_silence_ends_with_the_deadline(connect, control):
    bmc = connect(0.2)
    control.set_bmc(silent=True)
    with pytest.raises(IpmiError, match=r"did not answer within 0\.2 s"):
        bmc.raw(0x30, 0x94, QUERY)
    control.set_bmc()
    assert bmc.raw(0x30, 0x94, QUERY) == EMPTY


def test_a_late_answer_is_not_taken_for_that_of_the_next_command(connect, control):
    bmc = connect(0.2)
    raise_cpu_1(control)
    control.set_bmc(delay_s=0.5, times=1)
    with pytest.raises(IpmiError):
        bmc.raw(0x30, 0x94, QUERY)
    answer = None
    while answer is None:  # the BMC is still busy with the first
        try:
            answer = bmc.raw(0x30, 0x90, SERIAL)
        except IpmiError:
            continue
    assert answer == b"\x00\x80"


def test_a_slow_bmc_keeps_nobody_else_waiting(connect, control, server):
    control.set_bmc(delay_s=50, times=1)
    slow, told = connect(60), []

    def ask() -> None:
        try:
            told.append(slow.raw(0x30, 0x94, QUERY))
        except IpmiAccessError:
            told.append(None)

    thread = threading.Thread(target=ask)
    thread.start()
    while control.state()["board"]["fault"]:  # until its one command was met
        pass
    assert connect().raw(0x30, 0x94, QUERY) == EMPTY
    assert thread.is_alive()
    assert told == []
    server.stop()  # which does not wait for the BMC either
    thread.join()
    assert told == [None]


def test_a_bmc_that_is_gone_and_comes_back(connect, control, server):
    bmc = connect()
    raise_cpu_1(control)
    control.set_bmc(gone=True)
    assert not server.alarm_file.exists()
    with pytest.raises(IpmiAccessError, match="is gone"):
        bmc.raw(0x30, 0x94, QUERY)
    with pytest.raises(IpmiAccessError, match="has no BMC"):
        connect()
    control.set_bmc()
    assert connect().raw(0x30, 0x94, QUERY) == CPU_1
    assert server.alarm_file.exists()


def test_a_mock_that_is_gone(tmp_path):
    with pytest.raises(IpmiAccessError, match="no mock node at"):
        MockTransport(tmp_path / "nobody")
    with MockServer.start("a2") as server:
        bmc = MockTransport(server.socket)
    try:
        with pytest.raises(IpmiAccessError, match="no mock node at"):
            bmc.raw(0x30, 0x94, QUERY)
    finally:
        bmc.close()


def test_commands_are_in_the_call_log(connect, control):
    control.log_calls(True)
    bmc = connect(0.2)
    bmc.raw(0x30, 0x94, QUERY)
    control.set_bmc(silent=True)
    with pytest.raises(IpmiError):
        bmc.raw(0x30, 0x94, QUERY)
    calls = control.calls(function="ipmi 30/94")
    assert [(bytes(call["args"]), call["rc"], call["pid"]) for call in calls] == [
        (QUERY, 0, os.getpid()),
        (QUERY, -1, os.getpid()),
    ]


def test_storage_files(control, server):
    dpc, dtfs = server.proc / DPC_FILE, server.proc / DTFS_FILE
    assert (dpc.parent.is_dir(), dpc.exists(), dtfs.exists()) == (True, False, False)
    control.set_storage("dpc", "ok", "process+memory")
    assert dpc.read_text().splitlines()[3:] == ["[instidx=1]", "DPC_INTERNAL_ERROR: -12", "DPC_PROCESS_ERROR: -1"]
    assert stat.S_IMODE(dpc.stat().st_mode) == 0o444
    control.set_storage("dpc", mode="0664")
    assert stat.S_IMODE(dpc.stat().st_mode) == 0o664
    control.set_storage("dpc", text="[instidx=a]\n")
    assert dpc.read_text() == "[instidx=a]\n"
    control.set_storage("dtfs", "link")
    assert dtfs.read_text() == "[instidx=0]\nDTFS_PROCESS_ERROR: 0\nDTFS_LINK_ERROR: -1\n"
    control.set_storage("dtfs", instances=[])
    assert dtfs.read_text() == ""
    control.set_storage("dpc", gone=True)
    assert (dpc.exists(), dtfs.exists()) == (False, True)
    with pytest.raises(MockError, match="an instance of dpc is ok"):
        control.set_storage("dpc", "link")


def test_a_file_is_replaced_in_one_step(control, server):
    """A reader that has it open goes on reading the old one, and no other file is ever beside it."""
    control.set_storage("dpc", "ok")
    dpc = server.proc / DPC_FILE
    with dpc.open() as old:
        control.set_storage("dpc", "process")
        assert "-1" not in old.read()
    assert "-1" in dpc.read_text()
    assert list(dpc.parent.iterdir()) == [dpc]


def test_the_folder_ends_with_the_server(tmp_path):
    with MockServer.start("a2", socket=tmp_path / "s") as server:
        assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "s.d"]
        assert server.proc == tmp_path / "s.d" / "proc"
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_server_left_is_not_taken_over(tmp_path):
    leftover = tmp_path / "s.d" / "proc" / DPC_FILE
    leftover.parent.mkdir(parents=True)
    leftover.write_text("old")
    with MockServer.start("a2", socket=tmp_path / "s"):
        assert not leftover.exists()


@pytest.mark.parametrize("way", ["file", "link"])
def test_a_folder_that_is_in_the_way(tmp_path, way):
    """Nothing of others is removed."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("x")
    folder = tmp_path / "s.d"
    if way == "file":
        folder.write_text("x")
    else:
        folder.symlink_to(other)
    with pytest.raises(MockError, match=r"s\.d is in the way"):
        MockServer.start("a2", socket=tmp_path / "s")
    assert (folder.exists(), (other / "precious").read_text()) == (True, "x")
    assert not Path(tmp_path / "s").exists()


def test_a_timeline_plays_on_board_and_storage(tmp_path, server, control):
    path = tmp_path / "t.yaml"
    path.write_text(
        'timeline:\n  - {at_s: 0, do: raise_alarm, code: "2C000031"}\n'
        "  - {at_s: 0, do: bmc, page: 1, delay_s: 0.5}\n"
        "  - {at_s: 0.1, do: storage_dpc, instances: [memory]}\n"
        '  - {at_s: 0.1, do: clear_alarm, code: "03000009"}\n'
    )
    answer = control.play(path)
    assert answer["problems"] == [
        "timeline line 5: NA402: no alarm 03000009 is present (`nodeagent mock state` lists them)"
    ]
    state = control.state()
    assert (state["board"]["page"], state["board"]["fault"]) == (1, {"delay_ms": 500})
    assert [(a["code"], a["device_type"], a["device_id"]) for a in state["board"]["alarms"]] == [
        ("2C000031", "System", 255)
    ]
    assert (state["storage"]["dpc"]["instances"], state["storage"]["dtfs"]) == (["memory"], None)
    assert "DPC_INTERNAL_ERROR: -12" in (server.proc / DPC_FILE).read_text()
