"""The worked examples of chip-faults 13 that need rules, by their number, as one engine step a row (decision 6)."""

import pytest
from kit.engine import Bench, at, listed, occur, once, recover, used
from kit.rules import DEFAULTS, LINK, duration, frequency, rules

from nodeagent.core.levels import Level, Severity
from nodeagent.core.model import Family, Reason, UpgradeType
from nodeagent.core.observation import CarriedOver, ManualField, PortsDown

PRE_LINK = ("81078603", "PreSeparateNPU", "FaultDuration")


def lift(bench: Bench, seconds: float, *named: int) -> None:
    """The operator's field, read after everything so far was acknowledged."""
    bench.ack(seconds)
    bench.step(seconds, ManualField(frozenset(named), bench.state.acknowledged, at(seconds)))


class TestLink:
    def test_w01_short_link_down(self) -> None:
        bench = Bench(rules=DEFAULTS)
        bench.step(10.5, occur(LINK, 10))
        bench.ack(10.6)
        assert bench.entry() == {"81078603": ("NotHandleFault", 10)}
        assert bench.chip().network_healthy
        bench.step(29)
        assert bench.entry() == {"81078603": ("NotHandleFault", 10)}
        bench.step(30.5, recover(LINK, 29))
        assert (bench.entry(), bench.reasons(), bench.chip().network_healthy) == ({}, set(), True)
        bench.step(60)
        assert bench.entry() == {}

    @pytest.mark.parametrize(("t", "level"), [(30.000, "NotHandleFault"), (30.001, "PreSeparateNPU")])
    def test_w01_boundary(self, t: float, level: str) -> None:
        bench = Bench(rules=DEFAULTS)
        bench.step(10.5, occur(LINK, 10))
        bench.step(t)
        assert bench.entry()["81078603"][0] == level

    def test_w02_long_link_down_and_hold(self) -> None:
        bench = Bench(rules=DEFAULTS)
        result = bench.step(10.5, occur(LINK, 10))
        assert result.wake_at_mono_ms == 30_001
        bench.ack(10.6)
        bench.step(30.001)
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 30)}
        assert (bench.chip().healthy, bench.chip().network_healthy) == (True, False)
        assert bench.reasons() == {(*PRE_LINK, 30)}
        result = bench.step(51, recover(LINK, 50))
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 30)}
        assert not bench.chip().network_healthy
        assert result.wake_at_mono_ms == 110_001
        bench.step(110)
        assert not bench.chip().network_healthy
        bench.step(110.001)
        assert (bench.entry(), bench.reasons(), bench.chip().network_healthy) == ({}, set(), True)

    def test_w03_flap_during_the_hold(self) -> None:
        bench = Bench(rules=DEFAULTS)
        bench.step(1, occur(LINK, 0))
        bench.ack(1.1)
        bench.step(21)
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 20)}
        bench.step(31.5, recover(LINK, 30))
        bench.step(61, occur(LINK, 60))
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 20)}
        bench.step(91.5, recover(LINK, 90))
        bench.step(150)
        assert not bench.chip().network_healthy
        bench.step(151)
        assert bench.chip().network_healthy
        assert [o.mono_ms for o in bench.state.chips[0].frequency[LINK].occurrences] == [20_000]

    def test_w04_down_again_after_a_full_recovery(self) -> None:
        bench = Bench(rules=DEFAULTS)
        bench.step(21, occur(LINK, 0))
        bench.ack(21.1)
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 20)}
        bench.step(31.2, recover(LINK, 30))
        bench.step(95.2, occur(LINK, 95))
        assert bench.entry() == {"81078603": ("NotHandleFault", 95)}
        assert (bench.reasons(), bench.chip().network_healthy) == (set(), True)
        bench.step(115.5)
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 115)}
        assert len(bench.state.chips[0].frequency[LINK].occurrences) == 2

    def test_w05_fifth_timeout(self) -> None:
        bench = Bench(rules=DEFAULTS)
        for number, start in enumerate((0, 200, 400, 600)):
            bench.step(start + 1, occur(LINK, start))
            bench.ack(start + 1.1)
            bench.step(start + 21)
            assert bench.chip().network_level is Level.PRE_SEPARATE
            assert len(bench.state.chips[0].frequency[LINK].occurrences) == number + 1
            bench.step(start + 31, recover(LINK, start + 30))
            bench.step(start + 91)
            assert bench.chip().network_healthy
        bench.step(801, occur(LINK, 800))
        bench.ack(801.1)
        bench.step(821)
        assert bench.chip().network_level is Level.MANUALLY_SEPARATE
        assert (bench.chip().healthy, bench.chip().network_healthy) == (True, False)
        assert bench.chip().manually_separated
        assert bench.reasons() == {(*PRE_LINK, 820), ("81078603", "ManuallySeparateNPU", "FaultFrequency", 820)}
        assert bench.entry() == {"81078603": ("ManuallySeparateNPU", 820)}
        bench.ack(821.1)
        bench.step(831, recover(LINK, 830))
        bench.step(891)
        assert bench.reasons() == {("81078603", "ManuallySeparateNPU", "FaultFrequency", 820)}
        assert bench.state.chips[0].frequency[LINK].occurrences == ()
        bench.step(173690.0)
        assert bench.chip().manually_separated
        bench.step(173690.5)
        assert (bench.entry(), bench.reasons(), bench.chip().manually_separated) == ({}, set(), False)
        assert bench.chip().network_healthy

    def test_w06_whole_history_in_one_step(self) -> None:
        bench = Bench(rules=DEFAULTS)
        history = (occur(LINK, 0), recover(LINK, 5), occur(LINK, 6), recover(LINK, 40))
        bench.step(41, *history)
        bench.ack(41.1)
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 26)}
        assert len(bench.state.chips[0].frequency[LINK].occurrences) == 1
        bench.step(99)
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 26)}
        bench.step(101)
        assert bench.entry() == {}

    def test_w34_gateway_transitions(self) -> None:
        """The samples 0, 2, 3, 2, 0, 0 become one occurrence at 5 and one recovery at 31 (sources.link_plan)."""
        bench = Bench(rules=DEFAULTS)
        bench.step(5, occur(LINK, 5, None))
        bench.ack(5.1)
        assert bench.entry() == {"81078603": ("NotHandleFault", 5)}
        bench.step(26)
        assert bench.entry() == {"81078603": ("PreSeparateNPU", 25)}
        bench.step(31, recover(LINK, 31))
        assert not bench.chip().network_healthy
        bench.step(92)
        assert (bench.entry(), bench.chip().network_healthy) == ({}, True)


