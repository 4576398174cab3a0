"""The fleet simulation against a real API server: whatever it goes through, the cluster has the last states."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "tools" / "fleet" / "fleet.py"
NODES = 50


@pytest.mark.timeout(300)
def test_every_final_state_is_acknowledged_and_in_the_cluster(tmp_path: Path) -> None:
    words = [sys.executable, str(PROGRAM), "--quick", "--nodes", str(NODES), "--output", "json"]
    done = subprocess.run([*words, "--folder", str(tmp_path)], capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    found = {result["scenario"]: result for result in json.loads(done.stdout)}
    assert set(found) == {"first writes", "rest", "storm", "restart"}
    assert {result["nodes"] for result in found.values()} == {NODES}
    assert found["storm"]["wrong"] == found["restart"]["wrong"] == 0
    assert found["storm"]["transitions"] == 5 * NODES
    assert NODES <= found["storm"]["writes"] <= found["storm"]["transitions"]
    assert found["restart"]["tries"] > 0
    assert found["restart"]["answers"]["200"] >= NODES
