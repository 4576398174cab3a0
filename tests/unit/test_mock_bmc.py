"""The pretended BMC against the bytes of the sheet (node-faults 3, 6.1, 10), and its alarm file."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.clock import FakeClock

from nodeagent.core.alarms import Alarm
from nodeagent.core.errors import MockError
from nodeagent.mock.alarm_file import check_label, format_alarm_file, parse_alarm_file
from nodeagent.mock.bmc import HUAWEI, MAX_ALARMS, BmcFault, BmcState, answer
from nodeagent.mock.board import MockBoard, StartAlarm

WORKED = BmcState(
    (
        Alarm(0x0000001D, 0x66A00000, 3, 0x00, 1),
        Alarm(0x01000017, 0x66A00010, 2, 0x01, 7),
        Alarm(0x2C000031, 0x66A00020, 3, 0x2C, 255),
    )
)
WORKED_PAGE = bytes.fromhex(
    "00  DB 07 00  03 00  03  00"
    "1D 00 00 00  00 00 A0 66  03  00  01  00 00 00 00"
    "17 00 00 01  10 00 A0 66  02  01  07  00 00 00 00"
    "31 00 00 2C  20 00 A0 66  03  2C  FF  00 00 00 00"
)
"""The worked page of section 3.2."""


def query(index: int = 0, severities: int = 0x0E, subject: int = 0xFF) -> bytes:
    """The data of a query of the alarms (3.1)."""
    return bytes.fromhex("DB 07 00 40 00") + index.to_bytes(2, "little") + bytes((severities, subject))


def page(state: BmcState, **fields: int) -> bytes:
    told = answer(state, 0x30, 0x94, query(**fields))
    assert told is not None
    return told


def many(count: int, size: int = 16, /, **fault) -> BmcState:
    """A board with so many alarms, one page holding at most `size`."""
    alarms = tuple(Alarm(0x0000001D, 0, 2, 0, number % 256) for number in range(count))
    return BmcState(alarms, page=size, fault=BmcFault(**fault))


def test_the_worked_page():
    assert query() == bytes.fromhex("DB 07 00 40 00 00 00 0E FF")
    assert page(WORKED) == WORKED_PAGE


def test_an_empty_answer():
    assert page(BmcState()) == bytes.fromhex("00 DB 07 00 00 00 00 00")


@pytest.mark.parametrize(
    ("netfn", "command", "data", "code"),
    [
        (0x30, 0x94, query()[:-1], 0xC7),
        (0x30, 0x94, query() + b"\0", 0xC7),
        (0x30, 0x94, b"\0" + query()[1:], 0xC1),
        (0x30, 0x94, query().replace(b"\x40", b"\x41"), 0xC1),
        (0x30, 0x90, bytes.fromhex("05 00 03 04 00"), 0xC7),
        (0x30, 0x90, bytes.fromhex("05 00 02 04 00 FF"), 0xC1),
        (0x30, 0x95, query(), 0xC1),
        (0x06, 0x02, b"", 0xC1),
    ],
)
def test_what_the_bmc_refuses(netfn, command, data, code):
    assert answer(WORKED, netfn, command, data) == bytes((code,))


def test_filters():
    assert page(WORKED, severities=1 << 2)[4:8] == bytes.fromhex("01 00 01 00")
    assert page(WORKED, severities=1 << 2)[8:] == WORKED_PAGE[8 + 15 : 8 + 30]
    assert page(WORKED, subject=0x2C)[8:] == WORKED_PAGE[8 + 30 :]
    normal = BmcState((Alarm(0x0000001D, 0, 0, 0, 1),))
    assert page(normal)[4:7] == bytes(3)
    assert page(normal, severities=0x0F)[4:7] == b"\1\0\1"


def test_t10_paging():
    pages = [page(many(33, 12), index=index) for index in (0, 12, 24)]
    assert [(told[4] | told[5] << 8, told[6], len(told)) for told in pages] == [
        (33, 12, 188),
        (33, 12, 188),
        (33, 9, 143),
    ]
    assert len({told[8 + 15 * n + 10] for told in pages for n in range(told[6])}) == 33
    assert page(many(16))[6] == 16
    assert page(many(17))[6] == 16
    assert page(many(300), index=256)[4:7] == (300).to_bytes(2, "little") + b"\x10"
    assert page(many(33), index=33)[4:] == bytes.fromhex("21 00 00 00")


def test_t23_the_label():
    state = BmcState(serial="2102310ABC", vendor="Huawei")
    serial, vendor = bytes.fromhex("05 00 03 04 00 FF"), bytes.fromhex("05 00 03 00 00 FF")
    assert answer(state, 0x30, 0x90, serial) == bytes.fromhex("00 80") + b"2102310ABC"
    assert answer(state, 0x30, 0x90, vendor) == bytes.fromhex("00 80 48 75 61 77 65 69")
    assert answer(state, 0x30, 0x90, bytes.fromhex("05 00 03 01 00 FF")) == b"\x00\x80"
    assert answer(BmcState(), 0x30, 0x90, serial) == b"\x00\x80"
    parts = replace(state, fault=BmcFault(label_part=6))
    assert answer(parts, 0x30, 0x90, serial) == b"\x00\x00" + b"210231"
    assert answer(parts, 0x30, 0x90, bytes.fromhex("05 00 03 04 06 FF")) == b"\x00\x80" + b"0ABC"
    assert answer(replace(state, fault=BmcFault(label_code=0xC1)), 0x30, 0x90, serial) == b"\xc1"


def test_the_device_id_has_the_manufacturer():
    told = answer(BmcState(fault=BmcFault(completion_code=0xC3, silent=True)), 0x06, 0x01, b"")
    assert told is not None
    assert (told[0], told[7:10]) == (0, bytes.fromhex("DB 07 00"))


@pytest.mark.parametrize(
    ("fault", "head", "length"),
    [
        ({"completion_code": 0xC3}, "C3", 1),
        ({"cut_bytes": 1}, "00 DB 07 00 21 00 0C 00", 187),
        ({"count": 13}, "00 DB 07 00 21 00 0D 00", 188),
        ({"count": 0}, "00 DB 07 00 21 00 00 00", 188),
        ({"empty": True}, "00 DB 07 00 21 00 00 00", 8),
        ({"manufacturer_id": 0}, "00 00 00 00 21 00 0C 00", 188),
        ({"total": 20}, "00 DB 07 00 14 00 0C 00", 188),
    ],
)
def test_t11_what_can_be_wrong(fault, head, length):
    told = page(many(33, 12, **fault))
    assert told.startswith(bytes.fromhex(head))
    assert len(told) == length


def test_t11_trouble_from_an_index_on():
    state = many(33, 12, completion_code=0xC9, from_index=12)
    assert [page(state, index=index)[0] for index in (0, 11, 12, 24)] == [0, 0, 0xC9, 0xC9]
    state = many(33, 12, next_total=20)
    assert [page(state, index=index)[4] for index in (0, 12)] == [33, 20]
    assert answer(many(33, silent=True, from_index=12), 0x30, 0x94, query(12)) is None
    assert answer(many(33, silent=True, from_index=12), 0x30, 0x94, query()) is not None


def board(**fields) -> MockBoard:
    return MockBoard(FakeClock(), BmcState(**fields), (), present=True)


def test_trouble_for_some_commands_only():
    mock, told = board(), []
    mock.add_listener(lambda: told.append(format_alarm_file(mock.state)))
    mock.disturb(BmcFault(completion_code=0xC0, times=2, label_code=0xC1))
    codes = [mock.ask(0x30, 0x94, query()) for _ in range(3)]
    assert [reply.data[0] for reply in codes if reply and reply.data] == [0xC0, 0xC0, 0]
    assert told == ["!cc C0\n!times 2\n!label_cc C1\n", "!label_cc C1\n"]
    mock.disturb(BmcFault(delay_ms=500))
    assert [mock.ask(0x30, 0x94, query()).delay_ms, mock.ask(0x06, 0x01, b"").delay_ms] == [500, 0]
    mock.disturb(BmcFault(), present=False)
    assert mock.ask(0x30, 0x94, query()) is None


def test_alarms_come_and_go():
    mock = board()
    mock.raise_alarm(StartAlarm(0x62000006, raised_s=5))
    for device in (1, 1, 2):
        mock.raise_alarm(StartAlarm(0x0000001D, device, 3))
    first, *others = mock.state.alarms
    assert first == Alarm(0x62000006, 5, 2, 0x62, 255)
    assert [(alarm.device_id, alarm.subject, alarm.severity) for alarm in others] == [(1, 0, 3), (1, 0, 3), (2, 0, 3)]
    assert {alarm.raised_s for alarm in others} == {FakeClock().now().wall_ms // 1000}
    mock.clear_alarm(0x0000001D, 1)
    assert [alarm.device_id for alarm in mock.state.alarms] == [255, 2]
    with pytest.raises(MockError, match="no alarm 0000001D is present on device 1"):
        mock.clear_alarm(0x0000001D, 1)
    mock.clear_alarm(0x0000001D, None)
    mock.clear_alarm(0x62000006, 255)
    assert mock.state.alarms == ()


def test_the_board_has_room_for_so_many():
    mock = board(alarms=many(MAX_ALARMS).alarms)
    with pytest.raises(MockError, match="the limit"):
        mock.raise_alarm(StartAlarm(0x0000001D))


EXAMPLE = """\
0000001D 1721762816 3 00 1
2C000031 1721762848 3 2C 255
!serial 2102310ABC
!page 12
!cc C3
!from 12
!times 2
!mid 0
"""


def test_the_alarm_file():
    state = BmcState(
        (Alarm(0x0000001D, 1721762816, 3, 0, 1), Alarm(0x2C000031, 1721762848, 3, 0x2C, 255)),
        "2102310ABC",
        page=12,
        fault=BmcFault(completion_code=0xC3, from_index=12, times=2, manufacturer_id=0),
    )
    assert format_alarm_file(state) == EXAMPLE
    assert parse_alarm_file(EXAMPLE) == state
    assert format_alarm_file(BmcState()) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1D 0 3 00\n", "line 1: neither an alarm of 5 words"),
        ("!serial x\n\n1D 0 3 00 256\n", "line 3: the device is 256, which is not within 0..255"),
        ("1D 0 4 00 1\n", "line 1: the severity is 4"),
        ("1D 0 3 100 1\n", "line 1: the subject is 100"),
        ("XY 0 3 00 1\n", "line 1: invalid literal"),
        ("100000000 0 3 00 1\n", "line 1: the code is 100000000"),
        ("!page 17\n", "line 1: !page is 17"),
        ("!cc 100\n", "line 1: !cc is 100"),
        ("!what 1\n", "line 1: neither"),
        (f"!serial {'x' * 64}\n", "line 1: must be at most 63"),
        ("!serial x\ty\n", "line 1: must be printable"),
    ],
)
def test_a_bad_alarm_file_names_the_line(text, words):
    with pytest.raises(ValueError) as caught:
        parse_alarm_file(text)
    assert str(caught.value).startswith(words)


U8, U16, U32 = st.integers(0, 0xFF), st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
LABELS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=63)
ALARMS = st.lists(st.builds(Alarm, U32, U32, st.integers(0, 3), U8, U8), max_size=20).map(tuple)
FAULTS = st.builds(
    BmcFault,
    completion_code=U8,
    cut_bytes=U8,
    count=st.none() | U8,
    delay_ms=U32,
    empty=st.booleans(),
    silent=st.booleans(),
    from_index=U16,
    times=U32,
    manufacturer_id=st.just(HUAWEI) | st.integers(0, 0xFFFFFF),
    total=st.none() | U16,
    next_total=st.none() | U16,
    label_code=U8,
    label_part=st.integers(1, 63),
)
STATES = st.builds(BmcState, ALARMS, LABELS, LABELS, st.integers(1, 16), FAULTS)


@given(STATES)
def test_the_alarm_file_loses_nothing(state):
    assert parse_alarm_file(format_alarm_file(state)) == state


@given(ALARMS, st.integers(1, 16))
def test_pages_have_every_alarm_once(alarms, size):
    """Whatever the page size, following the counts leads through all that match, in order."""
    state, seen = BmcState(alarms, page=size), []
    while True:
        told = page(state, index=len(seen), severities=0x0F)
        assert (told[4] | told[5] << 8, len(told)) == (len(alarms), 8 + 15 * told[6])
        if not told[6]:
            break
        seen += [told[8 + 15 * n :][:15] for n in range(told[6])]
    assert [int.from_bytes(record[:4], "little") for record in seen] == [alarm.code for alarm in alarms]


def test_labels_are_printable():
    assert check_label("") == ""
    for text in ("é", "a\0"):
        with pytest.raises(ValueError):
            check_label(text)
