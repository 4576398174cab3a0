"""What a code tells by its bits alone, whether a table lists it or not (fault-catalogue 3.1, 3.5, 3.6)."""

from dataclasses import dataclass
from enum import Enum

from nodeagent.core.levels import Severity
from nodeagent.policy.table_records import Kind

_BLACK_BOX_KINDS = {1: Kind.RECOVER, 2: Kind.OCCUR_RECOVER, 3: Kind.ONCE}
_PRIORITIES = {1: Severity.NOTICE, 2: Severity.MINOR, 3: Severity.MAJOR, 4: Severity.CRITICAL}
_OCCUR_DIGIT = 0xA0000000
_FORM_AND_SIDE = 0xF0000000


class Side(Enum):
    """Who reported a health event (fault-catalogue 3.1, bits 31:30)."""

    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class HealthEvent:
    """Fields of a health event, first digit 8 or 4 (fault-catalogue 3.1).

    node: block or process, 11 bits. sensor: what was measured, 8 bits. state: which event of it, 9 bits.
    """

    side: Side
    node: int
    sensor: int
    state: int

    @property
    def object_class(self) -> int:
        """Upper three bits of the node: 0 hardware and kernel, 6 processes and device OS, 7 product-defined."""
        return self.node >> 8


@dataclass(frozen=True, slots=True)
class BlackBoxCode:
    """Fields of a black-box code, first digit 9, A or B (fault-catalogue 3.5).

    kind: occur, recover or once, told by the first digit. severity: from the priority bits, None for a value
    without meaning. module: 8 bits. detail: 17 bits, specific to the module.
    """

    kind: Kind
    severity: Severity | None
    module: int
    detail: int

    @property
    def exception_type(self) -> int:
        """Bits 15:8, which LPM and LPFW codes use for the type of the exception."""
        return self.detail >> 8 & 0xFF

    @property
    def exception_index(self) -> int:
        """Bits 7:0, the index within the exception type of LPM and LPFW codes."""
        return self.detail & 0xFF


def decode(code: int) -> HealthEvent | BlackBoxCode | None:
    """The bit fields of a 32-bit chip code; None for nine-digit codes and numbers that are no chip code."""
    if not 0 <= code <= 0xFFFFFFFF:
        return None
    side_bits, form = code >> 30, code >> 28 & 0x3
    if form == 0 and side_bits in (1, 2):
        side = Side.HOST if side_bits == 1 else Side.DEVICE
        return HealthEvent(side, code >> 17 & 0x7FF, code >> 9 & 0xFF, code & 0x1FF)
    if form and side_bits == 2:
        priority = _PRIORITIES.get(code >> 25 & 0x7)
        return BlackBoxCode(_BLACK_BOX_KINDS[form], priority, code >> 17 & 0xFF, code & 0x1FFFF)
    return None


def recovery_partner(code: int) -> int | None:
    """The occur form (first digit A) that a recovery code (first digit 9) takes back, None for all other codes.

    A recovery code is not a fault and must never be levelled as one (fault-catalogue 3.5 and 11, item 12).
    """
    fields = decode(code)
    if isinstance(fields, BlackBoxCode) and fields.kind is Kind.RECOVER:
        return code & ~_FORM_AND_SIDE | _OCCUR_DIGIT
    return None
