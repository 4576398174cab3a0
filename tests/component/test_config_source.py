"""The configuration source on real folders and on a server that speaks the ConfigMap protocol."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kit.fake_api import Answer, FakeApi
from kit.target import kubernetes_target

from nodeagent.core.errors import ReadBackError
from nodeagent.core.levels import Level
from nodeagent.core.switch_codes import SwitchLevel
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.policy.configuration import build_configuration
from nodeagent.policy.rules import Configuration
from nodeagent.publish.directory import DirectoryTarget
from nodeagent.sources import config_watch
from nodeagent.sources.config_documents import read_folder, shipped
from nodeagent.sources.configuration import ConfigPlaces, ConfigSource, ObjectReader

CODE = 0x80E01801
NAMESPACE, NAME = "kube-system", "mindx-dl-fault-config"


class Bench:
    """A source, driven by hand or in a thread, and what it told."""

    def __init__(self, places: ConfigPlaces, reader: ObjectReader | None = None, look_period_s: float = 0.1) -> None:
        self.taken: list[Configuration] = []
        self.events: list[Event] = []
        self.metrics = Registry()
        base = shipped()
        site = [(str(places.site_file), places.site_file.read_text())] if places.site_file else []
        self.first, _ = build_configuration(base, site)
        self.source = ConfigSource(
            base, self.first, site, places, reader, self.taken.append, self, self.metrics, look_period_s
        )

    def emit(self, event: Event) -> None:
        self.events.append(event)

    @property
    def level(self) -> Level:
        return (self.taken[-1] if self.taken else self.first).table.level_of(CODE, None).level

    def look(self) -> Level:
        """One pass with the ConfigMap due; the level of the code afterwards."""
        self.source.hasten()
        self.source.look()
        return self.level

    def rejected(self, what: str = "configuration") -> float:
        return self.metrics.value("configuration_rejected_total", what=what)


def levels_json(level: str) -> str:
    return json.dumps({f"{level}Codes": [f"{CODE:X}"]})


def config_map(data: dict[str, Any] | None, **parts: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": NAMESPACE, "name": NAME}}
    return obj | ({"data": data} if data is not None else {}) | parts


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.01)


@contextmanager
def running(bench: Bench) -> Iterator[None]:
    thread = threading.Thread(target=bench.source.run)
    thread.start()
    try:
        assert bench.source.wait_first(10)
        yield
    finally:
        bench.source.stop()
        thread.join(10)
        assert not thread.is_alive()


def swap(volume: Path, files: dict[str, str], number: int) -> None:
    """Replace the content of a mounted ConfigMap as the kubelet does: links through `..data`."""
    version = volume / f"..version_{number}"
    version.mkdir(parents=True)
    for name, text in files.items():
        (version / name).write_text(text)
    link = volume / "..data_tmp"
    link.symlink_to(version.name)
    link.rename(volume / "..data")
    for name in files:
        if not (volume / name).is_symlink():
            (volume / name).symlink_to(f"..data/{name}")
    for stale in volume.iterdir():
        if stale.is_symlink() and stale.name != "..data" and stale.name not in files:
            stale.unlink()
    old = volume / f"..version_{number - 1}"
    if old.exists():
        for each in old.iterdir():
            each.unlink()
        old.rmdir()


# -- files ----------------------------------------------------------------------


def test_a_folder_is_followed_file_by_file(tmp_path: Path) -> None:
    bench = Bench(ConfigPlaces(folder=tmp_path))
    assert bench.look() is Level.RESTART_BUSINESS
    assert bench.taken == []
    (tmp_path / "faultCode.json").write_text(levels_json("RestartNPU"))
    assert bench.look() is Level.RESTART_NPU
    (tmp_path / "nodeagent.yaml").write_text(f'faults: [{{code: "{CODE:X}", level: SeparateNPU}}]\n')
    assert bench.look() is Level.SEPARATE
    (tmp_path / "faultCustomization.json").write_text("{}")
    bench.look()
    assert bench.taken[-1].rules.duration == {}
    assert len(bench.taken) == 3
    for name in ("nodeagent.yaml", "faultCode.json", "faultCustomization.json"):
        (tmp_path / name).unlink()
    assert bench.look() is Level.RESTART_BUSINESS
    assert bench.taken[-1].version == bench.first.version
    assert bench.taken[-1].rules == bench.first.rules
    assert bench.events == []
    present = [
        version
        for version in {c.version for c in bench.taken}
        if bench.metrics.value("configuration_version_info", version=version)
    ]
    assert present == [bench.first.version]


def test_same_content_again_is_no_news(tmp_path: Path) -> None:
    bench = Bench(ConfigPlaces(folder=tmp_path))
    for _ in range(3):
        (tmp_path / "new").write_text(levels_json("RestartNPU"))
        (tmp_path / "new").rename(tmp_path / "faultCode.json")
        bench.look()
    assert len(bench.taken) == 1


BAD = ["", " \n", "{", "null", '{"SeparateNPUCodes": 5}']


@pytest.mark.parametrize("text", BAD)
def test_bad_content_leaves_the_last_good_and_is_told_once(tmp_path: Path, text: str) -> None:
    bench = Bench(ConfigPlaces(folder=tmp_path))
    path = tmp_path / "faultCode.json"
    path.write_text(levels_json("RestartNPU"))
    bench.look()
    path.write_text(text)
    for _ in range(3):
        assert bench.look() is Level.RESTART_NPU
    (event,) = bench.events
    assert (event.reason, event.warning) == (EventReason.BAD_CONFIGURATION, True)
    assert f"{path}:1" in event.message
    assert (bench.rejected(), bench.metrics.value("configuration_stale")) == (1, 1)
    path.write_text(text + "[")
    bench.look()
    assert len(bench.events) == 2, "another bad version"
    path.write_text(levels_json("RestartNPU"))
    assert bench.look() is Level.RESTART_NPU
    assert (len(bench.taken), bench.metrics.value("configuration_stale")) == (1, 0)
    path.write_text(text)
    bench.look()
    assert len(bench.events) == 3, "the same bad content after a good one"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    bench = Bench(ConfigPlaces(folder=tmp_path))
    for number, content in enumerate((b'{"a": "\n\xff"}', b'{"a": "\n\xfe"}'), 1):
        (tmp_path / "faultCode.json").write_bytes(content)
        assert bench.look() is Level.RESTART_BUSINESS
        assert len(bench.events) == number
    assert "faultCode.json:2: this is not UTF-8 text" in bench.events[0].message


def test_a_byte_order_mark_and_900_kilobytes(tmp_path: Path) -> None:
    bench = Bench(ConfigPlaces(folder=tmp_path))
    codes = [f"{0x81000000 + n:X}" for n in range(70_000)] + [f"{CODE:X}"]
    (tmp_path / "faultCode.json").write_text("\ufeff" + json.dumps({"SeparateNPUCodes": codes}), encoding="utf-8")
    assert bench.look() is Level.SEPARATE


def test_a_folder_that_is_none_or_holds_one(tmp_path: Path) -> None:
    path = tmp_path / "config"
    bench = Bench(ConfigPlaces(folder=path))
    bench.look()
    assert bench.events == []
    path.write_text("x")
    bench.look()
    assert "this is no folder" in bench.events[0].message
    path.unlink()
    path.mkdir()
    (path / "faultCode.json").mkdir()
    bench.look()
    assert "this is no regular file" in bench.events[1].message
    (path / "faultCode.json").rmdir()
    os.mkfifo(path / "faultCode.json")
    bench.look()
    (path / "faultCode.json").unlink()
    (path / "faultCode.json").write_text(levels_json("RestartNPU"))
    assert bench.look() is Level.RESTART_NPU
    (path / "faultCode.json").unlink()
    path.rmdir()
    assert bench.look() is Level.RESTART_BUSINESS


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_keeps_what_it_said(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "faultCode.json").write_text(levels_json("RestartNPU"))
    bench = Bench(ConfigPlaces(folder=folder))
    bench.look()
    folder.chmod(0)
    try:
        assert bench.look() is Level.RESTART_NPU
    finally:
        folder.chmod(0o700)
    assert bench.events == []


def test_a_link_that_leads_nowhere_keeps_what_was_said(tmp_path: Path) -> None:
    bench = Bench(ConfigPlaces(folder=tmp_path))
    (tmp_path / "faultCode.json").write_text(levels_json("RestartNPU"))
    bench.look()
    (tmp_path / "faultCode.json").unlink()
    (tmp_path / "faultCode.json").symlink_to("nowhere")
    assert bench.look() is Level.RESTART_NPU
    with pytest.raises(ReadBackError):
        read_folder(tmp_path)


def test_a_misspelled_name_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "faultcode.json").write_text("{}")
    found = read_folder(tmp_path)
    assert found is not None
    assert [str(each) for each in found.problems] == [
        f"{tmp_path}: file 'faultcode.json' is not read; did you mean 'faultCode.json'?"
    ]


def test_the_site_file_is_followed(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(f'faults: [{{code: "{CODE:X}", level: SubHealthFault}}]\n')
    bench = Bench(ConfigPlaces(site_file=site))
    assert bench.look() is Level.SUB_HEALTH
    assert bench.taken == []
    site.write_text(f'faults: [{{code: "{CODE:X}", level: SeparateNPU}}]\n')
    assert bench.look() is Level.SEPARATE
    site.write_bytes(b"faults: \xff\n")
    assert bench.look() is Level.SEPARATE
    assert len(bench.events) == 1
    site.unlink()
    assert bench.look() is Level.SEPARATE
    assert len(bench.events) == 1


def test_a_dropped_group_is_told_and_the_rest_is_in_force(tmp_path: Path) -> None:
    bench = Bench(ConfigPlaces(folder=tmp_path))
    text = '{"FaultDuration": [{"EventId": []}, {"EventId": ["80E18005"], "FaultHandling": "SeparateNPU"}]}'
    (tmp_path / "faultCustomization.json").write_text(text)
    for _ in range(2):
        bench.look()
    assert list(bench.taken[-1].rules.duration) == [0x80E18005]
    assert (len(bench.events), bench.rejected("group"), bench.rejected()) == (1, 1, 0)


@pytest.mark.parametrize("notices", [True, False])
def test_a_mounted_config_map_that_is_swapped(
    tmp_path: Path, notices: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if notices:
        pytest.importorskip("watchdog")
    else:
        monkeypatch.setitem(sys.modules, "watchdog.observers", None)
    volume = tmp_path / "config"
    swap(volume, {"faultCode.json": levels_json("RestartNPU")}, 1)
    bench = Bench(ConfigPlaces(folder=volume), look_period_s=60 if notices else 0.05)
    with caplog.at_level("INFO"), running(bench):
        assert bench.level is Level.RESTART_NPU
        for number, level in enumerate(("SeparateNPU", "SubHealthFault", "RestartRequest"), 2):
            swap(volume, {"faultCode.json": levels_json(level), "PollInterval": "60"}, number)
            until(lambda level=level: bench.level.text == level)
        swap(volume, {"faultCode.json": "{"}, 5)
        until(lambda: len(bench.events) == 1)
        assert bench.level is Level.RESTART_REQUEST
        swap(volume, {}, 6)
        until(lambda: bench.level is Level.RESTART_BUSINESS)
    assert len(bench.events) == 1
    assert ("watchdog is not installed" in caplog.text) is not notices


def test_without_notices_from_the_kernel_it_says_so_and_polls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Lesson 68."""
    observers = pytest.importorskip("watchdog.observers")

    def refused(*_: object, **__: object) -> None:
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr(observers.Observer, "start", refused)
    bench = Bench(ConfigPlaces(folder=tmp_path), look_period_s=0.05)
    with running(bench):
        (tmp_path / "faultCode.json").write_text(levels_json("RestartNPU"))
        until(lambda: bench.level is Level.RESTART_NPU)
    assert "inotify instance limit reached" in caplog.text


