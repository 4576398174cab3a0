"""The board as `scan`, `/state` and `why node` show it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from kit.board import CPU_1D, PORT_17, PSU_9, SYSTEM_31, BoardBench, at, config_of, seen, silent

from nodeagent.cli import scan_node, why_node
from nodeagent.core.board import BoardFact
from nodeagent.policy.board_listing import BoardAccess, board_json
from nodeagent.policy.board_why import explain_board

ACCESS = BoardAccess("/dev/ipmi0", "2102ABC")
START_MS = at(0).wall_ms


def board(*facts: BoardFact, source: str = "daemon") -> dict[str, Any]:
    bench = BoardBench(config_of().table)
    for fact in facts:
        bench.take(fact)
    return board_json(bench.state, config_of(), ACCESS, source)


def why(*facts: BoardFact, seconds: float = 300, source: str = "daemon") -> dict[str, Any]:
    bench = BoardBench(config_of().table)
    for fact in facts:
        bench.take(fact)
    return explain_board(bench.state, config_of(), ACCESS, at(seconds), source)


class TestListing:
    def test_everything_that_is_known(self) -> None:
        shown = board(seen(0), seen(60, CPU_1D, PORT_17))
        assert json.loads(json.dumps(shown)) == {
            "known": True,
            "why_unknown": None,
            "transport": "/dev/ipmi0",
            "serial_number": "2102ABC",
            "status": "PreSeparate",
            "level": "PreSeparateFault",
            "stale": False,
            "silent_since_ms": None,
            "why_silent": None,
            "no_way": False,
            "answered_ms": START_MS + 60_000,
            "devices": [{"device_type": "CPU", "device_id": 1, "level": "PreSeparateFault", "codes": ["0000001D"]}],
            "alarms": [
                {
                    "code": "0000001D",
                    "name": "name of 0000001D",
                    "name_zh": None,
                    "device_type": "CPU",
                    "device_id": 1,
                    "level": "PreSeparateFault",
                    "severity": "critical",
                    "raised_ms": 1_720_000_000_000,
                    "since_ms": START_MS + 60_000,
                },
                {
                    "code": "29000017",
                    "name": "no table names it",
                    "name_zh": None,
                    "device_type": "Port",
                    "device_id": 255,
                    "level": None,
                    "severity": "minor",
                    "raised_ms": 1_720_000_004_000,
                    "since_ms": START_MS + 60_000,
                },
            ],
        }

    def test_one_look_has_no_history(self) -> None:
        assert board(seen(0, CPU_1D), source="bmc")["alarms"][0]["since_ms"] is None

    def test_before_the_first_good_poll(self) -> None:
        nothing = board()
        assert (nothing["known"], nothing["status"], nothing["why_unknown"]) == (
            False,
            None,
            "the BMC has not answered yet",
        )
        failed = board(silent(0, "no such device"))
        assert failed["why_unknown"] == "the BMC gives no answer: no such device"
        assert (failed["known"], failed["stale"], failed["silent_since_ms"]) == (False, False, START_MS)
        bench = BoardBench(None)
        bench.take(seen(0, CPU_1D))
        early = board_json(bench.state, None, ACCESS)
        assert (early["known"], early["alarms"]) == (False, [])
        assert early["why_unknown"] == "the table of node faults is not loaded yet"

    def test_silence_keeps_what_was_known(self) -> None:
        shown = board(seen(0, CPU_1D), silent(60), silent(120), silent(180, "timeout"))
        assert (shown["known"], shown["stale"], shown["why_silent"]) == (True, True, "timeout")
        assert (shown["silent_since_ms"], shown["answered_ms"]) == (START_MS + 60_000, START_MS)
        assert shown["status"] == "PreSeparate"

    def test_a_severity_that_ipmi_does_not_know(self) -> None:
        assert board(seen(0, replace(CPU_1D, severity=9)))["alarms"][0]["severity"] == "severity 9"


class TestWhy:
    def test_which_alarm_decides_by_which_line_and_what_ends_it(self) -> None:
        report = why(seen(240, CPU_1D, SYSTEM_31, PSU_9, PORT_17), seconds=250)
        assert json.loads(json.dumps(report)) == report
        decides = {fault["code"]: (fault["decides"], fault["said_by"]) for fault in report["faults"]}
        assert decides == {
            "0000001D": (False, "node.yaml:1"),
            "03000009": (False, "node.yaml:3"),
            "2C000031": (True, "node.yaml:4"),
        }
        assert [alarm["code"] for alarm in report["unlisted"]] == ["29000017"]
        assert report["ends"] == (
            "NodeStatus becomes PreSeparate with the first good poll in which the alarm 2C000031 is gone,"
            " or with a table that gives another level"
        )
        assert report["last_try"] == {
            "good": True,
            "at_ms": START_MS + 240_000,
            "age_s": 10.0,
            "failed_in_a_row": 0,
            "why": None,
        }
        assert report["published"] == {
            "FaultDevList": "names 3 code(s) of 3 device(s); 1 alarm(s) are left out, no table lists them",
            "NodeStatus": "'UnHealthy': the worst level of them is SeparateFault",
        }
        assert report["configuration"] == {"version": "v1", "layers": ["node.yaml"]}

    def test_several_that_decide(self) -> None:
        report = why(seen(0, CPU_1D, replace(CPU_1D, device_id=2), PSU_9))
        assert report["ends"].startswith(
            "NodeStatus becomes Healthy with the first good poll in which the 2 alarms of level"
            " PreSeparateFault are gone"
        )

    def test_mild_ones_only(self) -> None:
        report = why(seen(0, PSU_9))
        assert (report["status"], report["level"]) == ("Healthy", "NotHandleFault")
        assert report["ends"].startswith("NodeStatus stays Healthy, with less to list, with the first good poll")

    def test_the_last_try_is_the_failed_one(self) -> None:
        report = why(seen(0, CPU_1D), silent(60), silent(120, "timeout"), seconds=125)
        assert report["last_try"] == {
            "good": False,
            "at_ms": START_MS + 120_000,
            "age_s": 5.0,
            "failed_in_a_row": 2,
            "why": "timeout",
        }

    def test_nothing_known(self) -> None:
        report = why()
        assert (report["known"], report["faults"], report["last_try"], report["ends"]) == (False, [], None, None)
        assert report["published"] == {
            "nothing": "no poll was judged yet, so an object of an earlier run stays as it is"
        }


class TestScanText:
    def test_a_line_for_each_alarm(self) -> None:
        assert scan_node.lines(board(seen(60, CPU_1D, PORT_17))) == [
            "board: 2 alarms, node PreSeparate (PreSeparateFault), 1 in no table",
            "DEVICE    LEVEL             ALARM",
            "CPU 1     PreSeparateFault  0000001D name of 0000001D, since 2025-10-09 08:54:20 UTC",
            "Port 255  in no table       29000017 no table names it, since 2025-10-09 08:54:20 UTC",
        ]

    def test_healthy_silent_unknown_and_not_watched(self) -> None:
        assert scan_node.lines(board(seen(0))) == ["board: 0 alarms, node Healthy"]
        assert scan_node.lines(board(seen(0), silent(60, "timeout"))) == [
            "board: 0 alarms, node Healthy, no answer since 2025-10-09 08:54:20 UTC: timeout"
        ]
        assert scan_node.lines(board()) == ["board: nothing is known, the BMC has not answered yet"]
        assert scan_node.lines(None) == []

    @pytest.mark.parametrize(
        ("facts", "code"),
        [
            ([], 2),
            ([seen(0)], 0),
            ([seen(0, PORT_17)], 0),
            ([seen(0, PSU_9)], 1),
            ([seen(0), silent(60)], 0),
            ([seen(0), silent(60), silent(120), silent(180)], 2),
            ([seen(0, CPU_1D), silent(60), silent(120), silent(180)], 1),
        ],
    )
    def test_exit_codes(self, facts: list[BoardFact], code: int) -> None:
        assert scan_node.verdict(board(*facts)) == code
        assert scan_node.verdict(why(*facts)) == code

    def test_a_board_that_is_not_watched_does_not_count(self) -> None:
        assert scan_node.verdict(None) == 0


class TestWhyText:
    def test_all_of_it(self) -> None:
        text = why_node.as_text(why(seen(240, PSU_9, SYSTEM_31, PORT_17)))
        assert text.splitlines() == [
            "board, asked through /dev/ipmi0, serial number 2102ABC",
            "  node level     SeparateFault -> UnHealthy, for the whole node",
            "  last poll      good, 60 s ago",
            "faults",
            "  2C000031 SeparateFault  System 255: name of 2C000031  <- decides",
            "    seen since 2025-10-09 08:57:20 UTC, raised 2024-07-03 09:46:43 UTC by the clock of the BMC, critical;"
            " node.yaml:4",
            "  03000009 NotHandleFault  PSU 2: name of 03000009",
            "    seen since 2025-10-09 08:57:20 UTC, raised 2024-07-03 09:46:42 UTC by the clock of the BMC, minor;"
            " node.yaml:3",
            "left out: 1 alarm in no table of node faults, published nowhere",
            "  29000017  Port 255: no table names it",
            "    seen since 2025-10-09 08:57:20 UTC, raised 2024-07-03 09:46:44 UTC by the clock of the BMC, minor",
            "ends: NodeStatus becomes Healthy with the first good poll in which the alarm 2C000031 is gone,"
            " or with a table that gives another level",
            "published",
            "  FaultDevList: names 2 code(s) of 2 device(s); 1 alarm(s) are left out, no table lists them",
            "  NodeStatus: 'UnHealthy': the worst level of them is SeparateFault",
            "configuration v1 from node.yaml",
        ]

    def test_silence(self) -> None:
        lines = why_node.as_text(
            why(seen(0), silent(60), silent(120), silent(180, "timeout"), seconds=200)
        ).splitlines()
        assert lines[2:4] == [
            "  the BMC gives no answer since 2025-10-09 08:54:20 UTC (timeout); what is shown may be old",
            "  last poll      failed, number 3 in a row, 20 s ago",
        ]
        once = why_node.as_text(why(seen(0), silent(60, "timeout"), seconds=62))
        assert "(timeout); this is not told to anybody before the third failure" in once

    def test_nothing_known(self) -> None:
        assert why_node.as_text(why(silent(0, "timeout"), seconds=1)).splitlines()[:2] == [
            "board, asked through /dev/ipmi0, serial number 2102ABC",
            "  nothing is known, the BMC gives no answer: timeout",
        ]

    def test_many_that_are_left_out(self) -> None:
        text = why_node.as_text(why(seen(0, *(replace(PORT_17, device_id=number) for number in range(30)))))
        assert "  and 10 more" in text.splitlines()

    def test_one_look(self) -> None:
        text = why_node.as_text(why(seen(0, CPU_1D), source="bmc"))
        assert "seen since" not in text
