"""What people and metrics hear of publishing one object: the first failure of a row, its end, and nothing twice."""

import logging

from nodeagent.core.errors import ContractError
from nodeagent.core.instant import Instant
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.publish.other_writer import RECENT_MS, OtherWriter

_LOG = logging.getLogger("nodeagent.publish")


class Reports:
    """Telemetry of one object. object_label: its label in metrics. `where` is the target in a phrase."""

    def __init__(self, object_label: str, events: EventSink, metrics: Metrics) -> None:
        self._object = object_label
        self._events = events
        self._metrics = metrics
        self._refusal = ""
        self._left_out = 0
        self._replaced = ""

    def written(self, at: Instant, left_out: int, failures: int, where: str) -> None:
        """A write was taken. left_out: codes cut from the object. failures: attempts that failed before."""
        self._refusal = ""
        self._metrics.count("publish_writes_total", object=self._object, result="ok")
        self._metrics.set("publish_left_out_codes", left_out, object=self._object)
        self.confirmed(at, failures, where)
        if left_out and not self._left_out:
            message = f"the object would be too large: {left_out} mildest and oldest codes are left out of it"
            _LOG.warning("event=object_cut object=%s left_out=%d", self._object, left_out)
            self._events.emit(Event(EventReason.OBJECT_CUT, message, warning=True))
        self._left_out = left_out

    def confirmed(self, at: Instant, failures: int, where: str) -> None:
        """The target has what we want, by a write or without one."""
        self._metrics.set("publish_last_success_timestamp_seconds", at.wall_ms / 1000, object=self._object)
        if failures:
            _LOG.info("event=publish_recovered object=%s where=%r failures=%d", self._object, where, failures)
            self._events.emit(
                Event(EventReason.PUBLISH_RECOVERED, f"{where} took the object after {failures} failed attempts")
            )

    def latency(self, latency_s: float) -> None:
        """From a new view to the write that brought it."""
        self._metrics.observe("publish_latency_seconds", latency_s, object=self._object)

    def failed(self, problem: str, hint: str, first: bool, where: str) -> None:
        """An attempt failed; people hear of the first of a row only."""
        self._metrics.count("publish_writes_total", object=self._object, result="failed")
        if first:
            message = f"{problem}; repeated until it succeeds" + (f" ({hint})" if hint else "")
            _LOG.warning(
                "event=publish_failed object=%s where=%r problem=%r hint=%r", self._object, where, problem, hint
            )
            self._events.emit(Event(EventReason.PUBLISH_FAILED, message, warning=True))

    def refused(self, error: ContractError) -> None:
        """An object must not be sent; the last good one stays where it is."""
        self._metrics.count("publish_refused_total", object=self._object)
        if error.sentence != self._refusal:
            self._refusal = error.sentence
            _LOG.error("event=contract_refused object=%s problem=%r", self._object, error.sentence)
            self._events.emit(Event(EventReason.CONTRACT_REFUSED, error.sentence, warning=True))

    def survived(self, error: Exception) -> None:
        """The publisher met an error that nobody foresaw."""
        self._metrics.count("publish_loop_errors_total", object=self._object)
        _LOG.error(
            "event=publisher_error object=%s problem=%r",
            self._object,
            f"{type(error).__name__}: {error}",
            exc_info=error,
        )

    def unacceptable(self, where: str, problem: str) -> None:
        """The object that is there is not ours as we wrote it, but one that ClusterD would refuse."""
        _LOG.warning("event=unacceptable_object_found object=%s where=%r problem=%r", self._object, where, problem)

    def changed_by_others(self, where: str, manual: object, foreign: list[str]) -> None:
        """Somebody else changed the object. manual: ids it names. foreign: what our next write removes from it."""
        _LOG.info("event=object_changed_by_others object=%s where=%r manual=%s", self._object, where, manual)
        self._metrics.count("publish_foreign_changes_total", object=self._object)
        self.replaces(foreign)

    def replaces(self, foreign: list[str]) -> None:
        """Our next write removes what somebody put on the object; said once for the same parts."""
        text = ", ".join(foreign[:10]) + (f" and {len(foreign) - 10} more" if len(foreign) > 10 else "")
        if text and text != self._replaced:
            _LOG.warning("event=foreign_parts_removed object=%s parts=%r", self._object, text)
            message = f"the object has parts that are not ours, writing it removes them: {text}"
            self._events.emit(Event(EventReason.FOREIGN_PARTS, message, warning=True))
        self._replaced = text

    def other_writer(self, writer: OtherWriter | None, new: bool, holding: bool, quiet_ms: int = RECENT_MS) -> None:
        """Another program writes the object, or no more. holding: we wait because of it, until it was quiet so long."""
        self._metrics.set("publish_other_writer", 0 if writer is None else 1, object=self._object)
        if writer is None or not new:
            return
        until = f"nothing is written until it has been quiet for {quiet_ms // 60_000} minutes"
        what = until if holding else "both overwrite each other"
        hint = "run one of them: remove the other, set publish.mode=shadow, or publish.other_writer=overwrite"
        _LOG.error(
            "event=other_writer object=%s name=%r at_ms=%d holding=%s hint=%r",
            self._object,
            writer.name,
            writer.at_ms,
            holding,
            hint,
        )
        message = f"{writer.name} writes this object too, {what}; {hint}"
        self._events.emit(Event(EventReason.OTHER_WRITER, message, warning=True))
