"""Draft records for codes that the fault tables lack, from lists in TSV form.

The YAML files are the source of truth; this program only spares the typing when a new driver brings new codes.
It prints records in the layout of `fault_codes/*.yaml` for every code of the catalogue that the given tables do
not list, with names composed from the vocabulary, to be read and corrected by a person and pasted in.

    python tools/tables/draft.py --catalogue fault-catalogue.tsv --vocabulary fault_codes/vocabulary.yaml \\
        fault_codes/chip.yaml fault_codes/link.yaml
"""

import argparse
import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from nodeagent.core.codes import parse_code
from nodeagent.core.files import read_text
from nodeagent.core.levels import Plane, plane_of
from nodeagent.policy.table import load_table
from nodeagent.policy.vocabulary import Vocabulary, load_vocabulary

Row = Mapping[str, str]
_KINDS = {"occur/recover": "occur_recover"}
_REFS = {
    "cfg:chip": "level-file",
    "cfg:custom": "rule-file",
    "drv": "driver-headers",
    "kb": "knowledge-base",
    "wb:diag": "diagnosis-workbook",
    "doc:levels": "level-guide",
    "code:dp": "device-plugin",
    "code:container-manager": "container-manager",
}


def read_rows(path: Path) -> list[Row]:
    """Rows of a tab-separated list with a header line and without quoting, chip and link codes only."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in rows if row["domain"] in ("chip", "link")]


def record_text(row: Row, vocabulary: Vocabulary, extra: Mapping[str, object]) -> str:
    """One record as YAML. extra: values that replace what the row and the vocabulary give, by field."""
    code = parse_code(row["code"])
    name = vocabulary.describe(code).name
    refs = [_REFS[tag] for tag in row["source"].split(",")]
    fields: dict[str, object] = {
        "code": json.dumps(row["code"]),
        "plane": plane_of(code).value,
        "level": row["default_level"] or "null",
        "name": {"en": name.en, "zh": name.zh},
        "module": row["module"],
        "kind": _KINDS.get(row["event_kind"], row["event_kind"]),
        "severity": row["severity"],
        "category": row["category"],
        "products": f"[{row['products']}]" if row["products"] else "",
        "refs": f"[{', '.join(refs)}]",
        "name_basis": row["name_basis"],
    }
    fields.update(extra)
    if fields["plane"] == Plane.CHIP.value:
        fields["plane"] = ""
    if fields["refs"] == "[level-file, driver-headers]":
        fields["refs"] = ""
    if fields["kind"] == "occur_recover":
        fields["kind"] = ""
    lines = []
    for key in _ORDER:
        value = fields.get(key)
        if isinstance(value, dict):
            lines.append(f"{key}:")
            lines += [f"  {language}: {_scalar(text)}" for language, text in value.items()]
        elif value:
            lines.append(f"{key}: {value if key in _READY else _scalar(str(value))}")
    return "\n".join(("  - " if number == 0 else "    ") + line for number, line in enumerate(lines))


_ORDER = (
    "code",
    "plane",
    "level",
    "name",
    "module",
    "kind",
    "severity",
    "category",
    "advice",
    "twins",
    "notes",
    "products",
    "refs",
    "name_basis",
)
_READY = ("code", "twins", "products", "refs")


def _scalar(text: str) -> str:
    """Plain where YAML reads it back unchanged, else in double quotes."""
    plain = not (": " in text or " #" in text or text[0] in "\"'[]{}&*!|>%@`-?:,#" or text[-1] == ":")
    return text if plain else json.dumps(text, ensure_ascii=False)


def main() -> int:
    """Print the drafts; exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalogue", type=Path, required=True, help="TSV with the columns of fault-catalogue 1")
    parser.add_argument("--vocabulary", type=Path, required=True, help="fault_codes/vocabulary.yaml")
    parser.add_argument("tables", type=Path, nargs="*", help="tables whose codes are left out")
    arguments = parser.parse_args()
    table, _ = load_table([(str(path), read_text(path)) for path in arguments.tables])
    vocabulary = load_vocabulary(str(arguments.vocabulary), read_text(arguments.vocabulary))
    for row in read_rows(arguments.catalogue):
        if table.lookup(parse_code(row["code"])) is None:
            sys.stdout.write(record_text(row, vocabulary, {}) + "\n\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
