"""State files of storage clients as their kernel modules show them, and their places (node-faults 11.1, 12)."""

import os
from pathlib import Path

from nodeagent.core.storage import StorageClient
from nodeagent.core.telemetry import Event

_KEYS = {
    StorageClient.DPC: ("DPC_INTERNAL_ERROR", "DPC_PROCESS_ERROR"),
    StorageClient.DTFS: ("DTFS_PROCESS_ERROR", "DTFS_LINK_ERROR"),
}
_PLACES = {StorageClient.DPC: "odcs/dpc_status_check", StorageClient.DTFS: "dtfs/dtfs_status_check"}


def state_text(client: StorageClient, *groups: tuple[int, int, int]) -> str:
    """The file's text. groups: number of an instance, and the values of its two lines in the order of the sheet."""
    first, second = _KEYS[client]
    return "".join(f"[instidx={number}]\n{first}: {one}\n{second}: {two}\n" for number, one, two in groups)


class StateFile:
    """One state file below a pretended /proc, owned by whoever runs the test."""

    def __init__(self, proc: Path, client: StorageClient) -> None:
        self.client = client
        self.path = proc / _PLACES[client]

    def show(self, *groups: tuple[int, int, int]) -> None:
        """Show these instances; a reader sees the old text or this one."""
        self.write(state_text(self.client, *groups))

    def write(self, text: str, mode: int = 0o444) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name("new")
        new.write_text(text)
        new.chmod(mode)
        os.replace(new, self.path)

    def remove(self) -> None:
        self.path.unlink()


class Told(list[Event]):
    """Takes Events. `short` has them as reason and subject."""

    def emit(self, event: Event) -> None:
        self.append(event)

    def short(self) -> list[tuple[str, str]]:
        return [(event.reason.value, event.subject.removeprefix("storage client ")) for event in self]
