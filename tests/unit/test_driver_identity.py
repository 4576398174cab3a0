"""Product family (native-abi 5.6), super-pod numbers (10.1, device-info 3), and the codes of a chip (6.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.codes import CARD_DROPPED
from nodeagent.core.errors import DriverError
from nodeagent.core.model import Family, SuperPod
from nodeagent.drivers.answers import AnswerDamaged, AnswerError, AnswerKind
from nodeagent.drivers.chips import CodesAnswer, judge_codes
from nodeagent.drivers.identity import family_of, super_pod_of

A3_BOARDS = (0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0x81, 0x83, 0xD1, 0xD3)
ALL_ONES = 0xFFFFFFFF


class TestFamily:
    @pytest.mark.parametrize("board", A3_BOARDS)
    def test_rule_1_a_board_of_the_a3_list_with_a_910_chip(self, board: int) -> None:
        assert family_of("910_9391", board) is Family.A3
        assert family_of("910B4", board) is Family.A3

    @pytest.mark.parametrize("board", A3_BOARDS)
    @pytest.mark.parametrize(
        ("chip_name", "family"),
        [("310P3", Family.A310P), ("310B4", Family.A310B), ("Ascend950", Family.A5), ("310", Family.A310)],
    )
    def test_the_board_id_trap_a_name_that_says_otherwise_wins(
        self, chip_name: str, family: Family, board: int
    ) -> None:
        assert family_of(chip_name, board) is family

    @pytest.mark.parametrize(
        ("chip_name", "family"),
        [
            ("Ascend950", Family.A5),
            ("Ascend950" + "x" * 23, Family.A5),
            ("310P", Family.A310P),
            ("310P3", Family.A310P),
            ("I2", Family.A310P),
            ("I21", Family.A310P),
            ("310B4", Family.A310B),
            ("Ascend310B1", Family.A310B),
            ("310", Family.A310),
            ("Ascend310", Family.A310),
            ("Ascend310P3", Family.A310),  # rule 3 is anchored
            ("910B4", Family.A2),
            ("A2G1", Family.A2),
            ("910B", Family.A910),  # rule 6 wants a digit
            ("910A", Family.A910),
            ("910ProB", Family.A910),
        ],
    )
    @pytest.mark.parametrize("board", [0, 0x28, 0x33, 0x1A])
    def test_rules_2_to_7_go_by_name(self, chip_name: str, family: Family, board: int) -> None:
        assert family_of(chip_name, board) is family

    @pytest.mark.parametrize("chip_name", ["", "Ascend950" + "x" * 24, "B910", "A2G", "920", "ascend950"])
    def test_rule_8_an_unknown_chip_is_an_error_that_names_it(self, chip_name: str) -> None:
        with pytest.raises(DriverError) as caught:
            family_of(chip_name, 0x30)
        assert repr(chip_name) in caught.value.sentence
        assert "0x30" in caught.value.sentence
        assert caught.value.hint


class TestSuperPod:
    @pytest.mark.parametrize("family", [f for f in Family if f is not Family.A5])
    def test_rack_and_type_exist_on_the_950_only(self, family: Family) -> None:
        assert super_pod_of(7, 3, 9, 2, family) == SuperPod(7, 3, -2, 0)

    def test_the_950_tells_rack_and_type(self) -> None:
        assert super_pod_of(7, 3, 9, 2, Family.A5) == SuperPod(7, 3, 9, 2)

    def test_all_ones_become_minus_1(self) -> None:
        assert super_pod_of(ALL_ONES, ALL_ONES, 0, 0, Family.A3) == SuperPod(-1, -1, -2, 0)

    def test_numbers_are_signed_32_bit_for_their_consumers(self) -> None:
        assert super_pod_of(0x80000000, 0x7FFFFFFF, 0, 0, Family.A3) == SuperPod(-(2**31), 2**31 - 1, -2, 0)

    @pytest.mark.parametrize("chassis", [0x80000000, ALL_ONES, 0x80000001])
    def test_a_chassis_id_with_bit_31_disqualifies_a_950_only(self, chassis: int) -> None:
        assert super_pod_of(7, 3, chassis, 2, Family.A5) is None
        assert super_pod_of(7, 3, chassis, 2, Family.A3) == SuperPod(7, 3, -2, 0)

    @given(st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4), st.sampled_from(Family))
    def test_every_answer_fits_what_consumers_parse(self, answer: list[int], family: Family) -> None:
        pod = super_pod_of(answer[0], answer[1], answer[2], answer[3], family)
        if pod is not None:
            numbers = (pod.super_pod_id, pod.server_index, pod.rack_id)
            assert all(-(2**31) <= number < 2**31 for number in numbers)


FULL = list(range(0x80E00001, 0x80E00001 + 128))
NAME = "dcmi_get_device_errorcode_v2"


class TestCodes:
    def test_a_healthy_chip_lists_its_codes(self) -> None:
        assert judge_codes(NAME, 0, 2, [5, 6], 0) == CodesAnswer((5, 6), dropped=False)
        assert judge_codes(NAME, 0, 0, [], 0) == CodesAnswer((), dropped=False)

    def test_a_full_list_and_a_drop_are_129_codes_and_no_error(self) -> None:  # watch-out 7
        assert judge_codes(NAME, 0, 128, FULL, -8012) == CodesAnswer((*FULL, CARD_DROPPED), dropped=True)

    def test_entries_beyond_the_count_are_leftovers(self) -> None:
        assert judge_codes(NAME, 0, 1, [5, 6, 7], 0) == CodesAnswer((5,), dropped=False)

    def test_zeros_and_repetitions_count_once_or_not_at_all(self) -> None:
        assert judge_codes(NAME, 0, 4, [5, 0, 5, 6], 0) == CodesAnswer((5, 6), dropped=False)

    def test_a_drop_that_the_list_shows_already_is_there_once(self) -> None:
        assert judge_codes(NAME, 0, 1, [CARD_DROPPED], -8012) == CodesAnswer((CARD_DROPPED,), dropped=True)

    @pytest.mark.parametrize("count", [-1, 129, 2**31 - 1, -(2**31)])
    @pytest.mark.parametrize("health_rc", [0, -8012])
    def test_a_count_out_of_range_is_damage(self, count: int, health_rc: int) -> None:
        with pytest.raises(AnswerDamaged, match=rf"{NAME} answered a count of {count} codes, outside 0\.\.128"):
            judge_codes(NAME, 0, count, [], health_rc)

    def test_a_dropped_card_without_a_list_is_known_as_dropped_and_not_as_free_of_faults(self) -> None:
        assert judge_codes(NAME, -8005, 0, [], -8012) == CodesAnswer(None, dropped=True)

    @pytest.mark.parametrize("health_rc", [0, -8005, -8006, -99998])
    def test_a_failed_list_of_a_chip_that_is_there_is_an_error(self, health_rc: int) -> None:
        with pytest.raises(AnswerError) as caught:
            judge_codes(NAME, -8005, 3, [1, 2, 3], health_rc)
        assert (caught.value.rc, caught.value.kind) == (-8005, AnswerKind.FAILED)

    @pytest.mark.parametrize("health_rc", [-8001, -8005, -8255])
    def test_a_health_query_that_fails_otherwise_takes_nothing_from_the_list(self, health_rc: int) -> None:
        assert judge_codes(NAME, 0, 1, [5], health_rc) == CodesAnswer((5,), dropped=False)
