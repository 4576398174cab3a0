"""One real node for all tests of this folder. They carry the marker `node`, and run by `make test-node`."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.cluster import foreign_without
from kit.manifests import NAMESPACE
from kit.node import NODE, RealNode
from kit.node_daemon import DaemonInPod, daemon_in_pod
from kit.node_images import missing_tools
from kit.outside import mark_below, no_http_proxy

from nodeagent.mock.launch import MockServer, library_dir

START_S = 900
"""For whichever test comes first: it waits for the image to be built."""


__all__ = ["no_http_proxy"]
"""A fixture for every test of this folder."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_below(Path(__file__).parent, items, pytest.mark.node, pytest.mark.timeout(START_S))


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """The node of this run."""
    assert os.geteuid() == 0, "only root can run a node"
    assert not missing_tools(), f"install {', '.join(missing_tools())}, or leave these tests out"
    if foreign_without("kubelet"):
        pytest.skip("KUBEBUILDER_ASSETS names a folder without kubelet")
    with RealNode(tmp_path_factory.mktemp("node")) as node:
        yield node


@pytest.fixture(scope="session")
def namespace(node: RealNode) -> str:
    """MindCluster's namespace, which the manifests expect. It admits what the overlay is made for."""
    node.cluster.kubectl("create", "namespace", NAMESPACE)
    return NAMESPACE


@pytest.fixture
def hardware(tmp_path: Path) -> Iterator[MockServer]:
    """A mock node outside of all pods, so that it outlives them as real chips do."""
    folder = tmp_path / "hardware"
    folder.mkdir()
    server = MockServer.start("a2", socket=folder / "socket")
    (folder / "socket").chmod(0o666)  # the pod is another user
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def host(node: RealNode, tmp_path: Path) -> Iterator[Path]:
    """What the overlay finds on the machine: a driver, and the label of MindCluster."""
    folder = tmp_path / "host"
    driver = folder / "ascend" / "driver" / "lib64"
    driver.mkdir(parents=True)
    shutil.copy(library_dir() / "libdcmi.so", driver)
    node.cluster.kubectl("label", "node", NODE, "workerselector=dls-worker-node")
    yield folder
    node.cluster.kubectl("label", "node", NODE, "workerselector-")


@pytest.fixture
def daemon(node: RealNode, namespace: str, hardware: MockServer) -> Iterator[DaemonInPod]:
    """The daemon in a pod, on that mock node, publishing in mode live."""
    with daemon_in_pod(node, Path(hardware.socket).parent) as daemon:
        yield daemon
