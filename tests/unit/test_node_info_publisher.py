"""When the node-info object is written, looked at and deleted (node-faults 4, 8.3, 9.1, 19), by a pretended clock."""

import itertools
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.clock import FakeClock
from kit.node_info import Acknowledged, Heard, MemoryTarget, written_by

from nodeagent.core.alarms import NodeLevel
from nodeagent.core.board import BoardDevice, BoardView
from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.core.telemetry import EventReason
from nodeagent.publish.manner import Manner
from nodeagent.publish.node_info import NodeInfoPublisher
from nodeagent.publish.other_writer import node_info_guard
from nodeagent.publish.targets import LaterError
from nodeagent.render.node_info import Owner, config_map, render_node_info

NODE = "node-1"
CPU_1 = BoardDevice("CPU", 1, ("0000001D",), NodeLevel.PRE_SEPARATE)
SYSTEM = BoardDevice("System", 255, ("2C000031",), NodeLevel.SEPARATE)
PSU_2 = BoardDevice("PSU", 2, ("03000009",), NodeLevel.NOT_HANDLE)
START_MS = 1_748_743_200_000  # 2025-06-01T02:00:00Z


class Owners:
    """Knows an owner, or none. asked: how often it had to ask."""

    def __init__(self, owner: Owner | None = None) -> None:
        self.owner = owner
        self.found: Owner | None = None
        self.stale = True
        self.asked = 0

    def current(self) -> Owner | None:
        if self.stale:
            self.asked += 1
            self.stale = False
            self.found = self.owner or self.found
        return self.found

    def renew(self) -> None:
        self.stale = True


class House:
    """A publisher, driven by hand: the board is polled every 60 s, and loops wake when they want to."""

    def __init__(
        self,
        target: MemoryTarget | None = None,
        manner: Manner | None = None,
        owners: Owners | None = None,
        clock: FakeClock | None = None,
    ) -> None:
        self.clock = clock or FakeClock(wall_ms=START_MS)
        self.target = target or MemoryTarget()
        self.heard = Heard()
        self.acknowledged = Acknowledged()
        self.chance = 0.999
        self.generations = itertools.count(1)
        self.view: BoardView | None = None
        self.begin_ms = self.clock.now().mono_ms
        self.publisher = NodeInfoPublisher(
            self.target,
            NODE,
            self.clock,
            self.acknowledged,
            self.heard,
            self.heard,
            owner=owners,
            draw=lambda: self.chance,
            manner=manner,
        )
        self.wake_ms: int | None = None

    def turn(self) -> None:
        """The loop wakes."""
        wait_s = self.publisher.turn()
        self.wake_ms = None if wait_s is None else self.clock.now().mono_ms + max(1, round(wait_s * 1000))

    @property
    def now_s(self) -> float:
        return (self.clock.now().mono_ms - self.begin_ms) / 1000

    def poll(self, *devices: BoardDevice) -> None:
        """A good poll of the board."""
        if self.view is None or self.view.devices != devices:
            self.view = BoardView(next(self.generations), devices)
        self.publisher.submit(self.view)
        self.turn()

    def until(self, second: float) -> None:
        """Let time pass; the loop wakes exactly when it said."""
        end_ms = self.begin_ms + round(second * 1000)
        while self.wake_ms is not None and self.wake_ms <= end_ms:
            self.clock.advance_ms(max(0, self.wake_ms - self.clock.now().mono_ms))
            self.turn()
        self.clock.advance_ms(max(0, end_ms - self.clock.now().mono_ms))

    def polls(self, first_s: int, last_s: int, *devices: BoardDevice) -> None:
        """A good poll every 60 s, both ends included."""
        for second in range(first_s, last_s + 1, 60):
            self.until(second)
            self.poll(*devices)

    @property
    def calls(self) -> list[str]:
        """What was asked of the target since the last time somebody looked."""
        calls, self.target.calls = self.target.calls, []
        return calls


