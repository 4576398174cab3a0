"""The self-check on real files, a compiled mock library and a server that speaks the protocol."""

import fcntl
import logging
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from kit.daemon import compile_library
from kit.fake_api import Answer, FakeApi, fake_api

from nodeagent.core.model import Family, Product
from nodeagent.core.settings import (
    DaemonSettings,
    DriverSettings,
    FaultSettings,
    MockSettings,
    NodeSettings,
    PublishSettings,
    Settings,
)
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.selfcheck.check import Check, Verdict
from nodeagent.daemon.selfcheck.doctor import Doctor
from nodeagent.daemon.selfcheck.node_facts import device_files, running_daemon, try_folder
from nodeagent.daemon.selfcheck.rights import needed_rights
from nodeagent.daemon.start_check import StartCheck
from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.render.device_info import DEVICE_KEY

OWN = ("kube-system", "mindx-dl-deviceinfo-worker-1")
RULES = ("kube-system", "mindx-dl-fault-config")
OF_CLUSTER = ("node-name", "api-server", "clock", "rights", "other-writer", "fault-configmap")


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        running.put_object({"metadata": {"name": "worker-1"}}, "nodes")
        yield running


@pytest.fixture
def settings(api: FakeApi, tmp_path: Path) -> Settings:
    return Settings(
        node=NodeSettings(name="worker-1"),
        publish=PublishSettings(kubeconfig=api.kubeconfig(tmp_path)),
        daemon=DaemonSettings(str(tmp_path / "state"), str(tmp_path / "lock"), str(tmp_path / "socket")),
    )


def examined(settings: Settings, *names: str, **options: object) -> dict[str, Check]:
    """The named checks."""
    doctor = Doctor(settings, **options)  # type: ignore[arg-type]
    try:
        return {each.name: each.run() for each in doctor.examinations() if each.name in names}
    finally:
        doctor.close()


def verdicts(checks: dict[str, Check]) -> dict[str, str]:
    return {name: check.verdict.value for name, check in checks.items()}


