"""docs/migration.md names what there is: kinds of differences, settings, commands."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from nodeagent.cli.main import main
from nodeagent.core.settings import Settings
from nodeagent.daemon.metrics import DECLARED
from nodeagent.render.difference import Kind

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")


def test_every_kind_of_difference_is_explained() -> None:
    section = PAGE.split("### Kinds of differences")[1].split("\n## ")[0]
    named = [
        name for row in re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    assert sorted(named) == sorted(kind.value for kind in Kind if kind is not Kind.VOLATILE)


def test_every_setting_that_is_named_exists() -> None:
    areas = {area.name: {each.name for each in fields(area.type)} for area in fields(Settings)}  # type: ignore[arg-type]
    named = re.findall(r"`(" + "|".join(areas) + r")\.(\w+)", PAGE)
    assert len(named) > 10
    for area, key in named:
        assert key in areas[area], f"{area}.{key}"


def test_every_metric_that_is_named_exists() -> None:
    named = re.findall(r"nodeagent_(shadow_\w+)", PAGE)
    assert named
    assert set(named) <= set(DECLARED)


@pytest.mark.parametrize("line", sorted(set(re.findall(r"nodeagent ((?:shadow diff|cleanup)[^`#\n]*)", PAGE))))
def test_every_command_that_is_named_is_understood(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its words: nothing is asked."""
    asked = []
    for module in ("shadow", "cleanup"):
        monkeypatch.setattr(f"nodeagent.cli.{module}.run", lambda arguments: asked.append(arguments) or 0)
    assert main(line.split()) == 0
    assert len(asked) == 1
