"""What the daemon has of a cluster: one client, the target of its objects, and a watch for each object it follows."""

from collections.abc import Callable
from typing import Any

from nodeagent.cluster.client import ApiClient
from nodeagent.cluster.followed import FollowedObject, OneObject
from nodeagent.cluster.watch import Follower, Selection, Watch, named
from nodeagent.core.clock import SystemClock
from nodeagent.core.model import NodeView
from nodeagent.core.settings import Settings
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.daemon.supervisor import Loop
from nodeagent.publish.condition_writer import ConditionWriter
from nodeagent.publish.event_book import EventLimits
from nodeagent.publish.event_writer import EventWriter
from nodeagent.publish.kubernetes import KubernetesTarget
from nodeagent.sources.pods import field_selector


def pods_of(node_name: str) -> Selection:
    """The pods of a node that have not ended; their metadata is enough."""
    return Selection("pods", "pods", field_selector(node_name), metadata_only=True)


class OwnObject(OneObject):
    """Follows our own object, so that an operator's edit is seen within a moment (decision 19).

    look: wakes the publisher. also: who else hears of it.
    """

    def __init__(
        self, target: KubernetesTarget, key: tuple[str, str], look: Callable[[], None], also: list[OneObject]
    ) -> None:
        self._target = target
        self._key = key
        self._look = look
        self._also = also

    def take(self, obj: dict[str, Any] | None) -> None:
        """A new version, ours or somebody else's, or its end."""
        self._target.heard(*self._key, obj)
        self._look()
        for other in self._also:
            other.take(obj)

    def trouble(self, sentence: str, hint: str, forbidden: bool) -> None:
        """Without the watch an edit is seen at our next write."""
        if sentence:
            self._target.deaf()
        for other in self._also:
            other.trouble(sentence, hint, forbidden)


class Cluster:
    """The parts that speak to one API server. kubeconfig: path; empty = the service account of the pod."""

    def __init__(self, kubeconfig: str, metrics: Metrics) -> None:
        self._metrics = metrics
        self.client = ApiClient(kubeconfig or None, metrics)
        self.target = KubernetesTarget(self.client, on_lag=self._lagging)
        self._watches: list[Watch] = []
        self._own: Watch | None = None
        self._also_own: list[OneObject] = []
        self._others: list[Loop] = []
        self._events: EventWriter | None = None
        self._conditions: ConditionWriter | None = None

    def listeners(self, settings: Settings) -> list[EventSink]:
        """Who hears of Events, as the settings say: the writer of Events, and that of node conditions."""
        node, clock, events = settings.node.name, SystemClock(), settings.events
        if events.enabled:
            limits = EventLimits(events.per_minute, events.burst)
            self._events = EventWriter(self.client, node, events.namespace, limits, clock, self._metrics)
        if settings.node_object.conditions and settings.publish.mode != "shadow":
            self._conditions = ConditionWriter(self.client, node, clock, self._metrics)
        return [each for each in (self._events, self._conditions) if each is not None]

    def submit(self, view: NodeView) -> None:
        """The node as it is now; never blocks."""
        if self._conditions is not None:
            self._conditions.submit(view)

    def begin(self) -> None:
        """Views are complete from now on."""
        if self._conditions is not None:
            self._conditions.begin()

    def follow_own(self, key: tuple[str, str], look: Callable[[], None]) -> None:
        """Watch the object that we write."""
        self._own = self._add(
            named("configmaps", "device_info", *key), OwnObject(self.target, key, look, self._also_own)
        )

    def tell_own(self, follower: OneObject) -> None:
        """Let somebody else hear of the object that we write, by the same watch."""
        self._also_own.append(follower)

    def supervise(self, loop: Loop) -> None:
        """One more loop that works on what is watched."""
        self._others.append(loop)

    def another_target(self, label: str) -> KubernetesTarget:
        """A target for one more writer, whose objects nobody watches. label: of its objects in metrics."""
        return KubernetesTarget(self.client, label)

    def follow_rules(self, key: tuple[str, str], on_change: Callable[[], None], label: str = "rules") -> FollowedObject:
        """Watch a ConfigMap with tables and rules; readable from what this returns. label: of it in metrics."""
        followed = FollowedObject(on_change)
        self._add(named("configmaps", label, *key), followed)
        return followed

    def follow(self, selection: Selection, follower: Follower) -> None:
        """Watch a few objects."""
        self._add(selection, follower)

    def queues(self) -> dict[str, Callable[[], int]]:
        """What waits to be sent, by name; to be asked from any thread."""
        events = self._events
        return {} if events is None else {"events": lambda: events.waiting}

    def loops(self) -> list[Loop]:
        """All watches and writers, to be supervised."""
        loops = [Loop(watch.name, watch.run, watch.stop) for watch in self._watches] + self._others
        if self._events is not None:
            loops.append(Loop("events", self._events.run, self._events.stop))
        if self._conditions is not None:
            loops.append(Loop("conditions", self._conditions.run, self._conditions.stop))
        return loops

    def _add(self, selection: Selection, follower: Follower) -> Watch:
        watch = Watch(self.client, selection, follower, self._metrics)
        self._watches.append(watch)
        return watch

    def _lagging(self) -> None:
        if self._own is not None:
            self._own.interrupt()
