"""A real API server for the benchmarks that need one."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from cluster.build import NoControlPlane, build, given
from kit.cluster import Cluster
from kit.daemon_account import account_of_daemons
from rig import NODE

from nodeagent.render.device_info import NAMESPACE


@dataclass(frozen=True)
class ControlPlane:
    """A control plane that runs. kubeconfig: the rights of the daemons."""

    cluster: Cluster
    kubeconfig: Path

    def settings(self, folder: Path) -> dict[str, str]:
        """Settings of a daemon that publishes there."""
        return {
            "publish.target": "kubernetes",
            "publish.kubeconfig": str(self.kubeconfig),
            "daemon.lock": str(folder / ".state" / "lock"),
        }

    @staticmethod
    def path_of(name: str) -> str:
        """Of a ConfigMap beside those of the nodes."""
        return f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}"


@contextlib.contextmanager
def control_plane(title: str, folder: Path, *api_flags: str) -> Iterator[ControlPlane | None]:
    """One of our own, killed at the end, with the node of the benchmarks in it.

    None, and a line that says why, when there are no programs for it.
    """
    try:
        if given() is None:
            build()
    except NoControlPlane as error:
        print(f"{title} left out: {error}")
        yield None
        return
    with Cluster(folder, api_flags=api_flags) as cluster:
        cluster.create("/api/v1/nodes", "Node", NODE)
        yield ControlPlane(cluster, account_of_daemons(cluster))
