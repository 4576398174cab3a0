"""Any text is a table or a TableError, whichever parser PyYAML has."""

from unittest.mock import patch

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.errors import TableError
from nodeagent.policy import table_yaml
from nodeagent.policy.table import FaultTable, lint, load_table
from nodeagent.policy.vocabulary import Vocabulary, load_vocabulary

PARSERS = [each for each in (getattr(yaml, "CSafeLoader", None), yaml.SafeLoader) if each is not None]
WORDS = [
    "version", "layer", "builtin", "site", "defaults", "unknown", "faults", "suppress", "code", "level", "name",
    "en", "zh", "by_severity", "major", "SeparateNPU", "RestartNPU", '"80E01801"', '"81078603"', "80E21007", "null",
    "chips", "until", "reason", "2027-01-31", "all", "aliases", "twins", "plane", "chip", "kind", "once", "refs",
    "states", "sensors", "threshold", "id", '"0x70"', "vocabulary", "blocks",
]  # fmt: skip
MARKS = [": ", "\n", "\n  - ", "\n    ", "[", "]", "{", "}", ", ", "'", '"', "&a ", "*a", "!!str ", "|\n ", "# ",
         "---\n", "%YAML 9.9\n", "\\x", "? ", "\t", "\x00", "\ud800", "\ufeff", "\x85",
         "\u2028", "é", "\U0001f600"]  # fmt: skip

yaml_like = st.lists(st.sampled_from(WORDS + MARKS), max_size=40).map("".join)
any_text = st.one_of(st.text(max_size=200), yaml_like)

scalars = st.one_of(st.sampled_from(WORDS), st.text(max_size=8), st.integers(), st.none(), st.booleans())
trees = st.recursive(
    scalars,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.sampled_from(WORDS), children, max_size=4),
    max_leaves=20,
)
documents = st.dictionaries(
    st.sampled_from(["version", "layer", "defaults", "unknown", "faults", "suppress"]), trees, max_size=4
).map(lambda tree: yaml.safe_dump(tree, allow_unicode=True))


@pytest.mark.parametrize("parser", PARSERS)
@settings(max_examples=300, deadline=None)
@given(text=st.one_of(any_text, documents))
def test_any_text_is_a_table_or_a_table_error(parser: type, text: str) -> None:
    with patch.object(table_yaml, "_PARSER", parser):
        refused = any(finding.serious for finding in lint("f", text))
        sentence = ""
        try:
            table, _ = load_table([("f", text)])
        except TableError as error:
            sentence = error.sentence
        else:
            assert isinstance(table, FaultTable)
    assert refused == bool(sentence)
    assert not refused or sentence.startswith("f:")
    assert "\n" not in sentence
    sentence.encode()


@pytest.mark.parametrize("parser", PARSERS)
@settings(max_examples=200, deadline=None)
@given(text=any_text)
def test_any_text_is_a_vocabulary_or_a_table_error(parser: type, text: str) -> None:
    with patch.object(table_yaml, "_PARSER", parser):
        sentence = ""
        try:
            assert isinstance(load_vocabulary("f", text), Vocabulary)
        except TableError as error:
            sentence = error.sentence
    assert "\n" not in sentence


@settings(max_examples=300, deadline=None)
@given(code=st.integers(min_value=0, max_value=0xFFFFFFFFFF))
def test_every_number_can_be_described_and_levelled(code: int) -> None:
    vocabulary = load_vocabulary("f", "vocabulary: 1\n")
    description = vocabulary.describe(code)
    assert description.name.en
    assert description.name.zh
    table, _ = load_table([])
    assert table.level_of(code, None).known is False
    assert int(table.text_of(code), 16) == code
