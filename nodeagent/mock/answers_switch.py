"""Answers of the switch library (native-abi 3.2, 16): numbers as in DCMI, other meanings."""

from nodeagent.mock.call import Answer, Call, Handler, ok, refuse, u32

INVALID_PARAMETER = -8001
NO_DEVICE_NODE = -8004
NOT_INITIALISED = -8009
INITIALISED_TWICE = -8017
MAX_LIST = 65535
KERNEL_VERSION, LIBRARY_VERSION = 0x01000000, 0x01000003
"""Made up; their major bytes agree."""


def answer(call: Call) -> Answer:
    """An answer to a call of which no rule has decided. A node without switches has no device node (16.8)."""
    if call.node.spec.profile != "a3":
        return refuse(NO_DEVICE_NODE if call.name == "lq_dcmi_init" else NOT_INITIALISED)
    if call.name == "lq_dcmi_init":
        return refuse(INITIALISED_TWICE) if call.initialised else ok(u32(0))
    if not call.initialised:
        return refuse(NOT_INITIALISED)
    return _HANDLERS[call.name](call)


def _subscribe(_call: Call) -> Answer:
    """The library keeps its subscriptions itself."""
    return ok()


def _faults(call: Call) -> Answer:
    capacity = call.args[0]
    if not 1 <= capacity <= MAX_LIST:
        return refuse(INVALID_PARAMETER)
    count, records = call.node.switches.answer(capacity)
    return ok(u32(count), b"".join(record.to_bytes() for record in records))


def _count(call: Call) -> Answer:
    return ok(u32(len(call.node.switches.listed)))


def _version(_call: Call) -> Answer:
    return ok(u32(KERNEL_VERSION), u32(LIBRARY_VERSION))


_HANDLERS: dict[str, Handler] = {
    "lq_dcmi_subscribe_fault_event": _subscribe,
    "lq_dcmi_get_fault_info": _faults,
    "lq_dcmi_get_fault_nums": _count,
    "lq_dcmi_get_version": _version,
}