def published(*devices: BoardDevice, ago_s: int = 0, owner: Owner | None = None) -> dict[str, Any]:
    return config_map(NODE, render_node_info(BoardView(1, devices), START_MS // 1000 - ago_s), owner=owner)


def utc(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def poisoned(obj: dict[str, Any]) -> dict[str, Any]:
    """Someone sets CheckCode to `x`."""
    text = obj["data"]["NodeInfo"]
    return {**obj, "data": {**obj["data"], "NodeInfo": text[: text.index('"CheckCode"')] + '"CheckCode":"x"}'}}


class TestTimelines:
    def test_t1_healthy_node(self) -> None:
        house = House()
        house.poll()
        assert house.calls == ["read"], "one cheap look, 404"
        assert house.acknowledged.generations == [1]
        house.polls(60, 3540)
        assert house.calls == []
        house.polls(3600, 7140)
        assert house.calls == ["read"], "one request an hour (decision 26)"
        assert house.target.present is None
        assert house.publisher.status().present is False

    def test_t1_an_object_of_an_earlier_run_goes(self) -> None:
        house = House()
        house.target.edit(published(CPU_1, ago_s=600))
        house.poll()
        assert house.calls == ["read", "delete"]
        assert house.target.clusterd.heard == ["PreSeparate", None]

    def test_t2_alarm_unchanged_rewritten(self) -> None:
        house = House()
        house.polls(0, 60)
        house.until(120)
        house.poll(CPU_1)
        assert house.calls == ["read", "write"], "a first change is written at once"
        text = house.target.present["data"]["NodeInfo"]  # type: ignore[index]
        assert "230d03dc0e52145f85b908ee146e2c76a7bafc92adde6a30549037a5a743dd45" in text
        house.polls(180, 1860, CPU_1)
        assert house.calls == []
        house.until(1979)
        assert house.calls == [], "not before a poll says that the alarm is still there"
        house.polls(1980, 1980, CPU_1)
        assert house.calls == ["write"]
        assert house.target.present["data"]["NodeInfo"] == text  # type: ignore[index]
        assert house.target.times == ["2025-06-01T02:02:00Z", "2025-06-01T02:33:00Z"]
        assert house.target.clusterd.heard == ["PreSeparate"]
        house.polls(2040, 3720, CPU_1)
        assert house.calls == [], "two requests an hour (decision 26)"

    def test_t3_recovery(self) -> None:
        house = House()
        house.polls(120, 180, CPU_1)
        house.until(240)
        house.poll()
        assert house.calls == ["read", "write", "delete"]
        assert house.target.clusterd.heard == ["PreSeparate", None]
        assert house.acknowledged.generations == [1, 2]

    def test_t4_worst_level_wins(self) -> None:
        house = House()
        house.poll(CPU_1, PSU_2, SYSTEM)
        house.until(60)
        house.poll(CPU_1, PSU_2)
        assert house.target.clusterd.heard == ["UnHealthy", "PreSeparate"]

    def test_t5_only_unlisted_codes_are_no_object(self) -> None:
        """The policy drops them: what comes here has no devices."""
        house = House()
        house.poll()
        assert house.target.present is None

    def test_t6_a_mild_list_is_published_although_the_node_is_healthy(self) -> None:
        house = House()
        house.poll(PSU_2)
        assert house.target.clusterd.heard == ["Healthy"]
        house.until(60)
        house.poll()
        assert house.target.clusterd.heard == ["Healthy", None]

    def test_t7_the_same_in_another_order_is_no_write(self) -> None:
        """Views are sorted; equal content of a new view is acknowledged without a request."""
        house = House()
        house.poll(CPU_1)
        house.publisher.submit(BoardView(7, (CPU_1,)))
        house.turn()
        assert house.calls == ["read", "write"]
        assert house.acknowledged.generations == [1, 7]

    def test_t12_a_silent_board_refreshes_nothing(self) -> None:
        house = House()
        house.polls(120, 120, CPU_1)
        assert house.calls == ["read", "write"]
        house.until(9000)
        assert house.publisher.turn() is None
        assert house.calls == []
        house.poll()
        assert house.calls == ["delete"]

    def test_t14_api_outage_at_the_moment_of_change(self) -> None:
        house = House()
        house.polls(0, 60)
        assert house.calls == ["read"]
        house.target.errors = [PublishError("away")] * 1000
        house.polls(120, 360, SYSTEM)
        tries = len(house.calls)
        assert tries > 10
        assert house.heard.reasons == [EventReason.PUBLISH_FAILED], "told once"
        assert house.publisher.status().pending
        house.until(400)
        house.target.errors = []
        house.until(430)
        assert house.target.clusterd.heard == ["UnHealthy"], "within one back-off of 30 s"
        assert house.heard.reasons == [EventReason.PUBLISH_FAILED, EventReason.PUBLISH_RECOVERED]
        assert house.heard.counts["publish_writes_total", "node_info", "ok"] == 1

    def test_t14_a_recovery_during_an_outage_is_a_deletion_afterwards(self) -> None:
        house = House()
        house.polls(0, 0, CPU_1)
        house.target.errors = [PublishError("away")] * 1000
        house.polls(60, 120)
        house.target.errors = []
        house.until(160)
        assert house.target.present is None
        assert house.calls[-1] == "delete"

    def test_t15_restart_with_a_fault_present(self) -> None:
        house = House()
        house.target.edit(published(CPU_1, ago_s=600))
        house.until(60)
        assert house.calls == [], "nothing before the first view"
        house.poll(CPU_1)
        assert house.calls == ["read"], "it is there as it should be"
        assert house.acknowledged.generations == [1]
        house.polls(120, 1140, CPU_1)
        assert house.calls == []
        house.polls(1200, 1200, CPU_1)
        assert house.calls == ["write"], "30 minutes after it was written"
        assert house.target.clusterd.heard == ["PreSeparate"]

    def test_t24_poisoned_object_while_there_is_a_fault(self) -> None:
        house = House()
        house.polls(0, 0, SYSTEM)
        house.target.edit(poisoned(published(SYSTEM)))
        house.polls(60, 1740, SYSTEM)
        assert house.calls == ["read", "write"]
        house.polls(1800, 1860, SYSTEM)
        assert house.calls == ["write", "write", "write"], "409, then two good ones"
        assert len(set(house.target.times)) == 3
        assert house.target.clusterd.status == "UnHealthy"

    @pytest.mark.parametrize("devices", [(), (CPU_1,)], ids=["healthy", "other-fault"])
    def test_t24_poisoned_object_found_at_the_start(self, devices: tuple[BoardDevice, ...]) -> None:
        house = House()
        house.target.edit(published(SYSTEM))
        house.target.edit(poisoned(published(SYSTEM)))
        assert house.target.clusterd.status == "UnHealthy", "it keeps what it heard last"
        house.polls(0, 60, *devices)
        assert house.target.clusterd.status == ("PreSeparate" if devices else None)
        assert house.calls == (["read", "write", "write"] if devices else ["read", "write", "write", "delete"])
        assert (house.target.present is None) is (not devices)
        assert house.acknowledged.generations == [1], "not before ClusterD has it"

    def test_t24_poisoned_object_on_a_healthy_node_is_found_within_the_hour(self) -> None:
        house = House()
        house.polls(0, 60)
        house.target.edit(poisoned(published(SYSTEM)))
        house.polls(120, 3660)
        assert house.calls == ["read", "read", "write", "write", "delete"]
        assert house.target.present is None

    def test_t24_the_recovery_of_a_poisoned_object(self) -> None:
        """The alarm goes before the 30 minutes are over: the deletion finds what somebody did."""
        house = House()
        house.polls(0, 0, SYSTEM)
        house.target.edit(poisoned(published(SYSTEM)))
        house.polls(60, 120)
        assert house.calls == ["read", "write", "delete", "write", "write", "delete"]
        assert house.target.clusterd.heard == ["UnHealthy", "Healthy", None]


class TestPace:
    def test_at_most_one_write_in_five_seconds_and_the_latest_wins(self) -> None:
        house = House()
        house.poll(CPU_1)
        house.until(1)
        house.poll(PSU_2)
        house.until(2)
        house.poll(SYSTEM)
        assert house.target.clusterd.heard == ["PreSeparate"]
        house.until(4.9)
        assert house.target.clusterd.heard == ["PreSeparate"]
        house.until(5)
        assert house.target.clusterd.heard == ["PreSeparate", "UnHealthy"]
        assert house.heard.samples == [0.0, 3.0], "from the view to the write"

    def test_a_look_is_no_write_that_the_next_one_keeps_its_distance_from(self) -> None:
        house = House()
        house.poll()
        house.until(1)
        house.poll(CPU_1)
        assert house.target.clusterd.heard == ["PreSeparate"]
        assert house.calls == ["read", "write"]

    def test_a_change_and_back_within_the_interval_is_no_request(self) -> None:
        house = House()
        house.poll(CPU_1)
        house.until(1)
        house.poll()
        house.until(2)
        house.poll(CPU_1)
        house.until(100)
        assert house.calls == ["read", "write"]
        assert house.acknowledged.generations == [1, 3]

    def test_a_refusal_that_names_a_time_is_obeyed(self) -> None:
        house = House()
        house.poll(CPU_1)
        house.target.errors = [LaterError("busy", "", 120.0)]
        house.until(60)
        house.poll(SYSTEM)
        house.until(179)
        assert house.target.clusterd.status == "PreSeparate"
        house.until(60 + 120 * 1.1)
        assert house.target.clusterd.status == "UnHealthy"

    def test_so_is_one_of_the_first_look(self) -> None:
        house = House()
        busy = ReadBackError("busy")
        busy.retry_after_s = 120.0
        house.target.errors = [busy]
        house.poll(CPU_1)
        house.until(119)
        assert house.calls == ["read"]
        house.until(133)
        assert house.calls == ["read", "write"]


class TestOwner:
    OURS = Owner("nodeagent", "6f0c")

    def test_it_is_asked_when_an_object_is_made_and_not_at_rest(self) -> None:
        owners = Owners(self.OURS)
        house = House(owners=owners)
        house.polls(0, 60)
        assert owners.asked == 0
        house.polls(120, 3720, CPU_1)
        assert owners.asked == 1
        assert house.target.present["metadata"]["ownerReferences"] == [self.OURS.reference()]  # type: ignore[index]
        assert house.publisher.status().owner == "nodeagent"
        house.polls(3780, 3780)
        house.polls(3840, 3840, CPU_1)
        assert owners.asked == 2, "the DaemonSet may have been made anew since"

    def test_one_that_the_garbage_collector_took_away_is_asked_for_again(self) -> None:
        owners = Owners(self.OURS)
        house = House(owners=owners)
        house.poll(CPU_1)
        house.target.edit(published(CPU_1))
        owners.owner = Owner("nodeagent", "new")
        house.until(60)
        house.poll(SYSTEM)
        house.until(61)
        assert house.target.present["metadata"]["ownerReferences"][0]["uid"] == "new"  # type: ignore[index]

    def test_one_that_an_earlier_run_set_is_kept_while_ours_is_not_known(self) -> None:
        house = House(owners=Owners(None))
        obj = written_by(published(CPU_1, owner=self.OURS), "nodeagent", utc(START_MS))
        fields = {"f:metadata": {"f:ownerReferences": {".": {}, 'k:{"uid":"6f0c"}': {}}}}
        obj["metadata"]["managedFields"].append({"manager": "nodeagent", "fieldsV1": fields})
        house.target.edit(obj)
        house.poll(SYSTEM)
        assert house.target.present["metadata"]["ownerReferences"] == [self.OURS.reference()]  # type: ignore[index]

    def test_one_that_another_program_set_is_not(self) -> None:
        house = House(owners=Owners(None))
        house.target.edit(written_by(published(CPU_1, owner=Owner("noded", "1")), "noded", utc(START_MS)))
        house.poll(SYSTEM)
        assert "ownerReferences" not in house.target.present["metadata"]  # type: ignore[index]
        assert house.heard.reasons == [EventReason.FOREIGN_PARTS]

    def test_an_object_that_lacks_its_owner_is_written_at_the_start(self) -> None:
        house = House(owners=Owners(self.OURS))
        house.target.edit(published(CPU_1))
        house.poll(CPU_1)
        assert house.calls == ["read", "write"]


class TestOtherWriter:
    @staticmethod
    def house(overwrite: bool = False) -> House:
        house = House(manner=Manner(guard=node_info_guard(overwrite)))
        house.target.edit(written_by(published(CPU_1), "noded", utc(START_MS - 600_000)))
        return house

    @pytest.mark.parametrize("devices", [(), (SYSTEM,)])
    def test_nothing_is_done_until_it_has_been_quiet_for_35_minutes(self, devices: tuple[BoardDevice, ...]) -> None:
        house = self.house()
        house.polls(0, 1440, *devices)
        assert house.calls == ["read"]
        assert house.publisher.status().waits_for == "noded"
        assert house.heard.reasons == [EventReason.OTHER_WRITER]
        assert "35 minutes" in house.heard.events[0].message
        house.polls(1500, 1500, *devices)
        assert house.calls == ["read", "write" if devices else "delete"], "25 minutes later"
        assert house.publisher.status().waits_for == ""
        assert house.heard.gauges["publish_other_writer", "node_info"] == 0

    def test_if_it_writes_again_we_go_on_waiting(self) -> None:
        house = self.house()
        house.polls(0, 1200, SYSTEM)
        house.target.edit(written_by(published(CPU_1), "noded", utc(START_MS + 1_200_000)))
        house.polls(1260, 3240, SYSTEM)
        assert house.calls == ["read", "read"]
        house.polls(3300, 3300, SYSTEM)
        assert house.calls == ["read", "write"]

    def test_if_it_is_gone_we_need_not_wait(self) -> None:
        house = self.house()
        house.polls(0, 1200, SYSTEM)
        house.target.edit(None)
        house.polls(1260, 1500, SYSTEM)
        assert house.calls == ["read", "read", "write"]

    def test_a_site_may_say_that_it_does_not_matter(self) -> None:
        house = self.house(overwrite=True)
        house.poll(SYSTEM)
        assert house.calls == ["read", "write"]
        assert house.heard.reasons == [EventReason.OTHER_WRITER]

    def test_an_operator_is_no_other_writer(self) -> None:
        house = House(manner=Manner(guard=node_info_guard(False)))
        house.target.edit(written_by(published(CPU_1), "kubectl-edit", utc(START_MS)))
        house.poll()
        assert house.calls == ["read", "delete"]

    def test_one_that_comes_later_is_told_and_does_not_stop_us(self) -> None:
        house = House(manner=Manner(guard=node_info_guard(False)))
        house.poll(CPU_1)
        house.target.edit(written_by(published(PSU_2), "noded", utc(START_MS)))
        house.until(60)
        house.poll(SYSTEM)
        house.until(61)
        assert house.target.clusterd.status == "UnHealthy"
        assert EventReason.OTHER_WRITER in house.heard.reasons


def test_a_shadow_never_touches_the_live_object() -> None:
    house = House(manner=Manner(shadow=True))
    assert house.publisher.object_key == ("mindx-dl", "mindx-dl-nodeinfo-node-1-shadow")
    house.poll(CPU_1)
    metadata = house.target.present["metadata"]  # type: ignore[index]
    assert metadata["name"] == "mindx-dl-nodeinfo-node-1-shadow"
    assert "mx-consumer-cim" not in metadata["labels"]


def test_what_clusterd_would_refuse_is_never_sent_and_the_last_good_one_stays() -> None:
    house = House()
    house.poll(CPU_1)
    house.until(60)
    house.poll(replace(CPU_1, codes=()))
    assert house.calls == ["read", "write"]
    assert house.heard.reasons == [EventReason.CONTRACT_REFUSED]
    assert "contract" in house.publisher.status().problem
    assert house.target.clusterd.status == "PreSeparate"
    house.until(120)
    house.poll()
    assert house.target.present is None


def test_a_write_without_an_answer_may_have_made_the_object() -> None:
    """The next view is healthy and comes before the write is repeated: what may be there is deleted."""
    house = House()
    house.polls(0, 0)

    def lost(obj: dict[str, Any]) -> None:
        write(obj)
        raise PublishError("no answer")

    write, house.target.write = house.target.write, lost  # type: ignore[method-assign]
    house.until(60)
    house.poll(CPU_1)
    house.until(61)
    house.poll()
    house.until(70)
    assert house.calls == ["read", "write", "delete"]
    assert house.target.clusterd.heard == ["PreSeparate", None]


def test_an_error_that_nobody_foresaw_does_not_end_the_loop() -> None:
    house = House()
    house.target.errors = [KeyError("bug"), RuntimeError("bug")]
    house.poll(CPU_1)
    house.until(60)
    assert house.target.clusterd.status == "PreSeparate"
    assert house.heard.counts["publish_loop_errors_total", "node_info"] == 2


def test_one_who_changes_it_all_the_time_is_a_failure_with_pauses() -> None:
    house = House()
    house.poll(CPU_1)

    def meddle(*_: object) -> None:
        house.target.edit(published(PSU_2))
        write(*_)

    write, house.target.write = house.target.write, meddle  # type: ignore[method-assign, assignment]
    house.until(60)
    house.poll(SYSTEM)
    house.until(62)
    assert house.heard.reasons == [EventReason.PUBLISH_FAILED]
    assert house.calls.count("write") <= 6


DEVICES = st.sampled_from([(), (CPU_1,), (SYSTEM,), (PSU_2,), (CPU_1, SYSTEM)])
STEPS = st.lists(
    st.tuples(DEVICES, st.sampled_from(["", "fail", "poison", "delete", "foreign"]), st.integers(1, 120)), max_size=12
)


@given(STEPS, DEVICES)
@settings(max_examples=60, deadline=None)
def test_whatever_happens_clusterd_ends_with_what_the_board_says(
    steps: list[tuple[tuple[BoardDevice, ...], str, int]], last: tuple[BoardDevice, ...]
) -> None:
    house = House()
    for devices, trouble, seconds in steps:
        if trouble == "fail":
            house.target.errors = [PublishError("away"), PublishError("away")]
        elif trouble == "poison":
            house.target.edit(poisoned(house.target.present or published(SYSTEM)))
        elif trouble == "delete" and house.target.present is not None:
            house.target.edit(None)
        elif trouble == "foreign":
            house.target.edit(published(PSU_2))
        house.poll(*devices)
        house.until(house.now_s + seconds)
    house.target.errors = []
    begin_s = int(house.now_s) + 60
    house.polls(begin_s, begin_s + 4200, *last)
    there = house.target.present
    assert (there is None) is (not last)
    if there is not None:
        assert there["data"]["NodeInfo"] == render_node_info(BoardView(1, last), 0)["NodeInfo"]
    expected = BoardView(1, last).status if last else None
    assert house.target.clusterd.status == expected
