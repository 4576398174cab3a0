"""Misbehaviour of single functions: a forced return code, a hang, a crash (native-abi 18.2 rows 8 and 12)."""

from dataclasses import dataclass

from nodeagent.core.clock import Clock
from nodeagent.mock.functions import canonical


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What has to happen on the calling thread before a call gets its answer.

    hang_s: seconds to sleep, 0 for none. crash_signal: signal number that ends the process, 0 for none.
    """

    hang_s: float = 0.0
    crash_signal: int = 0


@dataclass(slots=True)
class _Rule:
    kind: str
    function: str
    logic_id: int | None
    value: int
    until_ms: int | None
    times: int | None

    def fits(self, kind: str, function: str, logic_id: int | None) -> bool:
        same_subject = self.logic_id is None or self.logic_id == logic_id
        return same_subject and self.kind == kind and self.function == function


class CallRules:
    """The rules in force; a newer rule for the same function and chip replaces the older of its kind."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: list[_Rule] = []

    def fail(self, function: str, logic_id: int | None, rc: int, times: int | None) -> None:
        """Answer `rc` to the next `times` calls (None: to all). An `rc` of 0 ends the failing.

        function: v1 or v2 name, both twins are meant; ValueError if there is no such function.
        """
        self._put("fail", function, logic_id, rc, None, times, active=rc != 0)

    def hang(self, function: str, logic_id: int | None, seconds: float, times: int | None) -> None:
        """For `seconds` from now, let calls sleep until that time is over; at most `times` of them.

        0 seconds ends the hanging for calls that were not made yet.
        """
        until_ms = self._clock.now().mono_ms + round(seconds * 1000)
        self._put("hang", function, logic_id, 0, until_ms, times, active=seconds > 0)

    def crash(self, function: str, logic_id: int | None, signal: int) -> None:
        """Let the next call end its process with `signal`."""
        self._put("crash", function, logic_id, signal, None, 1, active=True)

    def forced_code(self, function: str, logic_id: int | None) -> int | None:
        """The return code that a rule puts in place of the answer, counted as used; None without a rule."""
        rule = self._take("fail", function, logic_id)
        return rule.value if rule else None

    def disturbance(self, function: str, logic_id: int | None) -> Disturbance:
        """Hang and crash that meet this call, counted as used."""
        if not self._rules:
            return Disturbance()
        hang = self._take("hang", function, logic_id)
        crash = self._take("crash", function, logic_id)
        left_ms = 0
        if hang is not None and hang.until_ms is not None:
            left_ms = hang.until_ms - self._clock.now().mono_ms
        return Disturbance(left_ms / 1000, crash.value if crash else 0)

    def describe(self) -> list[dict[str, object]]:
        """The rules for the state report, oldest first."""
        self._forget_expired()
        return [
            {
                "kind": rule.kind,
                "function": rule.function,
                "chip": rule.logic_id,
                "value": rule.value,
                "times": rule.times,
            }
            for rule in self._rules
        ]

    def _put(
        self,
        kind: str,
        function: str,
        logic_id: int | None,
        value: int,
        until_ms: int | None,
        times: int | None,
        *,
        active: bool,
    ) -> None:
        name = canonical(function)
        self._rules = [
            rule for rule in self._rules if (rule.kind, rule.function, rule.logic_id) != (kind, name, logic_id)
        ]
        if active:
            self._rules.append(_Rule(kind, name, logic_id, value, until_ms, times))

    def _take(self, kind: str, function: str, logic_id: int | None) -> _Rule | None:
        if not self._rules:
            return None
        self._forget_expired()
        name = canonical(function)
        for rule in self._rules:
            if rule.fits(kind, name, logic_id):
                if rule.times is not None:
                    rule.times -= 1
                    if rule.times == 0:
                        self._rules.remove(rule)
                return rule
        return None

    def _forget_expired(self) -> None:
        now_ms = self._clock.now().mono_ms
        self._rules = [rule for rule in self._rules if rule.until_ms is None or rule.until_ms > now_ms]