class TestCluster:
    def test_all_well(self, settings: Settings) -> None:
        checks = examined(settings, *OF_CLUSTER)
        assert verdicts(checks) == dict.fromkeys(OF_CLUSTER, "ok")
        assert "v1.33.1" in checks["api-server"].detail

    def test_nothing_is_changed(self, settings: Settings, api: FakeApi) -> None:
        before = api.version
        examined(settings, *OF_CLUSTER)
        assert api.version == before
        assert {r.method for r in api.requests if "selfsubjectaccessreviews" not in r.path} == {"GET"}

    def test_each_right_is_asked_once(self, settings: Settings, api: FakeApi) -> None:
        examined(settings, "rights")
        asked = [
            tuple(sorted(r.body["spec"]["resourceAttributes"].items())) for r in api.requests if r.method == "POST"
        ]
        assert len(asked) == len(set(asked)) == len(needed_rights(settings))
        assert all(r.path.startswith("/apis/authorization.k8s.io/v1/") for r in api.requests if r.method == "POST")

    def test_missing_rights(self, settings: Settings, api: FakeApi) -> None:
        api.denied = {("create", "configmaps"), ("watch", "pods")}
        check = examined(settings, "rights")["rights"]
        assert check.verdict is Verdict.FAIL
        assert check.detail.splitlines() == [
            f"3 of {len(needed_rights(settings))} rights are missing",
            "# Role in the namespace kube-system",
            '- {apiGroups: [""], resources: ["configmaps"], verbs: ["create"]}',
            "# ClusterRole",
            '- {apiGroups: [""], resources: ["pods"], verbs: ["watch"]}',
            "# Role in the namespace mindx-dl",
            '- {apiGroups: [""], resources: ["configmaps"], verbs: ["create"]}',
        ]

    def test_a_node_name_that_nobody_has(self, settings: Settings) -> None:
        wrong = replace(settings, node=NodeSettings(name="worker-2"))
        assert examined(wrong, "node-name")["node-name"].verdict is Verdict.FAIL

    def test_a_name_that_no_node_can_have(self, settings: Settings, api: FakeApi) -> None:
        wrong = replace(settings, node=NodeSettings(name="Worker_1"))
        checks = examined(wrong, "node-name", "rights", "other-writer")
        assert verdicts(checks) == {"node-name": "fail", "rights": "skipped", "other-writer": "skipped"}

    @pytest.mark.parametrize(
        ("ahead_s", "verdict"), [(0, "ok"), (30, "warn"), (-30, "warn"), (300, "fail"), (-300, "fail")]
    )
    def test_clock(self, settings: Settings, api: FakeApi, ahead_s: float, verdict: str) -> None:
        api.ahead_s = ahead_s
        check = examined(settings, "clock")["clock"]
        assert check.verdict.value == verdict
        if ahead_s:
            assert ("behind" if ahead_s > 0 else "ahead of") in check.detail

    @pytest.mark.parametrize("status", [0, 401])
    def test_a_server_that_cannot_be_asked_is_said_once(self, settings: Settings, api: FakeApi, status: int) -> None:
        api.script.extend(Answer(status) for _ in range(2))  # a 401 is asked again with fresh credentials
        checks = examined(settings, *OF_CLUSTER)
        assert verdicts(checks) == dict.fromkeys(OF_CLUSTER, "skipped") | {"api-server": "fail"}
        assert len(api.requests) == (1 if status == 0 else 2)

    def test_no_way_to_any_cluster(self, settings: Settings) -> None:
        checks = examined(replace(settings, publish=PublishSettings()), *OF_CLUSTER)
        assert verdicts(checks) == dict.fromkeys(OF_CLUSTER, "skipped") | {"api-server": "fail"}
        assert "publish.kubeconfig" in checks["api-server"].detail

    def test_without_a_cluster_all_is_skipped(self, settings: Settings, api: FakeApi, tmp_path: Path) -> None:
        here = replace(settings, publish=PublishSettings(target="directory", directory=str(tmp_path / "out")))
        checks = examined(here, *OF_CLUSTER, "target-folder")
        assert verdicts(checks) == dict.fromkeys(OF_CLUSTER, "skipped") | {
            "fault-configmap": "ok",
            "target-folder": "ok",
        }
        assert api.requests == []
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("mode", "other", "verdict"),
        [("live", "wait", "fail"), ("live", "overwrite", "warn"), ("shadow", "wait", "ok")],
    )
    def test_another_writer(self, settings: Settings, api: FakeApi, mode: str, other: str, verdict: str) -> None:
        entry = {"manager": "device-plugin", "fieldsV1": {"f:data": {f"f:{DEVICE_KEY}": {}}}, "time": _now()}
        metadata = {"namespace": OWN[0], "name": OWN[1], "managedFields": [entry]}
        obj = {"metadata": metadata, "data": {DEVICE_KEY: "{}"}}
        api.put_object(obj)
        publish = replace(settings.publish, mode=mode, other_writer=other)
        assert examined(replace(settings, publish=publish), "other-writer")["other-writer"].verdict.value == verdict

    def test_the_fault_configmap_is_judged(self, settings: Settings, api: FakeApi) -> None:
        meta = {"namespace": RULES[0], "name": RULES[1]}
        api.put_object({"metadata": meta, "data": {"nodeagent.yml": ""}})
        check = examined(settings, "fault-configmap")["fault-configmap"]
        assert check.verdict is Verdict.WARN
        assert "nodeagent.yaml" in check.detail
        api.put_object({"metadata": meta, "data": {"faultCode.json": "{"}})
        check = examined(settings, "fault-configmap")["fault-configmap"]
        assert check.verdict is Verdict.FAIL
        assert "kubectl get configmap -n kube-system mindx-dl-fault-config" in check.hint

    def test_what_we_may_not_read_is_left_to_the_rights(self, settings: Settings, api: FakeApi) -> None:
        api.script.extend(Answer(403, method="GET", resource="configmaps") for _ in range(2))
        checks = examined(settings, "other-writer", "fault-configmap")
        assert verdicts(checks) == {"other-writer": "skipped", "fault-configmap": "skipped"}


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class TestNode:
    def test_device_files(self, tmp_path: Path) -> None:
        for name in ("davinci0", "davinci12", "davinci_manager", "hisi_hdc", "davinci1x", "davinci"):
            (tmp_path / name).touch()
        found = {file.name: (file.exists, file.usable) for file in device_files(tmp_path)}
        yes, no = (True, True), (False, False)
        assert found == {"davinci_manager": yes, "devmm_svm": no, "hisi_hdc": yes, "davinci0": yes, "davinci12": yes}

    def test_a_folder_is_tried_and_left_as_it_was(self, tmp_path: Path) -> None:
        there = try_folder(tmp_path)
        assert (there.exists, there.problem, there.free_bytes > 0) == (True, "", True)
        missing = try_folder(tmp_path / "a" / "b")
        assert (missing.exists, missing.problem) == (False, "")
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert try_folder(tmp_path / "file").problem == "Not a directory"
        assert try_folder(Path("/proc/nodeagent")).problem

    def test_who_holds_the_lock(self, tmp_path: Path) -> None:
        own = DaemonSettings("", str(tmp_path / "lock"), "")
        assert running_daemon(own).holder == ""
        with open(own.lock, "w") as held:
            held.write("4711\n")
            held.flush()
            assert running_daemon(own).holder == "", "a file alone is no lock"
            fcntl.flock(held, fcntl.LOCK_EX)
            assert running_daemon(own).holder == "4711"
            fcntl.flock(held, fcntl.LOCK_UN)
            running_daemon(own)
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # what the look took was given back

    def test_a_bad_site_file(self, settings: Settings, tmp_path: Path) -> None:
        site = tmp_path / "site.yaml"
        site.write_text("version: 1\nfaults:\n  - code: 80E21007\n    level: SeparateNPU\n")
        bad = replace(settings, faults=FaultSettings(site_file=str(site)))
        checks = examined(bad, "fault-tables", "fault-configmap")
        assert verdicts(checks) == {"fault-tables": "fail", "fault-configmap": "skipped"}
        assert f"{site}:3" in checks["fault-tables"].detail


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer.start("a3") as server:
        yield server


