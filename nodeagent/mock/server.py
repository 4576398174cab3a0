"""The mock node server: library calls, event connections and control commands over one UNIX socket.

Line protocol. A library says `call <pid> <session> <function> <integers> [x<hex>]` and gets, after any
`hang <milliseconds>` (answered with `go`) or `crash <signal>`, an `rc <code> <hex> …`; a lone dash is an empty
buffer. Its event thread says `subscribe <pid> <where> <filter>`, gets `rc <code>`, then `event <token> <hex>`
lines with one `ready` between those of before and the others, and answers `ack <token> <mono ns> <wall ns>`.
The switch library's thread says `switches <pid>`, gets `rc <code>`, then says `tick` now and then and gets the events
that wait, likewise, and `end`; it answers `ack`, or `skip <token>` for an event that no handler wants.
A program that asks the BMC says `ipmi <pid>` (`nodeagent.mock.ipmi_lines`).
A line that begins with `{` is a control command (`nodeagent.mock.control`).
"""

import os
import select
import socket
import stat
import threading
from io import BufferedReader
from pathlib import Path

from nodeagent.core.clock import monotonic_ns
from nodeagent.core.errors import MockError
from nodeagent.mock.call import Answer, Call, CallerDies, refuse, u32
from nodeagent.mock.calllog import LoggedCall
from nodeagent.mock.control import Control
from nodeagent.mock.events import EventFilter, MockEvent
from nodeagent.mock.folder import NodeFolder
from nodeagent.mock.functions import INVALID_PARAMETER, OCCUPIED, TIME_OUT, TOO_MANY_PROCESSES
from nodeagent.mock.ipmi_lines import answer_ipmi
from nodeagent.mock.runtime import Runtime
from nodeagent.mock.subscribers import Subscriber
from nodeagent.mock.switch_event import EveryEvent

_MAX_PATH_BYTES = 107
_MAX_WAIT_MS = 30_000
_THREAD_STACK_BYTES = 512 * 1024
_SLICE_MS = 250


