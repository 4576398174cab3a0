"""Answers of the ABI without a library: golden identity values, support by product, refusals and their order."""

import re
import struct
from pathlib import Path

import pytest
from kit.clock import FakeClock

import nodeagent
from nodeagent.mock.dispatch import Dispatcher
from nodeagent.mock.events import EventFilter, Module
from nodeagent.mock.functions import BY_NAME, PRODUCTS, canonical, group_supported
from nodeagent.mock.node import MockNode
from nodeagent.mock.spec import ChipSpec, NodeSpec

INCLUDE = Path(nodeagent.__file__).parent / "include"


class Abi:
    """A client that was initialised, or not, without any socket."""

    def __init__(self, init: bool = True, **fields: object) -> None:
        self.clock = FakeClock()
        self.node = MockNode(NodeSpec(**fields), self.clock)
        self.dispatcher = Dispatcher(self.node)
        self.session = -1
        if init:
            name = "dcmiv2_init" if self.node.spec.product.v2 else "dcmi_init"
            rc, (session,) = self.call(name)
            assert rc == 0
            self.session = int.from_bytes(session, "little")

    def call(self, name: str, *args: int, blob: bytes = b""):
        return self.dispatcher.answer(self.dispatcher.resolve(1, self.session, name, args, blob))

    def words(self, name: str, *args: int, blob: bytes = b"", index: int = 0) -> tuple[int, ...]:
        """The unsigned words of an output buffer of a call that must succeed."""
        rc, outs = self.call(name, *args, blob=blob)
        assert rc == 0
        return struct.unpack(f"<{len(outs[index]) // 4}I", outs[index])


def text(raw: bytes) -> str:
    return raw.split(b"\0")[0].decode()


def test_the_table_has_the_functions_of_the_header():
    headers = "".join((INCLUDE / name).read_text() for name in ("na_dcmi.h", "na_lingqu.h"))
    assert set(BY_NAME) == set(re.findall(r"^int ((?:lq_)?dcmi\w+)\(", headers, re.MULTILINE))


def test_names():
    assert canonical("dcmiv2_get_device_error_code_list") == "dcmi_get_device_errorcode_v2"
    assert canonical("dcmiv2_get_device_list") == "dcmiv2_get_device_list"
    with pytest.raises(ValueError, match=r"near: .*dcmi_get_device_health"):
        canonical("get_health")


SECTION_19 = {
    "subscription": "910a a2 a2-card a3 950",
    "gateway": "910a a2 a3 950",
    "address": "910a a2 a3",
    "spod info": "a3 950",
    "spod status": "a3",
    "hccs ping": "a3",
    "hccs": "a2 a2-card a3",
    "sio": "a3 950",
    "dies": "a3",
    "out of band": "a2-card a3 950",
    "reset": "310 310p 910a a2 a2-card a3 950",
    "boot": "310p 910a a2 a2-card a3 950",
    "main board": "a2 a2-card a3 950",
    "product type": "310p",
    "work mode": "910a",
    "affinity": "a2 a2-card 950",
    "hbm": "910a a2 a2-card a3 950",
    "ddr": "310 310p 910a",
    "mcu power": "310p",
    "pcie rate": "a2 a2-card",
}


@pytest.mark.parametrize("group", SECTION_19)
def test_support_by_generation(group):
    assert [name for name in PRODUCTS if group_supported(group, name)] == SECTION_19[group].split()


