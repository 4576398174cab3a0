"""Control client of a mock node."""

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from nodeagent.core.errors import MockError


class MockUnreachable(MockError):
    """Nobody serves a mock node at the socket, or it went away."""

    code = "NA403"


@dataclass(frozen=True, slots=True)
class CallbackTime:
    """When the handler of a subscriber was called for an injected event.

    mono_ns, wall_ns: nanoseconds of CLOCK_MONOTONIC and of the wall clock just before the call.
    delay_ms: milliseconds since the injection.
    """

    pid: int
    mono_ns: int
    wall_ns: int
    delay_ms: float


@dataclass(frozen=True, slots=True)
class Injected:
    """An event that a command made. missing: subscribers whose handler was not called within the wait.

    port: of a switch event, None for its whole chip and for events of NPU chips.
    """

    token: int
    chip: int
    code: str
    assertion: int
    injected_mono_ns: int
    missing: int
    callbacks: tuple[CallbackTime, ...]
    port: int | None = None


class MockControl:
    """One control connection. Not thread-safe: a thread has its own.

    Every method raises MockUnreachable without a server and MockError when the server refuses.
    """

    def __init__(self, socket_path: str | Path) -> None:
        self._path = str(socket_path)
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(self._path)
        except OSError as problem:
            self._socket.close()
            raise self._unreachable(problem.strerror or str(problem)) from None
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> "MockControl":
        """The client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; the node goes on."""
        self._lines.close()
        self._socket.close()

    def command(self, do: str, **fields: object) -> dict[str, Any]:
        """Send any command of docs/mock.md; fields that are None are left out. Returns the whole answer."""
        request = {"do": do, **{key: value for key, value in fields.items() if value is not None}}
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            line = self._lines.readline()
        except OSError as problem:
            raise self._unreachable(problem.strerror or str(problem)) from None
        if not line:
            raise self._unreachable("it closed the connection")
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise MockError(answer["error"], answer["hint"])
        return answer

    def raise_fault(self, chip: int, code: str, **fields: object) -> list[Injected]:
        """Let a fault occur; fields as in a timeline (severity, node_type, listed, event, wait_s, …)."""
        return self._inject("raise", chip=chip, code=code, **fields)

    def clear_fault(self, chip: int, code: str, **fields: object) -> list[Injected]:
        """Let a fault recover."""
        return self._inject("clear", chip=chip, code=code, **fields)

    def notice(self, chip: int, code: str, **fields: object) -> list[Injected]:
        """Send a one-off event."""
        return self._inject("notice", chip=chip, code=code, **fields)

    def raise_switch_fault(self, chip: int, code: str, **fields: object) -> list[Injected]:
        """Let a switch fault occur; fields as in a timeline (port, peer, peer_id, time_ms, wait_s, …)."""
        return self._inject("switch_raise", chip=chip, code=code, **fields)

    def clear_switch_fault(self, chip: int, code: str, **fields: object) -> list[Injected]:
        """Let a switch fault recover."""
        return self._inject("switch_clear", chip=chip, code=code, **fields)

    def switch_notice(self, chip: int, code: str, **fields: object) -> list[Injected]:
        """Send a one-shot notice of a switch."""
        return self._inject("switch_notice", chip=chip, code=code, **fields)

    def claim_switch_count(self, value: int | None) -> None:
        """Let queries of switch faults claim so many records; None = the truth again."""
        self.command("switch_count", value=value)

    def switch_storm(self, *, leave_raised: bool, **fields: object) -> list[Injected]:
        """Let three codes occur on every port of all switch chips, and recover unless left raised."""
        return self._inject("switch_storm", leave_raised=leave_raised, **fields)

    def raise_alarm(self, code: str, **fields: object) -> None:
        """Let the BMC list an alarm; fields as in a timeline (device_id, severity, subject, raised_s)."""
        self.command("raise_alarm", code=code, **fields)

    def clear_alarm(self, code: str, *, device_id: int | None = None) -> None:
        """Take an alarm off the list of the BMC; None = of all devices."""
        self.command("clear_alarm", code=code, device_id=device_id)

    def set_bmc(self, **fields: object) -> None:
        """Let the BMC answer as in a timeline (completion_code, silent, delay_s, gone, …); without fields well."""
        self.command("bmc", **fields)

    def set_storage(self, client: str, *instances: str, **fields: object) -> None:
        """Say what the state file of `dpc` or `dtfs` is: its instances, or fields as in a timeline (text, mode, gone).

        With neither it is there, with one healthy instance.
        """
        told = {"instances": list(instances)} if instances else {}
        self.command(f"storage_{client}", **told, **fields)

    def drop_card(self, card: int) -> None:
        """Lose a card."""
        self.command("drop", card=card)

    def return_card(self, card: int) -> None:
        """Bring a lost card back."""
        self.command("return", card=card)

    def set_gateway(self, chip: int, value: int) -> None:
        """Set the network health value, 0..8 or 255."""
        self.command("gateway", chip=chip, value=value)

    def set_address(self, chip: int, ip: str) -> None:
        """Give the network port another IPv4 or IPv6 address; `none` takes it away."""
        self.command("address", chip=chip, ip=ip)

    def set_link(self, chip: int, *, up: bool, wait_s: float | None = None) -> list[Injected]:
        """Take the network port down or bring it up."""
        return self._inject("link", chip=chip, state="up" if up else "down", wait_s=wait_s)

    def fail(self, function: str, code: int, *, chip: int | None = None, times: int | None = None) -> None:
        """Answer `code` in place of a function's answer; 0 ends it."""
        self.command("fail", function=function, code=code, chip=chip, times=times)

    def hang(self, function: str, seconds: float, *, chip: int | None = None, times: int | None = None) -> None:
        """For `seconds` from now let calls of a function sleep until they are over; 0 ends it."""
        self.command("hang", function=function, seconds=seconds, chip=chip, times=times)

    def crash(self, function: str, *, chip: int | None = None, signal: int | None = None) -> None:
        """End the process that makes the next call of a function."""
        self.command("crash", function=function, chip=chip, signal=signal)

    def storm(self, events_per_s: float, seconds: float, **fields: object) -> int:
        """Begin a storm; returns how many events it will have. `state` tells how many were sent."""
        answer = self.command("storm", events_per_s=events_per_s, seconds=seconds, **fields)
        return int(answer["storm_events"])

    def reset(self, chip: int) -> None:
        """Reset a chip."""
        self.command("reset", chip=chip)

    def play(self, path: str | Path, *, wait: bool = True) -> dict[str, Any]:
        """Play the timeline of a file; with `wait` return at its end."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as problem:
            raise MockError(f"{path}: cannot be read: {problem.strerror}") from None
        return self.command("play", text=text, file=str(path), wait=wait)

    def state(self) -> dict[str, Any]:
        """The node in plain values; see `nodeagent.mock.state`."""
        state: dict[str, Any] = self.command("state")["state"]
        return state

    def log_calls(self, on: bool) -> None:
        """Switch the log of library calls."""
        self.command("log", on=on)

    def calls(self, count: int = 100, *, function: str | None = None, clear: bool = False) -> list[dict[str, Any]]:
        """The newest logged calls, oldest first."""
        calls: list[dict[str, Any]] = self.command("calls", count=count, function=function, clear=clear)["calls"]
        return calls

    def _inject(self, do: str, **fields: object) -> list[Injected]:
        return injected(self.command(do, **fields))

    def _unreachable(self, reason: str) -> MockUnreachable:
        return MockUnreachable(
            f"no mock node at {self._path}: {reason}",
            "start one with `nodeagent mock serve` and name its socket with --socket or NODEAGENT_MOCK_SOCKET",
        )


def injected(answer: dict[str, Any]) -> list[Injected]:
    """The events in the answer of a command."""
    return [
        Injected(**{**event, "callbacks": tuple(CallbackTime(**entry) for entry in event["callbacks"])})
        for event in answer["events"]
    ]
