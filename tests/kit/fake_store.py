"""What a pretended API server keeps: objects with versions, and the events that watches see."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Key = tuple[str, str]


@dataclass(frozen=True)
class Target:
    """What a request is about. name: empty = the collection."""

    resource: str
    namespace: str
    name: str
    query: dict[str, str]

    def selects(self, obj: dict[str, Any]) -> bool:
        """The field selector of the request takes this object."""
        for term in filter(None, self.query.get("fieldSelector", "").split(",")):
            wanted, equals = term.partition("!=")[::2], "!=" not in term
            path, value = term.partition("=")[::2] if equals else wanted
            found: Any = obj
            for part in path.split("."):
                found = found.get(part, {}) if isinstance(found, dict) else {}
            if (found == value) is not equals:
                return False
        labels = obj["metadata"].get("labels", {})
        for term in filter(None, self.query.get("labelSelector", "").split(",")):
            name, _, value = term.partition("=")
            if labels.get(name) != value:
                return False
        return not self.namespace or obj["metadata"].get("namespace") == self.namespace


def target_of(path: str) -> Target:
    """Resource, namespace, name and query of a path."""
    url = urlsplit(path)
    parts = [unquote(part) for part in url.path.strip("/").split("/")]
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if len(parts) > 2 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    return Target(parts[0], namespace, parts[1] if len(parts) > 1 else "", query)


def status_of(code: int, message: str) -> dict[str, Any]:
    """A Status object."""
    return {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": message}


@dataclass
class Store:
    """Objects by resource, and what happened to them. oldest: versions before this one are gone for watches.

    followed: watches that were opened so far.
    denied: (verb, resource) that access reviews say no to; a resource may be `nodes/status`. Requests are not judged.
    """

    kept: dict[str, dict[Key, dict[str, Any]]] = field(default_factory=dict)
    happened: list[tuple[int, str, str, dict[str, Any]]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    version: int = 100
    oldest: int = 0
    followed: int = 0
    denied: set[tuple[str, str]] = field(default_factory=set)
    _changed: threading.Condition = field(init=False)
    _cuts: int = 0
    _parting: list[Any] = field(default_factory=list)
    _ended: bool = False

    def __post_init__(self) -> None:
        self._changed = threading.Condition(self.lock)

    def of(self, resource: str) -> dict[Key, dict[str, Any]]:
        """Objects of a resource."""
        return self.kept.setdefault(resource, {})

    def store(self, resource: str, key: Key, obj: dict[str, Any]) -> dict[str, Any]:
        """Keep an object with a new version, and tell the watches."""
        kind = "MODIFIED" if key in self.of(resource) else "ADDED"
        self.version += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self.of(resource)[key] = stored
        self._tell(resource, kind, stored)
        return stored

    def remove(self, resource: str, key: Key) -> None:
        """Delete an object, and tell the watches."""
        self.version += 1
        gone = self.of(resource).pop(key)
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        self._tell(resource, "DELETED", gone)

    def forget_history(self) -> None:
        """Watches from any version so far get 410."""
        with self.lock:
            self.oldest = self.version + 1
            self.version += 1

    def cut_watches(self, *parting: Any) -> None:
        """End all watches; parting: events or raw bytes sent before. A last None ends them properly."""
        with self.lock:
            self._parting = list(parting)
            self._cuts += 1
            self._changed.notify_all()

    def end_watches(self) -> None:
        """The server ends."""
        with self.lock:
            self._ended = True
            self._changed.notify_all()

    def follow(self, target: Target) -> Iterator[Any]:
        """Events of a watch; None = the proper end. A plain end of the iteration is a broken connection."""
        seen = int(target.query["resourceVersion"])
        with self.lock:
            cuts = self._cuts
            self.followed += 1
            if seen < self.oldest:
                yield {"type": "ERROR", "object": status_of(410, "too old resource version")}
                yield None
                return
        while True:
            with self.lock:
                while not (news := self._news(target, seen)) and self._cuts == cuts and not self._ended:
                    self._changed.wait(1)
                parting = self._parting if self._cuts != cuts else None
                if self._ended:
                    return
            for version, kind, obj in news:
                seen = version
                yield {"type": kind, "object": obj}
            if parting is not None:
                yield from parting
                return

    def answer(self, method: str, path: str, headers: dict[str, str], body: Any) -> tuple[int, dict[str, Any]]:
        """What a real server would do; returns status and body."""
        if path == "/version":
            return 200, {"gitVersion": "v1.33.1"}
        target = target_of(path)
        with self.lock:
            if target.resource == "selfsubjectaccessreviews":
                asked = body["spec"]["resourceAttributes"]
                resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
                return 201, {**body, "status": {"allowed": (asked["verb"], resource) not in self.denied}}
            if method == "POST":
                return self._create(target, body)
            if not target.name:
                return 200, self._page(target)
            key = (target.namespace, target.name)
            present = self.of(target.resource).get(key)
            if present is None:
                return 404, status_of(404, f'{target.resource} "{target.name}" not found')
            if method == "GET":
                return 200, present
            if method == "DELETE":
                wanted = body.get("preconditions", {})
                if any(present["metadata"].get(name, value) != value for name, value in wanted.items()):
                    return 409, status_of(409, "the precondition is not met")
                self.remove(target.resource, key)
                return 200, {"kind": "Status", "status": "Success"}
            asked = body["metadata"].get("resourceVersion") if "metadata" in body else None
            if asked is not None and asked != present["metadata"]["resourceVersion"]:
                return 409, status_of(409, "the object has been modified")
            if method == "PATCH":
                strategic = headers.get("content-type") == "application/strategic-merge-patch+json"
                return 200, self.store(target.resource, key, merged(present, body, by_type=strategic))
            return 200, self.store(target.resource, key, body)

    def _page(self, target: Target) -> dict[str, Any]:
        """A list, or the part of it that was asked for."""
        items = [obj for obj in self.of(target.resource).values() if target.selects(obj)]
        first, limit = int(target.query.get("continue", 0)), int(target.query.get("limit", len(items) or 1))
        more = {"continue": str(first + limit)} if first + limit < len(items) else {}
        return {"items": items[first : first + limit], "metadata": {"resourceVersion": str(self.version), **more}}

    def _create(self, target: Target, body: Any) -> tuple[int, dict[str, Any]]:
        name = body["metadata"].get("name") or f"{body['metadata']['generateName']}{self.version}"
        key = (target.namespace, name)
        if key in self.of(target.resource):
            return 409, status_of(409, f'{target.resource} "{name}" already exists')
        if "resourceVersion" in body["metadata"]:
            return 400, status_of(400, "resourceVersion should not be set on objects to be created")
        return 201, self.store(target.resource, key, {**body, "metadata": {**body["metadata"], "name": name}})

    def _news(self, target: Target, seen: int) -> list[tuple[int, str, dict[str, Any]]]:
        return [
            (version, kind, obj)
            for version, resource, kind, obj in self.happened
            if version > seen and resource == target.resource and target.selects(obj)
        ]

    def _tell(self, resource: str, kind: str, obj: dict[str, Any]) -> None:
        self.happened.append((self.version, resource, kind, obj))
        self._changed.notify_all()


def merged(present: Any, patch: Any, by_type: bool = False) -> Any:
    """A JSON merge patch applied (RFC 7396). by_type: lists of conditions merge by their type, as strategic ones do."""
    if by_type and isinstance(patch, list) and isinstance(present, list):
        after = {each["type"]: each for each in present}
        for each in patch:
            if each.get("$patch") == "delete":
                after.pop(each["type"], None)
            else:
                after[each["type"]] = {**after.get(each["type"], {}), **each}
        return list(after.values())
    if not isinstance(patch, dict):
        return patch
    result = dict(present) if isinstance(present, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value, by_type)
    return result
