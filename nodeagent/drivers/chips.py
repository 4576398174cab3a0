"""What the chip source needs of a driver, and the driver that runs DCMI in a host process.

One `ChipDriver` is one session with the library: opened, used, and replaced by a new one when a call hangs or
the child ends. `FakeChipDriver` (nodeagent.drivers.fake) offers the same on a pretended node.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

from nodeagent.core.codes import CARD_DROPPED
from nodeagent.core.errors import DriverError
from nodeagent.core.model import ChipId, Family, Inventory, Product, SuperPod
from nodeagent.core.node_facts import FactKind
from nodeagent.drivers.answers import NOT_READY_RC, AnswerDamaged, AnswerError, AnswerKind
from nodeagent.drivers.facts import judge_fact
from nodeagent.drivers.host import DriverHost, HostSpec, Reaper
from nodeagent.drivers.identity import INVALID_ID, family_of, super_pod_of
from nodeagent.drivers.library import DCMI_FILE_NAME, LibrarySettings

MAX_CODES = 128


@dataclass(frozen=True, slots=True)
class DriverEvent:
    """One fault event. mono_ns: monotonic clock when the callback was entered. assertion: 0, 1, 2 or nonsense."""

    code: int
    logic_id: int
    assertion: int
    severity: int
    mono_ns: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class CodesAnswer:
    """Answer of a full query of one chip. codes None: the list is not known, but the card drop is (6.4)."""

    codes: tuple[int, ...] | None
    dropped: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """Result of opening a session. problems: parts of the node that could not be identified, one sentence each."""

    inventory: Inventory
    problems: tuple[str, ...]
    library: str


class ChipDriver(Protocol):
    """One session. All methods but `close` may raise DriverError, LibraryError or HostError."""

    def open(self, avoid: Collection[int]) -> Opened:
        """Load, initialise, enumerate. Chips in `avoid` (logic ids) are not asked what product they are."""

    def subscribe(self) -> None:
        """Ask for fault events; at most once per session."""

    def codes(self, chip: ChipId) -> CodesAnswer:
        """Every active code of one chip."""

    def card_dropped(self, chip: ChipId) -> bool:
        """The card of this chip has dropped: its health query says not ready."""

    def fact(self, chip: ChipId, kind: FactKind) -> int | str:
        """One fact about a chip, in the units of `ChipFacts`."""

    def close(self) -> None:
        """End the session; never waits, may be called twice."""


@dataclass(frozen=True, slots=True)
class DriverNews:
    """What a session tells by itself. gone: why it ended, empty while it lives."""

    events: tuple[DriverEvent, ...] = ()
    dropped: int = 0
    gone: str = ""


Connect = Callable[[Callable[[DriverNews], None]], ChipDriver]
"""Makes a new session that tells its news to the given callable (on a thread of its own)."""


@dataclass(frozen=True, slots=True)
class DcmiSettings(LibrarySettings):
    """How DCMI is found and called. generation: of its functions, `v1`, `v2`, or `auto`."""

    generation: str = "auto"


class HostedChips:
    """DCMI in a driver host."""

    def __init__(
        self, name: str, settings: DcmiSettings, reaper: Reaper, on_news: Callable[[DriverNews], None]
    ) -> None:
        self._settings = settings
        self._on_news = on_news
        self._v2 = False
        self._host = DriverHost(
            HostSpec(name, "nodeagent.drivers.dcmi_adapter:DcmiAdapter", settings.environment),
            reaper,
            self._events,
            self._gone,
        )

    @property
    def pid(self) -> int:
        """Process id of the driver host."""
        return self._host.pid

    def open(self, avoid: Collection[int]) -> Opened:
        """Library search, dlopen, init, enumeration; one sick chip does not hide the others (native-abi 5.4)."""
        path, generation = open_dcmi(self._host, self._settings)
        self._v2 = generation == "v2"
        problems: list[str] = []
        chips = self._enumerate(problems)
        if not chips:
            raise DriverError("the driver lists no chips" + (": " + "; ".join(problems) if problems else ""))
        product = self._identify([c for c in chips if c.logic_id not in avoid] or chips, generation)
        return Opened(Inventory(product, tuple(chips)), tuple(problems), path)

    def subscribe(self) -> None:
        """Wildcard subscription."""
        self._call("subscribe")

    def codes(self, chip: ChipId) -> CodesAnswer:
        """The algorithm of native-abi 6.4; see `judge_codes`."""
        rc, count, listed, health_rc = self._call("codes", *address(chip))
        function = "dcmiv2_get_device_error_code_list" if self._v2 else "dcmi_get_device_errorcode_v2"
        return judge_codes(function, int(rc), int(count), listed, int(health_rc))

    def card_dropped(self, chip: ChipId) -> bool:
        """Health query: -8012 = dropped, 0 = not; anything else is no answer."""
        rc = self._call("health", *address(chip))
        if rc == NOT_READY_RC:
            return True
        if rc != 0:
            raise AnswerError("dcmiv2_get_device_health" if self._v2 else "dcmi_get_device_health", int(rc))
        return False

    def fact(self, chip: ChipId, kind: FactKind) -> int | str:
        """One call; see `judge_fact`."""
        return judge_fact(kind, self._call(kind.value, *address(chip)))

    def close(self) -> None:
        """Kill the child."""
        self._host.close()

    def _call(self, name: str, *args: Any) -> Any:
        return self._host.call(name, *args, deadline_s=self._settings.call_deadline_s)

    def _events(self, events: tuple[tuple[Any, ...], ...], dropped: int) -> None:
        plain = tuple(DriverEvent(int(e[0]), int(e[1]), int(e[2]), int(e[3]), int(e[4]), str(e[7])) for e in events)
        self._on_news(DriverNews(plain, dropped))

    def _gone(self, reason: str) -> None:
        self._on_news(DriverNews(gone=reason))

    def _enumerate(self, problems: list[str]) -> list[ChipId]:
        places = [(-1, -1, logic) for logic in self._call("devices")] if self._v2 else self._places(problems)
        chips = []
        for card, device, logic in places:
            try:
                chips.append(ChipId(logic, self._call("physical_id", logic), card, device))
            except AnswerError as error:
                problems.append(f"chip with logic id {logic} has no physical id: {error.sentence}")
        return chips

    def _places(self, problems: list[str]) -> list[tuple[int, int, int]]:
        places = []
        for card in self._call("cards"):
            try:
                count = self._call("devices_in_card", card)
            except AnswerError as error:
                problems.append(f"card {card} does not tell its chips: {error.sentence}")
                continue
            for device in range(count):
                try:
                    places.append((card, device, self._call("logic_id", card, device)))
                except AnswerError as error:
                    problems.append(f"chip {device} of card {card} has no logic id: {error.sentence}")
        return places

    def _identify(self, chips: list[ChipId], generation: str) -> Product:
        chip_name = self._first(chips, "chip_info")
        board_id = self._first(chips, "board_id", invalid=INVALID_ID)
        family = family_of(chip_name, board_id)
        return Product(
            family=family,
            chip_name=chip_name,
            board_id=board_id,
            mainboard_id=self._optional(chips, "mainboard_id"),
            driver_version=self._version(),
            generation=generation,
            super_pod=self._super_pod(chips, family),
        )

    def _first(self, chips: list[ChipId], call: str, invalid: object = None) -> Any:
        """Answer of the first chip that gives one; the last error when none does (2.3 step 3)."""
        last = DriverError(f"no chip gives a valid answer to {call}")
        for chip in chips:
            try:
                value = self._call(call, *address(chip))
                if value != invalid:
                    return value
            except AnswerError as error:
                last = error
        raise last

    def _optional(self, chips: list[ChipId], call: str) -> int:
        """Main board id of the first chip that has one; 0 when there is none (2.3 step 5)."""
        try:
            return int(self._first(chips, call, invalid=INVALID_ID))
        except DriverError:
            return 0

    def _version(self) -> str:
        try:
            return str(self._call("version"))
        except AnswerError:
            return ""

    def _super_pod(self, chips: list[ChipId], family: Family) -> SuperPod:
        """First chip that answers decides; unsupported or no answer = -2 (device-info 3)."""
        for chip in chips:
            try:
                pod_id, server_index, chassis_id, pod_type = self._call("super_pod", *address(chip))
            except AnswerError as error:
                if error.kind is AnswerKind.NOT_SUPPORTED:
                    break
                continue
            pod = super_pod_of(pod_id, server_index, chassis_id, pod_type, family)
            if pod is not None:
                return pod
        return SuperPod()


def judge_codes(function: str, rc: int, count: int, listed: list[int], health_rc: int) -> CodesAnswer:
    """From the two raw answers to the codes of a chip (native-abi 6.4, corrected by its watch-out list).

    A dropped card with a full list of 128 is no error; entries beyond `count` never count; a card that has
    dropped and lists nothing readable leaves the other codes unknown. Raises AnswerError.
    """
    dropped = health_rc == NOT_READY_RC
    if rc != 0:
        if dropped:
            return CodesAnswer(None, True)
        raise AnswerError(function, rc)
    if not 0 <= count <= MAX_CODES:
        raise AnswerDamaged(function, f"a count of {count} codes, outside 0..{MAX_CODES}")
    codes = [code for code in listed[:count] if code != 0]
    if dropped and CARD_DROPPED not in codes:
        codes.append(CARD_DROPPED)
    return CodesAnswer(tuple(dict.fromkeys(codes)), dropped)


def address(chip: ChipId) -> tuple[int, int, int]:
    """A chip as the adapter's calls take it: card, device, logic id."""
    return chip.card_id, chip.device_id, chip.logic_id


def open_dcmi(host: DriverHost, settings: DcmiSettings) -> tuple[str, str]:
    """Find, load and initialise the library in a host; its path and the generation in use (native-abi 2.1-2.3).

    Raises DriverError, LibraryError or HostError. Takes seconds on real drivers.
    """
    path = dcmi_path(settings)
    host.call("open", path, deadline_s=settings.init_deadline_s)
    return path, str(host.call("init", settings.generation, deadline_s=settings.init_deadline_s))


def dcmi_path(settings: DcmiSettings) -> str:
    """Where the library lies; see `LibrarySettings.path`."""
    return settings.path(DCMI_FILE_NAME)
