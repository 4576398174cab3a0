"""Our own DaemonSet as the owner of an object: who uninstalls us removes the object with it (node-faults 8.3).

The name and the UID stand in the owner references of our own pod, so one right is enough: to get that pod. Without it,
without a pod, or in another namespace than the object, the object belongs to nobody and stays when we are uninstalled.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from nodeagent.cluster.calls import METADATA, Call, NoAnswerError, RefusalError
from nodeagent.cluster.client import ApiClient
from nodeagent.core.clock import Clock
from nodeagent.render.node_info import NAMESPACE, Owner

_LOG = logging.getLogger("nodeagent.owner")

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where a pod finds the namespace of its service account, which is its own."""
RETRY_MS = 3600 * 1000
"""After a refusal: somebody must grant the right first."""


class OwnerSource(Protocol):
    """Who knows the owner of our objects."""

    def current(self) -> Owner | None:
        """The owner as far as it is known; may ask for it."""

    def renew(self) -> None:
        """The owner may have changed: ask again at the next `current`."""


def pod_of(environment: Mapping[str, str], namespace_file: Path = NAMESPACE_FILE) -> tuple[str, str] | None:
    """Namespace and name of the pod that we run in; None when that cannot be told.

    Name: `POD_NAME`. Namespace: `POD_NAMESPACE`, else the file of the service account.
    """
    name, namespace = environment.get("POD_NAME", ""), environment.get("POD_NAMESPACE", "")
    if not namespace:
        try:
            namespace = namespace_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            namespace = ""
    return (namespace, name) if namespace and name else None


class DaemonSetOwner:
    """Finds our DaemonSet when it is first wanted. pod: namespace and name of our pod, None = we run in none."""

    def __init__(self, client: ApiClient, pod: tuple[str, str] | None, clock: Clock) -> None:
        self._client = client
        self._pod = pod
        self._clock = clock
        self._owner: Owner | None = None
        self._stale = True
        self._not_before_ms = 0
        self._said = ""

    @classmethod
    def of_this_process(cls, client: ApiClient, clock: Clock) -> "DaemonSetOwner":
        """By our environment and the files of the service account."""
        return cls(client, pod_of(os.environ), clock)

    def current(self) -> Owner | None:
        """The owner as it was last found; a failed question takes nothing back.

        One request where it is not known or may have changed, and none for an hour after a refusal.
        """
        if self._stale and self._clock.now().mono_ms >= self._not_before_ms:
            self._look()
        return self._owner

    def renew(self) -> None:
        """The DaemonSet may be another one now, e.g. deleted without its pods and made again."""
        self._stale = True

    def _look(self) -> None:
        if self._pod is None:
            self._give_up("we run in no pod that is known: POD_NAME is not set")
            return
        namespace, name = self._pod
        if namespace != NAMESPACE:
            self._give_up(f"our pod is in {namespace}, an owner must be in the namespace of its objects, {NAMESPACE}")
            return
        try:
            pod = self._client.send(Call("get", "pods", "pod", namespace, name, accept=METADATA))
        except RefusalError as refusal:
            self._give_up(f"{refusal.sentence} ({refusal.hint})" if refusal.hint else refusal.sentence)
            return
        except NoAnswerError as error:
            self._say(error.sentence)  # what is written next fails as well, and is repeated
            return
        found = _daemon_set(pod)
        if found is None:
            self._give_up(f"our pod {name} does not belong to a DaemonSet")
            return
        self._owner, self._stale, self._said = found, False, ""

    def _give_up(self, why: str) -> None:
        self._not_before_ms = self._clock.now().mono_ms + RETRY_MS
        self._say(why)

    def _say(self, why: str) -> None:
        if why != self._said:
            self._said = why
            _LOG.info("event=no_owner why=%r effect=%r", why, "uninstalling nodeagent leaves the object: use cleanup")


def _daemon_set(pod: Mapping[str, Any]) -> Owner | None:
    metadata = pod.get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for each in references if isinstance(references, list) else []:
        if each.get("kind") == "DaemonSet" and each.get("controller") and each.get("name") and each.get("uid"):
            return Owner(str(each["name"]), str(each["uid"]))
    return None
