"""Shadow mode's comparison against a server that speaks the protocol, and its file."""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contract.data.device_info.cases import VIEWS
from kit.daemon import wait_until
from kit.fake_api import Answer, FakeApi

from nodeagent.core.settings import DaemonSettings, NodeSettings, PublishSettings, Settings, ShadowSettings
from nodeagent.daemon.cluster import Cluster
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.shadow import FILE_NAME, shadow_answer, shadow_watch
from nodeagent.render.device_info import NAMESPACE, config_map, object_name, render_device_info

NODE = "worker-1"
LIVE = (NAMESPACE, object_name(NODE))
SHADOW = (NAMESPACE, object_name(NODE, shadow=True))


def written(case: str, shadow: bool = False) -> dict[str, Any]:
    return config_map(NODE, render_device_info(VIEWS[case](), 1760000000), shadow)


class House:
    """The parts of a daemon that shadow mode needs: a cluster with its watches, and the comparison."""

    def __init__(self, api: FakeApi, folder: Path, **shadow: Any) -> None:
        self.metrics = Registry()
        self.settings = Settings(
            node=NodeSettings(NODE),
            publish=PublishSettings(mode="shadow"),
            shadow=ShadowSettings(**{"settle_s": 0.1, **shadow}),
            daemon=DaemonSettings(state_dir=str(folder / "state")),
        )
        self.cluster = Cluster(api.kubeconfig(folder), self.metrics)
        watch = shadow_watch(self.settings, self.cluster, self.metrics)
        assert watch is not None
        self.watch = watch
        self.cluster.follow_own(SHADOW, lambda: None)

    @contextmanager
    def running(self) -> Iterator["House"]:
        loops = self.cluster.loops()
        threads = [threading.Thread(target=loop.run) for loop in loops]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            for loop in loops:
                loop.stop()
            for thread in threads:
                thread.join(10)

    def number(self, kind: str) -> float:
        return self.metrics.value("shadow_differences", kind=kind)

    def wait(self, kind: str, number: int) -> None:
        wait_until(lambda: self.number(kind) == number, f"{number} differences of kind {kind}")

    @property
    def comparable(self) -> bool:
        return self.metrics.value("shadow_comparable") == 1

    def answer(self) -> dict[str, Any]:
        return json.loads(json.dumps(self.watch.answer({})))


