"""The mock switch library as any program meets it: native-abi 16 and 18.2 row 11, lingqu-switch-faults 12."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kit.abi_client import AbiClient, Result, out

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer, library_dir

B3 = {"chip": 2, "code": "[0x08520003,na,npu,na]", "port": 11, "peer_id": 5, "severity": "major"}
FATAL = "[0x00f103b0,155907,na,na]"
RECORD = struct.Struct("<IIHHHHBB6xIIQ40x32s")
LIBRARY = "liblingqu-dcmi.so"


class Node:
    def __init__(self, node: str | Path) -> None:
        self.server = MockServer.start(node)
        self.control: MockControl = self.server.control()
        self.clients: list[AbiClient] = []

    def client(self, *, init: bool = True) -> AbiClient:
        made = AbiClient(library_dir() / LIBRARY, self.server.environment())
        self.clients.append(made)
        if init:
            assert made.call("lq_dcmi_init").rc == 0
        return made

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.control.close()
        self.server.stop()


@pytest.fixture
def serve() -> Iterator[Callable[[str | Path], Node]]:
    nodes: list[Node] = []

    def make(node: str | Path = "a3") -> Node:
        nodes.append(Node(node))
        return nodes[-1]

    yield make
    for node in nodes:
        node.close()


def query(client: AbiClient, room: int = 128) -> Result:
    return client.call("lq_dcmi_get_fault_info", room, out(4), out(112 * max(room, 1), fill=0x5A))


def listed(client: AbiClient, room: int = 128) -> list[tuple[int, ...]]:
    """The records of a query that must succeed: type, id, peer, peer id, chip, port, severity, assertion."""
    result = query(client, room)
    assert result.rc == 0
    return [RECORD.unpack_from(result.outs[1], 112 * i)[:8] for i in range(result.number(0))]


def test_an_event_and_the_list_hold_what_the_sheet_says(serve: Callable[..., Node]) -> None:
    node = serve()
    client = node.client()
    assert client.subscribe_switches() == 0
    (told,) = node.control.raise_switch_fault(time_ms=1759999990123, **B3)
    assert [c.pid for c in told.callbacks] == [client.process.pid]
    (heard,) = client.heard(1)
    *fields, info = RECORD.unpack(heard.raw)
    assert fields[:8] == [0x08520003, 0xFFFFFFFF, 1, 5, 2, 11, 2, 1]
    assert (fields[10], info.rstrip(b"\0")[:4]) == (1759999990123, b"mock")
    assert (heard.thread, heard.within) == ("lq_update", False)
    assert listed(client) == [tuple(fields[:8])]
    assert client.ask(peek=heard.address) == "a5" * 112, "a late reader is caught"


def test_return_codes(serve: Callable[..., Node]) -> None:
    """native-abi 3.2: the numbers of DCMI, other meanings."""
    node = serve()
    early = node.client(init=False)
    assert early.subscribe_switches() == -8009
    assert query(early).rc == -8009
    assert early.call("lq_dcmi_init").rc == 0
    assert early.call("lq_dcmi_init").rc == -8017
    assert query(early, 0).rc == -8001
    assert early.call("lq_dcmi_get_fault_info", 65536, out(4), out(112)).rc == -8001
    assert early.call("lq_dcmi_get_fault_info", 128, None, out(112 * 128)).rc == -8001
    assert early.subscribe_switches(handler=False) == -8016
    assert early.subscribe_switches(flags=1, type=0x00F1FF09) == -8015
    assert early.subscribe_switches(flags=2, id=4711) == -8015
    assert early.subscribe_switches(flags=4, severity=4) == -8015
    assert early.subscribe_switches(flags=8, chip=7) == -8015
    for chip in range(7):
        assert early.subscribe_switches(flags=8, chip=chip) == 0
        assert early.subscribe_switches(flags=4 | 8, chip=chip) == 0
    assert early.subscribe_switches() == 0
    assert early.subscribe_switches() == 0, "the same filter replaces its handler"
    assert early.subscribe_switches(flags=4, severity=1) == -8014
    assert early.subscribe_switches(handler=False) == 0
    assert early.call("lq_dcmi_get_version", out(4), out(4)).rc == 0


@pytest.mark.parametrize("profile", ["a2", "950"])
def test_a_node_without_switches_has_no_device_node(serve: Callable[..., Node], profile: str) -> None:
    client = serve(profile).client(init=False)
    assert client.call("lq_dcmi_init").rc == -8004
    assert query(client).rc == -8009


def test_without_a_server_there_is_no_device_node(tmp_path: Path) -> None:
    client = AbiClient(library_dir() / LIBRARY, {"NODEAGENT_MOCK_SOCKET": str(tmp_path / "nobody")})
    try:
        assert client.call("lq_dcmi_init").rc == -8004
    finally:
        client.close()


def test_only_changes_are_told_unless_another_version_is_wanted(serve: Callable[..., Node]) -> None:
    node = serve()
    client = node.client()
    client.subscribe_switches()
    place = {k: v for k, v in B3.items() if k != "severity"}
    assert node.control.clear_switch_fault(**place) == []
    assert len(node.control.raise_switch_fault(**B3)) == 1
    assert node.control.raise_switch_fault(**B3) == []
    assert len(node.control.raise_switch_fault(repeat=True, **B3)) == 1, "B14"
    assert len(listed(client)) == 1
    assert len(node.control.clear_switch_fault(**place)) == 1
    assert len(node.control.switch_notice(4, "0x00f1ff06,155911")) == 1
    assert [event.raw[17] for event in client.heard(4)] == [1, 1, 0, 2]
    assert listed(client) == []


def test_faults_of_before_init_are_in_the_list_only(serve: Callable[..., Node], tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(
        f"node:\n  profile: a3\n  switch_faults:\n    - {{chip: 0, code: '{FATAL}', severity: critical}}\n"
        "    - {chip: 1, port: 4, code: '0x00f1ff09,155913,cpu', time_ms: 0}\n"
    )
    node = serve(path)
    client = node.client()
    client.subscribe_switches()
    node.control.raise_switch_fault(**B3)
    assert len(client.heard(1)) == 1
    assert listed(client) == [
        (0x00F103B0, 155907, 0xFFFF, 0xFFFF, 0, 0xFFFF, 3, 1),
        (0x00F1FF09, 155913, 0, 0, 1, 4, 1, 1),
        (0x08520003, 0xFFFFFFFF, 1, 5, 2, 11, 2, 1),
    ]


def test_a_fault_of_a_chip_comes_in_both_shapes_and_hides_those_of_its_ports(serve: Callable[..., Node]) -> None:
    """B10 and B12; one per chip (16.6)."""
    node = serve()
    client = node.client()
    node.control.raise_switch_fault(0, FATAL)
    node.control.raise_switch_fault(0, FATAL, peer="cpu", peer_id=0)
    assert [record[2:6] for record in listed(client)] == [(0xFFFF, 0xFFFF, 0, 0xFFFF), (0, 0, 0, 0xFFFF)]
    for chip in (0, 1):
        node.control.raise_switch_fault(chip, "0x00f103b0,155907,npu", port=3)
    assert [record[4:6] for record in listed(client)] == [(0, 0xFFFF), (0, 0xFFFF), (1, 3)]


def test_a_list_that_is_too_short_is_cut_without_an_error(serve: Callable[..., Node]) -> None:
    node = serve()
    client = node.client()
    node.control.switch_storm(leave_raised=True)
    assert len(listed(client, 128)) == 128
    assert len(listed(client, 1024)) == 7 * 48 * 3
    assert client.call("lq_dcmi_get_fault_nums", out(4)).number() == 1008


@pytest.mark.parametrize("value", [129, 0, -1])
def test_a_count_can_be_claimed(serve: Callable[..., Node], value: int) -> None:
    node = serve()
    client = node.client()
    node.control.raise_switch_fault(**B3)
    node.control.claim_switch_count(value)
    assert (query(client).rc, query(client).number()) == (0, value)
    node.control.claim_switch_count(None)
    assert query(client).number() == 1


def test_filters_choose_and_every_matching_handler_is_called(serve: Callable[..., Node]) -> None:
    node = serve()
    client = node.client()
    assert client.subscribe_switches(flags=8, chip=2) == 0
    assert client.subscribe_switches(flags=4, severity=2) == 0, "equality, whatever the vendor's comment says (16.3)"
    (told,) = node.control.raise_switch_fault(1, "0x00f10509,132332,L2", port=40, severity="critical")
    assert (told.callbacks, told.missing) == ((), 0)
    node.control.raise_switch_fault(**B3)
    assert len(client.heard(2)) == 2
    assert client.subscribe_switches(handler=False, flags=4, severity=2) == 0
    node.control.raise_switch_fault(2, "0x00f10509,132333,npu", port=1, severity="major")
    assert len(client.heard(3)) == 3


def test_what_a_ring_cannot_hold_is_lost_and_a_sixteenth_process_is_refused(serve: Callable[..., Node]) -> None:
    node = serve()
    client = node.client()
    client.subscribe_switches()
    node.control.switch_storm(leave_raised=False)  # 2,016 events within one tick
    (ring,) = node.control.state()["switch_rings"]
    assert ring["delivered"] + ring["dropped"] == 2016
    assert ring["delivered"] >= 1024
    assert len(client.heard(1)) == ring["delivered"]
    for _ in range(14):
        node.client()
    assert node.client(init=False).call("lq_dcmi_init").rc == -8010


def test_it_can_be_closed_while_its_thread_runs(serve: Callable[..., Node]) -> None:
    client = serve().client()
    assert client.ask(reload=True) == "reloaded"
    assert client.call("lq_dcmi_init").rc == 0


def test_functions_of_this_library_fail_hang_and_crash_like_others(serve: Callable[..., Node]) -> None:
    node = serve()
    client = node.client()
    node.control.fail("lq_dcmi_get_fault_info", -8005, times=1)
    assert [query(client).rc for _ in range(2)] == [-8005, 0]
    node.control.crash("lq_dcmi_get_fault_info")
    with pytest.raises(EOFError):
        query(client)
    assert client.exit_code() == -11
