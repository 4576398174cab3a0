"""What a cluster does to a daemon: edits, other writers, outages, expired tokens, missing rights, a second daemon.

Every test has a node of its own; the mock beneath it is an eight-chip A2.
"""

import contextlib
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.cluster import Cluster
from kit.cluster_daemon import daemon_in
from kit.daemon import Daemon, wait_until
from kit.server_process import free_ports
from kit.tcp_proxy import TcpProxy
from prometheus_client.parser import text_string_to_metric_families

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer
from nodeagent.publish.other_writer import OURS
from nodeagent.render.device_info import NAMESPACE, object_name

X, PRE = "80E18005", "8F180220"
RAISED = {("Ascend910-3", X): "RestartNPU"}
MERGE = "application/merge-patch+json"


def path_of(node: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name or object_name(node)}"


def patch(cluster: Cluster, path: str, body: object) -> Any:
    """Change an object as an operator does."""
    answer = cluster.call("PATCH", path, body, content_type=MERGE)
    assert answer.status == 200, answer
    return answer.document


def managers(obj: dict[str, Any]) -> set[str]:
    """Programs that own a field of an object."""
    return {entry["manager"] for entry in obj["metadata"]["managedFields"]}


def metric(port: int, name: str, **labels: str) -> float:
    """Sum of the samples of a metric that have these labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())


def healthy(daemon: Daemon) -> None:
    daemon.wait(lambda p: p.faults == (), "the first object")


class TestEdits:
    def test_foreign_parts_are_removed_and_a_deleted_object_comes_back(
        self, cluster: Cluster, server: MockServer, tmp_path: Path, node: str
    ) -> None:
        with daemon_in(cluster, server, tmp_path, node) as daemon:
            healthy(daemon)
            patch(cluster, path_of(node), {"metadata": {"labels": {"team": "a"}}, "data": {"Foo": "x"}})
            wait_until(lambda: "Foo" not in daemon.data(), "our object is ours again")
            found = cluster.config_map(NAMESPACE, object_name(node))
            assert found is not None
            assert found["metadata"]["labels"] == {"mx-consumer-cim": "true"}
            assert managers(found) == {OURS}
            cluster.kubectl("delete", "cm", "-n", NAMESPACE, object_name(node))
            wait_until(daemon.data, "the object is back")
            assert "ForeignPartsRemoved" in daemon.words()

    def test_an_operator_lifts_a_manual_separation(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        """Seen by the watch: nothing is polled, and no write is due for minutes."""
        rules = f"rules-{node}"
        frequency = [{"EventId": [X], "TimeWindow": 3600, "Times": 1, "FaultHandling": "ManuallySeparateNPU"}]
        cluster.create(
            f"/api/v1/namespaces/{NAMESPACE}/configmaps",
            "ConfigMap",
            rules,
            data={"faultCustomization.json": json.dumps({"FaultFrequency": frequency})},
        )
        with daemon_in(cluster, server, tmp_path, node, faults__config_map=f"{NAMESPACE}/{rules}") as daemon:
            healthy(daemon)
            control.raise_fault(1, X)
            control.clear_fault(1, X)
            wait_until(lambda: daemon.data().get("ManuallySeparateNPU") == "Ascend910-1", "separated by the rule")
            patch(cluster, path_of(node), {"data": {"ManuallySeparateNPU": ""}})
            daemon.wait(lambda p: p.unhealthy == (), "the chip is lifted")
            assert daemon.data()["ManuallySeparateNPU"] == ""

    def test_rules_in_the_cluster_are_followed(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        rules = f"rules-{node}"
        with daemon_in(cluster, server, tmp_path, node, faults__config_map=f"{NAMESPACE}/{rules}") as daemon:
            healthy(daemon)
            control.raise_fault(3, X)
            daemon.wait_for_faults(RAISED)
            cluster.create(
                f"/api/v1/namespaces/{NAMESPACE}/configmaps",
                "ConfigMap",
                rules,
                data={"nodeagent.yaml": f'faults: [{{code: "{X}", level: SeparateNPU}}]\n'},
            )
            daemon.wait_for_faults({("Ascend910-3", X): "SeparateNPU"})
            patch(cluster, path_of(node, rules), {"data": {"nodeagent.yaml": "faults: ["}})
            wait_until(lambda: "BadConfiguration" in daemon.words(), "bad rules are told")
            cluster.kubectl("delete", "cm", "-n", NAMESPACE, rules)
            daemon.wait_for_faults(RAISED)


class TestPods:
    def pod(self, cluster: Cluster, node: str, name: str, chips: str) -> str:
        """A pod on the node; returns its path."""
        cluster.service_account("default", "default")
        path = f"/api/v1/namespaces/default/pods/{name}"
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": {"huawei.com/AscendReal": chips}},
            "spec": {"nodeName": node, "containers": [{"name": "job", "image": "job"}], "tolerations": []},
        }
        answer = cluster.call("POST", path.rpartition("/")[0], body)
        assert answer.status == 201, answer
        return path

    def test_chips_of_pods_are_not_offered_and_preseparate_waits_for_them(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        pod = self.pod(cluster, node, f"job-{node}", "Ascend910-4,Ascend910-5")
        self.pod(cluster, "elsewhere", f"other-{node}", "Ascend910-0")
        with daemon_in(cluster, server, tmp_path, node) as daemon:
            first = daemon.wait(lambda p: p.faults == ())
            used = {"Ascend910-4", "Ascend910-5"}
            assert set(first.available) == {f"Ascend910-{i}" for i in range(8)} - used, "the first write knows the pods"
            control.raise_fault(4, PRE)
            parsed = daemon.wait_for_faults({("Ascend910-4", PRE): "PreSeparateNPU"})
            assert parsed.unhealthy == (), "not while a pod uses the chip (device-info 4.4)"
            ended = {"status": {"phase": "Succeeded"}}
            answer = cluster.call("PATCH", f"{pod}/status", ended, content_type=MERGE)
            assert answer.status == 200, answer
            after = daemon.wait(lambda p: p.unhealthy == ("Ascend910-4",), "the pod has ended")
            assert "Ascend910-5" in after.available


class TestNodeObject:
    def test_what_schedulers_need_is_on_the_node_and_nothing_else_is_touched(
        self, cluster: Cluster, server: MockServer, tmp_path: Path, node: str
    ) -> None:
        cluster.create("/api/v1/nodes", "Node", node)
        cluster.kubectl("label", "node", node, "workerselector=dls-worker-node", "servertype=mine")
        with daemon_in(cluster, server, tmp_path, node) as daemon:
            healthy(daemon)
            path = f"/api/v1/nodes/{node}"

            def marks() -> dict[str, Any]:
                metadata: dict[str, Any] = cluster.call("GET", path).document["metadata"]
                return metadata

            wait_until(lambda: "baseDeviceInfos" in marks().get("annotations", {}))
            labels, infos = marks()["labels"], json.loads(marks()["annotations"]["baseDeviceInfos"])
            assert labels["accelerator"] == "huawei-Ascend910"
            assert labels["workerselector"] == "dls-worker-node"
            assert labels["servertype"] == "mine", "only written where there is none (device-info 10)"
            assert set(infos) == {f"Ascend910-{i}" for i in range(8)}

    def test_it_is_left_alone_when_the_site_says_so(
        self, cluster: Cluster, server: MockServer, tmp_path: Path, node: str
    ) -> None:
        cluster.create("/api/v1/nodes", "Node", node)
        with daemon_in(cluster, server, tmp_path, node, node_object__enabled="false") as daemon:
            healthy(daemon)
            time.sleep(1)  # long enough for a patch that must not come
            assert "annotations" not in cluster.call("GET", f"/api/v1/nodes/{node}").document["metadata"]


class TestOutages:
    def test_transitions_while_the_server_is_away_end_in_the_last_state(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        with daemon_in(cluster, server, tmp_path, node) as daemon:
            healthy(daemon)
            cluster.api_server.kill()
            for chip in (1, 2, 4, 5, 6, 7):
                control.raise_fault(chip, X)
                control.clear_fault(chip, X)
            control.raise_fault(3, X)
            wait_until(lambda: "publish_failed" in daemon.words(), "the outage is told")
            cluster.api_server.start()
            daemon.wait(lambda p: {(f.device, f.code_text) for f in p.faults} == {("Ascend910-3", X)})
            wait_until(lambda: "publish_recovered" in daemon.words())
            control.raise_fault(6, PRE)
            daemon.wait_for_faults({**RAISED, ("Ascend910-6", PRE): "PreSeparateNPU"})
            patch(cluster, path_of(node), {"data": {"Foo": "x"}})
            wait_until(lambda: "Foo" not in daemon.data(), "the watch lives again")

    def test_an_outage_costs_one_write_however_much_happened(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        """Lessons 13. Counted by the daemon's own metrics: what was taken, and what was asked of the server."""
        (port,) = free_ports(1)
        with daemon_in(cluster, server, tmp_path, node, http__port=port) as daemon:
            healthy(daemon)
            wait_until(lambda: metric(port, "nodeagent_publish_writes_total", result="ok") == 1)
            cluster.api_server.kill()
            control.raise_fault(3, X)
            wait_until(lambda: metric(port, "nodeagent_publish_writes_total", result="failed") >= 1)
            for chip in (0, 1, 2, 4, 5, 6, 7):
                for code in ("80E18005", "80C98008", "8C204E00"):
                    control.raise_fault(chip, code)
                    control.clear_fault(chip, code)
            wait_until(lambda: metric(port, "nodeagent_faults", level="RestartNPU") == 1, "43 transitions are taken in")
            cluster.api_server.start()
            daemon.wait_for_faults(RAISED)
            wait_until(lambda: "publish_recovered" in daemon.words())
            assert metric(port, "nodeagent_publish_writes_total", result="ok") == 2
            assert metric(port, "nodeagent_api_requests_total", object="device_info", verb="get") == 1, "read once ever"

    def test_a_start_without_a_server_publishes_when_it_comes(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        cluster.api_server.kill()
        with daemon_in(cluster, server, tmp_path, node) as daemon:
            control.raise_fault(3, X)
            wait_until(lambda: "last published object cannot be read" in daemon.words())
            cluster.api_server.start()
            daemon.wait_for_faults(RAISED)

    def test_a_half_open_connection_ends_by_our_own_limits(
        self, cluster: Cluster, server: MockServer, control: MockControl, proxy: TcpProxy, tmp_path: Path, node: str
    ) -> None:
        kubeconfig = cluster.kubeconfig(_admin_token(cluster), f"proxy-{node}", url=f"https://127.0.0.1:{proxy.port}")
        with daemon_in(cluster, server, tmp_path, node, kubeconfig) as daemon:
            healthy(daemon)
            proxy.freeze()
            control.raise_fault(3, X)
            wait_until(lambda: "publish_failed" in daemon.words(), "the write timed out")
            assert daemon.data()
            proxy.cut()
            proxy.thaw()
            daemon.wait_for_faults(RAISED)


def _admin_token(cluster: Cluster) -> str:
    config = yaml.safe_load(cluster.admin_kubeconfig.read_text())
    return str(config["users"][0]["user"]["token"])


@contextlib.contextmanager
def rights(cluster: Cluster, account: str, verbs: list[str]) -> Iterator[None]:
    """Rights on ConfigMaps for a service account of `default`."""
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}
    cluster.create(f"{roles}/roles", "Role", account, rules=[rule])
    cluster.create(
        f"{roles}/rolebindings",
        "RoleBinding",
        account,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
        subjects=[{"kind": "ServiceAccount", "namespace": "default", "name": account}],
    )
    yield
    cluster.call("DELETE", f"{roles}/rolebindings/{account}")
    cluster.call("DELETE", f"{roles}/roles/{account}")


