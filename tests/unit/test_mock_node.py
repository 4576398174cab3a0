"""The node model in isolation: faults, events, rules, reset and storm on a clock of the test's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.clock import FakeClock

from nodeagent.core.errors import MockError
from nodeagent.mock.events import CRITICAL, HINT, MINOR, OCCURRENCE, ONE_OFF, RECOVERY, Module
from nodeagent.mock.node import MockNode
from nodeagent.mock.spec import ChipSpec, NodeSpec, StartFailure, StartFault
from nodeagent.mock.storm import Storm

CODE, OTHER = 0x80E18005, 0x80E01801
HEALTH, CODES = "dcmi_get_device_health", "dcmi_get_device_errorcode_v2"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def node(clock):
    """Eight chips of an A2; every test may ask for another one with `make`."""
    return MockNode(NodeSpec(profile="a2", recovery_lag_ms=300), clock)


def test_occurrence_and_recovery(node, clock):
    heard = []
    node.add_listener(heard.append)
    raised_ms = clock.now().wall_ms
    node.raise_fault(3, CODE, severity=CRITICAL, module=Module(node_type=0x70), name="hot", info=b"xyz")
    assert node.error_codes(3) == (0, (CODE,))
    assert node.health(3) == (0, 3)
    assert node.health(2) == (0, 0)
    clock.advance_ms(5000)
    (recovery,) = node.clear_fault(3, CODE)
    first, second = heard
    assert second is recovery
    assert (first.assertion, second.assertion) == (OCCURRENCE, RECOVERY)
    # 7.5: a recovery carries the time of the occurrence; the alarm keeps its serial number.
    assert (first.raised_time_ms, second.raised_time_ms) == (raised_ms, raised_ms)
    assert first.event_serial_num == second.event_serial_num
    assert first.notify_serial_num < second.notify_serial_num
    assert (second.severity, second.module) == (CRITICAL, Module(node_type=0x70))
    assert (first.name, first.additional_info) == ("hot", b"xyz")


def test_codes_linger_after_recovery_exactly_as_long_as_told(node, clock):
    node.raise_fault(0, CODE)
    node.clear_fault(0, CODE)
    clock.advance_ms(299)
    assert node.error_codes(0) == (0, (CODE,))
    assert node.health(0) == (0, 2)
    clock.advance_ms(1)
    assert node.error_codes(0) == (0, ())
    assert node.health(0) == (0, 0)


def test_a_lingering_code_that_occurs_again_stays(node, clock):
    node.raise_fault(0, CODE)
    node.clear_fault(0, CODE)
    node.raise_fault(0, CODE)
    assert node.error_codes(0) == (0, (CODE,))
    clock.advance_ms(10_000)
    assert node.error_codes(0) == (0, (CODE,))


def test_lag_is_not_fooled_by_the_wall_clock(node, clock):
    node.raise_fault(0, CODE)
    node.clear_fault(0, CODE)
    clock.step_wall_ms(3_600_000)
    assert node.error_codes(0) == (0, (CODE,))


def test_the_most_severe_alarm_wins(node):
    for code, severity in ((1, HINT), (2, MINOR), (3, CRITICAL), (4, MINOR)):
        node.raise_fault(0, code, severity=severity)
    assert node.health(0) == (0, 3)
    node.clear_fault(0, 3)
    assert node.state()["chips"][0]["health"] == 3  # still lingering
    node.clock.advance_ms(300)
    assert node.health(0) == (0, 1)


def test_list_and_event_can_be_separated(node):
    """An event that was lost, and a list that does not follow."""
    assert node.raise_fault(0, CODE, event=False) == []
    assert node.error_codes(0) == (0, (CODE,))
    assert len(node.raise_fault(0, OTHER, listed=False)) == 1
    assert node.error_codes(0) == (0, (CODE,))
    assert len(node.clear_fault(0, CODE, listed=False)) == 1
    assert node.error_codes(0) == (0, (CODE,))


def test_bad_input_for_clients_can_be_made(node):
    """Unknown chips, code 0, a recovery of nothing, a repeated occurrence."""
    (event,) = node.raise_fault(700, CODE)
    assert event.logic_id == 700
    (event,) = node.raise_fault(0, 0)
    assert event.code == 0
    assert node.error_codes(0) == (0, (0,))
    (event,) = node.clear_fault(1, CODE)
    assert (event.assertion, event.code) == (RECOVERY, CODE)
    node.raise_fault(2, CODE)
    assert len(node.raise_fault(2, CODE)) == 1
    assert node.error_codes(2) == (0, (CODE,))


@pytest.mark.parametrize(
    ("logic_id", "code"), [(65536, CODE), (-1, CODE), (0, 1 << 32), (0, -1)], ids=["chip", "negative", "code", "sign"]
)
def test_what_no_event_can_carry_is_refused(node, logic_id, code):
    with pytest.raises(MockError):
        node.raise_fault(logic_id, code)


def test_notice_is_never_listed(node):
    (event,) = node.notice(1, 0x80C98006)
    assert (event.assertion, event.severity) == (ONE_OFF, HINT)
    assert node.error_codes(1) == (0, ())


def test_at_most_128_codes(node):
    for code in range(1, 140):
        node.raise_fault(0, code, event=False)
    assert node.error_codes(0) == (0, tuple(range(1, 129)))


def test_dropped_card_takes_all_its_dies(clock):
    node = MockNode(NodeSpec(profile="a3"), clock)
    node.raise_fault(11, CODE)
    assert node.drop_card(5) == []
    assert [node.health(chip)[0] for chip in (9, 10, 11, 12)] == [0, -8012, -8012, 0]
    assert node.error_codes(11) == (-8005, ())
    assert node.topology().card_ids == (0, 1, 2, 3, 4, 6, 7)
    node.return_card(5)
    assert node.error_codes(11) == (0, (CODE,))
    assert node.topology().card_ids == tuple(range(8))
    with pytest.raises(MockError, match="no card 8"):
        node.drop_card(8)


@pytest.mark.parametrize(("profile", "code"), [("a2", 0x81078603), ("950", 0x81078607)])
def test_link(clock, profile, code):
    node = MockNode(NodeSpec(profile=profile), clock)
    (down,) = node.set_link(2, up=False)
    assert (down.code, down.assertion, down.module.node_type) == (code, OCCURRENCE, 0x5D)
    assert node.set_link(2, up=False) == []
    (up,) = node.set_link(2, up=True)
    assert (up.code, up.assertion) == (code, RECOVERY)
    assert node.error_codes(2) == (0, ())


def test_gateway_by_product(clock):
    a2, card = MockNode(NodeSpec(profile="a2"), clock), MockNode(NodeSpec(profile="a2-card"), clock)
    a2.set_gateway(1, 3)
    assert a2.network_health(1) == (0, 3)
    assert a2.network_health(0) == (0, 0)
    assert card.network_health(1) == (-8255, 0)
    with pytest.raises(MockError):
        a2.set_gateway(8, 0)


def test_fail_counts_calls_and_means_both_twins(node):
    node.fail("dcmiv2_get_device_health", 4, -8006, times=2)
    assert node.health(5) == (0, 0)
    assert [node.health(4)[0] for _ in range(3)] == [-8006, -8006, 0]
    node.fail(CODES, None, -8005)
    assert [node.error_codes(chip)[0] for chip in range(8)] == [-8005] * 8
    node.fail(CODES, None, 0)
    assert node.error_codes(0)[0] == 0
    with pytest.raises(ValueError, match="not a function"):
        node.fail("dcmi_get_device_helth", None, -8005)


def test_hang_is_a_window_of_time(node, clock):
    node.hang(HEALTH, 4, 30)
    assert node.disturbance(HEALTH, 3).hang_s == 0
    assert node.disturbance(HEALTH, 4).hang_s == 30
    clock.advance_ms(12_000)
    assert node.disturbance(HEALTH, 4).hang_s == 18
    assert node.health(4) == (0, 0)
    clock.advance_ms(18_000)
    assert node.disturbance(HEALTH, 4).hang_s == 0
    assert node.rules.describe() == []


def test_hang_of_some_calls_and_its_end(node):
    node.hang(HEALTH, None, 30, times=2)
    assert [node.disturbance(HEALTH, chip).hang_s for chip in range(3)] == [30, 30, 0]
    node.hang(HEALTH, None, 30)
    node.hang(HEALTH, None, 0)
    assert node.disturbance(HEALTH, 0).hang_s == 0


def test_crash_meets_one_call(node):
    node.crash(HEALTH, None)
    assert [node.disturbance(HEALTH, 0).crash_signal for _ in range(2)] == [11, 0]


def test_reset(node, clock):
    """Faults go, boot status runs 1, 2, 3, 16 a second each, then 8C2FA009 (18.2 row 10, 6.3)."""
    heard = []
    node.raise_fault(2, CODE)
    node.add_listener(heard.append)
    node.reset(2)
    assert node.error_codes(2) == (0, ())
    seen = []
    for _ in range(3):
        seen.append((node.boot_status(2), node.pump()))
        clock.advance_ms(1000)
    assert seen == [(1, 3000), (2, 2000), (3, 1000)]
    assert node.boot_status(2) == 16
    assert heard == []
    assert node.pump() is None
    assert [(event.code, event.assertion, event.logic_id) for event in heard] == [(0x8C2FA009, ONE_OFF, 2)]
    assert node.pump() is None
    assert len(heard) == 1
    assert [node.boot_status(chip) for chip in (0, 2)] == [16, 16]


def test_reset_ends_pingmesh_tasks_of_its_chip(node):
    for chip in (1, 2):
        node.pings.start(chip, 0, (b"1",), packets=10, interval_s=1)
    node.reset(2)
    assert (node.pings.running(1, 0), node.pings.running(2, 0)) == (True, False)


def test_what_is_there_at_the_start(clock):
    spec = NodeSpec(
        profile="a2",
        dropped_cards=(7,),
        faults=(StartFault(1, CODE, MINOR),),
        failing=(StartFailure(HEALTH, -8006, chip=2, times=1),),
        subscribe_failures=1,
        per_chip=(ChipSpec(3, phy_id=9, gateway=8),),
    )
    node = MockNode(spec, clock)
    assert node.error_codes(1) == (0, (CODE,))
    assert node.health(1) == (0, 1)
    assert [node.health(2)[0] for _ in range(2)] == [-8006, 0]
    assert node.health(7)[0] == -8012
    assert node.chips[3].phy_id == 9
    assert node.network_health(3) == (0, 8)
    subscribe = "dcmi_subscribe_fault_event"
    assert [node.forced_code(subscribe, None) for _ in range(2)] == [-8020, None]
    assert [event.code for event in node.present_events()] == [CODE]


def test_listeners_come_and_go(node):
    first, second = [], []
    node.add_listener(first.append)
    node.add_listener(second.append)
    node.notice(0, 1)
    node.remove_listener(first.append)
    node.notice(0, 2)
    assert ([event.code for event in first], [event.code for event in second]) == ([1], [1, 2])
    with pytest.raises(ValueError):
        node.remove_listener(first.append)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"profile": "a9"}, "no profile 'a9'"),
        ({"chips": 257}, "1..256"),
        ({"chips_per_card": 5}, "1..4"),
        ({"card_ids": (1, 1)}, "2 different cards"),
        ({"card_ids": (1, 2, 3), "chips": 2}, "2 different cards"),
        ({"dropped_cards": (8,)}, "card 8"),
        ({"faults": (StartFault(8, CODE),)}, "chip 8"),
        ({"per_chip": (ChipSpec(0, phy_id=5),)}, "same phy_id"),
        ({"unsupported": ("dcmi_frobnicate",)}, "not a function"),
    ],
)
def test_descriptions_that_do_not_fit(fields, words):
    with pytest.raises(ValueError, match=words):
        NodeSpec(**fields)


def run_storm(node, clock):
    """Pump until nothing is due; the number of pumps."""
    pumps = 0
    while (wait_ms := node.pump()) is not None:
        clock.advance_ms(wait_ms)
        pumps += 1
    return pumps


def test_storm_of_ten_thousand_events(node, clock):
    heard = []
    node.add_listener(heard.append)
    storm = node.storm(1000, 10)
    start_ms = clock.now().mono_ms
    run_storm(node, clock)
    assert storm.total == 10_000
    assert len(heard) == 10_000
    assert 9_900 <= clock.now().mono_ms - start_ms <= 10_100
    assert [event.assertion for event in heard if event.logic_id == 3] == [1, 0] * 625
    clock.advance_ms(300)
    assert [node.error_codes(chip) for chip in range(8)] == [(0, ())] * 8


def test_storm_that_leaves_faults_on_one_chip(node, clock):
    node.storm(100, 1, logic_id=5, codes=(CODE, OTHER), leave_raised=True)
    run_storm(node, clock)
    assert node.error_codes(5) == (0, (CODE, OTHER))
    assert node.error_codes(4) == (0, ())


@given(
    rate=st.floats(0.5, 50_000),
    seconds=st.floats(0.1, 100),
    chips=st.integers(1, 64),
    codes=st.integers(1, 5),
    leave=st.booleans(),
)
def test_a_storm_keeps_its_promise(rate, seconds, chips, codes, leave):
    """Whole rounds, near the wanted number, raise and clear in turn, ended as asked."""
    storm = Storm(0, rate, seconds, tuple(range(chips)), tuple(range(1, codes + 1)), leave)
    pairs = chips * codes
    assert storm.total % pairs == 0
    assert (storm.total // pairs) % 2 == leave
    assert abs(storm.total - rate * seconds) <= 2 * pairs
    if storm.total <= 20_000:
        steps = list(storm.due(10**12))
        assert len(steps) == storm.total
        assert storm.finished
        raised = {}
        for step in steps:
            assert raised.get((step.logic_id, step.code), False) != step.occurs
            raised[step.logic_id, step.code] = step.occurs
        assert set(raised.values()) == {leave}
