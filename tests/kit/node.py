"""A real node for tests: containerd and a kubelet, joined to a control plane, with our image on it.

Needs root. There is one node per machine and run. It runs pods with `hostNetwork: true`; others get a loopback device
and nothing else.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kit.cluster import Cluster, program
from kit.daemon import LIMIT_S, wait_until
from kit.node_images import PAUSE, archives
from kit.node_leftovers import PREFIX, NodeFolder, clean_leftovers
from kit.server_process import ServerProcess, free_ports

NODE = "node-of-the-tests"
PLUGINS = Path("/usr/lib/cni")

Object = dict[str, Any]


class RealNode:
    """Control plane, containerd and kubelet, with the state of the latter two in a `folder` of their own.

    logs: where the logs of all servers go. Use it as a context manager, in the main thread. At its end everything is
    gone: containers, mounts, cgroups, and what a run before this one left when it was killed.
    """

    def __init__(self, logs: Path) -> None:
        _assert_no_other_kubelet()
        clean_leftovers()
        self._images = archives()
        self._held = NodeFolder()
        self.folder = self._held.path
        certificate, key = _certificate(self.folder)
        to_kubelets = (f"--kubelet-client-certificate={certificate}", f"--kubelet-client-key={key}")
        self.cluster = Cluster(logs, controllers=True, scheduler=True, api_flags=to_kubelets)
        (self.port,) = free_ports(1)
        self._socket = self.folder / "containerd.sock"
        self.containerd = ServerProcess(
            "containerd", ["containerd", "--config", self._containerd_file()], logs, self._containerd_answers
        )
        self.kubelet = ServerProcess("kubelet", self._kubelet_command(certificate), logs, self._registered)

    def __enter__(self) -> "RealNode":
        try:
            self.cluster.start()
            self.containerd.start()
            for archive in self._images:
                self._ctr("images", "import", archive)
            self.kubelet.start()
            wait_until(self._ready, "the node is ready")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill everything, containers included."""
        self.kubelet.kill()
        self.containerd.kill()
        self.cluster.close()
        self._held.remove()

    def tag(self, image: str, other: str) -> None:
        """Give an image of the node a second name."""
        self._ctr("images", "tag", "--force", image, other)

    def pods(self, namespace: str, selector: str) -> list[Object]:
        """The pods that a label selector finds, without those that are being deleted."""
        answer = self.cluster.call("GET", f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")
        assert answer.status == 200, answer
        return [pod for pod in answer.document["items"] if "deletionTimestamp" not in pod["metadata"]]

    def wait_for_pod(
        self, namespace: str, selector: str, condition: Callable[[Object], Any], what: str, limit_s: float = LIMIT_S
    ) -> Object:
        """The only pod of a selector, when it fulfils a condition. AssertionError that tells of pods and Events."""
        found: list[Object] = []

        def good() -> bool:
            found[:] = self.pods(namespace, selector)
            return len(found) == 1 and bool(condition(found[0]))

        try:
            wait_until(good, what, limit_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story(namespace, selector)}") from None
        return found[0]

    def story(self, namespace: str, selector: str) -> str:
        """What is to be told when a pod does not do what it should."""
        told = [json.dumps(pod.get("status", {}), indent=1) for pod in self.pods(namespace, selector)]
        told.append(self.cluster.kubectl("-n", namespace, "get", "events", check=False).stdout)
        for pod in self.pods(namespace, selector):
            log = self.cluster.kubectl("-n", namespace, "logs", pod["metadata"]["name"], "--tail=40", check=False)
            told.append(log.stdout + log.stderr)
        return "\n".join(told)

    def processes_of(self, pod: Mapping[str, Any]) -> dict[int, str]:
        """Processes of a pod's containers: process id on this machine -> command line. Without the pause container."""
        uid = pod["metadata"]["uid"]
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if uid in (entry / "cgroup").read_text():
                    words = (entry / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode()
                    if words not in ("", "/pause"):
                        found[int(entry.name)] = words
            except OSError:
                continue  # it ended
        return found

    def _containerd_file(self) -> Path:
        # The kernel of a container may not let containerd lower the score by which processes are chosen when memory
        # runs out. runc keeps its state in a folder for the whole machine unless told otherwise.
        cri = 'plugins."io.containerd.grpc.v1.cri"'
        file, networks = self.folder / "containerd.toml", self.folder / "networks"
        networks.mkdir()
        network = {"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}
        (networks / "none.conflist").write_text(json.dumps(network))
        file.write_text(f"""
version = 2
root = "{self.folder}/root"
state = "{self.folder}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{self._socket}"
[{cri}]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [{cri}.cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{networks}"
  [{cri}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [{cri}.containerd.runtimes.runc.options]
      Root = "{self.folder}/runc"
""")
        return file

    def _kubelet_command(self, client_ca: Path) -> list[object]:
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "port": self.port,
            "healthzPort": 0,
            # It listens where the API server reaches it, so nobody but the API server may come in.
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(client_ca)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.folder.name}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "makeIPTablesUtilChains": False,
            "podLogsDir": str(self.folder / "pod-logs"),
            "evictionHard": {
                "nodefs.available": "0%",
                "imagefs.available": "0%",
                "memory.available": "1Mi",
                "nodefs.inodesFree": "0%",
            },
            "imageGCHighThresholdPercent": 100,
        }
        file = self.folder / "kubelet.json"
        file.write_text(json.dumps(config))
        return [
            program("kubelet"),
            f"--config={file}",
            f"--kubeconfig={self.cluster.admin_kubeconfig}",
            f"--hostname-override={NODE}",
            f"--root-dir={self.folder / 'kubelet'}",
            f"--cert-dir={self.folder / 'kubelet-certs'}",
        ]

    def _containerd_answers(self) -> bool:
        return self._socket.exists() and self._ctr("version", check=False).returncode == 0

    def _registered(self) -> bool:
        return self.cluster.call("GET", f"/api/v1/nodes/{NODE}").status == 200

    def _ready(self) -> bool:
        status = self.cluster.call("GET", f"/api/v1/nodes/{NODE}").document["status"]
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))

    def _ctr(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["ctr", "--address", str(self._socket), "--namespace", "k8s.io", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done


def _assert_no_other_kubelet() -> None:
    """A kubelet cannot be told to leave /var/lib/kubelet/device-plugins and settings of the kernel alone."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it ended
        foreign = Path(words[0]).name == "kubelet" and not any(PREFIX in word for word in words)
        assert not foreign, f"a kubelet runs here (process {entry.name}): these tests would disturb it"


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that is its own authority, and its key."""
    openssl = shutil.which("openssl")
    assert openssl is not None, "openssl is not installed"
    certificate, key = folder / "client.crt", folder / "client.key"
    subject = "/CN=api-server-of-the-tests"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", subject]
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    return certificate, key
