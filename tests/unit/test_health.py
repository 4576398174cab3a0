"""Verdicts on a snapshot: what makes the daemon unhealthy, and what stands between it and readiness."""

from dataclasses import replace

import pytest

from nodeagent.daemon.health import Conditions, Snapshot, not_ready, unhealthy

READY = Snapshot(
    beat_age_s=1.0, driver_open=True, chips=8, unasked=0, complete=True, acknowledged=True, publish_problem=""
)
FRESH = Snapshot()


class TestHealth:
    def test_a_running_daemon_is_healthy(self) -> None:
        assert unhealthy(READY) == []

    def test_so_is_one_that_has_only_just_begun(self) -> None:
        assert unhealthy(FRESH) == []

    @pytest.mark.parametrize(("age_s", "healthy"), [(0, True), (10, True), (60, True), (60.5, False), (3600, False)])
    def test_the_core_loop_must_have_turned_within_a_minute(self, age_s: float, healthy: bool) -> None:
        problems = unhealthy(replace(READY, beat_age_s=age_s))
        assert problems == ([] if healthy else [f"core: the core loop has not turned for {age_s:.0f} s"])

    def test_every_problem_has_its_line(self) -> None:
        sick = replace(READY, beat_age_s=61, dead=("chips", "links"), publisher_dead=True)
        assert unhealthy(sick) == [
            "core: the core loop has not turned for 61 s",
            "loops: the thread has ended of chips, links",
            "publisher: its thread has ended",
        ]

    def test_what_a_restart_would_not_mend_is_not_unhealthy(self) -> None:
        troubled = Snapshot(
            driver_problem="dcmi_init returned -8005",
            chips=8,
            unasked=8,
            publish_problem="the API server is away",
            said={"lock": "waits"},
        )
        assert unhealthy(troubled) == []


class TestReadiness:
    def test_asked_and_published_is_ready(self) -> None:
        assert not_ready(READY) == []

    def test_a_write_that_fails_later_is_no_reason(self) -> None:
        assert not_ready(replace(READY, publish_problem="the API server is away")) == []

    @pytest.mark.parametrize(
        ("seen", "reasons"),
        [
            (FRESH, ["chips: the driver is not open yet", "publish: not acknowledged yet"]),
            (
                replace(FRESH, driver_problem="libdcmi.so was not found", publish_problem="disk full"),
                ["chips: the driver is not open: libdcmi.so was not found", "publish: not acknowledged: disk full"],
            ),
            (replace(READY, complete=False, unasked=3), ["chips: 3 of 8 not asked yet"]),
            (replace(READY, acknowledged=False), ["publish: not acknowledged yet"]),
            (
                replace(READY, acknowledged=False, other_writer="device-plugin"),
                ["publish: waits for the end of another writer of the object: device-plugin"],
            ),
            (
                replace(READY, said={"writer": "another writer is seen", "lock": "another daemon has the lock"}),
                ["lock: another daemon has the lock", "writer: another writer is seen"],
            ),
        ],
    )
    def test_every_reason_has_its_line(self, seen: Snapshot, reasons: list[str]) -> None:
        assert not_ready(seen) == reasons


def test_a_condition_is_held_until_it_is_cleared() -> None:
    conditions = Conditions()
    conditions.hold("lock", "waits for\nthe lock")
    conditions.hold("writer", "somebody else")
    conditions.hold("lock", "waits for the lock of pid 7")
    assert conditions.all() == {"lock": "waits for the lock of pid 7", "writer": "somebody else"}
    conditions.clear("lock")
    conditions.clear("lock")
    assert conditions.all() == {"writer": "somebody else"}


def test_a_reason_is_one_line() -> None:
    conditions = Conditions()
    conditions.hold("lock", "waits for\n  the lock")
    assert not_ready(replace(READY, said=conditions.all())) == ["lock: waits for the lock"]
