"""What people and metrics hear: Events of a step (lesson 53), and the registry that takes declared numbers only."""

import logging

import pytest

from nodeagent.core.instant import Instant
from nodeagent.core.levels import Level
from nodeagent.core.model import ChipId
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.announce import MAX_EVENTS_PER_STEP, events_of
from nodeagent.daemon.logs import LogEvents
from nodeagent.daemon.metrics import DECLARED, Kind, Registry
from nodeagent.policy.state import Change, ChangeKind

AT = Instant(1000, 1_760_000_000_000)
CHIP = ChipId(3, 11, 1, 1)
CODE = 0x80E18005


def told(*changes: Change, name: str = "L2 buffer multi-bit ECC") -> list[Event]:
    return events_of(changes, lambda code: f"{code:X}", lambda _: name)


def change(kind: ChangeKind, *, known: bool = True, detail: str = "") -> Change:
    return Change(kind, AT, CHIP, CODE, Level.SEPARATE, known, detail)


class TestEvents:
    @pytest.mark.parametrize(
        ("kind", "reason", "warning"),
        [
            (ChangeKind.OCCURRED, EventReason.FAULT_OCCURRED, True),
            (ChangeKind.RECOVERED, EventReason.FAULT_RECOVERED, False),
            (ChangeKind.VANISHED, EventReason.FAULT_RECOVERED, False),
            (ChangeKind.NOTICED, EventReason.FAULT_NOTICED, True),
            (ChangeKind.NOTICE_DROPPED, EventReason.NOTICE_DROPPED, True),
        ],
    )
    def test_a_change_of_a_code_names_code_level_and_chip_in_all_naming_schemes(
        self, kind: ChangeKind, reason: EventReason, warning: bool
    ) -> None:
        (event,) = told(change(kind))
        message = "80E18005 L2 buffer multi-bit ECC, level SeparateNPU"
        assert event == Event(reason, message, warning, "chip 3 (phy 11, card 1/1)")

    def test_a_detail_is_appended(self) -> None:
        (event,) = told(change(ChangeKind.OCCURRED, detail="found by a full query"))
        assert event.message.endswith("level SeparateNPU, found by a full query")

    @pytest.mark.parametrize("kind", [ChangeKind.SILENT, ChangeKind.ANSWERS])
    def test_a_chip_that_falls_silent_or_answers_is_told_with_its_reason(self, kind: ChangeKind) -> None:
        (event,) = told(Change(kind, AT, CHIP, detail="codes(3) did not return within 5 s"))
        assert event.message == "codes(3) did not return within 5 s"
        assert event.warning is (kind is ChangeKind.SILENT)
        assert event.subject == str(CHIP)

    @pytest.mark.parametrize("kind", [ChangeKind.OCCURRED, ChangeKind.NOTICED])
    def test_an_unknown_code_says_so_and_what_to_do(self, kind: ChangeKind) -> None:
        event, advice = told(change(kind, known=False), name="")
        assert "80E18005 not in the fault table" in event.message
        assert advice.reason is EventReason.UNKNOWN_CODE
        assert advice.warning
        assert "faults.site_file" in advice.message

    def test_an_unknown_code_that_recovers_needs_no_advice(self) -> None:
        assert [e.reason for e in told(change(ChangeKind.RECOVERED, known=False))] == [EventReason.FAULT_RECOVERED]

    @pytest.mark.parametrize(
        "kind",
        [ChangeKind.UNATTRIBUTED, ChangeKind.DISCARDED, ChangeKind.CARRIED, ChangeKind.INVENTORY, ChangeKind.COMPLETE],
    )
    def test_what_is_no_news_about_a_chip_is_no_event(self, kind: ChangeKind) -> None:
        assert told(change(kind)) == []

    def test_a_storm_is_told_by_its_first_events_and_a_number(self) -> None:
        events = told(*[change(ChangeKind.OCCURRED)] * 10_000)
        assert len(events) == MAX_EVENTS_PER_STEP + 1
        assert events[-1].message == f"and {10_000 - MAX_EVENTS_PER_STEP} more changes in the same moment"
        assert events[-1].warning

    def test_a_storm_of_unknown_codes_stays_bounded_too(self) -> None:
        assert len(told(*[change(ChangeKind.OCCURRED, known=False)] * 1000)) <= MAX_EVENTS_PER_STEP + 2

    def test_exactly_the_limit_needs_no_number(self) -> None:
        events = told(*[change(ChangeKind.RECOVERED)] * MAX_EVENTS_PER_STEP, change(ChangeKind.COMPLETE))
        assert [e.reason for e in events] == [EventReason.FAULT_RECOVERED] * MAX_EVENTS_PER_STEP


