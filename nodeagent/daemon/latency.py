"""How long a fault takes from the driver's stamp to the acknowledged write that shows it."""

from collections import deque
from collections.abc import Sequence

from nodeagent.core.clock import Clock
from nodeagent.core.instant import Instant
from nodeagent.core.observation import FaultNoticed, FaultOccurred, Observation
from nodeagent.core.telemetry import Metrics
from nodeagent.policy.engine import Step
from nodeagent.policy.state import ChangeKind

MAX_WAITING = 1024
"""Faults that wait for their write; while a target is away for long, the oldest go unmeasured."""


class FaultLatencies:
    """Observes `fault_acknowledged_seconds`, in real seconds whatever the speed of the policy clock.

    Measured are occurrences and notices that came as such and that the view shows; what a query found has no stamp of
    the driver, and a code that an association rule kept back is late on purpose. `seen` is called by the core loop,
    `acknowledged` by the publisher.
    """

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._waiting: deque[tuple[int, Instant]] = deque(maxlen=MAX_WAITING)

    def seen(self, batch: Sequence[Observation], result: Step) -> None:
        """Note the faults that this step took in: generation that shows each, and its stamp."""
        told = {(o.logic_id, o.code, o.at) for o in batch if isinstance(o, FaultOccurred | FaultNoticed)}
        if not told:
            return
        state = result.state
        # Without a view nothing may be published yet; the first one will show what was seen until then.
        shown = None if state.view is None else {(c.chip.logic_id, f.code) for c in state.view.chips for f in c.faults}
        generation = state.generation + 1 if shown is None else state.generation
        for change in result.changes:
            if change.kind not in (ChangeKind.OCCURRED, ChangeKind.NOTICED) or change.chip is None:
                continue
            if change.code is None or (change.chip.logic_id, change.code, change.at) not in told:
                continue
            if shown is None or (change.chip.logic_id, change.code) in shown:
                self._waiting.append((generation, change.at))

    def acknowledged(self, generation: int) -> None:
        """A target has the content of this view now."""
        now_ms = self._clock.now().mono_ms
        while self._waiting and self._waiting[0][0] <= generation:
            _, at = self._waiting.popleft()
            self._metrics.observe("fault_acknowledged_seconds", self._clock.real_s((now_ms - at.mono_ms) / 1000))
