"""The pretended storage clients of a node: what their files below /proc say (node-faults 11.1, 12)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodeagent.core.storage import StorageClient

PROC_PATHS = {StorageClient.DPC: "odcs/dpc_status_check", StorageClient.DTFS: "dtfs/dtfs_status_check"}
"""Where the kernel module of a client has its file, below /proc (11.1, 12)."""
MODE = 0o444
"""What readers trust (11.1): no bit of 0133."""

_LINES = {
    StorageClient.DPC: (("DPC_INTERNAL_ERROR", "memory", -12), ("DPC_PROCESS_ERROR", "process", -1)),
    StorageClient.DTFS: (("DTFS_PROCESS_ERROR", "process", -1), ("DTFS_LINK_ERROR", "link", -1)),
}
"""Lines of an instance: key, our word for what is wrong, and the value that says so."""

Instances = tuple[frozenset[str], ...]
"""For each instance what is wrong with it: process, memory or link; nothing = in good health."""


@dataclass(frozen=True, slots=True)
class StorageFile:
    """A file. mode: permission bits. instances: what it says, None when it was given as a text."""

    text: str
    mode: int = MODE
    instances: Instances | None = None

    def report(self) -> dict[str, object]:
        """Plain JSON values."""
        told = None if self.instances is None else [instance_text(flags) for flags in self.instances]
        return {"instances": told, "mode": f"{self.mode:04o}", "text": self.text}


class MockStorage:
    """The files of both clients. clients: those the node has at the start."""

    def __init__(self, clients: dict[StorageClient, Instances]) -> None:
        self.files: dict[StorageClient, StorageFile | None] = dict.fromkeys(StorageClient)
        self._listeners: list[Callable[[], None]] = []
        for client, instances in clients.items():
            self.files[client] = StorageFile(file_text(client, instances), instances=instances)

    def add_listener(self, changed: Callable[[], None]) -> None:
        """Have `changed` called after every change of a file."""
        self._listeners.append(changed)

    def put(self, client: StorageClient, file: StorageFile | None) -> None:
        """Give a client this file; None takes it away, as unloading its kernel module does."""
        self.files[client] = file
        for changed in list(self._listeners):
            changed()


def file_text(client: StorageClient, instances: Instances) -> str:
    """What the file of a client says (11.1, 12); empty without instances."""
    return "".join(
        f"[instidx={number}]\n"
        + "".join(f"{key}: {bad if word in wrong else 0}\n" for key, word, bad in _LINES[client])
        for number, wrong in enumerate(instances)
    )


def parse_instances(client: StorageClient, texts: Sequence[str]) -> Instances:
    """Instances of texts: `ok`, or what is wrong, several joined by a plus sign. Raises ValueError for other words."""
    known = {word for _, word, _ in _LINES[client]}
    instances = []
    for text in texts:
        wrong = frozenset() if text == "ok" else frozenset(text.split("+"))
        if wrong - known:
            words = " or ".join(sorted(known))
            raise ValueError(f"an instance of {client.value} is ok, or {words}, or both with a +, not {text!r}")
        instances.append(wrong)
    return tuple(instances)


def instance_text(wrong: frozenset[str]) -> str:
    """The reverse of `parse_instances` for one instance."""
    return "+".join(sorted(wrong)) or "ok"
