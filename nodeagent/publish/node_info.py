"""The edge of node faults: one thread that keeps the node-info object of the node as the latest view wants it.

An object that exists only while there is a fault (node-faults 8.3). That it is absent is a content like any other: it
is desired, tried until the server has it so, and looked at again from time to time. Nothing follows the object: what
somebody else does to it is seen when it is written or looked at again.
"""

import logging
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.core.board import BoardView
from nodeagent.core.clock import Clock
from nodeagent.core.errors import ContractError, PublishError, ReadBackError
from nodeagent.core.instant import Instant
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.publish.book import Book, BookParameters
from nodeagent.publish.manner import Manner, PublisherStatus
from nodeagent.publish.node_info_found import owner_set_by_us, same_object
from nodeagent.publish.other_writer import foreign_parts
from nodeagent.publish.owner import OwnerSource
from nodeagent.publish.reports import Reports
from nodeagent.publish.targets import LaterError, ObjectChanged, Target
from nodeagent.render.node_info import (
    KEYS,
    NAMESPACE,
    Owner,
    config_map,
    node_info_text,
    object_name,
    render_node_info,
)
from nodeagent.render.node_info_contract import check_node_info, judge_node_info, published_time_s

_LOG = logging.getLogger("nodeagent.publish")
_OBJECT = "node_info"
_ABSENT = ""
"""Fingerprint of the content of a node without a fault."""
_HEALTHY = BoardView(0)
_AFTER_EDIT_MS = 200
_CONFLICTS_IN_A_ROW = 3
"""As for the device-info object: more changes by others than this between two writes of ours are a failure."""
_AFTER_ERROR_S = 30.0
"""Pause after an error that nobody foresaw; a new view ends it."""


@dataclass(frozen=True, slots=True)
class NodeInfoTimes:
    """Intervals in milliseconds.

    min_distance_ms: least time between two attempts (setting `ipmi.report_interval_s`, node-faults 4).
    rewrite_ms: age at which an unchanged object is written again (node-faults 4). check_ms: age at which it is looked
    whether there is still none.
    """

    min_distance_ms: int = 5000
    rewrite_ms: int = 30 * 60_000
    check_ms: int = 60 * 60_000


@dataclass(frozen=True, slots=True)
class NodeInfoStatus(PublisherStatus):
    """present: the object is there, as far as we know; None = not known yet. owner: DaemonSet it belongs to."""

    present: bool | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True)
class _Submission:
    view: BoardView
    at: Instant

    @property
    def healthy(self) -> bool:
        """There is nothing to publish. A list of mild faults is published although the node is healthy (8.3)."""
        return not self.view.devices


