"""What kubectl renders, and a real API server says of it: objects, pod security, rights, and the policy per node."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kit.cluster import Answer, Cluster
from kit.cluster_daemon import daemon_in
from kit.daemon import wait_until
from kit.manifests import MANIFESTS, NAMESPACE, OVERLAYS, SETTINGS_FILE, Daemon, Object, objects

from nodeagent.mock.launch import MockServer
from nodeagent.render.device_info import object_name

USER = f"system:serviceaccount:{NAMESPACE}:nodeagent"
CORE = "/api/v1"
CONFIG_MAPS = f"{CORE}/namespaces/kube-system/configmaps"
MERGE = "application/merge-patch+json"
DRY = "?dryRun=All"


def uncommented(folder: Path, overlay: str) -> Path:
    """A copy of the manifests in which the components that are comments are switched on; the overlay in it."""
    shutil.copytree(MANIFESTS, folder)
    path = folder / "overlays" / overlay / "kustomization.yaml"
    path.write_text(re.sub(r"^( *)# (- \.\./)", r"\1\2", path.read_text(), flags=re.MULTILINE))
    return path.parent


def blocks_of_the_readme() -> list[str]:
    """YAML of manifests/README.md: kustomization, settings of a BMC on the network, and two patches."""
    found: list[str] = re.findall(r"```yaml\n(.*?)```", (MANIFESTS / "README.md").read_text(), re.DOTALL)
    return found


def rendered(cluster: Cluster, folder: Path) -> list[Object]:
    return objects(cluster.kubectl("kustomize", folder).stdout)


@pytest.fixture(scope="module")
def installed(mindx_dl: Cluster) -> Cluster:
    """A cluster with overlay a2 applied as it is shipped."""
    mindx_dl.kubectl("apply", "-k", MANIFESTS / "overlays" / "a2")
    return mindx_dl


@pytest.fixture(scope="module")
def token(installed: Cluster) -> str:
    """A token of our service account that belongs to no pod."""
    return installed.service_account_token(NAMESPACE, "nodeagent")


@pytest.fixture(scope="module", params=OVERLAYS)
def overlay(request: pytest.FixtureRequest, control_plane: Cluster) -> list[Object]:
    """The objects of each overlay in turn."""
    return rendered(control_plane, MANIFESTS / "overlays" / request.param)


class TestRendered:
    def test_settings_and_environment_are_understood(self, overlay: list[Object]) -> None:
        daemon = Daemon.of(overlay)
        settings = daemon.settings()
        assert settings.publish.mode == "shadow"
        assert settings.http.address == ("192.0.2.1" if daemon.pod.get("hostNetwork") else "198.51.100.1")
        assert daemon.container["ports"][0]["containerPort"] == settings.http.port

    def test_all_that_is_written_lies_on_a_volume(self, overlay: list[Object]) -> None:
        daemon = Daemon.of(overlay)
        assert daemon.container["securityContext"]["readOnlyRootFilesystem"] is True
        own = daemon.settings().daemon
        for path in (own.lock, own.socket, own.state_dir, "/tmp", daemon.container["terminationMessagePath"]):
            assert not daemon.volume(path)[0].get("readOnly")
        assert daemon.volume(SETTINGS_FILE)[0]["readOnly"] is True

    def test_the_namespace_itself_is_nobodys(self, overlay: list[Object]) -> None:
        assert not [o for o in overlay if o["kind"] == "Namespace"]
        assert {o["metadata"].get("namespace") for o in overlay} == {NAMESPACE, "kube-system", None}

    @pytest.mark.parametrize("name", ["a2", "a3"])
    def test_a_real_node(self, control_plane: Cluster, name: str) -> None:
        daemon = Daemon.of(rendered(control_plane, MANIFESTS / "overlays" / name))
        assert daemon.container["securityContext"]["privileged"] is True
        assert daemon.volume("/dev/davinci0")[1]["hostPath"] == {"path": "/dev", "type": "Directory"}
        for folder in daemon.environment()["LD_LIBRARY_PATH"].split(":"):
            mount, volume = daemon.volume(folder)
            assert mount["readOnly"] is True
            assert volume["hostPath"]["type"] == "DirectoryOrCreate"

    def test_a_pretended_node(self, control_plane: Cluster) -> None:
        daemon = Daemon.of(rendered(control_plane, MANIFESTS / "overlays" / "dry-run"))
        settings = daemon.settings()
        assert daemon.container["args"] == ["run", "--dry-run"]
        assert settings.node.name == "dry-run-worker-1"
        assert daemon.file(settings.mock.node)
        assert daemon.file(settings.mock.timeline)
        assert not [volume for volume in daemon.pod["volumes"] if "hostPath" in volume]

    def test_the_kustomization_of_the_readme(self, control_plane: Cluster, tmp_path: Path) -> None:
        text, *_ = blocks_of_the_readme()
        shutil.copytree(MANIFESTS, tmp_path / "nodeagent" / "manifests")
        (tmp_path / "kustomization.yaml").write_text(text)
        (tmp_path / "config.yaml").write_text("log: {level: debug}\n")
        found = rendered(control_plane, tmp_path)
        daemon = Daemon.of(found)
        assert daemon.settings().log.level == "debug"
        assert daemon.container["image"].startswith("registry.example.com/nodeagent:")
        assert [o for o in found if o["kind"] == "ValidatingAdmissionPolicy"]

    def test_a_bmc_on_the_network_as_in_the_readme(self, mindx_dl: Cluster, tmp_path: Path) -> None:
        text, settings, bmc, fault_diag = blocks_of_the_readme()
        shutil.copytree(MANIFESTS, tmp_path / "nodeagent" / "manifests")
        files = {"kustomization.yaml": f"{text}patches: [{{path: bmc.yaml}}, {{path: fault-diag.yaml}}]\n"}
        diag = "log: {fault_diag_file: /var/log/mindx-dl/noded/noded.log}\n"
        files |= {"config.yaml": settings + diag, "bmc.yaml": bmc, "fault-diag.yaml": fault_diag}
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        daemon = Daemon.of(rendered(mindx_dl, tmp_path))
        ipmi = daemon.settings().ipmi
        assert (ipmi.transport, ipmi.address) == ("lan", "bmc-{node}.example.com")
        mount, volume = daemon.volume(ipmi.credentials_dir)
        assert mount["readOnly"] is True
        assert volume["secret"] == {"secretName": "nodeagent-bmc", "defaultMode": 0o400}
        mount, volume = daemon.volume(daemon.settings().log.fault_diag_file)
        assert volume["hostPath"]["path"] == mount["mountPath"] == "/var/log/mindx-dl/noded"
        done = mindx_dl.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", tmp_path)
        assert "Warning" not in done.stderr


class TestAccepted:
    @pytest.mark.parametrize("name", OVERLAYS)
    def test_the_server_takes_every_object(self, mindx_dl: Cluster, name: str) -> None:
        folder = MANIFESTS / "overlays" / name
        done = mindx_dl.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", folder)
        assert len(done.stdout.splitlines()) == len(rendered(mindx_dl, folder))
        assert "Warning" not in done.stderr

    @pytest.mark.parametrize("name", ["a2", "a3"])
    def test_with_every_component(self, mindx_dl: Cluster, tmp_path: Path, name: str) -> None:
        folder = uncommented(tmp_path / "manifests", name)
        kinds = [o["kind"] for o in rendered(mindx_dl, folder)]
        assert kinds.count("ClusterRole") == 3
        assert "ValidatingAdmissionPolicyBinding" in kinds
        done = mindx_dl.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", folder)
        assert len(done.stdout.splitlines()) == len(kinds)
        assert "Warning" not in done.stderr

    @pytest.mark.parametrize(
        ("name", "level", "taken"),
        [
            ("dry-run", "restricted", True),
            ("a2", "privileged", True),
            ("a2", "baseline", False),
            ("a3", "baseline", False),
        ],
    )
    def test_pod_security(self, mindx_dl: Cluster, node: str, name: str, level: str, taken: bool) -> None:
        pod = Daemon.of(rendered(mindx_dl, MANIFESTS / "overlays" / name)).pod
        labels = {"pod-security.kubernetes.io/enforce": level}
        metadata = {"name": node, "labels": labels}
        assert mindx_dl.call("POST", f"{CORE}/namespaces", {"metadata": metadata}).status == 201
        mindx_dl.service_account(node, pod["serviceAccountName"])
        body = {"metadata": {"name": "nodeagent"}, "spec": pod}
        answer = mindx_dl.call("POST", f"{CORE}/namespaces/{node}/pods{DRY}", body)
        assert answer.status == (201 if taken else 403), answer

    def test_a_dry_run_comes_and_goes_beside_the_real_one(self, installed: Cluster) -> None:
        ours = MANIFESTS / "overlays" / "a2"
        before = installed.kubectl("get", "-k", ours, "-o", "name").stdout
        installed.kubectl("apply", "-k", MANIFESTS / "overlays" / "dry-run")
        selectors = installed.kubectl("get", "ds", "-n", NAMESPACE, "-o", "jsonpath={.items[*].spec.selector}").stdout
        assert selectors.count("dry-run") == 1
        installed.kubectl("delete", "-k", MANIFESTS / "overlays" / "dry-run")
        assert installed.kubectl("get", "-k", ours, "-o", "name").stdout == before
        left = "sa,role,rolebinding,clusterrole,clusterrolebinding,configmap,daemonset"
        label = "app.kubernetes.io/instance=dry-run"
        assert installed.kubectl("get", left, "-A", "-l", label, "-o", "name").stdout == ""


class TestRights:
    def test_they_are_these_and_no_others(self, installed: Cluster, token: str) -> None:
        pods = (("pods",), ("list", "watch"))
        config_maps = (("configmaps",), ("create", "get", "list", "update", "watch"))
        kube_system = [config_maps, (("events",), ("create",)), pods]
        assert self._rules(installed, token, "kube-system") == sorted(kube_system)
        own = (("configmaps",), ("create", "delete", "get", "update"))
        levels = (("configmaps", "mindx-dl-node-fault-config"), ("list", "watch"))
        assert self._rules(installed, token, NAMESPACE) == sorted([own, levels, (("pods",), ("get",)), pods])
        assert self._rules(installed, token, "default") == [pods]

    @pytest.mark.parametrize(
        ("verb", "resource", "where"),
        [
            ("get", "secrets", "kube-system"),
            ("list", "secrets", NAMESPACE),
            ("delete", "configmaps", "kube-system"),
            ("patch", "configmaps", "kube-system"),
            ("list", "configmaps", NAMESPACE),
            ("watch", "configmaps", NAMESPACE),
            ("patch", "configmaps", NAMESPACE),
            ("update", "configmaps", "default"),
            ("list", "configmaps", ""),
            ("get", "pods", "kube-system"),
            ("delete", "pods", NAMESPACE),
            ("create", "pods", NAMESPACE),
            ("get", "nodes", ""),
            ("patch", "nodes", ""),
            ("delete", "nodes", ""),
            ("patch", "nodes/status", ""),
            ("get", "nodes/proxy", ""),
            ("create", "serviceaccounts/token", NAMESPACE),
            ("get", "daemonsets.apps", NAMESPACE),
        ],
    )
    def test_denied(self, installed: Cluster, verb: str, resource: str, where: str) -> None:
        scope = ["-n", where] if where else ["-A"]
        asked = installed.kubectl("auth", "can-i", verb, resource, *scope, f"--as={USER}", check=False)
        assert asked.stdout.strip() == "no"

    def test_they_are_enough_without_the_node_object(
        self, installed: Cluster, token: str, tmp_path: Path, node: str
    ) -> None:
        kubeconfig = installed.kubeconfig(token, f"nodeagent-{node}")
        with (
            MockServer.start("a2") as server,
            server.control() as control,
            daemon_in(installed, server, tmp_path, node, kubeconfig, node_object__enabled="false") as daemon,
        ):
            control.raise_fault(3, "80E18005")
            daemon.wait_for_faults({("Ascend910-3", "80E18005"): "RestartNPU"})
            assert "grant" not in daemon.words()

    @staticmethod
    def _rules(cluster: Cluster, token: str, namespace: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """What the server lets us do in a namespace, apart from what it lets everybody do (asking about themselves).

        Resources and names, and verbs.
        """
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        }
        answer = cluster.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review, token=token)
        assert answer.status == 201, answer
        assert answer.document["status"]["incomplete"] is False
        everybodys = ["authentication.k8s.io", "authorization.k8s.io"]
        rules = [r for r in answer.document["status"]["resourceRules"] if r["apiGroups"][0] not in everybodys]
        assert all(r["apiGroups"] == [""] for r in rules)
        return sorted(((*r["resources"], *r.get("resourceNames", [])), tuple(sorted(r["verbs"]))) for r in rules)


@dataclass(frozen=True)
class Bound:
    """Our service account as the pod of a node has it. send: method, path, body, content type."""

    cluster: Cluster
    node: str
    token: str

    def send(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Answer:
        return self.cluster.call(method, path, body, token=self.token, content_type=content_type)

    def write(self, name: str, namespace: str = "kube-system") -> Answer:
        """Create a ConfigMap."""
        return self.send("POST", f"{CORE}/namespaces/{namespace}/configmaps", {"metadata": {"name": name}})


@pytest.fixture(scope="module")
def guarded(installed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with every component switched on, the policy in force."""
    folder = uncommented(tmp_path_factory.mktemp("site") / "manifests", "a2")
    installed.kubectl("apply", "-k", folder)
    unbound = installed.service_account_token(NAMESPACE, "nodeagent")
    wait_until(
        lambda: installed.call("POST", CONFIG_MAPS + DRY, {"metadata": {"name": "some"}}, token=unbound).status == 422,
        "the policy is in force",
    )
    yield installed
    installed.kubectl("delete", "-k", folder.parent.parent / "components" / "admission-per-node", check=False)


