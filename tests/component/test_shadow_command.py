"""`nodeagent shadow diff`: two files, two objects of a cluster, or what the daemon says."""

import json
from pathlib import Path
from typing import Any

import pytest
from contract.data.device_info.cases import VIEWS
from kit.fake_api import Answer, FakeApi
from kit.played_daemon import Played

from nodeagent.cli.main import main
from nodeagent.publish.manifest import to_yaml
from nodeagent.render.device_info import NAMESPACE, config_map, render_device_info

NODE = "worker-1"
DIFFERENT = {
    "kind": "fault_missing",
    "field": "Ascend910-3 80E18005",
    "theirs": "RestartNPU",
    "ours": "-",
    "explanation": "",
}


def written(case: str, shadow: bool = False) -> dict[str, Any]:
    return config_map(NODE, render_device_info(VIEWS[case](), 1760000000), shadow)


class TestFiles:
    def diff(self, folder: Path, theirs: dict[str, Any], ours: dict[str, Any], *words: str) -> int:
        (folder / "theirs.yaml").write_text(to_yaml(theirs))
        (folder / "ours.json").write_text(json.dumps(ours))
        return main(["shadow", "diff", str(folder / "theirs.yaml"), str(folder / "ours.json"), *words])

    def test_the_same(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.diff(tmp_path, written("A2"), written("A2", shadow=True)) == 0
        assert "Both say the same." in capsys.readouterr().out

    def test_a_table_with_known_causes(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.diff(tmp_path, written("A2"), written("A1", shadow=True)) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[1] == "ours    mindx-dl-deviceinfo-worker-1-shadow"
        assert lines[3].split() == ["KIND", "FIELD", "THEIRS", "OURS", "SINCE"]
        assert "  known cause: follows from the difference in its faults" in lines
        assert "Differences: 3, without a known cause: 1." in lines

    def test_for_machines(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.diff(tmp_path, written("A2"), written("A1", shadow=True), "--output", "json") == 1
        found = json.loads(capsys.readouterr().out)
        assert (found["same"], found["source"], found["problem"]) == (False, "files", "")
        assert DIFFERENT in found["differences"]

    @pytest.mark.parametrize(
        ("text", "word"),
        [(None, "does not exist"), ("[", "is not YAML"), ("kind: List\n", "holds no ConfigMap"), ("- a\n", "YAML map")],
    )
    def test_a_file_that_cannot_be_compared(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, word: str
    ) -> None:
        path, good = tmp_path / "bad.yaml", tmp_path / "good.yaml"
        good.write_text(to_yaml(written("A1")))
        if text is not None:
            path.write_text(text)
        assert main(["shadow", "diff", str(good), str(path)]) == 2
        error = capsys.readouterr().err
        assert str(path) in error
        assert word in error

    def test_one_file_is_not_enough(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["shadow", "diff", str(tmp_path / "theirs.yaml")]) == 2
        assert "THEIRS.yaml OURS.yaml" in capsys.readouterr().err


class TestCluster:
    def diff(self, api: FakeApi, folder: Path, *words: str) -> int:
        return main(["shadow", "diff", "--kubeconfig", api.kubeconfig(folder), "--node-name", NODE, *words])

    def test_two_objects_are_read_and_nothing_else(
        self, api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        api.put_object(written("A2"))
        api.put_object(written("A1", shadow=True))
        assert self.diff(api, tmp_path, "--output", "json") == 1
        assert DIFFERENT in json.loads(capsys.readouterr().out)["differences"]
        assert [request.method for request in api.requests] == ["GET", "GET"]

    def test_a_setting_names_the_kubeconfig_too(
        self, api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        api.put_object(written("A1"))
        api.put_object(written("A1", shadow=True))
        setting = f"publish.kubeconfig={api.kubeconfig(tmp_path)}"
        assert main(["shadow", "diff", "--set", setting, "--node-name", NODE]) == 0

    def test_who_wrote_them_is_said(self, api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        live = written("A1")
        fields = {"f:data": {"f:DeviceInfoCfg": {}}}
        live["metadata"]["managedFields"] = [
            {"manager": "device-plugin", "time": "2026-11-30T12:00:00Z", "fieldsV1": fields}
        ]
        api.put_object(live)
        api.put_object(written("A1", shadow=True))
        assert self.diff(api, tmp_path) == 0
        first = capsys.readouterr().out.splitlines()[0]
        assert first.endswith("mindx-dl-deviceinfo-worker-1, last written by device-plugin at 2026-11-30 12:00:00 UTC")

    def test_one_that_is_missing_is_a_difference_and_two_are_nothing(
        self, api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.diff(api, tmp_path) == 2
        assert "has neither a live object nor a shadow in kube-system" in capsys.readouterr().out
        api.put_object(written("A1", shadow=True))
        assert self.diff(api, tmp_path) == 1
        assert "theirs  no object" in capsys.readouterr().out

    def test_a_refusal_is_no_answer(self, api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        api.script.append(Answer(status=403, message="forbidden"))
        assert self.diff(api, tmp_path) == 2
        assert f"the verb get on configmaps in the namespace {NAMESPACE}" in capsys.readouterr().err

    def test_a_node_must_be_named(
        self, api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("NODE_NAME", raising=False)
        assert main(["shadow", "diff", "--kubeconfig", api.kubeconfig(tmp_path)]) == 2
        assert "node name" in capsys.readouterr().err


def said(**changes: Any) -> dict[str, Any]:
    day = {"compared_ms": 3_600_000, "agreed_ms": 3_599_999, "longest": "unhealthy x", "longest_ms": 7_500_000}
    return {
        "mode": "shadow",
        "problem": "",
        "theirs": {"name": "theirs", "writer": "", "written_at_ms": 0},
        "ours": {"name": "ours", "writer": "", "written_at_ms": 0},
        "differences": [],
        "volatile": [{**DIFFERENT, "field": "Description"}],
        "left_out": 0,
        "settle_s": 10.0,
        "day": day,
        **changes,
    }


class TestDaemon:
    @pytest.mark.parametrize(
        ("answer", "code", "words"),
        [
            (said(), 0, ["Both say the same.", "means nothing: Description", "the same for 99.99 %", "2 h 5 min"]),
            (said(differences=[{**DIFFERENT, "age_s": 12, "settled": True}]), 1, ["12 s", "without a known cause: 1"]),
            (said(differences=[{**DIFFERENT, "age_s": 3, "settled": False}]), 0, ["1 more may settle within 10 s"]),
            (said(problem="no answer"), 2, ["could not tell: no answer"]),
            ({"mode": "off", "problem": "not in shadow mode"}, 2, ["could not tell: not in shadow mode"]),
        ],
        ids=["same", "different", "young", "unknown", "live"],
    )
    def test_what_it_says(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: Any, code: int, words: list[str]
    ) -> None:
        daemon = Played(tmp_path / "socket", lambda _: answer)
        try:
            flag = ["--set", f"daemon.socket={daemon.path}"]
            assert main(["shadow", "diff", *flag]) == code
            out = capsys.readouterr().out
            assert all(word in out for word in words), out
            assert main(["shadow", "diff", *flag, "--output", "json"]) == code
            assert json.loads(capsys.readouterr().out)["same"] is {0: True, 1: False, 2: None}[code]
            assert daemon.questions == [{"ask": "shadow"}] * 2
        finally:
            daemon.close()

    def test_nobody_answers(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["shadow", "diff", "--set", f"daemon.socket={tmp_path}/none"]) == 2
        assert "no daemon answers" in capsys.readouterr().err


def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["shadow", "diff", "--help"])
    out = capsys.readouterr().out
    assert "examples:" in out
    assert "exit codes: 0 both say the same, 1 they differ, 2 could not tell" in out
