"""The publisher's thread: the latest view arrives whatever the target does, and nothing else does (device-info 14)."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from contract.data.device_info.cases import VIEWS, golden
from kit.daemon import wait_until
from kit.fake_api import Answer, fake_api
from kit.target import kubernetes_target

from nodeagent.core.clock import SystemClock
from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level
from nodeagent.core.model import NodeView
from nodeagent.core.observation import CarriedFault
from nodeagent.core.telemetry import Event, EventReason, NullTelemetry
from nodeagent.publish.book import BookParameters
from nodeagent.publish.directory import DirectoryTarget
from nodeagent.publish.manner import Manner
from nodeagent.publish.other_writer import WriterGuard
from nodeagent.publish.publisher import Publisher
from nodeagent.publish.targets import LaterError
from nodeagent.render.device_info import NAMESPACE, config_map, object_name
from nodeagent.render.reading import published_update_time

LIVENESS_S = 20
QUICK = BookParameters(min_distance_ms=20, refresh_ms=10_000_000, retry_base_ms=20, retry_cap_ms=40)
NAME = object_name("worker-1")


class MemoryTarget:
    """Keeps what it takes; raises the planned errors first."""

    def __init__(self) -> None:
        self.present: dict[str, object] | None = None
        self.taken: list[dict[str, Any]] = []
        self.at_ns: list[int] = []
        self.errors: list[Exception] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        if self.errors:
            raise self.errors.pop(0)
        assert (namespace, name) == (NAMESPACE, NAME)
        return self.present

    def write(self, obj: dict[str, Any]) -> None:
        self.at_ns.append(time.monotonic_ns())
        self.entered.set()
        assert self.gate.wait(LIVENESS_S)
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append(obj)
        self.present = obj

    def describe(self) -> str:
        return "memory"

    def delete(self, namespace: str, name: str) -> None:
        raise AssertionError("nobody deletes this object")

    def edited(self, namespace: str, name: str) -> dict[str, object] | None:
        return None

    def edit_period_s(self) -> float | None:
        return None


class Telemetry(NullTelemetry):
    """Remembers Events and metrics."""

    def __init__(self) -> None:
        self.events: list[EventReason] = []
        self.counts: dict[tuple[str, ...], int] = {}
        self.gauges: dict[str, float] = {}
        self.samples: list[float] = []

    def emit(self, event: Event) -> None:
        assert event.message
        self.events.append(event.reason)

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        key = (name, *labels.values())
        self.counts[key] = self.counts.get(key, 0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        self.gauges[name] = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        assert name == "publish_latency_seconds"
        self.samples.append(value)


class House:
    """A publisher with everything around it."""

    def __init__(self, target: Any = None, parameters: BookParameters = QUICK, manner: Manner | None = None) -> None:
        self.target = target or MemoryTarget()
        self.telemetry = Telemetry()
        self.acknowledged: list[int] = []
        self.on_acknowledged: Callable[[int, Instant], None] = lambda _generation, _at: None
        self.changed = threading.Condition()
        self.fields: list[tuple[frozenset[int], int]] = []
        self.publisher = Publisher(
            self.target,
            "worker-1",
            SystemClock(),
            self._acknowledge,
            self._manual_field,
            self.telemetry,
            self.telemetry,
            parameters,
            manner=manner,
        )

    def _manual_field(self, physical_ids: frozenset[int], generation: int) -> None:
        with self.changed:
            self.fields.append((physical_ids, generation))
            self.changed.notify_all()

    def wait_for_field(self) -> tuple[frozenset[int], int]:
        with self.changed:
            assert self.changed.wait_for(lambda: self.fields, LIVENESS_S)
            return self.fields[-1]

    def _acknowledge(self, generation: int, at: Instant) -> None:
        with self.changed:
            self.acknowledged.append(generation)
            self.changed.notify_all()
        self.on_acknowledged(generation, at)

    def wait_for(self, generation: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: generation in self.acknowledged, LIVENESS_S)

    def cases(self) -> list[str]:
        """Worked examples that the written objects are, by their fault lists."""
        return [_case(obj["data"]) for obj in self.target.taken]


def _case(data: dict[str, str]) -> str:
    device_list = data["DeviceInfoCfg"].split(',"UpdateTime"')[0]
    return next(case for case in VIEWS if golden(case)["DeviceInfoCfg"].split(',"UpdateTime"')[0] == device_list)


@pytest.fixture
def house() -> Iterator[House]:
    made = House()
    yield made
    made.target.gate.set()
    assert made.publisher.stop(LIVENESS_S)


def view(case: str, generation: int) -> NodeView:
    return replace(VIEWS[case](), generation=generation)


def broken_view(generation: int) -> NodeView:
    """A view with a contradiction that the self-check must catch: a serious fault on a chip called healthy."""
    good = view("A2", generation)
    chips = [replace(chip, healthy=True) for chip in good.chips]
    return replace(good, chips=tuple(chips))


def update_times(house: House) -> list[int]:
    return [published_update_time(obj["data"]) for obj in house.target.taken]


def test_a_view_reaches_the_target_and_is_acknowledged(house: House) -> None:
    house.publisher.submit(view("A4", 7))
    house.publisher.start()
    house.wait_for(7)
    assert house.cases() == ["A4"]
    assert house.telemetry.counts == {("publish_writes_total", "device_info", "ok"): 1}
    assert len(house.telemetry.samples) == 1
    wait_until(lambda: not house.publisher.status().pending)
    assert house.publisher.status().acknowledged_generation == 7


def test_views_while_a_write_is_under_way_collapse_into_the_last(house: House) -> None:
    house.target.gate.clear()
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    assert house.target.entered.wait(LIVENESS_S)
    for generation, case in enumerate(["A2", "A3", "A4", "A5"], 2):
        house.publisher.submit(view(case, generation))
    house.target.gate.set()
    house.wait_for(5)
    assert house.cases() == ["A1", "A5"]
    assert house.acknowledged == [1, 5]


def test_c4_two_writes_keep_their_distance_and_differ_in_update_time() -> None:
    house = House(parameters=replace(QUICK, min_distance_ms=150))
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    house.wait_for(1)
    house.publisher.submit(view("A2", 2))
    house.wait_for(2)
    house.publisher.submit(view("A3", 3))
    house.wait_for(3)
    gaps_ms = [(later - earlier) / 1e6 for earlier, later in pairwise(house.target.at_ns)]
    assert min(gaps_ms) >= 149
    assert sorted(set(update_times(house))) == update_times(house)
    assert house.publisher.stop(LIVENESS_S)


def test_c3_equal_content_is_acknowledged_without_a_write(house: House) -> None:
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    house.wait_for(1)
    house.publisher.submit(view("A1", 2))
    house.wait_for(2)
    assert house.cases() == ["A1"]
    assert len(house.telemetry.samples) == 1


def test_c2_unchanged_content_is_refreshed() -> None:
    house = House(parameters=replace(QUICK, refresh_ms=60))
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    wait_until(lambda: len(house.target.taken) >= 3)
    assert house.publisher.stop(LIVENESS_S)
    assert set(house.cases()) == {"A1"}
    assert sorted(set(update_times(house))) == update_times(house)
    assert len(house.telemetry.samples) == 1, "a refresh is no event to measure"


def test_c6_failures_are_retried_until_the_latest_content_is_there(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nodeagent")
    house.target.errors = [PublishError(f"trouble {n}", "mend it") for n in range(4)]
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    wait_until(lambda: len(house.target.errors) < 4)
    house.publisher.submit(view("A2", 2))
    house.wait_for(2)
    assert house.cases() == ["A2"]
    assert house.acknowledged == [2], "what was never taken is never acknowledged"
    assert house.telemetry.events == [EventReason.PUBLISH_FAILED, EventReason.PUBLISH_RECOVERED]
    assert house.telemetry.counts["publish_writes_total", "device_info", "failed"] == 4
    assert [record.getMessage().split()[0] for record in caplog.records] == [
        "event=publish_failed",
        "event=publish_recovered",
    ]
    assert "failures=4" in caplog.text


def test_unforeseen_error_of_a_target_does_not_end_the_thread(house: House) -> None:
    house.target.errors = [KeyError("bug"), RuntimeError("bug")]
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    house.wait_for(1)
    assert house.cases() == ["A1"]
    assert house.telemetry.counts["publish_loop_errors_total", "device_info"] == 2


def test_unforeseen_error_of_the_listener_does_not_end_the_thread(house: House) -> None:
    def fail(generation: int, at: Instant) -> None:
        raise KeyError(generation)

    house.on_acknowledged = fail
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    house.wait_for(1)
    house.publisher.submit(view("A2", 2))
    house.wait_for(2)
    assert house.cases() == ["A1", "A2"]


def test_view_that_cannot_be_rendered_does_not_end_the_thread(house: House) -> None:
    house.publisher.start()
    house.publisher.submit(replace(view("A1", 1), chips=None))  # type: ignore[arg-type]
    wait_until(lambda: house.telemetry.counts.get(("publish_loop_errors_total", "device_info"), 0) == 1)
    house.publisher.submit(view("A2", 2))
    house.wait_for(2)
    assert house.cases() == ["A2"]


def test_object_that_breaks_the_contract_is_not_sent_and_the_last_good_one_stays(house: House) -> None:
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    house.wait_for(1)
    house.publisher.submit(broken_view(2))
    wait_until(lambda: house.telemetry.counts.get(("publish_refused_total", "device_info"), 0) == 1)
    house.publisher.submit(broken_view(3))
    wait_until(lambda: house.telemetry.counts["publish_refused_total", "device_info"] == 2)
    assert house.cases() == ["A1"]
    assert house.telemetry.events == [EventReason.CONTRACT_REFUSED], "the same problem is told once"
    wait_until(lambda: "rule 5" in house.publisher.status().problem)
    house.publisher.submit(view("A2", 4))
    house.wait_for(4)
    assert house.cases() == ["A1", "A2"]
    assert house.acknowledged == [1, 4]
    wait_until(lambda: house.publisher.status().problem == "")


def test_key_that_was_published_before_must_not_vanish(house: House) -> None:
    house.publisher.start()
    house.publisher.submit(view("A7", 1))
    house.wait_for(1)
    house.publisher.submit(view("A1", 2))
    wait_until(lambda: house.telemetry.events == [EventReason.CONTRACT_REFUSED])
    assert house.cases() == ["A7"]


def test_c10_reading_back_tells_faults_and_continues_update_time(house: House) -> None:
    ahead_s = int(time.time()) + 5000
    found = dict(golden("A6"))
    house.target.present = config_map("worker-1", found)
    read = house.publisher.read_back()
    assert read.carried.faults == (CarriedFault(1, 0x80E01801, Level.MANUALLY_SEPARATE, 1759999990123),)
    assert (read.update_time_s, read.problem) == (1760000000, "")
    assert read.data is not None
    assert read.data["ManuallySeparateNPU"] == "Ascend910-1"
    found["DeviceInfoCfg"] = found["DeviceInfoCfg"].replace(":1760000000}", f":{ahead_s}}}")
    house.target.present = config_map("worker-1", found)
    assert house.publisher.read_back().update_time_s == ahead_s
    house.publisher.start()
    house.publisher.submit(view("A6", 1))
    house.wait_for(1)
    assert update_times(house)[-1] > ahead_s


def test_nothing_published_before_is_nothing_carried(house: House) -> None:
    read = house.publisher.read_back()
    assert (read.carried.faults, read.update_time_s, read.data, read.problem) == ((), 0, None, "")


def test_target_that_cannot_be_read_is_asked_again(house: House) -> None:
    house.target.errors = [ReadBackError("away")]
    with pytest.raises(ReadBackError):
        house.publisher.read_back()
    assert house.publisher.read_back().data is None


@pytest.mark.parametrize(
    "text", ["", "null", "{}", golden("A1")["DeviceInfoCfg"].replace("Ascend910-7", "Ascend910-9")]
)
def test_c11_bad_object_in_the_cluster_is_written_over_twice(text: str) -> None:
    house = House()
    house.target.present = config_map("worker-1", golden("A1") | {"DeviceInfoCfg": text})
    read = house.publisher.read_back()
    assert read.problem
    assert read.carried.faults == ()
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    house.wait_for(1)
    assert house.cases() == ["A1", "A1"]
    assert (house.target.at_ns[1] - house.target.at_ns[0]) / 1e9 > 1
    assert update_times(house)[1] > update_times(house)[0]
    assert house.publisher.stop(LIVENESS_S)


def test_c12_stop_writes_nothing_more(house: House) -> None:
    house.target.gate.clear()
    house.publisher.start()
    house.publisher.submit(view("A1", 1))
    assert house.target.entered.wait(LIVENESS_S)
    house.publisher.submit(view("A2", 2))
    assert not house.publisher.stop(0.01), "a target that hangs is told"
    house.target.gate.set()
    assert house.publisher.stop(LIVENESS_S)
    assert house.cases() == ["A1"]


def test_stop_before_start_and_without_work() -> None:
    assert House().publisher.stop(0)
    house = House()
    house.publisher.start()
    assert house.publisher.stop(LIVENESS_S)
    assert house.target.taken == []


def test_final_content_of_a_storm_from_many_threads_is_written() -> None:
    house = House()
    house.publisher.start()
    lock, generation = threading.Lock(), 0

    def storm() -> None:
        nonlocal generation
        for case in ["A1", "A2", "A3", "A4"] * 25:
            with lock:
                generation += 1
                house.publisher.submit(view(case, generation))

    threads = [threading.Thread(target=storm) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    house.publisher.submit(view("A14", 1000))
    house.wait_for(1000)
    assert house.publisher.stop(LIVENESS_S)
    assert house.cases()[-1] == "A14"
    assert house.acknowledged == sorted(house.acknowledged)


def test_from_view_to_file_and_back_after_a_restart(tmp_path: Path) -> None:
    first = House(DirectoryTarget(tmp_path))
    first.publisher.start()
    first.publisher.submit(view("A4", 1))
    first.wait_for(1)
    assert first.publisher.stop(LIVENESS_S)
    read = House(DirectoryTarget(tmp_path)).publisher.read_back()
    assert {fault.code for fault in read.carried.faults} == {0x81078603, 0x80C98008, 0x8C204E00}


def test_from_view_to_server_through_an_outage(tmp_path: Path) -> None:
    with fake_api() as api:
        target = kubernetes_target(api.kubeconfig(tmp_path))
        house = House(target)
        house.publisher.start()
        api.script.extend([Answer(500), Answer(0), Answer(503), Answer(200, half=True)])
        house.publisher.submit(view("A1", 1))
        house.publisher.submit(view("A4", 2))
        house.wait_for(2)
        assert house.publisher.stop(LIVENESS_S)
        assert _case(api.objects[NAMESPACE, NAME]["data"]) == "A4"
        assert house.telemetry.events == [EventReason.PUBLISH_FAILED, EventReason.PUBLISH_RECOVERED]


def _edit(path: Path, field: str) -> None:
    """What an operator does with an editor: a new file in place of the old one."""
    obj = yaml.safe_load(path.read_text())
    obj["data"]["ManuallySeparateNPU"] = field
    temporary = path.with_suffix(".edit")
    temporary.write_text(yaml.safe_dump(obj))
    temporary.replace(path)


def test_an_edit_of_the_file_is_seen_without_a_write_and_then_overwritten(tmp_path: Path) -> None:
    """Decision 19: lifting without a cluster."""
    house = House(DirectoryTarget(tmp_path))
    house.publisher.start()
    house.publisher.submit(view("A6", 7))
    house.wait_for(7)
    file = tmp_path / NAMESPACE / f"{NAME}.yaml"
    written = file.read_text()
    _edit(file, "")
    assert house.wait_for_field() == (frozenset(), 7)
    with house.changed:  # nobody lifted anything here, so the same content comes back
        house.changed.wait_for(lambda: yaml.safe_load(file.read_text())["data"]["ManuallySeparateNPU"], LIVENESS_S)
    house.publisher.stop(LIVENESS_S)
    assert yaml.safe_load(file.read_text())["data"]["ManuallySeparateNPU"] == "Ascend910-1"
    assert written != file.read_text()


def test_an_edit_just_before_a_write_is_read_first(tmp_path: Path) -> None:
    target = DirectoryTarget(tmp_path)
    house = House(target)
    house.publisher.start()
    house.publisher.submit(view("A6", 7))
    house.wait_for(7)
    _edit(tmp_path / NAMESPACE / f"{NAME}.yaml", "")
    house.publisher.submit(view("A1", 8))
    assert house.wait_for_field() == (frozenset(), 7)
    house.wait_for(8)
    house.publisher.stop(LIVENESS_S)


def test_an_edit_in_the_cluster_is_read_before_it_is_overwritten(tmp_path: Path) -> None:
    """Device-info 8: the operator's edit between our read and our write is not lost."""
    with fake_api() as api:
        house = House(kubernetes_target(api.kubeconfig(tmp_path)))
        house.publisher.start()
        house.publisher.submit(view("A6", 7))
        house.wait_for(7)
        obj = {"metadata": {"namespace": NAMESPACE, "name": NAME}, "data": {"ManuallySeparateNPU": ""}}
        api.put_object(obj)
        house.publisher.submit(view("A1", 8))
        assert house.wait_for_field() == (frozenset(), 7)
        house.wait_for(8)
        house.publisher.stop(LIVENESS_S)
        assert EventReason.PUBLISH_FAILED not in house.telemetry.events


