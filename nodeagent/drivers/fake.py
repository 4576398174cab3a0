"""The same driver on a pretended node, without C and without a child process, for unit tests.

It obeys the same scenario files as the mock library (nodeagent.mock): what a function of the library would answer,
this driver answers, in the words of `ChipDriver`. A hanging call is a missed deadline at once, a crash the end of
the session.
"""

from collections.abc import Callable, Collection

from nodeagent.core.errors import DriverError, HostError
from nodeagent.core.model import ChipId, Inventory, Product, SuperPod
from nodeagent.core.node_facts import FactKind
from nodeagent.drivers.answers import NOT_READY_RC, AnswerError, check
from nodeagent.drivers.chips import CodesAnswer, DriverEvent, DriverNews, Opened, judge_codes
from nodeagent.drivers.facts import FUNCTIONS, judge_fact
from nodeagent.drivers.gateway import judge_network_health
from nodeagent.drivers.host import HostGoneError, HostStuckError
from nodeagent.drivers.identity import family_of, super_pod_of
from nodeagent.mock.events import MockEvent
from nodeagent.mock.functions import INNER_ERROR, NOT_SUPPORTED, group_supported
from nodeagent.mock.node import MockNode

_V1 = {
    "init": "dcmi_init",
    "subscribe": "dcmi_subscribe_fault_event",
    "health": "dcmi_get_device_health",
    "codes": "dcmi_get_device_errorcode_v2",
    "physical": "dcmi_get_device_phyid_from_logicid",
    "network": "dcmi_get_device_network_health",
    **{kind.value: function for kind, function in FUNCTIONS.items()},
}
_NO_ADDRESS = -8023


class FakeChipDriver:
    """One session with a `MockNode`. on_news is called synchronously by the action that makes an event."""

    def __init__(self, node: MockNode, on_news: Callable[[DriverNews], None]) -> None:
        self._node = node
        self._on_news = on_news
        self._subscribed = False
        self._ended = ""

    def open(self, avoid: Collection[int]) -> Opened:
        """Enumerate the cards that answer now; chips without a physical id become problems."""
        self._call("init", None)
        problems: list[str] = []
        chips: list[ChipId] = []
        for card_id in self._node.topology().card_ids:
            for chip in self._node.chips_of(card_id):
                try:
                    self._call("physical", chip.logic_id)
                    chips.append(ChipId(chip.logic_id, chip.phy_id, card_id, chip.device_id))
                except AnswerError as error:
                    problems.append(f"chip with logic id {chip.logic_id} has no physical id: {error.sentence}")
        if not chips:
            raise DriverError("the driver lists no chips" + (": " + "; ".join(problems) if problems else ""))
        return Opened(Inventory(self._product(), tuple(chips)), tuple(problems), "fake")

    def subscribe(self) -> None:
        """Listen to the node's events."""
        self._call("subscribe", None)
        if not self._subscribed:
            self._node.add_listener(self._hear)
            self._subscribed = True

    def codes(self, chip: ChipId) -> CodesAnswer:
        """Code list and health, judged like the real ones."""
        self._disturb("codes", chip.logic_id)
        rc, listed = self._node.error_codes(chip.logic_id)
        self._disturb("health", chip.logic_id)
        health_rc, _ = self._node.health(chip.logic_id)
        return judge_codes(_V1["codes"], rc, len(listed), list(listed), health_rc)

    def card_dropped(self, chip: ChipId) -> bool:
        """Health query."""
        self._disturb("health", chip.logic_id)
        rc, _ = self._node.health(chip.logic_id)
        if rc != NOT_READY_RC:
            check(_V1["health"], rc)
        return rc == NOT_READY_RC

    def fact(self, chip: ChipId, kind: FactKind) -> int | str:
        """One fact, judged like the real ones."""
        self._disturb(kind.value, chip.logic_id)
        check(FUNCTIONS[kind], _fact_refusal(self._node, kind, chip.logic_id))
        return judge_fact(kind, _raw_fact(self._node, kind, chip.logic_id))

    def close(self) -> None:
        """End the session."""
        if self._subscribed:
            self._node.remove_listener(self._hear)
            self._subscribed = False
        self._ended = self._ended or "the session was closed"

    def _call(self, name: str, logic_id: int | None) -> None:
        self._disturb(name, logic_id)
        check(_V1[name], self._node.forced_code(_V1[name], logic_id) or 0)

    def _disturb(self, name: str, logic_id: int | None) -> None:
        if self._ended:
            raise HostGoneError(self._ended)
        try:
            _meet_disturbance(self._node, name, logic_id)
        except HostError as error:
            self._ended = error.sentence
            raise

    def _product(self) -> Product:
        spec = self._node.spec
        family = family_of(spec.chip_name, spec.board_id)
        pod = None
        if group_supported("spod info", spec.profile):
            pod = super_pod_of(spec.super_pod_id, spec.server_id, spec.chassis_id, spec.super_pod_type, family)
        generation = "v2" if spec.product.v2 else "v1"
        return Product(
            family, spec.chip_name, spec.board_id, spec.mainboard_id, spec.dcmi_version, generation, pod or SuperPod()
        )

    def _hear(self, event: MockEvent) -> None:
        mono_ns = self._node.clock.now().mono_ms * 1_000_000
        plain = DriverEvent(event.code, event.logic_id, event.assertion, event.severity, mono_ns, event.name)
        self._on_news(DriverNews((plain,)))


