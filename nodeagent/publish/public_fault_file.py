"""The file `public-faults.json` in the state folder: what ClusterD was told, over a restart.

It is memory, not truth: unreadable, of another version or not writable, it is said once and done without.
"""

import json
import logging
from pathlib import Path

from nodeagent.core.errors import NodeAgentError
from nodeagent.core.files import read_text, replace_text
from nodeagent.core.telemetry import Metrics
from nodeagent.policy.public_fault_memory import Remembered, from_document, to_document
from nodeagent.policy.public_fault_track import DEFAULT_TIMES

log = logging.getLogger("nodeagent.public_faults")

FILE_NAME = "public-faults.json"
LIMIT_BYTES = 64 * 1024
"""Four faults and 32 ids are below 3 KiB."""


class PublicFaultFileError(NodeAgentError):
    """The state file cannot be used."""

    code = "NA601"


class PublicFaultFile:
    """One file. folder None: nothing is remembered. audience: who is told; a shadow tells nobody whom `live` tells."""

    def __init__(self, folder: Path | None, node_name: str, audience: str, metrics: Metrics) -> None:
        self._path = None if folder is None else folder / FILE_NAME
        self._node_name = node_name
        self._audience = audience
        self._metrics = metrics
        self._saved = ""
        self._failing = False

    def load(self) -> Remembered:
        """What the last run remembered; nothing when there is nothing usable, which is said in the log."""
        if self._path is None:
            return Remembered()
        try:
            if not self._path.exists():
                return Remembered()
            document = json.loads(read_text(self._path, LIMIT_BYTES, PublicFaultFileError))
            recovers = len(DEFAULT_TIMES.recover_again_ms)
            return from_document(document, self._node_name, self._audience, recovers)
        except (PublicFaultFileError, OSError, ValueError, RecursionError) as error:
            log.warning("event=public_fault_file_not_usable path=%s reason=%r", self._path, str(error))
            self._metrics.count("state_file_errors_total")
            return Remembered()

    def save(self, remembered: Remembered) -> None:
        """Replace the file if it says something else. A failure is said once and counted; the daemon goes on."""
        if self._path is None:
            return
        text = json.dumps(to_document(self._node_name, self._audience, remembered), separators=(",", ":"))
        if text == self._saved:
            return
        try:
            replace_text(self._path, text)
        except OSError as error:
            self._metrics.count("state_file_errors_total")
            if not self._failing:
                log.warning("event=public_fault_file_not_written path=%s reason=%r", self._path, str(error))
            self._failing = True
        else:
            self._saved = text
            if self._failing:
                log.info("event=public_fault_file_written_again path=%s", self._path)
            self._failing = False
