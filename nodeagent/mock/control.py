"""Control commands: JSON lines in, JSON lines out.

`{"do": "raise", "chip": 3, "code": "80E18005"}` answers `{"ok": true, "events": [...]}`; each event tells when
the handler of every subscriber was called. `{"ok": false, "error": ..., "hint": ...}` is a refusal. Besides the
actions of `nodeagent.mock.actions` there are state, play, log and calls.
"""

import json
import threading
from collections.abc import Callable, Mapping

from nodeagent.core.errors import MockError, NodeAgentError
from nodeagent.mock.actions import ACTIONS, bind
from nodeagent.mock.kinds import ValueProblem
from nodeagent.mock.runtime import Runtime
from nodeagent.mock.scenario import parse

DEFAULT_WAIT_S = 5.0
"""How long an injection waits for the handlers of its subscribers."""


class Control:
    """Carries out control commands on a running node; used by many connections at once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._commands: dict[str, Callable[[dict[str, object]], Mapping[str, object]]] = {
            "state": self._state,
            "play": self._play,
            "log": self._log,
            "calls": self._calls,
        }

    def answer_line(self, line: bytes) -> bytes:
        """The answer to one line, with its line end."""
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise MockError("a command is a JSON object", 'for example {"do": "state"}')
            answer = {"ok": True, **self.answer(request)}
        except ValueProblem as problem:
            answer = {"ok": False, "error": str(problem), "hint": "nodeagent mock --help lists all commands"}
        except NodeAgentError as problem:
            answer = {"ok": False, "error": problem.sentence, "hint": problem.hint}
        except ValueError as problem:
            answer = {"ok": False, "error": f"not JSON: {problem}", "hint": ""}
        return json.dumps(answer).encode() + b"\n"

    def answer(self, request: dict[str, object]) -> Mapping[str, object]:
        """Do one command; ValueProblem or NodeAgentError when it cannot be done."""
        fields = dict(request)
        name = fields.pop("do", None)
        command = self._commands.get(name) if isinstance(name, str) else None
        if command is not None:
            return command(fields)
        wait_s = fields.pop("wait_s", DEFAULT_WAIT_S)
        if not isinstance(wait_s, (int, float)) or wait_s < 0:
            raise ValueProblem("wait_s", "must be a number of 0 or more")
        if name not in ACTIONS:
            known = ", ".join([*ACTIONS, *self._commands])
            raise ValueProblem("do", f"{name!r} is not a command; known: {known}")
        bound = bind(name, fields, self._runtime.node.spec.chips)
        deliveries, storm, injected_ns = self._runtime.run(bound)
        for delivery in deliveries:
            delivery.wait(float(wait_s))
        answer: dict[str, object] = {
            "injected_mono_ns": injected_ns,
            "events": [delivery.report() for delivery in deliveries],
        }
        if storm is not None:
            answer["storm_events"] = storm.total
        return answer

    def _state(self, fields: dict[str, object]) -> Mapping[str, object]:
        _no_more(fields, ())
        return {"state": self._runtime.state()}

    def _play(self, fields: dict[str, object]) -> Mapping[str, object]:
        """text: YAML; file: its name for errors; wait: answer at the end only (default true)."""
        _no_more(fields, ("text", "file", "wait"))
        text = fields.get("text")
        if not isinstance(text, str):
            raise ValueProblem("text", "must be the YAML text of a timeline")
        scenario = parse(text, str(fields.get("file", "timeline")), self._runtime.node.spec)
        finished = threading.Event()
        self._runtime.play(scenario.timeline, finished.set)
        if fields.get("wait", True):
            finished.wait()
        return {"entries": len(scenario.timeline), "problems": list(self._runtime.problems)}

    def _log(self, fields: dict[str, object]) -> Mapping[str, object]:
        _no_more(fields, ("on",))
        on = fields.get("on")
        if not isinstance(on, bool):
            raise ValueProblem("on", "must be true or false")
        self._runtime.log.on = on
        return {}

    def _calls(self, fields: dict[str, object]) -> Mapping[str, object]:
        """count: at most so many, default 100; function: only of this one; clear: forget them afterwards."""
        _no_more(fields, ("count", "function", "clear"))
        count, function = fields.get("count", 100), fields.get("function")
        if not isinstance(count, int) or count < 0:
            raise ValueProblem("count", "must be a whole number of 0 or more")
        calls = self._runtime.log.last(count, function if isinstance(function, str) else None)
        if fields.get("clear"):
            self._runtime.log.clear()
        return {"calls": calls, "on": self._runtime.log.on}


def _no_more(fields: dict[str, object], known: tuple[str, ...]) -> None:
    for key in fields:
        if key not in known:
            raise ValueProblem(key, f"unknown key; known: {', '.join(known) or 'none'}")
