"""Questions to the running daemon over a UNIX socket (`scan`, `why`, `release`, `table diff`): a JSON line in, one out.

Reads the core loop's present state, which nobody changes; so an answer never waits for the loop.
"""

import contextlib
import json
import logging
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nodeagent.core.clock import Clock
from nodeagent.core.errors import NodeAgentError
from nodeagent.daemon.core_loop import CoreLoop
from nodeagent.policy.switch_why import explain_switch
from nodeagent.policy.why import as_json, explain_chip

log = logging.getLogger("nodeagent.socket")

MAX_REQUEST_BYTES = 4096
CLIENT_TIMEOUT_S = 5.0
MAX_CLIENTS = 8
RETRY_S = 30.0


class SocketError(NodeAgentError):
    """The daemon cannot be asked: nobody listens at the socket, or the answer is no answer."""

    code = "NA602"


class NoDaemonError(SocketError):
    """Nobody listens at the socket: no daemon runs here, or it runs without one."""


class SocketApi:
    """The listening end. path: of the socket; its folder is made when missing. state: answers `state`."""

    def __init__(self, path: Path, core: CoreLoop, clock: Clock, state: Callable[[], Any] = dict) -> None:
        self._path = path
        self._core = core
        self._clock = clock
        self._listener: socket.socket | None = None
        self._stopping = threading.Event()
        self._slots = threading.BoundedSemaphore(MAX_CLIENTS)
        self._answers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "why": self._why,
            "why_switch": self._why_switch,
            "chips": self._chips,
            "state": lambda _: state(),
        }

    def register(self, question: str, answer: Callable[[dict[str, Any]], Any]) -> None:
        """Answer one more question. answer: from the request to JSON; never raises, and does not wait."""
        self._answers[question] = answer

    def run(self) -> None:
        """Serve until `stop`. A socket that cannot be made is said once and tried again: the rest goes on without."""
        said = ""
        while not self._stopping.is_set():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                self._listener = listener
                try:
                    self._listen(listener)
                    said = ""
                    self._accept(listener)
                except OSError as error:
                    problem = error.strerror or str(error)
                    if problem != said and not self._stopping.is_set():
                        said = problem
                        log.warning("questions are not answered, no socket at path=%s problem=%r", self._path, problem)
                    self._stopping.wait(RETRY_S)

    def _listen(self, listener: socket.socket) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)
        listener.bind(str(self._path))
        os.chmod(self._path, 0o600)
        listener.listen(MAX_CLIENTS)

    def _accept(self, listener: socket.socket) -> None:
        """Hand clients to threads; ends with an OSError, which `stop` causes too."""
        while True:
            client, _ = listener.accept()
            self._slots.acquire()
            threading.Thread(target=self._serve, args=(client,), name="socket", daemon=True).start()

    def stop(self) -> None:
        """Make `run` return and remove the socket."""
        self._stopping.set()
        with contextlib.suppress(OSError):  # closed already, or never made
            if self._listener is not None:
                self._listener.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):  # the folder may not let us; the next start removes it
            self._path.unlink(missing_ok=True)

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                client.settimeout(CLIENT_TIMEOUT_S)
                line = client.makefile("rb").readline(MAX_REQUEST_BYTES)
                client.sendall(json.dumps(self._answer(line), ensure_ascii=False).encode() + b"\n")
        except OSError as error:
            log.debug("a client went away: %s", error)
        finally:
            self._slots.release()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            answer = self._answers[request["ask"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"ok": False, "error": "not a question that this daemon knows"}
        return {"ok": True, "answer": answer(request)}

    def _why(self, request: dict[str, Any]) -> dict[str, Any] | None:
        state, config, now = self._core.state, self._core.config, self._clock.now()
        logic_id = request.get("logic_id")
        report = explain_chip(state, logic_id, config, now) if isinstance(logic_id, int) else None
        return None if report is None else as_json(report)

    def _why_switch(self, request: dict[str, Any]) -> dict[str, Any] | None:
        chip, port = request.get("switch_chip"), request.get("port")
        if not isinstance(chip, int) or not isinstance(port, int | None):
            return None
        return explain_switch(self._core.state, chip, port, self._core.config)

    def _chips(self, _: dict[str, Any]) -> list[dict[str, Any]]:
        """Every chip's codes with their severity, for the question what another table would do."""
        return [
            {
                "logic_id": chip.chip.logic_id,
                "physical_id": chip.chip.physical_id,
                "codes": [[f.code, f.severity] for f in chip.faults.values()],
            }
            for chip in self._core.state.chips.values()
        ]


def ask(path: Path, **question: Any) -> Any:
    """Ask the daemon at a socket. Raises SocketError with what to do when it does not answer, NoDaemonError when
    there is nobody to answer."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(CLIENT_TIMEOUT_S)
            connection.connect(str(path))
            connection.sendall(json.dumps(question).encode() + b"\n")
            line = connection.makefile("rb").readline()
        reply = json.loads(line)
    except (OSError, ValueError) as error:
        hint = "is the daemon running? name its socket with --set daemon.socket=PATH, or use --dry-run"
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        nobody = isinstance(error, FileNotFoundError | NotADirectoryError | ConnectionRefusedError)
        raise (NoDaemonError if nobody else SocketError)(f"no daemon answers at {path}: {reason}", hint) from error
    if not isinstance(reply, dict) or not reply.get("ok"):
        raise SocketError(f"the daemon at {path} does not know this question", "are both of the same version?")
    return reply["answer"]
