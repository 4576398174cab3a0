"""From driver events through the shipped rules to the exact texts of device-info 14: nothing in between is made up."""

from functools import cache

import pytest
from contract.data.device_info.cases import golden

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Severity
from nodeagent.core.model import ChipId, Family, Inventory, Product, SuperPod
from nodeagent.core.observation import (
    Acknowledged,
    ChipsInUse,
    FaultOccurred,
    FaultRecovered,
    InventorySeen,
    Observation,
    SourceComplete,
)
from nodeagent.policy.engine import step
from nodeagent.policy.rules import Configuration
from nodeagent.policy.state import NodeState
from nodeagent.render.device_info import render_device_info
from nodeagent.sources.config_documents import shipped

FIRST_MS = 1759999990123
WRITE_S = 1760000000


@cache
def shipped_configuration() -> Configuration:
    return shipped()


def at(wall_ms: int) -> Instant:
    return Instant(wall_ms - 1759999000000, wall_ms)


def occur(chip: int, code: int, wall_ms: int = FIRST_MS) -> FaultOccurred:
    return FaultOccurred(chip, code, Severity.MAJOR, at(wall_ms))


def publish(
    *facts: Observation, family: Family = Family.A2, chips: int = 8, pod: SuperPod | None = None, write_s: int = WRITE_S
) -> dict[str, str]:
    """What is published at `write_s` after these facts, each in a step of its own, every view acknowledged."""
    config = shipped_configuration()
    begin = at(FIRST_MS - 200_000_000)
    product = Product(family, "chip", super_pod=pod or SuperPod())
    inventory = Inventory(product, tuple(ChipId(i, i, i, 0) for i in range(chips)))
    state = step(NodeState(), [InventorySeen(inventory, begin), SourceComplete(begin)], begin, config).state
    for fact in [*facts, None]:
        now = at(write_s * 1000) if fact is None else fact.at
        state = step(state, [] if fact is None else [fact], now, config).state
        state = step(state, [Acknowledged(state.generation, now)], now, config).state
    assert state.view is not None
    data = render_device_info(state.view, write_s)
    del data["Description"]
    return data


def test_a1_healthy() -> None:
    assert publish() == golden("A1")


def test_a2_chip_fault() -> None:
    assert publish(occur(3, 0x80E18005)) == golden("A2")


def test_a3_below_the_limit_with_chips_in_use() -> None:
    used = ChipsInUse(frozenset({0, 1}), at(FIRST_MS - 1000))
    assert publish(used, occur(5, 0x80F78006)) == golden("A3")


def test_a4_network_and_chip_faults() -> None:
    facts = (occur(2, 0x81078603), occur(2, 0x80C98008, FIRST_MS + 1000), occur(2, 0x8C204E00, FIRST_MS + 2000))
    assert publish(*facts) == golden("A4")


def test_a5_link_down_longer_than_the_limit() -> None:
    assert publish(occur(2, 0x81078603), write_s=1760000025) == golden("A5")


def second_within_a_day() -> list[Observation]:
    """80E01801 on chip 1 for the second time within 24 h at FIRST_MS; it has recovered."""
    code = 0x80E01801
    return [
        occur(1, code, FIRST_MS - 50_000_000),
        FaultRecovered(1, code, at(FIRST_MS - 49_000_000)),
        occur(1, code),
        FaultRecovered(1, code, at(FIRST_MS + 1000)),
    ]


def test_a6_manually_separated_and_the_fault_gone() -> None:
    assert publish(*second_within_a_day()) == golden("A6")


def test_a13_live_fault_on_a_separated_chip() -> None:
    assert publish(*second_within_a_day(), occur(1, 0x8C204E00, FIRST_MS + 3000)) == golden("A13")


def test_a8_a3_without_a_switch_library() -> None:
    assert publish(family=Family.A3, chips=16, pod=SuperPod(3, 7)) == golden("A8") | {
        "DeviceInfoCfg": golden("A7")["DeviceInfoCfg"]
    }


@pytest.mark.parametrize(("case", "family"), [("A9", Family.A310P), ("A10", Family.A310)])
def test_a9_a10_inference_cards(case: str, family: Family) -> None:
    facts = [occur(2, 0x80E18402)] if case == "A9" else []
    assert publish(*facts, family=family, chips=4) == golden(case)


def test_a11_ub_port_down_in_a_pod() -> None:
    pod = SuperPod(12, 2, 5, 1)
    assert publish(occur(4, 0x81B18603), family=Family.A5, pod=pod) == golden("A11")


def test_a14_pre_separate_on_a_used_chip() -> None:
    used = ChipsInUse(frozenset({4}), at(FIRST_MS - 1000))
    assert publish(used, occur(4, 0x8F180220)) == golden("A14")


def test_a15_dropped_card() -> None:
    assert publish(occur(6, 0x40F84E00), pod=SuperPod(-1, 4)) == golden("A15")
