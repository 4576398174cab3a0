"""The edge of public faults: one thread that tells ClusterD what holds for the storage clients of the node.

What is due when is decided by the plan of each client, the text comes from the renderer; here are the thread, the
state file, and the calls that may block or fail. Nothing polls, and a client that nobody reports on costs nothing.
"""

import random
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nodeagent.core.clock import Clock
from nodeagent.core.errors import ContractError, NodeAgentError, PublishError, ReadBackError
from nodeagent.core.instant import Instant
from nodeagent.core.storage import StorageClient, StorageVerdict
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.policy.public_fault import Due, Outcome, SenderPlan, usable_ids
from nodeagent.policy.public_fault_memory import Remembered, joined
from nodeagent.policy.public_fault_track import DEFAULT_TIMES, Times
from nodeagent.publish.courier import BusyError, Courier, RefusedError
from nodeagent.publish.public_fault_file import PublicFaultFile
from nodeagent.publish.public_fault_reports import PublicFaultReports
from nodeagent.publish.public_fault_state import sender_json
from nodeagent.publish.targets import LaterError
from nodeagent.render.public_fault import Message, message_of

_RECALL_S, _RECALL_CAP_S = 1.0, 30.0
"""Bound of the pause after our last object could not be read, doubled by each failure up to the cap."""


@dataclass(slots=True)
class _Sender:
    """One client. plan None: our last object was not read yet."""

    reports: PublicFaultReports
    plan: SenderPlan | None = None
    verdict: StorageVerdict | None = None
    recall_failures: int = 0
    recall_at_ms: int = 0
    last: Message | None = None
    last_ms: int = 0
    problem: str = ""