class Server:
    """Accepts connections until `stop`; a thread for each."""

    def __init__(self, runtime: Runtime, path: str | Path) -> None:
        self.runtime = runtime
        self.path = str(path)
        self.control = Control(runtime)
        self._listener = _bind(self.path)
        try:
            self._folder = NodeFolder(self.path)
        except MockError:
            self._listener.close()
            os.unlink(self.path)
            raise
        self._show_files()
        runtime.node.board.add_listener(self._show_files)
        runtime.node.storage.add_listener(self._show_files)
        self._connections: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._stopped = False

    def serve(self) -> None:
        """Accept until `stop` is called from another thread."""
        self.runtime.start()
        threading.stack_size(_THREAD_STACK_BYTES)
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                break
            with self._guard:
                if self._stopped:
                    connection.close()
                    break
                self._connections.add(connection)
            threading.Thread(target=self._attend, args=(connection,), name="client", daemon=True).start()

    def stop(self) -> None:
        """Close the socket, remove its file, end all connections."""
        with self._guard:
            self._stopped = True
            connections = list(self._connections)
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        Path(self.path).unlink(missing_ok=True)
        self.runtime.stop()
        self._folder.remove()
        for connection in connections:
            _shut(connection)

    def _show_files(self) -> None:
        """Called by the node with every change, under the lock."""
        try:
            self._folder.show(self.runtime.node)
        except OSError as problem:
            self.runtime.problems.append(f"{problem.filename}: cannot be written: {problem.strerror}")

    def _attend(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as lines:
                _Conversation(self.runtime, self.control, connection, lines).run()
        except (OSError, ValueError):
            return  # the client went away, or spoke another language
        finally:
            with self._guard:
                self._connections.discard(connection)


class _Conversation:
    """One connection from first to last line."""

    def __init__(self, runtime: Runtime, control: Control, connection: socket.socket, lines: BufferedReader) -> None:
        self._runtime = runtime
        self._control = control
        self._socket = connection
        self._lines = lines

    def run(self) -> None:
        for line in self._lines:
            if line.startswith(b"call "):
                self._call(line.decode("ascii").split())
            elif line.startswith(b"{"):
                self._socket.sendall(self._control.answer_line(line))
            elif line.startswith(b"subscribe "):
                self._subscription(line.decode("ascii").split())
                return
            elif line.startswith(b"switches "):
                self._switch_ring(int(line.split()[1]))
                return
            elif line.startswith(b"ipmi "):
                answer_ipmi(self._runtime, int(line.split()[1]), self._lines, self._socket.sendall)
                return
            else:
                raise ValueError(f"not a line of the protocol: {line[:40]!r}")

    def _call(self, words: list[str]) -> None:
        pid, session, name = int(words[1]), int(words[2]), words[3]
        blob = b""
        if words[-1].startswith("x"):
            blob = bytes.fromhex(words.pop()[1:])
        args = tuple(int(word) for word in words[4:])
        runtime = self._runtime
        with runtime.lock:
            call = runtime.dispatcher.resolve(pid, session, name, args, blob)
            disturbance = runtime.dispatcher.before(call)
        if disturbance.hang_s > 0:
            self._socket.sendall(b"hang %d\n" % round(disturbance.hang_s * 1000))
            if self._lines.readline() != b"go\n":
                raise ValueError("the library did not wake up")
        if disturbance.crash_signal:
            self._socket.sendall(b"crash %d\n" % disturbance.crash_signal)
            return
        try:
            code, outs = self._answer(call)
        except CallerDies as death:
            self._socket.sendall(b"crash %d\n" % death.signal)
            return
        if runtime.log.on:
            wall_ms = runtime.node.clock.now().wall_ms
            runtime.log.add(LoggedCall(monotonic_ns(), wall_ms, pid, name, args, code))
        fields = [b"rc %d" % code, *(out.hex().encode() or b"-" for out in outs)]
        self._socket.sendall(b" ".join(fields) + b"\n")

    def _answer(self, call: Call) -> Answer:
        runtime = self._runtime
        with runtime.lock:
            answer = runtime.dispatcher.answer(call)
            if answer[0] != 0:
                return answer
            if call.name == "dcmi_subscribe_fault_event":
                if runtime.subscribers.has(call.pid):
                    return refuse(OCCUPIED)
                if not runtime.subscribers.free_slot():
                    return OCCUPIED, (u32(1),)
        if call.name == "dcmi_get_fault_event":
            return self._wait_for_event(call)
        return answer

    def _wait_for_event(self, call: Call) -> Answer:
        """One event of one chip raised while waiting (7.3); time is up: -8006."""
        timeout_ms, flags, code, severity, node_type = call.args
        if not -1 <= timeout_ms <= _MAX_WAIT_MS:
            return refuse(INVALID_PARAMETER)
        runtime = self._runtime
        wanted = EventFilter(flags, code, severity, node_type, call.the_chip.logic_id)
        found: list[MockEvent] = []
        arrived = threading.Event()

        def listen(event: MockEvent) -> None:
            if not found and wanted.matches(event):
                found.append(event)
                arrived.set()

        with runtime.lock:
            if runtime.subscribers.has(call.pid):
                return refuse(OCCUPIED)  # not together with a subscription in one process (7.4)
            runtime.node.add_listener(listen)
        try:
            left_ms = timeout_ms
            while left_ms != 0 and not found and not _is_gone(self._socket):
                step_ms = _SLICE_MS if left_ms < 0 else min(left_ms, _SLICE_MS)
                arrived.wait(step_ms / 1000)
                left_ms = left_ms if left_ms < 0 else left_ms - step_ms
        finally:
            with runtime.lock:
                runtime.node.remove_listener(listen)
        if not found:
            return refuse(TIME_OUT)
        return 0, (found[0].to_bytes(extended=call.v2),)

    def _subscription(self, words: list[str]) -> None:
        pid, place = int(words[1]), [int(part) for part in words[2].split(",")]
        flags, code, severity, node_type = (int(word) for word in words[3:7])
        runtime = self._runtime
        with runtime.lock:
            node = runtime.node
            chip = node.chips.get(place[0]) if len(place) == 1 else node.chip_at(place[0], place[1])
            refusal = 0
            if max(place) >= 0 and chip is None:
                refusal = INVALID_PARAMETER
            elif runtime.subscribers.has(pid) or not runtime.subscribers.free_slot():
                refusal = OCCUPIED
            if refusal:
                self._socket.sendall(b"rc %d\n" % refusal)
                return
            wanted = EventFilter(flags, code, severity, node_type, chip.logic_id if chip else None)
            subscriber = runtime.subscribers.add(pid, wanted)
            early = node.present_events() if node.spec.early_events else []
            runtime.subscribers.send_before(subscriber, early)
        writer = threading.Thread(target=self._write_events, args=(subscriber,), name="events", daemon=True)
        try:
            self._socket.sendall(b"rc 0\n")
            writer.start()
            for line in self._lines:
                _, token, mono_ns, wall_ns = line.split()
                subscriber.acknowledge(int(token), int(mono_ns), int(wall_ns))
        finally:
            with runtime.lock:
                runtime.subscribers.remove(subscriber)

    def _switch_ring(self, pid: int) -> None:
        """The ring of a process: the library looks into it every 300 ms (native-abi 16.7)."""
        runtime = self._runtime
        with runtime.lock:
            if not runtime.switch_rings.free_slot():
                self._socket.sendall(b"rc %d\n" % TOO_MANY_PROCESSES)
                return
            ring = runtime.switch_rings.add(pid, EveryEvent())
        try:
            self._socket.sendall(b"rc 0\n")
            for line in self._lines:
                words = line.split()
                if words[0] == b"tick":
                    waiting = [
                        b"event %d %s\n" % (d.event.token, d.event.to_bytes().hex().encode())
                        for d in ring.take_waiting()
                    ]
                    self._socket.sendall(b"".join(waiting) + b"end\n")
                elif words[0] == b"skip":
                    ring.skip(int(words[1]))
                else:
                    ring.acknowledge(int(words[1]), int(words[2]), int(words[3]))
        finally:
            with runtime.lock:
                runtime.switch_rings.remove(ring)

    def _write_events(self, subscriber: Subscriber[MockEvent]) -> None:
        extended = self._runtime.node.spec.product.v2
        while True:
            going, delivery = subscriber.take()
            if not going:
                _shut(self._socket)
                return
            line = b"ready\n"
            if delivery is not None:
                payload = delivery.event.to_bytes(extended=extended).hex().encode()
                line = b"event %d %s\n" % (delivery.event.token, payload)
            try:
                self._socket.sendall(line)
            except OSError:
                return  # the reading side sees the same and ends the subscription


def _bind(path: str) -> socket.socket:
    """Listen at a path; a socket file that nobody serves any more is replaced."""
    if len(os.fsencode(path)) > _MAX_PATH_BYTES:
        raise MockError(f"{path}: too long for a socket, the limit is {_MAX_PATH_BYTES} bytes", "choose another path")
    if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode):
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(path) == 0:
                raise MockError(f"{path}: another mock node is served there", "stop it or choose another --socket")
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
    except OSError as problem:
        listener.close()
        raise MockError(f"{path}: cannot be a socket: {problem.strerror}") from None
    listener.listen(128)
    return listener


def _is_gone(connection: socket.socket) -> bool:
    """Whether the other side hung up while it waits for our answer."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""


def _shut(connection: socket.socket) -> None:
    """Wake everybody who uses a connection; one that is closed already stays so."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
