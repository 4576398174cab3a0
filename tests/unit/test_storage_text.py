"""The text of the state files of storage clients, with the samples of the sheet (node-faults 11.1, 12)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kit.storage import state_text

from nodeagent.core.errors import StorageStateError
from nodeagent.core.storage import StorageClient, StorageFault, StorageInstance
from nodeagent.drivers.storage_text import parse_state

DPC, DTFS = StorageClient.DPC, StorageClient.DTFS
SAMPLE = b"""\
[instidx=0]
DPC_INTERNAL_ERROR: 0
DPC_PROCESS_ERROR: 0
[instidx=1]
DPC_INTERNAL_ERROR: -12
DPC_PROCESS_ERROR: -1
"""
WELL = b"[instidx=0]\nDPC_INTERNAL_ERROR: 0\nDPC_PROCESS_ERROR: 0\n"


def test_the_sample_of_the_sheet() -> None:
    assert parse_state(DPC, SAMPLE) == (
        StorageInstance(0),
        StorageInstance(1, frozenset({StorageFault.DPC_MEMORY, StorageFault.DPC_PROCESS})),
    )


@pytest.mark.parametrize(
    ("internal", "process", "faults"),
    [
        ("0", "0", set()),
        ("-12", "0", {StorageFault.DPC_MEMORY}),
        ("0", "-1", {StorageFault.DPC_PROCESS}),
        ("-0", "00", set()),
        ("-012", "-01", {StorageFault.DPC_MEMORY, StorageFault.DPC_PROCESS}),
    ],
)
def test_values_of_dpc(internal: str, process: str, faults: set[StorageFault]) -> None:
    text = f"[instidx=7]\nDPC_INTERNAL_ERROR: {internal}\nDPC_PROCESS_ERROR: {process}\n"
    assert parse_state(DPC, text.encode()) == (StorageInstance(7, frozenset(faults)),)


@pytest.mark.parametrize(
    ("process", "link", "faults"),
    [(0, 0, set()), (-1, 0, {StorageFault.DTFS_PROCESS}), (0, -1, {StorageFault.DTFS_LINK})],
)
def test_values_of_dtfs(process: int, link: int, faults: set[StorageFault]) -> None:
    text = f"[instidx=0]\nDTFS_PROCESS_ERROR: {process}\nDTFS_LINK_ERROR: {link}\n"
    assert parse_state(DTFS, text.encode()) == (StorageInstance(0, frozenset(faults)),)


def test_an_empty_file_is_a_state_of_dpc_and_none_of_dtfs() -> None:
    assert parse_state(DPC, b"") == ()
    with pytest.raises(StorageStateError, match="empty"):
        parse_state(DTFS, b"")


@pytest.mark.parametrize(
    "content",
    [
        SAMPLE.replace(b"\n", b"\r\n"),
        SAMPLE.removesuffix(b"\n"),
        SAMPLE.replace(b": ", b":"),
        SAMPLE.replace(b": ", b": \t "),
    ],
)
def test_line_ends_and_spaces_that_are_tolerated(content: bytes) -> None:
    assert parse_state(DPC, content) == parse_state(DPC, SAMPLE)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (WELL + b"\n" + WELL, 4),
        (b"\n", 1),
        (WELL.replace(b"0]", b"a]"), 1),
        (WELL.replace(b"0]", b"-1]"), 1),
        (WELL.replace(b"0]", b"]"), 1),
        (WELL.replace(b"0]", "٣]".encode()), 1),
        (WELL.replace(b"0]", b"1234567890123456789]"), 1),
        (b" " + WELL, 1),
        (WELL.replace(b"]\n", b"] \n"), 1),
        (WELL.replace(b"]\n", b"]\r\r\n"), 1),
        (WELL.replace(b"INTERNAL_ERROR: 0", b"INTERNAL_ERROR: -2"), 2),
        (WELL.replace(b"INTERNAL_ERROR: 0", b"INTERNAL_ERROR: -1"), 2),
        (WELL.replace(b"INTERNAL_ERROR: 0", b"INTERNAL_ERROR: 12"), 2),
        (WELL.replace(b"INTERNAL_ERROR: 0", b"INTERNAL_ERROR: +0"), 2),
        (WELL.replace(b"INTERNAL_ERROR: 0", b"INTERNAL_ERROR : 0"), 2),
        (WELL.replace(b"INTERNAL_ERROR: 0", b"INTERNAL_ERROR: 0x0"), 2),
        (WELL.replace(b"INTERNAL_ERROR: 0", b"INTERNAL_ERROR: " + b"0" * 5000), 2),
        (WELL.replace(b"INTERNAL_ERROR: 0", b"INTERNAL_ERROR: 0\0"), 2),
        (WELL.replace(b"PROCESS_ERROR: 0", b"PROCESS_ERROR: -12"), 3),
        (WELL.replace(b"DPC_PROCESS", b"DTFS_PROCESS"), 3),
        (b"[instidx=0]\nDPC_PROCESS_ERROR: 0\nDPC_INTERNAL_ERROR: 0\n", 2),
        (WELL + b"[instidx=1]\nDPC_INTERNAL_ERROR: 0\n", 5),
        (WELL + b"[instidx=1]\n", 4),
        (WELL + b"\xff\xfe\n", 4),
    ],
)
def test_whatever_else_is_no_state_and_the_line_is_named(content: bytes, line: int) -> None:
    with pytest.raises(StorageStateError, match=rf"^NA306: line {line}: "):
        parse_state(DPC, content)


def test_a_complaint_stays_short_and_printable() -> None:
    with pytest.raises(StorageStateError) as raised:
        parse_state(DPC, b"\x1b[2J" * 10_000)
    assert len(raised.value.sentence) < 150
    assert raised.value.sentence.isprintable()


def test_t18_the_first_21_of_25_instances_are_used() -> None:
    text = state_text(DPC, *((number, 0, -1 if number > 20 else 0) for number in range(25)))
    assert parse_state(DPC, text.encode()) == tuple(StorageInstance(number) for number in range(21))


def test_nothing_behind_the_21st_instance_is_looked_at() -> None:
    text = state_text(DPC, *((number, 0, 0) for number in range(21)))
    assert len(parse_state(DPC, text.encode() + b"\nanything\xff")) == 21


def test_an_instance_that_is_listed_twice_has_the_faults_of_both() -> None:
    both = frozenset({StorageFault.DPC_MEMORY, StorageFault.DPC_PROCESS})
    for groups in ([(3, -12, 0), (3, 0, -1)], [(3, -12, -1), (3, 0, 0)], [(3, 0, 0), (3, -12, -1)]):
        assert parse_state(DPC, state_text(DPC, *groups).encode()) == (StorageInstance(3, both),)


groups = st.lists(
    st.tuples(st.integers(0, 10**18 - 1), st.sampled_from([0, -12]), st.sampled_from([0, -1])),
    max_size=30,
    unique_by=lambda group: group[0],
)


@given(groups)
def test_what_is_written_is_read(groups: list[tuple[int, int, int]]) -> None:
    expected = {(number, memory == -12, process == -1) for number, memory, process in groups[:21]}
    read = parse_state(DPC, state_text(DPC, *groups).encode())
    assert {(i.number, StorageFault.DPC_MEMORY in i.faults, StorageFault.DPC_PROCESS in i.faults) for i in read} == (
        expected
    )
    assert [i.number for i in read] == sorted(i.number for i in read)


pieces = st.lists(
    st.sampled_from(
        [
            b"[instidx=",
            b"]",
            b"0",
            b"-1",
            b"-12",
            b"\n",
            b"\r",
            b": ",
            b" ",
            b"DPC_INTERNAL_ERROR",
            b"DPC_PROCESS_ERROR",
        ]
    )
    | st.binary(max_size=4),
    max_size=40,
).map(b"".join)


@given(st.sampled_from(StorageClient), pieces | st.binary())
@example(DPC, b"[instidx=" + b"9" * 10_000 + b"]\n")
def test_nothing_but_our_own_error_is_raised(client: StorageClient, content: bytes) -> None:
    try:
        parse_state(client, content)
    except StorageStateError:
        return


@given(groups.filter(lambda g: 0 < len(g) <= 21), st.data())
def test_a_text_that_is_cut_anywhere_is_never_another_state(
    groups: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    whole = state_text(DPC, *groups).encode().removesuffix(b"\n")
    cut = data.draw(st.integers(1, len(whole) - 1))
    if (whole[cut : cut + 1], whole[:cut].count(b"\n") % 3) in ((b"\n", 2), (b"[", 0)):
        return  # whole groups are a state
    try:
        read = parse_state(DPC, whole[:cut])
    except StorageStateError:
        return
    raise AssertionError(f"{whole[:cut]!r} was read as {read}")