class PublicFaultWriter:
    """Tells the public faults of one node.

    courier: the way to ClusterD; None = nobody is told (`public_faults.delivery=off`), what holds is shown all the
    same. state_dir: where `public-faults.json` is kept, None = nothing is remembered. audience: who is told, for that
    file: what one audience knows says nothing of another. chips_deadline_s: how long an occurrence waits for `chips`.
    clock: real time. draw: a random number from [0, 1). new_id: a fresh message id.
    """

    def __init__(
        self,
        courier: Courier | None,
        node_name: str,
        state_dir: Path | None,
        audience: str,
        chips_deadline_s: float,
        clock: Clock,
        events: EventSink,
        metrics: Metrics,
        draw: Callable[[], float] = random.random,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        times: Times = DEFAULT_TIMES,
    ) -> None:
        self._courier = courier
        self._node_name = node_name
        self._chips_deadline_ms = int(chips_deadline_s * 1000)
        self._clock = clock
        self._draw = draw
        self._new_id = new_id
        self._times = times
        self._file = PublicFaultFile(state_dir if courier else None, node_name, audience, metrics)
        self._remembered: Remembered | None = None
        self._senders = {
            client: _Sender(PublicFaultReports(client.resource, events, metrics)) for client in StorageClient
        }
        self._lock = threading.Lock()
        self._verdicts: dict[StorageClient, StorageVerdict] = {}  # these two are guarded by the lock
        self._chips: tuple[int, ...] = ()
        self._wake = threading.Event()
        self._stopping = False
        self._state: Mapping[str, object] = {}
        self._show()

    def submit(self, verdict: StorageVerdict) -> None:
        """What holds for a client now, in place of what was said before; from any thread, never blocks."""
        with self._lock:
            self._verdicts[verdict.client] = verdict
        self._wake.set()

    def chips(self, physical_ids: Iterable[int]) -> None:
        """Physical ids of all chips of the node; from any thread, never blocks. An empty list says nothing."""
        ids = usable_ids(physical_ids)
        with self._lock:
            self._chips = ids or self._chips
        self._wake.set()

    def run(self) -> None:
        """Tell what is due, until `stop`."""
        while not self._stopping:
            wait_s = self.turn()
            self._wake.wait(wait_s)
            self._wake.clear()

    def stop(self) -> None:
        """Make `run` return after the call that is under way, if any. Nothing is told."""
        self._stopping = True
        self._wake.set()

    def state_json(self) -> Mapping[str, object]:
        """How telling stands, for `/state`; from any thread. Times are Unix milliseconds."""
        return self._state

    def turn(self) -> float | None:
        """One pass of the loop; returns the seconds to wait, None = until something is submitted."""
        with self._lock:
            verdicts, chips = dict(self._verdicts), self._chips
        waits_ms = []
        for client, verdict in verdicts.items():
            sender = self._senders[client]
            due_ms = self._serve(client, sender, verdict, chips)
            if self._courier is not None:
                sender.reports.waiting(sender.plan is None or sender.plan.waiting)
            if due_ms is not None:
                waits_ms.append(max(0, due_ms - self._clock.now().mono_ms))
        self._show()
        return min(waits_ms) / 1000 if waits_ms else None

    def _serve(
        self, client: StorageClient, sender: _Sender, verdict: StorageVerdict, chips: tuple[int, ...]
    ) -> int | None:
        """Do what is due for one client; returns when something is due again, milliseconds of the monotonic clock."""
        fresh = verdict is not sender.verdict
        sender.verdict = verdict
        if self._courier is None:
            return None
        now = self._clock.now()
        if sender.plan is None:
            fresh = True
            sender.plan = self._begin(client, sender, self._courier, now)
        plan = sender.plan
        if plan is None:
            return sender.recall_at_ms
        plan.chips(chips)
        if fresh:
            plan.observe(verdict, now)
        if (due := plan.due(now)) is not None:
            self._send(sender, plan, due, self._courier)
        self._save(chips)
        return plan.next_ms()

    def _begin(self, client: StorageClient, sender: _Sender, courier: Courier, now: Instant) -> SenderPlan | None:
        """The plan of a client from what is remembered; None while our last object cannot be read."""
        if now.mono_ms < sender.recall_at_ms:
            return None
        if self._remembered is None:
            self._remembered = self._file.load()
        try:
            word = courier.recall(client)
        except ReadBackError as error:
            bound_s = min(_RECALL_CAP_S, _RECALL_S * float(1 << min(sender.recall_failures, 10)))
            sender.recall_failures += 1
            sender.recall_at_ms = self._clock.now().mono_ms + int(self._draw() * bound_s * 1000)
            sender.problem = error.sentence
            sender.reports.not_begun(error)
            return None
        sender.problem = ""
        told = {} if word is None else word.told
        return SenderPlan(
            client,
            now,
            self._draw,
            joined(client, self._remembered.faults, told, now.wall_ms),
            self._remembered.chips,
            courier.whole,
            self._chips_deadline_ms,
            self._times,
        )

    def _send(self, sender: _Sender, plan: SenderPlan, due: Due, courier: Courier) -> None:
        """One attempt. What is under way is saved before: a kill must not make us sure of what nobody answered."""
        now = self._clock.now()
        plan.begin(due, now)
        self._save(())
        sender.reports.without_chips(due.without_chips)
        outcome, error = Outcome.LOST, None
        try:
            message = message_of(due, self._node_name, self._new_id(), now.wall_ms)
            courier.deliver(message)
            outcome = Outcome.TAKEN
            sender.last, sender.last_ms = message, now.wall_ms
            sender.reports.taken(message, courier.describe())
        except (PublishError, ContractError) as problem:
            outcome, error = _outcome_of(problem), problem
        finally:
            # Also after an error that nobody foresaw, which ends the loop until its supervisor starts it again.
            at_least_ms = int(error.retry_after_s * 1000) if isinstance(error, LaterError) else 0
            plan.ended(outcome, self._clock.now(), at_least_ms)
            sender.problem = "" if error is None else error.sentence
        if error is not None:
            sender.reports.failed(outcome, error)

    def _save(self, chips: tuple[int, ...]) -> None:
        if self._remembered is None:
            return
        faults = dict(self._remembered.faults)
        for sender in self._senders.values():
            if sender.plan is not None:
                faults.update(sender.plan.memory())
        self._remembered = Remembered(faults, chips or self._remembered.chips)
        self._file.save(self._remembered)

    def _show(self) -> None:
        """Make the answer of `state_json` anew."""
        now = self._clock.now()
        senders = {
            client.resource: sender_json(sender.verdict, sender.plan, sender.last, sender.last_ms, sender.problem, now)
            for client, sender in self._senders.items()
            if sender.verdict is not None
        }
        with self._lock:
            chips = self._chips
        self._state = {
            "delivery": "off" if self._courier is None else self._courier.describe(),
            "chips": list(chips) or None,
            "senders": senders,
        }


def _outcome_of(problem: NodeAgentError) -> Outcome:
    if isinstance(problem, (RefusedError, ContractError)):
        return Outcome.REFUSED
    return Outcome.BUSY if isinstance(problem, BusyError) else Outcome.LOST
