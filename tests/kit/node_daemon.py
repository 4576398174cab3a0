"""An overlay of the manifests on a real node, changed only where the node of the tests needs it."""

import contextlib
import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kit.daemon import LIMIT_S, wait_until
from kit.manifests import MANIFESTS, NAMESPACE, objects, one
from kit.node import NODE, RealNode
from kit.node_images import AGENT
from kit.node_leftovers import CGROUPS
from kit.server_process import free_ports

from nodeagent.core.errors import ReadBackError
from nodeagent.core.storage import StorageClient
from nodeagent.render import node_info, public_fault
from nodeagent.render.device_info import NAMESPACE as TARGET_NAMESPACE
from nodeagent.render.device_info import object_name
from nodeagent.render.reading import ParsedDeviceInfo, parse_device_info

SELECTORS = {"dry-run": "app.kubernetes.io/instance%3Ddry-run", "a2": "app.kubernetes.io/instance%3Dnodeagent"}
HARDWARE = "/hardware"

Object = dict[str, Any]


@dataclass
class DaemonInPod:
    """A DaemonSet of ours, installed on the node.

    hardware: folder of the socket of a mock node outside of the pod, which outlives it; None = the pod's own.
    settings: `a.b` to value, over those of the overlay. container: fields of the container to be changed. overlay: its
    name. host: where the folders lie that the overlay takes from the machine, all but /dev, and /proc where it has no
    folder `proc`; needed where it takes any.
    """

    node: RealNode
    hardware: Path | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    container: Mapping[str, object] = field(default_factory=dict)
    image: str = AGENT
    overlay: str = "dry-run"
    host: Path | None = None
    _port: int = field(default_factory=lambda: free_ports(1)[0])

    @property
    def selector(self) -> str:
        """Finds its pods."""
        return SELECTORS[self.overlay]

    @property
    def node_name(self) -> str:
        """The node whose objects it writes."""
        return f"dry-run-{NODE}" if self.overlay == "dry-run" else NODE

    @property
    def shadow(self) -> bool:
        """It writes to the names that nobody reads."""
        return self.settings.get("publish.mode") == "shadow"

    @property
    def object_path(self) -> str:
        """Path of the published object at the API server."""
        return f"/api/v1/namespaces/{TARGET_NAMESPACE}/configmaps/{object_name(self.node_name, self.shadow)}"

    def node_info(self) -> Object | None:
        """The node-info object."""
        return self.node.cluster.config_map(NAMESPACE, node_info.object_name(self.node_name, self.shadow))

    def wait_for_alarms(self, *codes: str) -> Object:
        """The node-info object once it names just these alarms; empty when there is to be none."""

        def named() -> set[str]:
            found = self.node_info()
            devices = [] if found is None else json.loads(found["data"]["NodeInfo"])["NodeInfo"]["FaultDevList"]
            return {code for device in devices for code in device["FaultCode"]}

        try:
            wait_until(lambda: named() == set(codes) and (codes or self.node_info() is None), f"alarms are {codes}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.node_info()}\n{self.logs()}") from None
        return self.node_info() or {}

    def public_fault(self, client: StorageClient) -> Object | None:
        """The object that tells ClusterD of a storage client."""
        return self.node.cluster.config_map(NAMESPACE, public_fault.object_name(client, self.node_name, self.shadow))

    def wait_for_assertion(self, client: StorageClient, code: str, assertion: str) -> Object:
        """That object once its message says this of a fault."""

        def said() -> set[tuple[str, str]]:
            found = self.public_fault(client)
            faults = [] if found is None else json.loads(found["data"]["PublicFault"])["faults"]
            return {(fault["faultCode"], fault["assertion"]) for fault in faults}

        wait_until(lambda: (code, assertion) in said(), f"{code} {assertion}")
        return self.public_fault(client) or {}

    def apply(self) -> None:
        """Create or update the objects."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": self.objects()})
        self.node.cluster.kubectl("apply", "-f", "-", input=text)

    def delete(self) -> None:
        """Delete them, and wait until the pod is gone."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": self.objects()})
        self.node.cluster.kubectl("delete", "--ignore-not-found", "-f", "-", input=text)
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={self.selector}"
        wait_until(lambda: not self.node.cluster.call("GET", path).document["items"], "the pods are gone")

    def objects(self) -> list[Object]:
        """The overlay as it is applied."""
        found = objects(self.node.cluster.kubectl("kustomize", MANIFESTS / "overlays" / self.overlay).stdout)
        config = one(found, "ConfigMap")["data"]
        settings = yaml.safe_load(config["config.yaml"])
        for path, value in {"publish.mode": "live", "http.port": self._port, **self.settings}.items():
            area, _, key = path.partition(".")
            settings.setdefault(area, {})[key] = value
        config["config.yaml"] = yaml.safe_dump(settings)
        if "timeline.yaml" in config:
            config["timeline.yaml"] = "timeline: []\n"
        pod = one(found, "DaemonSet")["spec"]["template"]["spec"]
        pod |= {"hostNetwork": True, "dnsPolicy": "Default"}  # there is no pod network
        for volume in pod["volumes"]:
            if volume.get("hostPath") and volume["name"] != "dev":
                assert self.host is not None
                if volume["name"] != "proc" or (self.host / "proc").exists():
                    volume["hostPath"]["path"] = str(self.host / volume["name"])
        (container,) = pod["containers"]
        container |= {"image": self.image, "imagePullPolicy": "Never"}
        container["ports"] = [{"name": "http", "containerPort": self._port}]
        container["env"] += [  # nothing routes the address of the service
            {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(self.node.cluster.port)},
        ]
        if self.hardware is not None:
            container["env"].append({"name": "NODEAGENT_MOCK_SOCKET", "value": f"{HARDWARE}/socket"})
            container["volumeMounts"].append({"name": "hardware", "mountPath": HARDWARE})
            pod["volumes"].append({"name": "hardware", "hostPath": {"path": str(self.hardware)}})
        container |= deepcopy(dict(self.container))
        return found

    def pod(self, *, not_uid: str = "", ready: bool = True, restarts: int = 0) -> Object:
        """The pod when its container runs (and is ready) after so many restarts."""

        def good(pod: Object) -> bool:
            states = pod["status"].get("containerStatuses", [])
            return pod["metadata"]["uid"] != not_uid and any(
                "running" in s["state"] and s["restartCount"] >= restarts and (s["ready"] or not ready) for s in states
            )

        return self.node.wait_for_pod(
            NAMESPACE, self.selector, good, f"a pod runs after {restarts} restarts", 2 * LIMIT_S
        )

    def exec(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the pod's container."""
        name = self.pod(ready=False)["metadata"]["name"]
        return self.node.cluster.kubectl("-n", NAMESPACE, "exec", name, "--", *words, check=check)

    def logs(self, *words: str) -> str:
        """The container's log."""
        name = self.pod(ready=False)["metadata"]["name"]
        return self.node.cluster.kubectl("-n", NAMESPACE, "logs", name, *words).stdout

    def processes(self, name: str) -> list[int]:
        """Processes in the pod with a word in their command line, by their ids on this machine."""
        return [pid for pid, words in self.node.processes_of(self.pod(ready=False)).items() if name in words.split()]

    def main_process(self) -> int:
        """The daemon itself, without process 1, which has the same words, and its driver hosts."""
        (found,) = set(self.processes("run")) - set(self.processes("tini")) - set(self.processes("nodeagent-dcmi"))
        return found

    def restarts(self) -> int:
        """How often the kubelet started the container again."""
        return int(self.pod(ready=False)["status"]["containerStatuses"][0]["restartCount"])

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels; asks /metrics, as Prometheus would."""
        address = f"http://{self.pod(ready=False)['status']['podIP']}:{self._port}/metrics"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=LIMIT_S) as answer:
            lines = answer.read().decode().splitlines()
        values = [line.rpartition(" ")[2] for line in lines if re.match(rf"{name}[ {{]", line)]
        assert values, f"no {name} in {lines}"
        return sum(map(float, values))

    def memory(self) -> tuple[int, int]:
        """Limit and highest use of the container's memory so far, in bytes, as the kernel counts."""
        lines = Path(f"/proc/{self.main_process()}/cgroup").read_text().splitlines()
        paths = {controller: path for _, controller, path in (line.split(":", 2) for line in lines)}
        if "memory" in paths:
            place, names = CGROUPS / "memory", ("memory.limit_in_bytes", "memory.max_usage_in_bytes")
        else:
            place, names = CGROUPS, ("memory.max", "memory.peak")
        folder = Path(f"{place}{paths.get('memory', paths.get(''))}")
        limit, most = (int((folder / name).read_text()) for name in names)
        return limit, most

    def data(self) -> dict[str, str] | None:
        """`data` of the published object."""
        answer = self.node.cluster.call("GET", self.object_path)
        return dict(answer.document["data"]) if answer.status == 200 else None

    def published(self) -> ParsedDeviceInfo | None:
        """What a consumer reads there; None while there is none."""
        try:
            return parse_device_info(self.data() or {})
        except ReadBackError:
            return None

    def faults(self) -> set[tuple[str, str]]:
        """Published faults as (device, code)."""
        parsed = self.published()
        return set() if parsed is None else {(f.device, f.code_text) for f in parsed.faults}

    def wait_for_faults(self, *expected: tuple[str, str]) -> ParsedDeviceInfo:
        """The first object with exactly these faults, as (device, code)."""
        found: list[ParsedDeviceInfo] = []

        def good() -> bool:
            parsed = self.published()
            if parsed is None or {(f.device, f.code_text) for f in parsed.faults} != set(expected):
                return False
            found.append(parsed)
            return True

        try:
            wait_until(good, f"published faults are {expected}")
        except AssertionError as error:
            story = self.node.story(NAMESPACE, self.selector)
            raise AssertionError(f"{error}\npublished: {self.data()}\n{story}") from None
        return found[0]


@contextlib.contextmanager
def daemon_in_pod(node: RealNode, hardware: Path | None = None, **fields: Any) -> Iterator[DaemonInPod]:
    """A DaemonSet of ours whose pod runs and is ready; it and its published objects are deleted at the end."""
    daemon = DaemonInPod(node, hardware, **fields)
    try:
        daemon.apply()
        daemon.pod()
        yield daemon
    finally:
        daemon.delete()
        node.cluster.call("DELETE", daemon.object_path)
        names = [node_info.object_name(daemon.node_name, daemon.shadow)]
        names += [public_fault.object_name(client, daemon.node_name, daemon.shadow) for client in StorageClient]
        for name in names:
            node.cluster.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")
