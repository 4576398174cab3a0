"""The way through /dev/ipmi0 on a pretended kernel that knows late, foreign and no answers."""

import errno
import os
import select
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.bmc import FakeBmc, numbered
from kit.ipmi_kernel import COMMAND, EVENT, Coming, FakeKernel, Sent

from nodeagent.core.errors import IpmiAccessError, IpmiError
from nodeagent.drivers.ipmi import DamagedAnswerError, NoAnswerError
from nodeagent.drivers.ipmi_alarms import poll_alarms
from nodeagent.drivers.ipmi_device import DeviceTransport, LinuxKernel

GOOD = b"\x00\xdb\x07\x00"
DELAY_S = 0.01


def after(delay_s: float, data: bytes = GOOD) -> Callable[[Sent, float], list[Coming]]:
    return lambda sent, now_s: [Coming(now_s + delay_s, sent.number, data)]


class Device:
    """A transport on a kernel, and how many answers it threw away."""

    def __init__(self, kernel: FakeKernel) -> None:
        self.kernel, self.discarded = kernel, 0
        self.transport = DeviceTransport("/dev/ipmi0", 10.0, self._count, kernel)

    def _count(self) -> None:
        self.discarded += 1

    def ask(self, data: bytes = b"\x01\x02") -> bytes:
        return self.transport.raw(0x30, 0x94, data)


def test_a_command_goes_to_the_bmc_and_its_answer_comes_back() -> None:
    device = Device(FakeKernel(after(DELAY_S)))
    assert device.ask() == GOOD
    [sent] = device.kernel.sent
    assert (sent.netfn, sent.command, sent.data) == (0x30, 0x94, b"\x01\x02")
    assert sent.address[:7] == b"\x0c\x00\x00\x00\x0f\x00\x00"
    assert device.discarded == 0


def test_each_command_has_a_number_of_its_own() -> None:
    device = Device(FakeKernel(after(DELAY_S)))
    for _ in range(5):
        device.ask()
    assert len({sent.number for sent in device.kernel.sent}) == 5


def test_a_command_without_data() -> None:
    device = Device(FakeKernel(after(DELAY_S)))
    assert device.ask(b"") == GOOD
    assert device.kernel.sent[0].data == b""


def test_never_an_answer() -> None:
    device = Device(FakeKernel())
    with pytest.raises(NoAnswerError, match="did not answer through /dev/ipmi0 within 10 s"):
        device.ask()
    assert device.kernel.clock_s == 1010.0


def test_an_answer_after_12_s_is_not_taken_for_that_of_the_next_command() -> None:
    late, second = b"\x00late", b"\x00second"
    kernel = FakeKernel()
    kernel.reply = lambda sent, now_s: [
        Coming(now_s + (12 if len(kernel.sent) == 1 else 5), sent.number, late if len(kernel.sent) == 1 else second)
    ]
    device = Device(kernel)
    with pytest.raises(NoAnswerError):
        device.ask()
    assert device.ask() == second
    assert device.discarded == 1
    assert kernel.clock_s == 1015.0


def test_foreign_messages_are_thrown_away_within_the_same_deadline() -> None:
    def reply(sent: Sent, now_s: float) -> list[Coming]:
        return [
            Coming(now_s + 1, sent.number - 1, b"\x00old"),
            Coming(now_s + 2, sent.number, b"\x00event", EVENT),
            Coming(now_s + 3, sent.number, b"\x00command", COMMAND),
            Coming(now_s + 4, sent.number, GOOD),
        ]

    device = Device(FakeKernel(reply))
    assert device.ask() == GOOD
    assert device.discarded == 3


def test_a_stream_of_foreign_messages_does_not_prolong_the_deadline() -> None:
    device = Device(FakeKernel(lambda _, now_s: [Coming(now_s + n, 0, b"\x00") for n in range(1, 60)]))
    with pytest.raises(NoAnswerError):
        device.ask()
    assert device.kernel.clock_s == 1010.0
    assert device.discarded in (9, 10)


