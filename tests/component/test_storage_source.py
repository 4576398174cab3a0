"""The storage source in its threads, with real files and a clock of the test (node-faults 11, 12, T16 - T19)."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from kit.clock import FakeClock, PacedClock
from kit.daemon import wait_until
from kit.storage import StateFile, Told

from nodeagent.core.settings import StorageSettings
from nodeagent.core.storage import StorageClient, StorageFault, StorageInstance, StorageVerdict
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.supervisor import Loop, Supervisor
from nodeagent.drivers.storage_files import read_client
from nodeagent.policy.storage_listing import ClientStanding
from nodeagent.sources.storage import ReadClient, StorageSource, storage_times
from nodeagent.sources.storage_look import look_at_storage

DPC, DTFS = StorageClient.DPC, StorageClient.DTFS
PROCESS, MEMORY = StorageFault.DPC_PROCESS, StorageFault.DPC_MEMORY
READ: ReadClient = partial(read_client, trusted_uids={os.getuid()})
RESULTS = ("ok", "missing", "bad", "late")


class Rig:
    """A running source; its time stands still unless `to` lets it pass."""

    def __init__(
        self,
        proc: Path,
        dpc: str = "on",
        dtfs: str = "off",
        believed: dict[StorageFault, bool] | None = None,
        read: ReadClient = READ,
    ) -> None:
        self.settings = StorageSettings(dpc=dpc, dtfs=dtfs, proc=str(proc))
        self.dpc, self.dtfs = StateFile(proc, DPC), StateFile(proc, DTFS)
        self.used = [client for client, feature in ((DPC, dpc), (DTFS, dtfs)) if feature != "off"]
        self.clock = PacedClock()
        self.start_ms = self.clock.now().mono_ms
        self.verdicts: list[StorageVerdict] = []
        self.events = Told()
        self.metrics = Registry()
        self.source = StorageSource(
            self.settings, self.clock, self.verdicts.append, self.events, self.metrics, believed or {}, read
        )
        self.thread = threading.Thread(target=self.source.run, daemon=True)

    def start(self) -> "Rig":
        self.thread.start()
        for client in self.used:
            wait_until(lambda c=client: self.readings(c) == 1)
        return self

    def stop(self) -> None:
        self.source.stop()
        if self.thread.ident is not None:
            self.thread.join(20)
            assert not self.thread.is_alive()

    @property
    def t_s(self) -> float:
        return (self.clock.now().mono_ms - self.start_ms) / 1000

    def readings(self, client: StorageClient, *results: str) -> int:
        return sum(
            int(self.metrics.value("storage_reads_total", client=client.value, result=result))
            for result in results or RESULTS
        )

    def to(self, end_s: float) -> "Rig":
        """Let time pass in periods; every client is read in each."""
        while self.t_s < end_s:
            before = {client: self.readings(client) for client in self.used}
            self.clock.advance_ms(round(1000 * min(5 - self.t_s % 5, end_s - self.t_s)))
            if self.t_s % 5 == 0:
                for client, number in before.items():
                    wait_until(lambda c=client, n=number: self.readings(c) == n + 1, f"reading of {client}")
        return self

    def told(self, fault: StorageFault) -> list[tuple[float, bool | None]]:
        """Each change of a fault in the verdicts: seconds and value."""
        told: list[tuple[float, bool | None]] = []
        for verdict in list(self.verdicts):
            if fault in verdict.present and (not told or told[-1][1] is not verdict.present[fault]):
                told.append(((verdict.at.mono_ms - self.start_ms) / 1000, verdict.present[fault]))
        return told

    def expect(self, fault: StorageFault, *changes: tuple[float, bool | None]) -> None:
        wait_until(lambda: self.told(fault) == list(changes), f"{self.told(fault)} != {changes}")

    def expect_events(self, *events: tuple[str, str]) -> None:
        wait_until(lambda: self.events.short() == list(events), f"{self.events.short()} != {events}")

    def standing(self, client: StorageClient) -> ClientStanding:
        return next(standing for standing in self.source.standings() if standing.client is client)


@pytest.fixture
def rigs(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(**kwargs: object) -> Rig:
        made.append(Rig(tmp_path, **kwargs))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for rig in made:
        rig.stop()


def test_t16_process_fault(rigs: Callable[..., Rig]) -> None:
    rig = rigs()
    rig.dpc.show((0, 0, 0))
    rig.start().to(16)
    rig.dpc.show((0, 0, -1))
    rig.to(36)
    rig.dpc.show((0, 0, 0))
    rig.to(56)
    rig.dpc.show((0, 0, 0), (1, 0, -1))
    rig.to(60)
    rig.expect(PROCESS, (0, False), (20, True), (40, False), (60, True))
    rig.expect(MEMORY, (0, None))
    rig.expect_events(("Occur", "DPC"), ("Recovery", "DPC"), ("Occur", "DPC"))
    assert rig.events[0].message == "110001020 process abnormal, level SubHealthFault at ClusterD, instance 0"
    assert rig.events[0].warning
    assert not rig.events[1].warning
    assert rig.metrics.value("storage_fault", client="dpc", fault="DPC_PROCESS") == 1


def test_t17_memory_fault(rigs: Callable[..., Rig]) -> None:
    rig = rigs()
    rig.dpc.show((0, 0, 0))
    rig.start().to(101)
    rig.dpc.show((0, -12, 0))
    rig.to(401)
    rig.dpc.show((0, 0, 0))
    rig.to(501)
    rig.dpc.show((0, -12, 0))
    rig.to(1201)
    rig.expect(MEMORY, (0, None), (1105, True))
    rig.dpc.show((0, 0, 0))
    rig.to(1805)
    rig.expect(MEMORY, (0, None), (1105, True), (1805, False))
    rig.expect_events(("Occur", "DPC"), ("Recovery", "DPC"))


def test_t17_the_end_of_a_timer_is_read_at_its_moment(rigs: Callable[..., Rig]) -> None:
    """Readings that drift, so that the end lies between two of them."""
    rig = rigs()
    rig.dpc.show((0, -12, 0))
    rig.start()
    for number in range(2, 121):
        rig.clock.advance_ms(5001)
        wait_until(lambda n=number: rig.readings(DPC) == n)
    assert (rig.t_s, rig.told(MEMORY)) == (595.119, [(0, None)])
    rig.clock.advance_ms(4881)
    rig.expect(MEMORY, (0, None), (600, True))


@pytest.mark.parametrize(
    "break_it",
    [
        lambda file: file.path.chmod(0o664),
        lambda file: file.write("[instidx=0]\nDPC_INTERNAL_ERROR: 0\nDPC_PROCESS_ERROR: 0\n\n[instidx=1]\n"),
        lambda file: file.show((0, -2, 0)),
        lambda file: file.write("[instidx=0]\nDPC_PROCESS_ERROR: 0\nDPC_INTERNAL_ERROR: 0\n"),
        lambda file: file.write("[instidx=a]\nDPC_INTERNAL_ERROR: 0\nDPC_PROCESS_ERROR: 0\n"),
        pytest.param(
            lambda file: os.chown(file.path, 1000, 0),
            marks=pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away"),
        ),
    ],
    ids=["mode", "blank line", "value", "order", "number", "owner"],
)
def test_t18_a_bad_file_keeps_the_last_state(
    rigs: Callable[..., Rig], caplog: pytest.LogCaptureFixture, break_it: Callable[[StateFile], None]
) -> None:
    caplog.set_level(logging.INFO, "nodeagent.storage")
    rig = rigs()
    rig.dpc.show((0, 0, -1))
    rig.start()
    break_it(rig.dpc)
    rig.to(100)
    rig.expect(PROCESS, (0, True))
    rig.expect_events(("Occur", "DPC"), ("StorageStateUnreadable", "DPC"))
    assert rig.readings(DPC, "bad") == 20
    assert len([r for r in caplog.records if r.levelno >= logging.WARNING]) == 3
    assert str(rig.dpc.path) in rig.events[1].message
    rig.dpc.show((0, 0, 0))
    rig.to(105)
    rig.expect(PROCESS, (0, True), (105, False))
    rig.expect_events(
        ("Occur", "DPC"), ("StorageStateUnreadable", "DPC"), ("StorageStateReadableAgain", "DPC"), ("Recovery", "DPC")
    )


def test_t18_an_empty_file_of_dpc_is_a_recovery(rigs: Callable[..., Rig]) -> None:
    rig = rigs()
    rig.dpc.show((0, 0, -1))
    rig.start()
    rig.dpc.write("")
    rig.to(5)
    rig.expect(PROCESS, (0, True), (5, False))


def test_t18_of_25_instances_the_first_21_count(rigs: Callable[..., Rig]) -> None:
    rig = rigs()
    rig.dpc.show(*((number, 0, -1 if number >= 21 else 0) for number in range(25)))
    rig.start()
    rig.expect(PROCESS, (0, False))
    assert len(rig.standing(DPC).state.instances) == 21


def test_t19_dtfs(rigs: Callable[..., Rig]) -> None:
    rig = rigs(dpc="off", dtfs="on")
    rig.dtfs.show((0, 0, 0))
    rig.start()
    rig.dtfs.show((0, 0, 0), (1, -1, 0))
    rig.to(5)
    rig.dtfs.show((0, 0, 0), (1, 0, -1))
    rig.to(10)
    rig.dtfs.write("")
    rig.to(30)
    rig.expect(StorageFault.DTFS_PROCESS, (0, False), (5, True), (10, False))
    rig.expect(StorageFault.DTFS_LINK, (0, False), (10, True))
    assert len(rig.verdicts) == 3  # both changes of 10 s in one
    rig.expect_events(("Occur", "DTFS"), ("Recovery", "DTFS"), ("Occur", "DTFS"), ("StorageStateUnreadable", "DTFS"))


def test_a_first_verdict_comes_even_if_it_is_what_was_believed(rigs: Callable[..., Rig]) -> None:
    rig = rigs(believed={PROCESS: True, MEMORY: True})
    rig.dpc.show((0, -12, -1))
    rig.start().to(10)
    wait_until(lambda: len(rig.verdicts) == 1)
    assert dict(rig.verdicts[0].present) == {PROCESS: True, MEMORY: True}
    rig.expect_events()
    assert rig.metrics.value("source_last_success_timestamp_seconds", source="dpc") == pytest.approx(1_760_000_010)


def test_auto_begins_once_the_file_is_there(rigs: Callable[..., Rig], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nodeagent.storage")
    rig = rigs(dpc="auto", dtfs="auto")
    rig.start().to(100)
    rig.expect_events()
    assert len(caplog.records) == 2  # one for each client
    assert all(record.levelno == logging.INFO for record in caplog.records)
    rig.dpc.show((0, 0, -1))
    rig.to(105)
    rig.expect(PROCESS, (105, True))
    rig.expect_events(("Occur", "DPC"))


def test_on_says_that_the_file_is_missing_from_the_start(rigs: Callable[..., Rig]) -> None:
    rig = rigs(dpc="on").start().to(50)
    rig.expect_events(("StorageStateUnreadable", "DPC"))
    assert "does not exist, though storage.dpc is on" in rig.events[0].message
    rig.dpc.show((0, 0, 0))
    rig.to(55)
    rig.expect_events(("StorageStateUnreadable", "DPC"), ("StorageStateReadableAgain", "DPC"))


def test_off_reads_nothing(rigs: Callable[..., Rig]) -> None:
    asked: list[StorageClient] = []

    def read(proc: Path, client: StorageClient) -> tuple[StorageInstance, ...]:
        asked.append(client)
        return (StorageInstance(0),)

    rig = rigs(dpc="off", dtfs="on", read=read).start().to(20)
    assert set(asked) == {DTFS}
    assert rig.standing(DPC).state.seen is None


@pytest.mark.parametrize("feature", ["on", "auto"])
def test_a_module_that_is_unloaded_and_loaded_again(rigs: Callable[..., Rig], feature: str) -> None:
    rig = rigs(dpc=feature)
    rig.dpc.show((0, 0, -1), (1, 0, 0))
    rig.start()
    rig.dpc.remove()
    rig.to(10)
    rig.expect_events(("Occur", "DPC"))
    rig.to(60)
    rig.expect_events(("Occur", "DPC"), ("StorageClientGone", "DPC"))
    assert rig.metrics.value("storage_file_gone", client="dpc") == 1
    rig.expect(PROCESS, (0, True))
    rig.dpc.show((7, 0, 0))
    rig.to(65)
    rig.expect_events(
        ("Occur", "DPC"), ("StorageClientGone", "DPC"), ("StorageClientReturned", "DPC"), ("Recovery", "DPC")
    )
    assert rig.metrics.value("storage_file_gone", client="dpc") == 0
    assert set(rig.standing(DPC).state.instances) == {7}


class Hanging:
    """A reader whose DPC hangs while it is told to."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.begun = 0

    def __call__(self, proc: Path, client: StorageClient) -> tuple[StorageInstance, ...]:
        if client is DPC:
            self.begun += 1
            assert self.free.wait(50)
        return READ(proc, client)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    hanging = Hanging()
    yield hanging
    hanging.free.set()


