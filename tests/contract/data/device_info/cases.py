"""The worked examples of device-info 14: the view of each, and its exact texts as the sheet gives them."""

from collections.abc import Callable
from pathlib import Path

from nodeagent.core.levels import Level, plane_of
from nodeagent.core.model import (
    ChipId,
    ChipView,
    Family,
    FaultView,
    NodeView,
    Product,
    Reason,
    SuperPod,
    SwitchView,
    UpgradeType,
)

FOLDER = Path(__file__).parent
SOME_MS = 1759999990123
NO_POD = SuperPod()
NO_SWITCH = SwitchView()
UPDATE_TIME_S = {"A5": 1760000025}


def golden(case: str) -> dict[str, str]:
    """Exact texts of a case without the free `Description`; keys it does not show have their empty value."""
    texts = {"ManuallySeparateNPU": "", "UpgradeFaultReason": "{}"}
    for path in FOLDER.glob(f"{case}.*.txt"):
        texts[path.name.split(".")[1]] = path.read_text(encoding="utf-8")
    return texts


def fault(text: str, level: Level, since_ms: int = SOME_MS) -> FaultView:
    """One active code, its plane by number."""
    return FaultView(int(text, 16), text, plane_of(int(text, 16)), since_ms, level)


def node(
    family: Family,
    count: int,
    chips: dict[int, ChipView] | None = None,
    super_pod: SuperPod = NO_POD,
    switch: SwitchView = NO_SWITCH,
) -> NodeView:
    """A node of `count` healthy chips, numbered alike in all schemes, with some replaced."""
    views = [(chips or {}).get(number, ChipView(chip_id(number))) for number in range(count)]
    return NodeView(1, Product(family, "chip", super_pod=super_pod), tuple(views), switch)


def chip_id(number: int) -> ChipId:
    """A chip whose logic and physical number agree, two chips on a card."""
    return ChipId(number, number, number // 2, number % 2)


def chip(number: int, level: Level, *faults: FaultView, **more: object) -> ChipView:
    """A chip with chip faults that isolate it unless `healthy=True` is given."""
    fields: dict[str, object] = {"healthy": False, "chip_level": level, "faults": faults}
    return ChipView(chip_id(number), **(fields | more))  # type: ignore[arg-type]


def _a4() -> NodeView:
    return node(
        Family.A2,
        8,
        {
            2: chip(
                2,
                Level.RESTART_BUSINESS,
                fault("81078603", Level.NOT_HANDLE),
                fault("80C98008", Level.RESTART_REQUEST, SOME_MS + 1000),
                fault("8C204E00", Level.RESTART_BUSINESS, SOME_MS + 2000),
                network_level=Level.NOT_HANDLE,
            )
        },
    )


def _a5() -> NodeView:
    reason = Reason(1760000010123, "81078603", Level.PRE_SEPARATE, UpgradeType.DURATION)
    link = chip(
        2,
        Level.NORMAL,
        fault("81078603", Level.NOT_HANDLE),
        healthy=True,
        network_level=Level.PRE_SEPARATE,
        network_healthy=False,
        reasons=(reason,),
    )
    return node(Family.A2, 8, {2: link})


def _separated(*faults: FaultView) -> NodeView:
    reason = Reason(SOME_MS, "80e01801", Level.MANUALLY_SEPARATE, UpgradeType.FREQUENCY)
    separated = chip(1, Level.MANUALLY_SEPARATE, *faults, manually_separated=True, reasons=(reason,))
    return node(Family.A2, 8, {1: separated})


def _a3_node(switch: SwitchView) -> NodeView:
    return node(Family.A3, 16, super_pod=SuperPod(3, 7), switch=switch)


def _a11() -> NodeView:
    ports = (fault("020001002", Level.SEPARATE), fault("81B18603", Level.NOT_HANDLE))
    return node(Family.A5, 8, {4: chip(4, Level.SEPARATE, *ports)}, SuperPod(12, 2, 5, 1))


VIEWS: dict[str, Callable[[], NodeView]] = {
    "A1": lambda: node(Family.A2, 8),
    "A2": lambda: node(Family.A2, 8, {3: chip(3, Level.RESTART_NPU, fault("80E18005", Level.RESTART_NPU))}),
    "A3": lambda: node(
        Family.A2,
        8,
        {
            0: ChipView(chip_id(0), used=True),
            1: ChipView(chip_id(1), used=True),
            5: chip(5, Level.NOT_HANDLE, fault("80F78006", Level.NOT_HANDLE), healthy=True),
        },
    ),
    "A4": _a4,
    "A5": _a5,
    "A6": _separated,
    "A7": lambda: _a3_node(SwitchView(known=True)),
    "A8": lambda: _a3_node(SwitchView()),
    "A9": lambda: node(Family.A310P, 4, {2: chip(2, Level.SEPARATE, fault("80E18402", Level.SEPARATE))}),
    "A10": lambda: node(Family.A310, 4),
    "A11": _a11,
    "A12": lambda: node(
        Family.A310P,
        2,
        {
            0: chip(
                0,
                Level.SEPARATE,
                fault("80E18402", Level.SEPARATE),
                vnpus=("Ascend310P-2c-100-0", "Ascend310P-2c-101-0"),
            )
        },
    ),
    "A13": lambda: _separated(fault("8C204E00", Level.RESTART_BUSINESS, 1759999993123)),
    "A14": lambda: node(
        Family.A2,
        8,
        {4: chip(4, Level.PRE_SEPARATE, fault("8F180220", Level.PRE_SEPARATE), healthy=True, used=True)},
    ),
    "A15": lambda: node(
        Family.A2,
        8,
        {6: chip(6, Level.RESTART_NPU, fault("40F84E00", Level.RESTART_NPU))},
        SuperPod(-1, 4),
    ),
}
