"""The serial number of the product, out of the electronic label of an iBMC (node-faults 10). Pure: `raw` is given."""

from collections.abc import Callable

from nodeagent.drivers.ipmi import NETFN_OEM, DamagedAnswerError, Raw, at_once, payload_of, retrying

COMMAND = 0x90
LAST_PART = 0x80
"""Bit of the control byte that ends a text; without it there is more at a higher offset."""
MAX_TEXT_BYTES = 255
"""An offset is one byte, and no serial number is as long."""
_EMPTY = b"\x00\xff \t\r\n"
"""What an unset field is filled with: NUL, erased memory, blanks."""
_WHAT = "the question for the serial number"


def label_request(offset: int) -> bytes:
    """The data bytes that read the serial number (field 04 of area 03 of FRU 0) from `offset` on, 0 to 255."""
    return bytes((0x05, 0x00, 0x03, 0x04, offset, 0xFF))


def read_serial_number(raw: Raw, pause: Callable[[], None] = at_once) -> str:
    """The serial number in printable ASCII, without blanks around it; "" when the board has none.

    The manufacturer's name is never taken instead: it would be the same on every such node. A text with anything else
    than printable ASCII is an error and not "", because a damaged answer does not say that the board has none; only a
    field of nothing but NUL, FF and blanks is empty.

    pause: the wait before a busy BMC is asked again. Raises IpmiError, IpmiNotSupportedError, and what `raw` raises.
    """
    ask = retrying(raw, pause)
    text = b""
    while True:
        payload = payload_of(ask(NETFN_OEM, COMMAND, label_request(len(text))), _WHAT)
        if not payload:
            raise DamagedAnswerError("the answer with the serial number has no control byte")
        control, part = payload[0], payload[1:]
        text += part
        if len(text) > MAX_TEXT_BYTES:
            raise DamagedAnswerError(f"the serial number has more than {MAX_TEXT_BYTES} bytes")
        if control & LAST_PART:
            return _plain(text)
        if not part:
            raise DamagedAnswerError("the BMC says that more of the serial number follows, and sends none of it")


def _plain(text: bytes) -> str:
    bare = text.strip(_EMPTY)
    if not all(0x20 <= byte <= 0x7E for byte in bare):
        raise DamagedAnswerError(f"the serial number is not printable ASCII: {bare.hex(' ').upper()}")
    return bare.decode("ascii")
