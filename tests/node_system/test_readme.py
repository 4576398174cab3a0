"""The commands of the README, word for word, on a real node."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from kit.cluster import program
from kit.manifests import MANIFESTS
from kit.node import NODE, RealNode
from kit.node_images import AGENT

README = MANIFESTS.parent / "README.md"
SECTION = "## Run it on your cluster"


def commands() -> list[str]:
    """What the section tells to type, without comments."""
    block = README.read_text().partition(SECTION)[2].partition("```console\n")[2].partition("```")[0]
    return [re.sub(r"\s+#.*", "", line.removeprefix("$ ")) for line in block.splitlines()]


def manifests(node: RealNode, folder: Path) -> None:
    """A copy of the manifests beside which the commands run, with what a node without pod network needs."""
    shutil.copytree(MANIFESTS, folder / "manifests")
    overlay = folder / "manifests" / "overlays" / "dry-run"
    address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(node.cluster.port)}
    container = {
        "name": "nodeagent",
        "imagePullPolicy": "Never",
        "env": [{"name": name, "value": value} for name, value in address.items()],
    }
    pod = {"hostNetwork": True, "dnsPolicy": "Default", "containers": [container]}
    patch = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nodeagent", "namespace": "mindx-dl"},
        "spec": {"template": {"spec": pod}},
    }
    (overlay / "tests.yaml").write_text(yaml.safe_dump(patch))
    path = overlay / "kustomization.yaml"
    kustomization = yaml.safe_load(path.read_text())
    kustomization.setdefault("patches", []).append({"path": "tests.yaml"})
    path.write_text(yaml.safe_dump(kustomization))


def run(command: str, node: RealNode, folder: Path) -> subprocess.CompletedProcess[str]:
    """Type a command in a shell."""
    environment = {
        **os.environ,
        "KUBECONFIG": str(node.cluster.admin_kubeconfig),
        "PATH": f"{program('kubectl').parent}:{os.environ['PATH']}",
    }
    return subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.usefixtures("namespace")
def test_what_the_readme_says_works(node: RealNode, tmp_path: Path) -> None:
    manifests(node, tmp_path)
    tag = yaml.safe_load((MANIFESTS / "base" / "kustomization.yaml").read_text())["images"][0]["newTag"]
    node.tag(AGENT, f"docker.io/library/nodeagent:{tag}")
    build, create, *rest = commands()
    assert build == "make image", "the image was built by it before this test"
    assert "AlreadyExists" in run(create, node, tmp_path).stderr, "where MindCluster has made it"
    said = {}
    for command in rest:
        done = run(command, node, tmp_path)
        said[command] = done.stdout
        # `scan` and its exit code speak of the pretended node, on which a timeline plays.
        assert done.returncode == 0 or command.endswith("scan"), f"{command}: {done.stdout}{done.stderr}"
    scan, logs, published = (next(text for c, text in said.items() if word in c) for word in ("scan", "logs", "get"))
    assert "Ascend910-7" in scan
    assert f"starting node=dry-run-{NODE}" in logs
    assert f"mindx-dl-deviceinfo-dry-run-{NODE}-shadow" in published
    assert [c.split()[-2] for c in rest if " -k " in c] == ["-k", "-k"]