class TestFrequency:
    CODE = 0x80C98008

    def isolated(self, second_s: float = 86410.9) -> Bench:
        bench = Bench(rules=DEFAULTS)
        bench.step(10, occur(self.CODE, 10))
        bench.ack(10.1)
        bench.step(20, recover(self.CODE, 20))
        bench.step(second_s, occur(self.CODE, second_s))
        bench.ack(second_s)
        return bench

    def test_w08_a_same_step_recovery_is_remembered_for_the_release(self) -> None:  # R13
        bench = Bench(rules=DEFAULTS)
        bench.step(2, occur(self.CODE, 1), recover(self.CODE, 1.5))
        assert bench.entry() == {"80C98008": ("RestartRequest", 1)}
        assert bench.state.chips[0].frequency[self.CODE].last_recover == at(1.5)

    def test_w09_modules_of_one_code_count_once(self) -> None:  # R21
        bench = Bench(rules=DEFAULTS)
        bench.step(1, occur(self.CODE, 0.5), occur(self.CODE, 0.7))
        assert len(bench.state.chips[0].frequency[self.CODE].occurrences) == 1
        assert bench.chip().chip_level is Level.RESTART_REQUEST

    def test_w10_second_within_the_window(self) -> None:
        bench = self.isolated()
        assert bench.chip().chip_level is Level.MANUALLY_SEPARATE
        assert bench.entry() == {"80C98008": ("ManuallySeparateNPU", 86410.9)}
        assert (bench.chip().manually_separated, bench.chip().healthy) == (True, False)

    def test_w10_second_outside_the_window(self) -> None:
        bench = self.isolated(86411.0)
        assert bench.chip().chip_level is Level.RESTART_REQUEST
        assert (bench.reasons(), bench.chip().healthy) == (set(), False)

    def test_w11_operator_lifts_after_the_recovery(self) -> None:
        bench = self.isolated()
        bench.step(86420, recover(self.CODE, 86420))
        bench.step(200000)
        assert bench.entry() == {"80C98008": ("ManuallySeparateNPU", 86410.9)}
        assert (bench.shown(), bench.chip().healthy) == ({}, False)
        lift(bench, 200005)
        assert (bench.entry(), bench.reasons(), bench.chip().healthy) == ({}, set(), True)
        assert not bench.chip().manually_separated

    def test_w12_operator_lifts_while_the_fault_is_there(self) -> None:
        bench = Bench(rules=DEFAULTS)
        bench.step(1.2, occur(self.CODE, 1))
        bench.ack(1.3)
        bench.step(2.2, recover(self.CODE, 2))
        bench.step(4.2, occur(self.CODE, 4))
        assert bench.chip().manually_separated
        lift(bench, 9)
        assert bench.entry() == {"80C98008": ("RestartRequest", 4)}
        assert not bench.chip().healthy
        bench.step(20, recover(self.CODE, 20))
        assert bench.chip().healthy
        bench.step(30, occur(self.CODE, 30))
        assert bench.chip().chip_level is Level.RESTART_REQUEST
        assert len(bench.state.chips[0].frequency[self.CODE].occurrences) == 1

    def test_w13_handling_with_a_release_window(self) -> None:
        code = 0x80CB8002
        bench = Bench(rules=rules(frequency(code, 600, 2, Level.PRE_SEPARATE, 60)))
        bench.step(1.1, occur(code, 1))
        bench.ack(1.2)
        assert bench.chip().chip_level is Level.RESTART_REQUEST
        bench.step(3.1, recover(code, 2))
        assert bench.chip().healthy
        bench.step(4.2, occur(code, 4))
        bench.ack(4.3)
        assert bench.entry() == {"80CB8002": ("PreSeparateNPU", 4)}
        assert not bench.chip().healthy
        bench.step(11.2, recover(code, 10))
        assert bench.entry() == {"80CB8002": ("PreSeparateNPU", 4)}
        bench.step(40.2, occur(code, 40))
        bench.ack(40.3)
        assert bench.reasons() == {("80cb8002", "PreSeparateNPU", "FaultFrequency", 40)}
        assert bench.state.chips[0].frequency[code].occurrences == ()
        bench.step(51.2, recover(code, 50))
        bench.step(110.0)
        assert not bench.chip().healthy
        bench.step(110.1)
        assert (bench.entry(), bench.chip().healthy) == ({}, True)

    def test_w16_a_recovery_found_by_a_query_counts_as_a_recovery(self) -> None:
        bench = Bench(rules=DEFAULTS)
        bench.step(10.2, occur(self.CODE, 10))
        bench.ack(10.3)
        bench.step(310.3, listed([], 310.3))
        assert bench.state.chips[0].frequency[self.CODE].last_recover == at(310.3)

    def test_w17_poll_mode(self) -> None:
        code = 0x80CB8008
        bench = Bench(rules=DEFAULTS)
        for seconds, codes in ((5, [code]), (10, [code]), (15, [])):
            bench.step(seconds, listed(codes, seconds))
            bench.ack(seconds)
        assert bench.chip().healthy
        bench.step(20, listed([code], 20))
        assert bench.entry() == {"80CB8008": ("ManuallySeparateNPU", 20)}

    def test_w26_reason_without_a_current_code_on_a_used_chip(self) -> None:
        code = 0x80CB8002
        bench = Bench(rules=rules(frequency(code, 600, 1, Level.PRE_SEPARATE, 60)))
        bench.step(1, occur(code, 1), used({0}, 0))
        bench.ack(1.1)
        assert bench.chip().healthy
        bench.step(2, recover(code, 2))
        assert (bench.entry(), bench.chip().healthy) == ({"80CB8002": ("PreSeparateNPU", 1)}, True)
        bench.step(3, used(set(), 3))
        assert (bench.entry(), bench.chip().healthy) == ({"80CB8002": ("PreSeparateNPU", 1)}, False)
        bench.step(63.2)
        assert (bench.entry(), bench.chip().healthy) == ({}, True)

    def test_once_only_codes_count_and_are_released(self) -> None:  # R13, R19
        code = 0x80CB8002
        bench = Bench(rules=rules(frequency(code, 600, 2, Level.SEPARATE, 60)))
        for seconds in (1, 5):
            bench.step(seconds, once(code, seconds))
            bench.ack(seconds + 1)
        assert bench.chip().chip_level is Level.SEPARATE
        bench.step(66)
        assert bench.chip().chip_level is Level.SEPARATE
        bench.step(66.001)
        assert bench.chip().chip_level is Level.NORMAL

    def test_two_rules_that_trip_together_are_both_used_up(self) -> None:  # R20
        bench = Bench(rules=DEFAULTS)
        pair = (0x80C98008, 0x80CB8008)
        for seconds in (1, 3):
            bench.step(seconds, *(occur(c, seconds) for c in pair))
            bench.ack(seconds)
            bench.step(seconds + 1, *(recover(c, seconds + 1) for c in pair))
        assert [bench.state.chips[0].frequency[c].occurrences for c in pair] == [(), ()]

    def test_a_chip_above_15_can_be_separated_too(self) -> None:  # R24
        bench = Bench(chips=20, rules=DEFAULTS)
        for seconds in (1, 3):
            bench.step(seconds, occur(self.CODE, seconds, chip=17))
            bench.ack(seconds)
            bench.step(seconds + 1, recover(self.CODE, seconds + 1, chip=17))
        assert bench.chip(17).manually_separated


