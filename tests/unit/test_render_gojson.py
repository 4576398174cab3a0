"""Go's JSON against a reference made character by character from device-info 5.1."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeagent.render.contract_text import canonical, parse
from nodeagent.render.gojson import check_code, go_json, go_map

any_pace = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from('<>&"\\/\n\r\t\x00\x1f\x7f\u2028\u2029\U0001f600'))
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


def reference(text: str) -> str:
    """The table of the sheet, one character at a time."""
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
    out = ""
    for character in text:
        if character in short:
            out += short[character]
        elif character in "<>&\u2028\u2029" or ord(character) < 0x20:
            out += f"\\u{ord(character):04x}"
        else:
            out += character
    return f'"{out}"'


@any_pace
@given(TEXT)
def test_every_text_is_escaped_as_go_does(text: str) -> None:
    assert go_json(text) == reference(text)


@any_pace
@given(VALUE)
def test_nothing_is_lost(value: Any) -> None:
    assert json.loads(go_json(value)) == value


@any_pace
@given(VALUE)
def test_the_contract_check_has_the_same_idea_of_the_form(value: Any) -> None:
    text = go_json(value)
    if "\\b" not in text and "\\f" not in text:
        assert canonical(parse("key", text)) == text


@any_pace
@given(st.dictionaries(TEXT, st.integers()))
def test_maps_are_sorted_by_the_bytes_of_their_keys(mapping: dict[str, int]) -> None:
    ordered = go_map(mapping)
    assert ordered == mapping
    assert [key.encode() for key in ordered] == sorted(key.encode() for key in mapping)


@any_pace
@given(st.dictionaries(TEXT, TEXT), st.integers(0, 2**40))
def test_the_digest_does_not_depend_on_the_order_of_the_list(mapping: dict[str, str], update_time_s: int) -> None:
    backwards = dict(reversed(mapping.items()))
    assert check_code(mapping, update_time_s) == check_code(backwards, update_time_s)
    assert check_code(mapping, update_time_s) != check_code(mapping, update_time_s + 1)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        go_json([number])
