"""The node-info object is the one that ClusterD and Volcano read, byte for byte (node-faults 8, 9, 19)."""

import copy
import hashlib
import json
import time
from typing import Any

import pytest

from nodeagent.core.alarms import NodeLevel
from nodeagent.core.board import BoardDevice, BoardView
from nodeagent.core.errors import ContractError
from nodeagent.render.node_info import Owner, config_map, object_name, render_node_info, time_text
from nodeagent.render.node_info_contract import check_node_info, judge_node_info, published_time_s

AT_S = 1748743200  # 2025-06-01T02:00:00Z, the moment of the example in 8.1

CPU_1 = BoardDevice("CPU", 1, ("0000001D",), NodeLevel.PRE_SEPARATE)
PSU_2 = BoardDevice("PSU", 2, ("03000009",), NodeLevel.NOT_HANDLE)
SYSTEM = BoardDevice("System", 255, ("2C000031",), NodeLevel.SEPARATE)
CPU_1_TWICE = BoardDevice("CPU", 1, ("0000001D", "0000001F"), NodeLevel.PRE_SEPARATE)
CPU_1_SEPARATE = BoardDevice("CPU", 1, ("0000001D",), NodeLevel.SEPARATE)


def outer(inner: str, check_code: str) -> str:
    return f'{{"NodeInfo":{inner},"CheckCode":"{check_code}"}}'


GOLDEN: dict[str, tuple[tuple[BoardDevice, ...], str]] = {
    # 8.2, row 1, and T2
    "t2_pre_separate": (
        (CPU_1,),
        outer(
            '{"FaultDevList":[{"DeviceType":"CPU","DeviceId":1,"FaultCode":["0000001D"],"FaultLevel":"PreSeparateFault"}],"NodeStatus":"PreSeparate"}',
            "230d03dc0e52145f85b908ee146e2c76a7bafc92adde6a30549037a5a743dd45",
        ),
    ),
    # 8.2, row 2
    "separate": (
        (SYSTEM,),
        outer(
            '{"FaultDevList":[{"DeviceType":"System","DeviceId":255,"FaultCode":["2C000031"],"FaultLevel":"SeparateFault"}],"NodeStatus":"UnHealthy"}',
            "d7134e299de8c8a9e6183db03db66815242378dc3d562bd5df0b242d61935dc0",
        ),
    ),
    # 8.2, row 3, and T6
    "t6_not_handle_only": (
        (PSU_2,),
        outer(
            '{"FaultDevList":[{"DeviceType":"PSU","DeviceId":2,"FaultCode":["03000009"],"FaultLevel":"NotHandleFault"}],"NodeStatus":"Healthy"}',
            "6c03d36d1a3e9f2cf26ac4f3c01aaeb117f7e184e443390636259f73916b6d82",
        ),
    ),
    # 8.2, row 4: only ever written to repair a bad object
    "healthy": (
        (),
        outer(
            '{"FaultDevList":[],"NodeStatus":"Healthy"}',
            "de38ed93b4fcbb7e7314695274a68ccf4aaece2c8fa2df361942d25731584886",
        ),
    ),
    "t4_worst_level_wins": (
        (CPU_1, PSU_2, SYSTEM),
        outer(
            '{"FaultDevList":[{"DeviceType":"CPU","DeviceId":1,"FaultCode":["0000001D"],"FaultLevel":"PreSeparateFault"},'
            '{"DeviceType":"PSU","DeviceId":2,"FaultCode":["03000009"],"FaultLevel":"NotHandleFault"},'
            '{"DeviceType":"System","DeviceId":255,"FaultCode":["2C000031"],"FaultLevel":"SeparateFault"}],"NodeStatus":"UnHealthy"}',
            "79fa55210fe84c3a1ff915c5650eb35d7410f159500a737a13ccb35db415f58e",
        ),
    ),
    "t7_two_codes_on_a_device": (
        (CPU_1_TWICE,),
        outer(
            '{"FaultDevList":[{"DeviceType":"CPU","DeviceId":1,"FaultCode":["0000001D","0000001F"],"FaultLevel":"PreSeparateFault"}],"NodeStatus":"PreSeparate"}',
            "0d096284c17add099236f000344923fc63c5ac72acb1c63544e9de9b170cb74c",
        ),
    ),
    "t8_level_change": (
        (CPU_1_SEPARATE,),
        outer(
            '{"FaultDevList":[{"DeviceType":"CPU","DeviceId":1,"FaultCode":["0000001D"],"FaultLevel":"SeparateFault"}],"NodeStatus":"UnHealthy"}',
            "3788c2f6777fe51a79769c1cd872a8c6a14d8043616f6e6929cd5f452e9a3ad7",
        ),
    ),
}


def obj(case: str = "t2_pre_separate", shadow: bool = False, owner: Owner | None = None) -> dict[str, Any]:
    return config_map("node-1", render_node_info(BoardView(1, GOLDEN[case][0]), AT_S), shadow, owner)


