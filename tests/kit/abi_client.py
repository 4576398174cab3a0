"""A process that calls the mock library through ctypes, one call per line of JSON; and its remote control.

The tests need a process of its own for whatever may hang, crash or subscribe. Run as a script it is that process;
imported it gives `AbiClient`, which talks to one.
"""

import ctypes
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVENT_BYTES, SWITCH_EVENT_BYTES = 360, 112
LIMIT_S = 30.0


def out(size_bytes: int, fill: int = 0) -> dict[str, int]:
    """An output buffer of that size, filled with a byte beforehand."""
    return {"out": size_bytes, "fill": fill}


def data(content: bytes) -> dict[str, str]:
    """A buffer with content; what the library makes of it comes back."""
    return {"data": content.hex()}


def event_filter(flags: int = 0, code: int = 0, severity: int = 0, node_type: int = 0) -> dict[str, list[int]]:
    """A filter by value."""
    return {"filter": [flags, code, severity, node_type]}


def switch_filter(flags: int = 0, type: int = 0, id: int = 0, severity: int = 0, chip: int = 0) -> dict[str, list[int]]:
    """A filter of the switch library by value."""
    return {"switch filter": [flags, type, id, severity, chip]}


@dataclass(frozen=True)
class Result:
    """Return code and the buffers of a call, in the order of its arguments."""

    rc: int
    outs: tuple[bytes, ...]

    def number(self, index: int = 0) -> int:
        """A buffer of four bytes as a signed number."""
        return int.from_bytes(self.outs[index][:4], "little", signed=True)

    def numbers(self, index: int, count: int) -> list[int]:
        """The first `count` unsigned numbers of a buffer."""
        raw = self.outs[index]
        return [int.from_bytes(raw[at : at + 4], "little") for at in range(0, 4 * count, 4)]


@dataclass(frozen=True)
class Heard:
    """An event as a handler got it. within: whether subscribe had not returned yet."""

    raw: bytes
    within: bool
    thread: str
    address: int

    @property
    def code(self) -> int:
        return int.from_bytes(self.raw[8:12], "little")

    @property
    def chip(self) -> int:
        return int.from_bytes(self.raw[12:14], "little")

    @property
    def severity(self) -> int:
        return self.raw[18]

    @property
    def assertion(self) -> int:
        return self.raw[19]

    @property
    def raised_time_ms(self) -> int:
        return int.from_bytes(self.raw[32:40], "little")


class AbiClient:
    """Remote control of a client process on the mock library at `library`."""

    def __init__(self, library: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(library)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def send(self, **request: Any) -> None:
        """Ask without waiting for the answer."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """The next answer; EOFError when the process died."""
        guard = threading.Timer(LIMIT_S, self.process.kill)
        guard.start()
        line = self.process.stdout.readline()
        guard.cancel()
        if not line:
            raise EOFError(f"client ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, **request: Any) -> Any:
        self.send(**request)
        return self.receive()

    def call(self, name: str, *args: Any) -> Result:
        """Call a function; arguments are numbers, `out`, `data` and `event_filter`."""
        return self.result(self.ask(call=name, args=args))

    @staticmethod
    def result(answer: Any) -> Result:
        return Result(answer["rc"], tuple(bytes.fromhex(text) for text in answer["outs"]))

    def subscribe(self, name: str = "dcmi_subscribe_fault_event", *where: int, **filter_fields: int) -> int:
        """Subscribe with a collecting handler (v1 for all chips unless told otherwise); the return code."""
        ids = where or ((-1,) if name.startswith("dcmiv2") else (-1, -1))
        return self.ask(subscribe=name, args=[*ids, event_filter(**filter_fields)])

    def subscribe_switches(self, handler: bool = True, **filter_fields: int) -> int:
        """Subscribe at the switch library with the same handler, or (handler=False) end that; the return code."""
        name = "lq_dcmi_subscribe_fault_event"
        return self.ask(subscribe=name, args=[switch_filter(**filter_fields)], handler=handler)

    def heard(self, count: int) -> list[Heard]:
        """Wait until `count` events came; all that came, oldest first."""
        answer = self.ask(heard=count)
        return [Heard(bytes.fromhex(raw), within, thread, address) for raw, within, thread, address in answer]

    def exit_code(self) -> int:
        """Wait for the end of the process."""
        return self.process.wait(LIMIT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class _Filter(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("code", ctypes.c_uint32),
        ("severity", ctypes.c_uint8),
        ("node_type", ctypes.c_uint8),
        ("resv", ctypes.c_uint8 * 32),
    )


class _SwitchFilter(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("id", ctypes.c_uint32),
        ("severity", ctypes.c_uint8),
        ("chip", ctypes.c_uint32),
    )


_Handler = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Process:
    def __init__(self, path: str) -> None:
        self.path = path
        self.library = ctypes.CDLL(path)
        self.events: list[tuple[str, bool, str, int]] = []
        self.changed = threading.Condition()
        self.inside = False
        self.bytes = SWITCH_EVENT_BYTES if "lingqu" in path else EVENT_BYTES
        self.handler = _Handler(self.on_event)

    def on_event(self, address: int) -> None:
        raw = ctypes.string_at(address, self.bytes).hex()
        name = Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text().strip()
        with self.changed:
            self.events.append((raw, self.inside, name, address))
            self.changed.notify_all()

    def arguments(self, given: list[Any]) -> tuple[list[Any], list[Any]]:
        values, buffers = [], []
        for item in given:
            if isinstance(item, int):
                values.append(ctypes.c_int(item) if item < 0 else ctypes.c_uint(item))
            elif item is None:
                values.append(None)
            elif "filter" in item:
                values.append(_Filter(*item["filter"]))
            elif "switch filter" in item:
                values.append(_SwitchFilter(*item["switch filter"]))
            else:
                content = bytes.fromhex(item["data"]) if "data" in item else bytes([item["fill"]]) * item["out"]
                buffers.append(ctypes.create_string_buffer(content, len(content)))
                values.append(buffers[-1])
        return values, buffers

    def answer(self, request: dict[str, Any]) -> Any:
        if "call" in request:
            values, buffers = self.arguments(request["args"])
            rc = getattr(self.library, request["call"])(*values)
            return {"rc": rc, "outs": [buffer.raw.hex() for buffer in buffers]}
        if "subscribe" in request:
            values, _ = self.arguments(request["args"])
            self.inside = True
            handler = self.handler if request.get("handler", True) else None
            rc = getattr(self.library, request["subscribe"])(*values, handler)
            self.inside = False
            return rc
        if "heard" in request:
            with self.changed:
                self.changed.wait_for(lambda: len(self.events) >= request["heard"], LIMIT_S / 2)
                return list(self.events)
        if "peek" in request:
            return ctypes.string_at(request["peek"], self.bytes).hex()
        if "threads" in request:
            return self.in_threads(request["threads"], request["calls"])
        handle = self.library._handle
        self.library = None
        ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle))
        self.library = ctypes.CDLL(self.path)
        return "reloaded"

    def in_threads(self, count: int, calls: int) -> list[int]:
        """How many health calls of each thread were answered with success."""
        good = [0] * count

        def work(index: int) -> None:
            health = ctypes.c_uint()
            for _ in range(calls):
                good[index] += self.library.dcmi_get_device_health(index, 0, ctypes.byref(health)) == 0

        threads = [threading.Thread(target=work, args=(index,)) for index in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return good


def _main() -> None:
    process = _Process(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(process.answer(json.loads(line))), flush=True)
    os._exit(0)


if __name__ == "__main__":
    _main()
