"""A writer of public faults and a pretended ClusterD in virtual time."""

from collections.abc import Mapping
from pathlib import Path

from kit.clock import FakeClock
from kit.fake_clusterd import FakeClusterd

from nodeagent.core.errors import PublicFaultError
from nodeagent.core.storage import StorageClient, StorageFault, StorageVerdict
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.publish.courier import BusyError, Courier, RefusedError
from nodeagent.publish.public_fault import PublicFaultWriter
from nodeagent.render.public_fault import LastWord, Message

CHIPS = (0, 1, 2, 3, 4, 5, 6, 7)
DEADLINE_S = 120.0


class DirectCourier:
    """Hands messages to a pretended ClusterD as the gRPC form does. lost: for the next calls no answer comes, and the
    message arrived (true) or not. unforeseen: errors that are raised as they are."""

    whole = False

    def __init__(self, clusterd: FakeClusterd) -> None:
        self.clusterd = clusterd
        self.lost: list[bool] = []
        self.unforeseen: list[Exception] = []

    def deliver(self, message: Message) -> None:
        if self.unforeseen:
            raise self.unforeseen.pop(0)
        arrives = self.lost.pop(0) if self.lost else None
        if arrives is not False:
            code, info = self.clusterd.send(dict(message.document))
        if arrives is not None:
            raise PublicFaultError("no answer")
        if code == 410:
            raise BusyError(f"410: {info}")
        if code == 409:
            raise RefusedError(f"409: {info}")

    def recall(self, client: StorageClient) -> LastWord | None:
        return None

    def describe(self) -> str:
        return "pretended ClusterD"


class Ears:
    """Events that were told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    @property
    def reasons(self) -> list[EventReason]:
        return [event.reason for event in self.events]


class Home:
    """One node. Seconds count from its making. draw: the constant that is drawn, or a function."""

    def __init__(
        self,
        folder: Path | None,
        clusterd: FakeClusterd | None = None,
        courier: Courier | None = None,
        node: str = "node-1",
        draw: object = 0.5,
        clock: FakeClock | None = None,
    ) -> None:
        self.folder, self.node = folder, node
        self.clock = clock or FakeClock()
        self.start_ms = self.clock.now().mono_ms
        self.clusterd = clusterd or FakeClusterd()
        self.courier = courier or DirectCourier(self.clusterd)
        self.draw = draw if callable(draw) else lambda: draw
        self.ears, self.metrics, self.ids = Ears(), Registry(), 0
        self.sent: list[tuple[float, Mapping[str, str]]] = []
        self.start()

    def start(self) -> None:
        """A new process with the same state folder."""
        self.writer = PublicFaultWriter(
            self.courier,
            self.node,
            self.folder,
            "clusterd",
            DEADLINE_S,
            self.clock,
            self.ears,
            self.metrics,
            self.draw,
            self.next_id,
        )

    def next_id(self) -> str:
        self.ids += 1
        return f"{self.node}-message-{self.ids:06}"

    @property
    def now_s(self) -> float:
        return (self.clock.now().mono_ms - self.start_ms) / 1000

    def say(self, **present: bool | None) -> None:
        """What holds of one client's faults, e.g. DPC_PROCESS=True; the other is unknown."""
        faults = {StorageFault[name]: value for name, value in present.items()}
        client = next(iter(faults)).client
        both: dict[StorageFault, bool | None] = dict.fromkeys(client.faults)
        self.writer.submit(StorageVerdict(client, both | faults, self.clock.now()))
        self.turn()

    def turn(self) -> float | None:
        """One pass; notes what was sent."""
        self.clusterd.advance_to(self.clock.now().wall_ms)
        before = len(self.clusterd.received)
        try:
            return self.writer.turn()
        finally:
            for message in self.clusterd.received[before:]:
                said = {fault["faultCode"]: fault["assertion"] for fault in message["faults"]}
                self.sent.append((self.now_s, said))

    def until(self, seconds: float) -> None:
        """Let time pass up to this second; the writer wakes when it wants to."""
        for _ in range(100_000):
            wait_s = self.turn()
            left_ms = round((seconds - self.now_s) * 1000)
            if left_ms <= 0:
                return
            self.clock.advance_ms(left_ms if wait_s is None else min(left_ms, round(wait_s * 1000)))
        raise AssertionError("the writer does not come to rest")

    @property
    def cached(self) -> set[str]:
        """Codes that ClusterD has of this node."""
        self.clusterd.advance_to(self.clock.now().wall_ms)
        return set(self.clusterd.faults_of(self.node))
