"""The simulated BMC answers as an iBMC does (node-faults 3, 6.1, 10): bytes of the specification, asked by ipmitool."""

import pytest
from kit.alarms import CPU_1, MEMORY_7, SYSTEM, WORKED_PAGE, many_alarms
from kit.bmc_simulator import BmcSimulator

from nodeagent.core.alarms import Alarm

NORMAL = Alarm(0x02000001, 0, 0, 0x02, 3)


def page(bmc: BmcSimulator, index: int = 0, mask: int = 0x0E, subject: int = 0xFF) -> bytes:
    """One page, without the completion code."""
    return bmc.ask(0x30, 0x94, 0xDB, 0x07, 0x00, 0x40, 0x00, index & 0xFF, index >> 8, mask, subject)


def completion(bmc: BmcSimulator, *data: int) -> str:
    """ipmitool's words for an answer that has nothing but a completion code."""
    done = bmc.ipmitool("raw", *map(hex, data))
    assert done.returncode != 0
    return done.stderr.partition("rsp=")[2].partition(")")[0]


def test_the_worked_page(bmc: BmcSimulator) -> None:
    bmc.say(WORKED_PAGE)
    assert page(bmc) == bytes.fromhex(
        "DB 07 00  03 00  03  00"
        "1D 00 00 00  00 00 A0 66  03  00  01  00 00 00 00"
        "17 00 00 01  10 00 A0 66  02  01  07  00 00 00 00"
        "31 00 00 2C  20 00 A0 66  03  2C  FF  00 00 00 00"
    )


def test_no_alarms(bmc: BmcSimulator) -> None:
    assert page(bmc) == bytes.fromhex("DB 07 00 00 00 00 00")


def test_alarms_come_and_go_with_the_file(bmc: BmcSimulator) -> None:
    for alarms in ([CPU_1], [], [MEMORY_7, SYSTEM], [SYSTEM]):
        bmc.say(alarms)
        assert page(bmc)[3:6] == bytes([len(alarms), 0, len(alarms)])


@pytest.mark.parametrize(
    ("mask", "subject", "found"), [(0x0E, 0xFF, 3), (0x08, 0xFF, 2), (0x0F, 0xFF, 4), (0x0E, 1, 1)]
)
def test_severity_and_subject_choose(bmc: BmcSimulator, mask: int, subject: int, found: int) -> None:
    bmc.say([*WORKED_PAGE, NORMAL])
    assert page(bmc, mask=mask, subject=subject)[5] == found


@pytest.mark.parametrize("size", [1, 12, 16])
def test_pages(bmc: BmcSimulator, size: int) -> None:
    bmc.say(many_alarms(33), page=size)
    for index in (0, size, 32, 33):
        answer = page(bmc, index)
        count = min(size, 33 - index)
        assert answer[3:6] == bytes([33, 0, count])
        assert len(answer) == 7 + 15 * count
    assert page(bmc, 32)[7:11] == bytes.fromhex("20 00 00 02")


def test_an_index_above_255_is_two_bytes(bmc: BmcSimulator) -> None:
    bmc.say(many_alarms(300))
    assert page(bmc, 299)[3:11] == bytes.fromhex("2C 01 01 00 2B 01 00 02")


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        ((0xDB, 0x07, 0x00, 0x40, 0x00, 0x00, 0x00, 0x0E), "0xc7"),
        ((0xDB, 0x07, 0x00, 0x40, 0x00, 0x00, 0x00, 0x0E, 0xFF, 0x00), "0xc7"),
        ((0xDC, 0x07, 0x00, 0x40, 0x00, 0x00, 0x00, 0x0E, 0xFF), "0xc1"),
        ((0xDB, 0x07, 0x00, 0x41, 0x00, 0x00, 0x00, 0x0E, 0xFF), "0xc1"),
    ],
)
def test_other_requests_are_refused(bmc: BmcSimulator, request_bytes: tuple[int, ...], code: str) -> None:
    assert completion(bmc, 0x30, 0x94, *request_bytes) == code