# -- other writers and shadows (decision 22) -----------------------------------------------------------------------


def plugin_object(at: str) -> dict[str, Any]:
    """Our object as the device plugin wrote it last."""
    obj: dict[str, Any] = config_map("worker-1", golden("A2"))
    by = {"manager": "device-plugin", "operation": "Update", "time": at}
    obj["metadata"]["managedFields"] = [{**by, "fieldsV1": {"f:data": {"f:DeviceInfoCfg": {}}}}]
    return obj


def now_text() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def test_nothing_is_written_while_the_device_plugin_writes(tmp_path: Path) -> None:
    with fake_api() as api:
        api.put_object(plugin_object(now_text()))
        target = kubernetes_target(api.kubeconfig(tmp_path))
        house = House(target, manner=Manner(guard=WriterGuard(overwrite=False)))
        assert house.publisher.read_back().update_time_s
        house.publisher.start()
        house.publisher.submit(view("A1", 7))
        wait_until(lambda: house.publisher.status().waits_for == "device-plugin")
        assert house.telemetry.events.count(EventReason.OTHER_WRITER) == 1
        assert house.telemetry.gauges["publish_other_writer"] == 1
        assert api.methods == ["GET"]
        # The other one is removed, and somebody takes its field over: nothing stands in the way any more.
        obj = api.objects[NAMESPACE, NAME]
        quiet = {
            **obj,
            "metadata": {
                **obj["metadata"],
                "managedFields": plugin_object("2020-01-01T00:00:00Z")["metadata"]["managedFields"],
            },
        }
        api.put_object(quiet)
        target.heard(NAMESPACE, NAME, api.objects[NAMESPACE, NAME])
        house.publisher.look()
        house.wait_for(7)
        assert house.publisher.status().waits_for == ""
        assert house.telemetry.gauges["publish_other_writer"] == 0
        assert house.publisher.stop(LIVENESS_S)


