"""From a function name with integers to an answer: the order of refusals that all functions share."""

from nodeagent.mock import (
    answers_health,
    answers_identity,
    answers_links,
    answers_metrics,
    answers_ping,
    answers_switch,
)
from nodeagent.mock.call import Answer, Call, Handler, i32, ok, refuse
from nodeagent.mock.chip import Chip
from nodeagent.mock.functions import (
    BY_NAME,
    INNER_ERROR,
    INVALID_PARAMETER,
    NOT_EXIST,
    NOT_PERMITTED,
    NOT_READY,
    NOT_SUPPORTED,
    RAW_NOT_SUPPORTED,
    Address,
    Function,
    is_v2,
)
from nodeagent.mock.node import MockNode, Topology
from nodeagent.mock.rules import Disturbance

ALL_CARDS = 0xFF
"""Card id of an in-band reset of the whole node (4)."""

_HANDLERS: dict[str, Handler] = {
    **answers_identity.HANDLERS,
    **answers_health.HANDLERS,
    **answers_ping.HANDLERS,
    **answers_links.HANDLERS,
    **answers_metrics.HANDLERS,
}
_MAPPING = frozenset(
    {
        "dcmi_get_card_id_device_id_from_logicid",
        "dcmi_get_card_id_device_id_from_phyid",
        "dcmi_get_device_phyid_from_logicid",
        "dcmi_get_device_logicid_from_phyid",
    }
)
"""Answer -8012 before init, the others -8005 (18.2 row 1)."""
_ALIVE_WHEN_DROPPED = frozenset(
    {
        "dcmi_get_device_num_in_card",
        "dcmi_get_device_id_in_card",
        "dcmi_get_device_type",
        "dcmi_get_device_logic_id",
        "dcmi_get_device_health",
        "dcmi_get_fault_device_num_in_card",
        "dcmi_get_fault_event",
        "dcmi_set_device_reset",
    }
)
"""Served from the topology snapshot, or with an own answer for a lost card; the others say -8005."""
_FOR_CONTROLLER = frozenset({"dcmi_get_device_type"})


class Dispatcher:
    """Answers the calls of all client processes on one node.

    Not thread-safe: the server calls it under its lock.
    """

    def __init__(self, node: MockNode) -> None:
        self._node = node
        self._sessions: list[Topology] = []

    def resolve(self, pid: int, session: int, name: str, args: tuple[int, ...], blob: bytes) -> Call:
        """Find the subject of a call.

        session: what the init of the calling library was given, -1 before it. Raises ValueError for a name that
        is not in the ABI or without its leading ids.
        """
        function = BY_NAME.get(name)
        if function is None:
            raise ValueError(f"{name} is not in the ABI")
        v2 = is_v2(name)
        topology = self._sessions[session] if 0 <= session < len(self._sessions) else None
        count = {Address.NONE: 0, Address.CARD: 1, Address.CHIP: 1 if v2 else 2}[function.address]
        if len(args) < count:
            raise ValueError(f"{name} came without its ids")
        ids, rest = args[:count], args[count:]
        chip = self._subject(function, v2, ids, topology)
        return Call(self._node, function.name, v2, pid, rest, blob, ids, topology, chip, session >= 0)

    def before(self, call: Call) -> Disturbance:
        """What happens on the calling thread before the answer: rules, slow init, profiling time (11.2, 11.3)."""
        rule = self._node.disturbance(call.name, call.chip.logic_id if call.chip else None)
        own_s = 0.0
        if call.name == "dcmi_init" and call.v2 == self._node.spec.product.v2:
            own_s = self._node.spec.init_delay_s
        elif call.name in answers_links.PROFILING_MS and call.args and call.chip:
            low_ms, high_ms = answers_links.PROFILING_MS[call.name]
            if low_ms <= call.args[0] <= high_ms and self._node.supports(call.name):
                own_s = call.args[0] / 1000
        return Disturbance(rule.hang_s + own_s, rule.crash_signal)

    def answer(self, call: Call) -> Answer:
        """The answer. Raises CallerDies when the call ends its process."""
        function = BY_NAME[call.name]
        spec = self._node.spec
        if call.v2 != spec.product.v2 and function.group != "lq":
            return refuse(NOT_SUPPORTED)
        forced = self._node.forced_code(call.name, call.chip.logic_id if call.chip else None)
        if forced is not None:
            return refuse(forced)
        if function.group == "lq":
            return answers_switch.answer(call)
        if call.name == "dcmi_init":
            return ok(i32(self._open_session()))
        if call.topology is None:
            return refuse(NOT_READY if call.name in _MAPPING else INNER_ERROR)
        if spec.raw_pingmesh and function.group == "hccs ping":
            return answers_ping.raw_answer(call, RAW_NOT_SUPPORTED)
        if not self._node.supports(call.name):
            return refuse(NOT_SUPPORTED)
        if function.privileged and not spec.privileged:
            return refuse(NOT_PERMITTED)
        if function.address is not Address.NONE and call.chip is None and not self._without_chip(call):
            return refuse(INVALID_PARAMETER if min(call.ids) < 0 else NOT_EXIST)
        if call.chip is not None and call.chip.dropped and call.name not in _ALIVE_WHEN_DROPPED:
            return refuse(INNER_ERROR)
        handler = _HANDLERS.get(call.name)
        return handler(call) if handler else refuse(NOT_SUPPORTED)

    def _subject(self, function: Function, v2: bool, ids: tuple[int, ...], topology: Topology | None) -> Chip | None:
        """The chip that a call names, as far as the caller's init saw it; for a card its first chip."""
        if not ids:
            return None
        if v2:
            chip = self._node.chips.get(ids[0])
        elif function.address is Address.CARD:
            chip = self._node.chip_at(ids[0], 0)
        else:
            chip = self._node.chip_at(ids[0], ids[1])
        if chip is None or (topology is not None and chip.card_id not in topology.card_ids):
            return None
        return chip

    def _without_chip(self, call: Call) -> bool:
        """Whether a call makes sense although its ids name no chip."""
        if call.name == "dcmi_set_device_reset":
            return call.ids[0] == ALL_CARDS
        return call.name in _FOR_CONTROLLER and answers_identity.is_controller(call)

    def _open_session(self) -> int:
        """A number for the topology that is there now; equal topologies share theirs (18.2 row 3)."""
        topology = self._node.topology()
        if topology not in self._sessions:
            self._sessions.append(topology)
        return self._sessions.index(topology)
