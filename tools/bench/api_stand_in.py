"""A stand-in for an API server in a process of its own, so that its memory is not counted as ours.

Usage: api_stand_in.py FOLDER; writes FOLDER/kubeconfig, prints a line when ready, serves until it is ended.
"""

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from kit.fake_api import fake_api


def main() -> None:
    """Serve."""
    with fake_api() as api:
        api.kubeconfig(Path(sys.argv[1]))
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
