"""The self-check at the start of a daemon: once, in a thread of its own, told in the log."""

import logging
import threading
from collections.abc import Iterable

from nodeagent.core.model import Product
from nodeagent.core.telemetry import Metrics
from nodeagent.daemon.selfcheck.check import Check, Verdict
from nodeagent.daemon.selfcheck.doctor import Doctor
from nodeagent.daemon.selfcheck.node_checks import CHIPS, DAEMON, LIBRARY
from nodeagent.daemon.selfcheck.settings_checks import VERSIONS, compatibility_line

log = logging.getLogger("nodeagent.self-check")

FIRST_VIEW_S = 5.0
"""So long the first report has the machine for itself; a node without one is checked all the same."""
PRODUCT_S = 300.0
"""How long the line of versions waits for the driver to say what it is."""
_OWN = frozenset({LIBRARY, CHIPS, DAEMON, VERSIONS})
"""The daemon has a session with the driver and tells of it by itself; a second one would only be in its way."""


class StartCheck:
    """Runs once. `seen` and `stop` come from other threads."""

    def __init__(self, doctor: Doctor, metrics: Metrics) -> None:
        self._doctor = doctor
        self._metrics = metrics
        self._product: Product | None = None
        self._woken = threading.Event()
        self._stopping = False

    def seen(self, product: Product) -> None:
        """The driver has said what the node is; never blocks."""
        self._product = product
        self._woken.set()

    def stop(self) -> None:
        """Make `run` return after the check that it is at."""
        self._stopping = True
        self._woken.set()

    def run(self) -> None:
        """Check and tell. An error that nobody foresaw costs the rest of the check, never the daemon."""
        try:
            self._woken.wait(FIRST_VIEW_S)
            self._check()
            self._woken.wait(PRODUCT_S)
            if not self._stopping:
                log.info("compatibility %s", compatibility_line(self._doctor.words(self._product, look=False)))
        except Exception:
            log.exception("unforeseen error of the self-check, the rest of it is left out")

    def _check(self) -> None:
        for examination in self._doctor.examinations():
            if self._stopping:
                return
            if examination.name not in _OWN:
                tell([examination.run()])
        missing = self._doctor.missing_rights
        if missing is not None:
            self._metrics.set("missing_rights", len(missing))


def tell(checks: Iterable[Check]) -> None:
    """One line for each check that is not well."""
    for check in checks:
        if check.troubled:
            level = logging.ERROR if check.verdict is Verdict.FAIL else logging.WARNING
            detail = check.detail.replace("\n", "; ")
            hint = f" hint={check.hint!r}" if check.hint else ""
            log.log(level, "self-check=%s verdict=%s detail=%r%s", check.name, check.verdict.value, detail, hint)
