"""The state file is memory, not truth: whatever it holds, the daemon goes on (decision 17)."""

import json
from pathlib import Path

import pytest
from kit.engine import Bench, at, occur
from kit.rules import DEFAULTS

from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.state_file import FILE_NAME, StateFile
from nodeagent.policy.memory import remember


def saved(folder: Path) -> dict[str, object]:
    """A file with one chip that remembers a fault, as written by a run."""
    bench = Bench(rules=DEFAULTS)
    bench.step(1, occur(0x80C98008, 1))
    StateFile(folder, Registry()).save(remember(bench.state), at(2))
    body = json.loads((folder / FILE_NAME).read_text())
    assert isinstance(body, dict)
    return body


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    body = saved(tmp_path)
    memory = StateFile(tmp_path, Registry()).load()
    assert memory is not None
    assert memory.same_boot
    assert {str(p): m for p, m in memory.chips.items()} == body["chips"]


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 1, "boot_id": "", "chips": {}, "saved_at_s": Infinity}',
        '{"version": 1, "boot_id": "", "chips": {}, "saved_at_s": NaN}',
        '{"version": 1, "boot_id": "", "chips": [], "saved_at_s": 1}',
        "[" * 100_000,
        "\x00",
    ],
)
def test_content_of_any_kind_is_counted_and_done_without(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    metrics = Registry()
    assert StateFile(tmp_path, metrics).load() is None
    assert metrics.value("state_file_errors_total") == 1


@pytest.mark.parametrize("error", [PermissionError("no"), OSError("gone")])
def test_a_folder_that_cannot_be_looked_into_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def refuse(_: Path) -> bool:
        raise error

    monkeypatch.setattr(Path, "exists", refuse)
    assert StateFile(tmp_path, Registry()).load() is None


@pytest.mark.parametrize(
    "odd",
    [
        {"manual": "perhaps"},
        {"faults": [[1, 2]]},
        {"faults": [["x", None, [0, 0]]]},
        {"faults": [[None, None, [0, 0]]]},
        {"faults": [[-1, None, [0, 0]]]},
        {"faults": [[1, None, [0, 2**80]]]},
        {"faults": [[1, 9, [0, 0]]]},
        {"reasons": [[1, "Worse", "FaultFrequency", [0, 0]]]},
        {"reasons": [[1, "NormalNPU", "FaultFrequency", [0, 0]]]},
        {"reasons": [[1, "SeparateNPU", [], [0, 0]]]},
        {"reasons": 5},
        {"frequency": [[1, [["a", 0]], None, None]]},
        {"frequency": [[[], [], None, None]]},
        {"duration": [[1, True, [[[0, 0]]], None]]},
        {"held": [["thought", 1, None, [0, 0]]]},
    ],
)
def test_odd_memory_of_one_chip_leaves_that_of_the_others(tmp_path: Path, odd: dict[str, object]) -> None:
    body = saved(tmp_path)
    chips = body["chips"]
    assert isinstance(chips, dict)
    chips["1"] = odd
    (tmp_path / FILE_NAME).write_text(json.dumps(body))
    metrics = Registry()
    memory = StateFile(tmp_path, metrics).load()
    assert memory is not None
    assert list(memory.chips) == [0]
    assert metrics.value("state_file_errors_total") == 1
