"""From the driver's stamp to the acknowledged write, on a policy clock that the test moves."""

import pytest
from kit.clock import FakeClock
from kit.engine import config_of

from nodeagent.core.clock import AcceleratedClock, Clock
from nodeagent.core.model import ChipId, Family, Inventory, Product
from nodeagent.core.observation import (
    ChipCodes,
    FaultNoticed,
    FaultOccurred,
    FaultRecovered,
    InventorySeen,
    Observation,
    SourceComplete,
)
from nodeagent.daemon.latency import MAX_WAITING, FaultLatencies
from nodeagent.daemon.metrics import Registry
from nodeagent.policy.engine import step
from nodeagent.policy.state import NodeState

X, Y = 0x80E18005, 0x80C98008


class Bench:
    """An engine and what measures it. One chip, answered."""

    def __init__(self, factor: float = 1.0, *, complete: bool = True) -> None:
        self.base = FakeClock()
        self.clock: Clock = self.base if factor == 1 else AcceleratedClock(factor, self.base)
        self.metrics = Registry()
        self.latencies = FaultLatencies(self.clock, self.metrics)
        self.state = NodeState()
        now = self.clock.now()
        inventory = Inventory(Product(Family.A2, "chip"), (ChipId(0, 0, 0, 0),))
        self.step(InventorySeen(inventory, now), ChipCodes(0, (), now))
        if complete:
            self.step(SourceComplete(now))

    def step(self, *batch: Observation) -> None:
        result = step(self.state, batch, self.clock.now(), config_of())
        self.state = result.state
        self.latencies.seen(batch, result)

    def occur(self, code: int) -> None:
        self.step(FaultOccurred(0, code, None, self.clock.now()))

    def acknowledge(self) -> None:
        self.latencies.acknowledged(self.state.generation)

    def samples(self) -> tuple[int, float]:
        """Number and sum in seconds."""
        found = self.metrics.families()["fault_acknowledged_seconds"].histograms.get(())
        return (0, 0.0) if found is None else (found.count, found.total)


def test_from_the_stamp_to_the_acknowledgement() -> None:
    bench = Bench()
    stamp = bench.clock.now()
    bench.base.advance_ms(3)
    bench.step(FaultOccurred(0, X, None, stamp))
    bench.base.advance_ms(40)
    bench.acknowledge()
    assert bench.samples() == (1, pytest.approx(0.043))
    bench.acknowledge()
    assert bench.samples()[0] == 1


def test_an_acknowledgement_of_an_older_view_is_none() -> None:
    bench = Bench()
    before = bench.state.generation
    bench.occur(X)
    bench.latencies.acknowledged(before)
    assert bench.samples() == (0, 0.0)


def test_one_write_may_show_several() -> None:
    bench = Bench()
    bench.occur(X)
    bench.base.advance_ms(1000)
    bench.step(FaultNoticed(0, Y, None, bench.clock.now()))
    bench.base.advance_ms(10)
    bench.acknowledge()
    assert bench.samples() == (2, pytest.approx(1.020))


def test_accelerated_policy_time_is_told_in_real_seconds() -> None:
    bench = Bench(factor=40)
    bench.occur(X)
    bench.base.advance_ms(50)
    bench.acknowledge()
    assert bench.samples() == (1, pytest.approx(0.05))


def test_before_the_first_view_a_fault_waits_for_that_one() -> None:
    bench = Bench(complete=False)
    bench.occur(X)
    bench.base.advance_ms(2000)
    bench.step(SourceComplete(bench.clock.now()))
    bench.acknowledge()
    assert bench.samples() == (1, pytest.approx(2.0))


def test_what_is_no_new_occurrence_is_not_measured() -> None:
    bench = Bench()
    bench.occur(X)
    bench.acknowledge()
    bench.occur(X)  # told again
    now = bench.clock.now()
    bench.step(ChipCodes(0, (X, Y), now))  # found by a query
    bench.step(FaultRecovered(0, X, now))
    bench.acknowledge()
    assert bench.samples()[0] == 1


def test_a_target_that_is_away_costs_no_memory_without_end() -> None:
    bench = Bench()
    bench.step(*(FaultOccurred(0, 0x8F000000 + i, None, bench.clock.now()) for i in range(MAX_WAITING + 10)))
    bench.acknowledge()
    assert bench.samples()[0] == MAX_WAITING
