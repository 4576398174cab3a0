"""The shipped tables against the reference lists: every code, its level, domain, plane, severity and kind."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from nodeagent.core.files import SHIPPED_TABLES, read_shipped
from nodeagent.core.levels import Level, Plane, Severity, plane_of
from nodeagent.policy.table import FaultTable, load_table
from nodeagent.policy.table_records import Kind

DATA = Path(__file__).parent / "data" / "fault_codes"
SEVERITIES = {"": None, "notice": Severity.NOTICE, "minor": Severity.MINOR, "major": Severity.MAJOR} | {
    "critical": Severity.CRITICAL
}


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="module")
def table() -> FaultTable:
    loaded, warnings = load_table([read_shipped(name) for name in SHIPPED_TABLES])
    assert warnings == ()
    return loaded


def test_all_802_codes_have_the_level_of_the_default_file(table: FaultTable) -> None:
    wanted = {row["code"]: row["level"] for row in rows("levels.tsv") if row["effective"] == "yes"}
    assert len(wanted) == 802
    for text, level in wanted.items():
        decision = table.level_of(int(text, 16), Severity.CRITICAL)
        assert (text, decision.level.text, decision.known) == (text, level, True)
        assert table.text_of(int(text, 16)) == text
    levelled = {record.text for record in table.records() if record.level is not None}
    assert levelled == set(wanted)


def test_counts_per_level(table: FaultTable) -> None:
    """fault-catalogue 8.2, the row chip + link."""
    counts = Counter(record.level for record in table.records())
    assert counts == {
        Level.NOT_HANDLE: 132,
        Level.SUB_HEALTH: 13,
        Level.RESTART_REQUEST: 33,
        Level.RESTART_BUSINESS: 24,
        Level.FREE_RESTART: 23,
        Level.RESTART_NPU: 162,
        Level.PRE_SEPARATE: 200,
        Level.SEPARATE: 215,
        None: 4,
    }


@pytest.mark.parametrize("row", rows("catalogue.tsv"), ids=lambda row: str(row["code"]))
def test_every_catalogue_row_comes_back_from_the_loader(table: FaultTable, row: dict[str, str]) -> None:
    record = table.lookup(int(row["code"], 16))
    assert record is not None
    assert record.text == row["code"]
    assert (record.level.text if record.level is not None else "") == row["default_level"]
    assert record.domain.value == row["domain"]
    assert record.plane.value == row["plane"] == plane_of(record.code).value
    assert record.severity is SEVERITIES[row["severity"]]
    assert record.category == row["category"]
    assert record.name_basis == row["name_basis"]
    # An undocumented kind counts as occur and recover (fault-catalogue 1).
    assert record.kind is {"once": Kind.ONCE, "recover": Kind.RECOVER}.get(row["event_kind"], Kind.OCCUR_RECOVER)


def test_tables_hold_nothing_beyond_the_catalogue(table: FaultTable) -> None:
    assert {record.text for record in table.records()} == {row["code"] for row in rows("catalogue.tsv")}


def test_a_code_in_two_lists_has_the_more_serious_level(table: FaultTable) -> None:
    """W30, first half: A2301001 stands under RestartBusiness and SeparateNPU."""
    assert table.level_of(0xA2301001, None).level is Level.SEPARATE


def test_a_code_listed_twice_is_one_record(table: FaultTable) -> None:
    assert [record.text for record in table.records()].count("B4060011") == 1
    record = table.lookup(0xB4060011)
    assert record is not None
    assert (record.level, record.kind) == (Level.RESTART_BUSINESS, Kind.ONCE)


def test_described_codes_without_a_level_follow_the_rule_for_unlisted_codes(table: FaultTable) -> None:
    """fault-catalogue 11, item 23."""
    for code in (0x80A84E00, 0x81A38605, 0x81AB8000, 0x81B78005):
        assert table.lookup(code) is not None
        decision = table.level_of(code, Severity.MAJOR)
        assert (decision.level, decision.known) == (Level.SEPARATE, False)
        assert table.level_of(code, None).level is Level.NOT_HANDLE


def test_planes_by_number(table: FaultTable) -> None:
    """fault-catalogue 3.7."""
    network = {record.text for record in table.records() if record.plane is Plane.NETWORK}
    hyper = {record.text for record in table.records() if record.plane is Plane.HYPERPLANE}
    assert network == {"81078603", "81078607", "110000002", "110001024"}
    assert hyper == {"81B18603", "020001002", "020000002"}


def test_leading_zeros_come_from_the_table(table: FaultTable) -> None:
    """W31, second half: with the default table and without it."""
    assert table.text_of(0x20001002) == "020001002"
    empty, _ = load_table([])
    assert empty.text_of(0x20001002) == "20001002"
