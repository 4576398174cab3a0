"""Decoding of bit fields and names composed for codes that no table lists (fault-catalogue 3.1, 3.5)."""

import pytest

from nodeagent.core.files import VOCABULARY, read_shipped
from nodeagent.core.levels import Severity
from nodeagent.policy.table_records import BadTableError, Kind
from nodeagent.policy.unknown import BlackBoxCode, HealthEvent, Side, decode, recovery_partner
from nodeagent.policy.vocabulary import Vocabulary, joined, load_vocabulary


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_vocabulary(*read_shipped(VOCABULARY))


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (0x80E01801, HealthEvent(Side.DEVICE, 0x70, 0x0C, 1)),
        (0x81078603, HealthEvent(Side.DEVICE, 0x83, 0xC3, 3)),
        (0x40F84E00, HealthEvent(Side.HOST, 0x7C, 0x27, 0)),
        (0x8C204E00, HealthEvent(Side.DEVICE, 0x610, 0x27, 0)),
        (0x8F18024E, HealthEvent(Side.DEVICE, 0x78C, 0x01, 0x4E)),
        (0x80E01901, HealthEvent(Side.DEVICE, 0x70, 0x0C, 0x101)),
        (0xA8028802, BlackBoxCode(Kind.OCCUR_RECOVER, Severity.CRITICAL, 0x01, 0x08802)),
        (0x9419321B, BlackBoxCode(Kind.RECOVER, Severity.MINOR, 0x0C, 0x1321B)),
        (0xB4060011, BlackBoxCode(Kind.ONCE, Severity.MINOR, 0x03, 0x00011)),
        (0xA0060011, BlackBoxCode(Kind.OCCUR_RECOVER, None, 0x03, 0x00011)),
        (0x110001024, None),
        (0x20001002, None),
        (0xC0000000, None),
        (0xD0000000, None),
        (-1, None),
    ],
)
def test_bit_fields(code: int, fields: HealthEvent | BlackBoxCode | None) -> None:
    assert decode(code) == fields


def test_recovery_codes_name_what_they_take_back() -> None:
    assert recovery_partner(0x9419321B) == 0xA419321B
    assert recovery_partner(0xA419321B) is None
    assert recovery_partner(0x80E01801) is None


@pytest.mark.parametrize(
    ("code", "english", "chinese", "opaque"),
    [
        (0x80C98008, "AI Core multi-bit ECC error", "AI Core 多比特 ECC 错误", False),
        (0x80E38008, "LPM multi-bit ECC error", "LPM 低功耗管理模块多比特 ECC 错误", False),
        (0x80E18008, "HBM controller (HBMC) multi-bit ECC error", "HBM 控制器（HBMC）多比特 ECC 错误", False),
        (0x80E0020B, "HBM temperature above upper critical limit", "HBM 温度高于上限紧急告警值", False),
        (0x8C504E00, "Device service 0x628 heartbeat lost", "设备侧服务 0x628 心跳丢失", False),
        (
            0x40F84E01,
            "Base service heartbeat lost (second monitor) (reported by the host)",
            "基础服务心跳丢失（第二监控）（主机侧上报）",
            False,
        ),
        (
            0x8F1802FF,
            "Product-defined object 0x78C, temperature sensor, state 0xFF: meaning not published",
            "产品自定义对象 0x78C，温度传感器，状态 0xFF：含义未公开",
            True,
        ),
        (
            0x81FF8008,
            "Unnamed block 0xFF: multi-bit ECC error (which block this is was not published)",
            "未命名模块 0xFF：多比特 ECC 错误（该模块含义未公开）",
            True,
        ),
        (
            0x80E1FE00,
            "HBM, sensor 0xFF, state 0x00: meaning not published",
            "HBM，传感器 0xFF，状态 0x00：含义未公开",
            True,
        ),
        (0xA4193299, "LPM exception 0x99", "LPM 低功耗管理模块异常 0x99", False),
        (0x94193299, "LPM exception 0x99, cleared", "LPM 低功耗管理模块异常 0x99，已恢复", False),
        (
            0xB4060099,
            "TS exception, detail 0x00099, reported once",
            "任务调度器（TS）异常，详细码 0x00099，一次性上报",
            False,
        ),
        (0xA4FE0001, "Module 0x7F exception, detail 0x00001", "模块 0x7F 异常，详细码 0x00001", True),
        (0x220001001, "Code 220001001: meaning not published", "故障码 220001001：含义未公开", True),
    ],
)
def test_composed_names(vocabulary: Vocabulary, code: int, english: str, chinese: str, opaque: bool) -> None:
    description = vocabulary.describe(code)
    assert (description.name.en, description.name.zh, description.opaque) == (english, chinese, opaque)


def test_severity_comes_from_state_or_priority(vocabulary: Vocabulary) -> None:
    assert vocabulary.describe(0x80E01801).severity is Severity.CRITICAL
    assert vocabulary.describe(0xA2301001).severity is Severity.NOTICE
    assert vocabulary.describe(0x8F180200).severity is None


def test_blanks_stand_between_latin_and_chinese_only() -> None:
    assert joined("网口", "链路断开") == "网口链路断开"
    assert joined("AI Core", "复位失败") == "AI Core 复位失败"
    assert joined("任务调度器（TS）", "异常") == "任务调度器（TS）异常"
    assert joined("", "异常") == "异常"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("words: 1\n", "v:1: unknown key 'words'"),
        ("blocks:\n  - HBM\n", "v:2: an entry must be a mapping with id, en and zh"),
        ("blocks:\n  - {id: '0x70', en: HBM}\n", "v:2: an entry needs id, en and zh"),
        ("blocks:\n  - {id: HBM, en: HBM, zh: HBM}\n", "v:2: id 'HBM' is not a number"),
        (
            "blocks:\n  - {id: '1', en: a, zh: b}\n  - {id: '0x1', en: a, zh: b}\n",
            "v:3: id '0x1' stands twice in this list",
        ),
        ("blocks:\n  - {id: '1', en: a, zh: b, fr: c}\n", "v:2: unknown key 'fr'"),
        (
            "threshold_states:\n  - {id: '1', en: a, zh: b, severity: fatal}\n",
            "v:2: severity 'fatal' is none of notice, minor, major, critical",
        ),
        ("blocks:\n  - {id: '1', en: a, zh: b, zh: c}\n", "v:2: key 'zh' stands twice"),
        ("", "v:1: the file is empty"),
    ],
)
def test_a_bad_vocabulary_is_one_clear_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BadTableError) as caught:
        load_vocabulary("v", text)
    assert caught.value.sentence == sentence
