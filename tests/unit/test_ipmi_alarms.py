"""The alarm list under any page size, any number of alarms, any damage."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.bmc import FakeBmc, numbered, page

from nodeagent.core.alarms import Alarm
from nodeagent.core.errors import IpmiError, NodeAgentError
from nodeagent.drivers.ipmi import NoAnswerError, completion_text, result_label
from nodeagent.drivers.ipmi_alarms import parse_page, poll_alarms
from nodeagent.drivers.ipmi_label import read_serial_number

byte = st.integers(0, 255)
four = st.integers(0, 0xFFFFFFFF)
alarm = st.builds(Alarm, four, four, st.integers(1, 3), byte, byte)


@given(st.lists(alarm, max_size=300), st.integers(1, 16))
def test_any_list_comes_through_any_page_size_in_its_order(alarms: list[Alarm], page_size: int) -> None:
    bmc = FakeBmc(alarms, page_size)
    assert poll_alarms(bmc.raw) == tuple(alarms)
    assert len(bmc.asked) == max(1, -(-len(alarms) // page_size))


def test_300_alarms_one_at_a_time() -> None:
    assert poll_alarms(FakeBmc(numbered(300), 1).raw) == tuple(numbered(300))


def test_the_largest_total_that_two_bytes_hold() -> None:
    alarms = numbered(65535)
    bmc = FakeBmc(alarms, page_size=255)
    assert poll_alarms(bmc.raw) == tuple(alarms)
    assert max(int.from_bytes(data[5:7], "little") for data in bmc.asked) == 65280


@given(st.lists(alarm, max_size=16), st.data())
def test_a_page_of_another_length_is_never_accepted(alarms: list[Alarm], data: st.DataObject) -> None:
    good = page(300, alarms)
    assert parse_page(good).alarms == tuple(alarms)
    shorter = good[: data.draw(st.integers(0, len(good) - 1))]
    longer = good + data.draw(st.binary(min_size=1, max_size=40))
    for answer in (shorter, longer):
        with pytest.raises(IpmiError):
            parse_page(answer)


@given(st.lists(alarm, max_size=16), st.sampled_from([0, 1, 2, 3, 6]), st.integers(1, 255))
def test_a_page_with_another_code_id_or_count_is_never_accepted(alarms: list[Alarm], at: int, change: int) -> None:
    damaged = bytearray(page(300, alarms))
    damaged[at] ^= change
    with pytest.raises(IpmiError):
        parse_page(bytes(damaged))


@given(st.integers(1, 60), st.integers(1, 16), st.data())
def test_a_poll_with_one_damaged_page_gives_all_alarms_or_an_error(
    count: int, page_size: int, data: st.DataObject
) -> None:
    """Never fewer: a shorter list would look like a recovery. Totals are left out, whose change reads anew."""
    bmc = FakeBmc(numbered(count), page_size)
    at = data.draw(st.integers(0, -(-count // page_size) - 1))
    cut = data.draw(st.integers(1, 30))
    bmc.odd = {at: lambda answer: answer[:-cut]}
    with contextlib.suppress(IpmiError):
        assert poll_alarms(bmc.raw) == tuple(numbered(count))


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ([page(0, numbered(1))], "a page has 1 alarms where the BMC counts 0"),
        ([page(3, numbered(2)), page(3, numbered(2))], "counts 3 alarms and told 4"),
        ([page(3, [])], "counts 3 alarms and tells none after the first 0"),
        ([page(3, numbered(2), count=3)], "a page of 3 alarms has 30 bytes of alarms, not 45"),
        ([b""], "not even a completion code"),
        ([b"\x00"], "a page of alarms has 0 bytes"),
    ],
)
def test_numbers_that_do_not_fit(pages: list[bytes], words: str) -> None:
    with pytest.raises(IpmiError, match=words):
        poll_alarms(FakeBmc(odd=dict(enumerate(pages))).raw)


def test_a_list_that_never_rests_is_an_error() -> None:
    pages = {n: page(20 + n, numbered(12)) for n in range(99)}
    bmc = FakeBmc(odd=pages)
    with pytest.raises(IpmiError, match="changed during each of 4 readings"):
        poll_alarms(bmc.raw)
    assert len(bmc.asked) == 8


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=10))
def test_any_bytes_are_an_answer_or_an_error_of_ours(answers: list[bytes]) -> None:
    for read in (poll_alarms, read_serial_number):
        left = list(answers)

        def raw(_netfn: int, _command: int, _data: bytes, left: list[bytes] = left) -> bytes:
            return left.pop(0) if left else b"\xd3"

        with contextlib.suppress(NodeAgentError):
            read(raw)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("outcome", "label"),
    [
        (b"\x00", "ok"),
        (b"\xc0", "busy"),
        (b"\xd4", "not_supported"),
        (b"\xcc", "failed"),
        (b"", "damaged"),
        (NoAnswerError("x"), "no_answer"),
        (IpmiError("x"), "damaged"),
    ],
)
def test_labels(outcome: bytes | IpmiError, label: str) -> None:
    assert result_label(outcome) == label


def test_a_code_without_a_name_is_its_number() -> None:
    assert completion_text(0x81) == "81"