def test_a_reading_that_hangs_is_said_once_and_stops_nobody(rigs: Callable[..., Rig], hanging: Hanging) -> None:
    rig = rigs(dtfs="on", read=hanging)
    rig.dpc.show((0, 0, -1))
    rig.dtfs.show((0, 0, 0))
    rig.start()
    hanging.free.clear()
    rig.used = [DTFS]
    rig.to(3600)
    rig.expect_events(("Occur", "DPC"), ("StorageStateUnreadable", "DPC"))
    assert "has not been read for 10 s" in rig.events[1].message
    assert hanging.begun == 2
    assert len([t for t in threading.enumerate() if t.name == "storage.dpc" and t.is_alive()]) == 1
    rig.dpc.show((0, 0, 0))
    hanging.free.set()
    # What came after an hour speaks of nobody knows when; the next reading follows at once.
    wait_until(lambda: rig.readings(DPC) == 3)
    assert (rig.readings(DPC, "late"), rig.readings(DPC, "ok")) == (1, 2)
    rig.expect(PROCESS, (0, True), (3600, False))
    rig.expect_events(
        ("Occur", "DPC"), ("StorageStateUnreadable", "DPC"), ("StorageStateReadableAgain", "DPC"), ("Recovery", "DPC")
    )


def test_a_reading_that_hangs_holds_up_no_stop(rigs: Callable[..., Rig], hanging: Hanging) -> None:
    rig = rigs(read=hanging)
    rig.dpc.show((0, 0, 0))
    rig.start()
    hanging.free.clear()
    rig.clock.advance_ms(5000)
    wait_until(lambda: hanging.begun == 2)
    rig.stop()


