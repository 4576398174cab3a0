"""The manifests agree with the daemon that they start, as far as their files tell without kubectl.

What they are once rendered, and what an API server says of them: tests/cluster_system/test_manifests.py.
"""

import importlib.metadata
import re
from pathlib import Path

import pytest
import yaml
from kit.manifests import MANIFESTS, NAMESPACE, OVERLAYS, SETTINGS_FILE, Daemon, kustomizations, objects, one

from nodeagent.core.settings_load import load_settings
from nodeagent.daemon.selfcheck.rights import needed_rights
from nodeagent.mock import scenario
from nodeagent.publish.leftovers import KINDS
from nodeagent.render import device_info

BASE = MANIFESTS / "base"
DRY_RUN = MANIFESTS / "overlays" / "dry-run"
POLICY = MANIFESTS / "components" / "admission-per-node" / "policy.yaml"
SETTINGS_FILES = sorted(MANIFESTS.rglob("config.yaml"))


@pytest.fixture(scope="module")
def base() -> Daemon:
    found = objects((BASE / "daemonset.yaml").read_text())
    settings = {"metadata": {"name": "nodeagent-settings"}, "kind": "ConfigMap"}
    return Daemon.of([*found, {**settings, "data": {"config.yaml": (BASE / "config.yaml").read_text()}}])


def test_every_file_is_used() -> None:
    used: set[Path] = set()
    for folder, content in kustomizations():
        used.add(folder / "kustomization.yaml")
        for name in [*content.get("resources", []), *(patch["path"] for patch in content.get("patches", []))]:
            used.add(folder / name)
        for generator in content.get("configMapGenerator", []):
            used |= {folder / name for name in generator["files"]}
    there = {path for folder in ("base", "components", "overlays") for path in (MANIFESTS / folder).rglob("*.yaml")}
    assert there == {path.resolve() for path in used if path.suffix}


def test_components_that_are_named_exist() -> None:
    """Those in comments too: they are switched on by removing the `#`."""
    for overlay in OVERLAYS:
        text = (MANIFESTS / "overlays" / overlay / "kustomization.yaml").read_text()
        for name in re.findall(r"^ *(?:# )?- (\.\./\.\./\S+)$", text, re.MULTILINE):
            assert (MANIFESTS / "overlays" / overlay / name / "kustomization.yaml").is_file(), name


def test_the_tag_is_our_version() -> None:
    version = importlib.metadata.version("nodeagent")
    assert yaml.safe_load((BASE / "kustomization.yaml").read_text())["images"] == [
        {"name": "nodeagent", "newTag": version}
    ]


@pytest.mark.parametrize("file", SETTINGS_FILES, ids=lambda file: file.parent.name)
def test_settings_load_and_are_shadow(file: Path) -> None:
    settings = load_settings(file.read_text(), str(file), {"NODE_NAME": "worker-1"})
    assert settings.publish.target == "kubernetes"
    assert settings.publish.mode == "shadow"


@pytest.mark.parametrize("overlay", ["a2", "a3"])
def test_settings_in_comments_are_understood(overlay: str) -> None:
    path = MANIFESTS / "overlays" / overlay / "config.yaml"
    text = re.sub(r"^# ( *[a-z_]+:)", r"\1", path.read_text(), flags=re.MULTILINE)
    switched_on = load_settings(text, str(path), {"NODE_NAME": "worker-1"})
    assert text != path.read_text()
    assert switched_on.log.fault_diag_file == "/var/log/mindx-dl/noded/noded.log"
    plain = load_settings(path.read_text(), str(path), {"NODE_NAME": "worker-1"})
    assert (switched_on.ipmi, switched_on.storage) == (plain.ipmi, plain.storage), "they say that they are the defaults"
    assert switched_on.public_faults == plain.public_faults


def test_one_switch_goes_live() -> None:
    for file in SETTINGS_FILES:
        live = file.read_text().replace("\n  mode: shadow\n", "\n  mode: live\n")
        assert load_settings(live, str(file), {}).publish.mode == "live"


