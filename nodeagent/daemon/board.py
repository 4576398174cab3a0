"""The board loop: the only owner of what is known of the board. Facts of the BMC and tables in, views out.

It needs neither DCMI nor a cluster, and the core loop does not know of it: each of them starts, fails and heals alone.
"""

import logging
import queue
from collections import deque
from collections.abc import Callable
from typing import Any

from nodeagent.core.alarms import NodeLevel
from nodeagent.core.board import AlarmsSeen, BoardFact, BoardView
from nodeagent.core.clock import Clock, monotonic_s
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.daemon.announce_board import board_events
from nodeagent.policy.board import BoardChange, BoardChangeKind, BoardState, BoardStep, board_step, reconfigure
from nodeagent.policy.board_listing import BoardAccess, board_json
from nodeagent.policy.board_why import explain_board
from nodeagent.policy.node_table import NodeConfiguration

log = logging.getLogger("nodeagent.board")

BEAT_PERIOD_S = 10.0
"""The loop passes at least this often, so that one that is stuck can be told from one without work."""
MAX_LABELS = 256
"""Unlisted codes that have a label of their own and are logged; of a BMC gone mad the later ones share one."""
_OTHER = "other"
_KEEP_OFF = (NodeLevel.PRE_SEPARATE, NodeLevel.SEPARATE)


class BoardLoop:
    """Runs the policy of the board.

    config: the table in force, None = it is not loaded yet, and nothing is concluded before `configure`. transport: how
    the BMC is asked, for people. on_view: takes the view after each good poll, the same one where nothing has changed,
    since an object is only refreshed while the board answers (T2, T12), and the new one after a table that changes it.
    on_alarms: takes the state after each good poll. Neither blocks.
    """

    def __init__(
        self,
        clock: Clock,
        config: NodeConfiguration | None,
        transport: str,
        on_view: Callable[[BoardView], None],
        on_alarms: Callable[[BoardState], None],
        events: EventSink,
        metrics: Metrics,
    ) -> None:
        self._clock = clock
        self._config = config
        self._access = BoardAccess(transport)
        self._next_configs: deque[NodeConfiguration] = deque(maxlen=1)
        self._on_view = on_view
        self._on_alarms = on_alarms
        self._events = events
        self._metrics = metrics
        self._inbox: queue.SimpleQueue[BoardFact | None] = queue.SimpleQueue()
        self._state = BoardState()
        self._labels: set[str] = set()
        self._stopping = False
        self._beat_s: float | None = None

    # -- from any thread ------------------------------------------------------------

    def submit(self, fact: BoardFact) -> None:
        """Hand over what a poll told; never blocks, a poll a minute fills no queue."""
        self._inbox.put(fact)

    def configure(self, config: NodeConfiguration) -> None:
        """Judge by this table from now on, and at once; the latest wins."""
        self._next_configs.append(config)
        self._inbox.put(None)

    def serial_number(self, text: str) -> None:
        """The serial number of the product, to be shown."""
        self._access = BoardAccess(self._access.transport, text)

    @property
    def state(self) -> BoardState:
        """The present state; never changed by anybody."""
        return self._state

    @property
    def view(self) -> BoardView | None:
        """The latest view, None before a good poll and a table."""
        return self._state.view

    @property
    def config(self) -> NodeConfiguration | None:
        """The table in force."""
        return self._config

    @property
    def beat_s(self) -> float | None:
        """Monotonic second of the last pass; None before the first."""
        return self._beat_s

    @property
    def waiting(self) -> int:
        """Facts in the inbox."""
        return self._inbox.qsize()

    def state_json(self) -> dict[str, Any]:
        """The board for `/state` and `scan`."""
        return board_json(self._state, self._config, self._access)

    def why_json(self) -> dict[str, Any]:
        """The report of `nodeagent why node`."""
        return explain_board(self._state, self._config, self._access, self._clock.now())

    def stop(self) -> None:
        """Make `run` return."""
        self._stopping = True
        self._inbox.put(None)

    # -- the loop -------------------------------------------------------------------

    def run(self) -> None:
        """Step whenever there is something to take in, until `stop`."""
        while not self._stopping:
            self._beat_s = monotonic_s()
            facts = self._gather()
            # The table first: facts that came with it are judged by it, and told once.
            if self._next_configs:
                self._reconfigure(self._next_configs.popleft())
            if facts:
                table = None if self._config is None else self._config.table
                asked = any(isinstance(fact, AlarmsSeen) for fact in facts)
                self._take(board_step(self._state, facts, self._clock.now(), table), asked=asked)

    def _gather(self) -> list[BoardFact]:
        """Everything that waits; blocks until there is something, or for one beat."""
        found: list[BoardFact] = []
        try:
            fact = self._inbox.get(timeout=BEAT_PERIOD_S)
            while True:
                found += [] if fact is None else [fact]
                fact = self._inbox.get_nowait()
        except queue.Empty:
            return found

    def _reconfigure(self, config: NodeConfiguration) -> None:
        log.info("table of node faults in force version=%s layers=%s", config.version, ", ".join(config.layers))
        self._config = config
        self._take(reconfigure(self._state, self._clock.now(), config.table), asked=False)

    def _take(self, step: BoardStep, *, asked: bool) -> None:
        self._state = step.state
        view = step.state.view if asked else step.view
        if view is not None:
            self._on_view(view)
        self._measure()
        self._announce(step.changes)
        if asked:
            self._on_alarms(step.state)

    def _announce(self, changes: tuple[BoardChange, ...]) -> None:
        for change in changes:
            if change.key is not None and change.level is None and change.kind is BoardChangeKind.OCCURRED:
                self._metrics.count("unlisted_alarms_total", code=self._label(change))
        for event in board_events(changes, self._name_of):
            self._events.emit(event)

    def _name_of(self, code: str) -> str:
        return "" if self._config is None else self._config.table.name_of(code)

    def _label(self, change: BoardChange) -> str:
        """Label of an unlisted code, which is logged when it gets one."""
        assert change.key is not None  # else it were no alarm
        code = change.key.code
        if code in self._labels:
            return code
        if len(self._labels) >= MAX_LABELS:
            return _OTHER
        self._labels.add(code)
        log.warning(
            "alarm in no table of node faults, published nowhere code=%s device=%r id=%d; add it to faults.site_file"
            " under `node` if it matters",
            code,
            change.key.device_type,
            change.key.device_id,
        )
        return code

    def _measure(self) -> None:
        """Gauges are computed from the state, never toggled by changes (lesson 15)."""
        state = self._state
        self._metrics.set("board_stale", state.stale)
        if state.answered is not None:
            self._metrics.set("board_alarms", len(state.sightings))
        if (view := state.view) is None:
            return
        levels = list(state.levels.values())
        self._metrics.set("board_alarms_unlisted", levels.count(None))
        for level in NodeLevel:
            self._metrics.set("node_faults", levels.count(level), level=level.text)
        for level in _KEEP_OFF:
            self._metrics.set("node_unhealthy", view.status == level.status, status=level.status)
