"""The scenario format: what it means, and that every error names file, line and key."""

import dataclasses
import re
from pathlib import Path

import pytest
from kit.clock import FakeClock

from nodeagent.core.alarms import Alarm
from nodeagent.core.errors import ScenarioError
from nodeagent.core.storage import StorageClient
from nodeagent.mock.actions import ACTIONS
from nodeagent.mock.bmc import BmcFault
from nodeagent.mock.node import MockNode
from nodeagent.mock.scenario import installed_nodes, load, load_node, parse
from nodeagent.mock.spec import ChipSpec, NodeSpec, StartFailure, StartFault

EXAMPLE = """\
node: {profile: a2, chips: 8, recovery_lag_ms: 300, board_id: "0x30"}
timeline:
  - {at_s: 1.0, do: raise, chip: 3, code: "80E18005", severity: major}
  - {at_s: 4.0, do: clear, chip: 3, code: "80E18005"}
  - {at_s: 5.0, do: drop, card: 5}
  - {at_s: 6.0, do: return, card: 5}
  - {at_s: 7.0, do: notice, chip: 0, code: "80C98006"}
  - {at_s: 8.0, do: gateway, chip: 1, value: 2}
  - {at_s: 8.2, do: address, chip: 6, ip: 10.20.0.7}
  - {at_s: 8.5, do: link, chip: 2, state: down}
  - {at_s: 9.0, do: hang, function: dcmi_get_device_health, chip: 4, seconds: 30}
  - {at_s: 9.5, do: fail, function: dcmi_get_device_errorcode_v2, chip: 4, code: -8005, times: 3}
  - {at_s: 10, do: crash, function: dcmi_get_device_health}
  - {at_s: 11, do: storm, events_per_s: 1000, seconds: 10}
  - {at_s: 12, do: reset, chip: 2}
"""


def test_the_example_uses_every_action():
    scenario = parse(EXAMPLE, "example.yaml")
    assert scenario.node == NodeSpec(profile="a2", recovery_lag_ms=300, board_id=0x30)
    used = {entry.bound.action.name for entry in scenario.timeline}
    others = ("switch_", "storage_", "raise_alarm", "clear_alarm", "bmc")
    assert used == {name for name in ACTIONS if not name.startswith(others)}
    assert [entry.at_s for entry in scenario.timeline][:3] == [1.0, 4.0, 5.0]
    assert [entry.line for entry in scenario.timeline] == list(range(3, 16))


def test_a_timeline_does_what_it_says():
    scenario = parse(EXAMPLE, "example.yaml")
    clock = FakeClock()
    node = MockNode(scenario.node, clock)
    heard = []
    node.add_listener(heard.append)
    for entry in scenario.timeline:
        entry.bound.run(node)
    told = [(event.logic_id, event.code, event.assertion) for event in heard]
    assert told == [(3, 0x80E18005, 1), (3, 0x80E18005, 0), (0, 0x80C98006, 2), (2, 0x81078603, 1)]
    assert node.network_health(1) == (0, 2)
    assert str(node.chips[6].ip) == "10.20.0.7"
    assert node.disturbance("dcmi_get_device_health", 4).hang_s == 30
    assert [node.error_codes(4)[0] for _ in range(4)] == [-8005, -8005, -8005, 0]
    assert node.storms[0].total == 10_000
    assert node.boot_status(2) == 1


def test_a_full_node_description():
    scenario = parse(
        """\
node:
  profile: 950
  chips: 4
  card_ids: [2, 3, 5, 7]
  privileged: false
  unsupported: [dcmiv2_get_device_network_health]
  per_chip:
    - {chip: 3, phy_id: 8, chip_name: Ascend950X, board_id: 0x1a, gateway: 6, processes: [{pid: 7, bytes: 4096}]}
  faults:
    - {chip: 1, code: "80E18005", severity: critical, node_type: 0x70}
  failing:
    - {function: dcmiv2_get_device_health, chip: 0, code: -8006, times: 2}
""",
        "node.yaml",
    )
    spec = scenario.node
    assert (spec.profile, spec.chips, spec.card_ids, spec.privileged) == ("950", 4, (2, 3, 5, 7), False)
    assert spec.unsupported == ("dcmi_get_device_network_health",)
    chip = spec.chip_spec(3)
    assert (chip.phy_id, chip.chip_name, chip.board_id, chip.gateway) == (8, "Ascend950X", 0x1A, 6)
    assert chip.processes == ((7, 4096),)
    fault = spec.faults[0]
    assert isinstance(fault, StartFault)
    assert (fault.chip, fault.code, fault.severity, fault.module.node_type) == (1, 0x80E18005, 3, 0x70)
    assert spec.failing == (StartFailure("dcmi_get_device_health", -8006, 0, 2),)
    assert scenario.timeline == ()


