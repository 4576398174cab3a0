"""A Kubernetes target of its own for a test."""

from collections.abc import Callable

from nodeagent.cluster.client import ApiClient
from nodeagent.core.telemetry import Metrics, NullTelemetry
from nodeagent.publish.kubernetes import KubernetesTarget


def kubernetes_target(
    kubeconfig: str | None,
    metrics: Metrics | None = None,
    confirm_s: float = 30.0,
    on_lag: Callable[[], None] | None = None,
) -> KubernetesTarget:
    """A target with a client of its own."""
    return KubernetesTarget(ApiClient(kubeconfig, metrics or NullTelemetry()), confirm_s=confirm_s, on_lag=on_lag)