@pytest.mark.parametrize("call", ["send", "receive", "poll"])
def test_an_interrupted_call_is_made_again(call: str) -> None:
    device = Device(FakeKernel(after(DELAY_S), errors={call: [errno.EINTR, errno.EINTR]}))
    assert device.ask() == GOOD
    assert len(device.kernel.sent) == 1


@pytest.mark.parametrize("call", ["send", "receive", "poll"])
def test_interrupting_for_ever_ends_at_the_deadline(call: str) -> None:
    device = Device(FakeKernel(after(DELAY_S), errors={call: [errno.EINTR] * 20_000}))
    with pytest.raises(NoAnswerError):
        device.ask()


def test_nothing_there_after_all_is_waited_for_again() -> None:
    device = Device(FakeKernel(after(DELAY_S), errors={"receive": [errno.EAGAIN, errno.EAGAIN]}))
    assert device.ask() == GOOD


def test_an_answer_that_is_too_long() -> None:
    device = Device(FakeKernel(after(DELAY_S, b"\x00" * 1025)))
    with pytest.raises(DamagedAnswerError, match="more than 1024 bytes"):
        device.ask()
    device.kernel.reply = after(DELAY_S, b"\x00" * 1024)
    assert device.ask() == b"\x00" * 1024


def test_a_foreign_message_that_is_too_long_is_thrown_away_too() -> None:
    device = Device(
        FakeKernel(lambda sent, now_s: [Coming(now_s, 1, b"\x00" * 2000), Coming(now_s, sent.number, GOOD)])
    )
    assert device.ask() == GOOD
    assert device.discarded == 1


def test_an_answer_without_a_completion_code() -> None:
    with pytest.raises(DamagedAnswerError, match="without a completion code"):
        Device(FakeKernel(after(DELAY_S, b""))).ask()


@pytest.mark.parametrize("call", ["send", "receive", "poll"])
def test_a_device_that_vanishes(call: str) -> None:
    device = Device(FakeKernel(after(DELAY_S), errors={call: [0, errno.ENODEV]}))
    assert device.ask() == GOOD
    with pytest.raises(IpmiAccessError, match="/dev/ipmi0 has lost its BMC"):
        device.ask()


@pytest.mark.parametrize("events", [select.POLLERR, select.POLLHUP, select.POLLNVAL])
def test_events_of_an_error(events: int) -> None:
    device = Device(FakeKernel(after(DELAY_S), more_events=events))
    with pytest.raises(IpmiAccessError, match="reports an error"):
        device.ask()


def test_an_answer_beside_an_error_is_read() -> None:
    assert Device(FakeKernel(after(0), more_events=select.POLLERR)).ask() == GOOD


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [
        (errno.EMSGSIZE, IpmiError, "refuses a command: Message too long"),
        (errno.EINVAL, IpmiError, "refuses a command: Invalid argument"),
        (errno.EAGAIN, IpmiError, "refuses a command: Resource temporarily unavailable"),
        (errno.EPERM, IpmiAccessError, "may not be used"),
        (errno.ENOTTY, IpmiAccessError, "is no IPMI device"),
    ],
)
def test_a_command_that_the_kernel_refuses(number: int, error: type[IpmiError], words: str) -> None:
    with pytest.raises(IpmiError, match=words) as caught:
        Device(FakeKernel(errors={"send": [number]})).ask()
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("number", "words", "hint"),
    [
        (errno.ENOENT, "there is no /dev/ipmi0", "ipmi_devintf"),
        (errno.ENODEV, "has no BMC behind it", "ipmi_si"),
        (errno.ENXIO, "has no BMC behind it", "ipmi_si"),
        (errno.EPERM, "the device cgroup of the container forbids it", "privileged"),
        (errno.EACCES, "no right to read and write", "root"),
        (errno.EBUSY, "used by somebody else", "fuser"),
        (errno.EIO, "cannot be opened: Input/output error", ""),
    ],
)
def test_a_device_that_cannot_be_opened(number: int, words: str, hint: str) -> None:
    with pytest.raises(IpmiAccessError, match=words) as caught:
        Device(FakeKernel(errors={"open": [number]}))
    assert hint in caught.value.hint
    assert caught.value.code == "NA305"


