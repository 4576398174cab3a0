"""The words between daemon and driver host: what goes in comes out, and anything else is one kind of error."""

import contextlib
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.errors import HostError
from nodeagent.drivers.protocol import (
    MAX_EVENTS_PER_PACKET,
    MAX_PACKET_BYTES,
    Call,
    Events,
    Failure,
    Message,
    Refusal,
    Value,
    decode,
    encode,
)

texts = st.text(max_size=40)
numbers = st.integers(-(2**63), 2**64 - 1)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts, lambda inner: st.lists(inner, max_size=4), max_leaves=8
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Call, numbers, texts, st.lists(values, max_size=4).map(tuple)),
    st.builds(Value, numbers, values),
    st.builds(Refusal, numbers, numbers, texts, texts),
    st.builds(Failure, numbers, texts, texts, texts),
    st.builds(Events, st.lists(st.lists(numbers | texts, max_size=8).map(tuple), max_size=5).map(tuple), numbers),
)


@given(messages)
def test_a_message_survives_the_way(message: Message) -> None:
    assert decode(encode(message)) == message


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_one_kind_of_error(packet: bytes) -> None:
    with contextlib.suppress(HostError):
        assert isinstance(decode(packet), Message)


json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "call", "args", "value", "rc", "function", "error", "events"]), inner)
    ),
    max_leaves=10,
)


@given(json_values)
def test_any_json_is_a_message_or_one_kind_of_error(value: object) -> None:
    with contextlib.suppress(HostError):
        assert isinstance(decode(json.dumps(value).encode()), Message)


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"null",
        b"[]",
        b'"call"',
        b"{}",
        b'{"id": 1}',
        b'{"id": Infinity, "value": 0}',
        b'{"id": NaN, "value": 0}',
        b'{"events": 3, "dropped": 0}',
        b'{"events": [], "dropped": 1e999}',
        b'{"id": 1, "error": ["NA301", "too short"]}',
        b"[" * 100_000,
        b'{"id": ' + b"9" * 5000 + b', "value": 0}',
    ],
    ids=lambda packet: packet[:30].decode() or "empty",
)
def test_what_is_no_message_is_refused(packet: bytes) -> None:
    with pytest.raises(HostError, match="no message"):
        decode(packet)


def test_the_largest_batch_of_the_longest_events_fits_a_packet() -> None:
    # 80 letters of an event name, each of which JSON writes at its longest; all numbers at their largest.
    event = (2**32 - 1, 2**16 - 1, 255, 255, 2**63 - 1, 255, 255, "\x01" * 80)
    packet = encode(Events((event,) * MAX_EVENTS_PER_PACKET, 2**63 - 1))
    assert len(packet) <= MAX_PACKET_BYTES


def test_a_full_code_list_and_a_long_node_fit_a_packet() -> None:
    encode(Value(2**31, [0, 128, [2**32 - 1] * 128, -8012]))
    encode(Value(2**31, list(range(256))))


def test_a_message_that_no_packet_holds_is_refused_by_its_size() -> None:
    with pytest.raises(HostError, match="larger than the 180000"):
        encode(Value(1, "x" * MAX_PACKET_BYTES))


def test_a_path_that_is_not_utf_8_can_be_sent() -> None:
    call = Call(1, "open", (os.fsdecode(b"/opt/\xff\xe9/libdcmi.so"),))
    assert decode(encode(call)) == call
