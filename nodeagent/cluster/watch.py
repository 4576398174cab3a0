"""A supervised loop that follows one named object, or the few of a field selector: list, then watch, for ever."""

import logging
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from nodeagent.cluster.calls import GONE, METADATA, METADATA_LIST, Call, NoAnswerError, RefusalError, version_of
from nodeagent.cluster.client import ApiClient
from nodeagent.cluster.stream import Stream
from nodeagent.cluster.watch_plan import Action, WatchPlan
from nodeagent.core.clock import monotonic_s
from nodeagent.core.telemetry import Metrics

log = logging.getLogger("nodeagent.watch")

WATCH_S = 3000
"""How long the server keeps a watch; a random part of up to a fifth is added, so that a fleet spreads out."""
_SILENCE_S = 150.0
"""Longest silence once the server has shown that it sends bookmarks, about one a minute."""
_MARGIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Selection:
    """What is followed. field_selector: as the API takes it. namespace: empty = the node's objects of all namespaces.

    metadata_only: leave everything but the metadata on the server.
    """

    resource: str
    label: str
    field_selector: str
    namespace: str = ""
    metadata_only: bool = False

    def call(self, verb: str, query: Mapping[str, str]) -> Call:
        """A list or watch of this selection."""
        every = {"fieldSelector": self.field_selector, **query}
        call = Call(verb, self.resource, self.label, self.namespace, query=every)
        if self.metadata_only:
            return replace(call, accept=METADATA_LIST if verb == "list" else METADATA)
        return call


def named(resource: str, label: str, namespace: str, name: str) -> Selection:
    """The selection of one object; a right by `resourceNames` covers it."""
    return Selection(resource, label, f"metadata.name={name}", namespace)


class Follower(Protocol):
    """Hears of the objects; called from the watch's thread, must not block."""

    def listed(self, objects: list[dict[str, Any]]) -> None:
        """These and no others exist, read with quorum."""

    def changed(self, kind: str, obj: dict[str, Any]) -> None:
        """`ADDED`, `MODIFIED` or `DELETED`, with the object as it is (or was)."""

    def trouble(self, sentence: str, hint: str, forbidden: bool) -> None:
        """The objects cannot be read now; what was heard before may be old. Empty sentence: it works again."""


class Watch:
    """Follows one selection. draw: a random number from [0, 1)."""

    def __init__(
        self,
        client: ApiClient,
        selection: Selection,
        follower: Follower,
        metrics: Metrics,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._selection = selection
        self._follower = follower
        self._metrics = metrics
        self._draw = draw
        self._plan = WatchPlan(draw)
        self._stopping = threading.Event()
        self._stream: Stream | None = None
        self._trouble = ""

    @property
    def name(self) -> str:
        """Name of the loop."""
        return f"watch.{self._selection.label}"

    def run(self) -> None:
        """Follow until `stop`."""
        while not self._stopping.is_set():
            todo = self._plan.next()
            if self._stopping.wait(todo.delay_ms / 1000):
                return
            try:
                if todo.action is Action.LIST:
                    self._list()
                else:
                    self._watch(todo.version)
            except RefusalError as refusal:
                if refusal.status == GONE:
                    self._restart("gone")
                    self._plan.gone(0)
                else:
                    self._fail("refused", refusal.sentence, refusal.hint, refusal.status, refusal.retry_after_s)
            except NoAnswerError as error:
                self._fail("no_answer", error.sentence, error.hint, 0, 0.0)

    def stop(self) -> None:
        """Make `run` return; a stream that waits is closed."""
        self._stopping.set()
        self.interrupt()

    def interrupt(self) -> None:
        """End the stream that runs, so that the objects are listed anew; from any thread."""
        stream = self._stream
        if stream is not None:
            stream.close()

    def _list(self) -> None:
        answer = self._client.send(self._selection.call("list", {}))
        items = answer.get("items") or []  # an empty list of metadata has null there
        version = version_of(answer)
        if not isinstance(items, list) or not version:
            raise NoAnswerError(f"the list of {self._selection.label} is no list")
        self._plan.listed(version)
        self._well()
        self._follower.listed([item for item in items if isinstance(item, dict)])

    def _watch(self, version: str) -> None:
        seconds = int(WATCH_S * (1 + self._draw() / 5))
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        stream = self._client.stream(self._selection.call("watch", query), seconds + _MARGIN_S)
        self._stream = stream
        started_s = monotonic_s()
        try:
            if self._stopping.is_set():
                return
            self._well()
            gone = self._follow(stream.events(), stream)
            lived_ms = int((monotonic_s() - started_s) * 1000)
            if gone:
                self._restart("gone")
                self._plan.gone(lived_ms)
            else:
                self._restart("ended")
                self._plan.ended(lived_ms)
        except NoAnswerError as error:
            if not self._stopping.is_set():
                self._restart("broken")
                log.info("watch broke off, it is started again name=%s reason=%r", self.name, error.sentence)
            self._plan.broke(int((monotonic_s() - started_s) * 1000))
        finally:
            self._stream = None
            stream.release()

    def _follow(self, events: Iterable[dict[str, Any]], stream: Stream) -> bool:
        """Take events until the stream ends; true when the server says that our version is too old.

        Raises NoAnswerError as the stream does, and for an ERROR event of another kind.
        """
        for event in events:
            kind, obj = event.get("type"), event["object"]
            if kind == "ERROR":
                if obj.get("code") == GONE:
                    return True
                raise NoAnswerError(f"the server ended the watch: {obj.get('message') or obj.get('reason')}")
            if kind == "BOOKMARK":
                stream.silence_s(_SILENCE_S)
            elif kind in ("ADDED", "MODIFIED", "DELETED"):
                self._follower.changed(kind, obj)
            self._plan.event(version_of(obj))
        return False

    def _fail(self, why: str, sentence: str, hint: str, status: int, retry_after_s: float) -> None:
        if self._stopping.is_set():
            return
        self._restart(why)
        self._plan.failed(status, retry_after_s)
        # The first silence may be a server that restarts; a refusal is a fact at once.
        if sentence != self._trouble and (status or self._plan.failures > 1):
            self._trouble = sentence
            log.warning("cannot be followed name=%s problem=%r hint=%r", self.name, sentence, hint)
            self._follower.trouble(sentence, hint, status == 403)

    def _restart(self, why: str) -> None:
        self._metrics.count("watch_restarts_total", object=self._selection.label, why=why)

    def _well(self) -> None:
        if self._trouble:
            self._trouble = ""
            log.info("is followed again name=%s", self.name)
            self._follower.trouble("", "", False)