ALL = ["get", "list", "watch", "create", "update"]


class TestAccess:
    def test_a_token_that_expired_is_read_again(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        cluster.service_account("default", node)
        with rights(cluster, node, ALL):
            kubeconfig = cluster.kubeconfig(cluster.signed_token("default", node, -300), node)
            with daemon_in(cluster, server, tmp_path, node, kubeconfig, cluster__pods="false") as daemon:
                wait_until(lambda: "status 401" in daemon.words(), "the expired token is told")
                cluster.kubeconfig(cluster.signed_token("default", node, 3600), node)
                healthy(daemon)
                # The account is made anew: what the daemon holds is refused from now on.
                cluster.kubectl("delete", "serviceaccount", node)
                cluster.service_account("default", node)
                cluster.kubeconfig(cluster.service_account_token("default", node), node)
                control.raise_fault(3, X)
                daemon.wait_for_faults(RAISED)

    def test_missing_rights_are_named_and_granting_them_is_enough(
        self, cluster: Cluster, server: MockServer, tmp_path: Path, node: str
    ) -> None:
        cluster.service_account("default", node)
        kubeconfig = cluster.kubeconfig(cluster.service_account_token("default", node), node)
        with daemon_in(cluster, server, tmp_path, node, kubeconfig) as daemon:
            wait_until(lambda: "verb get on configmaps in the namespace kube-system" in daemon.words())
            wait_until(lambda: "verb list on pods in the whole cluster" in daemon.words())
            with rights(cluster, node, ["get", "create", "update"]):
                healthy(daemon)  # without list and watch an edit is seen late, and that is all

    @pytest.mark.parametrize("how", ["wrong CA", "missing", "no kubeconfig at all"])
    def test_an_unusable_kubeconfig_is_told_and_a_good_one_is_taken(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str, how: str
    ) -> None:
        good = cluster.admin_kubeconfig.read_text()
        kubeconfig = tmp_path / "kubeconfig"
        if how == "wrong CA":
            config = yaml.safe_load(good)
            config["clusters"][0]["cluster"].pop("certificate-authority")
            kubeconfig.write_text(yaml.safe_dump(config))
        elif how == "no kubeconfig at all":
            kubeconfig.write_text("<html>")
        with daemon_in(cluster, server, tmp_path, node, kubeconfig) as daemon:
            control.raise_fault(3, X)
            word = "CERTIFICATE_VERIFY_FAILED" if how == "wrong CA" else "gives no access to a cluster"
            wait_until(lambda: word in daemon.words(), word)
            kubeconfig.write_text(good)
            daemon.wait_for_faults(RAISED)


class TestOthers:
    def test_a_second_daemon_of_the_node_waits_for_the_end_of_the_first(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        """Decision 23: an overlap at a rolling update settles."""
        with daemon_in(cluster, server, tmp_path, node) as first:
            healthy(first)
            second = Daemon(first.settings, first.out, tmp_path / "second.log").start()
            second.read = first.read
            try:
                wait_until(lambda: "another daemon of this node runs" in second.words())
                control.raise_fault(3, X)
                before = first.wait_for_faults(RAISED)
                first.kill()
                after = second.wait(lambda p: p.update_time_s > before.update_time_s, "the second writes")
                assert after.faults == before.faults
            finally:
                assert second.stop() == 0

    def test_a_waiting_daemon_stops_when_told(
        self, cluster: Cluster, server: MockServer, tmp_path: Path, node: str
    ) -> None:
        with daemon_in(cluster, server, tmp_path, node) as first:
            healthy(first)
            second = Daemon(first.settings, first.out, tmp_path / "second.log").start()
            wait_until(lambda: "another daemon of this node runs" in second.words())
            assert second.stop() == 0
            assert first.process.poll() is None

    def test_live_waits_while_the_device_plugin_writes(
        self, cluster: Cluster, server: MockServer, tmp_path: Path, node: str
    ) -> None:
        """Decision 22."""
        written = {"DeviceInfoCfg": "{}", "ManuallySeparateNPU": ""}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": object_name(node)}, "data": written}
        path = f"{path_of(node).rpartition('/')[0]}?fieldManager=device-plugin"
        assert cluster.call("POST", path, body).status == 201
        with daemon_in(cluster, server, tmp_path, node) as daemon:
            wait_until(lambda: "OtherWriter" in daemon.words())
            time.sleep(1)  # long enough for a write that must not come
            assert daemon.data() == written
        settings = {"publish__other_writer": "overwrite"}
        with daemon_in(cluster, server, tmp_path, node, **settings) as daemon:
            healthy(daemon)

    def test_a_shadow_leaves_what_consumers_read_alone(
        self, cluster: Cluster, server: MockServer, control: MockControl, tmp_path: Path, node: str
    ) -> None:
        with daemon_in(cluster, server, tmp_path, node, publish__mode="shadow") as daemon:
            control.raise_fault(3, X)
            name = f"{object_name(node)}-shadow"
            wait_until(lambda: X in str((cluster.config_map(NAMESPACE, name) or {}).get("data")), "the shadow")
            assert daemon.data() == {} or cluster.config_map(NAMESPACE, object_name(node)) is None
            found = cluster.config_map(NAMESPACE, name)
            assert found is not None
            assert "mx-consumer-cim" not in found["metadata"]["labels"]

    def test_an_immutable_object_is_named_and_its_removal_is_enough(
        self, cluster: Cluster, server: MockServer, tmp_path: Path, node: str
    ) -> None:
        cluster.create(
            f"/api/v1/namespaces/{NAMESPACE}/configmaps",
            "ConfigMap",
            object_name(node),
            data={"a": "b"},
            immutable=True,
        )
        with daemon_in(cluster, server, tmp_path, node) as daemon:
            wait_until(lambda: "kubectl delete configmaps" in daemon.words())
            cluster.kubectl("delete", "cm", "-n", NAMESPACE, object_name(node))
            healthy(daemon)
