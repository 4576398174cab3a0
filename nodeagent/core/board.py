"""What is known of the board of a node: facts of the BMC, and the node faults that follow from them."""

from dataclasses import dataclass

from nodeagent.core.alarms import HEALTHY, Alarm, NodeLevel
from nodeagent.core.instant import Instant


@dataclass(frozen=True, slots=True)
class AlarmsSeen:
    """A complete poll: exactly these alarms are present. at: the moment when its first command was sent."""

    alarms: tuple[Alarm, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class AlarmsSilent:
    """A poll failed, which is neither a fault nor a recovery. why: one sentence. no_way: nobody could be asked, because
    there is no device, no address, no credentials; a login that is refused is none of that."""

    why: str
    at: Instant
    no_way: bool = False


BoardFact = AlarmsSeen | AlarmsSilent


@dataclass(frozen=True, slots=True, order=True)
class BoardDevice:
    """One faulty device as it is published (node-faults 8.1). codes: sorted, each once. level: the worst of them."""

    device_type: str
    device_id: int
    codes: tuple[str, ...]
    level: NodeLevel


@dataclass(frozen=True, slots=True)
class BoardView:
    """Everything there is to publish of the board at one moment; exists only once a poll has been good.

    generation: grows by one with every view. devices: sorted by type and id, devices without a listed code left out.
    unlisted: present alarms whose code no table lists; they are shown to people and published nowhere (7.1).
    """

    generation: int
    devices: tuple[BoardDevice, ...] = ()
    unlisted: tuple[Alarm, ...] = ()

    @property
    def level(self) -> NodeLevel | None:
        """The worst level of the devices; None without a device."""
        return max((device.level for device in self.devices), default=None)

    @property
    def status(self) -> str:
        """`NodeStatus` (7.1)."""
        return HEALTHY if self.level is None else self.level.status
