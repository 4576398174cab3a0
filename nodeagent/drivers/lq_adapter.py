"""The switch library inside the driver host: cffi calls, return codes, plain values out (native-abi 16).

No cffi object leaves this module. Arrays are fresh and zeroed for every call.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from nodeagent.core.errors import LibraryError
from nodeagent.drivers.answers import AnswerDamaged, check
from nodeagent.drivers.gate import ffi, lib
from nodeagent.drivers.library import foreign_reason

QUERY = "lq_dcmi_get_fault_info"
MAX_CHIP, MAX_PORT, WHOLE_CHIP, MAX_ASSERTION = 6, 47, 0xFFFF, 2
"""What a record should hold; more may be a torn one, read while the library wrote it (16.7)."""
TORN_TRIES = 3
"""Queries until such a record is believed to be what the library means: it writes for microseconds."""
_SPARE = 128
_BATCH = 64


class LqAdapter:
    """The table of calls and the event ring of liblingqu-dcmi.so."""

    def __init__(self) -> None:
        self._events = ffi.new("struct na_switch_event[]", _BATCH)
        self._dropped = ffi.new("uint64_t *")

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """Calls by name."""
        return {"open": self.open, "init": self.init, "subscribe": self.subscribe, "faults": self.faults}

    def event_fd(self) -> int:
        """The ring's eventfd, -1 before `open`."""
        return lib.na_lq_event_fd()

    def drain(self, room: int) -> tuple[list[list[Any]], int]:
        """Events as records (see `faults`) with mono_ns behind them; total of drops."""
        events: list[list[Any]] = []
        while len(events) < room:
            got = lib.na_lq_drain(self._events, min(_BATCH, room - len(events)), self._dropped)
            events += [[*_plain(self._events[i].event), int(self._events[i].mono_ns)] for i in range(got)]
            if got < _BATCH:
                break
        return events, int(self._dropped[0])

    def open(self, path: str) -> None:
        """Load the library. Raises LibraryError: not loadable, or without a function that we need (2.1)."""
        if lib.na_lq_open(os.fsencode(path)) != 0:
            reason = foreign_reason(path) or ffi.string(lib.na_lq_load_error()).decode(errors="replace")
            raise LibraryError(
                f"{path} could not be loaded: {reason}",
                "it must be the switch library of this machine's architecture",
            )
        missing = lib.na_lq_missing()
        if missing != ffi.NULL:
            raise LibraryError(
                f"{path} has no {ffi.string(missing).decode()}",
                "name liblingqu-dcmi.so of the Ascend driver in switches.library",
            )

    def init(self) -> None:
        """Once per process, before anything else."""
        check("lq_dcmi_init", lib.na_lq_init())

    def subscribe(self) -> None:
        """Subscribe to every event of every switch."""
        check("lq_dcmi_subscribe_fault_event", lib.na_lq_subscribe())

    def faults(self, room: int) -> list[list[int]]:
        """At most `room` faults that are present, each as [alarm id, fault id, peer device, peer id, chip, port,
        severity, assertion, raised]. As many as `room` may be a list that was cut. A list with records out of range is
        read again; what comes the third time is passed on.

        Raises AnswerDamaged for a count that is negative or above `room` (D7).
        """
        records: list[list[int]] = []
        for _ in range(TORN_TRIES):
            count, listed = ffi.new("unsigned int *"), ffi.new("struct LqDcmiEvent[]", room + _SPARE)
            check(QUERY, lib.na_lq_faults(room, count, listed))
            n = int(count[0])
            if n > room:
                signed = n - 2**32 if n >= 2**31 else n
                raise AnswerDamaged(QUERY, f"a count of {signed} faults, outside 0..{room}")
            records = [_plain(listed[i]) for i in range(n)]
            if all(_in_range(record) for record in records):
                break
        return records


def _plain(event: Any) -> list[int]:
    return [
        int(event.eventType),
        int(event.subType),
        int(event.peerportDevice),
        int(event.peerportId),
        int(event.switchChipid),
        int(event.switchPortid),
        int(event.severity),
        int(event.assertion),
        int(event.alarmRaisedTime),
    ]


def _in_range(record: list[int]) -> bool:
    chip, port, assertion = record[4], record[5], record[7]
    return chip <= MAX_CHIP and (port <= MAX_PORT or port == WHOLE_CHIP) and assertion <= MAX_ASSERTION
