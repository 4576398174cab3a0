"""Alarms for tests."""

from nodeagent.core.alarms import Alarm

CPU_1 = Alarm(0x0000001D, 0x66A00000, 3, 0x00, 1)
MEMORY_7 = Alarm(0x01000017, 0x66A00010, 2, 0x01, 7)
SYSTEM = Alarm(0x2C000031, 0x66A00020, 3, 0x2C, 255)
WORKED_PAGE = (CPU_1, MEMORY_7, SYSTEM)
"""The alarms of the worked page of node-faults 3.2."""


def many_alarms(count: int) -> tuple[Alarm, ...]:
    """Different alarms: disks, minor ones and up, no two with the same code."""
    return tuple(Alarm(0x02000000 + i, 0x66A00000 + i, 1 + i % 3, 0x02, i % 255) for i in range(count))