class TestManualField:
    def separated(self) -> Bench:
        return TestFrequency().isolated()

    def test_a_read_older_than_our_write_lifts_nothing(self) -> None:  # R8
        bench = Bench(rules=DEFAULTS)
        for seconds in (1, 3):
            bench.step(seconds, occur(0x80C98008, seconds), recover(0x80C98008, seconds + 0.5))
        before = bench.state.generation - 1
        bench.step(5, ManualField(frozenset(), before, at(5)))
        assert bench.chip().manually_separated

    def test_a_write_that_failed_lifts_nothing(self) -> None:  # R8
        bench = Bench(rules=DEFAULTS)
        bench.ack(0)
        written = bench.state.generation
        for seconds in (1, 3):
            bench.step(seconds, occur(0x80C98008, seconds))
            bench.step(seconds + 1, recover(0x80C98008, seconds + 1))
        bench.step(6, ManualField(frozenset(), written, at(6)))
        assert bench.chip().manually_separated

    def test_a_name_that_somebody_added_separates_nobody(self) -> None:  # device-info C9
        bench = Bench(chips=2, rules=DEFAULTS)
        lift(bench, 1, 0, 1)
        assert not bench.chip(0).manually_separated
        assert bench.chip(1).healthy

    def test_w22_a_removed_rule_does_not_lift(self) -> None:  # R9
        bench = self.separated()
        bench.step(86420, recover(0x80C98008, 86420))
        bench.reconfigure(86430, rules())
        assert bench.chip().manually_separated
        assert bench.entry() == {"80C98008": ("ManuallySeparateNPU", 86410.9)}
        lift(bench, 86440)
        assert bench.chip().healthy


