"""Notices about changed files from the kernel, where the package `watchdog` is installed. Only an accelerator.

What counts is the content that is compared every few seconds: notices get lost on links, on network file systems and
when the node has no inotify instance left.
"""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

log = logging.getLogger("nodeagent.configuration")

_CHANGES = frozenset({"created", "modified", "moved", "deleted", "closed"})
"""Kinds of notices that a writer causes; those about opening and reading are caused by ourselves."""


class FolderWatch:
    """Calls `wake` from a thread of its own when something in one of the folders changes."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._observer: Any = None

    def start(self, folders: Iterable[Path]) -> bool:
        """Begin; false, with one line in the log, when notices cannot be had and polling alone must do."""
        try:
            from watchdog.observers import Observer
        except ImportError:
            log.info("files are compared at intervals only reason='the package watchdog is not installed'")
            return False
        observer: Any = Observer()
        try:
            for folder in sorted(set(folders)):
                if folder.is_dir():
                    observer.schedule(self, str(folder), recursive=False)
            observer.start()
        except (OSError, RuntimeError) as error:
            log.warning("files are compared at intervals only reason=%r", f"no notices from the kernel: {error}")
            return False
        self._observer = observer
        return True

    def dispatch(self, event: Any) -> None:
        """Take one notice; called by the observer."""
        if event.event_type in _CHANGES:
            self._wake()

    def stop(self) -> None:
        """End the observer's thread, if there is one."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(1.0)
            self._observer = None