def test_identity_of_a_chip():
    abi = Abi(profile="a2", board_id=0x30, per_chip=(ChipSpec(3, phy_id=11, serial_number="SN3", ip="192.168.7.9"),))
    rc, (info,) = abi.call("dcmi_get_device_chip_info_v2", 3, 0)
    assert (rc, len(info)) == (0, 132)
    assert [text(info[at : at + 32]) for at in (0, 32, 64, 100)] == ["Ascend", "910B4", "V1", "910B4"]
    _, (old,) = abi.call("dcmi_get_device_chip_info", 3, 0)
    assert old == info[:100]
    assert abi.words("dcmi_get_device_board_info", 3, 0) == (0x30, 0xFFFFFFFF, 0xFFFFFFFF, 4)
    assert abi.words("dcmi_get_device_phyid_from_logicid", 3) == (11,)
    assert abi.words("dcmi_get_device_logicid_from_phyid", 11) == (3,)
    assert abi.call("dcmi_get_device_logicid_from_phyid", 3) == (-8008, ())
    _, (elabel,) = abi.call("dcmi_get_card_elabel_v2", 3)
    assert (len(elabel), text(elabel[1024:]), elabel[768:1024]) == (1280, "SN3", bytes(256))
    _, (ip, mask) = abi.call("dcmi_get_device_ip", 3, 0, 1, 0, 0)
    assert (ip, mask) == (bytes([192, 168, 7, 9]) + bytes(16), bytes([255, 255, 255, 0]) + bytes(16))
    assert abi.call("dcmi_get_device_ip", 3, 0, 1, 0, 1)[0] == -8023
    # 5.3: the bus text of upstream for this would be 0000:C4:00.0
    assert struct.unpack_from("<iIII", abi.call("dcmi_get_device_pcie_info_v2", 3, 0)[1][0], 16) == (0, 0xC4, 0, 0)
    assert abi.words("dcmi_get_device_die_v2", 3, 0, 1)[3] == 4
    assert abi.call("dcmi_get_device_die_v2", 3, 0, 2)[0] == -8255
    assert abi.call("dcmi_get_device_die_v2", 3, 0, 3)[0] == -8001


def test_cards_and_dies_of_a3():
    abi = Abi(profile="a3")
    assert abi.words("dcmi_get_card_list", 64, index=1) == tuple(range(8))
    assert abi.call("dcmi_get_card_list", 7)[0] == -8001
    assert abi.words("dcmi_get_device_num_in_card", 5) == (2,)
    assert [struct.unpack("<i", raw)[0] for raw in abi.call("dcmi_get_device_id_in_card", 5)[1]] == [2, 2, -1]
    assert [abi.words("dcmi_get_device_type", 5, device) for device in (0, 1, 2)] == [(0,), (0,), (1,)]
    assert abi.call("dcmi_get_device_type", 5, 3)[0] == -8008
    assert abi.call("dcmi_get_device_health", 5, 2)[0] == -8008
    assert abi.call("dcmi_get_device_health", -1, 0)[0] == -8001
    assert abi.words("dcmi_get_device_logic_id", 5, 1) == (11,)
    assert abi.call("dcmi_get_card_id_device_id_from_logicid", 11)[1] == (struct.pack("<i", 5), struct.pack("<i", 1))
    assert abi.words("dcmi_get_device_board_info", 0, 0)[0] == 0xB0
    assert abi.words("dcmi_get_mainboard_id", 0, 0) == (0x18,)
    assert abi.words("dcmi_get_netdev_brother_device", 5, 0) == (4,)


def test_super_pod_identity():
    """10.1: SDID 62980097 is server 15, chip 0, die 1, device 1."""
    abi = Abi(profile="a3", server_id=15, super_pod_id=7, super_pod_size=384)
    rc, (buffer, size) = abi.call("dcmi_get_device_info", 0, 1, 12, 1, 48)
    assert (rc, struct.unpack("<I", size)) == (0, (48,))
    assert struct.unpack("<12I", buffer) == (62980097, 384, 7, 15, *[0] * 8)
    assert abi.call("dcmi_get_device_info", 0, 1, 12, 1, 47)[0] == -8001
    assert abi.call("dcmi_get_device_info", 0, 1, 99, 1, 48)[0] == -8255
    assert Abi(profile="a2").call("dcmi_get_device_info", 0, 0, 12, 1, 48)[0] == -8255
    pod = struct.unpack("<12I", Abi(profile="950", chassis_id=3).call("dcmiv2_get_device_info", 2, 12, 1, 48)[1][0])
    assert pod[4] == 3


def test_facts_of_a_chip_can_be_described_and_changed():
    own = ChipSpec(1, product_type="Atlas 300V")
    abi = Abi(profile="310p", aicore_count=10, per_chip=(own,))
    assert struct.unpack_from("<I", abi.call("dcmi_get_device_chip_info", 0, 0)[1][0], 96) == (10,)
    types = [abi.call("dcmi_get_product_type", 0, device, 65)[1][0].rstrip(b"\0") for device in (0, 1)]
    assert types == [b"Atlas 300I Duo", b"Atlas 300V"]
    abi = Abi(profile="a2", hbm_mb=65536)
    assert struct.unpack_from("<Q", abi.call("dcmi_get_device_hbm_info", 2, 0)[1][0]) == (65536,)
    abi.node.set_address(2, "10.20.0.3")
    assert abi.call("dcmi_get_device_ip", 2, 0, 1, 0, 0)[1][0][:4] == bytes([10, 20, 0, 3])
    abi.node.set_address(2, "fd00::3")
    assert abi.call("dcmi_get_device_ip", 2, 0, 1, 0, 0)[0] == -8023
    assert abi.call("dcmi_get_device_ip", 2, 0, 1, 0, 1)[1][0][:16] == b"\xfd" + bytes(14) + b"\x03"
    abi.node.set_address(2, "")
    assert [abi.call("dcmi_get_device_ip", 2, 0, 1, 0, family)[0] for family in (0, 1)] == [-8023, -8023]
    assert abi.call("dcmi_get_device_gateway", 2, 0, 1, 0)[0] == -8023


