"""Which fact of which chip is asked for next, and what is known of the node so far. No I/O, time passed in.

Facts are asked for when nothing about faults is due. They change seldom: all are asked for once in every session,
and the address of a port every 60 s (device-info 10, grace-tolerance 16.2).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId, Inventory, Product
from nodeagent.core.node_facts import ChipFacts, FactKind, NodeFacts
from nodeagent.core.pauses import backoff_s
from nodeagent.drivers.facts import wanted_facts
from nodeagent.sources.tracks import Track

HANG_PAUSES_S = (60, 600, 3600)
"""Pauses before a fact is asked for again whose call hung or ended its host; each try costs a driver host."""

_FIELD = {
    FactKind.CORES: "aicore_count",
    FactKind.MEMORY: "memory_gib",
    FactKind.ADDRESS: "address",
    FactKind.SUPER_DEVICE: "super_device_id",
    FactKind.PRODUCT_TYPE: "product_type",
}


@dataclass(slots=True)
class _Question:
    """One fact of one chip. due_ms None: not again in this session. hangs: in a row, across sessions.

    why: what the driver said when it last gave no answer.
    """

    due_ms: int | None
    hangs: int = 0
    why: str = ""


@dataclass(slots=True)
class _Chip:
    """A chip, what is open and what is known of it."""

    chip: ChipId
    questions: dict[FactKind, _Question]
    known: dict[FactKind, int | str] = field(default_factory=dict)

    def facts(self) -> ChipFacts:
        fields: dict[str, Any] = {_FIELD[kind]: value for kind, value in self.known.items()}
        return ChipFacts(self.chip, **fields)


class FactPlan:
    """Owned by one thread. tracks: the chips as the chip plan sees them; one that must not be asked is passed over.

    period_s: seconds between two looks at an address, and before a failed question is asked again.
    """

    def __init__(self, tracks: Mapping[int, Track], period_s: float) -> None:
        self._tracks = tracks
        self._period_ms = int(period_s * 1000)
        self._product: Product | None = None
        self._chips: dict[int, _Chip] = {}
        self._paused_until_ms = 0
        self._reported: NodeFacts | None = None

    # -- what to do next ---------------------------------------------------------

    def next_fact(self, now_ms: int) -> tuple[int, FactKind] | None:
        """Logic id and fact, the longest overdue first; None when nothing is due."""
        due = self.next_due_ms()
        if due is None or due > now_ms:
            return None
        return min(self._open(), key=lambda entry: entry[0])[1:]

    def next_due_ms(self) -> int | None:
        """Monotonic time of the next question, None = none."""
        due = min((entry[0] for entry in self._open()), default=None)
        return None if due is None else max(due, self._paused_until_ms)

    def report(self, now_ms: int) -> NodeFacts | None:
        """What is known, when every question that could be asked was asked and something is new; else None.

        A fact that was known stays known while the driver gives no answer; one that a newer driver does not
        support is unknown again.
        """
        if self._product is None or self.next_fact(now_ms) is not None:
            return None
        facts = NodeFacts(self._product, tuple(chip.facts() for chip in self._chips.values()))
        if facts == self._reported:
            return None
        self._reported = facts
        return facts

    # -- what was learnt -----------------------------------------------------------

    def on_opened(self, inventory: Inventory, now: Instant) -> None:
        """A new session sees the node: everything is asked again, but what hung keeps its pause."""
        before, self._chips = self._chips, {}
        self._product = inventory.product
        wanted = wanted_facts(inventory.product.family)
        listed = {chip.logic_id for chip in inventory.chips}
        lost = [chip.chip for logic_id, chip in before.items() if logic_id not in listed]
        for chip in [*inventory.chips, *lost]:
            self._chips[chip.logic_id] = _carried(before.get(chip.logic_id), chip, wanted, now.mono_ms)

    def on_answer(self, logic_id: int, kind: FactKind, value: int | str, now: Instant) -> None:
        """The driver told a fact. Only an address is looked at again in this session."""
        chip = self._chips[logic_id]
        chip.known[kind] = value
        again = now.mono_ms + self._period_ms if kind is FactKind.ADDRESS else None
        chip.questions[kind] = _Question(again)

    def on_refused(self, logic_id: int, kind: FactKind, why: str, now: Instant, *, supported: bool) -> bool:
        """The driver gave an error in place of a fact; true when it has not said so before.

        supported=False: the product or the driver does not have it, which holds for the session.
        """
        chip = self._chips[logic_id]
        question = chip.questions[kind]
        new, question.why, question.hangs = question.why != why, why, 0
        question.due_ms = now.mono_ms + self._period_ms if supported else None
        if not supported:
            chip.known.pop(kind, None)
        return new

    def on_hung(self, logic_id: int, kind: FactKind, now: Instant) -> None:
        """The call did not return, or its host ended: this fact rests long, and for a while so do all others."""
        question = self._chips[logic_id].questions[kind]
        question.hangs += 1
        question.due_ms = now.mono_ms + backoff_s(HANG_PAUSES_S, question.hangs) * 1000
        self._paused_until_ms = now.mono_ms + HANG_PAUSES_S[0] * 1000

    def _open(self) -> Iterator[tuple[int, int, FactKind]]:
        """Questions that may be asked, with their time and chip."""
        for logic_id, chip in self._chips.items():
            track = self._tracks.get(logic_id)
            if track is None or not track.askable:
                continue
            for kind, question in chip.questions.items():
                if question.due_ms is not None:
                    yield question.due_ms, logic_id, kind


def _carried(before: _Chip | None, chip: ChipId, wanted: tuple[FactKind, ...], now_ms: int) -> _Chip:
    """A chip of a new session with what an earlier one knew, unless another chip has its logic id now."""
    if before is None or before.chip != chip:
        return _Chip(chip, {kind: _Question(now_ms) for kind in wanted})
    questions = {}
    for kind in wanted:
        old = before.questions.get(kind, _Question(now_ms))
        resting = old.hangs > 0 and old.due_ms is not None
        questions[kind] = replace(old, due_ms=old.due_ms if resting else now_ms)
    return _Chip(chip, questions, {kind: value for kind, value in before.known.items() if kind in wanted})
