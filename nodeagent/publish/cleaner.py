"""Removes from a cluster what the daemons left there, with the rights of the administrator who asks for it.

This is a tool and no daemon: it lists. Only metadata is read, in pages; of a public fault object also its text, because
ClusterD must hear of a recovery before the object goes. Nothing is removed that changed since it was
looked at: ConfigMaps go with a precondition on their version, marks of a node by a patch of that version.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nodeagent.cluster.calls import (
    CONFLICT,
    MERGE_PATCH,
    NOT_FOUND,
    STRATEGIC_PATCH,
    Call,
    NoAnswerError,
    RefusalError,
    version_of,
)
from nodeagent.cluster.client import ApiClient
from nodeagent.publish.leftovers import (
    KINDS,
    NAMESPACES,
    Leftover,
    What,
    conditions_patch,
    config_map_leftover,
    kind_of,
    marks_patch,
    node_leftovers,
    nodes_of,
)
from nodeagent.publish.public_fault_leftover import recovery_of

PAGE = 500
PODS = "app.kubernetes.io/name=nodeagent"
"""Label of the daemon's pods, as the manifests set it."""
_MANAGER = {"fieldManager": "nodeagent-cleanup"}
_ATTEMPTS = 3
"""A node object changes often; it is looked at again as many times."""


@dataclass(frozen=True, slots=True)
class Removal:
    """One leftover after the attempt. problem: why it is still there; empty = it is gone."""

    leftover: Leftover
    problem: str = ""