def test_peer_status():
    abi = Abi(profile="a3")
    assert abi.words("dcmi_get_spod_node_status", 0, 0, 62980097) == (0,)
    assert abi.call("dcmi_set_spod_node_status", 0, 0, 62980097, 1)[0] == 0
    assert abi.words("dcmi_get_spod_node_status", 0, 0, 62980097) == (1,)
    assert abi.words("dcmi_get_spod_node_status", 0, 1, 62980097) == (0,)
    blob = struct.pack("<I", 62980097)
    assert abi.words("dcmi_get_device_info", 0, 0, 12, 2, 4, blob=blob) == (1,)
    assert abi.call("dcmi_set_spod_node_status", 0, 0, 1, 2)[0] == -8001


def test_list_comes_before_init_and_sessions_share_topologies():
    abi = Abi(profile="a2")
    assert abi.words("dcmi_init") == (0,)
    abi.node.drop_card(0)
    assert abi.words("dcmi_init") == (1,)
    abi.node.return_card(0)
    assert abi.words("dcmi_init") == (0,)
    assert Abi(init=False, profile="a2").call("dcmi_get_card_list", 64)[0] == -8005
    assert Abi(init=False, profile="a2").call("dcmi_get_device_phyid_from_logicid", 0)[0] == -8012
    assert Abi(init=False, profile="950").call("dcmi_get_card_list", 64)[0] == -8255


def test_error_texts():
    abi, code = Abi(profile="a2"), 0x80E18005
    assert abi.call("dcmi_get_device_errorcode_string", 0, 0, code, 47)[0] == -8001
    short = abi.call("dcmi_get_device_errorcode_string", 0, 0, code, 48)[1][0]
    full = abi.call("dcmi_get_device_errorcode_string", 0, 0, code, 256)[1][0]
    assert short == b"mock fault 80E18005\0"
    assert len(short) < 48 < len(full) <= 256
    assert full.startswith(short[:-1])


def test_metrics():
    own = ChipSpec(1, temperature_c=61, power_w=123.4, utilization_percent=80, hbm_used_mb=77, processes=((42, 4096),))
    abi = Abi(profile="a2", per_chip=(own,))
    assert abi.words("dcmi_get_device_temperature", 1, 0) == (61,)
    assert abi.words("dcmi_get_device_power_info", 1, 0) == (1234,)
    assert abi.words("dcmi_get_device_utilization_rate", 1, 0, 2) == (80,)
    assert abi.call("dcmi_get_device_utilization_rate", 1, 0, 7)[0] == -8001
    assert abi.words("dcmi_get_device_multi_utilization_rate_period", 1, 0, 1)[:4] == (80,) * 4
    hbm = struct.unpack("<QI4xQiI", abi.call("dcmi_get_device_hbm_info", 1, 0)[1][0])
    assert hbm == (32768, 1600, 77, 61, 0)
    rc, (processes, count) = abi.call("dcmi_get_device_resource_info", 1, 0)
    assert (rc, processes, count) == (0, struct.pack("<i4xQ", 42, 4096), struct.pack("<i", 1))
    # 13: the vendor's ECC struct ends after 28 bytes.
    assert len(abi.call("dcmi_get_device_ecc_info", 1, 0, 2)[1][0]) == 28
    assert abi.call("dcmi_get_device_ecc_info", 1, 0, 0)[0] == -8255


