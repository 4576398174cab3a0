"""The worked examples of lingqu-switch-faults 11, from events to the exact text, and the sheet's further cases."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from kit.engine import at, shipped_switches
from kit.switches import B3, B4, B5, B6, B8, B9, B10, B11, B12, B13, SwitchBench, recovery

from nodeagent.core.model import Family
from nodeagent.core.observation import SwitchSilent
from nodeagent.core.switch import SwitchRecord
from nodeagent.core.switch_codes import SwitchLevel, code_of
from nodeagent.policy.switch_table import SwitchTable
from nodeagent.policy.upstream_switch import read_switch_levels
from nodeagent.render.device_info import render_device_info

FOLDER = Path(__file__).parent / "data"


def golden(case: str) -> str:
    """The text of the sheet."""
    return (FOLDER / "switch_info" / f"{case}.txt").read_text(encoding="utf-8").rstrip("\n")


def replaced(**lists: list[str]) -> SwitchTable:
    """The shipped table under a SwitchFaultCode.json."""
    return shipped_switches().with_levels(read_switch_levels("x", json.dumps(lists)).entries)


def after(*records: SwitchRecord, switches: SwitchTable | None = None) -> SwitchBench:
    """A node on which these events came one after the other."""
    bench = SwitchBench(switches)
    for number, record in enumerate(records):
        bench.events(number, record)
    return bench


@pytest.mark.parametrize(
    ("case", "records"),
    [
        ("B1", ()),
        ("B3", (B3,)),
        ("B4", (B4,)),
        ("B5", (B5,)),
        ("B6", (B6,)),
        ("B7", (B5, B4)),
        ("B10", (B10,)),
        ("B11", (B11,)),
    ],
)
def test_worked_examples(case: str, records: tuple[SwitchRecord, ...]) -> None:
    assert after(*records).text == golden(case)


def test_b2_library_missing() -> None:
    assert SwitchBench(found=False, listed=False).text == golden("B2")


@pytest.mark.parametrize(
    ("count", "size", "digest", "node"),
    [
        (16, 4961, "fbc1001937ad615ef838f2ebb3282ac4f5abf165ee3f8cf6fed6c5835856f89b", ("Separate", "UnHealthy")),
        (15, 4657, "0280ebc8ca8bf733c7be53b60038423980791f5df891009ac035386d0afea769", ("NotHandle", "Healthy")),
    ],
)
def test_b8_plane_down(count: int, size: int, digest: str, node: tuple[str, str]) -> None:
    bench = after(*B8[:count])
    assert (len(bench.text.encode()), hashlib.sha256(bench.text.encode()).hexdigest()) == (size, digest)
    assert bench.node == node


def test_b9_unregistered_code() -> None:
    assert after(B9, switches=replace(shipped_switches(), alias_old_ids=False)).text == golden("B9")


def test_b9_with_the_old_id_as_alias_is_levelled_as_its_twin_and_published_as_received() -> None:
    severe = replace(B9, fault_id=155912)
    bench = after(severe)
    assert bench.node == ("Separate", "UnHealthy")
    assert "[0x00f1ff09,155912,cpu,na]" in bench.text
    assert "00f1fef5" not in bench.text


def test_b12_chip_fault_sent_with_peer_0_in_its_recommended_form() -> None:
    expected = golden("B10").replace('PeerPortDevice\\":65535', 'PeerPortDevice\\":0')
    assert after(B12).text == expected.replace('PeerPortId\\":65535', 'PeerPortId\\":0')


@pytest.mark.parametrize("peer", [0, 1, 2, 7, 0xFFFF])
@pytest.mark.parametrize("port", [0xFFFF, 0xFFFFFFFF])
def test_b12_whatever_the_peer_of_a_whole_chip(peer: int, port: int) -> None:
    record = replace(B10, peer_device=peer, port_id=port)
    assert code_of(record).text == "[0x00f103b0,155907,na,na]"
    assert after(record).node == ("Separate", "UnHealthy")


def test_b13_custom_table() -> None:
    bench = after(B13, switches=replaced(PreSeparateFaultCodes=["[0x00f103b6,155909,na,na]"]))
    assert bench.text == golden("B13")


def test_b14_delivered_twice_in_its_recommended_form() -> None:
    assert after(B3, B3).text == golden("B3")


class TestFurtherCases:
    """D1 to D12 of the sheet; D7, D14 and D15 are the source's."""

    def test_d1_recovery(self) -> None:
        assert after(B3, recovery(B3)).text == golden("B1")

    def test_d2_recovery_of_another_port(self) -> None:
        assert after(B3, recovery(replace(B3, port_id=12))).text == golden("B3")

    def test_d3_twice_and_one_recovery(self) -> None:
        assert after(B3, B3, recovery(B3)).text == golden("B1")

    def test_d4_recovery_of_something_unknown(self) -> None:
        assert after(recovery(B3)).text == golden("B1")

    def test_d5_an_empty_answer(self) -> None:
        bench = after(B3)
        bench.answer(300)
        assert bench.text == golden("B1")

    def test_d6_a_failed_query(self) -> None:
        bench = after(B3)
        bench.step(300, SwitchSilent("lq_dcmi_get_fault_info returned -8005", at(300)))
        assert bench.text == golden("B3")
        assert bench.view.switch.silent_since_ms == at(300).wall_ms

    def test_d8_recoveries_in_an_answer(self) -> None:
        bench = SwitchBench()
        bench.answer(1, recovery(B3), B5, recovery(B4))
        assert bench.text == golden("B5")

    def test_d9_time_0(self) -> None:
        bench = SwitchBench()
        without = replace(B3, raised_ms=0)
        bench.events(0.456, without)
        expected = golden("B3").replace("1759999990123", "1760000000456")
        assert bench.text == expected
        for seconds in (300, 600):
            bench.answer(seconds, without)
            assert bench.text == expected

    def test_d10_two_chips_with_8_ports_each(self) -> None:
        records = [replace(r, chip_id=3 + (r.port_id >= 40)) for r in B8]
        assert after(*records).node == ("NotHandle", "Healthy")

    def test_d11_the_same_port_twice(self) -> None:
        records = [*B8[:15], replace(B8[0], alarm_id=0x00F10509, fault_id=132332)]
        assert len(after(*records).faults) == 16
        assert after(*records).node == ("NotHandle", "Healthy")

    def test_d12_reset_is_separate(self) -> None:
        bench = after(B13, switches=replaced(ResetFaultCodes=["[0x00f103b6,155909,na,na]"]))
        assert bench.node == ("Separate", "UnHealthy")

    @pytest.mark.parametrize(
        "entry", ["0x00f103b6,155909,na,na", "[0x00f103b6,155909,na,na,na]", f"[0x00f103b6,{155909:032d},na,na]"]
    )
    def test_d13_entries_that_are_ignored(self, entry: str) -> None:
        table = replaced(SeparateFaultCodes=[entry])
        assert table.levels() == {}
        assert after(B13, switches=table).node == ("NotHandle", "Healthy")
        assert "155909" not in after(B13, switches=table).text


