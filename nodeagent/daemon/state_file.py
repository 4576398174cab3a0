"""The state file: what must survive a kill beyond the published object (decision 17).

One JSON file in the state folder, replaced in one step, with a version, the boot it belongs to and the time of the
last save. It is memory, not truth: unreadable, stale or not writable, it is said once and done without.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeagent.core.errors import NodeAgentError
from nodeagent.core.files import read_text, replace_text
from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId
from nodeagent.core.observation import CarriedSwitches
from nodeagent.core.telemetry import Metrics
from nodeagent.policy.memory import VERSION, recall
from nodeagent.policy.state import ChipState
from nodeagent.policy.switch_memory import SWITCHES, recall_switches

log = logging.getLogger("nodeagent.state")

FILE_NAME = "state.json"
LIMIT_BYTES = 4 * 1024 * 1024
STALE_S = 600
"""An object that was written this much later than the file was saved was written without the file's knowledge."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class StateFileError(NodeAgentError):
    """The state file cannot be used."""

    code = "NA601"


_UNUSABLE = (StateFileError, OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""All that reading content of any kind can end in."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What was read. chips: by physical id. saved_at_s: Unix seconds of the save. switches: None = nothing known."""

    chips: Mapping[int, Mapping[str, object]]
    same_boot: bool
    saved_at_s: int
    switches: CarriedSwitches | None = None


class StateFile:
    """One state file. folder None: nothing is remembered."""

    def __init__(self, folder: Path | None, metrics: Metrics) -> None:
        self._path = None if folder is None else folder / FILE_NAME
        self._metrics = metrics
        self._boot_id = _boot_id()
        self._failing = ""

    def load(self) -> Memory | None:
        """What the last run remembered; None when there is nothing usable, which is said in the log."""
        if self._path is None:
            return None
        try:
            if not self._path.exists():
                return None
            return self._parse(json.loads(read_text(self._path, LIMIT_BYTES, StateFileError)))
        except _UNUSABLE as error:
            log.warning("state file is not usable, counters start from zero path=%s reason=%s", self._path, error)
            self._metrics.count("state_file_errors_total")
            return None

    def save(self, memory: Mapping[str, Any], at: Instant) -> None:
        """Replace the file. memory: of chips by physical id, of switches under SWITCHES. A failure is said once and
        counted; the daemon goes on."""
        if self._path is None:
            return
        chips = {physical_id: each for physical_id, each in memory.items() if physical_id != SWITCHES}
        body = {"version": VERSION, "boot_id": self._boot_id, "saved_at_s": at.wall_ms // 1000, "chips": chips}
        if SWITCHES in memory:
            body[SWITCHES] = memory[SWITCHES]
        try:
            text = json.dumps(body, separators=(",", ":"))
            if len(text) > LIMIT_BYTES:
                raise StateFileError(f"the state has {len(text)} bytes, more than the limit of {LIMIT_BYTES}")
            replace_text(self._path, text)  # after a power cut the chips are asked anew anyway
        except (OSError, StateFileError) as error:
            self._metrics.count("state_file_errors_total")
            if not self._failing:
                log.warning(
                    "state file cannot be written, counters do not survive path=%s reason=%s", self._path, error
                )
            self._failing = str(error)
        else:
            if self._failing:
                log.info("state file is written again path=%s", self._path)
            self._failing = ""

    def _parse(self, body: Mapping[str, Any]) -> Memory:
        if body["version"] != VERSION:
            raise StateFileError(f"its version is {body['version']!r}, this program writes {VERSION}")
        read = {int(physical_id): dict(memory) for physical_id, memory in body["chips"].items()}
        chips = {physical_id: memory for physical_id, memory in read.items() if self._is_usable(physical_id, memory)}
        switches = self._switches(body[SWITCHES]) if SWITCHES in body else None
        return Memory(chips, body["boot_id"] == self._boot_id, int(body["saved_at_s"]), switches)

    def _switches(self, memory: object) -> CarriedSwitches | None:
        """The faults of switches; None when they cannot be recalled: then the object tells what it named."""
        try:
            return recall_switches(memory)
        except _UNUSABLE as error:
            log.warning("state file says nothing usable of switches reason=%s", error)
            self._metrics.count("state_file_errors_total")
            return None

    def _is_usable(self, physical_id: int, memory: Mapping[str, object]) -> bool:
        """Whether the engine can recall it; a chip of which it cannot begins with what the object says of it."""
        try:
            recall(ChipState(ChipId(physical_id, physical_id, 0, 0)), memory, Instant(0, 0), same_boot=True)
        except _UNUSABLE as error:
            log.warning("state file says nothing usable of a chip physical_id=%d reason=%s", physical_id, error)
            self._metrics.count("state_file_errors_total")
            return False
        return True


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""  # never equal to a remembered one that is not empty: times are then made anew from the wall clock
