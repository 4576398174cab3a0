"""The source of the levels of node faults: T8 and T9 of node-faults 19, and what keeps it apart from chips."""

import json
from pathlib import Path
from typing import Any

import pytest
from kit.fake_api import Answer, FakeApi
from kit.target import kubernetes_target

from nodeagent.core.errors import ReadBackError
from nodeagent.core.levels import Level
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.policy.configuration import build_configuration
from nodeagent.policy.node_configuration import first_node_configuration
from nodeagent.policy.node_table import NodeConfiguration
from nodeagent.policy.rules import Configuration
from nodeagent.sources.config_documents import shipped, shipped_nodes
from nodeagent.sources.configuration import ConfigPlaces, ConfigSource, NodeConfigSource, ObjectReader

NAMESPACE, NAME = "mindx-dl", "mindx-dl-node-fault-config"
CPU, FATAL = "0000001D", "2C000031"
PLACES = ConfigPlaces(config_map=(NAMESPACE, NAME))


def upstream(**lists: list[str]) -> str:
    return json.dumps({"FaultTypeCode": {f"{name}Codes": codes for name, codes in lists.items()}})


SEPARATE = upstream(SeparateFault=[CPU, FATAL])
TWO_LISTS = upstream(SeparateFault=[CPU], PreSeparateFault=[CPU])


class Cluster:
    """A reader of one ConfigMap. data: its content, None = there is none. down: no answer."""

    def __init__(self, data: dict[str, Any] | None = None) -> None:
        self.data = data
        self.down = False

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        assert (namespace, name) == (NAMESPACE, NAME)
        if self.down:
            raise ReadBackError("no answer")
        if self.data is None:
            return None
        return {"metadata": {"namespace": namespace, "name": name}, "data": dict(self.data)}

    def says(self, text: str) -> None:
        self.data = {"NodeDConfiguration.json": text}


class Bench:
    """A source, driven by hand as a watch drives it, and what it told."""

    def __init__(self, reader: ObjectReader | None, places: ConfigPlaces = PLACES, keep: bool = False) -> None:
        self.taken: list[NodeConfiguration] = []
        self.events: list[Event] = []
        self.metrics = Registry()
        documents = [(str(places.site_file), places.site_file.read_text())] if places.site_file else []
        self.first, site = first_node_configuration(shipped_nodes(), documents)
        self.source = NodeConfigSource(
            shipped_nodes(),
            self.first,
            site,
            places,
            reader,
            self.taken.append,
            self,
            self.metrics,
            0.1,
            keep_deleted=keep,
        )

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def level(self, code: str = CPU) -> str | None:
        found = (self.taken[-1] if self.taken else self.first).table.level_of(code)
        return None if found is None else found.text

    def look(self, code: str = CPU) -> str | None:
        """One pass with the ConfigMap due; the level of the code afterwards."""
        self.source.hasten()
        self.source.look()
        return self.level(code)

    def told(self) -> int:
        """How many Events there are, all of them about bad content of node faults; each was counted."""
        assert {(each.reason, each.subject) for each in self.events} <= {
            (EventReason.BAD_CONFIGURATION, "node configuration")
        }
        assert self.metrics.value("configuration_rejected_total", what="node configuration") == len(self.events)
        return len(self.events)

    @property
    def stale(self) -> float:
        return self.metrics.value("node_configuration_stale")


