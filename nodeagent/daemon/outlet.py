"""Where the core loop's views go: to everyone who writes about the node. None of them writes before `begin`."""

from collections.abc import Callable

from nodeagent.core.model import NodeView, Product
from nodeagent.daemon.cluster import Cluster
from nodeagent.publish.publisher import Publisher


class Outlet:
    """Called from the core loop; `stop` from any thread. seen: hears what the driver says the node is."""

    def __init__(self, publisher: Publisher, cluster: Cluster | None, seen: Callable[[Product], None]) -> None:
        self._publisher = publisher
        self._cluster = cluster
        self._seen = seen
        self._begun = False

    def submit(self, view: NodeView) -> None:
        """The node as it is now; never blocks."""
        self._seen(view.product)
        self._publisher.submit(view)
        if self._cluster is not None:
            self._cluster.submit(view)

    def begin(self) -> None:
        """Views are complete from now on: write."""
        if self._cluster is not None:
            self._cluster.begin()
        if not self._begun:
            self._begun = True
            self._publisher.start()

    def stop(self, timeout_s: float) -> bool:
        """Write no more; false when the publisher is still busy after `timeout_s` seconds."""
        return not self._begun or self._publisher.stop(timeout_s)
