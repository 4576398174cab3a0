"""The registry in the Prometheus text format, through prometheus_client.

Imported only when somebody asks for `/metrics`: prometheus_client costs memory.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from nodeagent.daemon.metrics import Family, Histogram, Kind, Registry

PREFIX = "nodeagent_"


class RegistryCollector(Collector):
    """Our registry as prometheus_client wants it."""

    def __init__(self, metrics: Registry) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Every declared family. Counters and histograms without labels begin at zero; a gauge has a value when it
        was set, since zero would claim to know."""
        for name, family in self._metrics.families().items():
            yield _metric(PREFIX + name, family)


def exposition(metrics: Registry, accept: str) -> tuple[bytes, str]:
    """The page and its content type. accept: the `Accept` header of the request, empty = any."""
    encode, content_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RegistryCollector(metrics))
    return encode(registry), content_type


def _metric(name: str, family: Family) -> Metric:
    declared = family.declared
    if declared.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, declared.help, labels=declared.labels)
        found = family.histograms
        if not declared.labels:
            found = found or {(): Histogram([0] * (len(declared.buckets) + 1))}
        for labels, each in sorted(found.items()):
            values = dict(labels)
            histogram.add_metric(
                [values[label] for label in declared.labels], _cumulative(declared.buckets, each), each.total
            )
        return histogram
    plain = (CounterMetricFamily if declared.kind is Kind.COUNTER else GaugeMetricFamily)(
        name, declared.help, labels=declared.labels
    )
    numbers = family.values
    if declared.kind is Kind.COUNTER and not declared.labels:
        numbers = numbers or {(): 0}
    for labels, value in sorted(numbers.items()):
        named = dict(labels)
        plain.add_metric([named[label] for label in declared.labels], value)
    return plain


def _cumulative(bounds: tuple[float, ...], histogram: Histogram) -> list[tuple[str, float]]:
    """Counts of samples up to each bound, as the format wants them."""
    counted, total = [], 0
    for bound, count in zip([*(f"{bound:g}" for bound in bounds), "+Inf"], histogram.buckets, strict=True):
        total += count
        counted.append((bound, float(total)))
    return counted
