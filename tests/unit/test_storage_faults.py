"""Faults of storage clients along the timelines of the sheet (node-faults 11.3, 12, T16 - T19)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.instant import Instant
from nodeagent.core.storage import (
    StorageClient,
    StorageFact,
    StorageFault,
    StorageInstance,
    StorageSeen,
    StorageUnread,
)
from nodeagent.policy.storage import StorageState, begin, due_ms, pending, step

DPC, DTFS = StorageClient.DPC, StorageClient.DTFS
PROCESS, MEMORY = StorageFault.DPC_PROCESS, StorageFault.DPC_MEMORY
D_PROCESS, D_LINK = StorageFault.DTFS_PROCESS, StorageFault.DTFS_LINK
Flags = Mapping[int, set[StorageFault]]
"""The instances of a file: the faults of each."""
FAILED, MISSING = "failed", "missing"


def moment(t_s: float, wall_ms: int = 1_760_000_000_000) -> Instant:
    return Instant(7_000_000 + round(1000 * t_s), wall_ms)


def fact(content: Flags | str, at: Instant) -> StorageFact:
    if isinstance(content, str):
        return StorageUnread(content, at, missing=content == MISSING)
    return StorageSeen(tuple(StorageInstance(n, frozenset(f)) for n, f in sorted(content.items())), at)


@dataclass
class Story:
    """Reads as the source does: every 5 s, and at the moment for which the policy asks."""

    state: StorageState
    file: Flags | str = field(default_factory=dict)
    t_s: float = 5
    changes: list[tuple[float, StorageFault, bool | None]] = field(default_factory=list)
    wall: Callable[[float], int] = lambda t_s: 1_760_000_000_000 + round(1000 * t_s)

    def until(self, end_s: float, file: Flags | str) -> "Story":
        """The file says this from the moment of the last change until `end_s`."""
        while self.t_s < end_s:
            at = moment(self.t_s, self.wall(self.t_s))
            before, self.state = self.state, step(self.state, fact(file, at))
            for fault, present in self.state.present.items():
                if present is not before.present[fault]:
                    self.changes.append((self.t_s, fault, present))
            due = due_ms(self.state)
            next_s = self.t_s + 5
            if due is not None and due > at.mono_ms:
                next_s = min(next_s, (due - 7_000_000) / 1000)
            self.t_s = next_s
        return self

    def of(self, fault: StorageFault) -> list[tuple[float, bool | None]]:
        return [(t, present) for t, changed, present in self.changes if changed is fault]


def test_t16_a_process_fault_comes_and_goes_at_once() -> None:
    story = Story(begin(DPC))
    story.until(20, {0: set()}).until(40, {0: {PROCESS}}).until(60, {0: set()}).until(80, {0: set(), 1: {PROCESS}})
    assert story.of(PROCESS) == [(5, False), (20, True), (40, False), (60, True)]
    assert story.of(MEMORY) == []


def test_a_process_fault_lasts_while_one_instance_has_it() -> None:
    story = Story(begin(DPC)).until(20, {0: {PROCESS}, 1: {PROCESS}}).until(40, {0: set(), 1: {PROCESS}})
    assert story.of(PROCESS) == [(5, True)]
    assert story.until(50, {0: set()}).of(PROCESS) == [(5, True), (40, False)]


def t17() -> Story:
    story = Story(begin(DPC))
    return story.until(101, {0: set()}).until(401, {0: {MEMORY}}).until(501, {0: set()}).until(1201, {0: {MEMORY}})


def test_t17_a_shortage_of_memory_must_last_and_be_gone_for_ten_minutes() -> None:
    story = t17()
    assert story.of(MEMORY) == [(1105, True)]  # ten minutes after 505, when it was read first, and not a period more
    assert story.until(1865, {0: set()}).of(MEMORY) == [(1105, True), (1805, False)]


def test_t17_variant_one_bad_reading_begins_the_recovery_anew() -> None:
    story = t17().until(1500, {0: set()}).until(1505, {0: {MEMORY}}).until(2200, {0: set()})
    assert story.of(MEMORY) == [(1105, True), (2105, False)]


def test_the_end_of_a_timer_is_exact_whatever_the_period_hits() -> None:
    story = Story(begin(DPC), t_s=3.217).until(700, {0: {MEMORY}})
    assert story.of(MEMORY) == [(603.217, True)]


def test_recovery_needs_all_instances_and_a_fault_one_and_the_same() -> None:
    story = Story(begin(DPC)).until(500, {0: {MEMORY}, 1: set()}).until(1000, {0: set(), 1: {MEMORY}})
    assert story.of(MEMORY) == []  # a shortage that changes its instance has not lasted
    story.until(1200, {0: set(), 1: {MEMORY}})
    assert story.of(MEMORY) == [(1100, True)]
    story.until(1500, {0: set(), 1: set()}).until(1600, {0: set(), 1: set(), 2: set()})
    assert story.until(2200, {0: set(), 1: set(), 2: set()}).of(MEMORY) == [(1100, True), (2100, False)]


def test_a_faulty_instance_that_is_gone_counts_no_more() -> None:
    story = Story(begin(DPC)).until(700, {0: {MEMORY}, 1: set()}).until(710, {1: set()})
    assert story.of(MEMORY) == [(605, True), (700, False)]


def test_no_instances_are_a_recovery_at_once() -> None:
    story = Story(begin(DPC)).until(700, {0: {MEMORY, PROCESS}}).until(710, {})
    assert story.changes == [(5, PROCESS, True), (605, MEMORY, True), (700, PROCESS, False), (700, MEMORY, False)]


def test_after_a_restart_memory_is_unknown_or_as_it_was_remembered() -> None:
    for believed in (None, True, False):
        remembered = {} if believed is None else {MEMORY: believed}
        well = Story(begin(DPC, remembered)).until(600, {0: set()})
        assert well.state.present[MEMORY] is believed
        assert well.state.present[PROCESS] is False
        assert well.until(606, {0: set()}).state.present[MEMORY] is False
        bad = Story(begin(DPC, remembered)).until(605, {0: {MEMORY}})
        assert bad.state.present[MEMORY] is believed
        assert bad.until(606, {0: {MEMORY}}).state.present[MEMORY] is True


def test_a_remembered_process_fault_ends_with_the_first_good_reading() -> None:
    story = Story(begin(DPC, {PROCESS: True})).until(20, FAILED)
    assert story.state.present[PROCESS] is True
    assert story.until(30, {0: set()}).of(PROCESS) == [(20, False)]


def test_t18_failed_readings_keep_everything() -> None:
    story = Story(begin(DPC)).until(700, {0: {MEMORY, PROCESS}})
    known = story.state
    story.until(2000, FAILED)
    assert story.state.present == known.present == {MEMORY: True, PROCESS: True}
    assert story.state.instances == known.instances
    assert (story.state.problem, story.state.problem_since) == (FAILED, moment(700, story.wall(700)))


def test_t18_an_empty_file_ends_a_process_fault_of_dpc() -> None:
    assert Story(begin(DPC)).until(50, {0: {PROCESS}}).until(60, {}).of(PROCESS) == [(5, True), (50, False)]


def test_a_short_gap_of_readings_is_no_break_and_a_long_one_is() -> None:
    short = Story(begin(DPC)).until(300, {0: {MEMORY}}).until(355, FAILED).until(700, {0: {MEMORY}})
    assert short.of(MEMORY) == [(605, True)]
    long = Story(begin(DPC)).until(300, {0: {MEMORY}}).until(360, FAILED).until(1000, {0: {MEMORY}})
    assert long.of(MEMORY) == [(960, True)]  # 295 was the last good reading, 360 the next
    recovery = Story(begin(DPC, {MEMORY: True})).until(300, {0: set()}).until(360, FAILED).until(1000, {0: set()})
    assert recovery.of(MEMORY) == [(960, False)]


def test_a_timer_whose_end_passes_without_readings_ends_with_the_next_good_one() -> None:
    story = Story(begin(DPC)).until(590, {0: {MEMORY}}).until(620, FAILED).until(630, {0: {MEMORY}})
    assert story.of(MEMORY) == [(620, True)]


def test_the_wall_clock_moves_no_timer() -> None:
    for jump_ms in (6 * 3_600_000, -6 * 3_600_000):
        story = Story(begin(DPC), wall=lambda t, j=jump_ms: 1_760_000_000_000 + (j if t > 300 else 0) + round(t))  # type: ignore[misc]
        assert story.until(1200, {0: {MEMORY}}).of(MEMORY) == [(605, True)]


def test_a_file_that_was_there_is_gone_after_three_readings() -> None:
    story = Story(begin(DPC)).until(700, {0: {MEMORY, PROCESS}}).until(710, MISSING)
    assert story.state.gone_since is None
    story.until(715, MISSING)
    assert story.state.gone_since == moment(710, story.wall(710))
    assert story.state.present == {MEMORY: True, PROCESS: True}
    assert not story.state.instances
    story.until(5000, MISSING)
    assert story.state.present == {MEMORY: True, PROCESS: True}
    assert story.state.gone_since == moment(710, story.wall(710))
    assert story.until(5005, FAILED).state.gone_since is None


def test_a_file_that_never_was_there_is_not_gone() -> None:
    assert Story(begin(DPC)).until(100, MISSING).state.gone_since is None
    assert Story(begin(DPC, {MEMORY: False})).until(100, MISSING).state.gone_since is None
    assert Story(begin(DPC, {MEMORY: True})).until(100, MISSING).state.gone_since is not None


def test_readings_without_a_file_must_follow_each_other() -> None:
    story = Story(begin(DPC)).until(10, {0: set()})
    for _ in range(5):
        story.until(story.t_s + 10, MISSING).until(story.t_s + 5, FAILED)
    assert story.state.gone_since is None


def test_a_module_that_is_loaded_again_has_other_instances() -> None:
    story = Story(begin(DPC)).until(300, {0: {MEMORY}, 1: set()}).until(315, MISSING)
    story.until(1000, {0: {MEMORY}, 5: set()})
    assert story.of(MEMORY) == [(915, True)]  # ten minutes of this load, not of the one before
    assert set(story.state.instances) == {0, 5}
    story.until(1015, MISSING).until(1020, {7: {PROCESS}})
    assert story.state.present == {MEMORY: True, PROCESS: True}
    assert story.until(1620, {7: set()}).of(MEMORY)[1:] == [(1615, False)]


def test_a_reload_between_two_readings_changes_the_instances_alone() -> None:
    story = Story(begin(DPC)).until(300, {0: {MEMORY}}).until(1000, {1: {MEMORY}})
    assert story.of(MEMORY) == [(900, True)]


def test_t19_dtfs_is_judged_at_once() -> None:
    story = Story(begin(DTFS)).until(20, {0: set()}).until(40, {0: set(), 1: {D_PROCESS}})
    story.until(60, {0: set(), 1: {D_LINK}}).until(200, FAILED)
    assert story.changes == [
        (5, D_PROCESS, False),
        (5, D_LINK, False),
        (20, D_PROCESS, True),
        (40, D_PROCESS, False),
        (40, D_LINK, True),
    ]
    assert due_ms(story.state) is None


def test_timers_that_run_are_told() -> None:
    story = Story(begin(DPC)).until(10, {0: {MEMORY}})
    (timer,) = pending(story.state)
    assert (timer.fault, timer.becomes, timer.due_ms) == (MEMORY, True, moment(605).mono_ms)
    assert pending(story.until(610, {0: {MEMORY}}).state) == ()
    (timer,) = pending(story.until(620, {0: set()}).state)
    assert (timer.fault, timer.becomes, timer.due_ms) == (MEMORY, False, moment(1210).mono_ms)


def test_of_several_instances_the_first_bad_and_the_last_good_one_decide() -> None:
    story = Story(begin(DPC)).until(105, {0: {MEMORY}, 1: set()}).until(200, {0: {MEMORY}, 1: {MEMORY}})
    assert due_ms(story.state) == moment(605).mono_ms
    story.until(700, {0: {MEMORY}, 1: {MEMORY}}).until(800, {0: set(), 1: {MEMORY}}).until(900, {0: set(), 1: set()})
    assert due_ms(story.state) == moment(1400).mono_ms


def test_since_is_the_moment_of_the_change_and_none_for_what_is_only_believed() -> None:
    story = Story(begin(DPC, {MEMORY: True})).until(10, {0: {MEMORY}})
    assert dict(story.state.since) == {PROCESS: moment(5, story.wall(5))}
    story.until(700, {0: {MEMORY}})
    assert story.state.since[MEMORY] == moment(605, story.wall(605))
    assert story.state.since[PROCESS] == moment(5, story.wall(5))


# -- against the definition, for any timeline -----------------------------------------

flags = st.sets(st.sampled_from([PROCESS, MEMORY]), max_size=2)
contents = st.dictionaries(st.integers(0, 2), flags, max_size=3) | st.sampled_from([FAILED, MISSING])
stretches = st.lists(
    st.tuples(contents, st.integers(1, 14), st.sampled_from([5, 30, 59, 60, 61, 150])), min_size=1, max_size=12
)


def by_definition(readings: list[tuple[int, Flags | str]], fault: StorageFault, before: bool | None) -> bool | None:
    """The value after the last of all readings, told from the whole history at once."""
    now_s, content = readings[-1]
    if isinstance(content, str):
        return before
    if not content:
        return False
    wait_s = 600 if fault is MEMORY else 0

    def lasted_s(number: int, value: bool) -> int:
        """How long the instance has had this value, back to a break."""
        start_s, missing = now_s, 0
        for t_s, earlier in reversed(readings):
            if isinstance(earlier, str):
                missing = missing + 1 if earlier == MISSING else 0
                if missing == 3:
                    break
                continue
            missing = 0
            if start_s - t_s > 60 or number not in earlier or (fault in earlier[number]) is not value:
                break
            start_s = t_s
        return now_s - start_s

    if any(fault in has and lasted_s(number, True) >= wait_s for number, has in content.items()):
        return True
    if all(fault not in has and lasted_s(number, False) >= wait_s for number, has in content.items()):
        return False
    return before


@given(stretches, st.sampled_from([None, True, False]))
def test_any_timeline_gives_what_the_definition_says(
    stretches: list[tuple[Flags | str, int, int]], believed: bool | None
) -> None:
    state = begin(DPC, {} if believed is None else {MEMORY: believed, PROCESS: believed})
    expected: dict[StorageFault, bool | None] = {MEMORY: believed, PROCESS: believed}
    readings: list[tuple[int, Flags | str]] = []
    t_s = 0
    for content, times, distance_s in stretches:
        for _ in range(times):
            t_s += distance_s
            readings.append((t_s, content))
            expected = {fault: by_definition(readings, fault, value) for fault, value in expected.items()}
            state = step(state, fact(content, moment(t_s)))
            assert dict(state.present) == expected, t_s


@given(stretches)
def test_a_due_moment_is_the_first_at_which_a_reading_changes_something(
    stretches: list[tuple[Flags | str, int, int]],
) -> None:
    state, t_s = begin(DPC), 0
    last: Flags | str = FAILED
    for content, times, distance_s in stretches:
        for _ in range(times):
            t_s += distance_s
            last, state = content, step(state, fact(content, moment(t_s)))
    due = due_ms(state)
    if isinstance(last, str):
        return
    # Readings as the source makes them, until well after any timer.
    changed = None
    for later_s in range(t_s + 1, t_s + 700):
        after = step(state, fact(last, moment(later_s)))
        if after.present != state.present:
            changed = moment(later_s).mono_ms
            break
        state = after
    assert changed == due
