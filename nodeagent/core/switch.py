"""What the LingQu library says of the L1 switch chips of an A3 node (lingqu-switch-faults 2.2)."""

from dataclasses import dataclass

WHOLE_CHIP_PORT = 0xFFFF
"""Port id of an event that concerns the whole switch chip (lingqu-switch-faults 4)."""
NO_FAULT_ID = 0xFFFFFFFF
"""Fault id that stands for none (2.2)."""

RECOVERY, OCCURRENCE, NOTICE = 0, 1, 2
"""Values of `assertion` (2.2)."""


@dataclass(frozen=True, slots=True)
class SwitchRecord:
    """One event, or one entry of the list of current faults, as the library gave it.

    alarm_id: `eventType`. fault_id: `subType`, NO_FAULT_ID = none. peer_device, peer_id: kind and id of the device at
    the other end. chip_id, port_id: of the switch. severity: 0 suggestion .. 3 critical. assertion: RECOVERY,
    OCCURRENCE or NOTICE. raised_ms: Unix ms, 0 = unknown.
    """

    alarm_id: int
    fault_id: int
    peer_device: int
    peer_id: int
    chip_id: int
    port_id: int
    severity: int
    assertion: int
    raised_ms: int

    @property
    def identity(self) -> tuple[int, int, int, int, int, int]:
        """What makes two records the same fault (3.1): all but severity, assertion and time."""
        return self.alarm_id, self.fault_id, self.peer_device, self.peer_id, self.chip_id, self.port_id
