"""Clients of distributed storage on a node, and their faults, which ClusterD hears of as public faults
(node-faults 11 to 13)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

from nodeagent.core.instant import Instant


class StorageClient(Enum):
    """A client. The value is its name in settings, metrics and objects."""

    DPC = "dpc"
    DTFS = "dtfs"

    @property
    def resource(self) -> str:
        """The sender that ClusterD knows (11.4, 12)."""
        return f"{self.value}Storage"

    @property
    def faults(self) -> "tuple[StorageFault, StorageFault]":
        """Its two faults."""
        first, second = (fault for fault in StorageFault if fault.client is self)
        return first, second


class StorageFault(Enum):
    """A fault of a client. The value is the part of its fault id that is not the node (11.4)."""

    DPC_PROCESS = "DPC_PROCESS"
    DPC_MEMORY = "DPC_MEMORY"
    DTFS_PROCESS = "DTFS_PROCESS"
    DTFS_LINK = "DTFS_LINK"

    @property
    def client(self) -> StorageClient:
        """Whose fault it is."""
        return StorageClient.DPC if self.value.startswith("DPC") else StorageClient.DTFS

    @property
    def code(self) -> str:
        """The nine-digit public fault code (11.4, 12)."""
        return _CODES[self]

    @property
    def about(self) -> str:
        """What is wrong, for people; names after 11.1 and 12."""
        return _ABOUT[self]

    @property
    def level_at_clusterd(self) -> str:
        """The level that ClusterD's shipped table gives the code (12, 13.6)."""
        return "SubHealthFault" if self.client is StorageClient.DPC else "PreSeparateNPU"

    def fault_id(self, node_name: str) -> str:
        """The id of this fault of a node, the same when it occurs and when it recovers (11.4)."""
        return sha256(f"{node_name}/{self.value}".encode()).hexdigest()


_CODES = {
    StorageFault.DPC_PROCESS: "110001020",
    StorageFault.DPC_MEMORY: "110001021",
    StorageFault.DTFS_PROCESS: "110001022",
    StorageFault.DTFS_LINK: "110001023",
}
_ABOUT = {
    StorageFault.DPC_PROCESS: "process abnormal",
    StorageFault.DPC_MEMORY: "short of memory",
    StorageFault.DTFS_PROCESS: "process abnormal",
    StorageFault.DTFS_LINK: "link abnormal",
}


@dataclass(frozen=True, slots=True)
class StorageInstance:
    """One instance of a client as its state file shows it. number: its own. faults: the flags that are set now."""

    number: int
    faults: frozenset[StorageFault] = frozenset()


@dataclass(frozen=True, slots=True)
class StorageSeen:
    """A good reading: exactly these instances are there. at: the moment before it."""

    instances: tuple[StorageInstance, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class StorageUnread:
    """A failed reading, which is neither a fault nor a recovery.

    why: one sentence. missing: there is no file. at: the moment before the reading.
    """

    why: str
    at: Instant
    missing: bool = False


StorageFact = StorageSeen | StorageUnread


@dataclass(frozen=True, slots=True)
class StorageVerdict:
    """What holds for a client now. present: None = not known yet, which is neither a fault nor a recovery."""

    client: StorageClient
    present: Mapping[StorageFault, bool | None]
    at: Instant