def with_text(text: object) -> dict[str, Any]:
    return {"data": {"NodeInfo": text}}


@pytest.mark.parametrize("case", GOLDEN)
def test_the_text_is_the_one_of_the_sheet(case: str) -> None:
    made = obj(case)
    assert made["data"] == {"NodeInfo": GOLDEN[case][1], "updateTime": "2025-06-01T02:00:00Z"}
    assert list(made["data"]) == ["NodeInfo", "updateTime"]
    assert judge_node_info(made) == ""
    check_node_info(made)


def test_the_whole_object() -> None:
    assert obj(owner=Owner("nodeagent", "6f0c")) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "mindx-dl-nodeinfo-node-1",
            "namespace": "mindx-dl",
            "labels": {"mx-consumer-cim": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nodeagent", "uid": "6f0c"}],
        },
        "data": {"NodeInfo": GOLDEN["t2_pre_separate"][1], "updateTime": "2025-06-01T02:00:00Z"},
    }
    assert "ownerReferences" not in obj()["metadata"]


def test_nobody_sees_a_shadow() -> None:
    shadow = obj(shadow=True)
    assert shadow["metadata"]["name"] == "mindx-dl-nodeinfo-node-1-shadow"
    assert "mx-consumer-cim" not in shadow["metadata"]["labels"]
    check_node_info(shadow, shadow=True)
    with pytest.raises(ContractError):
        check_node_info(shadow)
    with pytest.raises(ContractError):
        check_node_info(obj(), shadow=True)


class TestJudge:
    """ClusterD ignores an object for these reasons and no others (9.1)."""

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            (None, "no NodeInfo"),
            ("", "not JSON"),
            ("{", "not JSON"),
            ('{"NodeInfo":{"NodeStatus":NaN}}', "not JSON"),
            ("[]", "not a JSON object"),
            ("null", "not a JSON object"),
            ('{"NodeInfo":[],"CheckCode":"x"}', "not a JSON object"),
            ('{"NodeInfo":{"NodeStatus":1},"CheckCode":"x"}', "wrong type"),
            ('{"NodeInfo":{"FaultDevList":{}},"CheckCode":"x"}', "wrong type"),
            ('{"NodeInfo":{"FaultDevList":[1]},"CheckCode":"x"}', "not a JSON object"),
            ('{"NodeInfo":{"FaultDevList":[{"DeviceId":"1"}]},"CheckCode":"x"}', "wrong type"),
            ('{"NodeInfo":{"FaultDevList":[{"DeviceId":1.0}]},"CheckCode":"x"}', "wrong type"),
            ('{"NodeInfo":{"FaultDevList":[{"DeviceId":true}]},"CheckCode":"x"}', "wrong type"),
            ('{"NodeInfo":{"FaultDevList":[{"DeviceId":9223372036854775808}]},"CheckCode":"x"}', "wrong type"),
            ('{"NodeInfo":{"FaultDevList":[{"FaultCode":[1]}]},"CheckCode":"x"}', "no text"),
            ('{"NodeInfo":{"NodeStatus":"\\ud800"},"CheckCode":"x"}', "surrogate"),
            ('{"NodeInfo":{"FaultDevList":[],"NodeStatus":"Healthy"}}', "no CheckCode"),
            ('{"NodeInfo":{"FaultDevList":[],"NodeStatus":"Healthy"},"CheckCode":""}', "no CheckCode"),
            ('{"NodeInfo":{"FaultDevList":[],"NodeStatus":"Healthy"},"CheckCode":"x"}', "does not fit"),
            (GOLDEN["healthy"][1].replace("de38ed", "DE38ED"), "does not fit"),
        ],
    )
    def test_ignored(self, text: object, why: str) -> None:
        assert why in judge_node_info(with_text(text))

    def test_an_object_without_data(self) -> None:
        assert judge_node_info({}) == "there is no NodeInfo"

    @pytest.mark.parametrize(
        "text",
        [
            # The vector of ClusterD's own test (8.2), and the same with the members left out, as Go decodes both.
            outer(
                '{"FaultDevList":null,"NodeStatus":""}',
                "4c97cddcb947bd707778eb50b0986a69768afc2ef3e4f351db0b92e9d07d1fed",
            ),
            outer("{}", "4c97cddcb947bd707778eb50b0986a69768afc2ef3e4f351db0b92e9d07d1fed"),
            outer("null", "4c97cddcb947bd707778eb50b0986a69768afc2ef3e4f351db0b92e9d07d1fed"),
            # The document's sample with the value that is right for it (8.2).
            outer(
                '{"FaultDevList":[{"DeviceType":"CPU","DeviceId":1,"FaultCode":["00000011"],"FaultLevel":"SeparateFault"}],"NodeStatus":"UnHealthy"}',
                "215f43b3551aaa62df1f78f345a0847f6b06f8b5a55e51efa30180a794ee6f0b",
            ),
        ],
    )
    def test_taken(self, text: str) -> None:
        assert judge_node_info(with_text(text)) == ""

    def test_the_documents_outdated_sample_is_ignored(self) -> None:
        device = '{"DeviceType":"CPU","DeviceId":1,"FaultCode":["00000011"],"FaultLevel":"SeparateFault"}'
        inner = f'{{"FaultDevList":[{device}],"NodeStatus":"UnHealthy"}}'
        assert judge_node_info(with_text(outer(inner, "3a2934c3"))) != ""

    def test_spaces_and_unknown_members_are_not_hashed(self) -> None:
        parsed = json.loads(GOLDEN["t2_pre_separate"][1])
        parsed["NodeInfo"]["Extra"] = 1.5
        parsed["HeartbeatTime"] = 1
        assert judge_node_info(with_text(json.dumps(parsed, indent=1))) == ""