def test_the_serial_number(bmc: BmcSimulator) -> None:
    bmc.say(serial="210200ABCDEF", vendor="Huawei")
    assert bmc.ask(0x30, 0x90, 0x05, 0x00, 0x03, 0x04, 0x00, 0xFF) == b"\x80210200ABCDEF"
    assert bmc.ask(0x30, 0x90, 0x05, 0x00, 0x03, 0x00, 0x00, 0xFF) == bytes.fromhex("80 48 75 61 77 65 69")
    bmc.say()
    assert bmc.ask(0x30, 0x90, 0x05, 0x00, 0x03, 0x04, 0x00, 0xFF) == b"\x80"


def test_a_serial_number_in_parts(bmc: BmcSimulator) -> None:
    bmc.say(serial="210200ABCDEF", label_part=8)
    assert bmc.ask(0x30, 0x90, 0x05, 0x00, 0x03, 0x04, 0x00, 0xFF) == b"\x00210200AB"
    assert bmc.ask(0x30, 0x90, 0x05, 0x00, 0x03, 0x04, 0x08, 0xFF) == b"\x80CDEF"


def test_other_commands_are_those_of_any_bmc(bmc: BmcSimulator) -> None:
    assert len(bmc.ask(0x06, 0x01)) == 15


def test_it_goes_wrong_as_told(bmc: BmcSimulator) -> None:
    bmc.say(WORKED_PAGE, cut=1)
    assert len(page(bmc)) == 7 + 45 - 1
    bmc.say(WORKED_PAGE, count=4)
    assert page(bmc)[3:6] == bytes.fromhex("03 00 04")
    bmc.say(WORKED_PAGE, mid=0x000102)
    assert page(bmc)[:3] == bytes.fromhex("02 01 00")
    bmc.say(WORKED_PAGE, total=9)
    assert page(bmc)[3:6] == bytes.fromhex("09 00 03")
    bmc.say(WORKED_PAGE, empty=1)
    assert page(bmc) == bytes.fromhex("DB 07 00 03 00 00 00")
    bmc.say(WORKED_PAGE, cc=0xC3)
    assert completion(bmc, 0x30, 0x94, 0xDB, 0x07, 0x00, 0x40, 0, 0, 0, 0x0E, 0xFF) == "0xc3"
    bmc.say(label_cc=0xC1)
    assert completion(bmc, 0x30, 0x90, 0x05, 0x00, 0x03, 0x04, 0x00, 0xFF) == "0xc1"


def test_it_goes_wrong_from_an_index_on(bmc: BmcSimulator) -> None:
    bmc.say(many_alarms(33), page=12, cut=1, from_index=12)
    assert [len(page(bmc, index)) for index in (0, 12, 24)] == [187, 186, 141]


def test_it_goes_wrong_so_many_times(bmc: BmcSimulator) -> None:
    bmc.say(many_alarms(33), page=12, cut=1, from_index=12, times=2)
    assert [len(page(bmc, index)) for index in (0, 12, 12, 12)] == [187, 186, 186, 187]


def test_totals_that_change_between_pages(bmc: BmcSimulator) -> None:
    bmc.say(many_alarms(33), page=12, next_total=20)
    assert [page(bmc, index)[3] for index in (0, 12, 0, 12)] == [33, 20, 33, 20]
    bmc.say(many_alarms(33), page=12, shrink=20)
    assert [page(bmc, index)[3] for index in (0, 12, 0, 12)] == [33, 20, 20, 20]


def test_a_line_that_is_not_understood_is_reported(bmc: BmcSimulator) -> None:
    bmc.write("!nonsense 1\n!page many\n0000001D 0 9 00 1\n")
    assert page(bmc) == bytes.fromhex("DB 07 00 00 00 00 00")
    for line in ("!nonsense 1", "!page many", "0000001D 0 9 00 1"):
        assert line in bmc.words()


def test_it_keeps_its_ports_and_its_alarms_when_it_is_killed(bmc: BmcSimulator) -> None:
    bmc.say(WORKED_PAGE)
    bmc.kill()
    assert "Unable to establish" in bmc.ipmitool("raw", "0x06", "0x01").stderr
    bmc.start()
    assert page(bmc)[3] == 3
