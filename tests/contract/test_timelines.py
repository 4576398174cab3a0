"""docs/testing.md says which files test the timelines of node faults; it says what there is."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "testing.md"
TIMELINES = range(1, 25)
"""Those of node-faults 19."""
COLUMNS = (("unit", "contract"), ("component",), ("system", "ipmi_system", "cluster_system", "node_system"))


def files_of(row: int) -> list[str]:
    """The cells of a row: files with a test named after it, in each column."""
    named = re.compile(rf"def test_(?:t\d+_)*t{row}_")
    found = [path for path in sorted(TESTS.rglob("test_*.py")) if named.search(path.read_text(encoding="utf-8"))]
    cells = []
    for folders in COLUMNS:
        names = [path for folder in folders for path in found if path.relative_to(TESTS).parts[0] == folder]
        cells.append(", ".join(f"`{path.relative_to(TESTS).with_suffix('')}`" for path in names) or "-")
    return cells


def test_the_page_lists_the_tests_of_each_timeline() -> None:
    rows = re.findall(r"^\| T(\d+) [^|]*\| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(row): cells.split(" | ") for row, cells in rows} == {row: files_of(row) for row in TIMELINES}


def test_each_timeline_is_tested() -> None:
    assert [row for row in TIMELINES if files_of(row) == ["-"] * len(COLUMNS)] == []