class TestT8LevelChangeAtRunTime:
    @pytest.mark.parametrize("keep", [False, True])
    def test_t8_level_change_at_run_time(self, keep: bool, caplog: pytest.LogCaptureFixture) -> None:
        cluster = Cluster({"NodeDConfiguration.json": upstream(PreSeparateFault=[CPU], SeparateFault=[FATAL])})
        bench = Bench(cluster, keep=keep)
        assert bench.look() == "PreSeparateFault"
        cluster.says(SEPARATE)  # 70
        assert bench.look() == "SeparateFault"
        assert len(bench.taken) == 2
        cluster.says("{")  # 150
        assert bench.look() == "SeparateFault"
        assert (bench.told(), bench.stale) == (1, 1)
        cluster.says(TWO_LISTS)  # 200
        assert bench.look() == "SeparateFault"
        assert bench.look() == "SeparateFault"
        assert (bench.told(), bench.stale, len(bench.taken)) == (2, 1, 2)
        assert "is in two lists" in bench.events[-1].message
        cluster.data = None  # 250
        for _ in range(3):
            assert bench.look() == ("SeparateFault" if keep else "PreSeparateFault")
        assert (bench.told(), bench.stale, len(bench.taken)) == (2, 0, 2 if keep else 3)
        said = [each.message for each in caplog.records if "is deleted" in each.message]
        assert len(said) == keep

    def test_a_deleted_object_that_comes_back_counts_again(self) -> None:
        cluster = Cluster({"NodeDConfiguration.json": SEPARATE})
        bench = Bench(cluster, keep=True)
        bench.look()
        cluster.data = None
        assert bench.look() == "SeparateFault"
        cluster.says(upstream(NotHandleFault=[CPU]))
        assert (bench.look(), bench.level(FATAL)) == ("NotHandleFault", None)
        cluster.data = {}
        assert bench.look() == "PreSeparateFault", "an object without our keys leaves what lies below"

    def test_only_a_sure_404_is_a_deletion(self) -> None:
        cluster = Cluster({"NodeDConfiguration.json": SEPARATE})
        bench = Bench(cluster)
        bench.look()
        cluster.down, cluster.data = True, None
        assert bench.look() == "SeparateFault"
        assert bench.told() == 0

    def test_same_content_again_is_no_news(self) -> None:
        bench = Bench(Cluster({"NodeDConfiguration.json": SEPARATE, "nodeagent.yaml": "node: {}\n"}))
        for _ in range(3):
            bench.look()
        assert len(bench.taken) == 1


class TestT9ConfigurationAtStart:
    def test_t9_absent(self) -> None:
        bench = Bench(Cluster())
        assert bench.look() == "PreSeparateFault"
        assert (bench.taken, bench.told()) == ([], 0)
        assert bench.source.wait_known(0)

    @pytest.mark.parametrize(
        "data",
        [
            {},
            {"nodedconfiguration.json": SEPARATE},
            {"NodeDConfiguration.json": ""},
            {"NodeDConfiguration.json": "{"},
            {"NodeDConfiguration.json": "{}"},
            {"NodeDConfiguration.json": upstream(SeparateFault=["000001D"])},
            {"NodeDConfiguration.json": TWO_LISTS},
            {"NodeDConfiguration.json": SEPARATE, "nodeagent.yaml": "nodes: {}\n"},
        ],
    )
    def test_t9_bad_at_the_start_is_built_in_and_an_event(self, data: dict[str, str]) -> None:
        bench = Bench(Cluster(data))
        for _ in range(3):
            assert bench.look() == "PreSeparateFault"
        assert (bench.level(FATAL), bench.told()) == ("SeparateFault", 1)
        assert f"{NAMESPACE}/{NAME}" in bench.events[0].message

    def test_t9_server_away_at_the_start(self) -> None:
        """Custom levels count as soon as it is back, without an edit."""
        cluster = Cluster({"NodeDConfiguration.json": SEPARATE})
        cluster.down = True
        bench = Bench(cluster)
        assert bench.look() == "PreSeparateFault"
        assert not bench.source.wait_known(0)
        cluster.down = False
        assert bench.look() == "SeparateFault"
        assert bench.source.wait_known(0)
        assert bench.told() == 0

    def test_t9_absent_at_the_start_and_created_later(self) -> None:
        cluster = Cluster()
        bench = Bench(cluster)
        bench.look()
        cluster.says(SEPARATE)
        assert bench.look() == "SeparateFault"

    def test_good_layers_count_beside_a_bad_one(self, tmp_path: Path) -> None:
        """As long as all together were never good; each keeps what it said when it was good."""
        site, folder = tmp_path / "site.yaml", tmp_path / "config"
        folder.mkdir()
        site.write_text('node: {faults: [{code: "0000001F", level: x}]}\n')
        (folder / "nodeagent.yaml").write_text('node: {faults: [{code: "2C000031", level: NotHandleFault}]}\n')
        cluster = Cluster()
        cluster.says(TWO_LISTS)
        bench = Bench(cluster, ConfigPlaces(site, folder, (NAMESPACE, NAME)))
        assert bench.look(FATAL) == "NotHandleFault"
        assert (bench.level("0000001F"), bench.level(), bench.stale) == ("PreSeparateFault", "PreSeparateFault", 1)
        cluster.says(upstream(SeparateFault=[CPU]))
        assert (bench.look(), bench.level("0000001F"), bench.stale) == ("SeparateFault", None, 1)
        (folder / "nodeagent.yaml").write_text("node: 1\n")
        cluster.data = None
        assert (bench.look(), bench.level(FATAL)) == ("PreSeparateFault", "NotHandleFault")
        site.write_text('node: {faults: [{code: "0000001F", level: SeparateFault}]}\n')
        assert bench.look("0000001F") == "SeparateFault"
        (folder / "nodeagent.yaml").unlink()
        assert (bench.look(FATAL), bench.stale) == ("SeparateFault", 0)
        site.write_text("node: 1\n")
        assert (bench.look("0000001F"), bench.stale) == ("SeparateFault", 1)


