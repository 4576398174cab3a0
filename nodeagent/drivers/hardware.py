"""Signs of a real NPU on this machine, seen also from a container that was given none of it."""

import contextlib
from pathlib import Path

_VENDOR, _CLASS = "0x19e5", "0x1200"
"""PCI vendor Huawei, and the class of processing accelerators: every Ascend chip on a PCI bus."""


def npu_traces(root: Path = Path("/")) -> tuple[str, ...]:
    """Device files of the driver and PCI devices of NPUs, at most a few of each; empty = no sign of one.

    sysfs shows the devices of the host in containers too; /dev only those that the container was given.
    root: where dev/ and sys/ lie, for tests.
    """
    files = [root / "dev" / "davinci_manager", *sorted((root / "dev").glob("davinci[0-9]*"))]
    found = [str(path) for path in files if path.exists()]
    devices = []
    for device in sorted((root / "sys" / "bus" / "pci" / "devices").glob("*")):
        with contextlib.suppress(OSError):  # a device that was pulled just now
            vendor, kind = ((device / name).read_text().strip() for name in ("vendor", "class"))
            if vendor == _VENDOR and kind.startswith(_CLASS):
                devices.append(f"PCI device {device.name}")
    return (*found[:3], *devices[:3])
