"""One control plane for all tests of this folder. They carry the marker `cluster`, and run by `make test-cluster`."""

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.cluster import Cluster
from kit.manifests import MANIFESTS, NAMESPACE
from kit.outside import mark_below, no_http_proxy
from kit.tcp_proxy import TcpProxy

_numbers = itertools.count(1)


__all__ = ["no_http_proxy"]
"""A fixture for every test of this folder."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_below(Path(__file__).parent, items, pytest.mark.cluster)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The control plane of this run, for fixtures that outlive a test; tests take `cluster`."""
    with Cluster(tmp_path_factory.mktemp("control-plane")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def mindx_dl(control_plane: Cluster) -> Cluster:
    """A cluster with the namespace that MindCluster brings."""
    control_plane.kubectl("create", "namespace", NAMESPACE)
    return control_plane


@pytest.fixture(scope="session")
def rights_of_manifests(mindx_dl: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kubeconfig of a service account with the rights of the manifests, those for the node object included.

    Its name has a suffix, so that tests of the manifests themselves find nothing installed.
    """
    folder = tmp_path_factory.mktemp("account") / "manifests"
    shutil.copytree(MANIFESTS, folder)
    parts = ["../../base/service-account.yaml", "../../base/rbac.yaml", "../../components/node-conditions/rbac.yaml"]
    overlay = folder / "overlays" / "rights"
    overlay.mkdir()
    parts.append("../../components/node-object/rbac.yaml")
    (overlay / "kustomization.yaml").write_text(json.dumps({"resources": parts, "nameSuffix": "-tests"}))
    text = mindx_dl.kubectl("kustomize", "--load-restrictor=LoadRestrictionsNone", overlay).stdout
    mindx_dl.kubectl("apply", "-f", "-", input=text)
    return mindx_dl.kubeconfig(mindx_dl.service_account_token(NAMESPACE, "nodeagent-tests"), "nodeagent-tests")


@pytest.fixture
def cluster(control_plane: Cluster, rights_of_manifests: Path) -> Iterator[Cluster]:
    """The control plane. What a test makes in it stays; an API server that it stopped is started again.

    Daemons (`kit.cluster_daemon`) have the rights of our service account where a test says nothing else.
    """
    control_plane.daemon_kubeconfig = rights_of_manifests
    yield control_plane
    if not control_plane.api_server.running:
        control_plane.api_server.start()


@pytest.fixture
def node() -> str:
    """A node name that no other test of this run has, since all share one control plane."""
    return f"worker-{next(_numbers)}"


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[TcpProxy]:
    """A proxy in front of the API server."""
    with TcpProxy(cluster.port) as proxy:
        yield proxy
