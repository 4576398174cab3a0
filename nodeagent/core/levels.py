"""Fault levels, their order of seriousness, event severities and the planes of device-info."""

from enum import Enum, IntEnum

from nodeagent.core.codes import HYPERPLANE_CODES, NETWORK_CODES


class Level(IntEnum):
    """Levels of chip-plane and network-plane faults, mild to serious (chip-faults 3.1).

    The order is a contract with the consumers: PRE_SEPARATE outranks RESTART_NPU (chip-faults 12.4, R22).
    Comparing and `max` therefore give the effective level of several faults.
    """

    NORMAL = 0
    NOT_HANDLE = 1
    SUB_HEALTH = 2
    RESTART_REQUEST = 3
    RESTART_BUSINESS = 4
    FREE_RESTART = 5
    RESTART_NPU = 6
    PRE_SEPARATE = 7
    SEPARATE = 8
    MANUALLY_SEPARATE = 9

    @property
    def text(self) -> str:
        """The exact spelling of published objects and fault tables, for example `SeparateNPU`."""
        return _LEVEL_TEXTS[self]

    @classmethod
    def parse(cls, text: str) -> "Level":
        """The level of an exact spelling; case counts, as consumers compare the text.

        Raises ValueError for any other text.
        """
        try:
            return _LEVEL_OF_TEXT[text]
        except KeyError:
            raise ValueError(f"not a fault level: {text!r}") from None


_LEVEL_TEXTS = (
    "NormalNPU",
    "NotHandleFault",
    "SubHealthFault",
    "RestartRequest",
    "RestartBusiness",
    "FreeRestartNPU",
    "RestartNPU",
    "PreSeparateNPU",
    "SeparateNPU",
    "ManuallySeparateNPU",
)
_LEVEL_OF_TEXT = {text: Level(number) for number, text in enumerate(_LEVEL_TEXTS)}


class Severity(IntEnum):
    """Severity of a driver event, as the driver numbers it (chip-faults 3.4, fault-catalogue 3.3).

    Where the severity was never told (start-up sweep, polling) code carries `None` instead of a member,
    so that a made-up value never overwrites a known one (chip-faults 12.4, R2).
    """

    NOTICE = 0
    MINOR = 1
    MAJOR = 2
    CRITICAL = 3


class Plane(Enum):
    """Which list of the device-info object a code belongs to (fault-catalogue 1, column plane)."""

    CHIP = "chip"
    NETWORK = "parameter_plane"
    HYPERPLANE = "hyper_plane"


def plane_of(code: int) -> Plane:
    """The plane of a chip or link code; membership is fixed by number, not by a table (fault-catalogue 3.7)."""
    if code in NETWORK_CODES:
        return Plane.NETWORK
    if code in HYPERPLANE_CODES:
        return Plane.HYPERPLANE
    return Plane.CHIP
