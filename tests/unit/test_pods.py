"""Which chips pods use (device-info 4.2; decision 7)."""

from collections.abc import Sequence
from typing import Any

import pytest
from kit.clock import FakeClock

from nodeagent.core.observation import ChipsInUse, Observation
from nodeagent.core.telemetry import NullTelemetry
from nodeagent.sources.pods import PodSource, chips_of, field_selector


def pod(name: str, phase: str = "", **annotations: str) -> dict[str, Any]:
    keys = {"real": "huawei.com/AscendReal", "wished": "huawei.com/Ascend910", "npu": "huawei.com/npu"}
    made: dict[str, Any] = {
        "metadata": {
            "namespace": "jobs",
            "name": name,
            "annotations": {keys.get(k, k): text for k, text in annotations.items()},
        }
    }
    if phase:
        made["status"] = {"phase": phase}
    return made


class Told:
    def __init__(self) -> None:
        self.sets: list[frozenset[int] | None] = []
        self.source = PodSource(FakeClock(), self.take, NullTelemetry())

    def take(self, observations: Sequence[Observation]) -> None:
        for observation in observations:
            assert isinstance(observation, ChipsInUse)
            self.sets.append(observation.physical_ids)


@pytest.mark.parametrize(
    ("annotations", "chips"),
    [
        ({}, set()),
        ({"huawei.com/AscendReal": ""}, set()),
        ({"huawei.com/AscendReal": "Ascend910-0,Ascend910-11"}, {0, 11}),
        ({"huawei.com/AscendReal": " npu-3 , npu-4 "}, {3, 4}),
        ({"huawei.com/AscendReal": "Ascend910-1", "huawei.com/Ascend910": "Ascend910-2"}, {1}),
        ({"huawei.com/AscendReal": "", "huawei.com/Ascend910": "Ascend910-2"}, {2}),
        ({"huawei.com/npu": "npu-7"}, {7}),
        ({"huawei.com/AscendReal": "Ascend910-2c-100-3"}, {3}),
        ({"huawei.com/AscendReal": "Ascend910-2,,"}, {2}),
        ({"huawei.com/AscendReal": ",".join(f"Ascend910-{i}" for i in range(100))}, set(range(100))),
    ],
)
def test_chips_of_a_pod(annotations: dict[str, str], chips: set[int]) -> None:
    assert chips_of(annotations) == chips


@pytest.mark.parametrize(
    "text",
    ["Ascend910", "Ascend910-x", "Ascend910-1;Ascend910-2", "a" * (1024 * 1024 + 1), ",".join(["npu-1"] * 101), 7],
)
def test_what_cannot_be_read_is_unknown(text: Any) -> None:
    assert chips_of({"huawei.com/AscendReal": text}) is None


def test_a_list_then_changes_and_only_differences_are_told() -> None:
    told = Told()
    told.source.listed([pod("a", real="Ascend910-0"), pod("b", real="Ascend910-1,Ascend910-2"), pod("c")])
    told.source.changed("MODIFIED", pod("a", real="Ascend910-0"))
    told.source.changed("ADDED", pod("d", wished="Ascend910-5"))
    told.source.changed("DELETED", pod("b", real="Ascend910-1,Ascend910-2"))
    told.source.listed([])
    assert told.sets == [{0, 1, 2}, {0, 1, 2, 5}, {0, 5}, set()]


def test_a_pod_that_ended_uses_nothing() -> None:
    told = Told()
    told.source.listed([pod("a", "Running", real="Ascend910-0"), pod("b", "Failed", real="Ascend910-1")])
    told.source.changed("MODIFIED", pod("a", "Succeeded", real="Ascend910-0"))
    assert told.sets == [{0}, set()]


def test_an_unreadable_annotation_keeps_what_was_known_of_the_pod() -> None:
    told = Told()
    told.source.listed([pod("a", real="Ascend910-0")])
    told.source.changed("MODIFIED", pod("a", real="nonsense"))
    told.source.listed([pod("a", real="still nonsense"), pod("b", real="Ascend910-4")])
    assert told.sets == [{0}, {0, 4}]


def test_a_lost_connection_tells_nothing() -> None:
    told = Told()
    told.source.listed([pod("a", real="Ascend910-0")])
    told.source.trouble("no answer", "", forbidden=False)
    assert told.sets == [{0}]


def test_the_start_waits_for_an_answer_or_a_refusal() -> None:
    told = Told()
    assert not told.source.wait_first(0)
    told.source.trouble("no answer", "", forbidden=False)
    assert not told.source.wait_first(0)
    told.source.trouble("forbidden", "", forbidden=True)
    assert told.source.wait_first(0)
    assert told.sets == [], "unknown is not unused: nothing was said at all"
    other = Told()
    other.source.listed([])
    assert other.source.wait_first(0)


def test_the_field_selector() -> None:
    assert field_selector("w-1") == "spec.nodeName=w-1,status.phase!=Succeeded,status.phase!=Failed"
