"""What the daemon tells about itself: Events and metrics, behind two small protocols.

Everything below the daemon layer sees only these; the log, the API server and the registry of metrics are behind them.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class EventReason(Enum):
    """Closed list of Event reasons."""

    FAULT_OCCURRED = "Occur"
    FAULT_RECOVERED = "Recovery"
    FAULT_NOTICED = "Notice"
    RAISED = "EventUpgradeFault"
    RELEASED = "EventReleaseUpgradeFault"
    UNKNOWN_CODE = "UnknownFaultCode"
    CHIP_SILENT = "ChipDoesNotAnswer"
    CHIP_ANSWERS = "ChipAnswersAgain"
    DRIVER_LOST = "DriverHostLost"
    DRIVER_READY = "DriverReady"
    DRIVER_RELEASED = "DriverReleased"
    DRIVER_RETURNED = "DriverReturned"
    NOT_SUBSCRIBED = "NotSubscribed"
    SUBSCRIBED = "Subscribed"
    GATEWAY_NOT_SUPPORTED = "GatewayNotSupported"
    GATEWAY_UNKNOWN = "GatewayUnknown"
    GATEWAY_ANSWERS = "GatewayAnswersAgain"
    LINK_QUERY_FAILED = "LinkQueryFailed"
    LINK_QUERY_WORKS = "LinkQueryWorksAgain"
    SWITCH_LIBRARY_MISSING = "SwitchLibraryMissing"
    SWITCHES_SILENT = "SwitchesDoNotAnswer"
    SWITCHES_ANSWER = "SwitchesAnswerAgain"
    SWITCHES_NOT_SUBSCRIBED = "SwitchesNotSubscribed"
    SWITCHES_SUBSCRIBED = "SwitchesSubscribed"
    BOARD_SILENT = "BoardDoesNotAnswer"
    BOARD_ANSWERS = "BoardAnswersAgain"
    BOARD_NOT_SUPPORTED = "BoardNotSupported"
    STORAGE_UNREADABLE = "StorageStateUnreadable"
    STORAGE_READABLE = "StorageStateReadableAgain"
    STORAGE_GONE = "StorageClientGone"
    STORAGE_RETURNED = "StorageClientReturned"
    PUBLIC_FAULT_REFUSED = "PublicFaultRefused"
    PUBLIC_FAULT_LATE = "PublicFaultNotDelivered"
    PUBLIC_FAULT_DELIVERED = "PublicFaultDelivered"
    PUBLIC_FAULT_WITHOUT_CHIPS = "PublicFaultWithoutChips"
    CONTRACT_REFUSED = "ContractSelfCheckFailed"
    PUBLISH_FAILED = "PublishFailed"
    PUBLISH_RECOVERED = "PublishRecovered"
    OBJECT_CUT = "ObjectCut"
    FOREIGN_PARTS = "ForeignPartsRemoved"
    OTHER_WRITER = "OtherWriter"
    NODE_OBJECT_FAILED = "NodeObjectFailed"
    NODE_OBJECT_RECOVERED = "NodeObjectRecovered"
    NOTICE_DROPPED = "NoticeDropped"
    SWITCHES_WITHDRAWN = "SwitchFaultsWithdrawn"
    SWITCHES_CROWDED = "TooManySwitchFaults"
    BAD_CONFIGURATION = "BadConfiguration"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing worth telling people. warning: something is worse than before. subject: e.g. `chip 3 (…)`."""

    reason: EventReason
    message: str
    warning: bool = False
    subject: str = ""


class EventSink(Protocol):
    """Takes Events; never blocks and never raises."""

    def emit(self, event: Event) -> None:
        """Hand over one Event."""


class Metrics(Protocol):
    """Named numbers. Names and help texts are declared in nodeagent.daemon.metrics."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add one sample to a histogram."""


class NullTelemetry:
    """Takes Events and metrics and forgets them (tools, one-shot commands)."""

    def emit(self, event: Event) -> None:
        """Forget the Event."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Forget the count."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Forget the value."""

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Forget the sample."""
