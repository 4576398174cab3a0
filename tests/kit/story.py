"""The story that must end the same however often the daemon is killed: five link outages, isolation, a lift.

In-process: the engine with what a daemon keeps over a kill and nothing else, namely the published object, the state
file (through its JSON text) and the pretended hardware. Shared by the tests and by tools/bench.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from kit.engine import EPOCH_MS, Bench, at, listed
from kit.rules import DEFAULTS, LINK

from nodeagent.core.observation import CarriedOver, FaultOccurred, FaultRecovered, ManualField, Observation
from nodeagent.policy.memory import remember
from nodeagent.render.device_info import fingerprint, render_device_info
from nodeagent.render.operator_fields import manual_ids, upgrade_reasons
from nodeagent.render.reading import parse_device_info

ECC = 0x80C98008
OUTAGE_S, PERIOD_S, OUTAGES = 30, 200, 5
LIFT_S = OUTAGES * PERIOD_S + 100
END_S = LIFT_S + 200
RESTART_S = 1.0


@dataclass(frozen=True)
class Happening:
    """Something that happens to the hardware (code, present or not) or to the object (lift)."""

    at_s: float
    code: int = 0
    present: bool = False


def happenings() -> list[Happening]:
    """Link outages of 30 s, an ECC code in between that stays, and the operator's lift."""
    found = []
    for number in range(OUTAGES):
        found += [
            Happening(number * PERIOD_S + 10, LINK, True),
            Happening(number * PERIOD_S + 10 + OUTAGE_S, LINK, False),
        ]
    found += [Happening(333, ECC, True), Happening(LIFT_S)]
    return sorted(found, key=lambda h: h.at_s)


@dataclass
class Run:
    """One run of the story. kills: moments at which the daemon dies. late_write: it dies before its last write."""

    kills: Collection[float] = ()
    late_write: bool = False
    published: dict[str, str] = field(default_factory=dict)
    state_file: str = "{}"
    before_lift: str = ""
    hardware: dict[int, None] = field(default_factory=dict)
    bench: Bench = field(default_factory=lambda: Bench(rules=DEFAULTS, begin_s=0))

    def play(self) -> tuple[str, str]:
        """Play to the end; what is published just before the lift and at the end, times apart."""
        self._step(0.0, [listed([], 0)])
        pending = happenings()
        kills = sorted(self.kills)
        while pending or kills or self._wake_s() < END_S:
            moment = min([self._wake_s(), *(h.at_s for h in pending[:1]), *kills[:1], END_S])
            if kills and moment == kills[0]:
                self._kill(kills.pop(0), pending)
            elif pending and moment == pending[0].at_s:
                self._happen(pending.pop(0))
            elif moment < END_S:
                self._step(moment, [])
            else:
                break
        self._step(END_S, [])
        return self.before_lift, times_apart(self.published)

    def _lift(self) -> None:
        """The operator empties the field."""
        self.before_lift = times_apart(self.published)
        self.published["ManuallySeparateNPU"] = ""

    def _wake_s(self) -> float:
        wake = self.bench.last.wake_at_mono_ms if self.bench.last else None
        return END_S if wake is None else wake / 1000

    def _happen(self, happening: Happening) -> None:
        moment = happening.at_s
        if not happening.code:
            self._lift()
            self._step(moment, [ManualField(frozenset(), self.bench.state.acknowledged, at(moment))])
        elif happening.present:
            self.hardware[happening.code] = None
            self._step(moment, [FaultOccurred(0, happening.code, None, at(moment))])
        else:
            self.hardware.pop(happening.code, None)
            self._step(moment, [FaultRecovered(0, happening.code, at(moment))])

    def _step(self, moment: float, batch: list[Observation], write: bool = True) -> None:
        self.bench.step(moment, *batch)
        self._save(moment)
        if write:
            self.published = render_device_info(self.bench.view, EPOCH_MS // 1000 + int(moment) + 1)
            self.bench.ack(moment)
            self._save(moment)

    def _save(self, moment: float) -> None:
        self.state_file = json.dumps({"saved_at_s": at(moment).wall_ms // 1000, "chips": remember(self.bench.state)})

    def _kill(self, moment: float, pending: list[Happening]) -> None:
        """The daemon dies and comes back RESTART_S later; of what happened meanwhile it only sees the driver's list."""
        if self.late_write:
            self._step(moment, [], write=False)
        back_s = moment + RESTART_S
        while pending and pending[0].at_s <= back_s:
            missed = pending.pop(0)
            if not missed.code:
                self._lift()
            elif missed.present:
                self.hardware[missed.code] = None
            else:
                self.hardware.pop(missed.code, None)
        memory: dict[str, Any] = json.loads(self.state_file)
        carried = CarriedOver(
            parse_device_info(self.published).carried(),
            at(back_s),
            manual_ids(self.published),
            upgrade_reasons(self.published),
            {int(p): m for p, m in memory["chips"].items()},
            same_boot=True,
        )
        self.bench = Bench(rules=DEFAULTS, restored=carried, begin_s=back_s)
        self._step(back_s, [listed(list(self.hardware), back_s)])


def times_apart(data: dict[str, str]) -> str:
    """Levels, lists and reasons of an object, without any time: a restart may see an event a second later."""
    return re.sub(r'"upgrade_time\\*":\d+', "", fingerprint(data))
