"""Pingmesh answers, HCCS and UB, and URMA devices (native-abi 8, 9)."""

import signal
import struct
from collections.abc import Callable

from nodeagent.mock.call import Answer, Call, CallerDies, Handler, i32, ok, refuse, text, u32
from nodeagent.mock.functions import INVALID_PARAMETER
from nodeagent.mock.pingmesh import MAX_DESTINATIONS, PingTask

_OPERATE = struct.Struct("<1024s6i")
_UB_OPERATE = struct.Struct("<16s1024s7i")
_INFO_BYTES, _UB_INFO_BYTES = 3272, 3552
_EID_BYTES = 16
_UB_ADDRESSES = 64
_NOT_DONE = -1
_URMA_DEVICES, _EIDS_PER_DEVICE = 2, 2


def raw_answer(call: Call, code: int) -> Answer:
    """What leaks when the lower layer has no pingmesh: `code`, from the info calls an empty success (3.1)."""
    if call.name == "dcmi_get_hccsping_mesh_info":
        return ok(bytes(_INFO_BYTES))
    if call.name == "dcmi_get_hccsping_mesh_info_v2":
        return ok(bytes(_INFO_BYTES + 2 * MAX_DESTINATIONS))
    return refuse(code)


def _start(call: Call) -> Answer:
    """Vendor ranges of 8.2; too many destinations are refused, or fatal in strict mode (18.2 row 9)."""
    port, raw = call.args[0], call.blob
    addresses, size_bytes, packets, interval_ms, timeout, task_interval_s, task_id = _OPERATE.unpack(raw)
    names = [name for name in addresses.split(b"\0")[0].split(b",") if name]
    if len(names) > MAX_DESTINATIONS and call.node.spec.strict_pingmesh:
        raise CallerDies(signal.SIGABRT)
    fits = (
        port == 0
        and task_id in (0, 1)
        and 1 <= len(names) <= MAX_DESTINATIONS
        and 1792 <= size_bytes <= 3000
        and 1 <= packets <= 1000
        and 0 <= interval_ms <= 1000
        and timeout >= 0
        and 1 <= task_interval_s <= 60
        and _one_family(names)
    )
    if not fits:
        return refuse(INVALID_PARAMETER)
    chip = call.the_chip.logic_id
    call.node.pings.start(chip, task_id, tuple(names), packets=packets, interval_s=task_interval_s)
    return ok()


def _one_family(names: list[bytes]) -> bool:
    """All decimal SDIDs, or all IPv4 addresses that begin with 192 (8.2)."""
    return all(name.isdigit() for name in names) or all(
        name.startswith(b"192.") and name.count(b".") == 3 and name.replace(b".", b"").isdigit() for name in names
    )


def _with_task(answer: Callable[[Call, int], Answer]) -> Handler:
    """A handler of a call about (port 0, task 0 or 1)."""

    def handle(call: Call) -> Answer:
        port, task_id = call.args[:2]
        if port != 0 or task_id not in (0, 1):
            return refuse(INVALID_PARAMETER)
        return answer(call, task_id)

    return handle


def _stop(call: Call, task_id: int) -> Answer:
    call.node.pings.stop(call.the_chip.logic_id, task_id)
    return ok()


def _state(call: Call, task_id: int) -> Answer:
    return ok(u32(call.node.pings.running(call.the_chip.logic_id, task_id)))


def _info(call: Call, task_id: int) -> Answer:
    tasks = call.node.pings.tasks(call.the_chip.logic_id, task_id)
    if not tasks:
        return ok(bytes(_INFO_BYTES))
    names = b"".join(name.ljust(16, b"\0") for name in tasks[0].destinations).ljust(16 * MAX_DESTINATIONS, b"\0")
    return ok(names + _statistics(tasks[0], call.now_ms) + bytes(4))


def _info_v2(call: Call, task_id: int) -> Answer:
    _, (info,) = _info(call, task_id)
    return ok(info + bytes(2 * MAX_DESTINATIONS))