class TestBase:
    def test_the_environment_is_understood(self, base: Daemon) -> None:
        settings = base.settings()
        assert settings.node.name == "worker-1"
        assert settings.http.address == "192.0.2.1"

    def test_written_files_lie_on_folders_of_the_host(self, base: Daemon) -> None:
        own = base.settings().daemon
        for path in (own.lock, own.socket, own.state_dir):
            mount, volume = base.volume(path)
            assert not mount.get("readOnly")
            assert volume["hostPath"] == {"path": mount["mountPath"], "type": "DirectoryOrCreate"}
        assert base.volume("/tmp")[1]["emptyDir"]
        assert base.volume(base.container["terminationMessagePath"])[1]["name"] == "tmp"
        assert base.volume(SETTINGS_FILE)[0]["readOnly"] is True

    def test_probes_ask_where_the_daemon_answers(self, base: Daemon) -> None:
        (port,) = base.container["ports"]
        assert port["containerPort"] == base.settings().http.port
        for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            assert base.container[probe]["httpGet"] == {"path": path, "port": port["name"]}

    def test_it_runs_on_every_npu_node_once(self, base: Daemon) -> None:
        assert base.pod["nodeSelector"] == {"workerselector": "dls-worker-node"}
        assert base.pod["tolerations"] == [{"operator": "Exists"}]
        strategy = one(objects((BASE / "daemonset.yaml").read_text()), "DaemonSet")["spec"]["updateStrategy"]
        assert strategy["rollingUpdate"]["maxSurge"] == 0


class TestDryRun:
    def test_the_scenario_plays(self) -> None:
        node = scenario.load(DRY_RUN / "node.yaml").node
        assert scenario.load(DRY_RUN / "timeline.yaml", node).timeline

    def test_node_faults_come_and_go_when_the_readme_says(self) -> None:
        steps = yaml.safe_load((DRY_RUN / "timeline.yaml").read_text())["timeline"]
        (came,), (gone,) = ([s for s in steps if s["do"] == do] for do in ("raise_alarm", "clear_alarm"))
        died, back = (s for s in steps if s["do"] == "storage_dpc")
        assert came["code"] == gone["code"]
        assert died["instances"] == ["process"]
        assert "instances" not in back, "one healthy instance"
        rows = [line for line in (MANIFESTS / "README.md").read_text().splitlines() if "-dry-run-<node>-shadow" in line]
        assert [f"from {came['at_s']} s to {gone['at_s']} s" in row for row in rows] == [False, True, False]
        said = f"`occur` at {died['at_s']} s, `recover` at {back['at_s']} s"
        assert [said in row for row in rows] == [False, False, True]


class TestPolicy:
    """The policy names objects in a language of its own; the names are those that the daemon writes."""

    def test_it_speaks_of_our_service_account(self) -> None:
        account = one(objects((BASE / "service-account.yaml").read_text()), "ServiceAccount")["metadata"]
        policy = one(objects(POLICY.read_text()), "ValidatingAdmissionPolicy")["spec"]
        (condition,) = policy["matchConditions"]
        user = f"system:serviceaccount:{account['namespace']}:{account['name']}"
        assert condition["expression"] == f'request.userInfo.username == "{user}"'
        assert account["namespace"] == NAMESPACE

    def test_it_lets_the_objects_of_the_node_through(self) -> None:
        policy = one(objects(POLICY.read_text()), "ValidatingAdmissionPolicy")["spec"]
        (rule,) = [v["expression"] for v in policy["validations"] if device_info.NAMESPACE in v["expression"]]
        names = re.findall(r'"([^"]*)" \+ variables\.node(?: \+ "([^"]*)")?', rule)
        assert [prefix + "n" + suffix for prefix, suffix in names] == [
            name for kind in KINDS for name in kind.names("n")
        ]
        assert all(f'request.namespace == "{kind.namespace}"' in rule for kind in KINDS)


class TestRights:
    """`doctor` asks for what the daemon needs; the roles grant it."""

    @pytest.mark.parametrize(
        ("components", "overrides"),
        [
            ([], ["publish.mode=shadow"]),
            (["node-object"], ["publish.mode=live"]),
            (["node-object", "node-conditions"], ["publish.mode=live", "node_object.conditions=true"]),
        ],
    )
    def test_every_right_that_the_daemon_needs_is_granted(self, components: list[str], overrides: list[str]) -> None:
        files = [BASE / "rbac.yaml", *(MANIFESTS / "components" / name / "rbac.yaml" for name in components)]
        roles = [o for file in files for o in objects(file.read_text()) if o["kind"] in ("Role", "ClusterRole")]
        granted = {
            (verb, resource, role["metadata"].get("namespace", ""), name)
            for role in roles
            for rule in role["rules"]
            for verb in rule["verbs"]
            for resource in rule["resources"]
            for name in rule.get("resourceNames", [""])
        }
        settings = load_settings((BASE / "config.yaml").read_text(), "base", {"NODE_NAME": "worker-1"}, overrides)
        missing = [
            right
            for right in needed_rights(settings)
            if not {(right.verb, right.rbac_resource, right.namespace, name) for name in ("", right.name)} & granted
        ]
        assert missing == []
        assert ("patch", "nodes/status", "", "") in granted or "node-conditions" not in components
