"""Facts through the real path, child process -> cffi -> shim -> the mock library, on every product (native-abi 19)."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kit.daemon import compile_library, node_file

from nodeagent.core.errors import NodeAgentError
from nodeagent.core.model import ChipId, Family
from nodeagent.core.node_facts import FactKind
from nodeagent.drivers.answers import AnswerDamaged, AnswerError, AnswerKind
from nodeagent.drivers.chips import DcmiSettings, HostedChips
from nodeagent.drivers.facts import wanted_facts
from nodeagent.drivers.host import HostStuckError, Reaper
from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer, library_dir

Serve = Callable[..., tuple[HostedChips, MockControl]]
no_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
CORES, MEMORY, ADDRESS, SUPER_DEVICE, PRODUCT_TYPE = FactKind


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serve a node of a profile with more keys of its description, and open a session on it."""
    with ExitStack() as stack:

        def start(profile: str, deadline_s: float = 5.0, **node: Any) -> tuple[HostedChips, MockControl]:
            server = stack.enter_context(MockServer.start(node_file(tmp_path, profile=profile, **node)))
            settings = DcmiSettings(
                library=str(library_dir() / "libdcmi.so"),
                trust=True,
                call_deadline_s=deadline_s,
                environment={"NODEAGENT_MOCK_SOCKET": server.socket},
            )
            chips = HostedChips("dcmi", settings, Reaper(), lambda _: None)
            stack.callback(chips.close)
            chips.open(())
            return chips, stack.enter_context(server.control())

        yield start