def test_reading_wakes_nobody() -> None:
    woken: list[int] = []
    watch = config_watch.FolderWatch(lambda: woken.append(1))
    for kind in ("opened", "closed_no_write", "modified", "moved"):
        watch.dispatch(type("Notice", (), {"event_type": kind}))
    assert len(woken) == 2
    watch.stop()


# -- the ConfigMap ------------------------------------------------------------------


@pytest.fixture
def bench(api: FakeApi, tmp_path: Path) -> Bench:
    target = kubernetes_target(api.kubeconfig(tmp_path))
    return Bench(ConfigPlaces(config_map=(NAMESPACE, NAME)), target)


def test_the_config_map_is_followed(bench: Bench, api: FakeApi) -> None:
    assert bench.look() is Level.RESTART_BUSINESS
    assert bench.taken == []
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
    assert bench.look() is Level.RESTART_NPU
    switches = '{"SubHealthFaultCodes": ["[0x08520003,na,npu,na]"]}'
    api.put_object(config_map({"faultCode.json": levels_json("SeparateNPU"), "SwitchFaultCode.json": switches}))
    assert bench.look() is Level.SEPARATE
    assert bench.taken[-1].layers[-1] == f"{NAMESPACE}/{NAME}/SwitchFaultCode.json"
    assert bench.taken[-1].switches.levels() == {"[0x08520003,na,npu,na]": SwitchLevel.SUB_HEALTH}
    assert api.methods == ["GET"] * 3
    assert bench.events == []