class TestDriver:
    def on(self, settings: Settings, server: MockServer, **driver: object) -> Settings:
        own = {"library": str(library_dir() / "libdcmi.so"), "trust_library": True, "call_deadline_s": 1.0, **driver}
        return replace(settings, driver=DriverSettings(**own), mock=MockSettings(socket=server.socket))

    def test_library_and_chips(self, settings: Settings, server: MockServer) -> None:
        checks = examined(self.on(settings, server), "library", "chips", "versions", "device-files")
        assert verdicts(checks) == {"library": "ok", "chips": "ok", "versions": "ok", "device-files": "skipped"}
        assert "DCMI v1 and v2" in checks["library"].detail
        assert checks["chips"].detail.startswith("16 chips, Ascend910A3 (")
        words = dict(word.split("=", 1) for word in checks["versions"].detail.split(" "))
        assert words["product"] == "Ascend910A3"
        assert words["api_server"] == "v1.33.1"
        assert {"nodeagent", "python", "cffi", "kubernetes", "kernel", "driver", "dcmi", "chip", "library"} <= set(
            words
        )

    def test_a_chip_without_an_answer(self, settings: Settings, server: MockServer) -> None:
        with server.control() as control:
            control.fail("dcmi_get_device_errorcode_v2", -8005, chip=2)
            try:
                check = examined(self.on(settings, server), "chips")["chips"]
            finally:
                control.fail("dcmi_get_device_errorcode_v2", 0, chip=2)
        assert check.verdict is Verdict.WARN
        assert "chip 2 gives no answer" in check.detail

    def test_an_initialisation_that_hangs_has_a_deadline(self, settings: Settings, server: MockServer) -> None:
        with server.control() as control:
            control.hang("dcmi_init", 20_000)
            try:
                checks = examined(self.on(settings, server, init_deadline_s=1.0), "library", "chips")
            finally:
                control.hang("dcmi_init", 0)
        assert verdicts(checks) == {"library": "ok", "chips": "fail"}
        assert "did not return within 1 s" in checks["chips"].detail

    def test_a_library_that_is_not_dcmi(self, settings: Settings, tmp_path: Path) -> None:
        path = compile_library(tmp_path, "int nothing; ")
        own = DriverSettings(library=str(path), trust_library=True)
        checks = examined(replace(settings, driver=own), "library", "chips")
        assert verdicts(checks) == {"library": "fail", "chips": "skipped"}
        assert "not DCMI" in checks["library"].detail

    def test_a_library_that_others_can_write(self, settings: Settings, tmp_path: Path) -> None:
        path = compile_library(tmp_path, "int nothing; ")
        path.chmod(path.stat().st_mode | stat.S_IWOTH)
        own = DriverSettings(library=str(path), trust_library=False)
        check = examined(replace(settings, driver=own), "library")["library"]
        assert check.verdict is Verdict.FAIL
        assert "NA301" in check.detail
        assert "chmod go-w" in check.hint


