"""The part of `nodeagent explain` about LingQu switches."""

from collections.abc import Iterator
from typing import Any

from nodeagent.core.codes import parse_code
from nodeagent.core.switch import NO_FAULT_ID
from nodeagent.core.switch_codes import OLD_PORT_ALARM, PORT_ALARM, SwitchCode, parse_switch_code
from nodeagent.policy.switch_judge import PLANE_PORTS
from nodeagent.policy.switch_table import SwitchTable

_PEERS = {
    "cpu": ("port towards a CPU", "连接 CPU 的端口"),
    "npu": ("port towards an NPU", "连接 NPU 的端口"),
    "L2": ("port towards an L2 switch", "连接 L2 交换芯片的端口"),
    "na": ("whole chip, or other end not said", "整芯片，或未说明对端"),
}
Pair = tuple[str, str]


def switch_codes_of(text: str, table: SwitchTable) -> list[SwitchCode]:
    """The codes that a text means: one, or for an alarm id all that the table has; none when it is no switch's."""
    if "," in text:
        try:
            return [parse_switch_code(text)]
        except ValueError:
            return []
    try:
        alarm_id = parse_code("".join(text.split()).removeprefix("[").removesuffix("]"))
    except ValueError:
        return []
    known = [parse_switch_code(each) for each in table.levels() if _can_be_parsed(each)]
    found = [code for code in known if code.alarm_id == alarm_id]
    if not found and alarm_id == OLD_PORT_ALARM and table.alias_old_ids:
        found = [code._replace(alarm_id=alarm_id) for code in known if code.alarm_id == PORT_ALARM]
    return found


def switch_facts(code: SwitchCode, table: SwitchTable) -> dict[str, Any]:
    """All that is known of a code; absent facts are null."""
    record, decision = table.lookup(code), table.level_of(code)
    return {
        "domain": "switch",
        "code": code.text,
        "known": decision.known,
        "name": {
            "en": (record.name_en if record else "") or f"Switch fault {code.text}: in no table",
            "zh": (record.name_zh if record else "") or f"交换芯片故障 {code.text}：不在故障表中",
        },
        "level": decision.level.text,
        "node_status": decision.level.status,
        "level_at": str(decision.place) if decision.known else None,
        "said_by": decision.reason,
        "twin": decision.twin or None,
        "alarm_id": f"0x{code.alarm_id:08x}",
        "fault_id": None if code.fault_id == NO_FAULT_ID else code.fault_id,
        "peer": code.peer,
        "advice": {"en": record.advice_en, "zh": record.advice_zh} if record and record.advice_en else None,
        "notes": record.notes if record and record.notes else None,
        "name_basis": record.name_basis if record and record.name_basis else None,
    }


def switch_rows(facts: dict[str, Any]) -> Iterator[tuple[Pair, str | dict[str, str]]]:
    """Label in both languages and value of every fact that is present."""
    yield ("level", "级别"), f"{facts['level']} -> node {facts['node_status']}"
    yield ("said by", "依据"), facts["said_by"]
    english, chinese = _PEERS[facts["peer"]]
    yield ("where", "位置"), {"en": f"LingQu switch, {english}", "zh": f"灵衢交换芯片，{chinese}"}
    yield ("effect", "影响"), {"en": "the whole node, no single chip", "zh": "整个节点，不针对单个芯片"}
    if facts["peer"] == "L2":
        text = f"{PLANE_PORTS} or more such ports of one switch: the L1-L2 plane is down, Separate"
        yield (
            ("plane", "平面"),
            {"en": text, "zh": f"同一芯片有 {PLANE_PORTS} 个及以上此类端口时，L1-L2 平面断开，级别为 Separate"},
        )
    if facts["advice"]:
        yield ("advice", "处理建议"), facts["advice"]
    if facts["notes"]:
        yield ("notes", "备注"), facts["notes"]
    if facts["name_basis"]:
        yield ("name from", "名称来源"), facts["name_basis"]


def _can_be_parsed(text: str) -> bool:
    try:
        parse_switch_code(text)
    except ValueError:
        return False
    return True