def test_a_bad_document_of_switches_leaves_all_in_force(bench: Bench, api: FakeApi) -> None:
    """Decision 12, where upstream falls back to its built-in file."""
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU"), "SwitchFaultCode.json": "{}"}))
    assert bench.look() is Level.RESTART_NPU
    api.put_object(config_map({"faultCode.json": levels_json("SeparateNPU"), "SwitchFaultCode.json": "{"}))
    assert bench.look() is Level.RESTART_NPU
    assert len(bench.taken) == 1
    assert bench.rejected() == 1
    assert "SwitchFaultCode.json:1: column 2" in bench.events[-1].message


def test_deleted_and_recreated(bench: Bench, api: FakeApi) -> None:
    """Only a sure 404 returns to what lies below (lesson 70)."""
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
    bench.look()
    with api.lock:
        api.objects.clear()
    assert bench.look() is Level.RESTART_BUSINESS
    assert bench.taken[-1].version == bench.first.version
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
    assert bench.look() is Level.RESTART_NPU
    assert bench.taken[-1].version == bench.taken[0].version
    assert bench.events == []


@pytest.mark.parametrize(
    "answer", [Answer(500, "no"), Answer(403, "no"), Answer(), Answer(apply=True, half=True), Answer(429, "slow")]
)
def test_any_other_answer_keeps_what_is_in_force(bench: Bench, api: FakeApi, answer: Answer) -> None:
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
    bench.look()
    with api.lock:
        api.objects.clear()
        api.script.append(answer)
    if answer.half:
        api.put_object(config_map({}))
    assert bench.look() is Level.RESTART_NPU
    assert (bench.events, len(bench.taken)) == ([], 1)