def test_differences_come_and_go_with_either_side(
    api: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nodeagent.shadow")
    api.put_object(written("A1"))
    api.put_object(written("A1", shadow=True))
    with House(api, tmp_path).running() as house:
        wait_until(lambda: house.comparable)
        assert house.answer()["differences"] == []
        api.put_object(written("A2"))
        house.wait("fault_missing", 1)
        assert (house.number("unhealthy"), house.number("available")) == (1, 1)
        (fault,) = [each for each in house.answer()["differences"] if each["kind"] == "fault_missing"]
        assert (fault["field"], fault["theirs"], fault["ours"]) == ("Ascend910-3 80E18005", "RestartNPU", "-")
        assert fault["settled"]
        api.put_object(written("A2", shadow=True))
        house.wait("fault_missing", 0)
        assert house.metrics.value("shadow_difference_seconds_total", kind="fault_missing") > 0
    new = [record for record in caplog.records if "shadow differs kind=fault_missing" in record.getMessage()]
    assert [record.levelname for record in new] == ["WARNING"], "no known cause: once, and to be seen"
    assert "shadow differs no more kind=fault_missing" in caplog.text
    assert "shadow differs kind=unhealthy" in caplog.text


def test_what_settles_in_time_is_not_told(api: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nodeagent.shadow")
    api.put_object(written("A1"))
    api.put_object(written("A1", shadow=True))
    with House(api, tmp_path, settle_s=600).running() as house:
        wait_until(lambda: house.comparable)
        api.put_object(written("A2"))
        wait_until(lambda: house.answer()["differences"])
        assert {each["settled"] for each in house.answer()["differences"]} == {False}
        api.put_object(written("A2", shadow=True))
        wait_until(lambda: not house.answer()["differences"])
        assert house.number("fault_missing") == 0
    assert "shadow differs" not in caplog.text


def test_a_side_that_is_not_there_is_a_difference_and_one_that_is_not_known_is_none(
    api: FakeApi, tmp_path: Path
) -> None:
    api.put_object(written("A1", shadow=True))
    api.script.append(Answer(status=403, message="forbidden", method="GET", resource=LIVE[1]))
    with House(api, tmp_path).running() as house:
        wait_until(lambda: "verb list" in house.answer()["problem"], "the missing right is named")
        assert not house.comparable
        assert house.answer()["differences"] == []
        house.wait("object", 1)  # asked again, and surely not there
        api.put_object(written("A1"))
        house.wait("object", 0)
        api.delete_object(LIVE)
        house.wait("object", 1)


def test_the_live_object_costs_one_list_and_one_watch(api: FakeApi, tmp_path: Path) -> None:
    """Decision 26: nothing is read for the comparison besides."""
    api.put_object(written("A1"))
    api.put_object(written("A1", shadow=True))
    with House(api, tmp_path).running() as house:
        wait_until(lambda: api.followed == 2)
        for case in ("A2", "A3", "A4", "A1"):
            api.put_object(written(case))
        wait_until(lambda: house.comparable and not house.answer()["differences"])
        asked = [request for request in api.requests if LIVE[1] in request.path and SHADOW[1] not in request.path]
        assert [(request.method, request.watch) for request in asked] == [("GET", False), ("GET", True)]
        assert house.metrics.value("api_requests_total", object="incumbent", verb="watch", code="200") == 1


def test_the_day_goes_on_after_a_restart(api: FakeApi, tmp_path: Path) -> None:
    api.put_object(written("A2"))
    api.put_object(written("A1", shadow=True))
    with House(api, tmp_path).running() as house:
        house.wait("fault_missing", 1)
    with House(api, tmp_path, settle_s=600).running() as house:
        wait_until(lambda: house.comparable)
        assert house.answer()["day"]["distinct"] == {"available": 1, "fault_missing": 1, "unhealthy": 1}


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 2}', '{"version": 1, "day": {}, "saved_at_ms": 0}', " "])
def test_a_damaged_file_begins_a_new_day(
    api: FakeApi, tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE_NAME).write_text(text)
    with House(api, tmp_path).running() as house:
        wait_until(lambda: house.comparable)
        assert house.answer()["day"]["distinct"] == {}
    assert "shadow book is not usable" in caplog.text
    assert json.loads((tmp_path / "state" / FILE_NAME).read_text())["version"] == 1


def test_without_a_folder_nothing_is_kept(api: FakeApi, tmp_path: Path) -> None:
    house = House(api, tmp_path)
    house.settings = replace(house.settings, daemon=DaemonSettings(state_dir=""))
    watch = shadow_watch(house.settings, house.cluster, house.metrics)
    assert watch is not None
    thread = threading.Thread(target=watch.run)
    thread.start()
    wait_until(lambda: watch.answer({})["day"])
    watch.stop()
    thread.join(10)
    assert list(tmp_path.iterdir()) == [tmp_path / "kubeconfig"]


def test_it_is_off_where_nothing_can_be_compared(api: FakeApi, tmp_path: Path) -> None:
    house = House(api, tmp_path)
    live = replace(house.settings, publish=PublishSettings(mode="live"))
    unwanted = replace(house.settings, shadow=ShadowSettings(compare=False))
    assert shadow_watch(live, house.cluster, house.metrics) is None
    assert shadow_watch(unwanted, house.cluster, house.metrics) is None
    assert shadow_watch(house.settings, None, house.metrics) is None
    assert shadow_answer(None)({})["mode"] == "off"