def test_blocking_calls_tell_how_long():
    abi = Abi(profile="a2", init_delay_s=1.5)
    resolve = abi.dispatcher.resolve
    before = abi.dispatcher.before
    assert before(resolve(1, 0, "dcmi_init", (), b"")).hang_s == 1.5
    assert before(resolve(1, 0, "dcmiv2_init", (), b"")).hang_s == 0
    assert before(resolve(1, 0, "dcmi_get_hccs_link_bandwidth_info", (0, 0, 200), b"")).hang_s == 0.2
    assert before(resolve(1, 0, "dcmi_get_hccs_link_bandwidth_info", (0, 0, 1001), b"")).hang_s == 0
    assert abi.call("dcmi_get_hccs_link_bandwidth_info", 0, 0, 1001)[0] == -8001
    abi.node.hang("dcmi_get_hccs_link_bandwidth_info", 0, 2)
    assert before(resolve(1, 0, "dcmi_get_hccs_link_bandwidth_info", (0, 0, 500), b"")).hang_s == 2.5


def test_reset_by_the_library():
    abi = Abi(profile="a2")
    assert abi.call("dcmi_set_device_reset", 3, 0, 1)[0] == 0
    assert abi.words("dcmi_get_device_boot_status", 3, 0) == (1,)
    assert abi.call("dcmi_set_device_reset", 3, 0, 0)[0] == -8255
    assert abi.call("dcmi_set_device_reset", 3, 0, 2)[0] == -8001
    assert abi.words("dcmi_get_device_boot_status", 4, 0) == (16,)
    assert abi.call("dcmi_set_device_reset", 0xFF, 0, 1)[0] == 0
    assert abi.words("dcmi_get_device_boot_status", 4, 0) == (1,)


def test_pingmesh_statistics():
    abi = Abi(profile="a3")
    blob = struct.pack("<1024s6i", b"192.168.0.1,192.168.0.2", 1792, 10, 10, 1, 5, 1)
    assert abi.call("dcmi_start_hccsping_mesh", 0, 0, 0, blob=blob)[0] == 0

    def column(offset, code):
        (info,) = abi.call("dcmi_get_hccsping_mesh_info", 0, 0, 0, 1)[1]
        assert len(info) == 3272
        return struct.unpack_from(f"<48{code}", info, offset)[:3]

    assert column(1920, "q") == (-1, -1, 0)  # not done yet
    abi.clock.advance_ms(10_000)
    assert column(768, "I") == (10, 10, 0)
    assert column(960, "I") == (0, 0, 0)
    assert column(1920, "q") == (200, 201, 0)
    assert column(2880, "Q") == (2, 2, 0)
    assert abi.call("dcmi_get_hccsping_mesh_state", 0, 0, 1, 1)[0] == -8001
    assert abi.call("dcmi_get_hccsping_mesh_state", 0, 0, 0, 2)[0] == -8001


def test_event_bytes():
    """7.1: offsets of the event inside `struct dcmi_event`, which puts 8 bytes before it."""
    node = MockNode(NodeSpec(profile="950"), FakeClock())
    (event,) = node.raise_fault(
        5, 0x80E18005, severity=3, module=Module(1, 2, 3, 4), time_ms=1_700_000_000_123, name="名" * 200, info=b"i" * 40
    )
    raw = event.to_bytes(extended=True)
    assert len(raw) == 360
    assert struct.unpack_from("<iI", raw, 0) == (0, 0)
    assert struct.unpack_from("<IH8B", raw, 8) == (0x80E18005, 5, 1, 2, 3, 4, 3, 1, 1, 0)
    assert struct.unpack_from("<ii", raw, 20) == (1, 1)
    assert struct.unpack_from("<Q", raw, 32) == (1_700_000_000_123,)
    assert raw[40 + 255] == 0
    assert raw[296:328] == b"i" * 32
    assert raw[328:336] == bytes([0, 0, 1, 0, 3, 0, 0, 0])
    assert event.to_bytes(extended=False)[328:] == bytes(32)


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        (EventFilter(), True),
        (EventFilter(logic_id=5), True),
        (EventFilter(logic_id=4), False),
        (EventFilter(flags=1, code=0x80E18005), True),
        (EventFilter(flags=1, code=1), False),
        (EventFilter(flags=2, severity=2), True),
        (EventFilter(flags=2, severity=3), False),
        (EventFilter(flags=4, node_type=0x40), True),
        (EventFilter(flags=5, code=0x80E18005, node_type=0x41), False),
        (EventFilter(flags=0, code=1, severity=3, node_type=9), True),
    ],
)
def test_filter(wanted, passes):
    (event,) = MockNode(NodeSpec(), FakeClock()).raise_fault(5, 0x80E18005)
    assert wanted.matches(event) == passes