def test_unreadable_at_the_start_means_shipped_and_site(bench: Bench, api: FakeApi, tmp_path: Path) -> None:
    """R18."""
    api.script.append(Answer(500, "no"))
    assert bench.look() is Level.RESTART_BUSINESS
    assert bench.first.rules.duration
    assert bench.source.wait_first(0)
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
    assert bench.look() is Level.RESTART_NPU


@pytest.mark.parametrize("obj", [config_map(None), config_map({}), config_map(None) | {"data": None}])
def test_an_emptied_config_map_leaves_what_lies_below(bench: Bench, api: FakeApi, obj: dict[str, Any]) -> None:
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU"), "faultCustomization.json": "{}"}))
    bench.look()
    api.put_object(obj)
    assert bench.look() is Level.RESTART_BUSINESS
    assert bench.taken[-1].rules == bench.first.rules
    assert bench.events == []


@pytest.mark.parametrize(
    "data",
    [{"faultCode.json": ""}, {"faultCode.json": 5}, {"faultCode.json": None}, ["x"], "x", {"nodeagent.yaml": " "}],
)
def test_a_config_map_with_bad_content(bench: Bench, api: FakeApi, data: Any) -> None:
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
    bench.look()
    api.put_object(config_map(data))
    for _ in range(3):
        assert bench.look() is Level.RESTART_NPU
    assert (len(bench.events), bench.rejected()) == (1, 1)
    assert f"{NAMESPACE}/{NAME}" in bench.events[0].message


