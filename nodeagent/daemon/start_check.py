"""The self-check at the start of a daemon: once, in a thread of its own, told in the log."""

import logging
import threading

from nodeagent.core.model import Product
from nodeagent.core.telemetry import Metrics
from nodeagent.daemon.selfcheck.check import Check, Verdict
from nodeagent.daemon.selfcheck.doctor import Doctor
from nodeagent.daemon.selfcheck.node_checks import CHIPS, DAEMON, LIBRARY, SWITCH_LIBRARY
from nodeagent.daemon.selfcheck.node_fault_checks import BOARD, PUBLIC_FAULTS, STORAGE
from nodeagent.daemon.selfcheck.settings_checks import VERSIONS, compatibility_line

log = logging.getLogger("nodeagent.self-check")

QUIET_S = 5.0
"""The first report goes first: so long after the start the machine is left to it."""
PRODUCT_S = 300.0
"""How long the line of versions waits for the driver to say what it is."""
_OWN = frozenset({LIBRARY, CHIPS, SWITCH_LIBRARY, BOARD, STORAGE, PUBLIC_FAULTS, DAEMON, VERSIONS})
"""The daemon has a session with the driver, asks the BMC and tells of it; a second one is only in its way."""


class StartCheck:
    """Runs once. `seen` and `stop` come from other threads. quiet_s: see QUIET_S."""

    def __init__(self, doctor: Doctor, metrics: Metrics, quiet_s: float = QUIET_S) -> None:
        self._doctor = doctor
        self._metrics = metrics
        self._product: Product | None = None
        self._quiet_s = quiet_s
        self._identified = threading.Event()
        self._stopping = threading.Event()

    def seen(self, product: Product) -> None:
        """The driver has said what the node is; never blocks."""
        self._product = product
        self._identified.set()

    def stop(self) -> None:
        """Make `run` return after the check that it is at."""
        self._stopping.set()
        self._identified.set()

    def run(self) -> None:
        """Check and tell. An error that nobody foresaw costs the rest of the check, never the daemon."""
        try:
            self._stopping.wait(self._quiet_s)
            self._check()
            self._identified.wait(PRODUCT_S)
            if not self._stopping.is_set():
                log.info("compatibility %s", compatibility_line(self._doctor.words(self._product, look=False)))
        except Exception:
            log.exception("unforeseen error of the self-check, the rest of it is left out")

    def _check(self) -> None:
        for examination in self._doctor.examinations():
            if self._stopping.is_set():
                return
            if examination.name not in _OWN:
                tell(examination.run())
        missing = self._doctor.missing_rights
        if missing is not None:
            self._metrics.set("missing_rights", len(missing))


def tell(check: Check) -> None:
    """One line for a check that is not well."""
    if check.troubled:
        level = logging.ERROR if check.verdict is Verdict.FAIL else logging.WARNING
        hint = f" hint={check.hint!r}" if check.hint else ""
        detail = "; ".join(check.detail.splitlines())
        log.log(level, "self-check=%s verdict=%s detail=%r%s", check.name, check.verdict.value, detail, hint)