def test_it_is_closed_once_and_then_of_no_use() -> None:
    device = Device(FakeKernel(after(DELAY_S)))
    device.transport.close()
    device.transport.close()
    assert device.kernel.opened == []
    with pytest.raises(IpmiAccessError, match="was closed"):
        device.ask()


def test_a_whole_poll() -> None:
    bmc = FakeBmc(numbered(33), page_size=12)

    def reply(sent: Sent, now_s: float) -> list[Coming]:
        return [Coming(now_s + DELAY_S, sent.number, bmc.raw(sent.netfn, sent.command, sent.data))]

    assert poll_alarms(Device(FakeKernel(reply)).transport.raw) == tuple(numbered(33))


@given(
    st.dictionaries(
        st.sampled_from(["open", "send", "receive", "poll"]),
        st.lists(st.sampled_from([0, *sorted(errno.errorcode)]), max_size=4),
    ),
    st.lists(st.tuples(st.floats(0, 12), st.integers(-1, 1), st.integers(0, 3), st.binary(max_size=1030)), max_size=4),
)
def test_whatever_the_kernel_does_is_an_answer_or_an_error_of_ours_in_time(
    errors: dict[str, list[int]], messages: list[tuple[float, int, int, bytes]]
) -> None:
    def reply(sent: Sent, now_s: float) -> list[Coming]:
        return [Coming(now_s + delay_s, sent.number + step, data, kind) for delay_s, step, kind, data in messages]

    kernel = FakeKernel(reply, {name: list(numbers) for name, numbers in errors.items()})
    try:
        answer = Device(kernel).ask()
    except IpmiError:
        pass
    else:
        assert (0, 1, answer) in [(step, kind, data) for _, step, kind, data in messages]
    assert kernel.clock_s <= 1010.1


class TestLinuxKernel:
    """The system calls themselves, on files that every machine has."""

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(IpmiAccessError, match="there is no"):
            DeviceTransport(str(tmp_path / "ipmi0"), 10, lambda: None)

    def test_a_file_that_is_no_ipmi_device(self) -> None:
        transport = DeviceTransport("/dev/null", 10, lambda: None)
        with pytest.raises(IpmiAccessError, match="/dev/null is no IPMI device"):
            transport.raw(0x06, 0x01, b"")
        transport.close()

    def test_waiting(self) -> None:
        reader, writer = os.pipe()
        try:
            assert LinuxKernel().wait_readable(reader, 0.01) == 0
            os.write(writer, b"x")
            assert LinuxKernel().wait_readable(reader, 60) == select.POLLIN
            os.read(reader, 1)
            os.close(writer)
            writer = -1
            assert LinuxKernel().wait_readable(reader, 60) == select.POLLHUP
        finally:
            os.close(reader)
            if writer >= 0:
                os.close(writer)

    def test_what_the_kernel_writes_into_a_structure_is_seen(self) -> None:
        import ctypes
        import pty
        import termios

        class Size(ctypes.Structure):
            _fields_ = (("rows", ctypes.c_ushort), ("columns", ctypes.c_ushort), ("pixels", ctypes.c_ushort * 2))

        ours, theirs = pty.openpty()
        try:
            wanted, got = Size(12, 34), Size()
            LinuxKernel().ioctl(ours, termios.TIOCSWINSZ, wanted)
            LinuxKernel().ioctl(theirs, termios.TIOCGWINSZ, got)
            assert (got.rows, got.columns) == (12, 34)
        finally:
            os.close(ours)
            os.close(theirs)

    def test_the_clock_goes_on(self) -> None:
        kernel = LinuxKernel()
        assert kernel.now_s() <= kernel.now_s()