class TestReload:
    def timed_out(self) -> Bench:
        bench = Bench(rules=DEFAULTS)
        bench.step(1, occur(LINK, 0))
        bench.ack(1)
        bench.step(21)
        return bench

    def test_w21_other_handling(self) -> None:
        bench = self.timed_out()
        bench.reconfigure(22, rules(duration(LINK, 20, 60, Level.SEPARATE)))
        assert bench.entry() == {"81078603": ("SeparateNPU", 20)}

    def test_w21_rules_emptied(self) -> None:
        bench = self.timed_out()
        bench.reconfigure(22, rules())
        assert bench.entry() == {"81078603": ("NotHandleFault", 0)}
        assert bench.chip().network_healthy

    def test_counters_survive_changed_parameters(self) -> None:
        bench = Bench(rules=DEFAULTS)
        bench.step(1, occur(0x80C98008, 1))
        bench.ack(1)
        bench.step(2, recover(0x80C98008, 2))
        bench.reconfigure(3, rules(frequency(0x80C98008, 600, 2, Level.SEPARATE, 60)))
        bench.step(4, occur(0x80C98008, 4))
        assert bench.chip().chip_level is Level.SEPARATE


class TestOtherExamples:
    def test_w24_association(self) -> None:
        bench = Bench(rules=rules(duration(0x80E01801, 30, 0, Level.RESTART_BUSINESS)))
        result = bench.step(10.2, occur(0x80C98009, 10))
        assert (bench.entry(), result.wake_at_mono_ms) == ({}, 15_001)
        bench.step(12.2, occur(0x80E01801, 12))
        assert bench.entry() == {"80E01801": ("RestartBusiness", 12)}
        bench.step(20)
        assert set(bench.entry()) == {"80E01801"}
        bench.step(43)
        assert bench.reasons() == {("80e01801", "RestartBusiness", "FaultDuration", 42)}
        bench.step(60.2, occur(0x80C98009, 60))
        assert set(bench.entry()) == {"80E01801"}
        bench.step(64.9)
        assert set(bench.entry()) == {"80E01801"}
        bench.step(65.1)
        assert bench.entry()["80C98009"] == ("RestartRequest", 60)

    def test_w24_a_query_does_not_bring_an_explained_code_back(self) -> None:
        bench = Bench(rules=rules(duration(0x80E01801, 30, 0, Level.RESTART_BUSINESS)))
        bench.step(12.2, occur(0x80C98009, 10), occur(0x80E01801, 12))
        bench.step(300, listed([0x80C98009, 0x80E01801], 300))
        bench.step(310)
        assert set(bench.entry()) == {"80E01801"}

    def test_a_recovery_is_not_explained_away_when_its_occurrence_was_not(self) -> None:
        bench = Bench(rules=rules(duration(0x80E01801, 30, 0, Level.RESTART_BUSINESS)))
        bench.step(1, occur(0x80C98009, 1))
        bench.step(5, recover(0x80C98009, 5))
        bench.step(6, occur(0x80E01801, 6))
        bench.step(6.001)
        assert set(bench.entry()) == {"80C98009", "80E01801"}
        bench.ack(7)
        bench.step(10.001)
        assert set(bench.entry()) == {"80E01801"}

    def test_w24_without_a_duration_rule_nothing_is_held_back(self) -> None:
        bench = Bench(rules=DEFAULTS)
        bench.step(10.2, occur(0x80C98009, 10))
        assert bench.entry() == {"80C98009": ("RestartRequest", 10)}

    def test_w25_zero_timeouts(self) -> None:
        code = 0x80CB8002
        bench = Bench(rules=rules(duration(code, 0, 0, Level.SEPARATE)))
        bench.step(1.0, occur(code, 1))
        bench.ack(1.0)
        assert bench.chip().chip_level is Level.RESTART_REQUEST
        bench.step(1.5)
        assert bench.entry() == {"80CB8002": ("SeparateNPU", 1)}
        bench.step(11, recover(code, 10))
        assert (bench.entry(), bench.chip().healthy) == ({}, True)

    def test_w27_handling_below_the_own_level(self) -> None:
        code = 0x80CB8008
        bench = Bench(rules=rules(duration(code, 10, 5, Level.NOT_HANDLE)))
        bench.step(1, occur(code, 1))
        bench.step(12)
        assert bench.chip().chip_level is Level.RESTART_REQUEST
        assert bench.entry() == {"80CB8008": ("RestartRequest", 1)}

    def test_w28_uboe_ports(self) -> None:
        bench = Bench(family=Family.A5, rules=DEFAULTS)
        bench.step(1, PortsDown(0, 2, None, at(1)), occur(0x81078607, 1))
        bench.ack(1)
        assert [f.text for f in bench.chip().faults] == ["110001024", "81078607"]
        assert {c: level for c, (level, _) in bench.entry().items()} == {
            "110001024": "PreSeparateNPU",
            "81078607": "NotHandleFault",
        }
        assert not bench.chip().network_healthy
        bench.step(5, PortsDown(0, 1, None, at(5)), recover(0x81078607, 5))
        bench.ack(5)
        assert [f.text for f in bench.chip().faults] == ["110000002", "81078607"]
        assert bench.chip().network_level is Level.SUB_HEALTH
        assert not bench.chip().network_healthy
        bench.step(9, PortsDown(0, 0, None, at(9)), recover(0x81078607, 9))
        assert (bench.shown(), bench.chip().network_healthy) == ({}, True)

    def test_w28_ub_port_of_the_only_chip(self) -> None:
        bench = Bench(family=Family.A5, rules=DEFAULTS)
        bench.step(1, occur(0x81B18603, 1))
        assert [f.text for f in bench.chip().faults] == ["81B18603", "020000002"]
        assert bench.chip().chip_level is Level.SUB_HEALTH

    def test_w28_ub_port_of_one_of_two_chips(self) -> None:
        bench = Bench(chips=2, family=Family.A5, rules=DEFAULTS)
        bench.step(1, occur(0x81B18603, 1))
        bench.ack(1)
        assert [f.text for f in bench.chip().faults] == ["020001002", "81B18603"]
        assert bench.chip().chip_level is Level.SEPARATE
        bench.step(2, recover(0x81B18603, 2))
        assert bench.shown() == {}

    def test_a_query_does_not_clear_what_the_driver_cannot_know(self) -> None:  # R12
        bench = Bench(chips=2, family=Family.A5, rules=DEFAULTS)
        bench.step(1, occur(0x81B18603, 1))
        bench.ack(1)
        bench.step(300, listed([0x81B18603], 300))
        assert [f.text for f in bench.chip().faults] == ["020001002", "81B18603"]


