"""What comes back after a restart when it is late, odd, missing or has changed meanwhile (chip-faults 7.4, 7.5)."""

import dataclasses

import pytest
from kit.engine import EPOCH_MS, Bench, at, listed, occur, recover
from kit.rules import DEFAULTS, LINK, duration, frequency, rules

from nodeagent.core.codes import HANG
from nodeagent.core.levels import Level
from nodeagent.core.model import ChipId, Family, Inventory, Product, Reason, UpgradeType
from nodeagent.core.observation import (
    CarriedFault,
    CarriedOver,
    ChipSilent,
    InventorySeen,
    ManualField,
)
from nodeagent.policy.memory import remember
from nodeagent.policy.restore import absent_memory

ECC = 0x80C98008


def reason(
    code: str, level: Level, kind: UpgradeType, seconds: float = -1000, physical_id: int = 0
) -> tuple[int, Reason]:
    return physical_id, Reason(at(seconds).wall_ms, code, level, kind)


MANUAL_ECC = reason("80c98008", Level.MANUALLY_SEPARATE, UpgradeType.FREQUENCY)


def isolated() -> Bench:
    """Two occurrences of an ECC code, the second still there; acknowledged."""
    bench = Bench(rules=DEFAULTS)
    bench.step(1, occur(ECC, 1))
    bench.ack(1)
    bench.step(2, recover(ECC, 2))
    bench.step(3, occur(ECC, 3))
    bench.ack(3)
    return bench


def memory_of(bench: Bench) -> dict[int, dict[str, object]]:
    return {int(p): m for p, m in {**absent_memory(bench.state), **remember(bench.state)}.items()}


def lift(bench: Bench, seconds: float) -> None:
    """An operator empties the field, read after everything so far was acknowledged."""
    bench.ack(seconds)
    bench.step(seconds, ManualField(frozenset(), bench.state.acknowledged, at(seconds)))


class TestLiftWhileAway:
    """The field was emptied while no daemon ran; the state file does not know that its write had arrived."""

    def separated_without_acknowledgement(self) -> Bench:
        bench = Bench(rules=DEFAULTS)
        bench.step(1, occur(ECC, 1))
        bench.ack(1)
        bench.step(2, recover(ECC, 2))
        bench.step(3, occur(ECC, 3))
        assert bench.chip().manually_separated
        return bench

    def restarted(self, before: Bench, told: tuple[tuple[int, Reason], ...]) -> Bench:
        bench = Bench(rules=DEFAULTS, begin_s=5)
        bench.step(6, CarriedOver((), at(6), frozenset(), told, memory_of(before), same_boot=True))
        bench.step(7, listed([], 7))
        return bench

    def test_a_separation_that_the_object_tells_of_is_lifted(self) -> None:
        before = self.separated_without_acknowledgement()
        told = tuple((0, each) for each in before.chip().reasons)
        assert told
        assert not self.restarted(before, told).chip().manually_separated

    @pytest.mark.parametrize("told", [(), (MANUAL_ECC,)], ids=["no reason", "an older separation"])
    def test_one_that_it_does_not_tell_of_stays(self, told: tuple[tuple[int, Reason], ...]) -> None:
        before = self.separated_without_acknowledgement()
        assert self.restarted(before, told).chip().manually_separated