@pytest.fixture
def bound(guarded: Cluster, node: str) -> Bound:
    """A node, the pod of the DaemonSet on it, and the token that its kubelet gets for the pod."""
    guarded.create(f"{CORE}/nodes", "Node", node)
    spec = Daemon.of(rendered(guarded, MANIFESTS / "overlays" / "a2")).pod | {"nodeName": node}
    pod = guarded.create(f"{CORE}/namespaces/{NAMESPACE}/pods", "Pod", f"nodeagent-{node}", spec=spec)
    reference = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    answer = guarded.call(
        "POST",
        f"{CORE}/namespaces/{NAMESPACE}/serviceaccounts/nodeagent/token",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600, "boundObjectRef": reference},
        },
    )
    assert answer.status == 201, answer
    return Bound(guarded, node, answer.document["status"]["token"])


def refused(answer: Answer) -> str:
    """The policy's sentence; AssertionError when it let something through."""
    assert answer.status == 422, answer
    message: str = answer.document["message"]
    assert "nodeagent-per-node" in message
    return message


class TestPolicyPerNode:
    @pytest.mark.parametrize("shadow", [False, True])
    def test_own_objects_are_written(self, bound: Bound, shadow: bool) -> None:
        name = object_name(bound.node, shadow)
        assert bound.write(name).status == 201
        changed = {"metadata": {"name": name}, "data": {"key": "value"}}
        assert bound.send("PUT", f"{CONFIG_MAPS}/{name}", changed).status == 200

    @pytest.mark.parametrize(
        "prefix", ["mindx-dl-nodeinfo-", "nodeagent-publicfault-dpc-", "nodeagent-publicfault-dtfs-"]
    )
    def test_own_objects_of_node_faults_are_written_and_deleted(self, bound: Bound, prefix: str) -> None:
        for name in (f"{prefix}{bound.node}", f"{prefix}{bound.node}-shadow"):
            assert bound.write(name, NAMESPACE).status == 201
            place = f"{CORE}/namespaces/{NAMESPACE}/configmaps/{name}"
            assert bound.send("PUT", place, {"metadata": {"name": name}, "data": {"key": "value"}}).status == 200
            assert bound.send("DELETE", place).status == 200
        assert bound.node in refused(bound.write(f"{prefix}{bound.node}"))
        other = f"{prefix}{bound.node}-other"
        assert bound.node in refused(bound.write(other, NAMESPACE))
        bound.cluster.create(f"{CORE}/namespaces/{NAMESPACE}/configmaps", "ConfigMap", other)
        assert bound.node in refused(bound.send("DELETE", f"{CORE}/namespaces/{NAMESPACE}/configmaps/{other}"))

    @pytest.mark.parametrize("name", ["mindx-dl-deviceinfo-{}x", "mindx-dl-deviceinfo-x{}", "{}", "coredns"])
    def test_other_names_are_not_created(self, bound: Bound, name: str) -> None:
        assert bound.node in refused(bound.write(name.format(bound.node)))

    def test_what_others_wrote_is_not_changed(self, bound: Bound) -> None:
        for name in (object_name(f"{bound.node}-other"), f"foreign-{bound.node}"):
            bound.cluster.create(CONFIG_MAPS, "ConfigMap", name)
            refused(bound.send("PUT", f"{CONFIG_MAPS}/{name}", {"metadata": {"name": name}}))

    def test_a_token_without_a_node_writes_nothing(self, bound: Bound) -> None:
        free = Bound(bound.cluster, bound.node, bound.cluster.service_account_token(NAMESPACE, "nodeagent"))
        assert "does not name a node" in refused(free.write(object_name(bound.node)))

    def test_nobody_else_is_concerned(self, bound: Bound) -> None:
        name = f"of-the-admin-{bound.node}"
        assert bound.cluster.call("POST", CONFIG_MAPS, {"metadata": {"name": name}}).status == 201
        assert bound.cluster.call("DELETE", f"{CONFIG_MAPS}/{name}").status == 200

    def test_the_own_node_gets_labels_and_conditions(self, bound: Bound) -> None:
        marks = {"metadata": {"labels": {"accelerator": "huawei-Ascend910"}, "annotations": {"baseDeviceInfos": "{}"}}}
        assert bound.send("PATCH", f"{CORE}/nodes/{bound.node}", marks, MERGE).status == 200
        condition = {"type": "NPUHealthy", "status": "True", "reason": "r", "message": "m"}
        status = {"status": {"conditions": [condition]}}
        assert bound.send("PATCH", f"{CORE}/nodes/{bound.node}/status", status, MERGE).status == 200

    @pytest.mark.parametrize("path", ["", "/status"])
    def test_other_nodes_are_left_alone(self, bound: Bound, path: str) -> None:
        other = f"{bound.node}-other"
        bound.cluster.create(f"{CORE}/nodes", "Node", other)
        marks = {"metadata": {"labels": {"accelerator": "huawei-Ascend910"}}}
        assert other in refused(bound.send("PATCH", f"{CORE}/nodes/{other}{path}", marks, MERGE))

    @pytest.mark.parametrize(
        "spec", [{"unschedulable": True}, {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]}]
    )
    def test_taints_and_cordons_are_not_ours(self, bound: Bound, spec: dict[str, Any]) -> None:
        assert "spec" in refused(bound.send("PATCH", f"{CORE}/nodes/{bound.node}", {"spec": spec}, MERGE))

    def test_a_live_daemon_works_within_it(self, bound: Bound, tmp_path: Path) -> None:
        kubeconfig = bound.cluster.kubeconfig(bound.token, f"bound-{bound.node}")
        quick = {"ipmi__poll_period_s": 0.2, "ipmi__report_interval_s": 0.05, "storage__read_period_s": 0.1}

        def there(name: str) -> bool:
            return bound.cluster.config_map(NAMESPACE, f"{name}-{bound.node}") is not None

        with (
            MockServer.start("a2") as server,
            server.control() as control,
            daemon_in(bound.cluster, server, tmp_path, bound.node, kubeconfig, **quick) as daemon,
        ):
            daemon.wait(lambda parsed: not parsed.faults)
            wait_until(lambda: "accelerator" in self._labels(bound), "the node is labelled")
            control.raise_alarm("0000001D", device_id=1)
            for client in ("dpc", "dtfs"):
                control.set_storage(client, "process")
                wait_until(lambda c=client: there(f"nodeagent-publicfault-{c}"), "the storage fault is told")
            wait_until(lambda: there("mindx-dl-nodeinfo"), "the alarm is published")
            control.clear_alarm("0000001D")
            wait_until(lambda: not there("mindx-dl-nodeinfo"), "it is gone")
            assert "grant" not in daemon.words()
            assert "nodeagent-per-node" not in daemon.words()

    @staticmethod
    def _labels(bound: Bound) -> dict[str, str]:
        labels: dict[str, str] = bound.cluster.call("GET", f"{CORE}/nodes/{bound.node}").document["metadata"]["labels"]
        return labels
