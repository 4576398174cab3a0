"""Shadow mode at work: follows the live object that another program writes, compares it with ours, keeps the book.

Only in shadow mode with target `kubernetes`. Both objects are compared as the API server has them, after each change of
either side. A small file in `daemon.state_dir` carries the day over a restart; what stood then is settled anew.
"""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeagent.cluster.followed import OneObject
from nodeagent.cluster.watch import named
from nodeagent.core.clock import Clock, SystemClock
from nodeagent.core.files import read_text, replace_text
from nodeagent.core.settings import Settings
from nodeagent.core.telemetry import Metrics
from nodeagent.daemon.cluster import Cluster
from nodeagent.daemon.state_file import StateFileError
from nodeagent.daemon.supervisor import Loop
from nodeagent.publish.managed_fields import owners
from nodeagent.publish.shadow_ledger import News, ShadowLedger, Standing, day_as_json, day_from_json
from nodeagent.render.comparison import compare
from nodeagent.render.device_info import DEVICE_KEY, NAMESPACE, object_name
from nodeagent.render.difference import Comparison, Difference, Kind

log = logging.getLogger("nodeagent.shadow")

FILE_NAME = "shadow.json"
VERSION = 1
LIMIT_BYTES = 1024 * 1024
SAVE_S = 300.0
MAX_LINES = 20
"""Lines of the log about one change; an object that is wrong in everything needs no more to be noticed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One side as the API server has it. problem: why it is not known; empty = it is. obj: None = there is none."""

    obj: dict[str, Any] | None
    problem: str