class Cleaner:
    """Works on one cluster. now_ms: Unix milliseconds. page: objects of one list request."""

    def __init__(self, client: ApiClient, now_ms: int, page: int = PAGE) -> None:
        self._client = client
        self._now_ms = now_ms
        self._page = page

    def of_node(self, name: str) -> list[Leftover]:
        """What is left of one node. Raises RefusalError, NoAnswerError."""
        pods = self._pods({"fieldSelector": f"spec.nodeName={name}"})
        maps = [self._get("configmaps", each, kind.namespace) for kind in KINDS for each in kind.names(name)]
        node = self._get("nodes", name)
        return self._judged([each for each in maps if each is not None], [] if node is None else [node], pods)

    def of_all(self) -> list[Leftover]:
        """What is left of all nodes, those included that the cluster has no more. Raises as `of_node`."""
        pods = self._pods({})
        maps = [each for namespace in NAMESPACES for each in self._list("configmaps", namespace)]
        return self._judged(maps, list(self._list("nodes")), pods)

    def remove(self, leftovers: Iterable[Leftover]) -> list[Removal]:
        """Remove those that are ours; one that cannot be removed does not keep the others."""
        done = []
        nodes: dict[str, list[Leftover]] = {}
        for each in leftovers:
            if each.kept:
                continue
            if each.what is What.CONFIG_MAP:
                done.append(Removal(each, self._delete(each)))
            else:
                nodes.setdefault(each.place, []).append(each)
        for name, marks in nodes.items():
            problem = self._unmark(name, marks)
            done += [Removal(each, problem) for each in marks]
        return done

    def _judged(self, maps: list[dict[str, Any]], nodes: list[dict[str, Any]], pods: dict[str, str]) -> list[Leftover]:
        found = []
        for metadata in maps:
            kind = kind_of(metadata)
            if kind is not None:
                pod = next((pods[name] for name in sorted(nodes_of(metadata)) if name in pods), "")
                found.append(_unless_running(config_map_leftover(metadata, kind, self._now_ms), pod))
        for metadata in nodes:
            pod = pods.get(str(metadata.get("name")), "")
            found += [_unless_running(each, pod) for each in node_leftovers(metadata)]
        return found

    def _delete(self, leftover: Leftover) -> str:
        """Remove one ConfigMap; what is wrong, empty = it is gone."""
        namespace, _, name = leftover.place.partition("/")
        kind = kind_of({"namespace": namespace, "name": name})
        label, version = "configmaps" if kind is None else kind.label, leftover.version
        try:
            if label == "public_fault":
                version = self._recover(namespace, name, version)
            options = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": leftover.uid, "resourceVersion": version},
            }
            self._client.send(Call("delete", "configmaps", label, namespace, name), options)
        except RefusalError as refusal:
            if refusal.status == NOT_FOUND:
                return ""
            if refusal.status == CONFLICT:
                return "it was written since it was looked at: does a daemon still run?"
            return _words(refusal)
        except NoAnswerError as error:
            return _words(error)
        return ""

    def _recover(self, namespace: str, name: str, version: str) -> str:
        """Tell ClusterD that the faults of a public fault object have recovered; the version that is there then."""
        call = Call("get", "configmaps", "public_fault", namespace, name)
        obj = self._client.send(call)
        recovery = recovery_of(obj, str(uuid.uuid4()), self._now_ms)
        if recovery is None or version_of(obj) != version:
            return version
        call = Call("update", "configmaps", "public_fault", namespace, name, query=_MANAGER)
        return version_of(self._client.send(call, recovery))

    def _unmark(self, name: str, marks: list[Leftover]) -> str:
        """Remove all marks of one node; what is wrong, empty = they are gone."""
        wanted = {(each.what, each.name) for each in marks}
        try:
            for _ in range(_ATTEMPTS):
                try:
                    self._patch(name, marks)
                except RefusalError as refusal:
                    if refusal.status != CONFLICT:
                        raise
                node = self._get("nodes", name)
                left = [] if node is None else node_leftovers(node)
                marks = [each for each in left if (each.what, each.name) in wanted and not each.kept]
                if not marks:
                    return ""
        except (RefusalError, NoAnswerError) as error:
            return _words(error)
        return "the node changes all the time, or somebody sets it again: does a daemon still run?"

    def _patch(self, name: str, marks: list[Leftover]) -> None:
        patch = marks_patch(marks)
        if patch is not None:
            self._client.send(
                Call("patch", "nodes", "node", name=name, query=_MANAGER, content_type=MERGE_PATCH), patch
            )
        patch = conditions_patch(marks)
        if patch is not None:
            call = Call(
                "patch",
                "nodes",
                "node_status",
                name=name,
                subresource="status",
                query=_MANAGER,
                content_type=STRATEGIC_PATCH,
            )
            self._client.send(call, patch)

    def _get(self, resource: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """Metadata of an object; None when there is none."""
        try:
            return _metadata(self._client.send(Call("get", resource, resource, namespace, name, accept=_one())))
        except RefusalError as refusal:
            if refusal.status == NOT_FOUND:
                return None
            raise

    def _list(self, resource: str, namespace: str = "") -> Iterable[dict[str, Any]]:
        """Metadata of all objects, page by page."""
        query = {"limit": str(self._page)}
        while True:
            answer = self._client.send(Call("list", resource, resource, namespace, query=query, accept=_one("List")))
            for item in answer.get("items") or []:
                yield _metadata(item)
            more = (answer.get("metadata") or {}).get("continue")
            if not more:
                return
            query = {"limit": str(self._page), "continue": str(more)}

    def _pods(self, query: dict[str, str]) -> dict[str, str]:
        """Daemons that run: name of a pod by its node."""
        call = Call("list", "pods", "pods", query={"labelSelector": PODS, **query})
        found = {}
        for pod in self._client.send(call).get("items") or []:
            if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
                metadata = pod["metadata"]
                found[str(pod.get("spec", {}).get("nodeName"))] = f"{metadata['namespace']}/{metadata['name']}"
        return found


def _unless_running(leftover: Leftover, pod: str) -> Leftover:
    if not pod or leftover.kept:
        return leftover
    kept = f"the daemon still runs, as pod {pod}; uninstall it first"
    return Leftover(leftover.what, leftover.place, leftover.name, kept, "", leftover.uid, leftover.version)


def _one(suffix: str = "") -> str:
    return f"application/json;as=PartialObjectMetadata{suffix};g=meta.k8s.io;v=v1"


def _metadata(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise NoAnswerError("the API server answered with an object without metadata")
    return metadata


def _words(error: RefusalError | NoAnswerError) -> str:
    return f"{error.sentence} ({error.hint})" if error.hint else error.sentence
