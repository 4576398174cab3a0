"""How public fault messages reach ClusterD: what the writer needs of a way, and how a way fails (node-faults 13)."""

from typing import Protocol

from nodeagent.core.errors import PublicFaultError
from nodeagent.core.storage import StorageClient
from nodeagent.render.public_fault import LastWord, Message


class BusyError(PublicFaultError):
    """ClusterD has no room for the message now, or does not know the sender (410); it did not take it."""


class RefusedError(PublicFaultError):
    """ClusterD takes none of the faults of the message (409)."""


class Courier(Protocol):
    """One way to ClusterD. Calls may block; one thread uses a courier.

    whole: it keeps only the last message of a client, so each should name all faults that stand.
    """

    @property
    def whole(self) -> bool:
        """See above."""

    def deliver(self, message: Message) -> None:
        """Bring a message; returns when it was taken.

        Raises RefusedError, BusyError, and PublishError for every other end, after which it may have arrived.
        """

    def recall(self, client: StorageClient) -> LastWord | None:
        """The last message of a client, as ClusterD read it; None when this way keeps none, or has none.

        Raises ReadBackError when it cannot be read now.
        """

    def describe(self) -> str:
        """The way, for people: one phrase for logs and Events."""
