"""`nodeagent explain`: what a fault code means, offline."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import cast
from unicodedata import east_asian_width

from nodeagent.cli.documents import configuration_of, node_configuration_of
from nodeagent.cli.explain_node import node_code_of, node_facts, node_rows
from nodeagent.cli.explain_switch import switch_codes_of, switch_facts, switch_rows
from nodeagent.cli.flags import add_output_flag, add_site_file_flag
from nodeagent.core.codes import parse_code
from nodeagent.core.errors import UnknownCodeError
from nodeagent.core.files import VOCABULARY, read_shipped
from nodeagent.policy.node_table import NodeTable
from nodeagent.policy.table import FaultTable
from nodeagent.policy.table_facts import Facts, facts_of
from nodeagent.policy.unknown import decode
from nodeagent.policy.vocabulary import load_vocabulary

KNOWN, DECODED_ONLY, NOT_A_CODE = 0, 1, 2
"""Exit codes; with several codes the largest counts."""
_LABEL_WIDTH = 13
_SHARED_LINE = 60  # letters

_EPILOG = """\
A code may be written in any case, with or without 0x, with blanks, without leading zeros. Of a switch fault the alarm
id alone will do: then all codes with it are explained. A code that chips and nodes have in common is explained twice.

examples:
  nodeagent explain 80E01801
  nodeagent explain 0x80e01801 81078603 --lang zh
  nodeagent explain 8F1802FF                      a code in no table: its bits, and its level at each severity
  nodeagent explain '[0x00f1fef5,155914,npu,na]'  a fault of a LingQu switch; quoted, because of the brackets
  nodeagent explain 0x08520003
  nodeagent explain 0000001D                      a node fault: an alarm code of the BMC
  nodeagent explain --node 29000017               the same for one that no table lists, or that a chip has too
  nodeagent explain 80E01801 --output json --site-file /etc/nodeagent/faults.yaml

