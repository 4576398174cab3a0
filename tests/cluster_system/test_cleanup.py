"""`nodeagent cleanup` on a real API server: what `managedFields` really say after a daemon was there."""

import json
from pathlib import Path
from typing import Any

from kit.cluster import Cluster
from kit.cluster_daemon import daemon_in
from kit.daemon import run_command, wait_until

from nodeagent.mock.launch import MockServer
from nodeagent.render.device_info import NAMESPACE, object_name
from nodeagent.render.node_object import ANNOTATIONS, LABELS


def make_node(cluster: Cluster, node: str) -> None:
    """As the kubelet does it: of a node that is created without a field the API server keeps no record."""
    labels = {"kubernetes.io/hostname": node}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}}
    assert cluster.call("POST", "/api/v1/nodes?fieldManager=kubelet", body).status == 201


def cleanup(cluster: Cluster, *words: object) -> tuple[int, dict[tuple[str, str], str]]:
    """Exit code, and the state of each thing by place and name."""
    done = run_command("cleanup", "--kubeconfig", cluster.admin_kubeconfig, "--output", "json", *words)
    assert done.stdout, done.stderr
    rows = json.loads(done.stdout)["found"]
    return done.returncode, {(row["place"], row["name"]): row["state"] for row in rows}


def node_of(cluster: Cluster, node: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster.call("GET", f"/api/v1/nodes/{node}").document
    return found


def conditions(cluster: Cluster, node: str) -> set[str]:
    return {each["type"] for each in node_of(cluster, node)["status"].get("conditions", [])}


def test_a_live_daemon_leaves_no_trace(cluster: Cluster, server: MockServer, tmp_path: Path, node: str) -> None:
    make_node(cluster, node)
    cluster.kubectl("label", "node", node, "workerselector=dls-worker-node", "servertype=mine")
    cluster.kubectl("annotate", "node", node, "team=a")
    theirs = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    path = f"/api/v1/nodes/{node}/status?fieldManager=kubelet"
    answer = cluster.call("PATCH", path, theirs, content_type="application/strategic-merge-patch+json")
    assert answer.status == 200, answer
    before = node_of(cluster, node)
    with daemon_in(cluster, server, tmp_path, node, node_object__conditions="true") as daemon:
        daemon.wait(lambda p: p.faults == ())
        wait_until(lambda: "baseDeviceInfos" in node_of(cluster, node)["metadata"]["annotations"])
        wait_until(lambda: len(conditions(cluster, node)) > 1)
    place = f"{NAMESPACE}/{object_name(node)}"
    code, found = cleanup(cluster, "--node", node)
    assert code == 1
    assert found[place, ""] == "left"
    names = {name for where, name in found if where == node}
    assert {"accelerator", "baseDeviceInfos", "AscendChipsHealthy"} <= names
    assert names - {*LABELS, *ANNOTATIONS} == conditions(cluster, node) - {"Ready"}
    assert "servertype" not in names, "it was there before us"
    assert node_of(cluster, node)["metadata"]["annotations"] != before["metadata"]["annotations"], "shown, not removed"

    code, found = cleanup(cluster, "--node", node, "--yes")
    assert code == 0
    assert set(found.values()) == {"removed"}
    assert cluster.config_map(NAMESPACE, object_name(node)) is None
    after = node_of(cluster, node)
    for part in ("labels", "annotations"):
        assert after["metadata"][part] == before["metadata"][part]
    assert conditions(cluster, node) == {"Ready"}
    assert after["spec"] == before["spec"]
    assert cleanup(cluster, "--node", node) == (0, {})


def test_what_another_program_took_over_stays(cluster: Cluster, server: MockServer, tmp_path: Path, node: str) -> None:
    """The device plugin is started again before we clean up: it writes the object and the same labels."""
    make_node(cluster, node)
    with daemon_in(cluster, server, tmp_path, node) as daemon:
        daemon.wait(lambda p: p.faults == ())
        wait_until(lambda: "accelerator" in node_of(cluster, node)["metadata"].get("labels", {}))
    found = cluster.config_map(NAMESPACE, object_name(node))
    assert found is not None
    found["data"]["DeviceInfoCfg"] += " "
    del found["metadata"]["managedFields"], found["metadata"]["resourceVersion"]
    place = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{object_name(node)}"
    assert cluster.call("PUT", f"{place}?fieldManager=device-plugin", found).status == 200
    driver = {"metadata": {"labels": {"huawei.com/driver.version": "of-another"}}}
    answer = cluster.call(
        "PATCH",
        f"/api/v1/nodes/{node}/status?fieldManager=device-plugin",
        driver,
        content_type="application/strategic-merge-patch+json",
    )
    assert answer.status == 200, answer
    code, states = cleanup(cluster, "--node", node, "--yes")
    assert code == 0
    assert states.pop((f"{NAMESPACE}/{object_name(node)}", "")) == "kept"
    assert set(states.values()) == {"removed"}
    assert cluster.config_map(NAMESPACE, object_name(node)) is not None
    assert node_of(cluster, node)["metadata"]["labels"] == {
        "kubernetes.io/hostname": node,
        "huawei.com/driver.version": "of-another",
    }


def test_all_nodes_and_those_that_are_gone(cluster: Cluster, server: MockServer, tmp_path: Path, node: str) -> None:
    """No Node object of this name ever existed: the ConfigMap alone tells of it."""
    with daemon_in(cluster, server, tmp_path, node, publish__mode="shadow") as daemon:
        name = object_name(node, shadow=True)
        wait_until(lambda: cluster.config_map(NAMESPACE, name) is not None, daemon.words())
    code, states = cleanup(cluster, "--all-nodes")
    assert code == 1
    assert states[f"{NAMESPACE}/{name}", ""] == "left"
    assert run_command("cleanup", "--kubeconfig", cluster.admin_kubeconfig, "--node", node, "--yes").returncode == 0
    assert cluster.config_map(NAMESPACE, name) is None