def _statistics(task: PingTask, now_ms: int) -> bytes:
    """The arrays that both info structs share, up to and including dest_num (8.3, 9.3).

    Times are made up (their unit is not documented); before the first round they say "not done".
    """
    count = len(task.destinations)
    rounds = task.rounds(now_ms)
    pinged = task.packets if rounds else 0

    def column(code: str, value: Callable[[int], int]) -> bytes:
        values = [value(index) if index < count else 0 for index in range(MAX_DESTINATIONS)]
        return struct.pack(f"<{MAX_DESTINATIONS}{code}", *values)

    def duration(base: int) -> bytes:
        return column("q", lambda index: base + index if rounds else _NOT_DONE)

    return (
        column("I", lambda _index: pinged)
        + column("I", lambda _index: 0)
        + duration(300)
        + duration(100)
        + duration(200)
        + duration(280)
        + column("i", lambda _index: rounds)
        + column("Q", lambda _index: rounds)
        + i32(count)
    )


def _ub_start(call: Call) -> Answer:
    count = call.args[0]
    if count < 1 or len(call.blob) != count * _UB_OPERATE.size:
        return refuse(INVALID_PARAMETER)
    entries = list(_UB_OPERATE.iter_unpack(call.blob))
    for _, _, destinations, *_, interval_s, task_id in entries:
        if task_id != 0 or not 1 <= destinations <= MAX_DESTINATIONS or not 1 <= interval_s <= 60:
            return refuse(INVALID_PARAMETER)
    chip = call.the_chip.logic_id
    for index, (source, eids, destinations, _, packets, _, _, interval_s, task_id) in enumerate(entries):
        targets = tuple(eids[at : at + _EID_BYTES] for at in range(0, destinations * _EID_BYTES, _EID_BYTES))
        call.node.pings.start(
            chip, task_id, targets, packets=packets, interval_s=interval_s, source=source, add=index > 0
        )
    return ok()


def _ub_stop(call: Call) -> Answer:
    if call.args[0] != 0:
        return refuse(INVALID_PARAMETER)
    return _stop(call, 0)


def _ub_state(call: Call) -> Answer:
    return _state(call, 0) if call.args[0] == 0 else refuse(INVALID_PARAMETER)


def _ub_info(call: Call) -> Answer:
    task_id, capacity = call.args
    tasks = call.node.pings.tasks(call.the_chip.logic_id, task_id)
    if task_id != 0 or capacity < len(tasks):
        return refuse(INVALID_PARAMETER)
    now = call.node.clock.now()
    infos = []
    for task in tasks:
        eids = b"".join(task.destinations).ljust(_UB_ADDRESSES * _EID_BYTES, b"\0")
        info = task.source + eids + _statistics(task, now.mono_ms) + bytes(4) + struct.pack("<Q", now.wall_ms)
        infos.append(info)
    return ok(b"".join(infos), i32(len(infos)))


def _urma_count(_call: Call) -> Answer:
    return ok(u32(_URMA_DEVICES))


def _eids(call: Call) -> Answer:
    index, capacity = call.args
    if not 0 <= index < _URMA_DEVICES or capacity < _EIDS_PER_DEVICE:
        return refuse(INVALID_PARAMETER)
    chip = call.the_chip.logic_id
    entries = [
        text("", 12) + bytes([0xEE, chip, index, number]) + u32(number) + bytes(4) for number in range(_EIDS_PER_DEVICE)
    ]
    return ok(b"".join(entries), u32(len(entries)))


HANDLERS: dict[str, Handler] = {
    "dcmi_start_hccsping_mesh": _start,
    "dcmi_stop_hccsping_mesh": _with_task(_stop),
    "dcmi_get_hccsping_mesh_info": _with_task(_info),
    "dcmi_get_hccsping_mesh_info_v2": _with_task(_info_v2),
    "dcmi_get_hccsping_mesh_state": _with_task(_state),
    "dcmi_start_ub_ping_mesh": _ub_start,
    "dcmi_stop_ub_ping_mesh": _ub_stop,
    "dcmi_get_ub_ping_mesh_info": _ub_info,
    "dcmi_get_ub_ping_mesh_state": _ub_state,
    "dcmi_get_urma_device_cnt": _urma_count,
    "dcmi_get_eid_list_by_urma_dev_index": _eids,
}
