"""Whatever happens on the way, ClusterD has in the end what holds; and what one outage does to a fleet."""

import heapq
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.clock import FakeClock
from kit.fake_clusterd import ClusterdTarget, FakeClusterd
from kit.public_fault import CHIPS, DirectCourier, Home

from nodeagent.core.errors import PublishError
from nodeagent.core.storage import StorageFault
from nodeagent.publish.courier import Courier
from nodeagent.publish.courier_configmap import ConfigMapCourier

PROCESS, MEMORY, DTFS_PROCESS, DTFS_LINK = StorageFault
words = st.sampled_from([True, False, None])
steps = st.one_of(
    st.tuples(st.just("dpc"), words, words),
    st.tuples(st.just("dtfs"), words, words),
    st.tuples(st.just("wait"), st.integers(1, 20) | st.integers(20, 4000)),
    st.tuples(st.just("restart"), st.sampled_from(["file kept", "file lost", "file torn"])),
    st.tuples(st.just("chips"), st.booleans()),
    st.tuples(st.just("trouble"), st.lists(st.sampled_from(["lost", "arrived", "410", "409"]), max_size=6)),
    st.tuples(st.just("kill in a call"), st.booleans()),
)


class Killed(BaseException):
    """The process ends here."""


class Story:
    """Plays steps on one node. wanted: what was said last of each fault in the present run, or before."""

    def __init__(self, folder: Path, config_map: bool, seed: int) -> None:
        self.clusterd = FakeClusterd()
        self.target = ClusterdTarget(self.clusterd)
        self.direct = DirectCourier(self.clusterd)
        self.config_map = config_map
        self.folder = folder
        self.chips_known = False
        self.said: dict[str, dict[str, bool | None]] = {}
        self.home = Home(folder, self.clusterd, self.courier(), draw=random.Random(seed).random)

    def courier(self) -> Courier:
        return ConfigMapCourier(self.target, "node-1") if self.config_map else self.direct

    def until(self, seconds: float) -> None:
        try:
            self.home.until(self.home.now_s + seconds)
        except Killed:
            self.restart("file kept")

    def restart(self, how: str) -> None:
        path = self.folder / "public-faults.json"
        if how == "file lost":
            path.unlink(missing_ok=True)
        if how == "file torn" and path.exists():
            path.write_text(path.read_text()[:-5])
        self.home.courier = self.courier()
        self.home.start()
        if self.chips_known:
            self.home.writer.chips(CHIPS)
        for present in self.said.values():
            self.say(present)

    def say(self, present: dict[str, bool | None]) -> None:
        try:
            self.home.say(**present)
        except Killed:
            self.restart("file kept")

    def trouble(self, kinds: list[str]) -> None:
        if self.config_map:  # ClusterD's answers are seen by nobody there
            kinds = [kind for kind in kinds if kind in ("lost", "arrived")]
            self.target.failures = [(PublishError("no answer"), kind == "arrived") for kind in kinds]
            return
        self.direct.lost = [kind == "arrived" for kind in kinds if kind in ("lost", "arrived")]
        self.clusterd.answers = [(int(kind), kind) for kind in kinds if kind.isdigit()]

    def kill(self, arrived: bool) -> None:
        if self.config_map:
            self.target.failures = [(Killed(), arrived)]  # type: ignore[list-item]
        else:
            self.direct.unforeseen = [Killed()]  # type: ignore[list-item]

    def play(self, step: tuple[object, ...]) -> None:
        kind, *rest = step
        if kind in ("dpc", "dtfs"):
            names = ("DPC_PROCESS", "DPC_MEMORY") if kind == "dpc" else ("DTFS_PROCESS", "DTFS_LINK")
            before = self.said.get(str(kind), {})
            # A source never goes back to unknown within a run, and after a restart it finds out again.
            self.said[str(kind)] = {
                name: before.get(name) if word is None else word for name, word in zip(names, rest, strict=True)
            }
            self.say(self.said[str(kind)])
        elif kind == "wait":
            self.until(rest[0])
        elif kind == "restart":
            self.restart(rest[0])
        elif kind == "chips":
            self.chips_known = True
            self.home.writer.chips(CHIPS)
        elif kind == "trouble":
            self.trouble(rest[0])
        else:
            self.kill(rest[0])

    def heal(self) -> None:
        self.clusterd.answers, self.direct.lost, self.target.failures = [], [], []
        self.direct.unforeseen = []
        self.until(3 * 3600)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=20), st.booleans(), st.integers(0, 2**16))