exit codes: 0 all codes are in a table, 1 a code is in no table but can be decoded, 2 a text is not a fault
code, or a table cannot be read
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "explain",
        help="say what a fault code means and how it is levelled",
        description="Say what fault codes of chips, switches and nodes mean, in English and Chinese, and their levels."
        " Works offline from the shipped tables.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("codes", nargs="+", metavar="CODE", help="fault code, for example 80E01801")
    parser.add_argument("--node", action="store_true", help="the codes are alarm codes of the BMC, and nothing else")
    parser.add_argument("--lang", choices=("en", "zh", "both"), default="both", help="language of texts (both)")
    add_output_flag(parser)
    add_site_file_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation of every code; returns the exit code of the epilog.

    Raises TableError when a table cannot be read or is wrong. A text that is no code is one sentence on stderr.
    """
    nodes = node_configuration_of(arguments.site_file)[0].table
    if arguments.node:
        return _run_nodes(arguments, nodes)
    config, warnings = configuration_of(arguments.site_file, texts=True)
    table = config.table
    vocabulary = load_vocabulary(*read_shipped(VOCABULARY))
    status = KNOWN
    explained: list[Facts] = []
    for text in arguments.codes:
        node_code = node_code_of(text)
        of_node = [] if node_code is None or nodes.level_of(node_code) is None else [node_facts(node_code, nodes)]
        if switch_codes := switch_codes_of(text, config.switches):
            explained += [switch_facts(each, config.switches) for each in switch_codes]
            if not all(config.switches.level_of(each).known for each in switch_codes):
                status = max(status, DECODED_ONLY)
            explained += of_node
            continue
        try:
            code = _code_of(text, table)
        except UnknownCodeError as error:
            if of_node:
                explained += of_node
                continue
            print(f"nodeagent: {error}", file=sys.stderr)
            status = NOT_A_CODE
            continue
        if table.lookup(code) is not None or not of_node:
            explained.append(facts_of(code, table, vocabulary, warnings))
            if table.lookup(code) is None:
                status = max(status, DECODED_ONLY)
        explained += of_node
    _print(explained, arguments)
    return status


def _run_nodes(arguments: argparse.Namespace, nodes: NodeTable) -> int:
    """All codes as those of node faults."""
    status = KNOWN
    explained: list[Facts] = []
    for text in arguments.codes:
        code = node_code_of(text)
        if code is None:
            hint = "they have eight hexadecimal digits, like 0000001D"
            print(f"nodeagent: {UnknownCodeError(f'{text!r} is no alarm code of a BMC', hint)}", file=sys.stderr)
            status = NOT_A_CODE
            continue
        if nodes.level_of(code) is None:
            status = max(status, DECODED_ONLY)
        explained.append(node_facts(code, nodes))
    _print(explained, arguments)
    return status


def _print(explained: list[Facts], arguments: argparse.Namespace) -> None:
    if arguments.output == "json":
        print(json.dumps(explained, ensure_ascii=False, indent=2))
    elif explained:
        print("\n\n".join(_as_text(facts, arguments.lang) for facts in explained))


def _code_of(text: str, table: FaultTable) -> int:
    try:
        code = parse_code("".join(text.split()))
    except ValueError:
        hint = "codes are hexadecimal, like 80E01801, or of a switch, like '[0x08520003,na,npu,na]'"
        raise UnknownCodeError(f"{text!r} is not a fault code", hint) from None
    if table.lookup(code) is None and decode(code) is None:
        raise UnknownCodeError(
            f"{text!r} is neither a chip fault code nor the alarm id of a switch nor a listed code of a node fault",
            "chip codes have 8 digits and begin with 4, 8, 9, A or B; `--node` takes any alarm code of a BMC",
        )
    return code


def _as_text(facts: Facts, language: str) -> str:
    """The facts as a heading and labelled lines; with both languages the Chinese stands beside or below."""
    indent = " " * len(facts["code"])
    names = [facts["name"][each] for each in ("en", "zh") if language in (each, "both")]
    lines = [f"{indent if number else facts['code']}  {name}" for number, name in enumerate(names)]
    for (english, chinese), value in _rows(facts, language):
        label = chinese if language == "zh" else english
        for number, text in enumerate(_in_languages(value, language)):
            lines.append(f"  {_padded('' if number else label)}{text}")
    return "\n".join(lines)


def _in_languages(value: str | dict[str, str], language: str) -> list[str]:
    """One text, or one for each language; a short pair shares a line."""
    if isinstance(value, str):
        return [value]
    if language != "both":
        return [value[language]]
    english, chinese = value["en"], value["zh"]
    if english == chinese:
        return [english]
    return [f"{english} / {chinese}"] if len(english) + len(chinese) <= _SHARED_LINE else [english, chinese]


def _rows(facts: Facts, language: str) -> Iterator[tuple[tuple[str, str], str | dict[str, str]]]:
    """Label in both languages and value (one text, or one for each language) of every fact that is present."""
    if facts.get("domain") == "switch":
        yield from switch_rows(facts)
        return
    if facts.get("domain") == "node":
        yield from node_rows(facts)
        return
    if facts["level"]:
        yield ("level", "级别"), _with_meaning(facts, "level", language)
        yield ("said by", "依据"), facts["level_at"]
    else:
        yield ("level", "级别"), _pair("in no table; by severity:", "未在故障表中，按严重程度分级：")
        for severity, decision in facts["if_unlisted"].items():
            yield (f"  {severity}", f"  {severity}"), f"{decision['level']} ({decision['place']})"
    for sentence in facts["warnings"]:
        yield ("warning", "警告"), sentence
    for each in facts["suppressed"]:
        chips = each["chips"] if each["chips"] == "all" else ", ".join(map(str, each["chips"]))
        where = f"chips {chips}, until {each['until']}: {each['reason']} ({each['said_at']})"
        yield ("suppressed", "已抑制"), where
    if facts["recovers"]:
        yield ("recovers", "恢复对象"), facts["recovers"]
    yield ("plane", "平面"), _with_meaning(facts, "plane", language)
    for key, label in _LABELS:
        if facts.get(key):
            yield label, _with_meaning(facts, key, language)
    if facts["bits"]:
        yield from _bit_rows(facts["bits"])


_LABELS = (
    ("module", ("module", "模块")),
    ("kind", ("kind", "类型")),
    ("severity", ("severity", "严重程度")),
    ("category", ("category", "类别")),
    ("advice", ("advice", "处理建议")),
    ("twins", ("twins", "同一故障")),
    ("notes", ("notes", "备注")),
    ("products", ("products", "产品")),
    ("name_basis", ("name from", "名称来源")),
    ("refs", ("sources", "出处")),
)


def _with_meaning(facts: Facts, key: str, language: str) -> str | dict[str, str]:
    """The value of a fact with what it means; a bare value where there is nothing to add."""
    value = facts[key]
    if key == "twins":
        return ", ".join(f"{twin['code']} ({twin['level'] or '-'})" for twin in value)
    if isinstance(value, list):
        return ", ".join(value)
    meaning = facts.get(f"{key}_meaning")
    if isinstance(value, dict) or not meaning:
        return cast("str | dict[str, str]", value)
    english = value if meaning["en"] == value else f"{value}: {meaning['en']}"
    # Beside the English line the word itself need not be said again.
    return _pair(english, meaning["zh"] if language == "both" else f"{value}：{meaning['zh']}")


def _bit_rows(bits: Facts) -> Iterator[tuple[tuple[str, str], str | dict[str, str]]]:
    if bits["form"] == "health event":
        side = _pair("device", "设备侧") if bits["side"] == "device" else _pair("host", "主机侧")
        yield ("bits", "位域"), _pair(f"health event, reported by the {side['en']}", f"健康事件，{side['zh']}上报")
        parts: tuple[tuple[str, str, str, str], ...] = (
            ("  node", "  节点类型", "node", "block"),
            ("  sensor", "  传感器", "sensor", "sensor_name"),
            ("  state", "  状态", "state", "state_name"),
        )
    else:
        yield ("bits", "位域"), _pair("black-box code", "黑匣子码")
        parts = (("  module", "  模块", "module", "block"), ("  detail", "  详细码", "detail", ""))
    for english, chinese, number, name in parts:
        words = bits.get(name)
        if not words:
            yield (english, chinese), bits[number]
        else:
            yield (english, chinese), _pair(*(f"{bits[number]} {words[each]}" for each in ("en", "zh")))


def _pair(english: str, chinese: str) -> dict[str, str]:
    return {"en": english, "zh": chinese}


def _padded(label: str) -> str:
    """The label filled up to a column of a terminal, where a Chinese letter takes two places."""
    width = sum(2 if east_asian_width(letter) in "WF" else 1 for letter in label)
    return label + " " * max(1, _LABEL_WIDTH - width)