def chip(logic_id: int, per_card: int = 1) -> ChipId:
    return ChipId(logic_id, logic_id, logic_id // per_card, logic_id % per_card)


def complaint(action: Callable[[], object]) -> NodeAgentError:
    with pytest.raises(NodeAgentError) as caught:
        action()
    return caught.value


# Chip 5 of an A3 whose server index is 15: module 2, die 1, device 5 (bit fields of native-abi 10.1).
A3_SDID = 15 << 22 | 2 << 18 | 1 << 16 | 5


@pytest.mark.parametrize(
    ("profile", "family", "asked", "node", "facts"),
    [
        ("310", Family.A310, chip(1, 4), {"aicore_count": 2}, {CORES: 2}),
        (
            "310p",
            Family.A310P,
            chip(3, 2),
            {"aicore_count": 8},
            {CORES: 8, PRODUCT_TYPE: "Atlas 300I Duo"},
        ),
        (
            "910a",
            Family.A910,
            chip(7),
            {"aicore_count": 32, "hbm_mb": 32768, "per_chip": [{"chip": 7, "ip": "10.0.0.8"}]},
            {CORES: 32, MEMORY: 32, ADDRESS: "10.0.0.8"},
        ),
        (
            "a2",
            Family.A2,
            chip(2),
            {"aicore_count": 20, "hbm_mb": 65536, "per_chip": [{"chip": 2, "ip": "192.168.1.3"}]},
            {CORES: 20, MEMORY: 64, ADDRESS: "192.168.1.3"},
        ),
        (
            "a3",
            Family.A3,
            chip(5, 2),
            {"aicore_count": 24, "hbm_mb": 65536, "server_id": 15, "per_chip": [{"chip": 5, "ip": "10.1.0.6"}]},
            {CORES: 24, MEMORY: 64, ADDRESS: "10.1.0.6", SUPER_DEVICE: A3_SDID},
        ),
        (
            "950",
            Family.A5,
            ChipId(3, 3, -1, -1),
            {"aicore_count": 36, "hbm_mb": 131072, "server_id": 2},
            {CORES: 36, MEMORY: 128, SUPER_DEVICE: 2 << 22 | 3 << 18 | 3},
        ),
    ],
)
def test_a_product_tells_what_it_has_and_says_of_the_rest_that_it_has_not(
    serve: Serve, profile: str, family: Family, asked: ChipId, node: dict[str, Any], facts: dict[FactKind, object]
) -> None:
    chips, _ = serve(profile, **node)
    assert set(wanted_facts(family)) == set(facts)
    assert {kind: chips.fact(asked, kind) for kind in facts} == facts
    for kind in set(FactKind) - set(facts):
        error = complaint(lambda kind=kind: chips.fact(asked, kind))  # type: ignore[misc]
        assert isinstance(error, AnswerError), kind
        assert error.kind is AnswerKind.NOT_SUPPORTED, kind


def test_a_card_of_the_a2_family_has_no_address(serve: Serve) -> None:
    chips, _ = serve("a2-card")
    assert chips.fact(chip(0), MEMORY) == 32
    error = complaint(lambda: chips.fact(chip(0), ADDRESS))
    assert str(error).startswith("NA302: dcmi_get_device_ip returned -8255 (NOT_SUPPORT)")


class TestAddress:
    def test_it_follows_the_port_and_may_be_ipv6(self, serve: Serve) -> None:
        chips, control = serve("a2", per_chip=[{"chip": 0, "ip": "10.0.0.1"}])
        assert chips.fact(chip(0), ADDRESS) == "10.0.0.1"
        control.set_address(0, "2001:db8::17")
        assert chips.fact(chip(0), ADDRESS) == "2001:db8::17"
        control.set_address(0, "10.0.0.2")
        assert chips.fact(chip(0), ADDRESS) == "10.0.0.2"

    def test_a_port_without_an_address_is_an_error_with_the_answer_about_ipv4(self, serve: Serve) -> None:
        chips, control = serve("a2")
        control.set_address(0, "none")
        control.log_calls(True)
        error = complaint(lambda: chips.fact(chip(0), ADDRESS))
        assert isinstance(error, AnswerError)
        assert (error.rc, error.kind) == (-8023, AnswerKind.FAILED)
        assert [call["args"] for call in control.calls(function="dcmi_get_device_ip")] == [
            [0, 0, 1, 0, 0],
            [0, 0, 1, 0, 1],
        ]

    @pytest.mark.parametrize("useless", ["0.0.0.0", "fe80::1"])
    def test_an_address_that_reaches_nobody_is_refused(self, serve: Serve, useless: str) -> None:
        chips, control = serve("a2")
        control.set_address(0, useless)
        assert isinstance(complaint(lambda: chips.fact(chip(0), ADDRESS)), AnswerDamaged)


def test_a_950_without_a_rack_disqualifies_its_answer(serve: Serve) -> None:
    chips, _ = serve("950", chassis_id=0xFFFFFFFF)
    error = complaint(lambda: chips.fact(ChipId(0, 0, -1, -1), SUPER_DEVICE))
    assert isinstance(error, AnswerDamaged)
    assert "0xffffffff" in str(error)


def test_a_lost_card_and_a_hung_call(serve: Serve) -> None:
    chips, control = serve("a2", deadline_s=0.5)
    control.drop_card(1)
    assert str(complaint(lambda: chips.fact(chip(1), CORES))).startswith(
        "NA302: dcmi_get_device_chip_info_v2 returned -80"
    )
    assert chips.fact(chip(0), CORES) == 20
    control.hang("dcmi_get_device_ip", 30, chip=0)
    assert isinstance(complaint(lambda: chips.fact(chip(0), ADDRESS)), HostStuckError)


NONSENSE = """
#include <string.h>
#include "na_dcmi.h"
#define PUBLIC __attribute__((visibility("default")))
PUBLIC int dcmi_init(void) { return 0; }
PUBLIC int dcmi_get_card_list(int *n, int *ids, int room) { (void)room; *n = 1; ids[0] = 0; return 0; }
PUBLIC int dcmi_get_device_num_in_card(int c, int *n) { (void)c; *n = 1; return 0; }
PUBLIC int dcmi_get_device_logic_id(int *l, int c, int d) { (void)c; (void)d; *l = 0; return 0; }
PUBLIC int dcmi_get_device_phyid_from_logicid(unsigned l, unsigned *p) { (void)l; *p = 0; return 0; }
PUBLIC int dcmi_get_device_chip_info_v2(int c, int d, struct dcmi_chip_info_v2 *i)
{ (void)c; (void)d; memset(i, 0, sizeof *i); strcpy((char *)i->chip_name, "310P3"); i->aicore_cnt = 0; return 0; }
PUBLIC int dcmi_get_device_board_info(int c, int d, struct dcmi_board_info *i)
{ (void)c; (void)d; memset(i, 0, sizeof *i); return 0; }
/* Structs and texts larger than they should be, as after a driver update. */
PUBLIC int dcmi_get_device_hbm_info(int c, int d, struct dcmi_hbm_info *i)
{ (void)c; (void)d; memset(i, 0x5A, sizeof *i + 400); i->memory_size = 512; return 0; }
PUBLIC int dcmi_get_device_ip(int c, int d, int t, int p, struct dcmi_ip_addr *ip, struct dcmi_ip_addr *mask)
{ (void)c; (void)d; (void)t; (void)p; memset(ip, 0x5A, sizeof *ip + 400); memset(mask, 0x5A, sizeof *mask + 400);
  return 0; }
PUBLIC int dcmi_get_product_type(int c, int d, char *text, int room)
{ (void)c; (void)d; (void)room; memset(text, 'x', 400); return 0; }
"""


@no_compiler
def test_nonsense_is_no_fact_and_structs_that_have_grown_damage_nothing(tmp_path: Path) -> None:
    path = compile_library(tmp_path, NONSENSE)
    chips = HostedChips("nonsense", DcmiSettings(library=str(path), trust=True), Reaper(), lambda _: None)
    try:
        (only,) = chips.open(()).inventory.chips
        for kind, words in (
            (CORES, "an AI core count of 0, outside 1..1024"),
            (MEMORY, "a memory size in MB of 512, outside 1024.."),
            (PRODUCT_TYPE, "a product type of 'xxx"),
        ):
            error = complaint(lambda kind=kind: chips.fact(only, kind))  # type: ignore[misc]
            assert isinstance(error, AnswerDamaged), kind
            assert words in str(error)
        assert chips.fact(only, ADDRESS) == "90.90.90.90"
    finally:
        chips.close()