class FakeGatewayDriver:
    """One gateway session with a `MockNode`; see nodeagent.drivers.gateway."""

    def __init__(self, node: MockNode) -> None:
        self._node = node
        self._ended = ""

    @property
    def ended(self) -> bool:
        """No longer usable; nothing of it lives on."""
        return bool(self._ended)

    def open(self) -> None:
        """Initialise the pretended library."""
        _meet_disturbance(self._node, "init", None)
        check(_V1["init"], self._node.forced_code(_V1["init"], None) or 0)

    def network_health(self, chip: ChipId) -> int:
        """Result of the gateway detection, judged like the real one."""
        if self._ended:
            raise HostGoneError(self._ended)
        try:
            _meet_disturbance(self._node, "network", chip.logic_id)
        except HostError as error:
            self._ended = error.sentence
            raise
        return judge_network_health(_V1["network"], *self._node.network_health(chip.logic_id))

    def close(self) -> None:
        """End the session."""
        self._ended = self._ended or "the session was closed"


def _fact_refusal(node: MockNode, kind: FactKind, logic_id: int) -> int:
    function = FUNCTIONS[kind]
    if forced := node.forced_code(function, logic_id):
        return forced
    has_group = kind is not FactKind.SUPER_DEVICE or group_supported("spod info", node.spec.profile)
    if not (node.supports(function) and has_group):
        return NOT_SUPPORTED
    chip = node.chips[logic_id]
    if chip.dropped:
        return INNER_ERROR
    return _NO_ADDRESS if kind is FactKind.ADDRESS and chip.ip is None else 0


def _raw_fact(node: MockNode, kind: FactKind, logic_id: int) -> object:
    chip = node.chips[logic_id]
    raw: dict[FactKind, object] = {
        FactKind.CORES: node.spec.aicore_count,
        FactKind.MEMORY: node.spec.hbm_mb,
        FactKind.ADDRESS: chip.ip,
        FactKind.SUPER_DEVICE: (chip.sdid, node.spec.chassis_id if node.spec.product.v2 else 0),
        FactKind.PRODUCT_TYPE: chip.product_type,
    }
    return raw[kind]


def _meet_disturbance(node: MockNode, name: str, logic_id: int | None) -> None:
    """Raise what a hang or a crash of the host process would look like from outside."""
    disturbance = node.disturbance(_V1[name], logic_id)
    if disturbance.crash_signal:
        raise HostGoneError(f"driver host fake was killed by signal {disturbance.crash_signal}")
    if disturbance.hang_s > 0:
        raise HostStuckError(f"{name}({logic_id}) did not return")