class TestPlane:
    """Section 6 rule 3 with 13.7."""

    def test_more_than_16_ports_are_down_too(self) -> None:
        assert after(*B8, replace(B8[0], port_id=31)).node == ("Separate", "UnHealthy")

    def test_whatever_the_code_registered_or_not(self) -> None:
        unregistered = [replace(r, alarm_id=0x00ABCDEF, fault_id=1) for r in B8[:8]]
        assert after(*B8[8:], *unregistered).node == ("Separate", "UnHealthy")

    def test_notices_and_whole_chips_are_no_ports(self) -> None:
        notice = replace(B8[15], assertion=2)
        assert after(*B8[:15], notice).node == ("NotHandle", "Healthy")
        whole = replace(B8[15], port_id=0xFFFF)
        assert after(*B8[:15], whole).node == ("NotHandle", "Healthy")

    def test_one_port_comes_back(self) -> None:
        assert after(*B8, recovery(B8[3])).node == ("NotHandle", "Healthy")


class TestProducts:
    """Decision 10 and device-info 2."""

    def test_a_950_always_has_the_zero_value(self) -> None:
        bench = SwitchBench(family=Family.A5)
        bench.events(1, B3)
        assert bench.text == golden("B2")

    @pytest.mark.parametrize("family", [Family.A2, Family.A910, Family.A310P, Family.A310])
    def test_others_have_no_key(self, family: Family) -> None:
        bench = SwitchBench(family=family)
        bench.events(1, B3)
        assert "SwitchInfoCfg" not in render_device_info(bench.view, 1)

    def test_an_a3_before_the_first_answer_knows_nothing(self) -> None:
        assert SwitchBench(listed=False).text == golden("B2")


def test_the_shipped_levels_are_those_of_the_sheet() -> None:
    lines = (FOLDER / "switch_fault_levels.tsv").read_text(encoding="utf-8").splitlines()[1:]
    expected = {code: SwitchLevel.parse(level) for code, level in (line.split("\t") for line in lines)}
    assert shipped_switches().levels() == expected
    assert len(expected) == 30


def test_every_shipped_code_has_names_in_both_languages() -> None:
    for record in shipped_switches().records.values():
        assert record.name_en
        assert record.name_zh
        assert bool(record.advice_en) is bool(record.advice_zh)
        assert record.advice_en or record.name_basis == "opaque"
