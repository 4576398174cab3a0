"""`nodeagent cleanup` against a server that speaks the protocol, and on the files of this machine."""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.data.device_info.cases import VIEWS
from kit.fake_api import Answer, FakeApi, fake_api

from nodeagent.cli.main import main
from nodeagent.cluster.client import ApiClient
from nodeagent.core.telemetry import NullTelemetry
from nodeagent.publish.cleaner import Cleaner
from nodeagent.render.device_info import NAMESPACE, config_map, object_name, render_device_info

DATA = {"f:data": {"f:DeviceInfoCfg": {}}}
LABELS = {"f:metadata": {"f:labels": {"f:accelerator": {}}}}


def managed(manager: str, fields: Any) -> list[dict[str, Any]]:
    return [{"manager": manager, "time": "2025-11-30T12:00:00Z", "fieldsV1": fields}]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        for number, manager in ((1, "nodeagent"), (2, "device-plugin")):
            node = f"worker-{number}"
            for shadow, writer in ((False, manager), (True, "nodeagent")):
                obj = config_map(node, render_device_info(VIEWS["A1"](), 1760000000), shadow)
                obj["metadata"] |= {"uid": f"uid-{number}-{shadow}", "managedFields": managed(writer, DATA)}
                running.put_object(obj)
            labels = {"accelerator": "huawei-Ascend910", "workerselector": "dls-worker-node"}
            meta = {"name": node, "uid": node, "labels": labels, "managedFields": managed(manager, LABELS)}
            running.put_object({"metadata": meta}, "nodes")
        running.put_object({"metadata": {"namespace": NAMESPACE, "name": "coredns"}, "data": {}})
        yield running


def cleanup(api: FakeApi, folder: Path, *words: str) -> int:
    return main(["cleanup", "--kubeconfig", api.kubeconfig(folder), *words])


def names(api: FakeApi) -> set[str]:
    return {name for _, name in api.objects}


LIVE, SHADOW = object_name("worker-1"), object_name("worker-1", shadow=True)
THEIRS, BESIDE = object_name("worker-2"), object_name("worker-2", shadow=True)


