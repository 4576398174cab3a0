"""The shipped texts: both languages everywhere, opaque codes say so, twins know each other, words are complete."""

import re

import pytest

from nodeagent.core.files import SHIPPED_TABLES, VOCABULARY, read_shipped
from nodeagent.core.levels import Level, Plane, Severity
from nodeagent.policy.table import FaultTable, load_table
from nodeagent.policy.table_draft import CATEGORIES, NAME_BASES
from nodeagent.policy.table_records import FaultRecord, Kind
from nodeagent.policy.unknown import HealthEvent, decode
from nodeagent.policy.vocabulary import Vocabulary, load_vocabulary

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def shipped() -> FaultTable:
    return load_table([read_shipped(name) for name in SHIPPED_TABLES])[0]


RECORDS = shipped().records()


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_vocabulary(*read_shipped(VOCABULARY))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record.text))
def test_names_and_advice_in_both_languages(record: FaultRecord) -> None:
    assert record.name_en
    assert record.name_en.strip() == record.name_en
    assert not CHINESE.search(record.name_en)
    assert CHINESE.search(record.name_zh)
    assert bool(record.advice_en) == bool(record.advice_zh)
    assert not record.advice_zh or CHINESE.search(record.advice_zh)
    assert not CHINESE.search(record.advice_en)


@pytest.mark.parametrize(
    "record", [record for record in RECORDS if record.name_basis == "opaque"], ids=lambda record: str(record.text)
)
def test_an_opaque_code_says_that_it_is_opaque(record: FaultRecord) -> None:
    assert "not published" in record.name_en
    assert "未公开" in record.name_zh


def test_product_defined_codes_name_object_sensor_and_state() -> None:
    record = shipped().lookup(0x8F18024E)
    assert record is not None
    assert record.name_en == "Product-defined object 0x78C, temperature sensor, state 0x4E: meaning not published"
    assert record.name_zh == "产品自定义对象 0x78C，温度传感器，状态 0x4E：含义未公开"


def test_twins_name_each_other() -> None:
    """fault-catalogue 3.5: eleven pairs."""
    table = shipped()
    pairs = set()
    for record in RECORDS:
        for twin in record.twins:
            other = table.lookup(twin)
            assert other is not None
            assert record.code in other.twins
            pairs.add(frozenset((record.code, twin)))
    assert len(pairs) == 11
    assert frozenset((0x80E01801, 0xA8028802)) in pairs


def test_severities_agree_with_the_vocabulary(vocabulary: Vocabulary) -> None:
    """fault-catalogue 3.3: the table's severity is the default of the (sensor, state) pair."""
    for record in RECORDS:
        if decode(record.code) is not None:
            assert (record.text, vocabulary.describe(record.code).severity) == (record.text, record.severity)


def test_the_vocabulary_knows_what_is_opaque(vocabulary: Vocabulary) -> None:
    for record in RECORDS:
        if record.name_basis == "opaque":
            assert vocabulary.describe(record.code).opaque, record.text
        elif isinstance(decode(record.code), HealthEvent):
            assert not vocabulary.describe(record.code).opaque, record.text


def test_every_word_of_the_records_is_explained(vocabulary: Vocabulary) -> None:
    sections = {
        "levels": [level.text for level in Level if level is not Level.NORMAL],
        "categories": list(CATEGORIES),
        "name_bases": list(NAME_BASES),
        "kinds": [kind.value for kind in Kind],
        "planes": [plane.value for plane in Plane],
        "severities": [severity.name.lower() for severity in Severity],
    }
    for section, names in sections.items():
        for name in names:
            words = vocabulary.word(section, name)
            assert words is not None, f"{section}: {name}"
            assert words.en
            assert CHINESE.search(words.zh)