class NodeInfoPublisher:
    """Publishes the node-info object of one node; a supervised loop.

    on_acknowledged: called from the loop with the generation whose content the target has, and the moment; it must
    not block. clock: real time. owner: None = the object belongs to nobody. draw: a random number from [0, 1) for the
    back-off.
    """

    def __init__(
        self,
        target: Target,
        node_name: str,
        clock: Clock,
        on_acknowledged: Callable[[int, Instant], None],
        events: EventSink,
        metrics: Metrics,
        times: NodeInfoTimes | None = None,
        owner: OwnerSource | None = None,
        draw: Callable[[], float] = random.random,
        manner: Manner | None = None,
    ) -> None:
        self._target = target
        self._node_name = node_name
        self._clock = clock
        self._on_acknowledged = on_acknowledged
        self._times = times or NodeInfoTimes()
        self._owner = owner
        self._reports = Reports(_OBJECT, events, metrics)
        self._book = Book(BookParameters(self._times.min_distance_ms, self._times.rewrite_ms), draw)
        manner = manner or Manner()
        self._shadow, self._guard = manner.shadow, manner.guard
        self._name = object_name(node_name, self._shadow)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._slot: _Submission | None = None  # guarded by the lock; everything below belongs to the loop
        self._adopted: _Submission | None = None
        self._content: str | None = None
        self._wanted_since: Instant | None = None
        self._look_first = True
        self._found: Mapping[str, object] | None = None
        self._present: bool | None = None
        self._set_before: Owner | None = None
        self._conflicts = 0
        self._problem = ""
        self._generation: int | None = None
        self._status = NodeInfoStatus(False, None, 0, "")

    @property
    def object_key(self) -> tuple[str, str]:
        """Namespace and name of the object."""
        return NAMESPACE, self._name

    def submit(self, view: BoardView) -> None:
        """Make this the content to publish, in place of any earlier one; from any thread, never blocks.

        To be called after every good poll, with the same view where nothing changed: an object is only written again
        as fresh when the board has been asked since (T2, T12). Before the first call nothing is written or deleted.
        """
        submission = _Submission(view, self._clock.now())
        with self._lock:
            self._slot = submission
        self._wake.set()

    def run(self) -> None:
        """Work until `stop`."""
        while not self._stopping:
            self._wake.wait(self.turn())
            self._wake.clear()

    def stop(self) -> None:
        """Make `run` return after the request that is under way, if any. The object stays as it is (8.3, 14.3)."""
        self._stopping = True
        self._wake.set()

    def status(self) -> NodeInfoStatus:
        """How publishing stands; from any thread."""
        return self._status

    def turn(self) -> float | None:
        """One pass of the loop, whatever happens in it; returns the seconds to wait, None = until a view comes."""
        try:
            wait_s = self._round()
        except Exception as error:  # noqa: BLE001 - border of the supervised loop: an attempt must be ended
            self._reports.survived(error)
            wait_s = _AFTER_ERROR_S
            if self._book.attempting:
                wait_s = self._fail(f"{type(error).__name__}: {error}", "")
        book, owner = self._book, self._set_before
        self._status = NodeInfoStatus(
            book.pending,
            self._generation,
            book.failures,
            self._problem,
            self._waits_for(),
            self._present,
            "" if owner is None else owner.name,
        )
        return wait_s

    def _round(self) -> float | None:
        with self._lock:
            submission = self._slot
        if submission is None:
            return None
        now = self._clock.now()
        if submission is not self._adopted:
            self._adopt(submission, now)
        if self._wait_ms(submission, now) == 0:
            self._attempt(submission, now)
        wait_ms = self._wait_ms(submission, self._clock.now())
        return None if wait_ms is None else wait_ms / 1000

    def _wait_ms(self, submission: _Submission, now: Instant) -> int | None:
        """Until something is due. What is only due again waits for a poll as well: a silent board refreshes nothing."""
        if not self._book.pending and submission.at.mono_ms < self._book.refresh_at_ms:
            return None
        return self._book.wait_ms(now)

    def _adopt(self, submission: _Submission, now: Instant) -> None:
        content = _ABSENT if submission.healthy else node_info_text(submission.view)
        self._adopted = submission
        if content != self._content:
            self._content, self._wanted_since = content, submission.at
        generation = self._book.desire(submission.view.generation, content)
        if generation is not None and generation != self._generation:
            self._acknowledge(generation, now)

    def _attempt(self, submission: _Submission, now: Instant) -> None:
        look = self._look_first or (submission.healthy and not self._book.pending)
        update_time_s = self._book.begin(now)
        try:
            if look:
                self._examine(self._target.read(*self.object_key), submission, now)
            if self._guard is not None and (held_ms := self._guard.wait_ms(now)) > 0:
                self._look_first = True  # the other writer may have written again, or removed it
                self._book.postponed(now, held_ms)
                return
            self._bring(submission, update_time_s)
        except ContractError as error:
            self._book.refused()
            self._problem = error.sentence
            self._reports.refused(error)
        except ObjectChanged as change:
            self._conflict(change, submission, now)
        except (LaterError, ReadBackError) as error:
            self._fail(error.sentence, error.hint, error.retry_after_s)
        except PublishError as error:
            self._fail(error.sentence, error.hint)

    def _examine(self, obj: Mapping[str, object] | None, submission: _Submission, now: Instant) -> None:
        """Take in what the target has: whether ClusterD takes it, who wrote it, to whom it belongs."""
        self._look_first = False
        self._found, self._present = obj, obj is not None
        if self._guard is not None:
            new = self._guard.look(obj or {}, now)
            holding = self._guard.wait_ms(now) > 0
            self._reports.other_writer(self._guard.writer, new, holding, self._guard.recent_ms)
        if obj is None:
            return
        self._set_before = owner_set_by_us(obj) or self._set_before
        self._reports.replaces(self._foreign(obj))
        problem = judge_node_info(obj)
        if problem:
            self._reports.unacceptable(self._target.describe(), problem)
            # ClusterD drops the first good write after a bad object, and a deletion of a bad one altogether (9.1).
            self._book.owe(3 if submission.healthy else 2)

    def _bring(self, submission: _Submission, update_time_s: int) -> None:
        """One step towards what is desired: a deletion, or a write."""
        # Two good writes come before the deletion of an object that ClusterD refuses.
        if submission.healthy and self._book.owed <= 1:
            self._remove(submission)
            return
        if self._present is not True and self._owner is not None:
            self._owner.renew()
        owner = self._owner_now()
        view = _HEALTHY if submission.healthy else submission.view
        obj = config_map(self._node_name, render_node_info(view, update_time_s), self._shadow, owner)
        check_node_info(obj, self._shadow)
        if self._book.owed <= 1 and (age_ms := self._age_of_same(obj)) is not None:
            self._settle(submission, self._times.rewrite_ms - age_ms, wrote=False)
            return
        if self._guard is not None:
            self._guard.begin()
        self._present = None  # without an answer nobody knows
        self._target.write(obj)
        self._present, self._set_before = True, owner
        self._settle(submission, self._times.rewrite_ms, wrote=True)

    def _remove(self, submission: _Submission) -> None:
        there = self._present is not False
        if there:
            if self._guard is not None:
                self._guard.begin()
            self._target.delete(*self.object_key)
        self._present = False
        self._settle(submission, self._times.check_ms, wrote=there)

    def _owner_now(self) -> Owner | None:
        """The owner, else the one that an earlier run of ours set: not knowing it is no reason to take it away."""
        found = None if self._owner is None else self._owner.current()
        return found or self._set_before

    def _age_of_same(self, obj: Mapping[str, Any]) -> int | None:
        """Age in milliseconds of the object that was just found, when it is what we want; None when not (T15)."""
        found, self._found = self._found, None
        if found is None or not same_object(found, obj):
            return None
        age_ms = self._clock.now().wall_ms - published_time_s(found) * 1000
        return age_ms if 0 <= age_ms < self._times.rewrite_ms else None

    def _foreign(self, obj: Mapping[str, object]) -> list[str]:
        known = set() if self._set_before is None else {self._set_before.uid}
        return foreign_parts(obj, self._shadow, KEYS, known)

    def _conflict(self, change: ObjectChanged, submission: _Submission, now: Instant) -> None:
        if self._owner is not None:
            self._owner.renew()  # the garbage collector changes the object when its owner goes
        self._examine(change.obj or None, submission, now)
        self._present = True if change.obj else None  # an empty object may be a damaged file
        self._reports.changed_by_others(self._target.describe(), None, self._foreign(change.obj))
        self._conflicts += 1
        if self._conflicts > _CONFLICTS_IN_A_ROW:
            self._fail(f"{change.sentence} {self._conflicts} times in a row", change.hint)
        else:
            self._book.postponed(now, _AFTER_EDIT_MS)

    def _settle(self, submission: _Submission, refresh_ms: int, wrote: bool) -> None:
        """The target has what this attempt was to bring."""
        at, failures = self._clock.now(), self._book.failures
        self._conflicts, self._problem, self._found = 0, "", None
        generation = self._book.taken(at, refresh_ms, wrote=wrote)
        if wrote:
            self._reports.written(at, 0, failures, self._target.describe())
            _LOG.info("event=node_info_%s status=%s", "deleted" if not self._present else "written", _said(submission))
        else:
            self._reports.confirmed(at, failures, self._target.describe())
        if self._guard is not None:
            self._reports.other_writer(self._guard.current(at), new=False, holding=False)
        if generation is None:
            return
        since, self._wanted_since = self._wanted_since, None
        if wrote and since is not None:
            self._reports.latency((at.mono_ms - since.mono_ms) / 1000)
        self._acknowledge(generation, at)

    def _fail(self, problem: str, hint: str, at_least_s: float = 0.0) -> float:
        """Note a failed attempt. at_least_s: the target wants to be left alone so long. Returns the delay, seconds."""
        delay_ms = self._book.failed(self._clock.now(), int(at_least_s * 1000))
        self._problem = problem
        self._reports.failed(problem, hint, self._book.failures == 1, self._target.describe())
        return delay_ms / 1000

    def _waits_for(self) -> str:
        if self._guard is None or self._guard.writer is None or not self._guard.wait_ms(self._clock.now()):
            return ""
        return self._guard.writer.name

    def _acknowledge(self, generation: int, at: Instant) -> None:
        self._generation = generation
        self._on_acknowledged(generation, at)


def _said(submission: _Submission) -> str:
    codes = [code for device in submission.view.devices for code in device.codes]
    return f"{submission.view.status} codes={','.join(codes[:10]) or 'none'}"