def test_binary_data_is_not_read(bench: Bench, api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    good = {"faultCode.json": levels_json("RestartNPU")}
    api.put_object(config_map(good, binaryData={"x": "AA==", "faultCode.json": "AA=="}))
    assert bench.look() is Level.RESTART_NPU
    assert bench.events == []
    assert "stands in binaryData, which is not read" in caplog.text


def test_a_document_that_became_binary_is_bad_content(bench: Bench, api: FakeApi) -> None:
    """kubectl puts a file there when it is not UTF-8: it is present, and it is bad."""
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
    bench.look()
    api.put_object(config_map(None, binaryData={"faultCode.json": "/w=="}))
    assert bench.look() is Level.RESTART_NPU
    assert len(bench.events) == 1


def test_a_misspelled_key_is_a_warning(bench: Bench, api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    api.put_object(config_map({"faultcode.json": levels_json("RestartNPU")}))
    assert bench.look() is Level.RESTART_BUSINESS
    assert "did you mean 'faultCode.json'?" in caplog.text


def test_the_poll_interval_of_the_config_map(bench: Bench, api: FakeApi) -> None:
    api.put_object(config_map({"PollInterval": "30"}))
    bench.look()
    bench.source.look()
    assert api.methods == ["GET"]
    pause_s = bench.source._pause_s()
    assert pause_s is not None
    assert 25 < pause_s <= 30
    assert bench.taken == []


def test_config_map_over_folder_over_site(api: FakeApi, tmp_path: Path) -> None:
    site, folder = tmp_path / "site.yaml", tmp_path / "config"
    folder.mkdir()
    site.write_text(f'faults: [{{code: "{CODE:X}", level: SubHealthFault}}]\n')
    (folder / "faultCode.json").write_text(levels_json("RestartRequest"))
    target = kubernetes_target(api.kubeconfig(tmp_path))
    bench = Bench(ConfigPlaces(site, folder, (NAMESPACE, NAME)), target)
    assert bench.level is Level.SUB_HEALTH
    assert bench.look() is Level.RESTART_REQUEST
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
    assert bench.look() is Level.RESTART_NPU
    api.script.append(Answer(500, "no"))
    (folder / "faultCustomization.json").write_text("{}")
    assert bench.look() is Level.RESTART_NPU
    assert bench.taken[-1].rules.duration == {}, "a change of a file counts while the API server is away"


def test_good_layers_count_at_the_start_beside_a_bad_one(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "faultCode.json").write_text(levels_json("RestartRequest"))
    api.put_object(config_map({"faultCode.json": "{"}))
    target = kubernetes_target(api.kubeconfig(tmp_path))
    bench = Bench(ConfigPlaces(None, tmp_path / "config", (NAMESPACE, NAME)), target)
    assert bench.look() is Level.RESTART_REQUEST
    assert (len(bench.events), bench.metrics.value("configuration_stale")) == (1, 1)
    api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
    assert bench.look() is Level.RESTART_NPU
    (tmp_path / "config" / "faultCode.json").write_text(levels_json("SubHealthFault"))
    api.put_object(config_map({"faultCode.json": "{"}))
    assert bench.look() is Level.RESTART_NPU, "the last good configuration stays as a whole"


def test_the_directory_target_holds_the_config_map_too(tmp_path: Path) -> None:
    target = DirectoryTarget(tmp_path)
    bench = Bench(ConfigPlaces(config_map=(NAMESPACE, NAME)), target)
    assert bench.look() is Level.RESTART_BUSINESS
    target.write(config_map({"faultCode.json": levels_json("RestartNPU")}))
    assert bench.look() is Level.RESTART_NPU
    path = tmp_path / NAMESPACE / f"{NAME}.yaml"
    path.write_text("a: [")
    assert bench.look() is Level.RESTART_NPU
    assert len(bench.events) == 1
    path.unlink()
    assert bench.look() is Level.RESTART_BUSINESS


def test_the_loop_reads_at_once_when_hastened_and_stops(bench: Bench, api: FakeApi) -> None:
    with running(bench):
        api.put_object(config_map({"faultCode.json": levels_json("RestartNPU")}))
        bench.source.hasten()
        until(lambda: bench.level is Level.RESTART_NPU)


def test_a_failed_read_is_a_look_but_no_knowledge() -> None:
    """Reasons from before a restart wait for it, or the rules below the ConfigMap would end them."""

    class Reader:
        found: dict[str, Any] | None = None

        def read(self, namespace: str, name: str) -> dict[str, object] | None:
            if self.found is None:
                raise ReadBackError("no answer")
            return self.found

    reader = Reader()
    bench = Bench(ConfigPlaces(None, None, (NAMESPACE, NAME)), reader)
    bench.look()
    assert bench.source.wait_first(0)
    assert not bench.source.wait_known(0)
    reader.found = config_map({"faultCode.json": levels_json("SeparateNPU")})
    bench.look()
    assert bench.source.wait_known(0)
    assert bench.level is Level.SEPARATE