class TestLate:
    """Detection does not wait for the read of the last object, so chips may have answered before it."""

    def test_a_manual_separation_comes_back_to_a_chip_that_has_answered(self) -> None:
        bench = Bench(rules=DEFAULTS, begin_s=0)
        bench.step(1, listed([], 1))
        bench.step(20, CarriedOver((), at(20), frozenset({0}), (MANUAL_ECC,)))
        assert (bench.chip().manually_separated, bench.chip().healthy) == (True, False)

    def test_counters_come_back_to_a_chip_that_has_answered(self) -> None:
        before = Bench(rules=DEFAULTS)
        before.step(1, occur(ECC, 1))
        before.ack(1)
        before.step(2, recover(ECC, 2))
        bench = Bench(rules=DEFAULTS, begin_s=5)
        bench.step(6, listed([], 6))
        bench.step(20, CarriedOver((), at(20), frozenset(), (), memory_of(before), same_boot=True))
        bench.step(30, occur(ECC, 30))
        assert bench.chip().manually_separated

    def test_a_fault_that_was_there_all_the_time_does_not_count_again(self) -> None:
        before = Bench(rules=DEFAULTS)
        before.step(1, occur(ECC, 1))
        bench = Bench(rules=DEFAULTS, begin_s=5)
        bench.step(6, listed([ECC], 6))
        bench.step(20, CarriedOver((), at(20), frozenset(), (), memory_of(before), same_boot=True))
        assert bench.entry() == {"80C98008": ("RestartRequest", 1)}

    def test_a_fault_that_vanished_before_the_read_is_gone(self) -> None:
        carried = CarriedFault(0, ECC, Level.RESTART_REQUEST, at(-9).wall_ms)
        bench = Bench(rules=DEFAULTS, begin_s=0)
        bench.step(1, listed([], 1))
        bench.step(20, CarriedOver((carried,), at(20), frozenset()))
        assert bench.entry() == {}

    def test_a_link_that_came_up_meanwhile_is_held_and_cleared(self) -> None:  # W19, late
        mine = reason("81078603", Level.PRE_SEPARATE, UpgradeType.DURATION)
        bench = Bench(rules=DEFAULTS, begin_s=0)
        bench.step(1, listed([], 1))
        bench.step(20, CarriedOver((), at(20), frozenset(), (mine,)))
        assert not bench.chip().network_healthy
        bench.step(61)
        assert not bench.chip().network_healthy
        bench.step(61.001)
        assert bench.chip().network_healthy

    def test_a_chip_with_an_event_but_without_an_answer_gets_its_past_too(self) -> None:
        bench = Bench(rules=DEFAULTS, begin_s=0)
        bench.step(1, occur(0x80E18005, 1))
        bench.step(20, CarriedOver((), at(20), frozenset({0}), (MANUAL_ECC,)))
        assert bench.entry() == {"80C98008": ("ManuallySeparateNPU", -1000), "80E18005": ("RestartNPU", 1)}


class TestChangedRules:
    def test_a_reason_whose_rule_went_while_we_were_down_goes_too(self) -> None:
        mine = reason("80e18402", Level.PRE_SEPARATE, UpgradeType.DURATION)
        bench = Bench(rules=DEFAULTS, restored=CarriedOver((), at(0), frozenset(), (mine,)), begin_s=0)
        bench.step(1, listed([], 1))
        assert (bench.reasons(), bench.chip().healthy) == (set(), True)

    def test_a_separation_whose_rule_got_another_handling_ends_by_its_window_only(self) -> None:
        bench = isolated()
        bench.step(10, recover(ECC, 10))
        bench.reconfigure(11, rules(frequency(ECC, 86400, 2, Level.PRE_SEPARATE, 60)))
        assert bench.chip().manually_separated
        assert bench.last is not None
        assert bench.last.wake_at_mono_ms == 70_001
        bench.step(70)
        assert bench.chip().manually_separated
        result = bench.step(70.001)
        assert (bench.chip().manually_separated, bench.reasons()) == (False, set())
        assert result.wake_at_mono_ms is None

    def test_a_duration_rule_that_comes_while_its_code_is_there_counts_from_the_occurrence(self) -> None:
        bench = Bench(rules=DEFAULTS)
        bench.step(1, occur(LINK, 0))
        bench.ack(1)
        bench.step(21)
        bench.reconfigure(30, rules())
        assert bench.chip().network_healthy
        bench.reconfigure(40, DEFAULTS)
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 20)}


class TestWithoutStateFile:
    def test_a_code_that_is_still_there_times_out_from_the_first_answer_on(self) -> None:
        slow = rules(duration(0x80E18402, 20, 60, Level.PRE_SEPARATE))
        carried = CarriedFault(0, 0x80E18402, Level.NOT_HANDLE, at(-5).wall_ms)
        bench = Bench(rules=slow, restored=CarriedOver((carried,), at(0), frozenset()), begin_s=0)
        bench.step(1, listed([0x80E18402], 1))
        bench.step(21)
        assert bench.reasons() == set()
        bench.step(21.001)
        assert {r[:3] for r in bench.reasons()} == {("80e18402", "PreSeparateNPU", "FaultDuration")}

    def test_a_separation_by_outages_is_released_when_its_link_was_up_long_enough(self) -> None:
        mine = reason("81078603", Level.MANUALLY_SEPARATE, UpgradeType.FREQUENCY)
        bench = Bench(rules=DEFAULTS, restored=CarriedOver((), at(0), frozenset({0}), (mine,)), begin_s=0)
        bench.step(1, listed([], 1))
        bench.step(172801)
        assert bench.chip().manually_separated
        bench.step(172801.001)
        assert not bench.chip().manually_separated

    def test_a_hang_that_another_writer_published_does_not_stay_for_ever(self) -> None:  # R12
        carried = CarriedFault(0, HANG, Level.SEPARATE, at(-5).wall_ms)
        bench = Bench(rules=DEFAULTS, restored=CarriedOver((carried,), at(0), frozenset()), begin_s=0)
        bench.step(1, listed([], 1))
        assert bench.entry() == {}


