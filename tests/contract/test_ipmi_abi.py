"""The kernel's IPMI interface: sizes, offsets and numbers of node-faults 2.2."""

import ctypes

from nodeagent.drivers import ipmi_device
from nodeagent.drivers.ipmi_device import Address, Message, Received, Request


def offsets(structure: type[ctypes.Structure]) -> dict[str, int]:
    return {field[0]: getattr(structure, field[0]).offset for field in structure._fields_}


def test_sizes() -> None:
    assert [ctypes.sizeof(s) for s in (Address, Message, Request, Received)] == [8, 16, 40, 48]


def test_offsets() -> None:
    assert offsets(Address) == {"addr_type": 0, "channel": 4, "lun": 6}
    assert offsets(Message) == {"netfn": 0, "cmd": 1, "data_len": 2, "data": 8}
    assert offsets(Request) == {"addr": 0, "addr_len": 8, "msgid": 16, "msg": 24}
    assert offsets(Received) == {"recv_type": 0, "addr": 8, "addr_len": 16, "msgid": 24, "msg": 32}


def test_numbers_follow_from_the_sizes() -> None:
    """_IOR('i', 13, struct ipmi_req) and _IOWR('i', 11, struct ipmi_recv), as asm-generic/ioctl.h packs them."""
    read, write = 2, 1
    assert ipmi_device.SEND_COMMAND == read << 30 | 40 << 16 | ord("i") << 8 | 13 == 0x8028690D
    assert ipmi_device.RECEIVE_MSG_TRUNC == (read | write) << 30 | 48 << 16 | ord("i") << 8 | 11 == 0xC030690B


def test_addresses_of_the_bmc() -> None:
    assert (ipmi_device.SYSTEM_INTERFACE, ipmi_device.BMC_CHANNEL, ipmi_device.RESPONSE) == (0x0C, 0x0F, 1)
