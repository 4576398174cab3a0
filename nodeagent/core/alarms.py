"""Alarms of the board as the iBMC tells them, and the levels of node faults (node-faults 3, 7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

MAX_CODE = 0xFFFFFFFF
"""An alarm code is four bytes, written as eight upper-case hex digits (3.2)."""
UNKNOWN_TYPE = "UNKNOWN"
"""Device type of every subject without a name, LCNE (0x62) among them: consumers know no other spelling (3.5)."""


class NodeLevel(IntEnum):
    """Levels of node faults, mild to serious (7.1); comparing and `max` follow them."""

    NOT_HANDLE = 0
    PRE_SEPARATE = 1
    SEPARATE = 2

    @property
    def text(self) -> str:
        """The exact spelling of `FaultLevel`, for example `PreSeparateFault`."""
        return _LEVELS[self][0]

    @property
    def status(self) -> str:
        """`NodeStatus` of a node whose most serious fault has this level; mind the capital H of `UnHealthy`."""
        return _LEVELS[self][1]

    @property
    def upstream_key(self) -> str:
        """Name of its list in `NodeDConfiguration.json` (7.2)."""
        return f"{_LEVELS[self][0]}Codes"

    @classmethod
    def parse(cls, text: str) -> "NodeLevel":
        """The level of an exact spelling. Raises ValueError for any other text."""
        for level in cls:
            if level.text == text:
                return level
        raise ValueError(f"not a level of node faults: {text!r}")


HEALTHY = "Healthy"
"""`NodeStatus` of a node without faults."""
_LEVELS = (
    ("NotHandleFault", HEALTHY),
    ("PreSeparateFault", "PreSeparate"),
    ("SeparateFault", "UnHealthy"),
)


@dataclass(frozen=True, slots=True, order=True)
class Alarm:
    """One present alarm (3.2).

    code: four bytes. raised_s: Unix seconds by the clock of the BMC, which may be wrong. severity: 0 normal to 3
    critical, as the BMC says; levels do not depend on it. subject: type byte of the device. device_id: 0 to 255, 255 =
    no single device; never a chip id.
    """

    code: int
    raised_s: int
    severity: int
    subject: int
    device_id: int

    @property
    def text(self) -> str:
        """The code as consumers know it: eight upper-case hex digits."""
        return code_text(self.code)

    @property
    def device_type(self) -> str:
        """Published name of the subject."""
        return device_type(self.subject)


def code_text(code: int) -> str:
    """Eight upper-case hex digits."""
    return f"{code:08X}"


def device_type(subject: int) -> str:
    """The exact published name of a subject byte, `UNKNOWN` for those without one (3.5)."""
    return DEVICE_TYPES.get(subject, UNKNOWN_TYPE)


_FIRST_NAMES = (
    "CPU|Memory|Disk|PSU|Fan|Disk BP|RAID Card|UNKNOWN|PCIe Card|AMC|HBA|Mezz Card|UNKNOWN|NIC|Memory Board|PCIe Riser"
    "|Mainboard|LCD|Chassis|NCM|Switch Module|Storage Board|Chassis BP|HMM/CMC|Fan BP|PSU BP|BMC|MMC/MM"
    "|Twin Node Backplane|Base Plane|Fabric Plane|Switch Mezz|LED|SD Card|Security Module|I/O Board|CPU Board|RMC"
    "|PCIe Adapter|PCH|Cable|Port|LSW|PHY|System|M.2 Transfer Card|LED Board|LPM|PIC Card|Button|Expander|CPI|ACM|CIM"
    "|PFM|KPAR|JC|SCM|Minisas HD channel|SATA DOM channel|GE channel|XGE channel|PCIe Switch|Interface Device|xPU Board"
    "|Disk BaseBoard|VGA Intf Card|Pass-Through Card|Logical Driver|PCIe Retimer|PCIe Repeater|SAS|Memory Channel|BMA"
    "|LOM|Signal Adapter Board|Horizontal Connection Board|Node|Asset Locate Board|Unit|RMM|Rack|BBU|OCP Card"
    "|Leakage Detection Card|MESH Card|NPU|CIC Card|Expansion Module|Fan Module|AR Card|Converge Board|SoC Board"
    "|ExpBoard"
)
"""Subjects 0x00 to 0x5D in order."""
_LAST = {0xC0: "BCU", 0xC1: "EXU", 0xC2: "SEU", 0xC3: "IEU", 0xC4: "CLU"}
DEVICE_TYPES: Mapping[int, str] = {**dict(enumerate(_FIRST_NAMES.split("|"))), **_LAST}
"""Published name of each subject byte (3.5)."""
