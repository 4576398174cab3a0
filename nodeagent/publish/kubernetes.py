"""Publish ConfigMaps to the API server: one slot an object, replaced or deleted by the version of the server's last
answer.

A change that somebody else made is noticed, by the watch within a moment and by the version at the latest, instead
of overwritten blindly (device-info 8). In steady state a write is one PUT and nothing is read before it.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from nodeagent.cluster.calls import CONFLICT, FORBIDDEN, NOT_FOUND, Call, NoAnswerError, RefusalError, version_of
from nodeagent.cluster.client import USER_AGENT, ApiClient
from nodeagent.core.clock import monotonic_s
from nodeagent.core.errors import ForbiddenError, PublishError, ReadBackError
from nodeagent.publish.targets import LaterError, ObjectChanged, identity

_OWN_VERSIONS = 64
"""A watch may lag behind by as many writes of ours without their being taken for somebody else's."""
_CONFIRM_S = 30.0
"""How long after a write its version may be missing in the watch before it is read again."""

Key = tuple[str, str]


class _Slot:
    """What is known of one object.

    versions: those that we read or wrote, latest last; empty = surely not there. lost: data of a write that got no
    answer; an object with this data is ours. heard: what the watch said last, None = taken already, empty = deleted.
    """

    def __init__(self) -> None:
        self.versions: deque[str] = deque(maxlen=_OWN_VERSIONS)
        self.read = False
        self.lost: object = None
        self.heard: dict[str, Any] | None = None
        self.unconfirmed_since_s: float | None = None


