"""What `/state`, `scan` and `why` say of storage clients."""

import json
from dataclasses import replace
from typing import Any

import pytest

from nodeagent.cli.scan_storage import has_fault, is_unknown, lines
from nodeagent.core.instant import Instant
from nodeagent.core.storage import StorageClient, StorageFault, StorageInstance, StorageSeen, StorageUnread
from nodeagent.policy.storage import StorageTimes, begin, step
from nodeagent.policy.storage_listing import ClientStanding, storage_json

DPC, DTFS = StorageClient.DPC, StorageClient.DTFS
PROCESS, MEMORY = StorageFault.DPC_PROCESS, StorageFault.DPC_MEMORY
FILE = "/host/proc/odcs/dpc_status_check"
T0 = Instant(50_000, 1_800_000_000_000)  # 2027-01-15 08:00:00 UTC


def at(t_s: int) -> Instant:
    return T0.plus_ms(1000 * t_s)


def standing(*contents: dict[int, set[StorageFault]] | str, feature: str = "auto", **believed: bool) -> ClientStanding:
    """A client of DPC after readings 5 s apart, the first at T0."""
    state = begin(DPC, {StorageFault[name]: value for name, value in believed.items()})
    for number, content in enumerate(contents):
        moment = at(5 * number)
        if isinstance(content, str):
            state = step(state, StorageUnread(content, moment, missing=content == "missing"))
        else:
            instances = tuple(StorageInstance(n, frozenset(faults)) for n, faults in content.items())
            state = step(state, StorageSeen(instances, moment))
    return ClientStanding(DPC, feature, FILE, state, StorageTimes())


def listed(*contents: dict[int, set[StorageFault]] | str, now_s: int = 10, **more: Any) -> dict[str, Any]:
    (client,) = storage_json([standing(*contents, **more)], at(now_s))
    assert json.loads(json.dumps(client)) == client
    return client


def test_a_client_with_a_fault_and_a_timer() -> None:
    assert listed({0: set(), 3: {PROCESS, MEMORY}}, {0: set(), 3: {PROCESS, MEMORY}}, now_s=12) == {
        "client": "dpc",
        "name": "DPC",
        "file": FILE,
        "feature": "auto",
        "watched": True,
        "why": f"{FILE} is read",
        "known": False,
        "problem": None,
        "problem_since_ms": None,
        "gone_since_ms": None,
        "last_read_ms": at(5).wall_ms,
        "last_read_age_s": 7.0,
        "faults": [
            {
                "fault": "DPC_PROCESS",
                "code": "110001020",
                "about": "process abnormal",
                "level_at_clusterd": "SubHealthFault",
                "present": True,
                "remembered": False,
                "since_ms": T0.wall_ms,
                "pending": None,
            },
            {
                "fault": "DPC_MEMORY",
                "code": "110001021",
                "about": "short of memory",
                "level_at_clusterd": "SubHealthFault",
                "present": None,
                "remembered": False,
                "since_ms": None,
                "pending": {"becomes": True, "in_s": 588.0},
            },
        ],
        "instances": [
            {"number": 0, "faults": []},
            {
                "number": 3,
                "faults": [
                    {"fault": "DPC_PROCESS", "about": "process abnormal", "since_ms": T0.wall_ms},
                    {"fault": "DPC_MEMORY", "about": "short of memory", "since_ms": T0.wall_ms},
                ],
            },
        ],
    }


@pytest.mark.parametrize(
    ("client", "watched", "why"),
    [
        (listed(feature="off"), False, "storage.dpc is off"),
        (listed(feature="auto"), False, f"{FILE} is not there; watching begins when it is"),
        (listed("missing", feature="auto"), False, f"{FILE} is not there; watching begins when it is"),
        (listed(feature="on"), True, f"{FILE} was not read yet"),
        (listed("missing", feature="on"), True, "the last reading failed: missing"),
        (listed("damaged", feature="auto"), True, "the last reading failed: damaged"),
        (listed({0: set()}, "missing"), True, "the last reading failed: missing"),
        (
            listed({0: set()}, "missing", "missing", "missing"),
            True,
            f"{FILE} was there and is gone, the faults stay as they were",
        ),
    ],
)
def test_it_says_whether_it_is_watched_and_why(client: dict[str, Any], watched: bool, why: str) -> None:
    assert (client["watched"], client["why"]) == (watched, why)


