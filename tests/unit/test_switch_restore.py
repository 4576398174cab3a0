"""Switch faults over a restart: the published object, the state file, first times (decisions 4 and 17)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.engine import EPOCH_MS, at, switch_event
from kit.switches import B3, B4, B5, B8, B9, B10, B11, SwitchBench, recovery, storm

from nodeagent.core.observation import CarriedOver, CarriedSwitches, SwitchLibraryFound
from nodeagent.core.switch import SwitchRecord
from nodeagent.core.switch_codes import SwitchLevel
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.state_file import FILE_NAME, StateFile
from nodeagent.policy.state import ChangeKind
from nodeagent.policy.switch_memory import SWITCHES, recall_switches, remember_switches
from nodeagent.render.device_info import fingerprint, render_device_info
from nodeagent.render.switch_reading import carried_switches


def published(*records: SwitchRecord) -> dict[str, str]:
    """The object of a node with these faults."""
    bench = SwitchBench()
    bench.events(1, *records)
    return render_device_info(bench.view, 1_760_000_100)


def restarted(switches: CarriedSwitches | None, **more: bool) -> SwitchBench:
    return SwitchBench(restored=CarriedOver((), at(-1000), switches=switches), listed=False, **more)


class TestPublishedObject:
    """Without a state file the object is all there is."""

    @pytest.mark.parametrize("records", [(), (B3,), (B5, B4), (B10,), B8, tuple(storm()[:300])])
    def test_the_same_is_published_until_the_library_answers(self, records: tuple[SwitchRecord, ...]) -> None:
        before = published(*records)
        bench = restarted(carried_switches(before), found=None)
        after = render_device_info(bench.view, 1_760_000_200)
        assert fingerprint(after) == fingerprint(before)
        bench.step(1, SwitchLibraryFound(True, at(1)))
        assert fingerprint(render_device_info(bench.view, 1_760_000_200)) == fingerprint(before)

    def test_the_first_answer_decides(self) -> None:
        bench = restarted(carried_switches(published(B3, B4)))
        bench.answer(1, B4, B5)
        assert {code for code, _, _ in bench.faults} == {"[0x00f10509,132332,npu,na]", "[0x08520003,na,L2,na]"}
        assert bench.last is not None
        kinds = {(c.kind, c.switch.place) for c in bench.last.changes if c.switch is not None}
        assert kinds == {(ChangeKind.VANISHED, "switch 2 port 11"), (ChangeKind.OCCURRED, "switch 3 port 40")}

    def test_a_recovery_before_the_first_answer_counts(self) -> None:
        bench = restarted(carried_switches(published(B3)))
        bench.events(1, recovery(B3))
        assert bench.node == ("", "Healthy")

    def test_a_time_0_keeps_the_published_first_time(self) -> None:
        bench = restarted(carried_switches(published(replace(B3, raised_ms=0))))
        bench.answer(500, replace(B3, raised_ms=0))
        assert [f.record.raised_ms for f in bench.view.switch.faults] == [EPOCH_MS + 1000]

    def test_the_published_level_stays_until_the_first_answer_whatever_the_table_says_now(self) -> None:
        carried = carried_switches(published(B3))
        bench = SwitchBench(
            SwitchBench().config.switches.with_levels([]),
            restored=CarriedOver((), at(-1000), switches=carried),
            listed=False,
        )
        assert bench.node == ("Separate", "UnHealthy")
        bench.answer(1, B3)
        assert bench.node == ("NotHandle", "Healthy")

    def test_an_unlisted_code_keeps_its_effect_on_the_node(self) -> None:
        unlisted = replace(B9, alarm_id=0x00ABCDEF)
        carried = carried_switches(published(unlisted))
        assert carried == CarriedSwitches((), SwitchLevel.NOT_HANDLE)
        bench = restarted(carried)
        assert bench.node == ("NotHandle", "Healthy")
        bench.answer(1)
        assert bench.node == ("", "Healthy")

    def test_notices_were_reported(self) -> None:
        assert carried_switches(published(B11)) == CarriedSwitches((), None)

    def test_without_a_library_the_zero_value_takes_its_place(self) -> None:
        """Decision 10."""
        bench = restarted(carried_switches(published(B3)), found=False)
        assert bench.node == ("", "")

    def test_an_object_read_late_adds_first_times_only(self) -> None:
        bench = SwitchBench()
        bench.answer(200, replace(B3, raised_ms=0))
        carried = carried_switches(published(replace(B3, raised_ms=0), B4))
        bench.step(201, CarriedOver((), at(201), switches=carried))
        assert [f.record.raised_ms for f in bench.view.switch.faults] == [EPOCH_MS + 1000]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "null",
            "[]",
            "{}",
            '{"FaultCode":null,"FaultLevel":"","UpdateTime":0,"NodeStatus":"","FaultTimeAndLevelMap":null}',
            '{"FaultCode":["x"],"FaultLevel":"","FaultTimeAndLevelMap":{}}',
            '{"FaultCode":["{}"],"FaultLevel":"","FaultTimeAndLevelMap":{}}',
            '{"FaultCode":[],"FaultLevel":"Worse","FaultTimeAndLevelMap":{}}',
            "[" * 100_000,
        ],
    )
    def test_what_says_nothing(self, text: str) -> None:
        assert carried_switches({"SwitchInfoCfg": text}) is None

    def test_no_object_and_a_foreign_value(self) -> None:
        assert carried_switches({}) is None
        assert carried_switches({"SwitchInfoCfg": 5}) is None

    @given(st.data())
    def test_damaged_texts_raise_nothing(self, data: st.DataObject) -> None:
        text = published(B3)["SwitchInfoCfg"]
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        carried_switches({"SwitchInfoCfg": text[:start] + data.draw(st.text(max_size=5)) + text[end:]})


class TestStateFile:
    """The file knows unlisted codes and faults that no write took."""

    def test_over_a_real_file(self, tmp_path: Path) -> None:
        bench = SwitchBench()
        unlisted = replace(B9, alarm_id=0x00ABCDEF)
        bench.events(1, replace(B3, raised_ms=0), unlisted, B11)
        StateFile(tmp_path, Registry()).save(remember_switches(bench.state), at(2))
        memory = StateFile(tmp_path, Registry()).load()
        assert memory is not None
        assert memory.chips == {}
        assert memory.switches is not None
        after = restarted(memory.switches)
        assert after.faults == {f for f in bench.faults if f[1] != B11.chip_id}
        assert after.node == ("Separate", "UnHealthy")
        after.answer(900, replace(B3, raised_ms=0), unlisted)
        assert {f.record.raised_ms for f in after.view.switch.faults} == {EPOCH_MS + 1000, B9.raised_ms}

    def test_a_node_without_switches_remembers_nothing_of_them(self) -> None:
        assert remember_switches(SwitchBench(found=None, listed=False).state) == {}
        assert remember_switches(SwitchBench().state) == {SWITCHES: []}

    def test_a_storm_stays_far_below_the_limit_of_the_file(self, tmp_path: Path) -> None:
        bench = SwitchBench()
        bench.events(1, *storm())
        StateFile(tmp_path, Registry()).save(remember_switches(bench.state), at(2))
        assert (tmp_path / FILE_NAME).stat().st_size < 100_000

    @pytest.mark.parametrize(
        "odd",
        [
            None,
            {},
            "x",
            [5],
            [[1, 2]],
            [["a"] * 9],
            [[1, 2, 3, 4, 5, 6, 7, 1, 0]],
            [[-1, 2, 3, 4, 5, 6, 7, 1, 9]],
            [[1, 2, 3, 4, 5, 6, 7, 1, 2**63]],
            [[1, 2, 3, 4, 5, 6, 7, True, 9]],
            [[1] * 9] * 1025,
        ],
    )
    def test_odd_memory_is_counted_and_done_without(self, tmp_path: Path, odd: object) -> None:
        with pytest.raises(ValueError, match=r"switch|time"):
            recall_switches(odd)
        body = {"version": 1, "boot_id": "", "chips": {}, "saved_at_s": 1, SWITCHES: odd}
        (tmp_path / FILE_NAME).write_text(json.dumps(body))
        metrics = Registry()
        memory = StateFile(tmp_path, metrics).load()
        assert memory is not None
        assert memory.switches is None
        assert metrics.value("state_file_errors_total") == 1


@given(st.lists(st.tuples(st.sampled_from(storm()[:30]), st.booleans()), max_size=20))
def test_a_kill_at_any_moment_loses_nothing(events: list[tuple[SwitchRecord, bool]]) -> None:
    """The memory alone gives the same texts as the run that was killed."""
    bench = SwitchBench()
    for number, (record, recovers) in enumerate(events, 1):
        bench.step(number, switch_event(recovery(record) if recovers else record, number))
    memory = json.loads(json.dumps(remember_switches(bench.state)))
    after = restarted(recall_switches(memory[SWITCHES]))
    assert after.text == bench.text
