"""Events and node conditions at a real API server, with no more rights than the documents name."""

from pathlib import Path
from typing import Any

import pytest
from kit.cluster import Cluster
from kit.cluster_daemon import daemon_in
from kit.daemon import wait_until

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

X = "80E18005"
NAMESPACE = "kube-system"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"


def account(cluster: Cluster, name: str, *, events: bool = True) -> Path:
    """A kubeconfig of a new service account with the rights that a daemon needs. events: it may create Events."""
    cluster.service_account(NAMESPACE, name)
    subjects = [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": name}]
    own = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "update"]}]
    if events:
        own.append({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]})
    wide = [
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
    ]
    for kind, place, rules in (("Role", f"{RBAC}/namespaces/{NAMESPACE}", own), ("ClusterRole", RBAC, wide)):
        cluster.create(f"{place}/{kind.lower()}s", kind, name, rules=rules)
        ref = {"apiGroup": GROUP, "kind": kind, "name": name}
        cluster.create(f"{place}/{kind.lower()}bindings", f"{kind}Binding", name, roleRef=ref, subjects=subjects)
    return cluster.kubeconfig(cluster.service_account_token(NAMESPACE, name), name)


def conditions(cluster: Cluster, node: str) -> dict[str, Any]:
    found = cluster.call("GET", f"/api/v1/nodes/{node}").document["status"].get("conditions", [])
    return {each["type"]: each for each in found}


def reasons(cluster: Cluster, node: str) -> set[str]:
    events = cluster.call("GET", f"/api/v1/namespaces/{NAMESPACE}/events").document["items"]
    return {event["reason"] for event in events if event["involvedObject"]["name"] == node}


@pytest.mark.parametrize("namespace", ["kube-system", "default"])
def test_kubectl_describe_node_shows_events(
    cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str, namespace: str
) -> None:
    cluster.create("/api/v1/nodes", "Node", node)

    def described() -> str:
        return cluster.kubectl("describe", "node", node).stdout.partition("Events:")[2]

    # The manifests grant Events in kube-system alone.
    with daemon_in(cluster, server, tmp_path, node, cluster.admin_kubeconfig, events__namespace=namespace) as daemon:
        daemon.wait(lambda p: p.faults == ())
        control.raise_fault(3, X)
        wait_until(lambda: X in described(), "the Event of the fault")
        control.clear_fault(3, X)
        wait_until(lambda: "Recovery" in described(), "the Event of its end")
    lines = [line.split() for line in described().splitlines()]
    by_reason = {line[1]: line for line in lines if len(line) > 3}
    assert by_reason["Occur"][0] == "Warning"
    assert by_reason["Occur"][3] == "nodeagent"
    assert by_reason["Recovery"][0] == "Normal"
    assert "DriverReady" in by_reason
    selector = f"involvedObject.kind=Node,involvedObject.name={node},source=nodeagent,type=Warning"
    listed = cluster.kubectl("get", "events", "-n", namespace, "--field-selector", selector).stdout
    assert X in listed


def test_events_and_conditions_with_the_rights_of_the_documents(
    cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
) -> None:
    cluster.create("/api/v1/nodes", "Node", node)
    control.raise_fault(3, X)
    kubeconfig = account(cluster, node)
    with daemon_in(cluster, server, tmp_path, node, kubeconfig, node_object__conditions="true") as daemon:
        daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"})
        wait_until(lambda: "AscendChipsHealthy" in conditions(cluster, node), "the conditions")
        found = conditions(cluster, node)
        wait_until(lambda: {"Occur", "DriverReady", "Subscribed"} <= reasons(cluster, node), "the Events")
    assert {name: found[name]["status"] for name in found} == {
        "AscendChipsHealthy": "False",
        "AscendNetworkHealthy": "True",
        "NodeagentDriver": "True",
    }
    assert found["AscendChipsHealthy"]["message"] == "chip 3 (phy 3, card 3/0) has RestartNPU"
    assert found["AscendChipsHealthy"]["lastTransitionTime"]
    assert "_not_taken" not in daemon.words()
    assert "_not_written" not in daemon.words()


def test_without_the_right_faults_are_published_all_the_same(
    cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
) -> None:
    kubeconfig = account(cluster, node, events=False)
    with daemon_in(cluster, server, tmp_path, node, kubeconfig) as daemon:
        daemon.wait(lambda p: p.faults == ())
        control.raise_fault(3, X)
        daemon.wait_for_faults({("Ascend910-3", X): "RestartNPU"})
        wait_until(lambda: "grant the verb create on events in the namespace kube-system" in daemon.words(), "a hint")
    assert daemon.words().count("event=events_not_taken") == 1
