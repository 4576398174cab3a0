"""The scheduler of the simulated fleet: every task runs when it is due, none twice at once, on few threads."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from fleet.fleet_of_nodes import Fleet, NotSettled
from fleet.lane import Lane, Task
from fleet.node import SimulatedNode
from kit.daemon import wait_until

from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.core.telemetry import NullTelemetry
from nodeagent.publish.book import BookParameters
from nodeagent.render.reading import parse_device_info

WORKERS = 4


@pytest.fixture
def lane() -> Iterator[Lane]:
    lane = Lane(WORKERS)
    yield lane
    lane.close()


class TestLane:
    def test_a_task_runs_when_poked_and_not_before(self, lane: Lane) -> None:
        ran = threading.Semaphore(0)
        task = Task(lambda: ran.release())
        assert not ran.acquire(timeout=0.05)
        for _ in range(3):
            lane.poke(task)
            assert ran.acquire(timeout=20)
        assert not ran.acquire(timeout=0.05)

    def test_a_task_runs_again_after_the_seconds_it_asks_for(self, lane: Lane) -> None:
        waits = iter([0.0, 0.01, None])
        ran: list[float | None] = []

        def turn() -> float | None:
            ran.append(next(waits))
            return ran[-1]

        lane.poke(Task(turn))
        wait_until(lambda: ran == [0.0, 0.01, None])
        assert lane.error is None

    def test_time_decides_the_order(self) -> None:
        ran: list[str] = []
        done = threading.Event()

        def turn(name: str, waits: list[float | None]) -> Callable[[], float | None]:
            def turn() -> float | None:
                ran.append(name)
                wait_s = waits.pop(0)
                if name == "late" and wait_s is None:
                    done.set()
                return wait_s

            return turn

        lane = Lane(1)
        lane.poke(Task(turn("late", [0.2, None])))
        lane.poke(Task(turn("early", [0.1, None])))
        assert done.wait(20)
        lane.close()
        assert ran == ["late", "early", "early", "late"]

    def test_a_poke_makes_a_task_due_that_waits_for_a_later_moment(self, lane: Lane) -> None:
        ran = threading.Semaphore(0)

        def turn() -> float:
            ran.release()
            return 3600

        task = Task(turn)
        lane.poke(task)
        assert ran.acquire(timeout=20)
        lane.poke(task)
        assert ran.acquire(timeout=20)
        assert not ran.acquire(timeout=0.05)

    def test_a_moment_that_a_poke_has_replaced_does_not_come(self, lane: Lane) -> None:
        waits: list[float | None] = [0.1, None]
        task = Task(lambda: waits.pop(0))
        lane.poke(task)
        wait_until(lambda: len(waits) == 1)
        lane.poke(task)
        wait_until(lambda: not waits)
        time.sleep(0.3)
        assert lane.error is None  # a third turn would find no wait

    def test_a_poke_while_it_runs_is_not_lost_and_makes_no_second_one(self, lane: Lane) -> None:
        entered, go_on, ran, at_once = threading.Semaphore(0), threading.Semaphore(0), [0], [0, 0]

        def turn() -> None:
            at_once[0] += 1
            at_once[1] = max(at_once)
            entered.release()
            assert go_on.acquire(timeout=20)
            ran[0] += 1
            at_once[0] -= 1

        task = Task(turn)
        lane.poke(task)
        assert entered.acquire(timeout=20)
        lane.poke(task)
        lane.poke(task)
        assert not entered.acquire(timeout=0.05)
        go_on.release(2)
        wait_until(lambda: ran == [2])
        assert entered.acquire(timeout=20)
        assert not entered.acquire(timeout=0.05)
        assert at_once[1] == 1

    def test_an_error_is_kept_and_the_others_go_on(self, lane: Lane) -> None:
        ran = threading.Semaphore(0)

        def bad() -> None:
            raise ValueError("bad")

        for _ in range(WORKERS + 1):
            lane.poke(Task(bad))
        lane.poke(Task(lambda: ran.release()))
        assert ran.acquire(timeout=20)
        wait_until(lambda: isinstance(lane.error, ValueError))

    def test_nothing_begins_after_close(self) -> None:
        ran: list[int] = []
        lane = Lane(WORKERS)
        lane.close()
        lane.poke(Task(lambda: ran.append(1)))
        assert ran == []


class Store:
    """What all nodes write to. refusals: so many attempts fail. gate: closed, it holds writes. shuts: after each."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, str]] = {}
        self.writes: list[str] = []
        self.threads: set[int] = set()
        self.refusals = 0
        self.gate = threading.Event()
        self.gate.set()
        self.shuts = self.held = False
        self._lock = threading.Lock()


