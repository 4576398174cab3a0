"""The API server of a simulated fleet, what it costs, and what it has in the end."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import psutil
from kit.cluster import Cluster
from kit.daemon_account import account_of_daemons

from nodeagent.render.device_info import LABELS, NAME_PREFIX, NAMESPACE
from nodeagent.render.reading import parse_device_info

_PAGE = 500


class Cpu:
    """CPU of three processes between `with` and its end, percent of one core."""

    def __init__(self, api_server: int, etcd: int) -> None:
        self._processes = [psutil.Process(pid) for pid in (api_server, etcd, os.getpid())]
        self.api_server_percent = self.etcd_percent = self.own_percent = 0.0

    def __enter__(self) -> "Cpu":
        self._began_s, self._before = time.monotonic(), self._used()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        passed_s = time.monotonic() - self._began_s
        used = [100 * (after - before) / passed_s for after, before in zip(self._used(), self._before, strict=True)]
        self.api_server_percent, self.etcd_percent, self.own_percent = used

    def _used(self) -> list[float]:
        return [sum(process.cpu_times()[:2]) for process in self._processes]


class Server:
    """A control plane and the rights of all daemons in it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.kubeconfig = account_of_daemons(cluster)

    @classmethod
    @contextlib.contextmanager
    def running(cls, folder: Path) -> Iterator["Server"]:
        """A control plane of one's own with its state in a folder, killed at the end."""
        with Cluster(folder) as cluster:
            yield cls(cluster)

    def cpu(self) -> Cpu:
        """Measures API server, etcd and ourselves."""
        return Cpu(self._cluster.api_server.pid, self._cluster.etcd.pid)

    def rss_mib(self) -> float:
        """Resident memory of the API server."""
        return float(psutil.Process(self._cluster.api_server.pid).memory_info().rss) / 2**20

    def kill(self) -> None:
        """SIGKILL to the API server."""
        self._cluster.api_server.kill()

    def start(self) -> None:
        """Start it again; returns when it is ready."""
        self._cluster.api_server.start()

    def devices_with_faults(self) -> dict[str, frozenset[str]]:
        """The devices with a fault by node, as a consumer reads them from the cluster."""
        (selector,) = (f"{key}={value}" for key, value in LABELS.items())
        base = f"/api/v1/namespaces/{NAMESPACE}/configmaps?limit={_PAGE}&labelSelector={quote(selector)}"
        found, more = {}, ""
        while True:
            answer = self._cluster.call("GET", f"{base}&continue={quote(more)}")
            assert answer.status == 200, answer
            for item in answer.document["items"]:
                parsed = parse_device_info(item["data"])
                name = item["metadata"]["name"].removeprefix(NAME_PREFIX)
                found[name] = frozenset(fault.device for fault in parsed.faults)
            more = answer.document["metadata"].get("continue", "")
            if not more:
                return found
