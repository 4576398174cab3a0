"""The Kubernetes manifests, as files and rendered, and what a pod made of them would see."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nodeagent.core.settings import Settings
from nodeagent.core.settings_load import load_settings

MANIFESTS = Path(__file__).parent.parent.parent / "manifests"
OVERLAYS = ("a2", "a3", "dry-run")
NAMESPACE = "mindx-dl"
SETTINGS_FILE = "/etc/nodeagent/config.yaml"
"""Where the daemon looks for its settings when nobody names a file."""

_FIELDS = {
    "spec.nodeName": "worker-1",
    "status.hostIP": "192.0.2.1",
    "status.podIP": "198.51.100.1",
    "metadata.name": "nodeagent-x7k2p",
    "metadata.namespace": "mindx-dl",
}
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)")

Object = dict[str, Any]


def objects(text: str) -> list[Object]:
    """The objects of a YAML stream."""
    return [document for document in yaml.safe_load_all(text) if document is not None]


def kustomizations() -> Iterator[tuple[Path, Object]]:
    """Every kustomization: its folder and its content."""
    for path in sorted(MANIFESTS.rglob("kustomization.yaml")):
        yield path.parent, yaml.safe_load(path.read_text())


def one(found: list[Object], kind: str, name: str = "") -> Object:
    """The only object of a kind (and name)."""
    matching = [o for o in found if o["kind"] == kind and name in ("", o["metadata"]["name"])]
    assert len(matching) == 1, f"{len(matching)} of {kind} {name}"
    return matching[0]


@dataclass(frozen=True)
class Daemon:
    """The pod that a DaemonSet makes. config_maps: name to data."""

    pod: Object
    config_maps: dict[str, dict[str, str]]

    @classmethod
    def of(cls, found: list[Object]) -> "Daemon":
        """From the objects of an overlay."""
        data = {o["metadata"]["name"]: o["data"] for o in found if o["kind"] == "ConfigMap"}
        return cls(one(found, "DaemonSet")["spec"]["template"]["spec"], data)

    @property
    def container(self) -> Object:
        """The only container."""
        (container,) = self.pod["containers"]
        return dict(container)

    def environment(self) -> dict[str, str]:
        """What the kubelet makes of `env`: variables refer to those before them only."""
        made: dict[str, str] = {}
        for entry in self.container["env"]:
            if "valueFrom" in entry:
                value = _FIELDS[entry["valueFrom"]["fieldRef"]["fieldPath"]]
            else:
                value = _REFERENCE.sub(lambda found: made.get(found[1], found[0]), entry["value"])
            made[entry["name"]] = value
        return made

    def volume(self, path: str) -> tuple[Object, Object]:
        """The mount on which a path of the container lies, and its volume."""
        inside = [m for m in self.container["volumeMounts"] if Path(path).is_relative_to(m["mountPath"])]
        assert inside, f"{path} lies on no volume, and the root file system is read-only"
        mount = max(inside, key=lambda m: len(m["mountPath"]))
        (volume,) = [v for v in self.pod["volumes"] if v["name"] == mount["name"]]
        return mount, volume

    def file(self, path: str) -> str:
        """Content of a file that comes from a ConfigMap."""
        mount, volume = self.volume(path)
        return self.config_maps[volume["configMap"]["name"]][str(Path(path).relative_to(mount["mountPath"]))]

    def settings(self) -> Settings:
        """What the daemon loads in this pod. Raises SettingsError."""
        return load_settings(self.file(SETTINGS_FILE), SETTINGS_FILE, self.environment())
