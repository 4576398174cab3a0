"""The alarm list against the bytes and tables of node-faults: 3.1, 3.2, T10, T11."""

import pytest
from kit.bmc import FakeBmc, numbered, page

from nodeagent.core.alarms import Alarm
from nodeagent.core.errors import IpmiError, IpmiNotSupportedError
from nodeagent.drivers.ipmi import CompletionError, DamagedAnswerError, NoAnswerError
from nodeagent.drivers.ipmi_alarms import alarm_request, poll_alarms

WORKED_PAGE = bytes.fromhex(
    "00  DB 07 00  03 00  03  00"
    "1D 00 00 00  00 00 A0 66  03  00  01  00 00 00 00"
    "17 00 00 01  10 00 A0 66  02  01  07  00 00 00 00"
    "31 00 00 2C  20 00 A0 66  03  2C  FF  00 00 00 00"
)


def test_the_worked_page() -> None:
    """3.2: three alarms, their codes, devices and severities."""
    bmc = FakeBmc(odd={0: WORKED_PAGE})
    alarms = poll_alarms(bmc.raw)
    assert alarms == (
        Alarm(0x0000001D, 0x66A00000, 3, 0x00, 1),
        Alarm(0x01000017, 0x66A00010, 2, 0x01, 7),
        Alarm(0x2C000031, 0x66A00020, 3, 0x2C, 255),
    )
    assert [(a.text, a.device_type, a.device_id) for a in alarms] == [
        ("0000001D", "CPU", 1),
        ("01000017", "Memory", 7),
        ("2C000031", "System", 255),
    ]
    assert [data.hex(" ").upper() for data in bmc.asked] == ["DB 07 00 40 00 00 00 0E FF"]


def test_the_command_is_the_one_of_the_sheet() -> None:
    asked = []

    def raw(netfn: int, command: int, data: bytes) -> bytes:
        asked.append((netfn, command, len(data)))
        return bytes.fromhex("00 DB 07 00 00 00 00 00")

    assert poll_alarms(raw) == ()
    assert asked == [(0x30, 0x94, 9)]


@pytest.mark.parametrize(("index", "wanted"), [(0, "00 00"), (1, "01 00"), (257, "01 01"), (65535, "FF FF")])
def test_the_index_is_two_bytes_low_byte_first(index: int, wanted: str) -> None:
    """3.1."""
    assert alarm_request(index).hex(" ").upper() == f"DB 07 00 40 00 {wanted} 0E FF"


def test_t10_paging() -> None:
    """33 alarms in pages of 12."""
    bmc, lengths = FakeBmc(numbered(33), page_size=12), []

    def raw(netfn: int, command: int, data: bytes) -> bytes:
        lengths.append(len(answer := bmc.raw(netfn, command, data)))
        return answer

    assert poll_alarms(raw) == tuple(numbered(33))
    assert [data[5:7].hex(" ").upper() for data in bmc.asked] == ["00 00", "0C 00", "18 00"]
    assert lengths == [188, 188, 143]


def test_t10_a_full_page_that_is_all() -> None:
    bmc = FakeBmc(numbered(16), page_size=16)
    assert len(poll_alarms(bmc.raw)) == 16
    assert len(bmc.asked) == 1