class TestRegistry:
    @pytest.mark.parametrize("name", DECLARED)
    def test_a_declared_metric_takes_its_own_kind_and_labels_and_nothing_else(self, name: str) -> None:
        declared = DECLARED[name]
        registry = Registry()
        takes = {Kind.COUNTER: registry.count, Kind.GAUGE: registry.set, Kind.HISTOGRAM: registry.observe}
        labels = dict.fromkeys(declared.labels, "x")
        takes[declared.kind](name, 2, **labels)
        assert name in registry.summary()
        for kind, take in takes.items():
            if kind is not declared.kind:
                with pytest.raises(KeyError, match=name):
                    take(name, 1, **labels)
        for wrong in ({**labels, "colour": "red"}, dict.fromkeys(declared.labels[1:], "x")):
            if set(wrong) != set(labels):
                with pytest.raises(KeyError, match=name):
                    takes[declared.kind](name, 1, **wrong)
        assert declared.help.endswith(".")

    @pytest.mark.parametrize("take", ["count", "set", "observe"])
    def test_an_undeclared_name_fails(self, take: str) -> None:
        with pytest.raises(KeyError, match="made_up_total"):
            getattr(Registry(), take)("made_up_total", 1)

    def test_counters_add_gauges_replace_and_labels_are_apart(self) -> None:
        registry = Registry()
        registry.count("events_total", reason="Occur")
        registry.count("events_total", 4, reason="Occur")
        registry.count("events_total", reason="Recovery")
        registry.set("chips", 8)
        registry.set("chips", 7)
        assert registry.value("events_total", reason="Occur") == 5
        assert registry.value("events_total", reason="Recovery") == 1
        assert registry.value("chips") == 7
        assert registry.value("chips_silent") == 0

    def test_the_summary_shows_what_is_not_zero_and_means_of_histograms(self) -> None:
        registry = Registry()
        registry.set("chips", 8)
        registry.set("chips_silent", 0)
        registry.observe("core_step_seconds", 0.002)
        registry.observe("core_step_seconds", 0.004)
        registry.observe("publish_latency_seconds", 99.0, object="device_info")
        assert registry.summary() == (
            "chips=8 core_step_seconds=2 mean_ms=3.00 publish_latency_seconds{object=device_info}=1 mean_ms=99000.00"
        )

    def test_an_event_in_the_log_is_counted_by_its_reason(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(logging.getLogger("nodeagent"), "propagate", True)  # an earlier test may have set up logs
        registry = Registry()
        sink = LogEvents(registry)
        with caplog.at_level("INFO", logger="nodeagent.events"):
            sink.emit(Event(EventReason.CHIP_SILENT, "hangs", warning=True, subject="chip 3 (phy 3)"))
            sink.emit(Event(EventReason.DRIVER_READY, "8 chips"))
        assert registry.value("events_total", reason="ChipDoesNotAnswer") == 1
        assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
            ("WARNING", "ChipDoesNotAnswer chip 3 (phy 3): hangs"),
            ("INFO", "DriverReady 8 chips"),
        ]


def test_a_storm_of_fault_events_is_bounded_in_the_log_and_hides_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Registry()
    sink = LogEvents(metrics)
    logging.getLogger("nodeagent").propagate = True
    with caplog.at_level(logging.INFO, "nodeagent.events"):
        for number in range(5000):
            sink.emit(Event(EventReason.FAULT_OCCURRED, f"fault {number}", True))
        sink.emit(Event(EventReason.DRIVER_LOST, "the host ended", True))
    lines = [record.getMessage() for record in caplog.records]
    # The loop may cross the border of a second or two, each of which admits its own.
    assert 50 <= sum("fault" in line for line in lines) < 1000
    assert any("the host ended" in line for line in lines)
    assert metrics.value("events_total", reason="Occur") == 5000
