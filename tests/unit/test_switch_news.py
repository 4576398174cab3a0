"""What people hear of switches: Events, metrics, `scan`, `why`, `explain`."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.engine import at, occur
from kit.switches import B3, B4, B5, B6, B8, B9, B10, SwitchBench, recovery, storm

from nodeagent.cli import scan, scan_switches, why_switch
from nodeagent.cli.main import main
from nodeagent.core.clock import SystemClock
from nodeagent.core.model import ChipId, Family, NodeView
from nodeagent.core.observation import CarriedOver, InventorySeen, SourceComplete, SwitchLibraryFound, SwitchSilent
from nodeagent.core.switch import SwitchRecord
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.announce import events_of
from nodeagent.daemon.core_loop import CoreLoop
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.socket_api import SocketApi
from nodeagent.policy.listing import LibraryFacts, node_json
from nodeagent.policy.switch_listing import hints
from nodeagent.policy.switch_why import explain_switch
from nodeagent.policy.why import as_json, explain_chip

UNLISTED = replace(B9, alarm_id=0x00ABCDEF)


def news(bench: SwitchBench) -> list[Event]:
    assert bench.last is not None

    def hints_of(chip: ChipId) -> str:
        return "; ".join(hints(bench.view.switch, chip.physical_id))

    return events_of(bench.last.changes, bench.table.text_of, lambda _: "name", hints_of)


class TestEvents:
    def test_a_fault_has_code_name_level_and_peer(self) -> None:
        bench = SwitchBench()
        bench.events(1, B3)
        message = "[0x08520003,na,npu,na] Switch port is down (port towards an NPU), level Separate, towards npu 5"
        assert news(bench) == [Event(EventReason.FAULT_OCCURRED, message, True, "switch 2 port 11")]
        bench.events(2, recovery(B3))
        assert news(bench) == [Event(EventReason.FAULT_RECOVERED, message, False, "switch 2 port 11")]

    def test_a_storm_is_one_event_for_each_code(self) -> None:
        bench = SwitchBench()
        bench.events(1, *storm())
        events = news(bench)
        assert len(events) == 6 + 7, "three codes towards two kinds of peers, and seven planes"
        ports = next(e for e in events if e.message.startswith("[0x08520003,na,L2,na]"))
        assert "112 times: switch 0 port 32, switch 0 port 33, " in ports.message
        assert ports.message.endswith("and 104 more")
        assert ports.subject == "switches"

    def test_a_library_gone_mad_is_told_by_a_few(self) -> None:
        bench = SwitchBench()
        bench.events(1, *(replace(B3, alarm_id=n + 1) for n in range(200)))
        events = news(bench)
        assert len(events) <= 50
        assert events[-1].message == "and 180 more kinds of switch news in the same moment"

    def test_a_plane_that_goes_down_and_comes_back(self) -> None:
        bench = SwitchBench()
        bench.events(1, *B8)
        raised = news(bench)[-1]
        assert (raised.reason, raised.warning, raised.subject) == (EventReason.RAISED, True, "switch 3")
        assert "the L1-L2 plane is down" in raised.message
        bench.events(2, recovery(B8[0]))
        released = news(bench)[-1]
        assert (released.reason, released.warning) == (EventReason.RELEASED, False)

    def test_an_unlisted_code_says_what_to_do(self) -> None:
        bench = SwitchBench()
        bench.events(1, UNLISTED)
        occurred, unknown = news(bench)
        assert "not in the fault table, level NotHandle" in occurred.message
        assert unknown.reason is EventReason.UNKNOWN_CODE
        assert "[0x00abcdef,155913,cpu,na] is in no switch table" in unknown.message

    def test_what_is_odd_about_a_record_is_part_of_its_event(self) -> None:
        bench = SwitchBench()
        bench.events(1, replace(B3, chip_id=200))
        (event,) = news(bench)
        assert event.message.endswith("switch chip 200 is not in 0..6")

    def test_an_event_of_a_chip_has_a_hint_when_a_port_towards_it_is_ill(self) -> None:
        bench = SwitchBench()
        bench.events(1, B3, B4)
        bench.step(2, occur(0x80E18005, 2, chip=5), occur(0x80E18005, 2, chip=6))
        with_hint, without = news(bench)
        assert with_hint.message.endswith("; hint: switch 2 port 11 towards it has [0x08520003,na,npu,na] (Separate)")
        assert "hint" not in without.message
        assert bench.chip(5).chip_level.text == "RestartNPU", "no level comes from the switch"
        assert bench.chip(3).healthy

    def test_hints_are_few(self) -> None:
        bench = SwitchBench()
        bench.events(1, *(replace(B3, port_id=port) for port in range(10)), replace(B5, peer_id=5), B10)
        found = hints(bench.view.switch, 5)
        assert len(found) == 5
        assert found[-1] == "and 6 more"


class TestScan:
    def found(self, bench: SwitchBench) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(
            json.dumps(node_json(bench.state, bench.config, LibraryFacts("lib"), "daemon"))
        )
        return answer

    def test_faults_as_json_and_as_lines(self) -> None:
        bench = SwitchBench()
        bench.events(1, B3, B10, UNLISTED)
        switches = self.found(bench)["switches"]
        assert (switches["level"], switches["node_status"], switches["known"]) == ("Separate", "UnHealthy", True)
        assert switches["faults"][0] == {
            "code": "[0x08520003,na,npu,na]",
            "name": "Switch port is down (port towards an NPU)",
            "level": "Separate",
            "known": True,
            "switch_chip": 2,
            "port": 11,
            "peer": "npu 5",
            "severity": 2,
            "once": False,
            "since_ms": B3.raised_ms,
        }
        assert (switches["faults"][1]["port"], switches["faults"][1]["peer"]) == (None, None)
        assert scan_switches.lines(switches) == [
            "switches: 3 faults, node UnHealthy (Separate)",
            "SWITCH  PORT  PEER   LEVEL      FAULT",
            "2       11    npu 5  Separate   [0x08520003,na,npu,na] Switch port is down (port towards an NPU),"
            " since 2025-10-09 08:53:10 UTC",
            "0       -     -      Separate   [0x00f103b0,155907,na,na] Fatal internal fault of the forwarding chip,"
            " since 2025-10-09 08:53:10 UTC",
            "1       4     cpu 0  NotHandle  [0x00abcdef,155913,cpu,na] not in the fault table,"
            " since 2025-10-09 08:53:10 UTC",
        ]
        whole = {**self.found(bench), "board": None, "storage": []}
        assert scan.as_text(whole).splitlines()[-5] == "switches: 3 faults, node UnHealthy (Separate)"

    def test_states_without_faults(self) -> None:
        assert scan_switches.lines(self.found(SwitchBench())["switches"]) == ["switches: 0 faults, node Healthy"]
        missing = SwitchBench(found=False, listed=False)
        assert scan_switches.lines(self.found(missing)["switches"]) == [
            "switches: nothing is known, there is no LingQu library"
        ]
        early = SwitchBench(listed=False)
        assert scan_switches.lines(self.found(early)["switches"]) == [
            "switches: nothing is known, the LingQu library has not answered yet"
        ]
        early.step(1, SwitchSilent("returned -8005", at(1)))
        assert self.found(early)["switches"]["silent_since_ms"] is not None
        assert scan_switches.lines(self.found(early)["switches"]) == [
            "switches: nothing is known, the LingQu library gives no answer: returned -8005"
        ]
        silent = SwitchBench()
        silent.step(1, SwitchSilent("returned -8005", at(1)))
        (line,) = scan_switches.lines(self.found(silent)["switches"])
        assert line.endswith("no answer since 2025-10-09 08:53:21 UTC: returned -8005")

    def test_other_products_have_none(self) -> None:
        assert self.found(SwitchBench(family=Family.A2))["switches"] is None
        assert scan_switches.lines(None) == []

    def test_the_lines_of_a_plane_and_of_a_time_beyond_calendars(self) -> None:
        bench = SwitchBench()
        bench.events(1, *B8, replace(B3, raised_ms=2**62))
        lines = scan_switches.lines(self.found(bench)["switches"])
        assert lines[0] == "switches: 17 faults, node UnHealthy (Separate), L1-L2 plane down: switch 3"
        assert lines[-1].endswith(f"since {2**62} ms")


class TestWhy:
    def test_a_port(self) -> None:
        bench = SwitchBench()
        bench.events(1, B3, replace(B3, port_id=12), replace(B10, chip_id=2), B6)
        report = explain_switch(bench.state, 2, 11, bench.config)
        assert report is not None
        assert [(f["code"], f["port"]) for f in report["faults"]] == [
            ("[0x08520003,na,npu,na]", 11),
            ("[0x00f103b0,155907,na,na]", None),
        ]
        assert report["faults"][0]["said_by"] == "listed as Separate at fault_codes/switch.yaml:24"
        text = why_switch.as_text(report)
        assert text.startswith("switch 2 port 11\n  node level     Separate -> UnHealthy, for the whole node\n")
        assert "  [0x08520003,na,npu,na] Separate  port 11 towards npu 5: Switch port is down" in text
        whole = explain_switch(bench.state, 2, None, bench.config)
        assert whole is not None
        assert len(whole["faults"]) == 3

    def test_a_twin_and_a_carried_fault_say_where_their_level_comes_from(self) -> None:
        bench = SwitchBench()
        bench.events(1, B9)
        report = explain_switch(bench.state, 1, 4, bench.config)
        assert report is not None
        assert report["faults"][0]["said_by"].endswith(", as [0x00f1fef5,155913,cpu,na]")

    def test_a_plane(self) -> None:
        bench = SwitchBench()
        bench.events(1, *B8)
        report = explain_switch(bench.state, 3, None, bench.config)
        assert report is not None
        assert report["plane"] == {"down": True, "ports_with_faults": 16, "needed": 16}
        assert "down: 16 of its ports have faults" in why_switch.as_text(report)

    def test_nothing_known_and_no_switches(self) -> None:
        missing = SwitchBench(found=False, listed=False)
        report = explain_switch(missing.state, 0, None, missing.config)
        assert report is not None
        assert why_switch.as_text(report) == "switch 0: nothing is known of switches, there is no LingQu library"
        other = SwitchBench(family=Family.A2)
        assert explain_switch(other.state, 0, None, other.config) is None

    def test_a_chip_has_the_hint(self) -> None:
        bench = SwitchBench()
        bench.events(1, B3)
        report = explain_chip(bench.state, 5, bench.config, at(2))
        assert report is not None
        assert as_json(report)["hints"] == ["switch 2 port 11 towards it has [0x08520003,na,npu,na] (Separate)"]

    @pytest.mark.parametrize(
        "words", [["switch"], ["switch", "x"], ["switch", "2/"], ["2", "3"], ["-1"], ["switch", "2/3/4"]]
    )
    def test_a_place_that_is_none_is_one_clear_line(self, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            main(["why", *words])
        assert caught.value.code == 2
        assert "error:" in capsys.readouterr().err


class TestExplain:
    def explained(self, capsys: pytest.CaptureFixture[str], *codes: str) -> tuple[int, list[dict[str, Any]]]:
        status = main(["explain", "--output", "json", *codes])
        return status, json.loads(capsys.readouterr().out)

    @pytest.mark.parametrize(
        "text", ["[0x00f1fef5,155914,npu,na]", "[0X00F1FEF5, 155914, NPU, na]", "f1fef5,155914,npu,"]
    )
    def test_a_code_in_any_spelling(self, text: str, capsys: pytest.CaptureFixture[str]) -> None:
        status, (facts,) = self.explained(capsys, text)
        assert status == 0
        assert (facts["code"], facts["level"], facts["node_status"]) == (
            "[0x00f1fef5,155914,npu,na]",
            "RestartRequest",
            "UnHealthy",
        )

    @pytest.mark.parametrize("text", ["0x08520003", "08520003", "8520003", "[0x08520003]"])
    def test_an_alarm_id_alone(self, text: str, capsys: pytest.CaptureFixture[str]) -> None:
        status, found = self.explained(capsys, text)
        assert (status, [facts["peer"] for facts in found]) == (0, ["cpu", "npu", "L2"])

    def test_an_old_alarm_id_and_chip_codes_beside_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, found = self.explained(capsys, "0x00f1ff09", "80E01801")
        assert status == 0
        assert len(found) == 14
        assert found[0]["twin"] == "[0x00f1fef5,155912,cpu,na]"
        assert found[-1]["code"] == "80E01801"

    def test_an_unlisted_one(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, (facts,) = self.explained(capsys, "[0x1,2,npu,na]")
        assert (status, facts["known"], facts["level"]) == (1, False, "NotHandle")

    @pytest.mark.parametrize("language", ["en", "zh", "both"])
    def test_as_text(self, language: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["explain", "[0x08520003,na,L2,na]", "--lang", language]) == 0
        text = capsys.readouterr().out
        assert ("交换芯片端口断开" in text) is (language != "en")
        assert ("port towards an L2 switch" in text) is (language != "zh")


class _Loop:
    """A core loop that steps when told to."""

    def __init__(self, config_of: SwitchBench) -> None:
        self.events: list[Event] = []
        self.saved: list[Any] = []
        self.views: list[NodeView] = []
        self.metrics = Registry()
        self.core = CoreLoop(
            SystemClock(),
            config_of.config,
            str,
            self.views.append,
            lambda: None,
            lambda memory, _: self.saved.append(memory),
            self,
            self.metrics,
        )

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def take(self, facts: Iterable[Any]) -> None:
        self.core._step(list(facts), SystemClock().now())


def test_metrics_memory_and_the_question_of_the_socket(tmp_path: Path) -> None:
    bench = SwitchBench()
    loop = _Loop(bench)
    now = SystemClock().now()
    assert bench.state.inventory is not None
    start = [InventorySeen(bench.state.inventory, now), CarriedOver((), now), SourceComplete(now)]
    loop.take(start)
    assert loop.metrics.value("switches_known") == 0
    loop.take([SwitchSilent("hangs", SystemClock().now())])
    assert (loop.metrics.value("switches_known"), loop.metrics.value("switches_silent")) == (0, 1)
    loop.take([SwitchLibraryFound(False, SystemClock().now())])
    assert (loop.metrics.value("switches_known"), loop.metrics.value("switches_silent")) == (0, 0)
    loop.take([SwitchLibraryFound(True, SystemClock().now())])
    loop.take(_at_once(B3, B10, UNLISTED, replace(B4, chip_id=200), *B8))
    value = loop.metrics.value
    assert [value("switch_faults", level=name) for name in ("Separate", "SubHealthFault", "NotHandle")] == [2, 1, 17]
    assert value("switch_chips_unhealthy") == 3, "two by a fault, one by its plane"
    assert (value("switch_faults_unlisted"), value("switches_known"), value("switches_silent")) == (1, 1, 0)
    assert value("switch_odd_records_total") == 1
    assert value("unknown_codes_total", code="[0x00abcdef,155913,cpu,na]") == 1
    assert len(loop.saved[-1]["switches"]) == 20
    socket = SocketApi(tmp_path / "s", loop.core, SystemClock())
    ask = json.dumps({"ask": "why_switch", "switch_chip": 2, "port": 11}).encode()
    answer = socket._answer(ask)["answer"]
    assert answer["faults"][0]["code"] == "[0x08520003,na,npu,na]"
    for bad in ({"switch_chip": "2"}, {"switch_chip": 2, "port": "x"}, {}):
        assert socket._answer(json.dumps({"ask": "why_switch"} | bad).encode()) == {"ok": True, "answer": None}


def _at_once(*records: SwitchRecord) -> list[Any]:
    from nodeagent.core.observation import SwitchEventSeen

    now = SystemClock().now()
    return [SwitchEventSeen(record, now) for record in records]
