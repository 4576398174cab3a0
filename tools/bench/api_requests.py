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
from rig import NODE, cpu_s, running, scrape, scraped_port, show_memory

from nodeagent.cluster.watch import WATCH_S
from nodeagent.core.settings import PublishSettings
from nodeagent.render.device_info import object_name

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


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """What was asked of what."""

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
    """Let a daemon with everything switched on rest; Unix seconds of the begin and end of the window."""
    port = scraped_port()
    settings = {**plane.settings(folder), "publish.refresh_period_s": str(REFRESH_S), "http.port": port}
    with running(folder, node="a3", **settings) as it:
        time.sleep(START_S)
        if plane.cluster.config_map("kube-system", object_name(NODE)) is None:
            raise SystemExit(f"nothing was published within {START_S} s")
        scrape(port)
        began, used_s = time.time(), cpu_s(it.processes())
        time.sleep(WINDOW_S)
        ended, spent_s = time.time(), cpu_s(it.processes()) - used_s
        show_memory("memory, real API server     ", it.processes())
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


def _show(requests: list[tuple[float, Request]], began: float, ended: float) -> None:
    in_window = Counter(request for at, request in requests if began <= at < ended)
    watches = sorted({request for _, request in requests if request.verb == "watch"})
    print(f"{_TITLE} {ended - began:.0f} s of a daemon with {len(watches)} watches, seen by the API server:")
    hourly, hourly_watches = 0.0, 0.0
    for request, count in sorted(in_window.items()):
        if request.verb != "watch":
            hourly += _line(request, count, ended - began)
    for request in watches:
        again = in_window[request] * _HOUR_S / (ended - began)
        each = max(again, _HOUR_S / WATCH_S)
        hourly_watches += each
        said = f"{in_window[request]} seen; opened anew after {WATCH_S} to {WATCH_S * 6 // 5} s"
        print(f"  {request!s:<58} {said} -> at most {each:.1f} an hour")
    print(
        f"  sum                          {hourly:.1f} an hour apart from watches (budget {BUDGET}), at most "
        f"{hourly + hourly_watches:.1f} in all (budget {BUDGET_WITH_WATCHES}); a request that comes less often than "
        f"every {WINDOW_S} s would not show here"
    )


def _line(request: Request, count: int, window_s: float) -> float:
    """Print a request that was seen; how often it comes in an hour with the settings as they are shipped."""
    each_hour = count * _HOUR_S / window_s
    said = f"{count} seen"
    if request == Request("update", "configmaps", object_name(NODE)):
        shipped_s = PublishSettings().refresh_period_s
        each_hour *= REFRESH_S / shipped_s
        said += f", the refresh, here every {REFRESH_S} s instead of {shipped_s:g} s"
    print(f"  {request!s:<58} {said} -> {each_hour:.1f} an hour")
    return each_hour
