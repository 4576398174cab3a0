"""The part of `nodeagent explain` about node faults."""

from collections.abc import Iterator
from typing import Any

from nodeagent.core.alarms import device_type
from nodeagent.policy.node_document import node_code_text
from nodeagent.policy.node_table import NodeTable

Pair = tuple[str, str]
_UNLISTED = {
    "en": "in no table: such an alarm is counted and logged, and published nowhere",
    "zh": "不在故障表中：此类告警只计数并记录日志，不会上报",
}


def node_code_of(text: str) -> str | None:
    """The code that a text may mean: eight digits, leading zeros may be missing; None when it is no alarm code."""
    bare = "".join(text.split()).upper().removeprefix("0X")
    try:
        int(bare, 16)
    except ValueError:
        return None
    return node_code_text(bare.zfill(8))


def node_facts(text: str, table: NodeTable) -> dict[str, Any]:
    """All that is known of a code; absent facts are null. text: eight upper-case hex digits."""
    record, level = table.lookup(text), table.level_of(text)
    device = device_type(int(text[:2], 16))
    return {
        "domain": "node",
        "code": text,
        "known": level is not None,
        "name": {
            "en": (record.name_en if record else "") or f"{device} alarm {text}: text not known",
            "zh": (record.name_zh if record else "") or f"{device} 告警 {text}：告警文本未知",
        },
        "level": level.text if level is not None else None,
        "node_status": level.status if level is not None else None,
        "level_at": str(record.level_place) if record is not None and level is not None else None,
        "device_type": device,
        "advice": {"en": record.advice_en, "zh": record.advice_zh} if record and record.advice_en else None,
        "notes": record.notes if record and record.notes else None,
        "name_basis": record.name_basis if record and record.name_basis else None,
    }


def node_rows(facts: dict[str, Any]) -> Iterator[tuple[Pair, str | dict[str, str]]]:
    """Label in both languages and value of every fact that is present."""
    if facts["level"] is None:
        yield ("level", "级别"), _UNLISTED
    else:
        yield ("level", "级别"), f"{facts['level']} -> node {facts['node_status']}"
        yield ("said by", "依据"), f"listed as {facts['level']} at {facts['level_at']}"
    yield (
        ("device", "设备"),
        {"en": f"{facts['device_type']}, by the code", "zh": f"{facts['device_type']}（由告警码得出）"},
    )
    if facts["known"]:
        yield ("effect", "影响"), {"en": "the whole node, no single chip", "zh": "整个节点，不针对单个芯片"}
    if facts["advice"]:
        yield ("advice", "处理建议"), facts["advice"]
    if facts["notes"]:
        yield ("notes", "备注"), facts["notes"]
    if facts["name_basis"]:
        yield ("name from", "名称来源"), facts["name_basis"]
