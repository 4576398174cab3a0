"""Parts of a daemon from settings: table, driver, target. Shared by `run` and `scan`."""

import sys
from collections.abc import Callable
from pathlib import Path

from nodeagent.core.errors import SettingsError, TableError
from nodeagent.core.files import SHIPPED_TABLES, read_shipped, read_text
from nodeagent.core.settings import Settings
from nodeagent.drivers.chips import ChipDriver, Connect, DcmiSettings, DriverNews, HostedChips
from nodeagent.drivers.host import Reaper
from nodeagent.policy.table import FaultTable, load_table
from nodeagent.policy.table_records import Finding
from nodeagent.publish.book import BookParameters
from nodeagent.publish.targets import Target

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def fault_table(settings: Settings) -> tuple[FaultTable, tuple[Finding, ...]]:
    """The shipped tables and the site's file over them, and the warnings of their loading. Raises TableError."""
    documents = [read_shipped(name) for name in SHIPPED_TABLES]
    if settings.faults.site_file:
        path = settings.faults.site_file
        documents.append((path, read_text(path, error=TableError)))
    return load_table(documents, texts=False)


def connect_dcmi(settings: Settings, reaper: Reaper) -> Connect:
    """Maker of sessions with DCMI in a driver host."""
    driver = settings.driver
    dcmi = DcmiSettings(
        library=driver.library,
        trust=driver.trust_library,
        generation=driver.generation,
        call_deadline_s=driver.call_deadline_s,
        init_deadline_s=driver.init_deadline_s,
        environment={"NODEAGENT_MOCK_SOCKET": settings.mock.socket} if settings.mock.socket else {},
    )

    def connect(on_news: Callable[[DriverNews], None]) -> ChipDriver:
        return HostedChips("dcmi", dcmi, reaper, on_news)

    return connect


def target_of(settings: Settings) -> Target:
    """Where objects are written. Raises SettingsError or PublishError with what to do."""
    publish = settings.publish
    if publish.target == "directory":
        from nodeagent.publish.directory import DirectoryTarget

        if not publish.directory:
            raise SettingsError("publish.target is directory, but publish.directory is empty")
        return DirectoryTarget(Path(publish.directory))
    if publish.target == "stdout":
        from nodeagent.publish.stdout import StdoutTarget

        return StdoutTarget(sys.stdout)
    if not publish.kubeconfig and not SERVICE_ACCOUNT.exists():
        raise SettingsError(
            f"publish.target is kubernetes, but there is neither publish.kubeconfig nor {SERVICE_ACCOUNT}",
            "run in a pod, name a kubeconfig file, or set publish.target=directory",
        )
    from nodeagent.publish.kubernetes import KubernetesTarget

    return KubernetesTarget(publish.kubeconfig or None)


def book_parameters(settings: Settings) -> BookParameters:
    """Intervals of the publisher."""
    publish = settings.publish
    return BookParameters(
        min_distance_ms=int(publish.min_distance_s * 1000), refresh_ms=int(publish.refresh_period_s * 1000)
    )