class Side(OneObject):
    """One side as its watch tells it. on_change: called after each piece of news.

    Unlike one of a configuration it knows nothing while the watch is in trouble: an old object shows no agreement.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._listed = False
        self._obj: dict[str, Any] | None = None
        self._trouble = ""

    def seen(self) -> Seen:
        """The present state; from any thread."""
        if self._trouble or not self._listed:
            return Seen(None, self._trouble or "the API server was not asked yet")
        return Seen(self._obj, "")

    def trouble(self, sentence: str, hint: str, forbidden: bool) -> None:
        """Nothing can be read now; empty = it goes on."""
        self._trouble = f"{sentence} ({hint})" if hint else sentence
        self._on_change()

    def take(self, obj: dict[str, Any] | None) -> None:
        """A new version, or its end."""
        self._obj, self._listed = obj, True
        self._on_change()


class ShadowWatch:
    """Compares two sides for ever; a supervised loop. folder: where the day is kept, None = nowhere."""

    def __init__(self, settle_ms: int, tolerance_ms: int, folder: Path | None, clock: Clock, metrics: Metrics) -> None:
        self._settle_ms = settle_ms
        self._tolerance_ms = tolerance_ms
        self._path = None if folder is None else folder / FILE_NAME
        self._clock = clock
        self._metrics = metrics
        self._wake = threading.Event()
        self._stopping = False
        self.theirs, self.ours = Side(self._wake.set), Side(self._wake.set)
        self._lock = threading.Lock()
        self._ledger: ShadowLedger | None = None
        self._comparison: Comparison | None = None
        self._problem = "nothing was compared yet"
        self._save_ms = 0
        self._unsaved = False

    def run(self) -> None:
        """Compare until `stop`."""
        if self._ledger is None:
            self._ledger = self._restored()
        while not self._stopping:
            wait_s = self._round(self._ledger)
            self._wake.wait(wait_s)
            self._wake.clear()
        self._save(self._ledger)

    def stop(self) -> None:
        """Make `run` return, after saving the day."""
        self._stopping = True
        self._wake.set()

    def answer(self, _: dict[str, Any]) -> dict[str, Any]:
        """How the objects differ now, for `nodeagent shadow diff`."""
        now = self._clock.now()
        with self._lock:
            comparison, problem, ledger = self._comparison, self._problem, self._ledger
            standing = [] if ledger is None else ledger.standing(now)
            day = {} if ledger is None else {**day_as_json(ledger.day), "distinct": ledger.day.distinct()}
        day.pop("keys", None)
        return {
            "mode": "shadow",
            "problem": problem,
            "theirs": side_as_json(self.theirs.seen().obj),
            "ours": side_as_json(self.ours.seen().obj),
            "differences": [
                {**difference_as_json(each.difference), "age_s": each.age_ms // 1000, "settled": each.settled}
                for each in standing
            ],
            "volatile": [] if comparison is None else [difference_as_json(each) for each in comparison.volatile],
            "left_out": 0 if comparison is None else comparison.left_out,
            "settle_s": self._settle_ms / 1000,
            "day": day,
        }

    def _round(self, ledger: ShadowLedger) -> float:
        """Compare once; the seconds until that is due although nothing changes."""
        theirs, ours = self.theirs.seen(), self.ours.seen()
        problem = theirs.problem or ours.problem
        comparison = None if problem else compare(theirs.obj, ours.obj, self._tolerance_ms)
        now = self._clock.now()
        with self._lock:
            self._comparison, self._problem = comparison, problem
            news = ledger.look(comparison, now)
            standing = ledger.standing(now)
        self._measure(comparison, news, standing)
        self._tell(news)
        self._unsaved = self._unsaved or bool(news.new or news.gone or news.summary)
        if self._unsaved or now.mono_ms >= self._save_ms:
            self._save(ledger)
            self._save_ms = now.mono_ms + int(SAVE_S * 1000)
        return min(SAVE_S, ledger.wait_ms(now) / 1000)

    def _measure(self, comparison: Comparison | None, news: News, standing: list[Standing]) -> None:
        self._metrics.set("shadow_comparable", 0 if comparison is None else 1)
        for kind, spent_ms in news.spent_ms.items():
            self._metrics.count("shadow_difference_seconds_total", spent_ms / 1000, kind=kind.value)
        if comparison is not None:
            settled = [each.difference.kind for each in standing if each.settled]
            for kind in Kind:
                if kind is not Kind.VOLATILE:
                    self._metrics.set("shadow_differences", settled.count(kind), kind=kind.value)

    def _tell(self, news: News) -> None:
        for each in news.new[:MAX_LINES]:
            log.log(
                logging.INFO if each.explanation else logging.WARNING,
                "shadow differs kind=%s field=%r theirs=%r ours=%r known_cause=%r",
                each.kind.value,
                each.field,
                each.theirs,
                each.ours,
                each.explanation,
            )
        for gone in news.gone[:MAX_LINES]:
            kind, place, age_s = gone.difference.kind.value, gone.difference.field, gone.age_ms // 1000
            log.info("shadow differs no more kind=%s field=%r after_s=%d", kind, place, age_s)
        if (more := max(len(news.new), len(news.gone)) - MAX_LINES) > 0:
            log.info("shadow: further differences are not logged number=%d", more)
        if news.summary is not None:
            day = news.summary
            log.info(
                "shadow summary hours=%.1f compared_s=%d agreed_s=%d unexplained_s=%d distinct=%s"
                " longest=%r longest_s=%d",
                day.elapsed_ms / 3_600_000,
                day.compared_ms // 1000,
                day.agreed_ms // 1000,
                day.unexplained_ms // 1000,
                json.dumps(day.distinct()),
                day.longest,
                day.longest_ms // 1000,
            )

    def _restored(self) -> ShadowLedger:
        now = self._clock.now()
        try:
            if self._path is None or not self._path.exists():
                return ShadowLedger(self._settle_ms, now)
            body = json.loads(read_text(self._path, LIMIT_BYTES, StateFileError))
            if body["version"] != VERSION:
                raise StateFileError("it is of another version")
            return ShadowLedger(
                self._settle_ms, now, day_from_json(body["day"], now.wall_ms - int(body["saved_at_ms"]))
            )
        except (StateFileError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            log.warning("shadow book is not usable, the day begins anew path=%s reason=%s", self._path, error)
            self._metrics.count("state_file_errors_total")
            return ShadowLedger(self._settle_ms, now)

    def _save(self, ledger: ShadowLedger) -> None:
        if self._path is None:
            return
        with self._lock:
            day = day_as_json(ledger.day)
        body = {"version": VERSION, "saved_at_ms": self._clock.now().wall_ms, "day": day}
        try:
            replace_text(self._path, json.dumps(body, separators=(",", ":")))
            self._unsaved = False
        except OSError as error:
            self._metrics.count("state_file_errors_total")
            log.debug("shadow book cannot be written path=%s reason=%s", self._path, error)


def shadow_watch(settings: Settings, cluster: Cluster | None, metrics: Metrics) -> ShadowWatch | None:
    """Set up the comparison if these settings ask for one: its watch and loop go to the cluster's."""
    wanted = settings.publish.mode == "shadow" and settings.shadow.compare
    if cluster is None or not wanted:
        return None
    folder = Path(settings.daemon.state_dir) if settings.daemon.state_dir else None
    settle_ms, tolerance_ms = int(settings.shadow.settle_s * 1000), int(settings.shadow.time_tolerance_s * 1000)
    watch = ShadowWatch(settle_ms, tolerance_ms, folder, SystemClock(), metrics)
    cluster.follow(named("configmaps", "incumbent", NAMESPACE, object_name(settings.node.name)), watch.theirs)
    cluster.tell_own(watch.ours)
    cluster.supervise(Loop("shadow", watch.run, watch.stop))
    return watch


def shadow_answer(watch: ShadowWatch | None) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Who answers the question `shadow`, also where nothing is compared."""
    if watch is not None:
        return watch.answer
    return lambda _: {"mode": "off", "problem": "this daemon compares nothing: it is not in shadow mode on a cluster"}


def difference_as_json(difference: Difference) -> dict[str, Any]:
    """One difference for machines."""
    return {
        "kind": difference.kind.value,
        "field": difference.field,
        "theirs": difference.theirs,
        "ours": difference.ours,
        "explanation": difference.explanation,
    }


def side_as_json(obj: dict[str, Any] | None) -> dict[str, Any] | None:
    """Name of an object and its last writer, as far as the API server knows; None = there is none."""
    metadata = None if obj is None else obj.get("metadata")
    if not isinstance(metadata, dict):
        return None
    writer = next(iter(owners(metadata, "f:data", f"f:{DEVICE_KEY}")), None)
    return {
        "name": str(metadata.get("name", "")),
        "writer": "" if writer is None else writer.name,
        "written_at_ms": 0 if writer is None else writer.at_ms,
    }
