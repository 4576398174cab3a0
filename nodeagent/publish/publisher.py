"""The edge of publishing: one thread that brings the latest view of the node to one target.

What is to be written and when is decided by the book; the text comes from the renderer; here are the thread and the
calls that may block or fail. Waits are in real time, ended by an event; nothing polls.
"""

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nodeagent.core.clock import Clock
from nodeagent.core.errors import ContractError, PublishError
from nodeagent.core.instant import Instant
from nodeagent.core.model import NodeView
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.publish.book import DEFAULT_PARAMETERS, Book, BookParameters
from nodeagent.publish.manner import Manner, PublisherStatus
from nodeagent.publish.other_writer import foreign_parts
from nodeagent.publish.read_back import ReadBack, judge_object
from nodeagent.publish.reports import Reports
from nodeagent.publish.targets import LaterError, ObjectChanged, Target
from nodeagent.render.contract import check_object
from nodeagent.render.device_info import NAMESPACE, Rendered, config_map, fingerprint, object_name, render_bounded
from nodeagent.render.operator_fields import manual_ids

_OBJECT = "device_info"
_AFTER_EDIT_MS = 200
"""Time for the policy to take in an operator's edit before the object is written again."""
_CONFLICTS_IN_A_ROW = 3
"""More changes by others than this between two writes of ours are a failure, with its growing pauses."""
_AFTER_ERROR_S = 30.0
"""Pause after an error that nobody foresaw; a new view ends it."""


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
        manner: Manner | None = None,
    ) -> None:
        self._target = target
        self._node_name = node_name
        self._clock = clock
        self._on_acknowledged = on_acknowledged
        self._on_manual_field = on_manual_field
        self._reports = Reports(_OBJECT, events, metrics)
        self._book = Book(parameters, draw)
        manner = manner or Manner()
        self._shadow = manner.shadow
        self._guard = manner.guard
        self._name = object_name(node_name, manner.shadow)
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._wake = threading.Event()
        self._poked = threading.Event()
        self._lock = threading.Lock()
        self._stopping = False
        self._slot: _Submission | None = None  # guarded by the lock; everything below belongs to the thread
        self._adopted: _Submission | None = None
        self._reported: _Submission | None = None
        self._keys: frozenset[str] = frozenset()
        self._problem = ""
        self._generation: int | None = None
        self._edit_check_ms = 0
        self._conflicts = 0
        self._status = PublisherStatus(False, None, 0, "")

    @property
    def object_key(self) -> tuple[str, str]:
        """Namespace and name of the object."""
        return NAMESPACE, self._name

    def submit(self, view: NodeView) -> None:
        """Make this the content to publish, in place of any earlier one; from any thread, never blocks."""
        submission = _Submission(view, self._clock.now())
        with self._lock:
            self._slot = submission
        self._wake.set()

    def look(self) -> None:
        """Somebody may have changed the object: ask the target soon; from any thread, never blocks."""
        self._poked.set()
        self._wake.set()

    def read_back(self) -> ReadBack:
        """What the target holds now; called once before `start`, so that `UpdateTime` goes on from there.

        An object that ClusterD would not take is no error: its problem is told, and the first content is written
        twice (device-info 14, C11). Raises ReadBackError when the target could not be read; call again then.
        """
        obj = self._target.read(*self.object_key)
        found = judge_object(obj, self._clock.now())
        if obj is not None:
            self._see_writer(obj)
            if found.problem:
                self._reports.unacceptable(self._target.describe(), found.problem)
            self._reports.replaces(foreign_parts(obj, self._shadow))
            self._book.resume(found.update_time_s, acceptable=not found.problem)
        return found

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

    def turn(self) -> float | None:
        """One pass of the thread, whatever happens in it; returns the seconds to wait, None = until a new view.

        For whoever drives many publishers with few threads (tools/fleet) instead of starting this one's own: one call
        at a time, and again after `submit` and `look`.
        """
        try:
            wait_s = self._round()
        except Exception as error:  # noqa: BLE001 - border of the supervised loop: the thread survives everything
            wait_s = self._survive(error)
        book = self._book
        self._status = PublisherStatus(book.pending, self._generation, book.failures, self._problem, self._waits_for())
        return wait_s

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(self.turn())
            self._wake.clear()

    def _survive(self, error: Exception) -> float:
        self._reports.survived(error)
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
        held_ms = 0 if self._guard is None else self._guard.wait_ms(now)
        if self._book.wait_ms(now) == 0 and not held_ms:
            self._write(submission, now, rendered)
        period_s = self._look_for_edits()
        now = self._clock.now()
        wait_ms = self._book.wait_ms(now)
        if wait_ms is not None and self._guard is not None:
            wait_ms = max(wait_ms, self._guard.wait_ms(now))
        waits_s = [] if wait_ms is None else [wait_ms / 1000]
        if period_s is not None:
            waits_s.append(period_s)
        return min(waits_s, default=None)

    def _look_for_edits(self) -> float | None:
        """See an operator's edit although nothing is to be written (decision 19); returns when to look again."""
        period_s = self._target.edit_period_s()
        now = self._clock.now()
        poked = self._poked.is_set()
        if not poked and (period_s is None or now.mono_ms < self._edit_check_ms):
            return period_s
        self._poked.clear()
        found = self._target.edited(*self.object_key)
        if found is not None:
            self._book.disturbed(now, _AFTER_EDIT_MS)
            self._see_edit(found)
        period_s = self._target.edit_period_s()
        self._edit_check_ms = now.mono_ms + int((period_s or 0) * 1000)
        return period_s

    def _see_edit(self, obj: dict[str, object]) -> None:
        data = obj.get("data")
        named = manual_ids(data) if isinstance(data, dict) else None
        self._see_writer(obj)
        self._reports.changed_by_others(self._target.describe(), named, foreign_parts(obj, self._shadow))
        if named is not None:
            self._on_manual_field(named, self._generation or 0)

    def _see_writer(self, obj: Mapping[str, object]) -> None:
        if self._guard is not None:
            now = self._clock.now()
            new = self._guard.look(obj, now)
            self._reports.other_writer(self._guard.writer, new, holding=self._guard.wait_ms(now) > 0)

    def _waits_for(self) -> str:
        if self._guard is None or self._guard.writer is None or not self._guard.wait_ms(self._clock.now()):
            return ""
        return self._guard.writer.name

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
        obj = config_map(self._node_name, rendered.data, self._shadow)
        try:
            check_object(obj, previous_s, self._keys, self._shadow)
        except ContractError as error:
            self._book.refused()
            self._problem = error.sentence
            self._reports.refused(error)
            return
        if self._guard is not None:
            self._guard.begin()
        try:
            self._target.write(obj)
        except ObjectChanged as change:
            self._conflict(change, now)
        except LaterError as error:
            self._fail(error.sentence, error.hint, error.retry_after_s)
        except PublishError as error:
            self._fail(error.sentence, error.hint)
        else:
            self._keys = frozenset(rendered.data)
            self._succeed(submission, rendered)

    def _conflict(self, change: ObjectChanged, now: Instant) -> None:
        self._see_edit(change.obj)
        self._conflicts += 1
        if self._conflicts > _CONFLICTS_IN_A_ROW:
            self._fail(f"{change.sentence} {self._conflicts} times in a row", change.hint)
        else:
            self._book.postponed(now, _AFTER_EDIT_MS)

    def _succeed(self, submission: _Submission, rendered: Rendered) -> None:
        at = self._clock.now()
        failures = self._book.failures
        self._conflicts = 0
        generation = self._book.taken(at)
        self._problem = ""
        self._reports.written(at, rendered.left_out, failures, self._target.describe())
        if self._guard is not None:
            self._reports.other_writer(self._guard.current(at), new=False, holding=False)
        if submission is not self._reported:
            self._reported = submission
            self._reports.latency((at.mono_ms - submission.at.mono_ms) / 1000)
        if generation is not None:
            self._acknowledge(generation, at)

    def _fail(self, problem: str, hint: str, at_least_s: float = 0.0) -> float:
        """Note a failed attempt. at_least_s: the target wants to be left alone so long. Returns the delay, seconds."""
        delay_ms = self._book.failed(self._clock.now(), int(at_least_s * 1000))
        self._problem = problem
        self._reports.failed(problem, hint, self._book.failures == 1, self._target.describe())
        return delay_ms / 1000

    def _acknowledge(self, generation: int, at: Instant) -> None:
        self._generation = generation
        self._on_acknowledged(generation, at)
