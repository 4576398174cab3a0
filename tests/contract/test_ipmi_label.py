"""The serial number against the bytes of node-faults 10 and T23."""

import pytest
from kit.bmc import FakeBmc

from nodeagent.core.errors import IpmiError, IpmiNotSupportedError
from nodeagent.drivers.ipmi import DamagedAnswerError
from nodeagent.drivers.ipmi_label import read_serial_number


def test_t23_a_serial_number() -> None:
    bmc = FakeBmc(serial=[b"\x00\x802102314NMV10P9100003"])
    assert read_serial_number(bmc.raw) == "2102314NMV10P9100003"
    assert [data.hex(" ").upper() for data in bmc.asked] == ["05 00 03 04 00 FF"]


def test_the_command_is_the_one_of_the_sheet() -> None:
    asked = []

    def raw(netfn: int, command: int, data: bytes) -> bytes:
        asked.append((netfn, command))
        return bytes.fromhex("00 80 48 75 61 77 65 69")

    assert read_serial_number(raw) == "Huawei"
    assert asked == [(0x30, 0x90)]


def test_t23_an_empty_field_is_none_and_the_manufacturer_is_not_asked_for() -> None:
    bmc = FakeBmc(serial=[b"\x00\x80"])
    assert read_serial_number(bmc.raw) == ""
    assert len(bmc.asked) == 1


def test_t23_an_unknown_command_is_an_error_to_come_back_to() -> None:
    with pytest.raises(IpmiNotSupportedError, match="C1"):
        read_serial_number(FakeBmc(serial=[b"\xc1"]).raw)


def test_more_parts_are_read_at_higher_offsets() -> None:
    bmc = FakeBmc(serial=[b"\x00\x00210231", b"\x00\x004NMV", b"\x00\x8010P9"])
    assert read_serial_number(bmc.raw) == "2102314NMV10P9"
    assert [data[4] for data in bmc.asked] == [0, 6, 10]


@pytest.mark.parametrize("filling", [b"\x00", b" ", b"\x00 \x00", b"\xff", b"\r\n"])
def test_fillings_are_no_text(filling: bytes) -> None:
    assert read_serial_number(FakeBmc(serial=[b"\x00\x80" + filling * 3]).raw) == ""
    assert read_serial_number(FakeBmc(serial=[b"\x00\x80 21 02" + filling * 3]).raw) == "21 02"


@pytest.mark.parametrize("text", [b"21\x0702", b"21\x0002", b"21\xe9", b"\x7f", "序列".encode()])
def test_other_than_printable_ascii_is_an_error(text: bytes) -> None:
    with pytest.raises(DamagedAnswerError, match="not printable ASCII"):
        read_serial_number(FakeBmc(serial=[b"\x00\x80" + text]).raw)


@pytest.mark.parametrize(
    ("serial", "words"),
    [
        ([b"\x00"], "no control byte"),
        ([b""], "not even a completion code"),
        ([b"\x00\x00"], "more of the serial number follows"),
        ([b"\x00\x00" + b"7" * 200, b"\x00\x00" + b"7" * 56], "more than 255 bytes"),
        ([b"\x00\x0021", b"\xc9"], r"C9 \(index out of range\)"),
    ],
)
def test_damaged_answers(serial: list[bytes], words: str) -> None:
    with pytest.raises(IpmiError, match=words):
        read_serial_number(FakeBmc(serial=serial).raw)


def test_a_busy_bmc_is_asked_again() -> None:
    bmc = FakeBmc(serial=[b"\x00\x80SN"], odd={0: b"\xc0", 1: b"\xff"})
    assert read_serial_number(bmc.raw) == "SN"
