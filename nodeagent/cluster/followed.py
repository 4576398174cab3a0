"""One object of the cluster as a watch tells it, readable like any other object but without a request."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from nodeagent.core.errors import ForbiddenError, NotAskedError, ReadBackError


class OneObject(ABC):
    """A follower (nodeagent.cluster.watch) of one named object; hears of it from the thread of the watch."""

    def listed(self, objects: list[dict[str, Any]]) -> None:
        """The object as it is, or none."""
        self.take(objects[0] if objects else None)

    def changed(self, kind: str, obj: dict[str, Any]) -> None:
        """A new version, whoever wrote it, or its end."""
        self.take(None if kind == "DELETED" else obj)

    @abstractmethod
    def take(self, obj: dict[str, Any] | None) -> None:
        """The object as it is now; None = there is none. Must not block."""

    @abstractmethod
    def trouble(self, sentence: str, hint: str, forbidden: bool) -> None:
        """Nothing can be read now; an empty sentence = it goes on."""


class FollowedObject(OneObject):
    """Remembers one object. on_change: called after each piece of news."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._known = False
        self._object: dict[str, Any] | None = None
        self._trouble: ReadBackError = NotAskedError("the API server was not asked yet")

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        """The object as it was told last; None when it surely is not there.

        Raises NotAskedError while nothing was told since the start, ForbiddenError when we may not read it, another
        ReadBackError when the server gives no answer. What was told before a connection was lost stays true until
        something else is told.
        """
        with self._lock:
            if not self._known:
                raise self._trouble
            return self._object

    def trouble(self, sentence: str, hint: str, forbidden: bool) -> None:
        """Nothing can be read now."""
        if sentence:
            with self._lock:
                self._trouble = (ForbiddenError if forbidden else ReadBackError)(sentence, hint)
            self._on_change()

    def take(self, obj: dict[str, Any] | None) -> None:
        """A new version, or its end."""
        with self._lock:
            self._known, self._object = True, obj
        self._on_change()
