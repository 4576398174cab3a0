"""A pretended ClusterD by the rules of node-faults 13.1 to 13.6, written from the sheet and not from our own code.

Pure: the time is set by whoever uses it. `kit.clusterd_server` puts the gRPC service around it, `ClusterdTarget` the
ConfigMap form without an API server.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LEVELS_FILE = Path(__file__).parent.parent / "contract" / "data" / "public_fault_levels.tsv"
BURST, PER_SECOND = 100, 1
_ID = re.compile(r"[a-zA-Z0-9\-_.]{8,128}")
_NODE = re.compile(r"[a-z0-9]([a-z0-9\-.]{0,251}[a-z0-9])?")
_DESCRIPTION = re.compile(r"[\S ]{0,512}")
_WINDOW_MS = 5_000
_EARLIEST_MS = 1_735_689_600_000

Obj = dict[str, Any]


def shipped() -> tuple[dict[str, str], set[str]]:
    """Levels by code and the senders of the shipped configuration (13.6)."""
    levels, senders = {}, set()
    for line in LEVELS_FILE.read_text().splitlines()[1:]:
        kind, value, level, _, is_shipped, *_ = line.split("\t")
        if is_shipped == "yes" and kind == "code":
            levels[value] = level
        elif is_shipped == "yes":
            senders.add(value)
    return levels, senders


@dataclass
class Cached:
    """A fault in the cache."""

    code: str
    level: str
    devices: tuple[int, ...]
    time_ms: int
    added_ms: int


@dataclass
class Bucket:
    """Tokens of one sender."""

    tokens: float = BURST
    at_ms: int = 0

    def take(self, now_ms: int) -> bool:
        self.tokens = min(BURST, self.tokens + (now_ms - self.at_ms) / 1000 * PER_SECOND)
        self.at_ms = now_ms
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


Key = tuple[str, str]
"""Node name, resource + faultId."""


@dataclass
class FakeClusterd:
    """State of ClusterD. answers: scripted codes before the normal ones, 410 without using a token.

    received: every message that came, taken or not. broken: rules of 13.1 that a message broke, for tests that want
    none. now_ms: its clock.
    """

    now_ms: int = 0
    cache: dict[Key, Cached] = field(default_factory=dict)
    answers: list[tuple[int, str]] = field(default_factory=list)
    received: list[Obj] = field(default_factory=list)
    taken: list[Obj] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    dropped: int = 0
    _deletes: list[tuple[int, Key]] = field(default_factory=list)
    _buckets: dict[str, Bucket] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.levels, self.senders = shipped()

    def advance_to(self, now_ms: int) -> None:
        """Let time pass; planned deletes happen on the way."""
        self.now_ms = max(self.now_ms, now_ms)
        for _, key in [each for each in self._deletes if each[0] <= self.now_ms]:
            self.cache.pop(key, None)
        self._deletes = [each for each in self._deletes if each[0] > self.now_ms]

    def send(self, message: Obj) -> tuple[int, str]:
        """One message; code and text of the answer (13.2)."""
        self.received.append(message)
        if self.answers:
            code, info = self.answers.pop(0)
            if code:
                return code, info
        resource = message.get("resource", "")
        if resource not in self.senders:
            return 410, "limiter not found"
        if not self._buckets.setdefault(resource, Bucket(at_ms=self.now_ms)).take(self.now_ms):
            return 410, "rate limited"
        if (problem := self._message_problem(message)) is not None:
            self.broken.append(problem)
            return 409, problem
        good = []
        for fault in message["faults"]:
            if (problem := self._fault_problem(fault)) is None:
                good.append(fault)
            else:
                self.broken.append(problem)
        if not good:
            return 409, "no valid fault"
        self.taken.append(message)
        for fault in good:
            for influence in fault["influence"]:
                self._apply(resource, fault, influence)
        return 0, "ok"

    def config_map_written(self, old: Obj | None, new: Obj) -> None:
        """An object was created (old None) or changed. An old content that is no JSON hides the change (13.4)."""
        if new["metadata"].get("labels", {}).get("mc-consumer-publicfault") != "true":
            return
        if old is not None and _parsed(old) is None:
            return
        message = _parsed(new)
        if message is not None and self.send(message)[0] == 410:
            self.dropped += 1  # only logged

    def faults_of(self, node: str) -> dict[str, Cached]:
        """What is cached for a node, by code."""
        return {cached.code: cached for (name, _), cached in self.cache.items() if name == node}

    def _message_problem(self, message: Obj) -> str | None:
        if not _ID.fullmatch(message.get("id", "")):
            return "id"
        if not _is_stamp(message.get("timestamp")):
            return "timestamp"
        if message.get("version") != "1.0":
            return "version"
        return None if 1 <= len(message.get("faults", [])) <= 100 else "faults"

    def _fault_problem(self, fault: Obj) -> str | None:
        checks = {
            "faultId": _ID.fullmatch(fault["faultId"]),
            "faultType": fault["faultType"] in ("NPU", "Node", "Network", "Storage"),
            "faultCode": len(fault["faultCode"].encode()) == 9 and fault["faultCode"] in self.levels,
            "faultTime": _is_stamp(fault["faultTime"]),
            "assertion": fault["assertion"] in ("occur", "recover", "once"),
            "faultLocation": len(fault["faultLocation"]) <= 10,
            "influence": 1 <= len(fault["influence"]) <= 1000,
            "description": _DESCRIPTION.fullmatch(fault["description"]),
        }
        for name, holds in checks.items():
            if not holds:
                return name
        for influence in fault["influence"]:
            if not _NODE.fullmatch(influence["nodeName"]):
                return "nodeName"
            ids = influence["deviceIds"]
            if not 1 <= len(ids) <= 32 or len(set(ids)) != len(ids) or not all(0 <= each <= 31 for each in ids):
                return "deviceIds"
        return None

    def _apply(self, resource: str, fault: Obj, influence: Obj) -> None:
        """Node-faults 13.5."""
        key = (influence["nodeName"], resource + fault["faultId"])
        cached = self.cache.get(key)
        if fault["assertion"] == "recover":
            if cached is None:
                self._deletes.append((self.now_ms + _WINDOW_MS, key))
            elif self.now_ms - cached.added_ms >= _WINDOW_MS:
                del self.cache[key]
            else:
                self._deletes.append((cached.added_ms + _WINDOW_MS, key))
            return
        if cached is None:
            code = fault["faultCode"]
            devices = tuple(influence["deviceIds"])
            self.cache[key] = Cached(code, self.levels[code], devices, fault["faultTime"], self.now_ms)
            if fault["assertion"] == "once":
                self._deletes.append((self.now_ms + _WINDOW_MS, key))


class ClusterdTarget:
    """A `nodeagent.publish.targets.Target` whose objects this ClusterD follows. failures: errors for the next writes.

    after: the write is done all the same before the error is raised.
    """

    def __init__(self, clusterd: FakeClusterd) -> None:
        self.clusterd = clusterd
        self.objects: dict[tuple[str, str], Obj] = {}
        self.failures: list[tuple[Exception, bool]] = []

    def read(self, namespace: str, name: str) -> Obj | None:
        return self.objects.get((namespace, name))

    def write(self, obj: Obj) -> None:
        error, after = self.failures.pop(0) if self.failures else (None, True)
        if after:
            key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
            old, self.objects[key] = self.objects.get(key), obj
            self.clusterd.config_map_written(old, obj)
        if error is not None:
            raise error

    def edited(self, namespace: str, name: str) -> Obj | None:
        return None

    def edit_period_s(self) -> float | None:
        return None

    def describe(self) -> str:
        return "pretended cluster"


def _is_stamp(value: object) -> bool:
    return isinstance(value, int) and len(str(value)) == 13 and value >= _EARLIEST_MS


def _parsed(obj: Obj) -> Obj | None:
    try:
        message = json.loads((obj.get("data") or {}).get("PublicFault", ""))
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
