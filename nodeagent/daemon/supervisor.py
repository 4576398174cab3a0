"""Loops with a name that come back when they end unforeseen: the one place for broad excepts."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.core.pauses import backoff_s
from nodeagent.core.telemetry import Metrics

log = logging.getLogger("nodeagent.supervisor")

RESTART_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class Loop:
    """run: works until stop is called. stop: makes run return soon, from another thread."""

    name: str
    run: Callable[[], None]
    stop: Callable[[], None]


class Supervisor:
    """Runs each loop in a thread of its own and restarts it with a growing pause."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._stopping = threading.Event()
        self._loops: list[tuple[Loop, threading.Thread]] = []

    def start(self, loop: Loop) -> None:
        """Start one loop."""
        thread = threading.Thread(target=self._keep, args=(loop,), name=loop.name, daemon=True)
        self._loops.append((loop, thread))
        thread.start()

    def stop(self, timeout_s: float) -> list[str]:
        """Stop all loops, latest first, and wait `timeout_s` seconds for each; names of those still running."""
        self._stopping.set()
        for loop, _ in reversed(self._loops):
            loop.stop()
        for _, thread in reversed(self._loops):
            thread.join(timeout_s)
        return [loop.name for loop, thread in self._loops if thread.is_alive()]

    def dead(self) -> list[str]:
        """Loops whose thread has ended although nobody asked for it; a loop that waits for its restart has one."""
        if self._stopping.is_set():
            return []
        return [loop.name for loop, thread in list(self._loops) if thread.ident is not None and not thread.is_alive()]

    def _keep(self, loop: Loop) -> None:
        restarts = 0
        while not self._stopping.is_set():
            try:
                loop.run()
            except Exception:
                log.exception(
                    "loop ended by an unforeseen error, it is restarted loop=%s restarts=%d", loop.name, restarts
                )
            else:
                if self._stopping.is_set():
                    return
                log.error("loop ended without being asked to, it is restarted loop=%s", loop.name)
            self._metrics.count("loop_restarts_total", loop=loop.name)
            restarts += 1
            self._stopping.wait(backoff_s(RESTART_PAUSES_S, restarts))
