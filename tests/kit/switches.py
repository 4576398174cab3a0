"""The events of lingqu-switch-faults 11, and an A3 node that takes them."""

from dataclasses import replace

from kit.engine import Bench, at, switch_event, switch_list

from nodeagent.core.model import Family
from nodeagent.core.observation import CarriedOver, SwitchLibraryFound
from nodeagent.core.switch import NO_FAULT_ID, OCCURRENCE, RECOVERY, SwitchRecord
from nodeagent.policy.switch_table import SwitchTable
from nodeagent.render.contract import check_device_info
from nodeagent.render.device_info import render_device_info

NA = 0xFFFF
UPDATE_TIME_S = 1760000000
PORT_DOWN, LANES, PORTS = 0x08520003, 0x00F10509, 0x00F1FEF5

B3 = SwitchRecord(PORT_DOWN, NO_FAULT_ID, 1, 5, 2, 11, 2, 1, 1759999990123)
B4 = SwitchRecord(LANES, 132332, 1, 3, 0, 8, 1, 1, 1759999991123)
B5 = SwitchRecord(PORT_DOWN, NO_FAULT_ID, 2, 0, 3, 40, 1, 1, 1759999992123)
B6 = SwitchRecord(PORTS, 155914, 1, 7, 6, 2, 2, 1, 1759999990123)
B8 = tuple(SwitchRecord(PORT_DOWN, NO_FAULT_ID, 2, 0, 3, port, 1, 1, 1759999990123) for port in range(32, 48))
B9 = SwitchRecord(0x00F1FF09, 155913, 0, 0, 1, 4, 1, 1, 1759999990123)
B10 = SwitchRecord(0x00F103B0, 155907, NA, NA, 0, NA, 3, 1, 1759999990123)
B11 = SwitchRecord(0x00F1FF06, 155911, NA, NA, 4, NA, 1, 2, 1759999990123)
B12 = replace(B10, peer_device=0, peer_id=0)
B13 = SwitchRecord(0x00F103B6, 155909, NA, NA, 1, NA, 1, 1, 1759999990123)


def recovery(record: SwitchRecord) -> SwitchRecord:
    """The recovery of a fault."""
    return replace(record, assertion=RECOVERY)


def storm(raised_ms: int = 1759999990123) -> list[SwitchRecord]:
    """Three faults on each of 48 ports of 7 chips."""
    codes = ((PORT_DOWN, NO_FAULT_ID), (LANES, 132332), (PORTS, 155912))
    return [
        SwitchRecord(alarm, fault, 2 if port >= 32 else 1, port % 16, chip, port, 2, OCCURRENCE, raised_ms)
        for chip in range(7)
        for port in range(48)
        for alarm, fault in codes
    ]


class SwitchBench(Bench):
    """An A3 of 16 chips whose LingQu library works and has listed no fault, unless told otherwise."""

    def __init__(
        self,
        switches: SwitchTable | None = None,
        restored: CarriedOver | None = None,
        found: bool | None = True,
        listed: bool = True,
        family: Family = Family.A3,
    ) -> None:
        super().__init__(16, family, restored=restored, switches=switches)
        if found is not None:
            self.step(-900, SwitchLibraryFound(found, at(-900)))
        if listed:
            self.step(-800, switch_list(-800))

    def events(self, seconds: float, *records: SwitchRecord) -> None:
        """Events of one moment, as one step."""
        self.step(seconds, *(switch_event(record, seconds) for record in records))

    def answer(self, seconds: float, *records: SwitchRecord) -> None:
        """An answer to a query of that moment."""
        self.step(seconds, switch_list(seconds, *records))

    @property
    def text(self) -> str:
        """`SwitchInfoCfg` as it would be published now, checked as its consumers would read it."""
        data = render_device_info(self.view, UPDATE_TIME_S)
        check_device_info(data)
        return data["SwitchInfoCfg"]

    @property
    def faults(self) -> set[tuple[str, int, int]]:
        """(code, switch, port) of everything that is shown, unlisted codes included."""
        return {(f.text, f.record.chip_id, f.record.port_id) for f in self.view.switch.faults}

    @property
    def node(self) -> tuple[str, str]:
        """`FaultLevel` and `NodeStatus`."""
        return self.view.switch.fault_level, self.view.switch.node_status
