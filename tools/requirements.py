"""Print the requirement strings of pyproject.toml, so that they stand in one place.

Usage: requirements.py [build] [run] [test] [check] [watch] [lan] [grpc] [go] [bench]. Written for Python 3.10, which
has no tomllib: reads just the quoted strings of the named lists.
"""

import re
import sys
from pathlib import Path

_LISTS = {"build": "requires", "run": "dependencies"}


def main() -> None:
    """Print one requirement per line, shell-safe because requirement strings hold no blanks."""
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    for group in sys.argv[1:]:
        name = _LISTS.get(group, group)
        match = re.search(rf"^{name} = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
        if match is None:
            sys.exit(f"pyproject.toml has no list {name!r}")
        print("\n".join(re.findall(r'"([^"]+)"', match.group(1))))


if __name__ == "__main__":
    main()
