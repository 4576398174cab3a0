"""The control plane of the tests is what it says it is: real, with RBAC, stoppable, and breakable by the proxy."""

import os
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from cluster.build import kubernetes_version
from kit.cluster import Answer, Cluster, foreign_without
from kit.daemon import alive, wait_until
from kit.tcp_proxy import TcpProxy

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
READ_CONFIG_MAPS = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]


def in_background(call: Callable[[], Answer]) -> tuple[threading.Thread, list[Answer]]:
    """Start a call in a thread; what it returns comes into the list."""
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(call()))
    thread.start()
    return thread, answers


@pytest.mark.skipif(
    bool(os.environ.get("KUBEBUILDER_ASSETS")), reason="binaries from elsewhere have a version of their own"
)
def test_the_server_is_the_kubernetes_that_go_mod_names(cluster: Cluster) -> None:
    assert kubernetes_version() == "v1.36.3"
    versions = yaml.safe_load(cluster.kubectl("version", "-o", "yaml").stdout)
    assert versions["serverVersion"]["gitVersion"] == "v1.36.3"
    assert versions["clientVersion"]["gitVersion"] == "v1.36.3"


class TestRights:
    def test_a_service_account_may_do_nothing_until_a_role_lets_it(self, cluster: Cluster, node: str) -> None:
        cluster.service_account("default", node)
        token = cluster.service_account_token("default", node)
        refused = cluster.call("GET", CONFIG_MAPS, token=token)
        assert refused.status == 403
        assert f"system:serviceaccount:default:{node}" in refused.document["message"]
        roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        cluster.create(f"{roles}/roles", "Role", node, rules=READ_CONFIG_MAPS)
        cluster.create(
            f"{roles}/rolebindings",
            "RoleBinding",
            node,
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": node},
            subjects=[{"kind": "ServiceAccount", "namespace": "default", "name": node}],
        )
        wait_until(lambda: cluster.call("GET", CONFIG_MAPS, token=token).status == 200, "the role is in force")
        assert cluster.call("POST", CONFIG_MAPS, {}, token=token).status == 403

    def test_kubectl_has_the_rights_of_its_kubeconfig(self, cluster: Cluster, node: str) -> None:
        cluster.service_account("default", node)
        kubeconfig = cluster.kubeconfig(cluster.service_account_token("default", node, 600), node)
        assert cluster.kubectl("get", "cm").returncode == 0
        refused = cluster.kubectl("get", "cm", kubeconfig=kubeconfig, check=False)
        assert refused.returncode != 0
        assert "Forbidden" in refused.stderr

    def test_who_is_unknown_or_nobody_is_refused(self, cluster: Cluster) -> None:
        assert cluster.call("GET", CONFIG_MAPS, token="guessed").status == 401
        assert cluster.call("GET", CONFIG_MAPS, token="").status == 403

    def test_the_certificate_is_checked(self, cluster: Cluster, tmp_path: Path) -> None:
        with Cluster(tmp_path / "other") as other, pytest.raises(ssl.SSLCertVerificationError):
            cluster.call("GET", "/readyz", port=other.port)


class TestTokens:
    def test_a_token_that_we_sign_is_as_good_as_the_servers_own(self, cluster: Cluster, node: str) -> None:
        cluster.service_account("default", node)
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": cluster.signed_token("default", node, 600)},
        }
        answer = cluster.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert answer.document["status"]["authenticated"] is True
        assert answer.document["status"]["user"]["username"] == f"system:serviceaccount:default:{node}"

    def test_an_expired_token_is_refused_with_401(self, cluster: Cluster, node: str) -> None:
        cluster.service_account("default", node)
        assert cluster.call("GET", CONFIG_MAPS, token=cluster.signed_token("default", node, 600)).status == 403
        assert cluster.call("GET", CONFIG_MAPS, token=cluster.signed_token("default", node, -120)).status == 401

    def test_a_token_ends_with_its_account(self, cluster: Cluster, node: str) -> None:
        cluster.service_account("default", node)
        token = cluster.signed_token("default", node, 600)
        cluster.kubectl("delete", "serviceaccount", node)
        cluster.service_account("default", node)
        assert cluster.call("GET", CONFIG_MAPS, token=token).status == 401


class TestStopAndStart:
    @pytest.mark.parametrize("quick", [False, True])
    def test_the_objects_outlive_the_server(self, cluster: Cluster, node: str, quick: bool) -> None:
        made = cluster.create(CONFIG_MAPS, "ConfigMap", node, data={"key": "value"})
        pid = cluster.api_server.pid
        if quick:
            cluster.api_server.kill()
        else:
            cluster.api_server.stop()
        assert not alive(pid)
        with pytest.raises(ConnectionRefusedError):
            cluster.call("GET", "/readyz")
        cluster.api_server.start()
        assert cluster.config_map("default", node) == made

    @pytest.mark.skipif(foreign_without("kube-controller-manager"), reason="KUBEBUILDER_ASSETS has no such binary")
    def test_controllers_make_the_default_service_account(self, tmp_path: Path) -> None:
        with Cluster(tmp_path / "own", controllers=True) as cluster:
            cluster.create("/api/v1/namespaces", "Namespace", "new")
            account = "/api/v1/namespaces/new/serviceaccounts/default"
            wait_until(lambda: cluster.call("GET", account).status == 200, "the default service account")


class TestProxy:
    def test_freeze_holds_a_request_and_thaw_lets_it_go_on(self, cluster: Cluster, proxy: TcpProxy) -> None:
        assert cluster.call("GET", CONFIG_MAPS, port=proxy.port).status == 200
        proxy.freeze()
        with pytest.raises(TimeoutError):
            cluster.call("GET", CONFIG_MAPS, port=proxy.port, limit_s=0.3)
        thread, answers = in_background(lambda: cluster.call("GET", CONFIG_MAPS, port=proxy.port))
        thread.join(0.3)
        assert thread.is_alive()
        proxy.thaw()
        thread.join()
        assert answers[0].status == 200
        assert proxy.accepted == 3

    def test_freeze_leaves_open_connections_open(self, cluster: Cluster, proxy: TcpProxy, node: str) -> None:
        with cluster.watch(CONFIG_MAPS, port=proxy.port) as events:
            wait_until(lambda: proxy.open == 1)
            proxy.freeze()
            cluster.create(CONFIG_MAPS, "ConfigMap", node)
            proxy.thaw()
            assert any(event["object"]["metadata"]["name"] == node for event in events)
        assert proxy.accepted == 1

    def test_cut_ends_what_is_open_and_lets_new_ones_in(self, cluster: Cluster, proxy: TcpProxy) -> None:
        with cluster.watch(CONFIG_MAPS, port=proxy.port) as events:
            wait_until(lambda: proxy.open == 1)
            proxy.cut()
            assert proxy.open == 0
            list(events)  # ends: Python's TLS makes an end of file of a reset
        assert cluster.call("GET", CONFIG_MAPS, port=proxy.port).status == 200

    def test_a_stopped_server_shows_as_a_reset(self, cluster: Cluster, proxy: TcpProxy) -> None:
        cluster.api_server.kill()
        with pytest.raises(ConnectionError):
            cluster.call("GET", "/readyz", port=proxy.port)
        assert proxy.accepted == 0