class TestLift:
    def test_a_lifted_chip_that_stays_silent_is_separated_no_longer(self) -> None:
        carried = CarriedFault(0, ECC, Level.MANUALLY_SEPARATE, at(-5).wall_ms)
        restored = CarriedOver((carried,), at(0), frozenset({0}), (MANUAL_ECC,))
        bench = Bench(rules=DEFAULTS, restored=restored, begin_s=0)
        bench.step(1, ChipSilent(0, "no answer", at(1)))
        assert bench.chip().chip_level is Level.MANUALLY_SEPARATE
        lift(bench, 3)
        assert (bench.chip().manually_separated, bench.chip().chip_level) == (False, Level.RESTART_REQUEST)

    def test_a_suppressed_separation_is_not_lifted_by_its_absence_from_the_field(self) -> None:
        bench = isolated()
        until_s = (1_801_440_000_000 - EPOCH_MS) / 1000  # 2027-02-01T00:00:00Z
        site = 'suppress:\n  - {code: "80C98008", chips: all, reason: known, until: 2027-01-31}\n'
        bench.config = dataclasses.replace(bench.config, table=bench.table.overlaid([("site", site)])[0])
        for t in (10, 11):
            bench.step(t, occur(0x80E18005, t))
            bench.ack(t)
        assert not bench.chip().manually_separated
        bench.step(12, ManualField(frozenset(), bench.state.acknowledged, at(12)))
        restored = CarriedOver((), at(13), frozenset(), (), memory_of(bench), same_boot=True)
        after = Bench(rules=DEFAULTS, restored=restored, begin_s=13)
        assert after.state.chips[0].manual is not None
        bench.step(until_s)
        assert bench.chip().manually_separated
        bench.step(until_s + 1, ManualField(frozenset(), bench.state.acknowledged, at(until_s + 1)))
        assert bench.chip().manually_separated
        lift(bench, until_s + 2)
        assert not bench.chip().manually_separated


class TestAbsentChip:
    """A chip that the driver does not list at this start is not forgotten by the time of the next one."""

    CHIPS = (ChipId(0, 0, 0, 0), ChipId(1, 1, 1, 0))

    @pytest.mark.parametrize("with_file", [True, False])
    def test_its_separation_outlives_a_run_without_it(self, with_file: bool) -> None:
        mine = reason("80c98008", Level.MANUALLY_SEPARATE, UpgradeType.FREQUENCY, physical_id=1)
        memory: dict[int, dict[str, object]] = {1: {"manual": "known", "reasons": []}} if with_file else {}
        first = Bench(rules=DEFAULTS, restored=CarriedOver((), at(0), frozenset({1}), (mine,), memory), begin_s=0)
        first.step(1, listed([], 1))
        second = Bench(
            2,
            rules=DEFAULTS,
            restored=CarriedOver((), at(9), frozenset(), (), memory_of(first), same_boot=True),
            begin_s=9,
        )
        second.step(10, listed([], 10), listed([], 10, chip=1))
        assert second.chip(1).manually_separated

    def test_once_it_is_back_its_present_counts(self) -> None:
        first = Bench(rules=DEFAULTS, restored=CarriedOver((), at(0), frozenset({1})), begin_s=0)
        first.step(1, listed([], 1))
        first.step(2, InventorySeen(Inventory(Product(Family.A2, "chip"), self.CHIPS), at(2)))
        first.step(3, listed([], 3, chip=1))
        lift(first, 5)
        assert memory_of(first) == {}
