"""Questions about what the node is, asked when none about faults is due, and the report of the answers."""

import logging
from collections.abc import Callable

from nodeagent.core.instant import Instant
from nodeagent.core.model import Inventory
from nodeagent.core.node_facts import NodeFacts
from nodeagent.drivers.answers import AnswerError, AnswerKind
from nodeagent.sources.chip_calls import Result
from nodeagent.sources.fact_plan import FactPlan
from nodeagent.sources.plan import ChipPlan, Job, JobKind

log = logging.getLogger("nodeagent.chips")


class FactQuestions:
    """Owned by the chip source's loop. plan: says whether there is time for facts. period_s: of `FactPlan`.

    on_facts: takes what the node is whenever that differs from the last time; must not block.
    """

    def __init__(self, plan: ChipPlan, period_s: float, on_facts: Callable[[NodeFacts], None]) -> None:
        self._plan = plan
        self._facts = FactPlan(plan.tracks, period_s)
        self._on_facts = on_facts

    def due_ms(self) -> int | None:
        """Monotonic time of the next question, None = none as far as is known."""
        return self._facts.next_due_ms() if self._plan.settled else None

    def next_job(self, now_ms: int) -> Job | None:
        """The question that is due, if there is one."""
        fact = self._facts.next_fact(now_ms) if self._plan.settled else None
        return None if fact is None else Job(JobKind.FACT, *fact)

    def on_opened(self, inventory: Inventory, now: Instant) -> None:
        """A new session sees the node."""
        self._facts.on_opened(inventory, now)

    def on_result(self, result: Result, now: Instant) -> None:
        """A question came back. That its call hung is for the chip plan to hear as well."""
        job, error = result.job, result.error
        assert job.fact is not None
        if result.host_lost:
            self._facts.on_hung(job.logic_id, job.fact, now)
        elif error is not None:
            supported = not (isinstance(error, AnswerError) and error.kind is AnswerKind.NOT_SUPPORTED)
            if self._facts.on_refused(job.logic_id, job.fact, error.sentence, now, supported=supported):
                log.info("fact not known chip=%d fact=%s: %s", job.logic_id, job.fact.value, error.sentence)
        else:
            assert isinstance(result.value, int | str)
            self._facts.on_answer(job.logic_id, job.fact, result.value, now)

    def report(self, now: Instant) -> None:
        """Tell what is known, if a round is over and something is new."""
        if (facts := self._facts.report(now.mono_ms)) is not None:
            self._on_facts(facts)
