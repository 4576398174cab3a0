"""docs/events.md has every reason and every node condition."""

import re
from pathlib import Path

from nodeagent.core.settings import EventSettings
from nodeagent.core.telemetry import EventReason
from nodeagent.publish.conditions import ConditionType
from nodeagent.publish.event_book import ABOUT_CHIPS

TEXT = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Cells of the first table below a heading, without its head."""
    lines = TEXT.split(f"{heading}\n", 1)[1].splitlines()
    table = [line for line in re.split(r"^#", "\n".join(lines), maxsplit=1, flags=re.M)[0].splitlines() if "|" in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def test_every_reason_has_a_meaning_and_a_next_step() -> None:
    chips, own = rows("### About chips"), rows("### About nodeagent itself")
    assert {row[0] for row in chips} == {f"`{reason.value}`" for reason in ABOUT_CHIPS}
    assert {row[0] for row in own} == {f"`{reason.value}`" for reason in set(EventReason) - ABOUT_CHIPS}
    assert len(chips) + len(own) == len(EventReason), "each once"
    for row in chips + own:
        assert len(row) == 4
        assert row[1] in ("W", "")
        assert row[2], "a meaning"
        assert row[3], "a next step"


def test_every_condition_is_explained() -> None:
    assert [row[0] for row in rows("## Node conditions")] == [f"`{kind.value}`" for kind in ConditionType]


def test_the_limits_on_the_page_are_the_defaults() -> None:
    limits = {row[0]: row[1] for row in rows("## How many")}
    defaults = EventSettings()
    assert limits["in the long run"] == f"`events.per_minute`, {defaults.per_minute}"
    assert limits["at once after quiet"].startswith(f"`events.burst`, {defaults.burst};")
