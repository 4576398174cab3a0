"""Tell public faults by ConfigMaps that ClusterD follows, one for each client (node-faults 13.4; decision 28)."""

import logging
from collections.abc import Mapping

from nodeagent.core.errors import PublishError
from nodeagent.core.storage import StorageClient
from nodeagent.publish.targets import ObjectChanged, Target
from nodeagent.render.public_fault import NAMESPACE, LastWord, Message, config_map, last_word, object_name, with_id

log = logging.getLogger("nodeagent.public_faults")

_ATTEMPTS = 3
"""More changes by others than this between two writes of ours are a failure, with its growing pauses."""


class ConfigMapCourier:
    """Writes the ConfigMaps of one node. target: used by one thread alone. shadow: to the names that nobody reads."""

    whole = True

    def __init__(self, target: Target, node_name: str, shadow: bool = False) -> None:
        self._target = target
        self._node_name = node_name
        self._shadow = shadow
        self._spoilt: set[StorageClient] = set()

    def deliver(self, message: Message) -> None:
        """Write the message. Raises PublishError; then it may be there all the same.

        ClusterD skips an update when it cannot read what the object said before (13.4). After such content the message
        is written twice, under another id at first.
        """
        for _ in range(_ATTEMPTS):
            try:
                if message.client in self._spoilt:
                    self._write(with_id(message, f"{message.id}.0"))
                    self._spoilt.discard(message.client)
                self._write(message)
                return
            except ObjectChanged as change:
                self._judge(message.client, change.obj)
        raise PublishError(f"the object of {message.client.resource} was changed by somebody else {_ATTEMPTS} times")

    def recall(self, client: StorageClient) -> LastWord | None:
        """The message in the object. Raises ReadBackError, ForbiddenError without the right to read it."""
        obj = self._target.read(NAMESPACE, object_name(client, self._node_name, self._shadow))
        return None if obj is None else self._judge(client, obj)

    def describe(self) -> str:
        """`ConfigMaps, <target>`."""
        return f"ConfigMaps, {self._target.describe()}"

    def _write(self, message: Message) -> None:
        self._target.write(config_map(message, self._node_name, self._shadow))

    def _judge(self, client: StorageClient, obj: Mapping[str, object]) -> LastWord:
        word = last_word(obj, client, self._node_name)
        if word.parsed:
            self._spoilt.discard(client)
        elif client not in self._spoilt:
            self._spoilt.add(client)
            log.warning("event=public_fault_object_spoilt resource=%s action='written twice'", client.resource)
        return word
