"""Our alarm poll on both ways: the same parser gives the same result, and the same errors (node-faults 3, 10, 19)."""

import pytest
from kit.alarms import CPU_1, MEMORY_7, SYSTEM, WORKED_PAGE, many_alarms
from kit.bmc_simulator import BmcSimulator
from kit.ipmi_ways import Way, failure

from nodeagent.core.alarms import Alarm
from nodeagent.core.errors import IpmiError
from nodeagent.drivers.ipmi_alarms import poll_alarms


class Recorder:
    """Keeps what goes to the BMC and comes back."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self.indices: list[str] = []
        self.lengths: list[int] = []

    def raw(self, netfn: int, command: int, data: bytes) -> bytes:
        """Pass it on."""
        answer = self._way.raw(netfn, command, data)
        self.indices.append(data[5:7].hex(" "))
        self.lengths.append(len(answer))
        return answer

    def poll(self) -> tuple[Alarm, ...]:
        """The present alarms."""
        return poll_alarms(self.raw)


def test_alarms_come_and_go(bmc: BmcSimulator, way: Way) -> None:
    assert way.poll() == ()
    bmc.say([CPU_1])
    assert way.poll() == (CPU_1,)
    bmc.say(WORKED_PAGE)
    assert way.poll() == WORKED_PAGE
    bmc.say([MEMORY_7, SYSTEM])
    assert way.poll() == (MEMORY_7, SYSTEM)
    bmc.say()
    assert way.poll() == ()


@pytest.mark.parametrize("size", [1, 12, 16])
@pytest.mark.parametrize("count", [1, 16, 17, 33, 300])
def test_every_alarm_of_every_page(bmc: BmcSimulator, way: Way, count: int, size: int) -> None:
    bmc.say(many_alarms(count), page=size)
    assert way.poll() == many_alarms(count)


def test_t10_paging(bmc: BmcSimulator, way: Way) -> None:
    bmc.say(many_alarms(33), page=12)
    recorder = Recorder(way)
    assert len(recorder.poll()) == 33
    assert recorder.indices == ["00 00", "0c 00", "18 00"]
    assert recorder.lengths == [188, 188, 143]


def test_t10_a_full_last_page_is_enough(bmc: BmcSimulator, way: Way) -> None:
    bmc.say(many_alarms(16))
    recorder = Recorder(way)
    assert len(recorder.poll()) == 16
    assert recorder.indices == ["00 00"]


def test_normal_ones_are_not_asked_for(bmc: BmcSimulator, way: Way) -> None:
    bmc.say([Alarm(0x02000001, 0, 0, 0x02, 3), CPU_1])
    assert way.poll() == (CPU_1,)


def test_t11_a_code_that_passes_is_asked_again(bmc: BmcSimulator, way: Way) -> None:
    bmc.say(many_alarms(33), page=12, cc=0xC3, from_index=12, times=1)
    assert way.poll() == many_alarms(33)


@pytest.mark.parametrize(
    ("trouble", "kind", "words"),
    [
        ({"cc": 0xC3}, "CompletionError", "completion code C3"),
        ({"cut": 1}, "DamagedAnswerError", "has 179 bytes of alarms, not 180"),
        ({"count": 13}, "DamagedAnswerError", "has 180 bytes of alarms, not 195"),
        ({"empty": 1}, "DamagedAnswerError", "tells none after the first 12"),
        ({"cc": 0xC1}, "CommandNotSupportedError", "completion code C1"),
        ({"cc": 0xD4}, "CommandNotSupportedError", "completion code D4"),
    ],
)
def test_t11_trouble_on_page_two(bmc: BmcSimulator, way: Way, trouble: dict[str, int], kind: str, words: str) -> None:
    bmc.say(many_alarms(33), page=12, from_index=12, **trouble)
    found, sentence = failure(way)
    assert found == kind
    assert words in sentence
    bmc.say(many_alarms(33), page=12)
    assert way.poll() == many_alarms(33)


def test_t11_another_manufacturer(bmc: BmcSimulator, way: Way) -> None:
    bmc.say(WORKED_PAGE, mid=0)
    kind, sentence = failure(way)
    assert kind == "DamagedAnswerError"
    assert "manufacturer id 00 00 00" in sentence


@pytest.mark.parametrize("total", [2, 4])
def test_a_total_that_is_not_the_sum(bmc: BmcSimulator, way: Way, total: int) -> None:
    bmc.say(WORKED_PAGE, total=total)
    kind, _ = failure(way)
    assert kind == "DamagedAnswerError"


def test_t11_a_total_that_shrinks_restarts_the_poll(bmc: BmcSimulator, way: Way) -> None:
    bmc.say(many_alarms(33), page=12, shrink=20)
    recorder = Recorder(way)
    assert recorder.poll() == many_alarms(20)
    assert recorder.indices == ["00 00", "0c 00", "00 00", "0c 00"]


def test_a_total_that_never_settles_is_an_error(bmc: BmcSimulator, way: Way) -> None:
    bmc.say(many_alarms(33), page=12, next_total=20)
    kind, sentence = failure(way)
    assert kind == "IpmiError"
    assert "changed during each" in sentence


@pytest.mark.parametrize("part", [1, 8, 255])
def test_t23_the_serial_number(bmc: BmcSimulator, way: Way, part: int) -> None:
    bmc.say(serial="210200ABCDEF", vendor="Huawei", label_part=part)
    assert way.serial_number() == "210200ABCDEF"


def test_t23_the_manufacturer_is_no_serial_number(bmc: BmcSimulator, way: Way) -> None:
    bmc.say(vendor="Huawei")
    assert way.serial_number() == ""


def test_t23_no_label(bmc: BmcSimulator, way: Way) -> None:
    bmc.say(label_cc=0xC1)
    with pytest.raises(IpmiError, match="completion code C1"):
        way.serial_number()