def test_a_slow_reading_counts_from_its_beginning(rigs: Callable[..., Rig], hanging: Hanging) -> None:
    rig = rigs(read=hanging)
    rig.dpc.show((0, 0, 0))
    rig.start()
    hanging.free.clear()
    rig.clock.advance_ms(5000)
    wait_until(lambda: hanging.begun == 2)
    rig.clock.advance_ms(20_000)
    rig.dpc.show((0, 0, -1))
    hanging.free.set()
    rig.expect(PROCESS, (0, False), (5, True))


def test_an_error_that_nobody_foresaw_restarts_the_loop_and_loses_nothing(tmp_path: Path) -> None:
    calls: list[int] = []

    def read(proc: Path, client: StorageClient) -> tuple[StorageInstance, ...]:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("nobody foresaw this")
        return (StorageInstance(0, frozenset({PROCESS})),)

    rig = Rig(tmp_path, read=read)
    supervisor = Supervisor(rig.metrics)
    supervisor.start(Loop("storage", rig.source.run, rig.source.stop))
    try:
        wait_until(lambda: len(calls) == 1 and rig.readings(DPC) == 1)
        rig.clock.advance_ms(5000)
        wait_until(lambda: rig.metrics.value("loop_restarts_total", loop="storage") == 1)
        rig.clock.advance_ms(5000)
        wait_until(lambda: len(calls) == 3 and rig.readings(DPC) == 2)
        rig.expect(PROCESS, (0, True))
        assert len([t for t in threading.enumerate() if t.name == "storage.dpc" and t.is_alive()]) == 1
    finally:
        assert supervisor.stop(20) == []


def test_the_gap_grows_with_the_period() -> None:
    assert storage_times(StorageSettings()).gap_ms == 60_000
    assert storage_times(StorageSettings(read_period_s=60)).gap_ms == 180_000


def test_one_look(tmp_path: Path) -> None:
    StateFile(tmp_path, DPC).show((0, -12, -1))
    settings = StorageSettings(dpc="auto", dtfs="auto", proc=str(tmp_path))
    dpc, dtfs = look_at_storage(settings, FakeClock(), READ)
    assert dict(dpc.state.present) == {PROCESS: True, MEMORY: None}
    assert not dtfs.state.was_there
    assert "does not exist" in dtfs.state.problem


def test_one_look_does_not_wait_for_a_client_that_hangs(tmp_path: Path, hanging: Hanging) -> None:
    hanging.free.clear()
    settings = StorageSettings(dpc="on", dtfs="off", proc=str(tmp_path))
    dpc, dtfs = look_at_storage(settings, FakeClock(), hanging, wait_s=0.05)
    assert "has not been read for 0.05 s" in dpc.state.problem
    assert (dtfs.feature, dtfs.state.problem) == ("off", "")
