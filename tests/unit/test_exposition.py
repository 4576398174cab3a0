"""The metrics page: read back by prometheus_client's parsers and by promtool."""

import subprocess

import pytest
from kit.promtool import promtool
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from nodeagent.daemon.exposition import PREFIX, exposition
from nodeagent.daemon.metrics import DECLARED, Kind, Registry

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def families(metrics: Registry) -> dict[str, str]:
    """Name without prefix -> type, of every family on the page."""
    text = exposition(metrics, "")[0].decode()
    found = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            found[name.removeprefix(PREFIX)] = kind
    return found


def samples(metrics: Registry) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """(name without prefix, labels) -> value."""
    text = exposition(metrics, "")[0].decode()
    return {
        (s.name.removeprefix(PREFIX), frozenset(s.labels.items())): s.value
        for family in parse_text(text)
        for s in family.samples
    }


def test_every_declared_metric_is_there_before_anything_happened() -> None:
    assert families(Registry()) == {name: declared.kind.value for name, declared in DECLARED.items()}


def test_counters_begin_at_zero_and_gauges_when_they_are_known() -> None:
    found = {name: value for (name, labels), value in samples(Registry()).items() if not labels}
    assert found["driver_events_total"] == 0
    assert found["fault_acknowledged_seconds_count"] == 0
    assert "chips" not in found


def test_values_arrive_with_their_labels() -> None:
    metrics = Registry()
    metrics.count("driver_calls_total", 3, result="ok", call="codes")
    metrics.set("chip_unhealthy", True, plane="chip", chip="3", device="Ascend910-3")
    found = samples(metrics)
    assert found["driver_calls_total", frozenset({("call", "codes"), ("result", "ok")})] == 3
    assert found["chip_unhealthy", frozenset({("chip", "3"), ("device", "Ascend910-3"), ("plane", "chip")})] == 1


def test_buckets_are_cumulative_and_end_with_all() -> None:
    metrics = Registry()
    for value in (0.0004, 0.003, 0.003, 7.0, 1000.0):
        metrics.observe("driver_call_seconds", value, call="codes")
    found = {
        dict(labels)["le"]: value
        for (name, labels), value in samples(metrics).items()
        if name == "driver_call_seconds_bucket"
    }
    expected = {"0.0005": 1, "0.0025": 1, "0.005": 3, "5": 3, "30": 4, "120": 4, "+Inf": 5}
    assert {bound: found[bound] for bound in expected} == expected
    assert samples(metrics)["driver_call_seconds_sum", frozenset({("call", "codes")})] == pytest.approx(1007.0064)


def test_a_label_value_may_be_anything() -> None:
    text = 'a "b"\\c\nd 故障'
    metrics = Registry()
    metrics.count("unknown_codes_total", code=text)
    assert samples(metrics)["unknown_codes_total", frozenset({("code", text)})] == 1


def test_who_asks_for_openmetrics_gets_it() -> None:
    metrics = Registry()
    metrics.count("driver_events_total", 2)
    metrics.observe("core_step_seconds", 0.02)
    body, content_type = exposition(metrics, OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    found = {family.name for family in parse_openmetrics(body.decode())}
    assert {"nodeagent_driver_events", "nodeagent_core_step_seconds"} <= found


def test_others_get_the_text_format() -> None:
    assert exposition(Registry(), "")[1] == "text/plain; version=0.0.4; charset=utf-8"


def test_promtool_has_nothing_to_say() -> None:
    metrics = Registry()
    for name, declared in DECLARED.items():
        labels = dict.fromkeys(declared.labels, "x")
        if declared.kind is Kind.COUNTER:
            metrics.count(name, **labels)
        elif declared.kind is Kind.GAUGE:
            metrics.set(name, 1, **labels)
        else:
            metrics.observe(name, 1, **labels)
    done = subprocess.run(
        [promtool(), "check", "metrics"], input=exposition(metrics, "")[0], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