class ChipBench(Bench):
    """A source of tables and rules on the same places."""

    def __init__(self, places: ConfigPlaces) -> None:
        self.chips: list[Configuration] = []
        self.events = []
        self.metrics = Registry()
        base = shipped()
        first = build_configuration(base)[0]
        self.chip_source = ConfigSource(base, first, (), places, None, self.chips.append, self, self.metrics, 0.1)


def test_neither_kind_refuses_the_other(tmp_path: Path) -> None:
    """They share the folder, and in it the file nodeagent.yaml."""
    places = ConfigPlaces(folder=tmp_path)
    nodes, chips = Bench(None, places), ChipBench(places)
    ours = tmp_path / "nodeagent.yaml"
    (tmp_path / "NodeDConfiguration.json").write_text(SEPARATE)
    (tmp_path / "faultCode.json").write_text('{"RestartNPUCodes": ["80E01801"]}')
    ours.write_text('faults: [{code: "80E18005", level: RestartNPU}]\nnode: {faults: [{code: "0000001F", level: x}]}\n')
    nodes.look()
    chips.chip_source.look()
    assert chips.chips[-1].table.level_of(0x80E18005, None).level is Level.RESTART_NPU
    assert (chips.events, nodes.told(), nodes.level()) == ([], 1, "PreSeparateFault")
    ours.write_text(
        'faults: [{code: "80E18005", level: x}]\nnode: {faults: [{code: "0000001F", level: SeparateFault}]}\n'
    )
    assert nodes.look("0000001F") == "SeparateFault"
    chips.chip_source.look()
    assert (len(chips.events), nodes.told(), len(chips.chips)) == (1, 1, 1)
    assert chips.metrics.value("node_configuration_stale") == 0
    (tmp_path / "NodeDConfiguration.json").write_text("{")
    nodes.look()
    assert nodes.told() == 2
    (tmp_path / "NodeDConfiguration.json").write_text(SEPARATE)
    ours.write_text('faults: [{code: "80E18005", level: SeparateNPU}]\n')
    assert (nodes.look(), nodes.level("0000001F")) == ("SeparateFault", None)
    chips.chip_source.look()
    assert chips.chips[-1].table.level_of(0x80E18005, None).level is Level.SEPARATE
    assert nodes.metrics.value("configuration_stale") == 0


def test_a_change_for_chips_is_no_news_for_nodes(tmp_path: Path) -> None:
    bench = Bench(None, ConfigPlaces(folder=tmp_path))
    for level in ("RestartNPU", "SeparateNPU"):
        (tmp_path / "nodeagent.yaml").write_text(f'faults: [{{code: "80E18005", level: {level}}}]\n')
        bench.look()
    assert (bench.taken, bench.told()) == ([], 0)


def test_names_of_the_other_kind_are_no_misspellings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("faultCode.json", "faultCustomization.json", "SwitchFaultCode.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "NodeDConfiguration.json").write_text(SEPARATE)
    places = ConfigPlaces(folder=tmp_path)
    Bench(None, places).look()
    ChipBench(places).chip_source.look()
    assert "is not read" not in caplog.text
    (tmp_path / "NodeDConfiguration.jsn").write_text("")
    Bench(None, places).look()
    assert "did you mean 'NodeDConfiguration.json'?" in caplog.text


def test_on_a_real_server(api: FakeApi, tmp_path: Path) -> None:
    bench = Bench(kubernetes_target(api.kubeconfig(tmp_path)))
    api.script.append(Answer(500, "no"))
    assert bench.look() == "PreSeparateFault"
    api.put_object(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": NAMESPACE, "name": NAME},
            "data": {
                "NodeDConfiguration.json": SEPARATE,
                "nodeagent.yaml": 'node: {faults: [{code: "0000001F", level: SeparateFault}]}\n',
            },
        }
    )
    assert (bench.look(), bench.level("0000001F")) == ("SeparateFault", "SeparateFault")
    assert bench.taken[-1].layers[-2:] == (
        f"{NAMESPACE}/{NAME}/NodeDConfiguration.json",
        f"{NAMESPACE}/{NAME}/nodeagent.yaml",
    )
    version = bench.taken[-1].version
    assert bench.metrics.value("node_configuration_version_info", version=version) == 1
    assert bench.metrics.value("source_last_success_timestamp_seconds", source="node configuration") > 0
