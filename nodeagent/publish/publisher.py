"""The edge of publishing: one thread that brings the latest view of the node to one target.

What is to be written and when is decided by the book; the text comes from the renderer; here are the thread, the
calls that may block or fail, and what people hear of them. Waits are in real time, ended by an event; nothing polls.
"""

import logging
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nodeagent.core.clock import Clock
from nodeagent.core.errors import ContractError, PublishError, ReadBackError
from nodeagent.core.instant import Instant
from nodeagent.core.model import NodeView
from nodeagent.core.observation import CarriedOver
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.publish.book import DEFAULT_PARAMETERS, Book, BookParameters
from nodeagent.publish.targets import ObjectChanged, Target
from nodeagent.render.contract import check_object
from nodeagent.render.device_info import (
    NAMESPACE,
    Rendered,
    config_map,
    fingerprint,
    object_name,
    render_bounded,
)
from nodeagent.render.operator_fields import manual_ids
from nodeagent.render.reading import parse_device_info, published_update_time

_LOG = logging.getLogger(__name__)
_OBJECT = "device_info"
_AFTER_EDIT_MS = 200
"""Time for the policy to take in an operator's edit before the object is written again."""
_CONFLICTS_IN_A_ROW = 3
"""More changes by others than this between two writes of ours are a failure, with its growing pauses."""
_AFTER_ERROR_S = 30.0
"""Pause after an error that nobody foresaw; a new view ends it."""


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What the target held before we wrote anything.

    data: the object's texts as they are, None when there was no object. problem: why it is not acceptable, empty
    when it is or there is none. carried: its faults. update_time_s: its `UpdateTime`, 0 when there is none.
    """

    carried: CarriedOver
    update_time_s: int
    data: Mapping[str, object] | None
    problem: str


@dataclass(frozen=True, slots=True)
class PublisherStatus:
    """How publishing stands. pending: something is not yet acknowledged."""

    pending: bool
    acknowledged_generation: int | None
    failures: int
    problem: str


@dataclass(frozen=True, slots=True)
class _Submission:
    view: NodeView
    at: Instant


class Publisher:
    """Publishes the device-info object of one node.

    on_acknowledged: called from the publisher's thread with the generation whose content the target has, and the
    moment; it must not block. on_manual_field: likewise, with the physical ids that an object changed by somebody
    else names as manually separated, and the generation that was acknowledged before it was read. clock: real time,
    as only the policy clock is ever accelerated. draw: a random number from [0, 1) for the back-off.
    """

    def __init__(
        self,
        target: Target,
        node_name: str,
        clock: Clock,
        on_acknowledged: Callable[[int, Instant], None],
        on_manual_field: Callable[[frozenset[int], int], None],
        events: EventSink,
        metrics: Metrics,
        parameters: BookParameters = DEFAULT_PARAMETERS,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._target = target
        self._node_name = node_name
        self._clock = clock
        self._on_acknowledged = on_acknowledged
        self._on_manual_field = on_manual_field
        self._events = events
        self._metrics = metrics
        self._book = Book(parameters, draw)
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._stopping = False
        self._slot: _Submission | None = None  # guarded by the lock; everything below belongs to the thread
        self._adopted: _Submission | None = None
        self._reported: _Submission | None = None
        self._keys: frozenset[str] = frozenset()
        self._refusal = ""
        self._problem = ""
        self._generation: int | None = None
        self._edit_period_s: float | None = None
        self._edit_check_ms = 0
        self._conflicts = 0
        self._status = PublisherStatus(False, None, 0, "")

    def submit(self, view: NodeView) -> None:
        """Make this the content to publish, in place of any earlier one; from any thread, never blocks."""
        submission = _Submission(view, self._clock.now())
        with self._lock:
            self._slot = submission
        self._wake.set()

    def read_back(self) -> ReadBack:
        """What the target holds now; called once before `start`, so that `UpdateTime` goes on from there.

        An object that ClusterD would not take is no error: its problem is told, and the first content is written
        twice (device-info 14, C11). Raises ReadBackError when the target could not be read; call again then.
        """
        obj = self._target.read(NAMESPACE, object_name(self._node_name))
        at = self._clock.now()
        if obj is None:
            return ReadBack(CarriedOver((), at), 0, None, "")
        found = obj.get("data")
        data: Mapping[str, object] = found if isinstance(found, dict) else {}
        update_time_s = published_update_time(data)
        try:
            faults = parse_device_info(data).carried()
            problem = ""
        except ReadBackError as error:
            faults = ()
            problem = error.sentence
            _LOG.warning("event=unacceptable_object_found where=%r problem=%r", self._target.describe(), problem)
        self._book.resume(update_time_s, acceptable=not problem)
        return ReadBack(CarriedOver(faults, at), update_time_s, data, problem)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Stop after the write that is under way, if any; no further write, nothing deleted (device-info 14, C12).

        Returns false when the thread has not ended within `timeout_s` seconds, which a hanging target can cause.
        """
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def dead(self) -> bool:
        """The thread was started and has ended, although nobody stopped it."""
        return self._thread.ident is not None and not self._thread.is_alive() and not self._stopping

    def status(self) -> PublisherStatus:
        """How publishing stands; from any thread."""
        return self._status

    def _run(self) -> None:
        while not self._stopping:
            try:
                wait_s = self._round()
            except Exception as error:  # noqa: BLE001 - border of the supervised loop: the thread survives everything
                wait_s = self._survive(error)
            self._status = PublisherStatus(self._book.pending, self._generation, self._book.failures, self._problem)
            self._wake.wait(wait_s)
            self._wake.clear()

    def _survive(self, error: Exception) -> float:
        self._metrics.count("publish_loop_errors_total", object=_OBJECT)
        _LOG.error("event=publisher_error problem=%r", f"{type(error).__name__}: {error}", exc_info=error)
        if self._book.attempting:
            return self._fail(f"{type(error).__name__}: {error}", "")
        return _AFTER_ERROR_S

    def _round(self) -> float | None:
        """Take over a new view, write if a write is due; returns the seconds to wait, None = until a new view."""
        with self._lock:
            submission = self._slot
        if submission is None:
            return None
        now = self._clock.now()
        rendered = self._adopt(submission, now) if submission is not self._adopted else None
        if self._book.wait_ms(now) == 0:
            self._write(submission, now, rendered)
        self._look_for_edits(submission.view)
        wait_ms = self._book.wait_ms(self._clock.now())
        waits_s = [] if wait_ms is None else [wait_ms / 1000]
        if self._edit_period_s is not None:
            waits_s.append(self._edit_period_s)
        return min(waits_s, default=None)

    def _look_for_edits(self, view: NodeView) -> None:
        """See an operator's edit although nothing is to be written (decision 19)."""
        period_s = self._target.edit_period_s(any(chip.manually_separated for chip in view.chips))
        now = self._clock.now()
        self._edit_period_s = period_s
        if period_s is None or now.mono_ms < self._edit_check_ms:
            return
        self._edit_check_ms = now.mono_ms + int(period_s * 1000)
        found = self._target.edited(NAMESPACE, object_name(self._node_name))
        if found is not None:
            self._book.disturbed(now, _AFTER_EDIT_MS)
            self._see_edit(found)

    def _see_edit(self, obj: dict[str, object]) -> None:
        data = obj.get("data")
        named = manual_ids(data) if isinstance(data, dict) else None
        _LOG.info("event=object_changed_by_others where=%r manual=%s", self._target.describe(), named)
        self._metrics.count("publish_foreign_changes_total", object=_OBJECT)
        if named is not None:
            self._on_manual_field(named, self._generation or 0)

    def _adopt(self, submission: _Submission, now: Instant) -> Rendered:
        rendered = render_bounded(submission.view, self._book.next_update_time_s(now))
        generation = self._book.desire(submission.view.generation, fingerprint(rendered.data))
        self._adopted = submission
        if generation is not None:
            self._acknowledge(generation, now)
        return rendered

    def _write(self, submission: _Submission, now: Instant, rendered: Rendered | None) -> None:
        previous_s = self._book.update_time_s
        update_time_s = self._book.begin(now)
        # A text rendered in this round has this very UpdateTime; one for a delayed write or a refresh is made anew.
        rendered = rendered or render_bounded(submission.view, update_time_s)
        obj = config_map(self._node_name, rendered.data)
        try:
            check_object(obj, previous_s, self._keys)
        except ContractError as error:
            self._book.refused()
            self._refuse(error)
            return
        self._refusal = ""
        try:
            self._target.write(obj)
        except ObjectChanged as change:
            self._see_edit(change.obj)
            self._conflicts += 1
            if self._conflicts > _CONFLICTS_IN_A_ROW:
                self._fail(f"{change.sentence} {self._conflicts} times in a row", change.hint)
            else:
                self._book.postponed(now, _AFTER_EDIT_MS)
            return
        except PublishError as error:
            self._fail(error.sentence, error.hint)
            return
        self._keys = frozenset(rendered.data)
        self._succeed(submission, rendered)

    def _succeed(self, submission: _Submission, rendered: Rendered) -> None:
        at = self._clock.now()
        failures = self._book.failures
        self._conflicts = 0
        generation = self._book.taken(at)
        self._problem = ""
        self._metrics.count("publish_writes_total", object=_OBJECT, result="ok")
        self._metrics.set("publish_last_success_timestamp_seconds", at.wall_ms / 1000, object=_OBJECT)
        self._metrics.set("publish_left_out_codes", rendered.left_out, object=_OBJECT)
        if failures:
            message = f"{self._target.describe()} took the object after {failures} failed attempts"
            _LOG.info("event=publish_recovered where=%r failures=%d", self._target.describe(), failures)
            self._events.emit(Event(EventReason.PUBLISH_RECOVERED, message))
        if submission is not self._reported:
            self._reported = submission
            latency_s = (at.mono_ms - submission.at.mono_ms) / 1000
            self._metrics.observe("publish_latency_seconds", latency_s, object=_OBJECT)
        if generation is not None:
            self._acknowledge(generation, at)

    def _fail(self, problem: str, hint: str) -> float:
        """Note a failed attempt; people hear of the first of a row only. Returns the delay in seconds."""
        delay_ms = self._book.failed(self._clock.now())
        self._problem = problem
        self._metrics.count("publish_writes_total", object=_OBJECT, result="failed")
        if self._book.failures == 1:
            message = f"{problem}; repeated until it succeeds" + (f" ({hint})" if hint else "")
            _LOG.warning("event=publish_failed where=%r problem=%r hint=%r", self._target.describe(), problem, hint)
            self._events.emit(Event(EventReason.PUBLISH_FAILED, message, warning=True))
        return delay_ms / 1000

    def _refuse(self, error: ContractError) -> None:
        """Note an object that must not be sent; the last good one stays where it is."""
        self._problem = error.sentence
        self._metrics.count("publish_refused_total", object=_OBJECT)
        if error.sentence != self._refusal:
            self._refusal = error.sentence
            _LOG.error("event=contract_refused problem=%r", error.sentence)
            self._events.emit(Event(EventReason.CONTRACT_REFUSED, error.sentence, warning=True))

    def _acknowledge(self, generation: int, at: Instant) -> None:
        self._generation = generation
        self._on_acknowledged(generation, at)
