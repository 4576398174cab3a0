"""Cut the golden data of the table contract tests out of the reference lists.

    python tools/tables/golden.py --catalogue fault-catalogue.tsv --levels chip-fault-levels.tsv \\
        --out tests/contract/data/fault_codes

Run it when the reference lists change; the tests themselves read only what it wrote.
"""

import argparse
import csv
from pathlib import Path

_CATALOGUE_COLUMNS = ("code", "domain", "plane", "default_level", "severity", "event_kind", "category", "name_basis")
_LEVEL_COLUMNS = ("code", "level", "effective")


def cut(source: Path, target: Path, columns: tuple[str, ...]) -> None:
    """Copy some columns of a tab-separated list; of a list with a domain column only chip and link rows."""
    with source.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    lines = ["\t".join(columns)]
    lines += ["\t".join(row[name] for name in columns) for row in rows if row.get("domain", "chip") in ("chip", "link")]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Write both files; exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalogue", type=Path, required=True, help="TSV with the columns of fault-catalogue 1")
    parser.add_argument("--levels", type=Path, required=True, help="TSV of the default level file, chip-faults 11")
    parser.add_argument("--out", type=Path, required=True, help="directory for the golden files")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    cut(arguments.catalogue, arguments.out / "catalogue.tsv", _CATALOGUE_COLUMNS)
    cut(arguments.levels, arguments.out / "levels.tsv", _LEVEL_COLUMNS)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