class TestSelfCheck:
    """What must never be sent."""

    @pytest.mark.parametrize(
        "devices",
        [
            (BoardDevice("CPU", 1, (), NodeLevel.SEPARATE),),
            (BoardDevice("CPU", 1, ("1D",), NodeLevel.SEPARATE),),
            (BoardDevice("CPU", 1, ("0000001d",), NodeLevel.SEPARATE),),
            (BoardDevice("CPU", 1, ("0000001D", "0000001D"), NodeLevel.SEPARATE),),
            (BoardDevice("CPU", 256, ("0000001D",), NodeLevel.SEPARATE),),
            (BoardDevice("", 1, ("0000001D",), NodeLevel.SEPARATE),),
            (CPU_1, CPU_1_SEPARATE),
        ],
    )
    def test_a_device_that_is_none(self, devices: tuple[BoardDevice, ...]) -> None:
        with pytest.raises(ContractError):
            check_node_info(config_map("node-1", render_node_info(BoardView(1, devices), AT_S)))

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("kind",), "Secret"),
            (("immutable",), True),
            (("metadata", "namespace"), "kube-system"),
            (("metadata", "name"), "mindx-dl-nodeinfo-"),
            (("metadata", "name"), "mindx-dl-nodeinfo-Node_1"),
            (("metadata", "name"), "node-1"),
            (("metadata", "labels"), {}),
            (("data", "updateTime"), "2025-06-01 02:00:00"),
            (("data", "NodeInfo"), GOLDEN["t2_pre_separate"][1].replace(":", ": ", 1)),
            (("data", "Extra"), ""),
        ],
    )
    def test_an_object_that_is_another(self, path: tuple[str, ...], value: object) -> None:
        made = copy.deepcopy(obj())
        place: Any = made
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value
        with pytest.raises(ContractError):
            check_node_info(made)

    def test_levels_and_status_must_agree(self) -> None:
        """Written by somebody who hashes well: ClusterD would take it, and read two things."""
        inner = '{"FaultDevList":[],"NodeStatus":"UnHealthy"}'
        made = obj()
        made["data"]["NodeInfo"] = outer(inner, hashlib.sha256(inner.encode()).hexdigest())
        assert judge_node_info(made) == ""
        with pytest.raises(ContractError, match="does not fit the levels"):
            check_node_info(made)

    def test_300_alarms_are_far_below_the_limit_and_an_object_above_it_is_refused(self) -> None:
        few = tuple(BoardDevice("Disk", number, ("0200002D",), NodeLevel.PRE_SEPARATE) for number in range(256))
        made = config_map("node-1", render_node_info(BoardView(1, few), AT_S))
        assert len(made["data"]["NodeInfo"]) < 64 * 1024  # type: ignore[index]
        check_node_info(made)
        codes = tuple(f"{number:08X}" for number in range(100_000))
        many = BoardView(1, (BoardDevice("Disk", 1, codes, NodeLevel.PRE_SEPARATE),))
        with pytest.raises(ContractError, match="bytes are more"):
            check_node_info(config_map("node-1", render_node_info(many, AT_S)))


@pytest.mark.parametrize(
    ("text", "unix_s"),
    [
        ("2025-06-01T02:00:00Z", AT_S),
        ("2025-06-01T10:00:00+08:00", AT_S),
        ("2025-06-01T10:00:00.123456789+08:00", AT_S),
        ("2025-06-01", 0),
        ("2025-13-01T02:00:00Z", 0),
        ("yesterday", 0),
        (7, 0),
    ],
)
def test_times_of_others_are_understood(text: object, unix_s: int) -> None:
    assert published_time_s({"data": {"updateTime": text}}) == unix_s


def test_times_are_utc_whatever_the_zone_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert time_text(AT_S) == "2025-06-01T02:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_names() -> None:
    assert object_name("worker-1") == "mindx-dl-nodeinfo-worker-1"
    assert object_name("worker-1", shadow=True) == "mindx-dl-nodeinfo-worker-1-shadow"