class TestRestart:
    def start(self, restored: CarriedOver, **kinds: object) -> Bench:
        return Bench(rules=kinds.get("rules", DEFAULTS), restored=restored, begin_s=0)  # type: ignore[arg-type]

    def reason(self, code: str, level: Level, kind: UpgradeType, seconds: float = -1000) -> tuple[int, Reason]:
        return 0, Reason(at(seconds).wall_ms, code, level, kind)

    def test_w18_manual_separation_whose_fault_is_gone(self) -> None:
        mine = self.reason("80c98008", Level.MANUALLY_SEPARATE, UpgradeType.FREQUENCY)
        bench = self.start(CarriedOver((), at(0), frozenset({0}), (mine,)))
        bench.step(1, listed([], 1))
        assert bench.entry() == {"80C98008": ("ManuallySeparateNPU", -1000)}
        assert (bench.chip().manually_separated, bench.chip().healthy) == (True, False)
        bench.step(500_000)
        assert bench.chip().manually_separated

    def test_w18_release_window_restarts_at_the_sweep(self) -> None:
        mine = self.reason("80cb8002", Level.MANUALLY_SEPARATE, UpgradeType.FREQUENCY)
        rule = rules(frequency(0x80CB8002, 600, 2, Level.MANUALLY_SEPARATE, 60))
        bench = self.start(CarriedOver((), at(0), frozenset({0}), (mine,)), rules=rule)
        bench.step(1, listed([], 1))
        bench.step(61.0)
        assert bench.chip().manually_separated
        bench.step(61.5)
        assert (bench.chip().manually_separated, bench.chip().healthy, bench.entry()) == (False, True, {})

    def test_w19_escalated_link_that_is_up(self) -> None:
        mine = self.reason("81078603", Level.PRE_SEPARATE, UpgradeType.DURATION)
        bench = self.start(CarriedOver((), at(0), frozenset(), (mine,)))
        bench.step(1, listed([], 1))
        assert bench.entry() == {"81078603": ("PreSeparateNPU", -1000)}
        assert (bench.chip().healthy, bench.chip().network_healthy) == (True, False)
        assert LINK not in bench.state.chips[0].frequency
        bench.step(60)
        assert not bench.chip().network_healthy
        bench.step(61.5)
        assert (bench.entry(), bench.chip().network_healthy) == ({}, True)

    def test_w20_autofill(self) -> None:
        bench = self.start(CarriedOver((), at(0), frozenset({0})))
        bench.step(1, listed([], 1))
        assert bench.reasons() == {("AutofillFaultCode", "ManuallySeparateNPU", "FaultAutofill", 0)}
        assert (bench.chip().chip_level, bench.chip().healthy) == (Level.MANUALLY_SEPARATE, False)
        bench.step(172800)
        assert bench.chip().manually_separated
        bench.step(172800.001)
        assert (bench.chip().manually_separated, bench.chip().healthy) == (False, True)

    def test_w20_autofill_is_lifted_by_an_operator(self) -> None:
        bench = self.start(CarriedOver((), at(0), frozenset({0})))
        bench.step(1, listed([], 1))
        lift(bench, 5)
        assert bench.chip().healthy

    def test_a_name_deleted_while_we_were_down_lifts(self) -> None:  # 7.4
        mine = self.reason("80c98008", Level.MANUALLY_SEPARATE, UpgradeType.FREQUENCY)
        bench = self.start(CarriedOver((), at(0), frozenset(), (mine,)))
        bench.step(1, listed([], 1))
        assert (bench.chip().manually_separated, bench.entry()) == (False, {})

    def test_a_missing_object_lifts_nothing_that_the_state_file_knows(self) -> None:
        from nodeagent.policy.memory import remember

        before = TestFrequency().isolated()
        memory = {int(p): m for p, m in remember(before.state).items()}
        after = self.start(CarriedOver((), at(0), None, (), memory, same_boot=True))
        after.step(86500, listed([], 86500))
        assert after.chip().manually_separated

    def test_a_separation_that_no_write_made_known_survives_its_absence_from_the_object(self) -> None:
        from nodeagent.policy.memory import remember

        before = Bench(rules=DEFAULTS)
        for seconds in (1, 3):
            before.step(seconds, occur(0x80C98008, seconds))
            before.step(seconds + 1, recover(0x80C98008, seconds + 1))
        memory = {int(p): m for p, m in remember(before.state).items()}
        after = Bench(rules=DEFAULTS, restored=CarriedOver((), at(5), frozenset(), (), memory, True), begin_s=5)
        after.step(6, listed([], 6))
        assert after.chip().manually_separated


def test_severity_of_an_unknown_code_survives_a_restart() -> None:
    from nodeagent.policy.memory import remember

    before = Bench(rules=DEFAULTS)
    before.step(1, occur(0x8ABCDE02, 1, Severity.MAJOR))
    memory = {int(p): m for p, m in remember(before.state).items()}
    after = Bench(rules=DEFAULTS, restored=CarriedOver((), at(5), frozenset(), (), memory, True), begin_s=5)
    after.step(6, listed([0x8ABCDE02], 6))
    assert after.entry() == {"8ABCDE02": ("SeparateNPU", 1)}