class KubernetesTarget:
    """ConfigMaps of one cluster; one thread uses it, the watch tells it from another.

    label: of the objects in metrics. confirm_s: see _CONFIRM_S. on_lag: called when the watch missed something.
    """

    def __init__(
        self,
        client: ApiClient,
        label: str = "device_info",
        confirm_s: float = _CONFIRM_S,
        on_lag: Callable[[], None] | None = None,
    ) -> None:
        self._client = client
        self._label = label
        self._confirm_s = confirm_s
        self._on_lag = on_lag
        self._slots: dict[Key, _Slot] = {}
        self._lock = threading.Lock()
        self._watched = False

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        """The ConfigMap, read with quorum; None when the server says 404.

        Raises ForbiddenError for a missing right, ReadBackError for every other answer, and for none.
        """
        slot = self._slot((namespace, name))
        try:
            found = self._client.send(self._call("get", namespace, name))
        except RefusalError as refusal:
            if refusal.status == NOT_FOUND:
                self._forget(slot)
                return None
            kind = ForbiddenError if refusal.status == FORBIDDEN else ReadBackError
            problem = kind(refusal.sentence, refusal.hint)
            problem.retry_after_s = refusal.retry_after_s
            raise problem from refusal
        except NoAnswerError as error:
            raise ReadBackError(error.sentence, error.hint) from error
        self._learn(slot, found)
        return found

    def write(self, obj: dict[str, object]) -> None:
        """Replace the ConfigMap, or create it where there is none.

        Raises PublishError; the object may have arrived all the same when there was no answer. After a conflict the
        object is read, so that an operator's edit is seen before it is overwritten, and ObjectChanged is raised,
        unless what is there is our own write whose answer got lost.
        """
        key = identity(obj)
        slot = self._slot(key)
        try:
            if not slot.read:
                self.read(*key)
            if self._replace_or_create(key, slot, obj):
                return
            found = self.read(*key)
            if found is None or found.get("data") == slot.lost:
                if self._replace_or_create(key, slot, obj):
                    return
                found = self.read(*key)
        except RefusalError as refusal:
            raise LaterError(refusal.sentence, refusal.hint, refusal.retry_after_s) from refusal
        except ReadBackError as error:
            raise LaterError(error.sentence, error.hint, error.retry_after_s) from error
        except NoAnswerError as error:
            raise PublishError(error.sentence, error.hint) from error
        raise ObjectChanged(f"{key[0]}/{key[1]} was changed by somebody else", found or {})

    def delete(self, namespace: str, name: str) -> None:
        """Delete exactly the version that we know; an object that is surely not there costs no request.

        Raises as `write` does. One that is new or was changed is read and told by ObjectChanged, unless it is our own
        write whose answer got lost.
        """
        key = (namespace, name)
        slot = self._slot(key)
        try:
            if not slot.read or (slot.lost is not None and not slot.versions):
                self.read(*key)  # a creation whose answer got lost may have arrived
            if self._removed(key, slot):
                return
            found = self.read(*key)
            if found is None or (found.get("data") == slot.lost and self._removed(key, slot)):
                return
        except RefusalError as refusal:
            raise LaterError(refusal.sentence, refusal.hint, refusal.retry_after_s) from refusal
        except ReadBackError as error:
            raise LaterError(error.sentence, error.hint, error.retry_after_s) from error
        except NoAnswerError as error:
            raise PublishError(error.sentence, error.hint) from error
        raise ObjectChanged(f"{namespace}/{name} was changed by somebody else", found)

    def heard(self, namespace: str, name: str, obj: dict[str, Any] | None) -> None:
        """What the watch says: the object as it is, None = there is none. From the thread of the watch."""
        slot = self._slot((namespace, name))
        with self._lock:
            self._watched = True
            slot.heard = {} if obj is None else obj
            if obj is not None and slot.versions and version_of(obj) == slot.versions[-1]:
                slot.unconfirmed_since_s = None

    def deaf(self) -> None:
        """The watch says nothing any more; writes are not expected to show in it."""
        with self._lock:
            self._watched = False

    def edited(self, namespace: str, name: str) -> dict[str, object] | None:
        """The object when the watch told of a version that is not ours; empty when somebody deleted it."""
        slot = self._slot((namespace, name))
        with self._lock:
            seen, slot.heard = slot.heard, None
            if seen is not None and slot.read and self._is_foreign(slot, seen):
                slot.versions.clear()
                slot.unconfirmed_since_s = None
                if seen:
                    slot.versions.append(version_of(seen))
                return seen
            since_s = slot.unconfirmed_since_s
            if since_s is None or not self._watched or monotonic_s() - since_s < self._confirm_s:
                return None
            slot.unconfirmed_since_s = None
        return self._look(slot, namespace, name)

    def edit_period_s(self) -> float | None:
        """While the watch has not shown our last write: when that becomes strange. Otherwise the watch is enough."""
        with self._lock:
            waiting = self._watched and any(slot.unconfirmed_since_s is not None for slot in self._slots.values())
        return self._confirm_s if waiting else None

    def describe(self) -> str:
        """`Kubernetes at <URL>`, or how it will be found while there was no call yet."""
        return self._client.describe()

    def _look(self, slot: _Slot, namespace: str, name: str) -> dict[str, object] | None:
        """Read an object that the watch should have shown: either the watch lags, or the server lost a write."""
        if self._on_lag is not None:
            self._on_lag()
        with self._lock:
            last = slot.versions[-1] if slot.versions else ""
        try:
            found = self.read(namespace, name)
        except ReadBackError:
            return None
        if found is None:
            return {}
        return None if version_of(found) == last else found

    @staticmethod
    def _is_foreign(slot: _Slot, seen: dict[str, Any]) -> bool:
        if not seen:
            return bool(slot.versions)
        return version_of(seen) not in slot.versions and (slot.lost is None or seen.get("data") != slot.lost)

    def _replace_or_create(self, key: Key, slot: _Slot, obj: dict[str, object]) -> bool:
        """One write; false when somebody else was quicker and the object must be read."""
        try:
            if slot.versions:
                try:
                    self._put(self._call("update", *key), slot, _with_version(obj, slot.versions[-1]))
                    return True
                except RefusalError as refusal:
                    if refusal.status != NOT_FOUND:
                        raise
                    self._forget(slot)
            self._put(self._call("create", key[0]), slot, obj)
            return True
        except RefusalError as refusal:
            if refusal.status != CONFLICT:
                raise
            return False

    def _removed(self, key: Key, slot: _Slot) -> bool:
        """One deletion; false when somebody else was quicker and the object must be read."""
        if not slot.versions:
            return True
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"resourceVersion": slot.versions[-1]},
        }
        try:
            self._client.send(self._call("delete", *key), options)
        except RefusalError as refusal:
            if refusal.status not in (CONFLICT, NOT_FOUND):
                raise
            if refusal.status == CONFLICT:
                return False
        self._forget(slot)
        slot.lost = None
        return True

    def _put(self, call: Call, slot: _Slot, obj: dict[str, object]) -> None:
        """Send the object. Raises PublishError when the server says that it keeps something else."""
        try:
            answer = self._client.send(call, obj)
        except NoAnswerError:
            slot.lost = obj["data"]
            raise
        slot.lost = None
        self._learn(slot, answer)
        if answer.get("data") != obj["data"] or not version_of(answer):
            raise PublishError(
                f"{call} was answered with success, but not with what was sent",
                "does an admission webhook change the object? exempt it",
            )
        with self._lock:
            slot.unconfirmed_since_s = monotonic_s()
            if slot.heard == {}:
                slot.heard = None  # that it was absent is old news
            if slot.heard is not None and version_of(slot.heard) == version_of(answer):
                slot.unconfirmed_since_s = None  # the watch was quicker than the answer

    def _slot(self, key: Key) -> _Slot:
        with self._lock:
            return self._slots.setdefault(key, _Slot())

    def _learn(self, slot: _Slot, obj: dict[str, Any]) -> None:
        with self._lock:
            slot.read = True
            slot.versions.append(version_of(obj))

    def _forget(self, slot: _Slot) -> None:
        with self._lock:
            slot.read = True
            slot.versions.clear()

    def _call(self, verb: str, namespace: str, name: str = "") -> Call:
        query = {} if verb in ("get", "delete") else {"fieldManager": USER_AGENT}
        return Call(verb, "configmaps", self._label, namespace, name, query=query)


def _with_version(obj: dict[str, object], version: str) -> dict[str, object]:
    """The object as a replacement of exactly that version."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "resourceVersion": version}} if isinstance(metadata, dict) else obj
