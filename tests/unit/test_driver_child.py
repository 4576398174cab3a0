"""The driver host's loop with an adapter of the test, in this process: answers, errors, and a parent that leaves."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from nodeagent.core.errors import HostError, LibraryError
from nodeagent.drivers import child
from nodeagent.drivers.answers import AnswerDamaged, AnswerError
from nodeagent.drivers.protocol import Answer, Call, Events, Failure, Message, Refusal, Value, decode, encode


class Adapter:
    """Calls of the test, and events that `ring` puts in."""

    def __init__(self, **calls: Callable[..., Any]) -> None:
        self.table = calls
        self.wake = os.eventfd(0)
        self.waiting: list[list[Any]] = []
        self.dropped = 0

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        return self.table

    def event_fd(self) -> int:
        return self.wake

    def drain(self, room: int) -> tuple[list[list[Any]], int]:
        taken, self.waiting = self.waiting[:room], self.waiting[room:]
        return taken, self.dropped

    def ring(self, events: list[list[Any]], dropped: int = 0) -> None:
        self.waiting += events
        self.dropped = dropped
        os.eventfd_write(self.wake, 1)


def fails(error: Exception) -> Callable[..., Any]:
    def call(*_: object) -> None:
        raise error

    return call


class Served:
    """A loop in a thread, and our end of its socket."""

    def __init__(self, adapter: Adapter) -> None:
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(20)
        self.thread = threading.Thread(target=child.serve, args=(adapter, self.theirs), daemon=True)
        self.thread.start()

    def ask(self, name: str, *args: object) -> Answer:
        self.ours.sendall(encode(Call(7, name, args)))
        answer = self.receive()
        assert isinstance(answer, Value | Refusal | Failure)
        return answer

    def receive(self) -> Message:
        return decode(self.ours.recv(200_000))


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Adapter], Served]]:
    # It would end this process when the test closes its socket.
    monkeypatch.setattr(child, "_leave_with_parent", lambda _: None)
    started: list[Served] = []

    def start(adapter: Adapter) -> Served:
        started.append(Served(adapter))
        return started[-1]

    yield start
    for served in started:
        served.ours.close()
        served.thread.join(20)
        assert not served.thread.is_alive()
        served.theirs.close()


Serve = Callable[[Adapter], Served]


def test_a_call_is_answered_with_its_number_and_value(serve: Serve) -> None:
    served = serve(Adapter(add=lambda a, b: a + b))
    assert served.ask("add", 2, 3) == Value(7, 5)


def test_a_return_code_travels_as_one(serve: Serve) -> None:
    served = serve(Adapter(x=fails(AnswerError("dcmi_init", -8005))))
    assert served.ask("x") == Refusal(7, -8005, "dcmi_init")


def test_nonsense_travels_as_an_answer(serve: Serve) -> None:
    served = serve(Adapter(x=fails(AnswerDamaged("dcmi_init", "nonsense"))))
    assert served.ask("x") == Refusal(7, 0, "dcmi_init", "nonsense")


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (LibraryError("not there", "look elsewhere"), Failure(7, "NA301", "not there", "look elsewhere")),
        (HostError("odd"), Failure(7, "NA303", "odd", "")),
    ],
)
def test_an_error_above_the_library_travels_whole(serve: Serve, error: Exception, failure: Failure) -> None:
    assert serve(Adapter(x=fails(error))).ask("x") == failure


def test_an_unknown_call_is_refused_and_the_loop_goes_on(serve: Serve) -> None:
    served = serve(Adapter(x=lambda: 1))
    assert served.ask("y") == Failure(7, "NA303", "this driver host has no call 'y'", "")
    assert served.ask("x") == Value(7, 1)


def test_events_travel_in_order_and_in_packets_that_fit(serve: Serve) -> None:
    adapter = Adapter(x=lambda: 1)
    served = serve(adapter)
    served.ask("x")
    adapter.ring([[number, 0, 1] for number in range(450)])
    found: list[int] = []
    sizes: list[int] = []
    while len(found) < 450:
        packet = served.receive()
        assert isinstance(packet, Events)
        sizes.append(len(packet.events))
        found += [int(event[0]) for event in packet.events]
    assert found == list(range(450))
    assert sizes == [200, 200, 50]


def test_drops_are_told_even_without_an_event(serve: Serve) -> None:
    adapter = Adapter(x=lambda: 1)
    served = serve(adapter)
    served.ask("x")
    adapter.ring([], dropped=12)
    assert served.receive() == Events((), 12)


def test_a_parent_that_leaves_while_a_call_runs_is_no_error(serve: Serve) -> None:
    """Else its trace would be the last thing in the log of a daemon that stopped as it should."""
    adapter = Adapter()
    served = serve(adapter)
    adapter.table["x"] = served.ours.close
    served.ours.sendall(encode(Call(7, "x", ())))
    served.thread.join(20)
    assert not served.thread.is_alive()


def test_what_is_no_call_ends_the_loop(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: raised.append(args.exc_value))
    served = serve(Adapter())
    served.ours.sendall(encode(Value(1, 2)))
    served.thread.join(20)
    assert isinstance(raised[0], HostError)