class TestT11:
    """An error inside paging, on page 2 of 33 alarms; column N."""

    @pytest.fixture
    def bmc(self) -> FakeBmc:
        return FakeBmc(numbered(33), page_size=12)

    def test_t11_completion_code_c3_is_retried(self, bmc: FakeBmc) -> None:
        bmc.odd = {1: b"\xc3", 2: b"\xc3"}
        assert poll_alarms(bmc.raw) == tuple(numbered(33))
        assert len(bmc.asked) == 5

    def test_t11_completion_code_c3_each_time(self, bmc: FakeBmc) -> None:
        bmc.odd = {1: b"\xc3", 2: b"\xc3", 3: b"\xc3"}
        with pytest.raises(CompletionError, match=r"C3 \(timeout inside the BMC\)") as caught:
            poll_alarms(bmc.raw)
        assert caught.value.completion == 0xC3
        assert len(bmc.asked) == 4

    def test_t11_body_one_byte_short(self, bmc: FakeBmc) -> None:
        bmc.odd = {1: lambda answer: answer[:-1]}
        with pytest.raises(DamagedAnswerError, match="a page of 12 alarms has 179 bytes of alarms, not 180"):
            poll_alarms(bmc.raw)
        assert len(bmc.asked) == 2

    def test_t11_count_0_before_the_end(self, bmc: FakeBmc) -> None:
        bmc.odd = {1: page(33, [])}
        with pytest.raises(DamagedAnswerError, match="counts 33 alarms and tells none after the first 12"):
            poll_alarms(bmc.raw)
        assert len(bmc.asked) == 2, "at once"

    def test_t11_manufacturer_id_00_00_00(self, bmc: FakeBmc) -> None:
        bmc.odd = {1: lambda answer: answer[:1] + bytes(3) + answer[4:]}
        with pytest.raises(DamagedAnswerError, match="manufacturer id 00 00 00, not DB 07 00"):
            poll_alarms(bmc.raw)

    def test_t11_no_answer(self, bmc: FakeBmc) -> None:
        bmc.odd = {1: NoAnswerError("nothing within 10 s")}
        with pytest.raises(NoAnswerError):
            poll_alarms(bmc.raw)
        assert len(bmc.asked) == 2, "not tried again within the poll"

    def test_t11_total_shrinks_to_20(self, bmc: FakeBmc) -> None:
        def shrink(_: bytes) -> bytes:
            bmc.alarms = numbered(20)
            return page(20, numbered(20)[12:])

        bmc.odd = {1: shrink}
        assert poll_alarms(bmc.raw) == tuple(numbered(20))
        assert [data[5] for data in bmc.asked] == [0, 12, 0, 12], "read anew from the beginning"


@pytest.mark.parametrize("code", [0xC0, 0xC3, 0xD3, 0xFF])
def test_busy_codes_are_tried_three_times(code: int) -> None:
    """3.6, first row of errors."""
    bmc, pauses = FakeBmc(numbered(2), odd={n: bytes([code]) for n in range(2)}), []
    assert len(poll_alarms(bmc.raw, lambda: pauses.append(1))) == 2
    assert len(pauses) == 2
    bmc = FakeBmc(odd={n: bytes([code]) for n in range(99)})
    with pytest.raises(CompletionError, match=f"{code:02X}"):
        poll_alarms(bmc.raw)
    assert len(bmc.asked) == 3


@pytest.mark.parametrize("code", [0xC1, 0xC2, 0xD4, 0xD5, 0xD6])
def test_unsupported_codes(code: int) -> None:
    """3.6, second row."""
    bmc = FakeBmc(odd={0: bytes([code])})
    with pytest.raises(IpmiNotSupportedError, match=f"{code:02X}"):
        poll_alarms(bmc.raw)
    assert len(bmc.asked) == 1


@pytest.mark.parametrize("code", [0xC7, 0xC8, 0xCC, 0x01, 0xC9, 0xCB, 0xD2])
def test_other_codes_fail_the_poll_at_once(code: int) -> None:
    """3.6, third row; an index of 0 cannot be out of range because a list shrank."""
    bmc = FakeBmc(odd={0: bytes([code])})
    with pytest.raises(IpmiError, match=f"{code:02X}") as caught:
        poll_alarms(bmc.raw)
    assert not isinstance(caught.value, IpmiNotSupportedError)
    assert len(bmc.asked) == 1


@pytest.mark.parametrize("code", [0xC9, 0xCB])
def test_an_index_out_of_range_reads_the_list_anew(code: int) -> None:
    """3.6, last row."""
    bmc = FakeBmc(numbered(33), page_size=16)

    def shrink(_: bytes) -> bytes:
        bmc.alarms = numbered(5)
        return bytes([code])

    bmc.odd = {1: shrink}
    assert poll_alarms(bmc.raw) == tuple(numbered(5))
    bmc = FakeBmc(numbered(33), odd={n: bytes([code]) for n in range(1, 99, 2)})
    with pytest.raises(IpmiError, match="changed during each of 4 readings"):
        poll_alarms(bmc.raw)
    assert len(bmc.asked) == 8