@pytest.mark.parametrize(
    ("guard", "obj"),
    [
        (WriterGuard(overwrite=True), plugin_object(now_text())),
        (WriterGuard(overwrite=False), plugin_object("2020-01-01T00:00:00Z")),
    ],
    ids=["overwrite", "gone"],
)
def test_a_site_may_overwrite_and_a_writer_that_has_gone_is_none(
    tmp_path: Path, guard: WriterGuard, obj: dict[str, Any]
) -> None:
    with fake_api() as api:
        api.put_object(obj)
        house = House(kubernetes_target(api.kubeconfig(tmp_path)), manner=Manner(guard=guard))
        house.publisher.read_back()
        house.publisher.start()
        house.publisher.submit(view("A1", 7))
        house.wait_for(7)
        assert house.publisher.stop(LIVENESS_S)


def test_another_writer_that_comes_later_is_told_and_overwritten(tmp_path: Path) -> None:
    with fake_api() as api:
        target = kubernetes_target(api.kubeconfig(tmp_path))
        house = House(target, manner=Manner(guard=WriterGuard(overwrite=False)))
        house.publisher.start()
        house.publisher.submit(view("A1", 7))
        house.wait_for(7)
        api.put_object(plugin_object(now_text()))
        target.heard(NAMESPACE, NAME, api.objects[NAMESPACE, NAME])
        house.publisher.look()
        wait_until(lambda: _case(api.objects[NAMESPACE, NAME]["data"]) == "A1")
        wait_until(lambda: house.telemetry.events == [EventReason.OTHER_WRITER])
        assert house.publisher.stop(LIVENESS_S)


