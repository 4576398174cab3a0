"""The daemon on a real API server, watched for what it does about node faults."""

import contextlib
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kit.cluster import Cluster
from kit.cluster_daemon import daemon_in
from kit.daemon import Daemon, wait_until
from kit.manifests import NAMESPACE
from kit.server_process import free_ports

from nodeagent.core.storage import StorageClient
from nodeagent.mock.launch import MockServer
from nodeagent.render import node_info, public_fault

CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
CPU, PSU, SYSTEM = "0000001D", "03000009", "2C000031"
ONLY_CPU = "230d03dc0e52145f85b908ee146e2c76a7bafc92adde6a30549037a5a743dd45"
ONLY_SYSTEM = "d7134e299de8c8a9e6183db03db66815242378dc3d562bd5df0b242d61935dc0"
CPU_SEPARATE = "3788c2f6777fe51a79769c1cd872a8c6a14d8043616f6e6929cd5f452e9a3ad7"
"""CheckCodes of CPU 1 with its shipped level, of the system alone, of CPU 1 as SeparateFault (node-faults 8.2, T8)."""


class Watched:
    """A daemon, and what the API server has of the node's faults."""

    def __init__(self, cluster: Cluster, daemon: Daemon, node: str, shadow: bool = False) -> None:
        self.cluster, self.daemon, self.node = cluster, daemon, node
        self.name = node_info.object_name(node, shadow)
        self.told_in = public_fault.object_name(StorageClient.DPC, node, shadow)

    def object(self) -> dict[str, Any] | None:
        """The node-info object."""
        return self.cluster.config_map(NAMESPACE, self.name)

    def document(self) -> dict[str, Any]:
        """What it says; empty without it."""
        found = self.object()
        return {} if found is None else dict(json.loads(found["data"]["NodeInfo"]))

    def wait_for(self, check_code: str) -> dict[str, Any]:
        """The object once it says just this."""
        self._wait(lambda: self.document().get("CheckCode") == check_code, f"CheckCode {check_code[:8]}")
        return self.present()

    def wait_for_codes(self, *codes: str) -> dict[str, Any]:
        """The object once it names just these alarms."""

        def named() -> set[str]:
            devices = self.document().get("NodeInfo", {}).get("FaultDevList", [])
            return {code for device in devices for code in device["FaultCode"]}

        self._wait(lambda: named() == set(codes), f"alarms {codes}")
        return self.present()

    def wait_until_gone(self) -> None:
        """No object, after a good poll."""
        self._wait(lambda: self.object() is None, "no node-info object")

    def present(self) -> dict[str, Any]:
        """The object, which is there."""
        found = self.object()
        assert found is not None
        return found

    def message(self) -> dict[str, Any]:
        """The last public fault message; empty while there is none."""
        found = self.cluster.config_map(NAMESPACE, self.told_in)
        return {} if found is None else dict(json.loads(found["data"]["PublicFault"]))

    def wait_for_assertion(self, code: str, assertion: str) -> dict[str, Any]:
        """The public fault once the last message says this of it."""

        def said() -> list[dict[str, Any]]:
            return [
                f for f in self.message().get("faults", []) if (f["faultCode"], f["assertion"]) == (code, assertion)
            ]

        self._wait(said, f"{code} {assertion}")
        return said()[0]

    def changes(self, since: str, name: str = "") -> list[dict[str, Any]]:
        """Watch events of the object since a version."""
        events = self.cluster.changes(CONFIG_MAPS, since)
        return [event for event in events if event["object"]["metadata"]["name"] == (name or self.name)]

    def state(self) -> dict[str, Any]:
        """What the daemon tells of itself."""
        address = f"http://127.0.0.1:{self.daemon.settings['http.port']}/state"
        with urllib.request.urlopen(address, timeout=10) as answer:
            return dict(json.load(answer))

    def answers(self) -> bool:
        """The daemon listens already."""
        try:
            self.state()
        except OSError:
            return False
        return True

    def polled(self) -> None:
        """Wait until the board is known."""
        self._wait(lambda: self.answers() and self.state()["board"]["known"], "the first good poll")

    def _wait(self, condition: Callable[[], Any], what: str) -> None:
        try:
            wait_until(condition, what)
        except AssertionError as error:
            tail = "\n".join(self.daemon.words().splitlines()[-40:])
            raise AssertionError(f"{error}\nnode-info: {self.object()}\nend of the log:\n{tail}") from None


@contextlib.contextmanager
def watched(
    cluster: Cluster,
    server: MockServer,
    folder: Path,
    node: str,
    outages: bool = False,
    **settings: object,
) -> Iterator[Watched]:
    """A daemon that is quick about node faults. outages: the API server is stopped meanwhile."""
    (port,) = free_ports(1)
    quick: dict[str, object] = {
        "ipmi__poll_period_s": 0.2,
        "ipmi__report_interval_s": 0.05,
        "storage__read_period_s": 0.1,
        "http__port": port,
        "node_object__enabled": "false",
    }
    with daemon_in(cluster, server, folder, node, **{**quick, **settings}) as daemon:
        yield Watched(cluster, daemon, node, settings.get("publish__mode") == "shadow")
    if not outages:  # a server that starts knows no roles at first
        assert "grant the verb" not in daemon.words(), "it asks for more than the manifests grant"
