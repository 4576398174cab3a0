"""What a daemon at rest asks of a real API server in an hour, by the server's own audit log; and its footprint."""

import json
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from control_plane import ControlPlane, control_plane
from footprint import EVERYTHING, show_sick_memory
from rig import NODE, cpu_s, running, scrape, scraped_port, show_memory

from nodeagent.cluster.watch import WATCH_S
from nodeagent.core.settings import PublishSettings
from nodeagent.core.storage import StorageClient
from nodeagent.publish.node_info import NodeInfoTimes
from nodeagent.publish.node_writer import CHECK_S
from nodeagent.render.device_info import object_name
from nodeagent.render.node_info import object_name as node_info_name
from nodeagent.render.public_fault import object_name as public_fault_name

START_S, WINDOW_S = 20, 150
"""The first requests of a daemon are not those of a day at rest. Five refreshes fall into the window."""
REFRESH_S = 30
BUDGET, BUDGET_WITH_WATCHES = 14, 20
"""Requests per hour (decision 26)."""
_TITLE = "API requests at rest        "
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["ResponseStarted", "ResponseComplete", "Panic"],
    "rules": [{"level": "Metadata", "users": ["system:serviceaccount:mindx-dl:nodeagent"]}, {"level": "None"}],
}
_HOUR_S = 3600
_NODE_TEXT = """\
node:
  profile: a3
  serial_number: 2102310ABC
  storage: {dpc: [ok], dtfs: [ok]}
"""
_PUBLIC_FAULTS = frozenset(public_fault_name(client, NODE) for client in StorageClient)


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """What was asked of which object; name: empty for a collection."""

    verb: str
    resource: str
    name: str

    def __str__(self) -> str:
        """`update configmaps mindx-dl-deviceinfo-…`."""
        return f"{self.verb} {self.resource} {self.name}".rstrip()


def api_requests() -> None:
    """Print each request that comes again, how often, and the sum against the budget."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy, log = folder / "audit-policy.json", folder / "audit.log"
        policy.write_text(json.dumps(_POLICY))  # JSON is YAML
        flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
        with control_plane(_TITLE, folder / "plane", *flags) as plane:
            if plane is not None:
                began, ended = _rest(plane, folder)
                _show(_requests(log), began, ended)


def _rest(plane: ControlPlane, folder: Path) -> tuple[float, float]:
    """Let a daemon with everything switched on rest on a node without a fault; Unix seconds of the window's ends."""
    port = scraped_port()
    settings = {**plane.settings(folder), "publish.refresh_period_s": str(REFRESH_S), "http.port": port}
    settings |= {**EVERYTHING, "node_object.conditions": "true"}
    node = folder / "node.yaml"
    node.write_text(_NODE_TEXT)
    with running(folder, node=str(node), **settings) as it:
        time.sleep(START_S)
        if plane.cluster.config_map("kube-system", object_name(NODE)) is None:
            raise SystemExit(f"nothing was published within {START_S} s")
        scrape(port)
        began, used_s = time.time(), cpu_s(it.processes())
        time.sleep(WINDOW_S)
        ended, spent_s = time.time(), cpu_s(it.processes()) - used_s
        show_memory("memory, real API server     ", it.processes())
        show_sick_memory(it, port, "memory, with node faults    ")
    percent = spent_s / (ended - began) * 100
    print(f"CPU at rest, real API server {percent:.2f} % of one core over {WINDOW_S} s   (target 1 %)")
    return began, ended


def _requests(log: Path) -> list[tuple[float, Request]]:
    """Moment (Unix seconds) and content of each request of the daemon; our own set-up has the same account."""
    found = []
    for line in log.read_text().splitlines():
        entry: dict[str, Any] = json.loads(line)
        if entry.get("userAgent") == "nodeagent":
            of = entry.get("objectRef", {})
            at = datetime.fromisoformat(entry["requestReceivedTimestamp"].replace("Z", "+00:00")).timestamp()
            found.append((at, Request(entry["verb"], of.get("resource", ""), of.get("name", ""))))
    return found


def _rare(request: Request) -> tuple[float, float] | None:
    """Shortest and longest period of a request that comes less often than the window is long, seconds; None = other."""
    if request.verb == "watch":
        return WATCH_S, WATCH_S * 1.2
    if request == Request("get", "nodes", NODE):
        return CHECK_S, CHECK_S * 1.1
    if request == Request("get", "configmaps", node_info_name(NODE)):
        check_s = NodeInfoTimes().check_ms / 1000
        return check_s, check_s
    return None


def _passing(request: Request) -> bool:
    """Of the first hour only: after a start it is said a few times that storage clients are well.

    The log names no object in a creation, and nothing else is created in the window.
    """
    return request.resource == "configmaps" and (request.verb == "create" or request.name in _PUBLIC_FAULTS)


def _show(requests: list[tuple[float, Request]], began: float, ended: float) -> None:
    seen = Counter(request for at, request in requests if began <= at < ended)
    rare = {request: period for _, request in requests if (period := _rare(request)) is not None}
    watches = sum(request.verb == "watch" for request in rare)
    print(f"{_TITLE} {ended - began:.0f} s of a daemon with {watches} watches, seen by the API server:")
    plain, watching = 0.0, 0.0
    for request in sorted({*seen, *rare}):
        said = f"{seen[request]} seen"
        each_hour = seen[request] * _HOUR_S / (ended - began)
        if _passing(request):
            said += ", in the first hour after a start only"
            each_hour = 0.0
        elif request in rare:
            low_s, high_s = rare[request]
            said += f", comes every {low_s:g} to {high_s:g} s" if high_s > low_s else f", comes every {low_s:g} s"
            each_hour = max(each_hour, _HOUR_S / low_s)
        elif request == Request("update", "configmaps", object_name(NODE)):
            shipped_s = PublishSettings().refresh_period_s
            said += f", the refresh, here every {REFRESH_S} s instead of {shipped_s:g} s"
            each_hour *= REFRESH_S / shipped_s
        print(f"  {request!s:<56} {said} -> {each_hour:.1f} an hour")
        if request.verb == "watch":
            watching += each_hour
        else:
            plain += each_hour
    print(
        f"  sum: {plain:.1f} an hour apart from watches (budget {BUDGET}), {plain + watching:.1f} in all (budget "
        f"{BUDGET_WITH_WATCHES}). Another one that comes less often than every {WINDOW_S} s would not show here."
    )
