"""Node conditions from a view: unknown is neither good nor bad, and a transition is a change of status."""

import dataclasses

import pytest
from contract.data.device_info.cases import chip, chip_id, node
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.levels import Level
from nodeagent.core.model import ChipView, Family, NodeView
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.publish.conditions import (
    Condition,
    ConditionType,
    DriverState,
    conditions_of,
    known_conditions,
    patch_of,
)

READY = DriverState(True, "8 chips through libdcmi.so")
CHIPS, NETWORK, DRIVER = ConditionType.CHIPS, ConditionType.NETWORK, ConditionType.DRIVER
AT_MS, AT = 1_760_000_000_250, "2025-10-09T08:53:20Z"


def of(view: NodeView, kind: ConditionType, driver: DriverState = READY) -> Condition:
    return {each.kind: each for each in conditions_of(view, driver)}[kind]


def silent(number: int, **more: object) -> ChipView:
    return dataclasses.replace(ChipView(chip_id(number)), silent_since_ms=1, **more)


def test_a_healthy_node() -> None:
    assert conditions_of(node(Family.A2, 8), READY) == (
        Condition(CHIPS, "True", "AllHealthy", "all chips are healthy (8)"),
        Condition(NETWORK, "True", "AllHealthy", "all chips are healthy (8)"),
        Condition(DRIVER, "True", "DriverReady", "8 chips through libdcmi.so"),
    )


def test_chips_to_be_avoided_are_named_with_their_level() -> None:
    view = node(Family.A2, 8, {3: chip(3, Level.SEPARATE), 5: chip(5, Level.RESTART_NPU)})
    assert of(view, CHIPS) == Condition(
        CHIPS,
        "False",
        "SomeUnhealthy",
        "chip 3 (phy 3, card 1/1) has SeparateNPU; chip 5 (phy 5, card 2/1) has RestartNPU",
    )
    assert of(view, NETWORK).status == "True"


def test_a_link_that_is_down_is_a_matter_of_the_network() -> None:
    bad = ChipView(chip_id(1), network_healthy=False, network_level=Level.PRE_SEPARATE)
    view = node(Family.A2, 8, {1: bad})
    assert of(view, CHIPS).status == "True"
    assert of(view, NETWORK).message == "chip 1 (phy 1, card 0/1) has PreSeparateNPU"


def test_a_fault_that_does_not_make_a_chip_unhealthy_is_none_here() -> None:
    view = node(Family.A2, 8, {2: chip(2, Level.SUB_HEALTH, healthy=True)})
    assert of(view, CHIPS).status == "True"


def test_silence_is_unknown_unless_something_is_known_to_be_bad() -> None:
    quiet = of(node(Family.A2, 8, {4: silent(4)}), CHIPS)
    assert (quiet.status, quiet.reason) == ("Unknown", "SomeSilent")
    assert quiet.message == "chip 4 (phy 4, card 2/0) does not answer"
    both = of(node(Family.A2, 8, {4: silent(4), 6: chip(6, Level.SEPARATE)}), CHIPS)
    assert (both.status, both.reason) == ("False", "SomeUnhealthy")
    assert both.message.endswith("has SeparateNPU; chip 4 (phy 4, card 2/0) does not answer")


def test_no_network_condition_without_a_network_plane() -> None:
    assert [each.kind for each in conditions_of(node(Family.A310P, 2), READY)] == [CHIPS, DRIVER]


def test_no_chip_is_unknown() -> None:
    assert of(node(Family.A2, 0), CHIPS).status == "Unknown"


@pytest.mark.parametrize(
    ("events", "status", "reason"),
    [
        ([], "Unknown", "NotTold"),
        ([Event(EventReason.DRIVER_READY, "here")], "True", "DriverReady"),
        ([Event(EventReason.DRIVER_READY, "here"), Event(EventReason.DRIVER_LOST, "gone")], "False", "DriverLost"),
        ([Event(EventReason.DRIVER_READY, "x"), Event(EventReason.DRIVER_RELEASED, "y")], "Unknown", "DriverReleased"),
        ([Event(EventReason.DRIVER_RELEASED, "x"), Event(EventReason.DRIVER_READY, "y")], "True", "DriverReady"),
        ([Event(EventReason.DRIVER_LOST, "gone"), Event(EventReason.PUBLISH_FAILED, "x")], "False", "DriverLost"),
    ],
)
def test_the_driver_is_what_was_said_of_it_last(events: list[Event], status: str, reason: str) -> None:
    driver = DriverState()
    for event in events:
        driver = driver.after(event)
    told = of(node(Family.A2, 1), DRIVER, driver)
    assert (told.status, told.reason) == (status, reason)


def test_first_conditions_all_have_a_transition() -> None:
    patch = patch_of(conditions_of(node(Family.A310P, 1), READY), {}, AT_MS)
    assert patch == {
        "status": {
            "conditions": [
                {
                    "type": "AscendChipsHealthy",
                    "status": "True",
                    "reason": "AllHealthy",
                    "message": "all chips are healthy (1)",
                    "lastHeartbeatTime": AT,
                    "lastTransitionTime": AT,
                },
                {
                    "type": "NodeagentDriver",
                    "status": "True",
                    "reason": "DriverReady",
                    "message": "8 chips through libdcmi.so",
                    "lastHeartbeatTime": AT,
                    "lastTransitionTime": AT,
                },
            ]
        }
    }


def test_another_chip_in_the_message_is_no_transition() -> None:
    before = {each.kind: each for each in conditions_of(node(Family.A2, 8, {3: chip(3, Level.SEPARATE)}), READY)}
    more = {3: chip(3, Level.SEPARATE), 4: chip(4, Level.SEPARATE)}
    patch = patch_of(conditions_of(node(Family.A2, 8, more), READY), before, AT_MS)
    assert patch is not None
    [changed] = patch["status"]["conditions"]  # type: ignore[index]
    assert changed["type"] == "AscendChipsHealthy"
    assert "lastTransitionTime" not in changed


def test_what_is_known_already_is_not_written() -> None:
    wanted = conditions_of(node(Family.A2, 8), READY)
    assert patch_of(wanted, {each.kind: each for each in wanted}, AT_MS) is None


@pytest.mark.parametrize(
    "status",
    [
        None,
        [],
        {},
        {"conditions": None},
        {"conditions": {}},
        {"conditions": ["x", {}, {"type": "Ready"}, {"type": []}]},
    ],
)
def test_a_node_without_our_conditions(status: object) -> None:
    assert known_conditions({"status": status}) == {}


def test_a_message_is_bounded() -> None:
    view = node(Family.A2, 64, {number: chip(number, Level.SEPARATE) for number in range(64)})
    message = of(view, CHIPS).message
    assert 1000 < len(message.encode()) <= 1024
    assert message.endswith("…")


STATES = st.builds(
    DriverState, st.sampled_from([None, True, False]), st.sampled_from(["", "gone", "8 chips through a library"])
)


@settings(deadline=None)
@given(st.sets(st.integers(0, 7)), st.sets(st.integers(0, 7)), STATES)
def test_reading_back_what_was_written_leaves_nothing_to_write(
    bad: set[int], quiet: set[int], state: DriverState
) -> None:
    chips = {number: chip(number, Level.SEPARATE) for number in bad}
    chips |= {number: silent(number) for number in quiet - bad}
    wanted = conditions_of(node(Family.A2, 8, chips), state)
    patch = patch_of(wanted, {}, AT_MS)
    assert patch is not None
    assert patch_of(wanted, known_conditions(patch), AT_MS) is None
    expected = "False" if bad else "Unknown" if quiet else "True"
    assert wanted[0].status == expected
