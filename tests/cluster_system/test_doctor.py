"""`nodeagent doctor` against a real API server: what it says is missing is what must be granted."""

import json
from typing import Any

import pytest
import yaml
from kit.cluster import Cluster
from kit.daemon import flags, run_command, wait_until

from nodeagent.render.device_info import NAMESPACE

RBAC = "/apis/rbac.authorization.k8s.io/v1"
OF_CLUSTER = ("node-name", "api-server", "clock", "rights", "other-writer", "fault-configmap")


@pytest.fixture
def account(cluster: Cluster, node: str) -> str:
    """A service account of a node that exists."""
    cluster.create("/api/v1/nodes", "Node", node)
    cluster.service_account("default", node)
    return node


def doctor(cluster: Cluster, node: str) -> dict[str, dict[str, Any]]:
    """The checks on the cluster, made with the rights of the service account of that name."""
    kubeconfig = cluster.kubeconfig(cluster.service_account_token("default", node), node)
    settings = {"node.name": node, "publish.kubeconfig": kubeconfig}
    only = [word for name in OF_CLUSTER for word in ("--only", name)]
    done = run_command("doctor", *flags(settings), *only, "--output", "json")
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def grant(cluster: Cluster, node: str, lines: list[str]) -> None:
    """Make roles of the lines that the command prints below its sentence."""
    texts: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("#"):
            texts[line] = []
        else:
            texts[list(texts)[-1]].append(line)
    subjects = [{"kind": "ServiceAccount", "namespace": "default", "name": node}]
    for title, rules in texts.items():
        namespace = title.removeprefix("# Role in the namespace ")
        kind, place = ("ClusterRole", RBAC) if title == "# ClusterRole" else ("Role", f"{RBAC}/namespaces/{namespace}")
        assert title == "# ClusterRole" or namespace in (NAMESPACE, "mindx-dl")
        cluster.create(f"{place}/{kind.lower()}s", kind, node, rules=yaml.safe_load("\n".join(rules)))
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": node}
        cluster.create(f"{place}/{kind.lower()}bindings", f"{kind}Binding", node, roleRef=reference, subjects=subjects)


def test_what_it_names_as_missing_is_what_must_be_granted(cluster: Cluster, account: str) -> None:
    before = doctor(cluster, account)
    assert {name: check["verdict"] for name, check in before.items()} == {
        "node-name": "skipped",
        "api-server": "ok",
        "clock": "ok",
        "rights": "fail",
        "other-writer": "skipped",
        "fault-configmap": "skipped",
    }
    first, *rules = before["rights"]["detail"]
    number, _, rest = first.partition(" ")
    assert rest == f"of {number} rights are missing"
    grant(cluster, account, rules)
    wait_until(lambda: doctor(cluster, account)["rights"]["verdict"] == "ok", "the authorizer has seen the roles")
    after = doctor(cluster, account)
    assert {name: check["verdict"] for name, check in after.items()} == dict.fromkeys(OF_CLUSTER, "ok")


def test_a_node_name_that_nobody_has(cluster: Cluster, node: str) -> None:
    settings = {"node.name": node, "publish.kubeconfig": cluster.admin_kubeconfig}
    done = run_command("doctor", *flags(settings), "--only", "node-name")
    assert done.returncode == 2
    assert f"the cluster has no node '{node}'" in done.stdout


def test_another_program_that_writes_our_object(cluster: Cluster, node: str) -> None:
    place = f"/api/v1/namespaces/{NAMESPACE}/configmaps?fieldManager=device-plugin"
    cluster.create(place, "ConfigMap", f"mindx-dl-deviceinfo-{node}", data={"DeviceInfoCfg": "{}"})
    settings = {"node.name": node, "publish.kubeconfig": cluster.admin_kubeconfig}
    done = run_command("doctor", *flags(settings), "--only", "other-writer")
    assert done.returncode == 2
    assert "device-plugin writes our object" in done.stdout
    done = run_command("doctor", *flags(settings | {"publish.mode": "shadow"}), "--only", "other-writer")
    assert done.returncode == 0
