"""How facts about switches change the list of their faults within one step (lingqu-switch-faults 3 and 13). Pure.

Events and lists are ordered by their moments: an event that came while a query ran outranks its answer, one that is
older than a list already taken in says nothing new. Faults are told apart by identity, so no order of the same facts
makes two of one.
"""

from dataclasses import replace

from nodeagent.core.instant import Instant
from nodeagent.core.observation import (
    CarriedSwitches,
    SwitchEventSeen,
    SwitchFact,
    SwitchLibraryFound,
    SwitchListSeen,
    SwitchSilent,
)
from nodeagent.core.switch import NOTICE, RECOVERY, SwitchRecord
from nodeagent.core.switch_codes import SwitchLevel, code_of, peer_text, place_of
from nodeagent.policy.state import NOTICE_LIMIT_MS, TOUCHED_LIMIT_MS, Change, ChangeKind, SwitchTold
from nodeagent.policy.switch_records import moment_ms, oddity, unusable
from nodeagent.policy.switch_state import MAX_FAULTS, MAX_TOUCHED, Identity, SwitchFault, SwitchState
from nodeagent.policy.switch_table import SwitchTable

ALL_SWITCHES = "switches"
"""Subject of what concerns no single switch."""


class SwitchWork:
    """The step's own copy of the state; made anew when something touches it. changes: what is worth telling."""

    def __init__(self, state: SwitchState, now: Instant, table: SwitchTable, entering: int) -> None:
        self.changes: list[Change] = []
        self.touched = False
        self._before = state
        self._now = now
        self._table = table
        self._entering = entering
        self._faults = dict(state.faults)
        self._events = dict(state.touched)
        self._reported = dict(state.reported)
        self._rest = state

    def apply(self, fact: SwitchFact) -> None:
        """Take one fact in; the order of the calls is the order of their time."""
        self.touched = True
        if isinstance(fact, SwitchEventSeen):
            self._event(fact.record, fact.at)
        elif isinstance(fact, SwitchListSeen):
            self._list(fact)
        elif isinstance(fact, SwitchSilent):
            self._silent(fact)
        else:
            self._library(fact)

    def acknowledged(self, generation: int) -> None:
        """A write that contained these notices was taken: they leave (decision 3)."""
        for identity, fault in list(self._faults.items()):
            if fault.is_notice and fault.entered <= generation:
                self._leave(identity, fault)

    def end_notices(self) -> None:
        """Drop notices that no target took in time; each is told (decision 3)."""
        for identity, fault in list(self._faults.items()):
            if fault.until_mono_ms is not None and fault.until_mono_ms <= self._now.mono_ms:
                self._leave(identity, fault)
                self._tell(ChangeKind.NOTICE_DROPPED, self._now, fault, "never acknowledged")

    def restore(self, carried: CarriedSwitches, at: Instant) -> None:
        """What was known before the start, under what was seen since (decision 4)."""
        self.touched = True
        for record, level in carried.faults:
            identity = record.identity
            seen = self._faults.get(identity)
            if seen is not None:
                if seen.made_up:
                    self._faults[identity] = replace(seen, record=replace(seen.record, raised_ms=record.raised_ms))
            elif self._rest.answered is None and identity not in self._events:
                fault = SwitchFault(record, code_of(record), made_up=True, carried=level)
                self._faults[identity] = fault
                self._tell(ChangeKind.CARRIED, at, fault, "from before the start")
        if self._rest.answered is None:
            self._rest = replace(self._rest, restored=True, floor=carried.floor)

    def finish(self) -> SwitchState:
        """The state after the step; the very same object when nothing touched it."""
        if not self.touched:
            return self._before
        self._bound()
        oldest = self._now.mono_ms - TOUCHED_LIMIT_MS
        events = {identity: at for identity, at in self._events.items() if at > oldest}
        if len(events) > MAX_TOUCHED:
            events = dict(sorted(events.items(), key=lambda each: each[1])[-MAX_TOUCHED:])
        return replace(self._rest, faults=self._faults, touched=events, reported=self._reported)

    def wake_mono_ms(self) -> int | None:
        """When the next notice ends by itself."""
        return min((f.until_mono_ms for f in self._faults.values() if f.until_mono_ms is not None), default=None)

    # -- facts ------------------------------------------------------------------------

    def _library(self, fact: SwitchLibraryFound) -> None:
        if fact.present is self._rest.present:
            return
        self._rest = replace(self._rest, present=fact.present)
        if not fact.present:  # what is not there cannot be silent
            self._rest = replace(self._rest, silent_since=None, silent_why="")
        if self._faults and not fact.present:
            text = f"no LingQu library serves this node: {len(self._faults)} known faults of switches are withdrawn"
            self._tell_all(ChangeKind.SWITCHES_WITHDRAWN, fact.at, text)

    def _silent(self, fact: SwitchSilent) -> None:
        since = self._rest.silent_since
        if fact.why:
            self._rest = replace(self._rest, silent_since=since or fact.at, silent_why=fact.why)
            if since is None:
                self._tell_all(ChangeKind.SILENT, fact.at, fact.why)
        elif since is not None:
            self._rest = replace(self._rest, silent_since=None, silent_why="")
            self._tell_all(ChangeKind.ANSWERS, fact.at, "answer again")

    def _event(self, record: SwitchRecord, at: Instant) -> None:
        if problem := unusable(record):
            self.changes.append(Change(ChangeKind.UNATTRIBUTED, at, detail=problem))
            return
        identity = record.identity
        answered = self._rest.answered
        if record.assertion == NOTICE:
            self._notice(record, at)
            return
        if answered is not None and at.mono_ms < answered.mono_ms:
            return  # the list was asked for after this and has it in it
        self._events.pop(identity, None)  # so that the oldest come first
        self._events[identity] = at.mono_ms
        if record.assertion != RECOVERY:
            self._occurred(record, at, "")
        elif (was := self._faults.pop(identity, None)) is not None:
            self._rest = replace(self._rest, floor=None)
            self._tell(ChangeKind.RECOVERED, at, was)

    def _list(self, seen: SwitchListSeen) -> None:
        """A complete answer replaces the list, but for what events said since it was asked for (3.2)."""
        answered = self._rest.answered
        if answered is not None and seen.at.mono_ms < answered.mono_ms:
            return
        self._silent(SwitchSilent("", seen.at))
        listed: dict[Identity, SwitchRecord] = {}
        notices: dict[Identity, SwitchRecord] = {}
        for record in seen.records:
            if problem := unusable(record):
                self.changes.append(Change(ChangeKind.UNATTRIBUTED, seen.at, detail=problem))
            elif record.assertion == NOTICE:
                notices.setdefault(record.identity, record)
            elif record.assertion != RECOVERY:
                listed.setdefault(record.identity, record)
        for identity, fault in list(self._faults.items()):
            if not fault.is_notice and identity not in listed and not self._is_newer(identity, seen.at):
                del self._faults[identity]
                self._tell(ChangeKind.VANISHED, seen.at, fault, "the library lists it no more")
        for identity, record in listed.items():
            if not self._is_newer(identity, seen.at):
                self._occurred(record, seen.at, "found by a query", listed=True)
        self._reported = {identity: ms for identity, ms in self._reported.items() if identity in notices}
        for identity, record in notices.items():
            if identity not in self._faults and not self._was_reported(record):
                self._notice(record, seen.at)
        self._rest = replace(self._rest, answered=seen.at, floor=None)

    def _is_newer(self, identity: Identity, at: Instant) -> bool:
        """An event of this fault came after the query began, so its answer says nothing about it."""
        return self._events.get(identity, at.mono_ms) > at.mono_ms

    def _occurred(self, record: SwitchRecord, at: Instant, detail: str, listed: bool = False) -> None:
        """A fault is present. One that is known stays one; of times the library's wins over ours, of two of its own the
        first, unless a list says otherwise."""
        known = self._faults.get(record.identity)
        told_ms = moment_ms(record.raised_ms)
        if known is not None and (told_ms is None or not (listed or known.made_up)):
            raised_ms, made_up = known.record.raised_ms, known.made_up
        else:
            raised_ms, made_up = (at.wall_ms, True) if told_ms is None else (told_ms, False)
        fault = SwitchFault(replace(record, raised_ms=raised_ms), code_of(record), made_up)
        self._faults[record.identity] = fault
        if known is None or known.is_notice:
            strange = self._odd(record, at)
            self._tell(ChangeKind.OCCURRED, at, fault, "; ".join(part for part in (detail, strange) if part))

    def _notice(self, record: SwitchRecord, at: Instant) -> None:
        """Shown in one acknowledged report. A fault that is active stays active."""
        known = self._faults.get(record.identity)
        if known is not None and not known.is_notice:
            return
        self._reported.pop(record.identity, None)
        told_ms = moment_ms(record.raised_ms)
        shown = replace(record, raised_ms=at.wall_ms if told_ms is None else told_ms)
        until_ms = at.mono_ms + NOTICE_LIMIT_MS
        fault = SwitchFault(shown, code_of(record), told_ms is None, entered=self._entering, until_mono_ms=until_ms)
        self.touched = True
        self._faults[record.identity] = fault
        self._tell(ChangeKind.NOTICED, at, fault, self._odd(record, at))

    def _was_reported(self, record: SwitchRecord) -> bool:
        """The library lists a notice that was reported already; without a time any notice of this identity is it."""
        before_ms = self._reported.get(record.identity)
        return before_ms is not None and moment_ms(record.raised_ms) in (None, before_ms)

    def _leave(self, identity: Identity, fault: SwitchFault) -> None:
        self.touched = True
        del self._faults[identity]
        self._reported[identity] = fault.record.raised_ms
        while len(self._reported) > MAX_FAULTS:
            del self._reported[next(iter(self._reported))]

    def _bound(self) -> None:
        """Keep the most serious and newest of too many faults, and say so (10)."""
        surplus = len(self._faults) - MAX_FAULTS
        if surplus <= 0:
            return
        ranked = sorted(self._faults.items(), key=lambda each: (self._level(each[1]), each[1].record.raised_ms))
        for identity, _ in ranked[:surplus]:
            del self._faults[identity]
        text = (
            f"more than {MAX_FAULTS} faults at once: the {surplus} mildest and oldest are dropped until a list has them"
        )
        self._tell_all(ChangeKind.SWITCHES_CROWDED, self._now, text)

    # -- what is worth telling --------------------------------------------------------

    def _level(self, fault: SwitchFault) -> SwitchLevel:
        return self._table.level_of(fault.code).level if fault.carried is None else fault.carried

    def _odd(self, record: SwitchRecord, at: Instant) -> str:
        strange = oddity(record, at.wall_ms)
        if strange:
            place = SwitchTold(place_of(record.chip_id, record.port_id), code_of(record).text)
            self.changes.append(Change(ChangeKind.SWITCH_ODD, at, detail=strange, switch=place))
        return strange

    def _tell(self, kind: ChangeKind, at: Instant, fault: SwitchFault, detail: str = "") -> None:
        decision = self._table.level_of(fault.code)
        told = SwitchTold(
            place_of(fault.record.chip_id, fault.record.port_id),
            fault.code.text,
            self._table.name_of(fault.code),
            self._level(fault),
            decision.known,
            peer_text(fault.record),
        )
        self.changes.append(Change(kind, at, detail=detail, switch=told))

    def _tell_all(self, kind: ChangeKind, at: Instant, text: str) -> None:
        self.changes.append(Change(kind, at, detail=text, switch=SwitchTold(ALL_SWITCHES)))
