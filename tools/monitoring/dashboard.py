"""The Grafana dashboard as rows of panels; `generate.py` writes it to manifests/monitoring/."""

from typing import Any

ALL = '{instance=~"$instance"}'
WIDTH = 24
"""Columns of Grafana's grid."""
Panel = dict[str, Any]
Query = tuple[str, str]
"""Expression and legend. `@` stands for the selector of the chosen nodes, `[~]` for Grafana's rate interval."""


def stat(title: str, query: str, width: int, *, unit: str = "short", bad: bool = False, says: str = "") -> Panel:
    """One number. bad: everything above zero is shown in red."""
    steps = [{"color": "green", "value": None}] + ([{"color": "red", "value": 1}] if bad else [])
    return {
        "type": "stat",
        "title": title,
        "description": says,
        "gridPos": {"w": width, "h": 4},
        "fieldConfig": {
            "defaults": {"unit": unit, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"},
        "targets": _targets([(query, "")]),
    }


def lines(title: str, *queries: Query, width: int = 8, unit: str = "short", says: str = "") -> Panel:
    """Lines over time."""
    return {
        "type": "timeseries",
        "title": title,
        "description": says,
        "gridPos": {"w": width, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": _targets(list(queries)),
    }


def table(title: str, query: str, width: int = 8, says: str = "") -> Panel:
    """The series that there are now, with their labels."""
    target = {**_targets([(query, "")])[0], "format": "table", "instant": True}
    return {
        "type": "table",
        "title": title,
        "description": says,
        "gridPos": {"w": width, "h": 8},
        "fieldConfig": {"defaults": {}, "overrides": []},
        "options": {"showHeader": True},
        "transformations": [
            {"id": "organize", "options": {"excludeByName": {"Time": True, "__name__": True, "job": True}}}
        ],
        "targets": [target],
    }


def _targets(queries: list[Query]) -> list[dict[str, Any]]:
    return [
        {
            "refId": chr(ord("A") + number),
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "expr": query.replace("@", ALL).replace("[~]", "[$__rate_interval]"),
            "legendFormat": legend,
        }
        for number, (query, legend) in enumerate(queries)
    ]


def _quantiles(metric: str, by: str = "") -> list[Query]:
    more = f", {by}" if by else ""
    legend = f"{{{{{by}}}}} " if by else ""
    return [
        (f"histogram_quantile({q}, sum by (le{more}) (rate(nodeagent_{metric}_bucket@[~])))", f"{legend}p{100 * q:g}")
        for q in (0.5, 0.99)
    ]


ROWS: dict[str, list[Panel]] = {
    "Overview": [
        stat("Nodes", "count(nodeagent_build_info@)", 4),
        stat("Not ready", "count(nodeagent_ready@ == 0) or vector(0)", 4, bad=True, says="See /readyz of the node."),
        stat("Chips", "sum(nodeagent_chips@)", 4),
        stat("Unhealthy chips", 'sum(nodeagent_chips_unhealthy{instance=~"$instance", plane="chip"})', 4, bad=True),
        stat(
            "Unhealthy links",
            'sum(nodeagent_chips_unhealthy{instance=~"$instance", plane="parameter_plane"})',
            4,
            bad=True,
        ),
        stat("Silent chips", "sum(nodeagent_chips_silent@)", 4, bad=True, says="Unknown: neither healthy nor faulty."),
        lines("Faults by level", ("sum by (level) (nodeagent_faults@)", "{{level}}"), width=12),
        table("Chips to avoid now", "nodeagent_chip_unhealthy@ == 1", 12, "`nodeagent why CHIP` on the node says why."),
    ],
    "Switches": [
        stat(
            "Switch chips with faults that separate",
            "sum(nodeagent_switch_chips_unhealthy@) or vector(0)",
            8,
            bad=True,
            says="Each costs its whole node. `nodeagent why switch SWITCH` on the node says why.",
        ),
        stat("Nodes whose switches give no answer", "sum(nodeagent_switches_silent@) or vector(0)", 8, bad=True),
        stat(
            "Nodes that know their switches",
            "sum(nodeagent_switches_known@) or vector(0)",
            8,
            says="Atlas A3 nodes with a LingQu library.",
        ),
        lines(
            "Switch faults by level",
            ("sum by (level) (nodeagent_switch_faults@)", "{{level}}"),
            ("sum(nodeagent_switch_faults_unlisted@)", "in no table"),
        ),
        lines(
            "Events of switches, and events lost in the ring",
            ("sum(rate(nodeagent_switch_events_total@[~]))", "taken"),
            ("sum(rate(nodeagent_switch_ring_dropped_total@[~]))", "lost"),
            unit="ops",
        ),
        lines(
            "Queries of switches by answer, and hosts lost",
            ("sum by (result) (rate(nodeagent_switch_queries_total@[~]))", "{{result}}"),
            ("sum(rate(nodeagent_switch_sessions_lost_total@[~]))", "host lost"),
            unit="ops",
            says="All are queried every 300 s, and every 5 s where events cannot be subscribed.",
        ),
    ],
    "Node faults": [
        stat(
            "Nodes that jobs leave or avoid",
            "sum(nodeagent_node_unhealthy@) or vector(0)",
            6,
            bad=True,
            says="By alarms of their boards. `nodeagent why node` on the node says why.",
        ),
        stat("Boards that give no answer", "sum(nodeagent_board_stale@) or vector(0)", 6, bad=True),
        stat("Faults of storage clients", "sum(nodeagent_storage_fault@) or vector(0)", 6, bad=True),
        stat(
            "Public faults that wait",
            "sum(nodeagent_public_fault_waiting@) or vector(0)",
            6,
            bad=True,
            says="ClusterD has not acknowledged them. For seconds that is no trouble.",
        ),
        lines(
            "Node faults by level",
            ("sum by (level) (nodeagent_node_faults@)", "{{level}}"),
            ("sum(nodeagent_board_alarms_unlisted@)", "in no table"),
        ),
        table("Nodes to avoid by their boards now", "nodeagent_node_unhealthy@ == 1"),
        table(
            "Storage clients with a fault, or gone",
            "nodeagent_storage_fault@ == 1 or nodeagent_storage_file_gone@ == 1",
        ),
        lines(
            "Polls of the BMC and readings of state files by result",
            ("sum by (result) (rate(nodeagent_ipmi_polls_total@[~]))", "BMC {{result}}"),
            (
                "sum by (client, result) (rate(nodeagent_storage_reads_total@[~]))",
                "{{client}} {{result}}",
            ),
            unit="ops",
        ),
        lines("Duration of commands to the BMC", *_quantiles("ipmi_command_seconds"), unit="s"),
        lines(
            "Public fault messages by result",
            (
                "sum by (resource, result) (increase(nodeagent_public_fault_messages_total@[~]))",
                "{{resource}} {{result}}",
            ),
            says="ClusterD takes one a second of all nodes together.",
        ),
    ],
    "Pipeline": [
        lines(
            "From the driver's stamp to the acknowledged write",
            *_quantiles("fault_acknowledged_seconds"),
            unit="s",
            says="Two writes of one object are at least one second apart; the first after quiet is not delayed.",
        ),
        lines("From a new view to its acknowledgement", *_quantiles("publish_latency_seconds", "object"), unit="s"),
        lines(
            "Writes",
            ("sum by (object, result) (rate(nodeagent_publish_writes_total@[~]))", "{{object}} {{result}}"),
            unit="ops",
        ),
        lines(
            "Age of the last acknowledged write",
            ("max by (object) (time() - nodeagent_publish_last_success_timestamp_seconds@)", "{{object}}"),
            unit="s",
            says="An unchanged object is written every five minutes.",
        ),
        lines(
            "Requests to the API server",
            (
                "sum by (object, verb, code) (rate(nodeagent_api_requests_total@[~]))",
                "{{object}} {{verb}} {{code}}",
            ),
            unit="reqps",
        ),
        lines("Duration of API requests", *_quantiles("api_request_seconds", "verb"), unit="s"),
        lines(
            "Bytes to and from the API server",
            ("sum by (object) (rate(nodeagent_api_request_bytes_total@[~]))", "to, {{object}}"),
            ("sum by (object) (rate(nodeagent_api_response_bytes_total@[~]))", "from, {{object}}"),
            unit="Bps",
        ),
        lines(
            "Restarts of watches",
            ("sum by (object, why) (increase(nodeagent_watch_restarts_total@[~]))", "{{object}} {{why}}"),
        ),
        lines("Waiting in queues", ("max by (queue) (nodeagent_queue_depth@)", "{{queue}}")),
    ],
    "Driver": [
        lines(
            "Calls by answer",
            ("sum by (call, result) (rate(nodeagent_driver_calls_total@[~]))", "{{call}} {{result}}"),
            ("sum by (result) (rate(nodeagent_gateway_calls_total@[~]))", "gateway {{result}}"),
            unit="ops",
        ),
        lines("Duration of calls", *_quantiles("driver_call_seconds", "call"), unit="s"),
        lines(
            "Calls that missed their deadline",
            ("sum by (call) (increase(nodeagent_driver_deadlines_missed_total@[~]))", "{{call}}"),
        ),
        lines(
            "Driver hosts lost",
            ("sum by (instance) (increase(nodeagent_driver_sessions_lost_total@[~]))", "{{instance}} faults"),
            ("sum by (instance) (increase(nodeagent_gateway_sessions_lost_total@[~]))", "{{instance}} gateway"),
        ),
        lines(
            "Events, and events lost in the ring",
            ("sum(rate(nodeagent_driver_events_total@[~]))", "taken"),
            ("sum(rate(nodeagent_driver_ring_dropped_total@[~]))", "lost"),
            unit="ops",
        ),
        lines(
            "Age of what a source knows",
            ("max by (source) (time() - nodeagent_source_last_success_timestamp_seconds@)", "{{source}}"),
            unit="s",
        ),
    ],
    "Configuration": [
        table(
            "Tables and rules in force",
            "count by (version) (nodeagent_configuration_version_info@ == 1)",
            says="More than one version for long: a node does not see the ConfigMap, or refuses it.",
        ),
        table("Levels of node faults in force", "count by (version) (nodeagent_node_configuration_version_info@ == 1)"),
        lines(
            "Refused contents",
            ("sum by (what) (increase(nodeagent_configuration_rejected_total@[~]))", "{{what}}"),
            ("sum(nodeagent_configuration_stale@)", "nodes on an older one"),
            ("sum(nodeagent_node_configuration_stale@)", "nodes on older levels of node faults"),
        ),
        lines(
            "Suppressed faults and unknown codes",
            ("sum(nodeagent_faults_suppressed@)", "suppressed now"),
            ("sum by (code) (increase(nodeagent_unknown_codes_total@[~]))", "unknown {{code}}"),
            ("sum by (code) (increase(nodeagent_unlisted_alarms_total@[~]))", "alarm in no table {{code}}"),
        ),
    ],
    "Daemon": [
        lines("Resident memory", ("max by (process) (nodeagent_resident_memory_bytes@)", "{{process}}"), unit="bytes"),
        lines(
            "Processor time",
            ("max by (process) (rate(nodeagent_cpu_seconds_total@[~]))", "{{process}}"),
            unit="percentunit",
        ),
        lines(
            "Restarts of loops",
            ("sum by (loop) (increase(nodeagent_loop_restarts_total@[~]))", "{{loop}}"),
            says="An unforeseen error: please report the log around it.",
        ),
    ],
}


def dashboard() -> dict[str, Any]:
    """What Grafana imports."""
    panels: list[Panel] = []
    top = 0
    for title, row in ROWS.items():
        panels.append({"type": "row", "title": title, "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1}})
        left, top, height = 0, top + 1, 0
        for panel in row:
            size = panel["gridPos"]
            if left + size["w"] > WIDTH:
                left, top, height = 0, top + height, 0
            placed = {"x": left, "y": top, **size}
            panels.append({**panel, "datasource": {"type": "prometheus", "uid": "${datasource}"}, "gridPos": placed})
            left, height = left + size["w"], max(height, size["h"])
        top += height
    return {
        "title": "nodeagent",
        "uid": "nodeagent",
        "tags": ["ascend", "npu"],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource(), _instance()]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, 1)],
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _instance() -> dict[str, Any]:
    query = "label_values(nodeagent_build_info, instance)"
    return {
        "name": "instance",
        "label": "Node",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": "instance"},
        "definition": query,
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
