"""Public fault messages against the golden values and rules of node-faults 11.4, 13.1 and 13.4."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.fake_clusterd import FakeClusterd, shipped

from nodeagent.core.errors import ContractError
from nodeagent.core.storage import StorageClient, StorageFault
from nodeagent.policy.public_fault import Due, Telling, usable_ids
from nodeagent.policy.public_fault_track import Assertion
from nodeagent.render.public_fault import check_message, config_map, last_word, message_of, object_name

FAULT_IDS = {
    "DPC_PROCESS": "f509db1b08a9b5ab75798e820c2ec8e990d6c08cf62d95187eb7998747a8df3e",
    "DPC_MEMORY": "9a33f32f446d027474f47adec322664bacd520535f09a17701e970b0ebe74e8c",
    "DTFS_PROCESS": "6ecf2726103ddd5c80cbbd5d4bf7448dd78bcbc30dad703b813c04aa48ed023a",
    "DTFS_LINK": "a29c32bcebbf2e52198db43537409f99027dcfc7ef9c1199c6cb2212cec9052e",
}
EXAMPLE = (
    '{"id":"5f0e7a52-8d2b-4d8f-9a55-0f6c7d5a1b11","timestamp":1767225600000,"version":"1.0","resource":"dpcStorage",'
    '"faults":[{"faultId":"f509db1b08a9b5ab75798e820c2ec8e990d6c08cf62d95187eb7998747a8df3e","faultType":"Node",'
    '"faultCode":"110001020","faultTime":1767225600000,"assertion":"occur","faultLocation":{},'
    '"influence":[{"nodeName":"node-1","nodeSN":"","deviceIds":[0,1,2,3,4,5,6,7]}],"description":""}]}'
)
"""Node-faults 13.4, without its line breaks."""
ID, AT_MS = "5f0e7a52-8d2b-4d8f-9a55-0f6c7d5a1b11", 1767225600000
OCCURS = Telling(StorageFault.DPC_PROCESS, Assertion.OCCUR, AT_MS, tuple(range(8)))
DUE = Due(StorageClient.DPC, (OCCURS,), False)


@pytest.mark.parametrize("fault", StorageFault)
def test_fault_ids(fault: StorageFault) -> None:
    assert fault.fault_id("node-1") == FAULT_IDS[fault.value]


def test_codes_and_senders_are_those_of_clusterds_table() -> None:
    levels, senders = shipped()
    assert {client.resource for client in StorageClient} <= senders
    assert {fault: levels[fault.code] for fault in StorageFault} == {
        fault: fault.level_at_clusterd for fault in StorageFault
    }
    assert [fault.code for fault in StorageFault] == ["110001020", "110001021", "110001022", "110001023"]


def test_the_example_of_the_sheet() -> None:
    assert message_of(DUE, "node-1", ID, AT_MS).text == EXAMPLE


def test_the_object_of_a_client() -> None:
    message = message_of(DUE, "node-1", ID, AT_MS)
    assert config_map(message, "node-1") == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "nodeagent-publicfault-dpc-node-1",
            "namespace": "mindx-dl",
            "labels": {"mc-consumer-publicfault": "true"},
        },
        "data": {"PublicFault": EXAMPLE},
    }
    shadow = config_map(message, "node-1", shadow=True)["metadata"]
    assert shadow["name"] == "nodeagent-publicfault-dpc-node-1-shadow"  # type: ignore[index]
    assert "mc-consumer-publicfault" not in shadow["labels"]  # type: ignore[index]
    assert object_name(StorageClient.DTFS, "node-1") == "nodeagent-publicfault-dtfs-node-1"


def test_names_of_long_nodes_fit_and_differ() -> None:
    longest = ["a" * 229 + end for end in "bc"]
    for shadow in (False, True):
        names = {object_name(client, node, shadow) for client in StorageClient for node in [*longest, "n" * 226]}
        assert len(names) == 6
        assert all(len(name) <= 253 and name[-1].isalnum() for name in names)


@pytest.mark.parametrize(
    ("wrong", "node", "message_id"),
    [
        (OCCURS, "Node-1", ID),
        (OCCURS, "", ID),
        (OCCURS, "n" * 254, ID),
        (OCCURS, "node-1", "short"),
        (OCCURS, "node-1", "x" * 129),
        (OCCURS, "node-1", "with blank"),
        (replace(OCCURS, device_ids=()), "node-1", ID),
        (replace(OCCURS, device_ids=(32,)), "node-1", ID),
        (replace(OCCURS, device_ids=(-1,)), "node-1", ID),
        (replace(OCCURS, device_ids=(1, 1)), "node-1", ID),
    ],
)
def test_what_clusterd_would_refuse_is_not_sent(wrong: Telling, node: str, message_id: str) -> None:
    with pytest.raises(ContractError):
        message_of(Due(StorageClient.DPC, (wrong,), False), node, message_id, AT_MS)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("timestamp",), 1735689599999),
        (("timestamp",), 10**13),
        (("timestamp",), True),
        (("resource",), "CCAE"),
        (("faults",), []),
        (("faults", 0, "faultId"), "tiny"),
        (("faults", 0, "faultCode"), "11000102"),
        (("faults", 0, "faultTime"), 0),
        (("faults", 0, "assertion"), "once"),
    ],
)
def test_each_rule_is_checked(path: tuple[str | int, ...], value: object) -> None:
    document = json.loads(EXAMPLE)
    check_message(document)
    *way, last = path
    part = document
    for step in way:
        part = part[step]
    part[last] = value
    with pytest.raises(ContractError):
        check_message(document)


tellings = st.builds(
    Telling,
    st.sampled_from(StorageClient.DPC.faults),
    st.sampled_from(Assertion),
    st.integers(-(10**15), 10**15),
    st.lists(st.integers(-5, 40)).map(lambda ids: usable_ids(ids) or (0,)),
)


@given(
    st.lists(tellings, min_size=1, max_size=2),
    st.from_regex(r"[a-z0-9]([a-z0-9\-.]{0,60}[a-z0-9])?", fullmatch=True),
    st.integers(-(10**15), 10**15),
)
def test_clusterd_takes_every_message_in_whole_and_it_can_be_read_back(
    said: list[Telling], node: str, now_ms: int
) -> None:
    message = message_of(Due(StorageClient.DPC, tuple(said), False), node, ID, now_ms)
    clusterd = FakeClusterd()
    assert clusterd.send(json.loads(message.text)) == (0, "ok")
    assert clusterd.broken == []
    word = last_word(config_map(message, node), StorageClient.DPC, node)
    assert word.parsed
    assert word.message_id == ID
    last = {telling.fault: telling for telling in said}
    assert {fault: (told.present, told.device_ids) for fault, told in word.told.items()} == {
        fault: (telling.assertion is Assertion.OCCUR, telling.device_ids) for fault, telling in last.items()
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '{"id":1}',
        '{"timestamp":"1"}',
        '{"timestamp":1.5}',
        '{"faults":{}}',
        '{"faults":[1]}',
        '{"faults":[{"faultTime":true}]}',
        '{"faults":[{"influence":[{"deviceIds":["0"]}]}]}',
        "[" * 100_000,
    ],
)
def test_an_object_that_clusterd_cannot_read_is_seen_as_such(text: str) -> None:
    word = last_word({"data": {"PublicFault": text}}, StorageClient.DPC, "node-1")
    assert (word.parsed, word.told) == (False, {})


@pytest.mark.parametrize(
    "other",
    [
        EXAMPLE.replace("dpcStorage", "CCAE"),
        EXAMPLE.replace("f509db1b", "f509db1c"),
        EXAMPLE.replace('"occur"', '"once"'),
        EXAMPLE.replace('"timestamp":1767225600000', '"timestamp":17'),
        EXAMPLE.replace('"influence":[{', '"influence":null,"x":[{'),
        EXAMPLE.replace('"deviceIds":[0,1,2,3,4,5,6,7]', '"deviceIds":null'),
        '{"faults":null}',
        "{}",
    ],
)
def test_a_readable_object_with_other_content_tells_nothing(other: str) -> None:
    word = last_word({"data": {"PublicFault": other}}, StorageClient.DPC, "node-1")
    assert (word.parsed, word.told) == (True, {})
    assert last_word({"data": {"PublicFault": EXAMPLE}}, StorageClient.DPC, "node-2").told == {}


@given(st.text(max_size=300) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_reading_an_object_never_fails(text: str) -> None:
    last_word({"data": {"PublicFault": text}}, StorageClient.DTFS, "node-1")
    last_word({"data": text}, StorageClient.DTFS, "node-1")
