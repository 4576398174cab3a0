"""How the parts of node faults are tied together."""

import threading
from pathlib import Path

import pytest

from nodeagent.core.clock import SystemClock
from nodeagent.core.settings import IpmiSettings, NodeSettings, PublicFaultSettings, PublishSettings, Settings
from nodeagent.core.telemetry import NullTelemetry
from nodeagent.daemon.node_faults import LevelsGate, _audience, _courier, node_faults_of
from nodeagent.policy.node_table import NodeConfiguration, NodeTable

BUILT_IN, CUSTOM = (NodeConfiguration(NodeTable(), version) for version in ("built-in", "custom"))


class Levels:
    """A configuration source that was asked. known: what its wait ends with."""

    def __init__(self, known: bool) -> None:
        self.known = known

    def wait_known(self, timeout_s: float) -> bool:
        return self.known


class TestGate:
    def test_nothing_is_judged_before_the_layers_were_looked_at(self) -> None:
        given: list[NodeConfiguration] = []
        gate = LevelsGate(BUILT_IN, given.append)
        gate.put(CUSTOM)
        assert given == []
        gate.begin(Levels(known=True), threading.Event())  # type: ignore[arg-type]
        assert given == [CUSTOM], "and never by the levels below it"

    def test_an_api_server_that_is_away_lets_the_layers_below_begin(self) -> None:
        given: list[NodeConfiguration] = []
        gate = LevelsGate(BUILT_IN, given.append)
        gate.begin(Levels(known=False), threading.Event())  # type: ignore[arg-type]
        gate.put(CUSTOM)
        assert given == [BUILT_IN, CUSTOM]

    def test_a_daemon_that_stops_meanwhile_judges_nothing(self) -> None:
        given: list[NodeConfiguration] = []
        stopping = threading.Event()
        stopping.set()
        LevelsGate(BUILT_IN, given.append).begin(Levels(known=False), stopping)  # type: ignore[arg-type]
        assert given == []


def settings(delivery: str, mode: str = "live", target: str = "directory", folder: str = "/nowhere") -> Settings:
    return Settings(
        node=NodeSettings("n1"),
        ipmi=IpmiSettings(transport="off"),
        publish=PublishSettings(target=target, mode=mode, directory=folder),
        public_faults=PublicFaultSettings(delivery=delivery),
    )


class TestWhoIsTold:
    @pytest.mark.parametrize(
        ("delivery", "mode", "told"),
        [
            ("configmap", "live", "ConfigMapCourier"),
            ("configmap", "shadow", "ConfigMapCourier"),
            ("grpc", "live", "GrpcCourier"),
            ("grpc", "shadow", "NoneType"),
            ("off", "live", "NoneType"),
        ],
    )
    def test_a_shadow_calls_nobody(self, delivery: str, mode: str, told: str) -> None:
        assert type(_courier(settings(delivery, mode), None)).__name__ == told

    def test_what_one_audience_knows_says_nothing_of_another(self) -> None:
        ways = [
            settings("configmap"),
            settings("configmap", mode="shadow"),
            settings("configmap", target="kubernetes"),
            settings("grpc"),
        ]
        assert len({_audience(each) for each in ways}) == 4
        assert _audience(settings("grpc")) == _audience(settings("grpc", target="kubernetes"))


def test_without_a_bmc_to_ask_the_storage_clients_are_watched_all_the_same(tmp_path: Path) -> None:
    parts = node_faults_of(
        settings("off", folder=str(tmp_path)), SystemClock(), None, None, None, NullTelemetry(), NullTelemetry()
    )
    assert [loop.name for loop in parts.loops()] == ["public_faults", "storage"]
    assert parts.beat_s is None
    state = parts.state()
    assert (state["board"], [client["client"] for client in state["storage"]]) == (None, ["dpc", "dtfs"])
