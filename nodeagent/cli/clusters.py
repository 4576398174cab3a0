"""How commands that an administrator runs reach a cluster: the kubeconfig of kubectl, or that of the settings."""

import argparse
import os
from pathlib import Path

from nodeagent.cluster.client import ApiClient
from nodeagent.core.errors import SettingsError
from nodeagent.core.settings import Settings
from nodeagent.core.telemetry import NullTelemetry
from nodeagent.daemon.build import SERVICE_ACCOUNT


def add_kubeconfig_flag(parser: argparse.ArgumentParser) -> None:
    """`--kubeconfig`."""
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="how to reach the cluster (publish.kubeconfig, $KUBECONFIG, ~/.kube/config)",
    )


def client_of(arguments: argparse.Namespace, settings: Settings) -> ApiClient:
    """A client with the rights of whoever runs the command: by flag, settings, environment, home, or the pod.

    Raises SettingsError when there is none of these.
    """
    home = Path.home() / ".kube" / "config"
    named = arguments.kubeconfig or settings.publish.kubeconfig or os.environ.get("KUBECONFIG")
    found = named or (str(home) if home.exists() else None)
    if found is None and not SERVICE_ACCOUNT.exists():
        raise SettingsError("there is no kubeconfig", "name one with --kubeconfig FILE")
    return ApiClient(found, NullTelemetry())