def test_a_board_and_storage_clients():
    scenario = parse(
        """\
node:
  alarm_page: 12
  serial_number: 2102310ABC
  alarms:
    - {code: "0000001D", device_id: 1, severity: critical, raised_s: 1721762816}
    - {code: "62000006", subject: PSU}
    - {code: "2C000031", subject: 0x2C}
  storage: {dpc: [ok, process+memory], dtfs: []}
timeline:
  - {at_s: 1, do: bmc, silent: true, times: 2}
  - {at_s: 2, do: storage_dtfs, gone: true}
""",
        "board.yaml",
    )
    node = MockNode(scenario.node, FakeClock())
    now_s = FakeClock().now().wall_ms // 1000
    assert node.board.state.alarms == (
        Alarm(0x0000001D, 1721762816, 3, 0x00, 1),
        Alarm(0x62000006, now_s, 2, 0x03, 255),
        Alarm(0x2C000031, now_s, 2, 0x2C, 255),
    )
    assert (node.board.state.page, node.board.state.serial, node.board.present) == (12, "2102310ABC", True)
    dpc, dtfs = (node.storage.files[client] for client in StorageClient)
    assert (dpc.text.count("-12"), dtfs.text) == (1, "")
    for entry in scenario.timeline:
        entry.bound.run(node)
    assert node.board.state.fault == BmcFault(silent=True, times=2)
    assert node.storage.files[StorageClient.DTFS] is None
    assert not MockNode(parse("node: {bmc: none}\n", "x.yaml").node, FakeClock()).board.present


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("- 1\n", 1, "mapping"),
        ("node: {\n", 2, "did not find"),
        ("nodes: {}\n", 1, "nodes: unknown key"),
        ("node: {profile: a2}\nnode: {profile: a3}\n", 2, "node: is there twice"),
        ("node:\n  profile: b2\n", 2, "node: there is no profile 'b2'"),
        ("node:\n  profile: a2\n  chip: 8\n", 3, "chip: a node has no such key"),
        ("node:\n  chips: eight\n", 2, "chips: must be a whole number"),
        ("node:\n  chips: 0\n", 2, "chips: must be a whole number 1"),
        ("node:\n  per_chip:\n    - {chip: 1, ip: 1.2.3}\n", 3, "ip: '1.2.3' does not appear"),
        ("node:\n  chips: true\n", 2, "chips: must be a whole number"),
        ("node:\n  init_delay_s: -1\n", 2, "init_delay_s: must be a number of 0 or more"),
        ("node:\n  early_events: 1\n", 2, "early_events: must be true or false"),
        ("node:\n  board_id: xyz\n", 2, "board_id: not a hexadecimal"),
        ("node:\n  unsupported: [dcmi_x]\n", 2, "unsupported: 'dcmi_x' is not a function"),
        ("node:\n  faults:\n    - {chip: 1}\n", 3, "code: a fault needs it"),
        ("node:\n  faults:\n    - {chip: 1, code: 80E18005}\n", 3, "code: write it in quotes"),
        ('node:\n  faults:\n    - {chip: 9, code: "80E18005"}\n', 2, "node: chip 9 is not on a node"),
        ("node:\n  failing:\n    - {function: dcmi_init, code: 1.5}\n", 3, "code: must be a whole number"),
        ("node:\n  per_chip: {chip: 1}\n", 2, "per_chip: must be a list"),
        ('node:\n  switch_faults:\n    - {chip: 1, code: "0x08520003,na"}\n', 2, "node: only profile a3 has switches"),
        ("node:\n  profile: a3\n  switch_faults:\n    - {chip: 1, code: 0x08520003}\n", 4, "code: write it in quotes"),
        ('node:\n  profile: a3\n  switch_faults:\n    - {chip: 1, code: "8520003"}\n', 4, "code: a switch code looks"),
        ('timeline:\n  - {at_s: 1, do: switch_clear, chip: 1, code: "0x1,na"}\n', 2, "code: a switch code looks like"),
        (
            'timeline:\n  - {at_s: 1, do: switch_raise, chip: 1, code: "0x08520003,na", peer: gpu}\n',
            2,
            "peer: must be cpu, npu, L2, na or a number",
        ),
        ("node:\n  bmc: off\n", 2, "bmc: must be present or none, not False"),
        ("node:\n  alarm_page: 17\n", 2, "alarm_page: must be a whole number 1..16"),
        ("node:\n  serial_number: 2102310\n", 2, "serial_number: must be a text"),
        ("node:\n  serial_number: 21é\n", 2, "serial_number: must be printable ASCII"),
        ("node:\n  alarms: {}\n", 2, "alarms: must be a list"),
        ("node:\n  alarms:\n    - {device_id: 1}\n", 3, "code: an alarm needs it"),
        ("node:\n  alarms:\n    - {code: 0000001D}\n", 3, "code: write it in quotes"),
        ('node:\n  alarms:\n    - {code: "1D", chip: 1}\n', 3, "chip: an alarm has no such key"),
        ('node:\n  alarms:\n    - {code: "1D", device_id: 256}\n', 3, "device_id: must be a whole number 0..255"),
        ('node:\n  alarms:\n    - {code: "1D", severity: hint}\n', 3, "severity: must be one of normal, minor"),
        ('node:\n  alarms:\n    - {code: "1D", subject: cpu}\n', 3, "subject: must be the name of a device type"),
        ('node:\n  alarms:\n    - {code: "1D", subject: UNKNOWN}\n', 3, "subject: must be the name of a device type"),
        ("node:\n  storage: [dpc]\n", 2, "storage: must be a mapping"),
        ("node:\n  storage: {nfs: [ok]}\n", 2, "nfs: storage has no such key; known: dpc, dtfs"),
        ("node:\n  storage: {dpc: ok}\n", 2, "dpc: must be a list"),
        ("node:\n  storage: {dpc: [link]}\n", 2, "dpc: an instance of dpc is ok, or memory or process"),
        ("timeline:\n  - {at_s: 1, do: storage_dpc, mode: 0664}\n", 2, "mode: permission bits are a quoted octal"),
        ('timeline:\n  - {at_s: 1, do: storage_dpc, mode: "0999"}\n', 2, "mode: permission bits are a quoted octal"),
        ("timeline:\n  - {at_s: 1, do: storage_dtfs, instances: [memory]}\n", 2, "instances: an instance of dtfs is"),
        ("timeline:\n  - {at_s: 1, do: bmc, completion_code: C3}\n", 2, "completion_code: write it in quotes"),
        ('timeline:\n  - {at_s: 1, do: bmc, completion_code: "1C3"}\n', 2, "completion_code: a completion code is two"),
        ("timeline:\n  - {at_s: 1, do: bmc, times: 0}\n", 2, "times: must be a whole number 1"),
        ("timeline:\n  - {at_s: 1, do: raise_alarm}\n", 2, "code: raise_alarm needs it"),
        ('timeline:\n  - {at_s: 1, do: clear_alarm, code: "1D", severity: minor}\n', 2, "severity: clear_alarm has no"),
        ("timeline: 5\n", 1, "timeline: must be a list"),
        ("timeline:\n  - {do: reset, chip: 1}\n", 2, "at_s: every entry"),
        ("timeline:\n  - {at_s: 1, chip: 1}\n", 2, "do: every entry"),
        ("timeline:\n  - {at_s: 1, do: explode}\n", 2, "do: 'explode' is not an action; known: raise"),
        ("timeline:\n  - {at_s: 1, do: [reset]}\n", 2, "is not an action"),
        ("timeline:\n  - at_s: 1\n    do: reset\n    chips: 1\n", 4, "chips: reset has no such key"),
        ("timeline:\n  - {at_s: 1, do: reset}\n", 2, "chip: reset needs it"),
        ("timeline:\n  - at_s: 1\n    do: reset\n    chip: one\n", 4, "chip: must be a whole number"),
        ("node: {profile: a2}\ntimeline:\n  - {at_s: 1, do: reset, chip: 8}\n", 3, "chip: the node has chips 0..7"),
        ("timeline:\n  - {at_s: 1, do: clear, chip: 1, code: 80990000}\n", 2, "code"),
        ("timeline:\n  - {at_s: 1, do: clear, chip: 1, code: 80E18005}\n", 2, "code: write it in quotes"),
        ("timeline:\n  - {at_s: 1, do: storm, codes: [80E18005]}\n", 2, "codes: write it in quotes"),
        ('timeline:\n  - {at_s: 1, do: clear, chip: 1, code: "200001002"}\n', 2, "code: a driver code has 32 bits"),
        ('timeline:\n  - {at_s: 1, do: raise, chip: 1, code: "1", severity: 2}\n', 2, "severity: must be one of hint"),
        ("timeline:\n  - {at_s: 1, do: link, chip: 1, state: off}\n", 2, "state: must be up or down"),
        ("timeline:\n  - {at_s: 1, do: gateway, chip: 1, value: 9}\n", 2, "value: must be 0..8 or 255"),
        ("timeline:\n  - {at_s: 1, do: storm, events_per_s: 0}\n", 2, "events_per_s: must be more than 0"),
        ("timeline:\n  - {at_s: 1, do: crash, function: dcmi_init, signal: OOPS}\n", 2, "signal: 'OOPS' is not"),
        ("timeline:\n  - {at_s: 2, do: reset, chip: 1}\n  - {at_s: 1, do: reset, chip: 1}\n", 3, "at_s: entries must"),
    ],
)
def test_errors_name_file_line_and_key(text, line, words):
    with pytest.raises(ScenarioError) as caught:
        parse(text, "bad.yaml")
    assert caught.value.sentence.startswith(f"bad.yaml:{line}: ")
    assert words in caught.value.sentence


