"""The shipped levels of node faults against the reference list (node-faults 7.1, its list of default codes)."""

import csv
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from nodeagent.core.alarms import NodeLevel, device_type
from nodeagent.policy.node_table import NodeTable
from nodeagent.sources.config_documents import shipped_nodes

DATA = Path(__file__).parent / "data" / "node_fault_levels.tsv"


def rows() -> list[dict[str, str]]:
    with DATA.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def table() -> NodeTable:
    return shipped_nodes().table


def test_exactly_the_59_codes_with_their_levels() -> None:
    levels = table().levels()
    assert {text: level.text for text, level in levels.items()} == {row["code"]: row["level"] for row in rows()}
    assert len(rows()) == len(levels) == len(table().records) == 59
    assert Counter(levels.values()) == {NodeLevel.NOT_HANDLE: 7, NodeLevel.PRE_SEPARATE: 51, NodeLevel.SEPARATE: 1}


def test_the_first_byte_tells_the_kind_of_device() -> None:
    for row in rows():
        assert device_type(int(row["code"][:2], 16)) == row["device_type"], row["code"]


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row["code"]))
def test_every_code_has_names_and_advice_in_both_languages(row: dict[str, str]) -> None:
    record = table().records[row["code"]]
    assert record.name_en.isascii()
    assert record.advice_en.isascii()
    assert not record.name_zh.isascii()
    assert not record.advice_zh.isascii()
    assert record.name_basis in ("docs", "opaque")
    if record.name_basis == "opaque":
        assert row["device_type"] in record.name_en
        assert row["code"] in record.name_en
        assert "text not known" in record.name_en
        assert "文本未知" in record.name_zh


def test_only_five_codes_have_no_known_text() -> None:
    opaque = {record.text for record in table().records.values() if record.name_basis == "opaque"}
    assert opaque == {"0100000D", "03000009", "0300000D", "03000011", "03000013"}
