"""The state files of the pretended storage clients against the sheet (node-faults 11.1, 12)."""

import pytest
from kit.clock import FakeClock

from nodeagent.core.errors import MockError
from nodeagent.core.storage import StorageClient
from nodeagent.mock.actions import bind
from nodeagent.mock.node import MockNode
from nodeagent.mock.spec import NodeSpec
from nodeagent.mock.storage import StorageFile, file_text, instance_text, parse_instances

DPC, DTFS = StorageClient.DPC, StorageClient.DTFS


def test_what_the_files_say():
    assert file_text(DPC, parse_instances(DPC, ["ok", "process+memory"])) == (
        "[instidx=0]\nDPC_INTERNAL_ERROR: 0\nDPC_PROCESS_ERROR: 0\n"
        "[instidx=1]\nDPC_INTERNAL_ERROR: -12\nDPC_PROCESS_ERROR: -1\n"
    )
    assert file_text(DTFS, parse_instances(DTFS, ["process", "link"])) == (
        "[instidx=0]\nDTFS_PROCESS_ERROR: -1\nDTFS_LINK_ERROR: 0\n"
        "[instidx=1]\nDTFS_PROCESS_ERROR: 0\nDTFS_LINK_ERROR: -1\n"
    )
    assert file_text(DPC, ()) == ""


def test_instances_as_texts():
    for client, texts in ((DPC, ["ok", "memory", "memory+process"]), (DTFS, ["link", "process", "link+process"])):
        assert [instance_text(wrong) for wrong in parse_instances(client, texts)] == texts
    for client, text in ((DPC, "link"), (DTFS, "memory"), (DPC, ""), (DPC, "ok+process")):
        with pytest.raises(ValueError, match=f"an instance of {client.value} is ok, or"):
            parse_instances(client, [text])


def do(node: MockNode, **fields: object) -> StorageFile | None:
    """Do `storage_dpc`; the file there is then."""
    bind("storage_dpc", fields).run(node)
    return node.storage.files[DPC]


def test_what_can_be_said_of_a_file():
    node, changes = MockNode(NodeSpec(storage=((DTFS, (frozenset(),)),)), FakeClock()), []
    node.storage.add_listener(lambda: changes.append(1))
    assert node.storage.files[DPC] is None
    assert node.storage.files[DTFS] is not None
    healthy = "[instidx=0]\nDPC_INTERNAL_ERROR: 0\nDPC_PROCESS_ERROR: 0\n"
    assert do(node) == StorageFile(healthy, 0o444, (frozenset(),))
    assert do(node, mode="0664") == StorageFile(healthy, 0o664, (frozenset(),))
    assert do(node, text="[instidx=a]\n") == StorageFile("[instidx=a]\n", 0o444)
    assert do(node, instances=[]) == StorageFile("", 0o444, ())
    assert do(node, gone=True) is None
    assert len(changes) == 5


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"gone": True, "text": ""}, "a file that is gone has no text"),
        ({"gone": True, "mode": "0444"}, "a file that is gone has no mode"),
        ({"instances": ["ok"], "text": "x"}, "either instances or a text"),
    ],
)
def test_what_contradicts_itself_is_refused(fields, words):
    with pytest.raises(MockError, match=words):
        do(MockNode(NodeSpec(), FakeClock()), **fields)