class TestAtTheStart:
    PRODUCT = Product(Family.A2, "910B4", driver_version="25.2.0")

    def run(self, settings: Settings, *, stopped: bool = False) -> Registry:
        """One start-up check that knows its product from the beginning."""
        metrics = Registry()
        check = StartCheck(Doctor(settings), metrics, quiet_s=0)
        check.seen(self.PRODUCT)
        if stopped:
            check.stop()
        check.run()
        return metrics

    def test_troubles_and_versions_are_said(
        self, settings: Settings, api: FakeApi, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        api.denied = {("create", "configmaps"), ("watch", "pods")}
        api.ahead_s = -30
        settings = replace(settings, mock=MockSettings(socket="/pretended"))
        metrics = self.run(settings)
        assert metrics.value("missing_rights") == 3
        lines = [(r.levelname, r.getMessage()) for r in caplog.records if r.name == "nodeagent.self-check"]
        assert [(level, line.split(" ")[0]) for level, line in lines] == [
            ("WARNING", "self-check=clock"),
            ("ERROR", "self-check=rights"),
            ("INFO", "compatibility"),
        ]
        assert all("\n" not in line for _, line in lines)
        assert "driver=25.2.0" in lines[2][1]
        assert "api_server=v1.33.1" in lines[2][1]

    def test_each_thing_is_asked_once(self, settings: Settings, api: FakeApi) -> None:
        self.run(settings)
        asked = [(r.method, r.path, str(r.body)) for r in api.requests]
        assert len(asked) == len(set(asked)) == 4 + len(needed_rights(settings))

    def test_stopping_ends_it(self, settings: Settings, api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        self.run(settings, stopped=True)
        assert api.requests == []
        assert caplog.records == []

    def test_a_product_that_is_never_known_keeps_no_daemon_from_its_end(self, settings: Settings) -> None:
        check = StartCheck(Doctor(settings), Registry(), quiet_s=0)
        thread = threading.Thread(target=check.run, daemon=True)
        thread.start()
        check.stop()
        thread.join(30)
        assert not thread.is_alive()

    def test_an_unknown_number_of_rights_is_no_zero(self, settings: Settings, api: FakeApi) -> None:
        api.script.extend(Answer(500, resource="selfsubjectaccessreviews") for _ in range(1))
        assert "missing_rights" not in self.run(settings).summary()