def test_a_shadow_goes_to_a_name_of_its_own_without_the_label(tmp_path: Path) -> None:
    with fake_api() as api:
        api.put_object(plugin_object(now_text()))
        before = api.objects[NAMESPACE, NAME]
        house = House(kubernetes_target(api.kubeconfig(tmp_path)), manner=Manner(shadow=True))
        assert house.publisher.read_back().data is None
        house.publisher.start()
        house.publisher.submit(view("A4", 7))
        house.wait_for(7)
        assert house.publisher.stop(LIVENESS_S)
        shadow = api.objects[NAMESPACE, f"{NAME}-shadow"]
        assert shadow["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "nodeagent"}
        assert _case(shadow["data"]) == "A4"
        assert api.objects[NAMESPACE, NAME] == before


def test_what_somebody_put_on_the_object_is_named_before_it_goes(tmp_path: Path) -> None:
    with fake_api() as api:
        obj = config_map("worker-1", golden("A1"))
        obj["metadata"]["labels"]["team"] = "a"  # type: ignore[index]
        api.put_object(obj)
        house = House(kubernetes_target(api.kubeconfig(tmp_path)))
        house.publisher.read_back()
        house.publisher.start()
        house.publisher.submit(view("A2", 7))
        house.wait_for(7)
        assert house.publisher.stop(LIVENESS_S)
        assert house.telemetry.events == [EventReason.FOREIGN_PARTS]
        assert api.objects[NAMESPACE, NAME]["metadata"]["labels"] == {"mx-consumer-cim": "true"}


def test_retry_after_is_obeyed(house: House) -> None:
    house.target.errors = [LaterError("429", "", 0.3)]
    house.publisher.submit(view("A1", 7))
    house.publisher.start()
    house.wait_for(7)
    first_ns, second_ns = house.target.at_ns
    assert second_ns - first_ns >= 300_000_000


def test_an_outage_with_fifty_transitions_ends_with_one_write_of_the_last(tmp_path: Path) -> None:
    """Lessons 13: after the outage one write with the final state. Nothing is queued but the latest."""
    with fake_api() as api:
        house = House(kubernetes_target(api.kubeconfig(tmp_path)))
        house.publisher.start()
        house.publisher.submit(view("A1", 1))
        house.wait_for(1)
        away = threading.Event()
        api.script.extend(Answer(503, hold=away) for _ in range(1))
        for generation in range(2, 52):
            house.publisher.submit(view("A2" if generation % 2 else "A4", generation))
        writes = len(api.happened)
        away.set()
        house.wait_for(51)
        assert house.publisher.stop(LIVENESS_S)
        assert len(api.happened) == writes + 1
        assert _case(api.objects[NAMESPACE, NAME]["data"]) == "A2"
