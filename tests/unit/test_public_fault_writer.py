"""Telling public faults: the timelines of node-faults 19 and the rules of 13 and decision 28, in virtual time."""

import json
from pathlib import Path

import pytest
from kit.fake_clusterd import ClusterdTarget, FakeClusterd
from kit.public_fault import CHIPS, DirectCourier, Home

from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.core.telemetry import EventReason
from nodeagent.publish.courier_configmap import ConfigMapCourier
from nodeagent.publish.public_fault import PublicFaultWriter
from nodeagent.publish.targets import LaterError

PROCESS, MEMORY, DTFS_PROCESS, DTFS_LINK = "110001020", "110001021", "110001022", "110001023"
OCCUR, RECOVER = "occur", "recover"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A node whose ClusterD is known to have no fault, with chips."""
    made = Home(tmp_path)
    made.writer.chips(CHIPS)
    made.say(DPC_PROCESS=False, DPC_MEMORY=False)
    made.until(7200)
    assert [said for _, said in made.sent] == [{PROCESS: RECOVER, MEMORY: RECOVER}] * 4
    forget(made)
    return made


def forget(home: Home) -> None:
    home.sent.clear()
    home.clusterd.received.clear()
    home.start_ms = home.clock.now().mono_ms


def test_t16_dpc_process(home: Home) -> None:
    home.until(5)
    home.say(DPC_PROCESS=False, DPC_MEMORY=None)
    home.until(25)
    occurred_ms = home.clock.now().wall_ms
    home.say(DPC_PROCESS=True)
    home.until(45)
    home.say(DPC_PROCESS=False)
    home.until(65)
    home.say(DPC_PROCESS=True)
    home.until(70)
    assert home.sent == [(25, {PROCESS: OCCUR}), (45, {PROCESS: RECOVER}), (65, {PROCESS: OCCUR})]
    assert home.cached == {PROCESS}
    first, second, third = home.clusterd.received
    assert first["resource"] == "dpcStorage"
    assert first["faults"] == [
        {
            "faultId": "f509db1b08a9b5ab75798e820c2ec8e990d6c08cf62d95187eb7998747a8df3e",
            "faultType": "Node",
            "faultCode": PROCESS,
            "faultTime": occurred_ms,
            "assertion": OCCUR,
            "faultLocation": {},
            "influence": [{"nodeName": "node-1", "nodeSN": "", "deviceIds": list(CHIPS)}],
            "description": "",
        }
    ]
    assert second["faults"][0]["faultTime"] == occurred_ms
    assert second["timestamp"] == occurred_ms + 20_000
    assert third["faults"][0]["faultTime"] == occurred_ms + 40_000
    assert len({message["id"] for message in home.clusterd.received}) == 3


def test_t19_one_message_with_all_that_changed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.writer.chips(CHIPS)
    home.say(DTFS_PROCESS=True, DTFS_LINK=False)
    home.until(100)
    home.say(DTFS_PROCESS=False, DTFS_LINK=True)
    home.until(101)
    assert home.sent[-1] == (100, {DTFS_PROCESS: RECOVER, DTFS_LINK: OCCUR})
    assert {cached.level for cached in home.clusterd.faults_of("node-1").values()} == {"PreSeparateNPU"}


def test_t20_clusterds_five_second_window(tmp_path: Path) -> None:
    home = Home(tmp_path, draw=0.0)
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=False)
    assert home.sent == [(0, {PROCESS: RECOVER})]
    home.until(3)
    home.say(DPC_PROCESS=True)
    home.until(6)
    assert len(home.sent) == 1
    home.until(20)
    assert home.sent[1:] == [(7, {PROCESS: OCCUR})]
    assert home.cached == {PROCESS}
    home.until(22)
    home.say(DPC_PROCESS=False)
    assert home.cached == set()


def test_t20_a_recover_soon_after_an_occur_takes_effect_at_five_seconds(home: Home) -> None:
    home.until(10)
    home.say(DPC_PROCESS=True)
    home.until(12)
    home.say(DPC_PROCESS=False)
    home.until(14.9)
    assert home.cached == {PROCESS}
    home.until(15)
    assert home.cached == set()


def test_t20_the_distance_holds_when_nobody_knows_whether_the_recover_arrived(home: Home) -> None:
    home.say(DPC_PROCESS=True)
    home.until(20)
    assert isinstance(home.courier, DirectCourier)
    home.courier.lost = [True]
    home.say(DPC_PROCESS=False)
    home.say(DPC_PROCESS=True)
    home.until(60)
    assert home.sent == [(0, {PROCESS: OCCUR}), (20, {PROCESS: RECOVER}), (27, {PROCESS: OCCUR})]
    assert home.cached == {PROCESS}


def test_t20_the_distance_holds_over_a_restart(home: Home) -> None:
    home.say(DPC_PROCESS=True)
    home.until(20)
    home.say(DPC_PROCESS=False)
    home.until(22)
    home.start()
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=True)
    home.until(26.9)
    assert len(home.sent) == 2
    home.until(40)
    assert home.sent[2:] == [(27, {PROCESS: OCCUR})]
    assert home.cached == {PROCESS}


def test_t21_rate_limit(home: Home) -> None:
    home.clusterd.answers = [(410, "rate limited")] * 5
    home.say(DPC_PROCESS=True)
    home.until(1.2)
    home.say(DPC_PROCESS=False)
    home.until(1.3)
    home.say(DPC_PROCESS=True, DPC_MEMORY=True)
    home.until(300)
    moments = [moment for moment, _ in home.sent]
    assert moments == [0, 0.5, 1.5, 3.5, 7.5, 15.5]  # half of 1, 2, 4, 8, 16 s
    assert home.sent[-1][1] == {PROCESS: OCCUR, MEMORY: OCCUR}
    assert home.cached == {PROCESS, MEMORY}
    assert home.ears.reasons == [EventReason.PUBLIC_FAULT_LATE, EventReason.PUBLIC_FAULT_DELIVERED]
    assert home.metrics.value("public_fault_messages_total", resource="dpcStorage", result="busy") == 5


def test_t21_pauses_grow_on_while_410_lasts(home: Home) -> None:
    home.clusterd.senders.clear()
    home.say(DPC_PROCESS=True)
    home.until(3000)
    moments = [moment for moment, _ in home.sent]
    assert moments[-1] - moments[-2] == 150
    assert home.metrics.value("public_fault_waiting", resource="dpcStorage") == 1
    assert home.ears.reasons == [EventReason.PUBLIC_FAULT_LATE]


def test_pauses_after_no_answer_stop_to_grow_at_a_minute(home: Home) -> None:
    assert isinstance(home.courier, DirectCourier)
    home.courier.lost = [True] * 30
    home.say(DPC_PROCESS=True)
    home.until(600)
    moments = [moment for moment, _ in home.sent]
    assert moments[-1] - moments[-2] == 30


def test_t22_partial_refusal(home: Home) -> None:
    fault = {
        "faultId": "some-fault-1",
        "faultType": "Node",
        "faultCode": PROCESS,
        "faultTime": 1767225600000,
        "assertion": OCCUR,
        "faultLocation": {},
        "influence": [{"nodeName": "node-9", "nodeSN": "", "deviceIds": [0]}],
        "description": "",
    }
    message = {"id": "12345678", "timestamp": 1767225600000, "version": "1.0", "resource": "dpcStorage"}
    unlisted = fault | {"faultId": "some-fault-2", "faultCode": "999999999"}
    assert home.clusterd.send(message | {"faults": [fault, unlisted]})[0] == 0
    assert set(home.clusterd.faults_of("node-9")) == {PROCESS}
    # Of ours: the code that ClusterD did not know when it took the message is there after the next one.
    home.clusterd.levels.pop(MEMORY)
    home.say(DPC_PROCESS=True, DPC_MEMORY=True)
    assert home.cached == {PROCESS}
    home.clusterd.levels[MEMORY] = "SubHealthFault"
    home.until(599)
    assert home.cached == {PROCESS}
    home.until(601)
    assert home.cached == {PROCESS, MEMORY}


def test_a_refusal_is_told_once_and_tried_again_slowly(home: Home) -> None:
    level = home.clusterd.levels.pop(PROCESS)
    home.say(DPC_PROCESS=True)
    home.until(1200)
    assert [moment for moment, _ in home.sent] == [0, 450, 900]
    home.clusterd.levels[PROCESS] = level
    home.until(1351)
    assert home.cached == {PROCESS}
    assert home.ears.reasons == [EventReason.PUBLIC_FAULT_REFUSED, EventReason.PUBLIC_FAULT_DELIVERED]
    assert "409: no valid fault" in home.ears.events[0].message


def test_another_content_is_not_held_back_by_a_refusal(home: Home) -> None:
    home.clusterd.levels.pop(PROCESS)
    home.say(DPC_PROCESS=True)
    home.until(10)
    home.say(DPC_PROCESS=True, DPC_MEMORY=True)
    assert home.cached == {MEMORY}


def test_a_standing_fault_is_said_again_with_growing_pauses(home: Home) -> None:
    home.say(DPC_PROCESS=True)
    home.until(8 * 3600)
    minutes = [moment / 60 for moment, _ in home.sent]
    assert minutes == [0, 10, 30, 70, 150, 270, 390]
    assert len({message["id"] for message in home.clusterd.received}) == 7
    assert {message["faults"][0]["faultTime"] for message in home.clusterd.received} == {
        home.clusterd.received[0]["timestamp"]
    }


def test_a_recovery_is_said_four_times_within_the_hour_unless_the_fault_is_back(home: Home) -> None:
    home.say(DPC_PROCESS=True)
    home.until(20)
    home.say(DPC_PROCESS=False)
    home.until(10_000)
    assert [said for _, said in home.sent] == [{PROCESS: OCCUR}, *[{PROCESS: RECOVER}] * 4]
    assert home.sent[-1][0] < 20 + 3600
    forget(home)
    home.say(DPC_PROCESS=True)
    home.until(20)
    home.say(DPC_PROCESS=False)
    home.until(30)
    home.say(DPC_PROCESS=True)
    home.until(590)
    assert [said for _, said in home.sent] == [{PROCESS: OCCUR}, {PROCESS: RECOVER}, {PROCESS: OCCUR}]


def test_the_rest_of_the_recoveries_survives_a_restart(home: Home) -> None:
    home.say(DPC_PROCESS=True)
    home.until(20)
    home.say(DPC_PROCESS=False)
    home.until(500)
    home.start()
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=False)
    home.until(10_000)
    assert [said for _, said in home.sent] == [{PROCESS: OCCUR}, *[{PROCESS: RECOVER}] * 4]


def test_a_restart_of_a_healthy_node_says_nothing(home: Home) -> None:
    home.start()
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=False, DPC_MEMORY=False)
    home.until(7200)
    assert home.sent == []


def test_a_restart_with_a_standing_fault_keeps_its_time(home: Home) -> None:
    home.say(DPC_PROCESS=True)
    occurred_ms = home.clock.now().wall_ms
    home.until(50)
    home.start()
    home.say(DPC_PROCESS=True)
    home.until(70)
    assert len(home.sent) == 1
    home.say(DPC_PROCESS=False)
    assert home.sent[1:] == [(70, {PROCESS: RECOVER})]
    assert home.clusterd.received[-1]["faults"][0]["faultTime"] == occurred_ms
    assert home.clusterd.received[-1]["faults"][0]["influence"][0]["deviceIds"] == list(CHIPS)


def test_without_memory_a_recovery_waits_for_known_health_and_a_random_while(tmp_path: Path) -> None:
    home = Home(tmp_path, draw=0.25)
    home.say(DPC_PROCESS=False, DPC_MEMORY=None)
    home.until(100)
    assert home.sent == [(15, {PROCESS: RECOVER})]  # a quarter of 60 s
    home.until(600)
    home.sent.clear()
    home.say(DPC_PROCESS=False, DPC_MEMORY=False)
    assert home.sent == [(600, {MEMORY: RECOVER})]


def test_an_occurrence_waits_for_no_random_while(tmp_path: Path) -> None:
    home = Home(tmp_path, draw=0.99)
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=True)
    assert home.sent == [(0, {PROCESS: OCCUR})]


def test_an_occurrence_waits_for_the_chips(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.say(DPC_PROCESS=True)
    home.until(119)
    home.writer.chips(())
    home.turn()
    assert home.sent == []
    home.writer.chips([3, 1, 31, 1, 32, -1])
    home.turn()
    assert home.clusterd.faults_of("node-1")[PROCESS].devices == (1, 3, 31)
    assert home.ears.events == []


def test_after_the_deadline_chip_0_is_named_and_put_right_later(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.say(DPC_PROCESS=True)
    home.until(130)
    assert home.sent == [(120, {PROCESS: OCCUR})]
    assert home.clusterd.faults_of("node-1")[PROCESS].devices == (0,)
    assert home.ears.reasons == [EventReason.PUBLIC_FAULT_WITHOUT_CHIPS]
    home.writer.chips(CHIPS)
    home.until(200)
    assert home.sent[1:] == [(130, {PROCESS: RECOVER}), (137, {PROCESS: OCCUR})]
    assert home.clusterd.faults_of("node-1")[PROCESS].devices == CHIPS
    home.until(600)
    assert len(home.sent) == 3


def test_the_only_chip_needs_no_correction(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.say(DPC_PROCESS=True)
    home.until(130)
    home.writer.chips([0])
    home.until(600)
    assert len(home.sent) == 1


def test_after_a_restart_the_last_known_chips_are_better_than_chip_0(home: Home) -> None:
    home.start()
    home.say(DPC_PROCESS=True)
    home.until(200)
    assert home.sent == [(120, {PROCESS: OCCUR})]
    assert home.clusterd.faults_of("node-1")[PROCESS].devices == CHIPS
    assert home.ears.events == []


def test_a_guess_is_put_right_after_a_restart_too(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.say(DPC_PROCESS=True)
    home.until(130)
    home.start()
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=True)
    home.until(200)
    assert home.clusterd.faults_of("node-1")[PROCESS].devices == CHIPS


def test_chips_that_change_later_need_no_correction(home: Home) -> None:
    home.say(DPC_PROCESS=True)
    home.until(10)
    home.writer.chips(CHIPS[:4])
    home.until(500)
    assert len(home.sent) == 1


def test_a_recovery_does_not_wait_for_chips(tmp_path: Path) -> None:
    home = Home(tmp_path, draw=0.0)
    home.say(DPC_PROCESS=False)
    assert home.sent == [(0, {PROCESS: RECOVER})]


def test_an_unforeseen_error_loses_no_fault(home: Home) -> None:
    assert isinstance(home.courier, DirectCourier)
    home.courier.unforeseen = [RuntimeError("nobody foresaw this")]
    with pytest.raises(RuntimeError):
        home.say(DPC_PROCESS=True)
    home.until(10)
    assert home.cached == {PROCESS}


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", '{"version":1}', '{"version":2,"chips":[],"faults":{}}', "[" * 90_000]
)
def test_an_unreadable_file_is_nothing_known_and_said_once(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "public-faults.json").write_text(text)
    home = Home(tmp_path, draw=0.0)
    home.say(DPC_PROCESS=False)
    home.say(DTFS_PROCESS=False)
    assert home.sent == [(0, {PROCESS: RECOVER}), (0, {DTFS_PROCESS: RECOVER})]
    assert home.metrics.value("state_file_errors_total") == 1
    assert json.loads((tmp_path / "public-faults.json").read_text())["faults"]["DPC_PROCESS"]["believed"] is False


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = Home(tmp_path / "file" / "folder")
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=True)
    assert home.cached == {PROCESS}
    assert home.metrics.value("state_file_errors_total") >= 1


def test_what_another_audience_knows_says_nothing(home: Home) -> None:
    home.say(DPC_PROCESS=True)
    path = home.folder / "public-faults.json"  # type: ignore[operator]
    path.write_text(path.read_text().replace('"audience":"clusterd"', '"audience":"shadow"'))
    home.start()
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=True, DPC_MEMORY=False)
    home.until(100)
    assert [said for _, said in home.sent] == [{PROCESS: OCCUR}, {PROCESS: OCCUR}, {MEMORY: RECOVER}]
    first, second, _ = home.clusterd.received
    assert first["faults"][0]["faultTime"] == second["faults"][0]["faultTime"]


def test_off_tells_nobody_and_shows_what_holds(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.writer = PublicFaultWriter(
        None, "node-1", tmp_path, "", 120, home.clock, home.ears, home.metrics, lambda: 0.5, home.next_id
    )
    home.say(DPC_PROCESS=True)
    home.until(1000)
    state = home.writer.state_json()
    assert state["delivery"] == "off"
    faults = state["senders"]["dpcStorage"]["faults"]  # type: ignore[index]
    assert faults["DPC_PROCESS"] == {"code": PROCESS, "wanted": "present", "believed": "unknown", "occurred_ms": None}
    assert home.sent == []
    assert list(tmp_path.iterdir()) == []


def test_the_state_shows_how_telling_stands(home: Home) -> None:
    home.clusterd.answers = [(410, "rate limited")]
    home.say(DPC_PROCESS=True)
    at_ms = home.clock.now().wall_ms
    sender = home.writer.state_json()["senders"]["dpcStorage"]  # type: ignore[index]
    assert sender["problem"] == "410: rate limited"
    assert sender["next_send_ms"] == at_ms + 500
    assert sender["waiting"] is True
    home.until(1)
    sender = home.writer.state_json()["senders"]["dpcStorage"]  # type: ignore[index]
    assert sender["faults"]["DPC_PROCESS"] == {
        "code": PROCESS,
        "wanted": "present",
        "believed": "present",
        "occurred_ms": at_ms,
    }
    assert sender["last_message"] == {"id": home.clusterd.received[-1]["id"], "at_ms": at_ms + 500}
    assert (sender["problem"], sender["waiting"], sender["failures"]) == ("", False, 0)
    assert sender["next_send_ms"] == at_ms + 500 + 600_000
    assert json.loads(json.dumps(home.writer.state_json())) == home.writer.state_json()


def test_a_clock_before_2025_does_not_hide_the_fault(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.clock.step_wall_ms(-1_759_999_000_000)
    home.writer.chips(CHIPS)
    home.say(DPC_PROCESS=True)
    assert home.cached == {PROCESS}
    assert home.clusterd.broken == []


def test_a_wall_clock_that_is_set_moves_no_timer(home: Home) -> None:
    home.say(DPC_PROCESS=True)
    home.until(100)
    home.say(DPC_PROCESS=False)
    home.clock.step_wall_ms(-6 * 3600 * 1000)
    home.say(DPC_PROCESS=True)
    home.until(110)
    assert home.sent == [(0, {PROCESS: OCCUR}), (100, {PROCESS: RECOVER}), (107, {PROCESS: OCCUR})]


class TestConfigMapForm:
    """The same through objects that ClusterD follows."""

    @pytest.fixture
    def target(self) -> ClusterdTarget:
        return ClusterdTarget(FakeClusterd())

    @pytest.fixture
    def home(self, target: ClusterdTarget, tmp_path: Path) -> Home:
        made = Home(tmp_path, target.clusterd, ConfigMapCourier(target, "node-1"))
        made.writer.chips(CHIPS)
        return made

    def test_the_object_names_all_standing_faults(self, home: Home, target: ClusterdTarget) -> None:
        home.say(DPC_PROCESS=True)
        home.until(10)
        home.say(DPC_PROCESS=True, DPC_MEMORY=True)
        assert [said for _, said in home.sent] == [{PROCESS: OCCUR}, {PROCESS: OCCUR, MEMORY: OCCUR}]
        assert set(target.objects) == {("mindx-dl", "nodeagent-publicfault-dpc-node-1")}
        home.say(DPC_PROCESS=False, DPC_MEMORY=True)
        assert home.sent[-1][1] == {PROCESS: RECOVER, MEMORY: OCCUR}

    def test_without_the_file_the_object_is_the_memory(self, home: Home) -> None:
        home.say(DPC_PROCESS=True)
        home.until(100)
        home.folder = None
        home.start()
        home.writer.chips(CHIPS)
        home.say(DPC_PROCESS=True)
        home.until(300)
        assert len(home.sent) == 1
        home.say(DPC_PROCESS=False)
        assert home.cached == set()
        times = [message["faults"][0]["faultTime"] for message in home.clusterd.received]
        assert times[0] == times[1]

    def test_without_the_file_the_object_tells_of_a_recover_just_now(self, home: Home) -> None:
        home.say(DPC_PROCESS=True)
        home.until(100)
        home.say(DPC_PROCESS=False)
        home.until(101)
        home.folder = None
        home.start()
        home.writer.chips(CHIPS)
        home.say(DPC_PROCESS=True)
        home.until(150)
        assert home.sent[-1] == (107, {PROCESS: OCCUR})
        assert home.cached == {PROCESS}

    def test_a_write_under_way_at_the_kill_is_judged_by_the_object(self, home: Home, target: ClusterdTarget) -> None:
        for arrived in (False, True):
            home.say(DPC_PROCESS=True)
            home.until(home.now_s + 100)
            target.failures = [(KeyboardInterrupt(), arrived)]  # type: ignore[list-item]
            with pytest.raises(KeyboardInterrupt):
                home.say(DPC_PROCESS=False)
            home.sent.clear()
            home.start()
            home.writer.chips(CHIPS)
            home.say(DPC_PROCESS=False)
            assert len(home.sent) == (0 if arrived else 1)
            assert home.cached == set()
            home.until(home.now_s + 10)

    @pytest.mark.parametrize(
        "spoilt", [{}, {"data": {}}, {"data": {"PublicFault": "{"}}, {"data": {"PublicFault": "7"}}]
    )
    def test_a_spoilt_object_is_written_twice(
        self, home: Home, target: ClusterdTarget, spoilt: dict[str, object]
    ) -> None:
        key = ("mindx-dl", "nodeagent-publicfault-dpc-node-1")
        target.objects[key] = {"metadata": {"name": key[1], "namespace": key[0]}, "data": {}} | spoilt
        home.say(DPC_PROCESS=True)
        assert home.cached == {PROCESS}
        home.until(700)
        assert [moment for moment, _ in home.sent] == [0, 600]

    def test_an_object_with_foreign_faults_is_readable_and_says_nothing(
        self, home: Home, target: ClusterdTarget
    ) -> None:
        key = ("mindx-dl", "nodeagent-publicfault-dpc-node-1")
        text = (
            '{"resource":"dpcStorage","timestamp":1767225600000,"faults":[null,{"faultId":"x"},{"assertion":"occur"}]}'
        )
        target.objects[key] = {"metadata": {"name": key[1], "namespace": key[0]}, "data": {"PublicFault": text}}
        home.say(DPC_PROCESS=True)
        assert home.cached == {PROCESS}
        assert len(home.sent) == 1

    def test_an_object_that_cannot_be_read_delays_and_is_told_once(
        self, home: Home, target: ClusterdTarget, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(namespace: str, name: str) -> None:
            raise ReadBackError("the API server is away")

        with monkeypatch.context() as broken:
            broken.setattr(target, "read", fail)
            home.say(DPC_PROCESS=True)
            home.until(100)
        assert home.ears.reasons == [EventReason.PUBLIC_FAULT_LATE]
        assert home.metrics.value("public_fault_waiting", resource="dpcStorage") == 1
        assert home.sent == []
        home.until(130)
        assert home.cached == {PROCESS}
        assert home.ears.reasons[1:] == [EventReason.PUBLIC_FAULT_DELIVERED]

    def test_a_server_that_wants_to_be_left_alone_is(self, home: Home, target: ClusterdTarget) -> None:
        target.failures = [(LaterError("429", "", 42.0), False), (PublishError("no answer"), True)]
        home.say(DPC_PROCESS=True)
        home.until(41.9)
        assert home.sent == []
        home.until(60)
        assert [moment for moment, _ in home.sent] == [42, 43]

    def test_a_shadow_is_no_news_for_clusterd(self, target: ClusterdTarget, tmp_path: Path) -> None:
        home = Home(tmp_path, target.clusterd, ConfigMapCourier(target, "node-1", shadow=True))
        home.writer.chips(CHIPS)
        home.say(DPC_PROCESS=True)
        assert set(target.objects) == {("mindx-dl", "nodeagent-publicfault-dpc-node-1-shadow")}
        assert home.cached == set()
