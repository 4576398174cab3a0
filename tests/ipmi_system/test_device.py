"""The kernel's IPMI driver and our device transport (node-faults 2, 19)."""

import json
import sys
from pathlib import Path

import pytest
from kit.alarms import CPU_1, SYSTEM, WORKED_PAGE
from kit.bmc_simulator import RIG, BmcSimulator
from kit.daemon import wait_until
from kit.guest import ANSWER_LIMIT_S, GuestError, IpmiGuest
from kit.ipmi_ways import failure

from nodeagent.drivers.ipmi_alarms import alarm_request
from nodeagent.drivers.ipmi_label import label_request

DEVICE_ID = "00000309"
"""Completion code, and the first bytes of the device id as tests/ipmi/bmc.emu gives them."""
KERNEL = {
    "sizes": {"Address": 8, "Message": 16, "Request": 40, "Received": 48},
    "nothing there: receive": ["EAGAIN", 0, 0, 0, 0, 1024, "00000000"],
    "nothing there: poll": False,
    "answer": ["ok", 1, 7, 7, 1, 16, DEVICE_ID],
    "answer, once more": ["EAGAIN", 0, 0, 0, 0, 1024, "00000000"],
    "4 bytes of address": "EINVAL",
    "7 bytes of address": "EINVAL",
    "address of another type": "EINVAL",
    "address of another channel": "EINVAL",
    "address with LUN 4": "EINVAL",
    "271 bytes of data": "EMSGSIZE",
    "odd network function": "EINVAL",
    "wrong ioctl": "ENOTTY",
    "room for 4 bytes": ["EMSGSIZE", 1, 99, 7, 1, 4, DEVICE_ID],
    "room for 4 bytes, once more": ["EAGAIN", 0, 0, 0, 0, 1024, "00000000"],
    "without TRUNC": ["EMSGSIZE", 0, 0, 0, 0, 4, "00000000"],
    "without TRUNC, once more": ["ok", 1, 100, 7, 1, 16, DEVICE_ID],
    "room for 4 bytes of address": ["EINVAL", 0, 0, 0, 0, 1024, "00000000"],
    "room for 4 bytes of address, once more": ["ok", 1, 101, 7, 1, 16, DEVICE_ID],
}
"""What Linux 6.1 says: type 1 is a response, network function 7 the answer to 6 (2.2)."""


def test_the_kernel_knows_our_structures(guest: IpmiGuest) -> None:
    status, said = guest.run(sys.executable, RIG / "abi_probe.py")
    assert status == 0, said
    assert json.loads(said) == KERNEL


def test_another_program_may_use_the_device_meanwhile(bmc: BmcSimulator, guest: IpmiGuest) -> None:
    bmc.say(WORKED_PAGE)
    assert guest.poll() == WORKED_PAGE  # the agent has it open from here on
    assert guest.run(sys.executable, RIG / "abi_probe.py")[0] == 0
    assert guest.poll() == WORKED_PAGE


def test_a_command_that_is_too_long(guest: IpmiGuest) -> None:
    with pytest.raises(GuestError, match="refuses a command"):
        guest.raw(0x30, 0x94, bytes(271))
    assert guest.poll() == ()


def test_an_answer_after_the_deadline_is_not_taken_for_the_next_one(bmc: BmcSimulator, guest: IpmiGuest) -> None:
    """On one open file: the kernel hands over the old answer first."""
    bmc.say([CPU_1], serial="210200ABCDEF", delay_ms=2000, times=1)
    guest.close(deadline_s=1)
    with pytest.raises(GuestError) as caught:
        guest.raw(0x30, 0x94, alarm_request(0))
    assert caught.value.kind == "NoAnswerError"

    def label() -> bytes:
        try:
            return guest.raw(0x30, 0x90, label_request(0))
        except GuestError as error:
            if error.kind != "NoAnswerError":
                raise
            return b""  # the BMC has not finished yet

    assert wait_until(label) == b"\x00\x80210200ABCDEF"
    guest.close()


def test_a_poll_goes_on_when_the_kernel_gave_an_answer_up(bmc: BmcSimulator, guest: IpmiGuest) -> None:
    bmc.say([CPU_1], delay_ms=6000)
    before = len(bmc.asked())
    guest.tell(json.dumps({"do": "poll"}))  # QEMU tells the kernel C3 after 4 s, and our poll asks again
    wait_until(lambda: len(bmc.asked()) > before, "the BMC is asked")
    bmc.say([SYSTEM])
    answer = json.loads(guest.hear())
    assert [code for code, *_ in answer["is"]] == [SYSTEM.code]
    assert len(bmc.asked()) >= before + 2


def test_one_answer_that_never_comes(bmc: BmcSimulator, guest: IpmiGuest) -> None:
    bmc.say(WORKED_PAGE, silent=1, times=1)
    assert guest.poll() == WORKED_PAGE


def test_t12_the_bmc_is_killed_and_comes_back(bmc: BmcSimulator, guest: IpmiGuest) -> None:
    bmc.say([CPU_1])
    assert guest.poll() == (CPU_1,)
    bmc.kill()
    for _ in range(3):
        kind, _ = failure(guest)
        assert kind == "CompletionError"
    bmc.say()
    bmc.start()
    guest.wait_for_bmc()
    assert guest.poll() == ()


def test_t13_the_driver_comes_later(tmp_path: Path, bmc: BmcSimulator, guest: IpmiGuest) -> None:
    """No BMC when the guest starts: no device. It comes when the driver is loaded again."""
    (tmp_path / "bmc").mkdir()
    (tmp_path / "guest").mkdir()
    late = BmcSimulator(tmp_path / "bmc")
    with IpmiGuest(tmp_path / "guest", late) as early:
        assert not early.has_device()
        kind, sentence = failure(early)
        assert (kind, sentence) == ("IpmiAccessError", "there is no /dev/ipmi0")
        with late:
            late.say([CPU_1])

            def there() -> bool:
                early.load_driver()
                return early.has_device()

            wait_until(there, "a driver with a BMC", ANSWER_LIMIT_S)
            assert early.poll() == (CPU_1,)
            assert early.leave(7) == 7