class StoreTarget:
    """The part of a store that one node sees."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        return None

    def write(self, obj: dict[str, object]) -> None:
        store = self._store
        store.held = not store.gate.is_set()
        assert store.gate.wait(20)
        with store._lock:
            store.threads.add(threading.get_ident())
            if store.refusals:
                store.refusals -= 1
                raise PublishError("not now", "")
            name = obj["metadata"]["name"]  # type: ignore[index]
            store.objects[name] = obj["data"]  # type: ignore[assignment]
            store.writes.append(name)
            if store.shuts:
                store.gate.clear()

    def delete(self, namespace: str, name: str) -> None:
        raise AssertionError("nobody deletes this object")

    def edited(self, namespace: str, name: str) -> None:
        return None

    def edit_period_s(self) -> None:
        return None

    def describe(self) -> str:
        return "store"


QUICK = BookParameters(min_distance_ms=20, refresh_ms=3_600_000, retry_base_ms=20, retry_cap_ms=40)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def fleet(store: Store) -> Iterator[Fleet]:
    def make(name: str, _lane: int, on_acknowledged: Callable[[SimulatedNode, int], None]) -> SimulatedNode:
        return SimulatedNode(name, StoreTarget(store), QUICK, NullTelemetry(), on_acknowledged)

    fleet = Fleet(make, refresh_s=3600)
    yield fleet
    fleet.close()


def quiet(_text: str) -> None:
    """Shows no progress."""


class TestFleet:
    def test_every_node_writes_once_and_waits_for_nothing_then(self, fleet: Fleet, store: Store) -> None:
        fleet.grow(200)
        fleet.settle(quiet)
        assert len(store.writes) == len(set(store.writes)) == 200
        assert fleet.waiting == 0
        assert len(store.threads) <= 16

    def test_the_last_report_of_many_is_what_the_store_has(self, fleet: Fleet, store: Store) -> None:
        fleet.grow(20)
        fleet.settle(quiet)
        store.refusals = 30
        for turn in range(50):
            fleet.report(turn % 20, turn % 8)
            fleet.report(turn % 20, 7)
        fleet.settle(quiet)
        found = {
            name.removeprefix("mindx-dl-deviceinfo-"): {f.device for f in parse_device_info(data).faults}
            for name, data in store.objects.items()
        }
        assert found == fleet.expected()
        assert found["node-00012"] == {"Ascend910-4", "Ascend910-0"}  # turns 12 and 32; chip 7 came and went
        assert set(fleet.settled()) == set(found)

    def test_a_node_is_waited_for_until_its_last_report_is_acknowledged(self, fleet: Fleet, store: Store) -> None:
        fleet.grow(1)
        fleet.settle(quiet)
        store.gate.clear()
        store.shuts = True
        fleet.report(0, 1)
        wait_until(lambda: store.held)
        fleet.report(0, 2)
        store.gate.set()
        wait_until(lambda: len(store.writes) == 2)
        with pytest.raises(NotSettled, match="1 nodes were not acknowledged"):
            fleet.settle(quiet, limit_s=0.3)  # the first of the two reports is acknowledged, the last is not
        store.gate.set()
        fleet.settle(quiet)
        assert len(store.writes) == 3

    def test_an_aged_object_is_refreshed_and_a_fresh_one_is_not(self, fleet: Fleet, store: Store) -> None:
        fleet.grow(2)
        fleet.settle(quiet)
        fleet.nodes[1].age(3_600_000)
        fleet.report(1)  # the same content: only its age makes it be written
        wait_until(lambda: len(store.writes) == 3)
        assert store.writes[2].endswith("node-00001")

    def test_a_failed_read_before_the_first_write_is_repeated(
        self, fleet: Fleet, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failures = [ReadBackError("away")]

        def read(*_: object) -> None:
            if failures:
                raise failures.pop()

        monkeypatch.setattr(StoreTarget, "read", read)
        monkeypatch.setattr("fleet.node.FIRST_PAUSE_S", 0.01)
        fleet.grow(1)
        fleet.settle(quiet)
        assert len(store.writes) == 1
