"""Return codes of DCMI: names of native-abi 3.1, and what kind of answer each one is (lesson 7)."""

import pytest

from nodeagent.core.errors import DriverError
from nodeagent.drivers.answers import (
    LQ_RETURN_CODES,
    RETURN_CODES,
    AnswerDamaged,
    AnswerError,
    AnswerKind,
    check,
    hint_for,
)

# The sheet's table without 0, and without -99997: we never unload the library, so nothing can answer that.
SHEET = {
    -8001: ("INVALID_PARAMETER", "failed"),
    -8002: ("OPER_NOT_PERMITTED", "no permission"),
    -8003: ("MEM_OPERATE_FAIL", "failed"),
    -8004: ("SECURE_FUN_FAIL", "failed"),
    -8005: ("INNER_ERR", "failed"),
    -8006: ("TIME_OUT", "busy"),
    -8007: ("INVALID_DEVICE_ID", "failed"),
    -8008: ("DEVICE_NOT_EXIST", "failed"),
    -8009: ("IOCTL_FAIL", "failed"),
    -8010: ("SEND_MSG_FAIL", "wrong product"),
    -8011: ("RECV_MSG_FAIL", "failed"),
    -8012: ("NOT_REDAY", "not ready"),
    -8013: ("NOT_SUPPORT_IN_CONTAINER", "no permission"),
    -8014: ("FILE_OPERATE_FAIL", "failed"),
    -8015: ("RESET_FAIL", "failed"),
    -8016: ("ABORT_OPERATE", "failed"),
    -8017: ("IS_UPGRADING", "busy"),
    -8020: ("RESOURCE_OCCUPIED", "busy"),
    -8022: ("PARTITION_NOT_RIGHT", "failed"),
    -8023: ("CONFIG_INFO_NOT_EXIST", "failed"),
    -8255: ("NOT_SUPPORT", "not supported"),
    -99998: ("NO_SYMBOL", "not supported"),
    -99999: ("NOT_LOADED", "failed"),
    65534: ("NOT_SUPPORT", "not supported"),
}


def test_the_table_is_the_sheets_and_nothing_else() -> None:
    assert set(RETURN_CODES) == set(SHEET)


@pytest.mark.parametrize(("rc", "name", "kind"), [(rc, *row) for rc, row in SHEET.items()])
def test_a_code_tells_number_name_meaning_and_kind(rc: int, name: str, kind: str) -> None:
    error = AnswerError("dcmi_get_device_health", rc)
    assert error.sentence == f"dcmi_get_device_health returned {rc} ({name}): {RETURN_CODES[rc].meaning}"
    assert RETURN_CODES[rc].meaning
    assert error.kind is AnswerKind(kind)
    assert (error.function, error.rc) == ("dcmi_get_device_health", rc)
    assert isinstance(error, DriverError)


@pytest.mark.parametrize("rc", [-8018, -8019, -8021, -99997, 1, -1, -(2**31), 2**31 - 1])
def test_a_code_that_is_not_assigned_keeps_its_number_and_counts_as_failed(rc: int) -> None:
    error = AnswerError("dcmi_init", rc)
    assert str(rc) in str(error)
    assert "unknown return code" in str(error)
    assert error.kind is AnswerKind.FAILED


def test_only_zero_passes() -> None:
    check("dcmi_init", 0)
    for rc in (1, -1, -8255, 65534):
        with pytest.raises(AnswerError, match=str(rc)):
            check("dcmi_init", rc)


def test_a_damaged_answer_says_what_came_and_not_that_0_was_returned() -> None:
    error = AnswerDamaged("dcmi_get_card_list", "a card count of 65, outside 0..64")
    assert str(error) == "NA302: dcmi_get_card_list answered a card count of 65, outside 0..64"
    assert error.kind is AnswerKind.FAILED
    assert error.rc == 0


@pytest.mark.parametrize("kind", AnswerKind)
def test_hints_exist_where_a_person_can_do_something(kind: AnswerKind) -> None:
    useful = kind in (AnswerKind.NO_PERMISSION, AnswerKind.NOT_SUPPORTED, AnswerKind.WRONG_PRODUCT)
    assert bool(hint_for(kind)) is useful


def test_a_missing_right_says_how_to_get_it() -> None:
    assert "privileged" in str(AnswerError("dcmi_init", -8002))


def test_the_switch_library_has_the_same_numbers_with_other_meanings() -> None:
    """native-abi 3.2; -99998 is ours."""
    assert set(LQ_RETURN_CODES) == {*range(-8017, -8000), -99998}
    assert str(AnswerError("lq_dcmi_init", -8010)) == (
        "NA302: lq_dcmi_init returned -8010: too many processes use the switches"
    )
    assert AnswerError("lq_dcmi_init", 1).sentence == "lq_dcmi_init returned 1 (UNKNOWN): unknown return code"
    assert AnswerError("lq_dcmi_init", -8004).kind is AnswerKind.NOT_SUPPORTED