def test_in_the_end_clusterd_has_what_holds(history: list[tuple[object, ...]], config_map: bool, seed: int) -> None:
    with TemporaryDirectory() as folder:
        story = Story(Path(folder), config_map, seed)
        for step in history:
            story.play(step)
        story.heal()
        holds = {name: word for present in story.said.values() for name, word in present.items()}
        has = {cached.code: cached for cached in story.clusterd.faults_of("node-1").values()}
        for name, word in holds.items():
            if word is not None:
                assert (StorageFault[name].code in has) is word, (name, story.home.sent)
        assert set(has) <= {StorageFault[name].code for name in holds}
        assert story.clusterd.broken == []
        ids = [message["id"] for message in story.clusterd.received]
        assert len(ids) == len(set(ids))
        assert all(cached.devices in (CHIPS, (0,)) for cached in has.values())
        if story.chips_known:
            assert all(cached.devices == CHIPS for cached in has.values())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30)), min_size=1, max_size=30), st.integers(0, 2**16))
def test_a_recover_and_the_next_occur_of_a_fault_keep_their_distance(
    history: list[tuple[bool, int]], seed: int
) -> None:
    home = Home(None, draw=random.Random(seed).random)
    home.writer.chips(CHIPS)
    for present, pause_s in history:
        home.say(DPC_PROCESS=present)
        home.until(home.now_s + pause_s)
    recovered_s = -100.0
    for moment, said in home.sent:
        if said[PROCESS.code] == "recover":
            recovered_s = moment
        else:
            assert moment - recovered_s >= 7


def fleet(
    nodes: int, make: Callable[[FakeClusterd], Courier]
) -> tuple[FakeClusterd, list[Home], Callable[[float], None]]:
    """Nodes on one clock that share one ClusterD, all healthy and known to be; and how to let time pass."""
    clusterd, clock, draw = FakeClusterd(), FakeClock(), random.Random(7).random
    homes = [Home(None, clusterd, make(clusterd), f"node-{number}", draw, clock) for number in range(nodes)]

    def until(seconds: float) -> None:
        queue = [(home.clock.now().mono_ms, number) for number, home in enumerate(homes)]
        heapq.heapify(queue)
        end_ms = homes[0].start_ms + int(seconds * 1000)
        while queue and queue[0][0] <= end_ms:
            at_ms, number = heapq.heappop(queue)
            clock.advance_ms(max(0, at_ms - clock.now().mono_ms))
            wait_s = homes[number].turn()
            if wait_s is not None:
                heapq.heappush(queue, (clock.now().mono_ms + max(1, round(wait_s * 1000)), number))
        clock.advance_ms(max(0, end_ms - clock.now().mono_ms))

    return clusterd, homes, until


def in_cache(clusterd: FakeClusterd) -> int:
    return len(clusterd.cache)


def test_t21_an_outage_of_300_nodes_is_told_within_a_quarter_of_an_hour() -> None:
    clusterd, homes, until = fleet(300, DirectCourier)
    for home in homes:
        home.writer.chips(CHIPS)
        home.say(DPC_PROCESS=True)
    assert in_cache(clusterd) == 100
    until(900)
    assert in_cache(clusterd) == 300
    assert len(clusterd.received) < 300 * 12
    assert clusterd.broken == []
    for home in homes:
        home.say(DPC_PROCESS=False)
    until(1800)
    assert in_cache(clusterd) == 0


@pytest.mark.parametrize("nodes", [300, 1000])
def test_an_outage_is_told_by_objects_whose_excess_clusterd_drops(nodes: int) -> None:
    clusterd, homes, until = fleet(nodes, lambda clusterd: ConfigMapCourier(ClusterdTarget(clusterd), "node-0"))
    for number, home in enumerate(homes):
        home.courier._node_name = f"node-{number}"  # type: ignore[attr-defined]
        home.writer.chips(CHIPS)
        home.say(DPC_PROCESS=True)
    assert in_cache(clusterd) == 100
    assert clusterd.dropped == nodes - 100
    until(3600)
    assert in_cache(clusterd) == nodes
    for home in homes:
        home.say(DPC_PROCESS=False)
    until(7200)
    assert in_cache(clusterd) == 0