def test_it_only_shows(api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cleanup(api, tmp_path, "--node", "worker-1") == 1
    shown = capsys.readouterr()
    rows = [line.split()[:4] for line in shown.out.splitlines()]
    assert rows == [
        ["WHAT", "WHERE", "NAME", "STATE"],
        ["configmap", f"kube-system/{LIVE}", "-", "left"],
        ["configmap", f"kube-system/{SHADOW}", "-", "left"],
        ["label", "worker-1", "accelerator", "left"],
    ]
    assert "--yes does it" in shown.err
    assert {request.method for request in api.requests} == {"GET"}


def test_it_removes_what_is_ours_and_nothing_else(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cleanup(api, tmp_path, "--all-nodes", "--yes", "--output", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {(row["place"], row["state"]) for row in found["found"]} == {
        (f"kube-system/{LIVE}", "removed"),
        (f"kube-system/{SHADOW}", "removed"),
        (f"kube-system/{BESIDE}", "removed"),
        (f"kube-system/{THEIRS}", "kept"),
        ("worker-1", "removed"),
    }
    assert names(api) == {THEIRS, "coredns"}
    labels = {key[1]: node["metadata"]["labels"] for key, node in api.of("nodes").items()}
    assert labels == {
        "worker-1": {"workerselector": "dls-worker-node"},
        "worker-2": {"accelerator": "huawei-Ascend910", "workerselector": "dls-worker-node"},
    }
    assert cleanup(api, tmp_path, "--all-nodes") == 0
    out = capsys.readouterr().out
    assert out.splitlines() == ["1 more belong to other programs and stay.", "Nothing of nodeagent is left to remove."]


def test_a_node_that_is_gone_is_found_by_its_object(api: FakeApi, tmp_path: Path) -> None:
    api.delete_object(("", "worker-1"), "nodes")
    assert cleanup(api, tmp_path, "--all-nodes", "--yes") == 0
    assert names(api) == {THEIRS, "coredns"}


def test_nothing_is_touched_while_a_daemon_runs(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = {"namespace": "mindx-dl", "name": "nodeagent-x", "labels": {"app.kubernetes.io/name": "nodeagent"}}
    pod = {"metadata": meta, "spec": {"nodeName": "worker-1"}, "status": {"phase": "Running"}}
    api.put_object(pod, "pods")
    assert cleanup(api, tmp_path, "--all-nodes", "--yes") == 1
    assert "the daemon still runs, as pod mindx-dl/nodeagent-x" in capsys.readouterr().out
    assert names(api) == {LIVE, SHADOW, THEIRS, "coredns"}, "another node is no reason to wait"
    assert "accelerator" in api.of("nodes")["", "worker-1"]["metadata"]["labels"]
    api.put_object({**pod, "status": {"phase": "Succeeded"}}, "pods")
    assert cleanup(api, tmp_path, "--node", "worker-1", "--yes") == 0


def test_an_object_that_changes_meanwhile_stays(api: FakeApi, tmp_path: Path) -> None:
    """It was ours when it was looked at, and another program writes it before it is removed."""
    cleaner = Cleaner(ApiClient(api.kubeconfig(tmp_path), NullTelemetry()), 0)
    found = cleaner.of_node("worker-1")
    taken = api.objects[NAMESPACE, LIVE]
    api.put_object({**taken, "metadata": taken["metadata"] | {"managedFields": managed("device-plugin", DATA)}})
    problems = {each.leftover.place: each.problem for each in cleaner.remove(found)}
    assert "does a daemon still run?" in problems[f"kube-system/{LIVE}"]
    assert names(api) == {LIVE, THEIRS, BESIDE, "coredns"}
    assert problems["worker-1"] == "", "one that cannot be removed does not keep the others"


def test_a_node_that_changes_meanwhile_is_looked_at_again(api: FakeApi, tmp_path: Path) -> None:
    cleaner = Cleaner(ApiClient(api.kubeconfig(tmp_path), NullTelemetry()), 0)
    found = cleaner.of_node("worker-1")
    node = api.of("nodes")["", "worker-1"]
    api.put_object({**node, "status": {"heartbeat": 1}}, "nodes")
    assert [each.problem for each in cleaner.remove(found)] == ["", "", ""]
    assert "accelerator" not in api.of("nodes")["", "worker-1"]["metadata"]["labels"]


def test_long_lists_come_in_pages(api: FakeApi, tmp_path: Path) -> None:
    cleaner = Cleaner(ApiClient(api.kubeconfig(tmp_path), NullTelemetry()), 0, page=2)
    assert {each.place for each in cleaner.of_all()} == {
        *(f"kube-system/{name}" for name in (LIVE, SHADOW, THEIRS, BESIDE)),
        "worker-1",
    }
    lists = [request for request in api.requests if "configmaps" in request.path]
    assert len(lists) == 4, "five objects in one namespace, two a page, and none in the other"
    assert all("PartialObjectMetadataList" in request.headers["accept"] for request in lists)


@pytest.mark.parametrize(("method", "what"), [("DELETE", "configmap"), ("PATCH", "label")])
def test_a_missing_right_is_named(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str, what: str
) -> None:
    api.script.append(Answer(status=403, message="forbidden", method=method))
    assert cleanup(api, tmp_path, "--node", "worker-1", "--yes", "--output", "json") == 1
    failed = [row for row in json.loads(capsys.readouterr().out)["found"] if row["state"] == "failed"]
    assert [row["what"] for row in failed] == [what]
    assert f"the verb {method.lower()} on" in failed[0]["why"]


def test_a_server_that_refuses_to_tell(api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api.script.append(Answer(status=403, message="forbidden"))
    assert cleanup(api, tmp_path, "--all-nodes", "--yes") == 2
    assert "NA505" in capsys.readouterr().err
    assert {request.method for request in api.requests} == {"GET"}


@pytest.mark.parametrize("words", [[], ["--yes"], ["--node", "Not/A/Name"]])
def test_where_must_be_said(api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert cleanup(api, tmp_path, *words) == 2
    assert capsys.readouterr().err.startswith("nodeagent: NA10")
    assert api.requests == []


class TestNodeFaults:
    """The objects of node faults, in mindx-dl."""

    NODE_INFO = ("mindx-dl", "mindx-dl-nodeinfo-worker-1")
    DPC = ("mindx-dl", "nodeagent-publicfault-dpc-worker-1")

    @pytest.fixture
    def api(self) -> Iterator[FakeApi]:
        with fake_api() as running:
            for key, field, manager in (
                (self.NODE_INFO, "NodeInfo", "nodeagent"),
                (("mindx-dl", f"{self.NODE_INFO[1]}-shadow"), "NodeInfo", "nodeagent"),
                (("mindx-dl", "mindx-dl-nodeinfo-worker-2"), "NodeInfo", "noded"),
                (self.DPC, "PublicFault", "nodeagent"),
                (("mindx-dl", "someone-elses"), "PublicFault", "nodeagent"),
            ):
                fault = {"faultId": "fault-1", "assertion": "occur"}
                message = {"id": "message-1", "timestamp": 1, "resource": "dpcStorage", "faults": [fault]}
                metadata = {
                    "namespace": key[0],
                    "name": key[1],
                    "uid": key[1],
                    "labels": {"mc-consumer-publicfault": "true"},
                    "managedFields": managed(manager, {"f:data": {f"f:{field}": {}}}),
                }
                running.put_object({"metadata": metadata, "data": {field: json.dumps(message)}})
            annotations = {"product-serial-number": "2102", "theirs": "x"}
            fields = {"f:metadata": {"f:annotations": {"f:product-serial-number": {}}}}
            meta = {"name": "worker-1", "uid": "u", "annotations": annotations}
            running.put_object({"metadata": {**meta, "managedFields": managed("nodeagent", fields)}}, "nodes")
            yield running

    @pytest.mark.parametrize("words", [("--all-nodes",), ("--node", "worker-1")])
    def test_they_are_removed(self, api: FakeApi, tmp_path: Path, words: tuple[str, ...]) -> None:
        assert cleanup(api, tmp_path, *words) == 1
        assert cleanup(api, tmp_path, *words, "--yes") == 0
        assert names(api) == {"mindx-dl-nodeinfo-worker-2", "someone-elses"}
        assert api.of("nodes")["", "worker-1"]["metadata"]["annotations"] == {"theirs": "x"}

    def test_a_standing_fault_is_told_as_recovered_before_its_object_goes(
        self, api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cleanup(api, tmp_path, "--node", "worker-1")
        assert "told as recovered first" in capsys.readouterr().out
        assert cleanup(api, tmp_path, "--node", "worker-1", "--yes") == 0
        on_it = [request for request in api.requests if self.DPC[1] in request.path][-3:]
        assert [request.method for request in on_it] == ["GET", "PUT", "DELETE"]
        message = json.loads(on_it[1].body["data"]["PublicFault"])
        assert message["faults"] == [{"faultId": "fault-1", "assertion": "recover"}]
        assert message["id"] != "message-1"

    def test_an_object_that_could_not_be_told_as_recovered_stays(
        self, api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        api.script.append(Answer(403, "forbidden", method="PUT"))
        assert cleanup(api, tmp_path, "--node", "worker-1", "--yes") == 1
        assert "grant the verb update on configmaps in the namespace mindx-dl" in capsys.readouterr().out
        assert self.DPC[1] in names(api)


class TestHost:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> list[str]:
        state, run = tmp_path / "lib" / "nodeagent", tmp_path / "run" / "nodeagent"
        for folder in (state, run):
            folder.mkdir(parents=True)
        for file in (state / "state.json", state / "shadow.json", run / "nodeagent.lock", run / "nodeagent.sock"):
            file.touch()
        values = {
            "daemon.state_dir": state,
            "daemon.lock": run / "nodeagent.lock",
            "daemon.socket": run / "nodeagent.sock",
        }
        return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]

    def test_files_and_empty_folders_go(self, tmp_path: Path, settings: list[str]) -> None:
        assert main(["cleanup", "--host-files", *settings]) == 1
        assert (tmp_path / "lib" / "nodeagent" / "state.json").exists()
        assert main(["cleanup", "--host-files", "--yes", *settings]) == 0
        assert list((tmp_path / "lib").iterdir()) == list((tmp_path / "run").iterdir()) == []
        assert main(["cleanup", "--host-files", *settings]) == 0

    def test_what_we_did_not_write_stays(
        self, tmp_path: Path, settings: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        theirs = tmp_path / "lib" / "nodeagent" / "theirs"
        theirs.touch()
        assert main(["cleanup", "--host-files", "--yes", *settings]) == 1
        assert "files that nodeagent did not write" in capsys.readouterr().out
        assert [path.name for path in (tmp_path / "lib" / "nodeagent").iterdir()] == ["theirs"]

    def test_a_folder_of_another_name_stays(self, tmp_path: Path) -> None:
        (tmp_path / "state.json").touch()
        flags = ["--set", f"daemon.state_dir={tmp_path}", "--set", "daemon.lock=", "--set", "daemon.socket="]
        assert main(["cleanup", "--host-files", "--yes", *flags]) == 0
        assert list(tmp_path.iterdir()) == []

    def test_not_while_a_daemon_runs(
        self, tmp_path: Path, settings: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        lock = tmp_path / "run" / "nodeagent" / "nodeagent.lock"
        file = os.open(lock, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.pwrite(file, b"4711\n", 0)
            assert main(["cleanup", "--host-files", "--yes", *settings]) == 1
        finally:
            os.close(file)
        assert "a daemon still runs here with pid 4711" in capsys.readouterr().out
        assert lock.exists()


def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cleanup", "--help"])
    out = capsys.readouterr().out
    assert "examples:" in out
    assert "exit codes:" in out
