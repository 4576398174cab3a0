"""YAML of the directory and stdout targets."""

import io
from typing import Any

import pytest
import yaml
from contract.data.device_info.cases import VIEWS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.publish.manifest import from_yaml, to_yaml
from nodeagent.publish.stdout import StdoutTarget
from nodeagent.render.device_info import config_map, render_device_info

any_pace = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
OBJECT = config_map("worker-1", render_device_info(VIEWS["A4"](), 1760000000))
# The words that YAML reads as something else, and the characters it treats as ends of lines.
TRAPS = st.sampled_from(["true", "null", "no", "1e3", "~", "", " a", "a: b", "- a", "'", "a\n\nb\n", "\x85", "\u2028"])
TEXT = st.text(st.characters(codec="utf-8")) | TRAPS


@any_pace
@given(st.dictionaries(TEXT, TEXT | st.dictionaries(TEXT, TEXT, max_size=3), max_size=4))
def test_the_text_loads_to_exactly_the_same_object(obj: dict[str, Any]) -> None:
    text = to_yaml(obj)
    assert yaml.safe_load(text) == obj
    assert from_yaml(text) == obj


def test_json_stands_on_one_line_in_the_order_of_the_object() -> None:
    lines = to_yaml(OBJECT).splitlines()
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == [
        "apiVersion",
        "kind",
        "metadata",
        "data",
    ]
    assert sum("Ascend910-Fault" in line for line in lines) == 1


@pytest.mark.parametrize("text", ["", "a", "- a", "{", "a: &b [*b", "!!python/object:os.system {}", "\x00", "? [a]: b"])
def test_foreign_text_is_a_read_back_error(text: str) -> None:
    with pytest.raises(ReadBackError):
        from_yaml(text)


def test_stdout_prints_documents_and_remembers_nothing() -> None:
    stream = io.StringIO()
    target = StdoutTarget(stream)
    target.write(OBJECT)
    target.write(OBJECT)
    assert list(yaml.safe_load_all(stream.getvalue())) == [OBJECT, OBJECT]
    target.delete("kube-system", "any")
    assert list(yaml.safe_load_all(stream.getvalue())) == [OBJECT, OBJECT, None]
    assert "# kube-system/any is deleted" in stream.getvalue()
    assert target.read("kube-system", "any") is None
    assert target.describe() == "standard output"


def test_closed_stdout_is_a_publish_error() -> None:
    stream = io.StringIO()
    stream.close()
    with pytest.raises(PublishError):
        StdoutTarget(stream).write(OBJECT)