def test_events_of_unknown_chips_are_allowed():
    scenario = parse('node: {profile: a2}\ntimeline: [{at_s: 0, do: raise, chip: 700, code: "0"}]\n', "x.yaml")
    assert scenario.timeline[0].bound.values["chip"] == 700


def test_a_timeline_alone_is_checked_against_the_node_it_is_for():
    text = "timeline: [{at_s: 0, do: reset, chip: 12}]\n"
    assert parse(text, "x.yaml").node is None
    assert len(parse(text, "x.yaml", NodeSpec(profile="a3")).timeline) == 1
    with pytest.raises(ScenarioError, match=r"chips 0\.\.7"):
        parse(text, "x.yaml", NodeSpec(profile="a2"))


def test_files(tmp_path):
    with pytest.raises(ScenarioError, match=r"none.yaml: cannot be read: No such file"):
        load(tmp_path / "none.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="not UTF-8"):
        load(binary)


def test_nodes_by_name():
    assert load_node("a3").node == NodeSpec(profile="a3")
    assert len(installed_nodes()) >= 3
    for name in installed_nodes():
        assert load_node(name).node is not None
    with pytest.raises(ScenarioError) as caught:
        load_node("a4")
    assert "a2-bad-day" in caught.value.hint


DOCUMENT = (Path(__file__).resolve().parents[2] / "docs/mock.md").read_text(encoding="utf-8")


def test_the_document_shows_a_scenario_that_works():
    (example,) = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    scenario = parse(example, "docs/mock.md")
    assert scenario.node is not None
    assert {entry.bound.action.name for entry in scenario.timeline} == set(ACTIONS)


def test_the_document_names_every_key():
    fields = [field.name for kind in (NodeSpec, ChipSpec) for field in dataclasses.fields(kind)]
    keys = [param.name for action in ACTIONS.values() for param in action.params]
    assert [key for key in [*fields, *keys] if f"`{key}`" not in DOCUMENT] == []
