"""What people and metrics hear of public fault messages: the first failure of a row, its end, and nothing twice."""

import logging

from nodeagent.core.errors import NodeAgentError
from nodeagent.core.telemetry import Event, EventReason, EventSink, Metrics
from nodeagent.policy.public_fault import Outcome
from nodeagent.render.public_fault import Message

log = logging.getLogger("nodeagent.public_faults")

_RESULTS = {Outcome.LOST: "failed", Outcome.BUSY: "busy", Outcome.REFUSED: "refused"}


class PublicFaultReports:
    """Telemetry of one client. resource: the sender that ClusterD knows. `where` is the way in a phrase."""

    def __init__(self, resource: str, events: EventSink, metrics: Metrics) -> None:
        self._resource = resource
        self._events = events
        self._metrics = metrics
        self._failures = 0
        self._late = False
        self._refusal = ""
        self._without_chips = False

    def waiting(self, waiting: bool) -> None:
        """Whether something is not acknowledged."""
        self._metrics.set("public_fault_waiting", 1 if waiting else 0, resource=self._resource)

    def taken(self, message: Message, where: str) -> None:
        """A message was taken; what failed before in a row is over."""
        self._metrics.count("public_fault_messages_total", resource=self._resource, result="ok")
        said = " ".join(f"{each['faultCode']}={each['assertion']}" for each in message.document["faults"])
        log.info("event=public_fault_told resource=%s id=%s faults=%r", self._resource, message.id, said)
        if self._late or self._refusal:
            text = f"{self._resource}: {where} took the message after {self._failures} failed attempts"
            self._events.emit(Event(EventReason.PUBLIC_FAULT_DELIVERED, text))
        self._late, self._refusal, self._failures = False, "", 0

    def failed(self, outcome: Outcome, error: NodeAgentError) -> None:
        """A message was not taken. People hear of the first of a row, and of a refusal when its text is new."""
        self._metrics.count("public_fault_messages_total", resource=self._resource, result=_RESULTS[outcome])
        self._failures += 1
        hint = f" ({error.hint})" if error.hint else ""
        if outcome is Outcome.REFUSED:
            if error.sentence != self._refusal:
                self._refusal = error.sentence
                self._tell(EventReason.PUBLIC_FAULT_REFUSED, f"{error.sentence}; tried again slowly{hint}")
        elif not self._late:
            self._late = True
            self._tell(EventReason.PUBLIC_FAULT_LATE, f"{error.sentence}; repeated until it is taken{hint}")

    def not_begun(self, error: NodeAgentError) -> None:
        """Our last object could not be read, so nothing can be told yet."""
        self._failures += 1
        if not self._late:
            self._late = True
            hint = f" ({error.hint})" if error.hint else ""
            self._tell(EventReason.PUBLIC_FAULT_LATE, f"{error.sentence}; nothing is told before that works{hint}")

    def without_chips(self, guessed: bool) -> None:
        """A message goes out. guessed: it names chip 0 because no chip is known; said once until one is."""
        if guessed and not self._without_chips:
            text = "no chip of the node is known: the fault is told for chip 0 alone, and again once they are"
            self._tell(EventReason.PUBLIC_FAULT_WITHOUT_CHIPS, text)
        self._without_chips = guessed

    def _tell(self, reason: EventReason, text: str) -> None:
        log.warning("event=%s resource=%s problem=%r", reason.name.lower(), self._resource, text)
        self._events.emit(Event(reason, f"{self._resource}: {text}", warning=True))
