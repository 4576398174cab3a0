"""The service account that all daemons of a cluster share, for whoever plays a daemon on a real API server."""

from pathlib import Path

from kit.cluster import Cluster
from kit.daemon import wait_until

_RBAC = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_NAMESPACE, _NAME = "mindx-dl", "nodeagent"
_VALID_S = 6 * 3600


def account_of_daemons(cluster: Cluster) -> Path:
    """Make the service account `mindx-dl/nodeagent` in a fresh cluster and give it all rights; its kubeconfig.

    Unlike an administrator it is authorized by RBAC and queued by priority and fairness, as daemons in the field are.
    """
    cluster.create("/api/v1/namespaces", "Namespace", _NAMESPACE)
    cluster.service_account(_NAMESPACE, _NAME)
    cluster.create(
        _RBAC,
        "ClusterRoleBinding",
        _NAME,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        subjects=[{"kind": "ServiceAccount", "namespace": _NAMESPACE, "name": _NAME}],
    )
    token = cluster.signed_token(_NAMESPACE, _NAME, _VALID_S)
    objects = "/api/v1/namespaces/kube-system/configmaps"
    wait_until(lambda: cluster.call("GET", objects, token=token).status == 200, "the role is in force")
    return cluster.kubeconfig(token, _NAME)
