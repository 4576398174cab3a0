"""Answers about health, fault codes and events (native-abi 6, 7)."""

from nodeagent.mock.call import Answer, Call, Handler, i32, ok, refuse, u32, u32_list
from nodeagent.mock.functions import INVALID_PARAMETER
from nodeagent.mock.spec import MAX_CODES

_UNKNOWN_HEALTH = 4
"""The vendor library leaves this in the caller's variable when the driver does not answer (6.1)."""
_SHORT_TEXT_BYTES, _FULL_TEXT_BYTES = 48, 256


def _health(call: Call) -> Answer:
    code, value = call.the_chip.health_answer(call.now_ms)
    return code, (u32(value if code == 0 else _UNKNOWN_HEALTH),)


def _driver_health(_call: Call) -> Answer:
    return ok(u32(0))


def _network_health(call: Call) -> Answer:
    code, value = call.the_chip.network_answer()
    return ok(i32(value)) if code == 0 else refuse(code)


def _codes(call: Call) -> Answer:
    """-8001 when the caller's list is too short (18.2 row 4)."""
    code, codes = call.the_chip.codes_answer(call.now_ms)
    return u32_list(codes, call.args[0], INVALID_PARAMETER) if code == 0 else refuse(code)


def _codes_with_width(call: Call) -> Answer:
    code, codes = call.the_chip.codes_answer(call.now_ms)
    return ok(i32(len(codes)), u32(*codes), i32(4)) if code == 0 else refuse(code)


def _code_text(call: Call) -> Answer:
    """A short text for buffers of 48..255 bytes, the full one from 256 (6.1)."""
    code, size_bytes = call.args
    if size_bytes < _SHORT_TEXT_BYTES:
        return refuse(INVALID_PARAMETER)
    words = f"mock fault {code & 0xFFFFFFFF:08X}"
    if size_bytes >= _FULL_TEXT_BYTES:
        words += " of the pretended node, made by nodeagent mock for tests"
    return ok(words.encode() + b"\0")


def _driver_codes(_call: Call) -> Answer:
    return ok(i32(0), b"")


def _faulty_chips(call: Call) -> Answer:
    answers = [chip.health_answer(call.now_ms) for chip in call.node.chips_of(call.ids[0])]
    return ok(i32(sum(1 for answer in answers if answer != (0, 0))))


def _current_events(call: Call) -> Answer:
    """The active faults of a chip with all details (7.3)."""
    capacity = call.args[0]
    if not 1 <= capacity <= MAX_CODES:
        return refuse(INVALID_PARAMETER)
    chip = call.the_chip.logic_id
    events = [event for event in call.node.present_events() if event.logic_id == chip][:MAX_CODES]
    if len(events) > capacity:
        return refuse(INVALID_PARAMETER)
    return ok(b"".join(event.to_bytes(extended=True) for event in events), i32(len(events)))


def _accept(_call: Call) -> Answer:
    """Subscribing and waiting for an event go on in the server once nothing here objects."""
    return ok()


HANDLERS: dict[str, Handler] = {
    "dcmi_get_device_health": _health,
    "dcmi_get_driver_health": _driver_health,
    "dcmi_get_device_network_health": _network_health,
    "dcmi_get_device_errorcode_v2": _codes,
    "dcmi_get_device_errorcode": _codes_with_width,
    "dcmi_get_device_errorcode_string": _code_text,
    "dcmi_get_driver_errorcode": _driver_codes,
    "dcmi_get_fault_device_num_in_card": _faulty_chips,
    "dcmi_get_device_current_fault_event": _current_events,
    "dcmi_subscribe_fault_event": _accept,
    "dcmi_get_fault_event": _accept,
}