def test_a_fault_from_before_the_restart_is_marked() -> None:
    process, memory = listed({0: {MEMORY}}, DPC_MEMORY=True)["faults"]
    assert (memory["present"], memory["remembered"], memory["since_ms"]) == (True, True, None)
    assert (process["present"], process["remembered"]) == (False, False)


def test_a_timer_whose_end_is_past_has_nothing_left() -> None:
    memory = listed({0: {MEMORY}}, "damaged", now_s=700)["faults"][1]
    assert memory["pending"] == {"becomes": True, "in_s": 0.0}


def test_text_of_a_node_without_storage_clients_is_empty() -> None:
    clients = [listed("missing"), listed(feature="off")]
    assert lines(clients) == []
    assert lines(clients, everything=True)[:2] == [
        f"storage client DPC: not watched, {FILE} is not there; watching begins when it is",
        "storage client DPC: not watched, storage.dpc is off",
    ]
    assert (has_fault(clients), is_unknown(clients)) == (False, False)


def test_text_of_a_client_that_is_well() -> None:
    clients = [listed({0: set(), 1: set()})]
    assert lines(clients) == ["storage client DPC: 2 instances"]
    assert lines(clients, everything=True) == [
        "storage client DPC: 2 instances",
        "CLIENT  CODE       STATE      LEVEL AT CLUSTERD  FAULT",
        "DPC     110001020  healthy    SubHealthFault     process abnormal",
        "DPC     110001021  not known  SubHealthFault     short of memory;"
        " counts as healthy in 590 s if nothing changes",
    ]
    assert (has_fault(clients), is_unknown(clients)) == (False, False)


def test_text_of_a_client_that_is_not() -> None:
    clients = [listed({0: set(), 4: {PROCESS, MEMORY}}, DPC_MEMORY=True)]
    assert lines(clients) == [
        "storage client DPC: 2 instances, not well: 4 (process abnormal, short of memory)",
        "CLIENT  CODE       STATE  LEVEL AT CLUSTERD  FAULT",
        "DPC     110001020  FAULT  SubHealthFault     process abnormal, since 2027-01-15 08:00:00 UTC",
        "DPC     110001021  FAULT  SubHealthFault     short of memory, known from before the restart",
    ]
    assert (has_fault(clients), is_unknown(clients)) == (True, False)


def test_text_of_a_client_that_cannot_be_read_or_is_gone() -> None:
    damaged, gone = [listed({0: set()}, "damaged")], [listed({0: set()}, "missing", "missing", "missing")]
    assert lines(damaged) == ["storage client DPC: no good reading since 2027-01-15 08:00:05 UTC: damaged"]
    assert lines(gone) == [
        f"storage client DPC: gone since 2027-01-15 08:00:15 UTC, {FILE} was there and is gone,"
        " the faults stay as they were"
    ]
    assert is_unknown(damaged)
    assert is_unknown(gone)
    assert is_unknown([listed(feature="on")])


def test_one_instance_is_one_instance() -> None:
    assert lines([listed({0: set()})]) == ["storage client DPC: 1 instance"]
    assert lines([listed({})]) == ["storage client DPC: 0 instances"]


def test_dtfs_has_its_own_faults() -> None:
    state = step(begin(DTFS), StorageSeen((StorageInstance(0, frozenset({StorageFault.DTFS_LINK})),), T0))
    dtfs = replace(standing(), client=DTFS, state=state)
    assert lines(storage_json([dtfs], T0))[1:] == [
        "CLIENT  CODE       STATE  LEVEL AT CLUSTERD  FAULT",
        "DTFS    110001023  FAULT  PreSeparateNPU     link abnormal, since 2027-01-15 08:00:00 UTC",
    ]
