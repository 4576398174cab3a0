"""Names composed from words for codes that no table lists, English and Chinese.

The words are data (`fault_codes/vocabulary.yaml`; fault-catalogue 3.2, 3.3, 3.5, 13). A name composed from bit
fields is as good as the bits and no better: where they give no usable meaning, the name says so.
"""

from dataclasses import dataclass

from nodeagent.core.levels import Severity
from nodeagent.policy.table_records import Kind
from nodeagent.policy.table_words import WordLists, Words, read_words
from nodeagent.policy.unknown import BlackBoxCode, HealthEvent, Side, decode

_RAS_SENSOR = 0xC0
_SERVICE_CLASS = 6
_PRODUCT_CLASS = 7
_EXCEPTION_MODULES = (0x0C, 0x17)  # LPM and LPFW/IMU


@dataclass(frozen=True, slots=True)
class Description:
    """What a code tells by itself.

    fields: its bit fields, None for a number that has none. name: composed. opaque: the name says that the
    meaning is not published. block, sensor, state: the words behind the fields, None where there are none.
    severity: the driver's default for the sensor's state, or the priority of a black-box code; None if unknown.
    """

    fields: HealthEvent | BlackBoxCode | None
    name: Words
    opaque: bool
    block: Words | None = None
    sensor: Words | None = None
    state: Words | None = None
    severity: Severity | None = None


class Vocabulary:
    """All words, loaded. Made by `load_vocabulary`."""

    def __init__(self, lists: WordLists) -> None:
        self._lists = lists

    def word(self, section: str, name: str) -> Words | None:
        """What a word of the fault tables means; None when the vocabulary lacks it.

        section: kinds, severities, planes, levels, categories or name_bases.
        """
        return self._lists.worded[section].get(name)

    def describe(self, code: int) -> Description:
        """Decoded fields and composed name of any number (fault-catalogue 3.1, 3.5)."""
        fields = decode(code)
        if isinstance(fields, HealthEvent):
            return self._event(fields)
        if isinstance(fields, BlackBoxCode):
            return self._black_box(fields)
        name = Words(f"Code {code:X}: meaning not published", f"故障码 {code:X}：含义未公开")
        return Description(None, name, opaque=True)

    def _event(self, fields: HealthEvent) -> Description:
        block, named = self._block(fields)
        listed = self._lists.sensors.get(fields.sensor)
        sensor = listed.words if listed else None
        state = listed.states.get(fields.state) if listed else None
        # States of product-defined objects are numbered by the product; the generic meanings need not hold.
        meant = None if fields.object_class == _PRODUCT_CLASS else state
        if sensor is None or meant is None:
            sensor_en = f"{sensor.en} sensor" if sensor else f"sensor 0x{fields.sensor:02X}"
            sensor_zh = joined(sensor.zh, "传感器") if sensor else f"传感器 0x{fields.sensor:02X}"
            name = Words(
                f"{block.en}, {sensor_en}, state 0x{fields.state:02X}: meaning not published",
                f"{block.zh}，{sensor_zh}，状态 0x{fields.state:02X}：含义未公开",
            )
        elif not named:
            name = Words(
                f"{block.en}: {meant.en} (which block this is was not published)",
                f"{block.zh}：{meant.zh}（该模块含义未公开）",
            )
        elif listed and listed.threshold:
            name = Words(f"{block.en} {sensor.en} {meant.en}", joined(joined(block.zh, sensor.zh), meant.zh))
        else:
            name = Words(f"{block.en} {meant.en}", joined(block.zh, meant.zh))
        if fields.side is Side.HOST:
            name = Words(f"{name.en} (reported by the host)", f"{name.zh}（主机侧上报）")
        opaque = meant is None or not named
        return Description(fields, name, opaque, block, sensor, meant, meant.severity if meant else None)

    def _block(self, fields: HealthEvent) -> tuple[Words, bool]:
        """Name of the block, and whether it is known what the block is."""
        block = self._lists.numbered["blocks"].get(fields.node)
        if block is not None:
            return (block.ras or block) if fields.sensor == _RAS_SENSOR else block, True
        classes = self._lists.numbered["classes"]
        generic = classes.get(fields.object_class) or classes.get(0) or Words("Object", "对象")
        number = f"0x{fields.node:02X}"
        # A service without a name is still known to be a process, so that its state can be read.
        known = fields.object_class == _SERVICE_CLASS
        return Words(f"{generic.en} {number}", joined(generic.zh, number)), known

    def _black_box(self, fields: BlackBoxCode) -> Description:
        module = self._lists.numbered["black_box_modules"].get(fields.module)
        number = f"0x{fields.module:02X}"
        block = module or Words(f"Module {number}", f"模块 {number}")
        exception = self._lists.numbered["exception_types"].get(fields.exception_type)
        if fields.module in _EXCEPTION_MODULES and exception is not None:
            index = f"0x{fields.exception_index:02X}"
            name = Words(
                f"{block.en} {exception.en} {index}",
                joined(joined(block.zh, exception.zh), index),
            )
        else:
            detail = f"0x{fields.detail:05X}"
            name = Words(f"{block.en} exception, detail {detail}", f"{joined(block.zh, '异常')}，详细码 {detail}")
        if fields.kind is Kind.RECOVER:
            name = Words(f"{name.en}, cleared", f"{name.zh}，已恢复")
        elif fields.kind is Kind.ONCE:
            name = Words(f"{name.en}, reported once", f"{name.zh}，一次性上报")
        return Description(fields, name, module is None, block, severity=fields.severity)


def load_vocabulary(label: str, text: str) -> Vocabulary:
    """The vocabulary from its YAML text. label: file name for messages.

    Raises BadTableError with every problem found.
    """
    return Vocabulary(read_words(label, text))


def joined(left: str, right: str) -> str:
    """Two pieces of Chinese text, with a blank where a Latin letter or digit meets Chinese."""
    if not left or not right:
        return left + right
    latin = left[-1].isascii() or right[0].isascii()
    full_width_mark = left[-1] in "），：" or right[0] in "（，："
    return f"{left} {right}" if latin and not full_width_mark else left + right
