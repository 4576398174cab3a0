"""The daemon as a process that publishes to a real API server."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from kit.cluster import Cluster
from kit.daemon import Daemon, daemon_on

from nodeagent.mock.launch import MockServer
from nodeagent.render.device_info import NAMESPACE, object_name


@contextlib.contextmanager
def daemon_in(
    cluster: Cluster, server: MockServer, folder: Path, node: str, kubeconfig: Path | None = None, **settings: object
) -> Iterator[Daemon]:
    """`kit.daemon.daemon_on` for a node of a cluster.

    kubeconfig: whose rights it has, default those of our service account.
    """

    def read() -> Mapping[str, str] | None:
        found = cluster.config_map(NAMESPACE, object_name(node))
        return None if found is None else found["data"]

    target = {
        "publish__target": "kubernetes",
        "publish__kubeconfig": kubeconfig or cluster.daemon_kubeconfig or cluster.admin_kubeconfig,
        "node__name": node,
    }
    with daemon_on(server, folder, **target, **settings) as daemon:
        daemon.read = read
        yield daemon
