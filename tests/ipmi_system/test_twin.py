"""The pretended board of a mock node (nodeagent.mock.bmc) says byte for byte what the simulator says of one file."""

import pytest
from kit.alarms import WORKED_PAGE, many_alarms
from kit.bmc_simulator import BmcSimulator, alarm_file
from kit.ipmi_ways import LanWay

from nodeagent.mock.alarm_file import parse_alarm_file
from nodeagent.mock.bmc import answer

ALARMS = [
    bytes.fromhex(data)
    for data in (
        "DB 07 00 40 00 00 00 0E FF",
        "DB 07 00 40 00 0C 00 0E FF",
        "DB 07 00 40 00 20 00 0E FF",
        "DB 07 00 40 00 2C 01 0E FF",
        "DB 07 00 40 00 00 00 08 FF",
        "DB 07 00 40 00 00 00 0F 01",
        "DB 07 00 40 00 00 00 0E",
        "DC 07 00 40 00 00 00 0E FF",
        "DB 07 00 41 00 00 00 0E FF",
    )
]
LABELS = [
    bytes.fromhex(data)
    for data in ("05 00 03 04 00 FF", "05 00 03 04 08 FF", "05 00 03 00 00 FF", "05 00 03 01 00 FF", "05 00 03 04 00")
]
FILES = {
    "nothing": "",
    "the worked page": alarm_file(WORKED_PAGE, serial="210200ABCDEF", vendor="Huawei"),
    "pages": alarm_file(many_alarms(33), page=12),
    "many": alarm_file(many_alarms(301)),
    "a label in parts": alarm_file(serial="210200ABCDEF", label_part=8),
    "no label": alarm_file(label_cc=0xC1),
    "cc": alarm_file(many_alarms(33), page=12, cc=0xC3, from_index=12),
    "cut": alarm_file(many_alarms(33), page=12, cut=1, from_index=12),
    "mid": alarm_file(WORKED_PAGE, mid=0x000102),
    "count": alarm_file(many_alarms(33), page=12, count=13, from_index=12),
    "total": alarm_file(WORKED_PAGE, total=9),
    "next_total": alarm_file(many_alarms(33), page=12, next_total=20),
    "empty": alarm_file(many_alarms(33), page=12, empty=1, from_index=12),
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_both_say_the_same(bmc: BmcSimulator, lan: LanWay, text: str) -> None:
    bmc.write(text)
    state = parse_alarm_file(text)
    for command, requests in ((0x94, ALARMS), (0x90, LABELS)):
        for data in requests:
            assert lan.raw(0x30, command, data) == answer(state, 0x30, command, data), data.hex(" ")
    assert "not understood" not in bmc.words()
