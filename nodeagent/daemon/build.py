"""Parts of a daemon from settings: table, driver, target. Shared by `run` and `scan`."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nodeagent.core.clock import Clock
from nodeagent.core.errors import SettingsError, TableError
from nodeagent.core.files import read_text
from nodeagent.core.observation import Observation
from nodeagent.core.settings import Settings
from nodeagent.core.telemetry import EventSink, Metrics
from nodeagent.drivers.chips import ChipDriver, Connect, DcmiSettings, DriverNews, HostedChips
from nodeagent.drivers.gateway import ConnectGateway, HostedGateway
from nodeagent.drivers.hccn import HccnTool, tool_path
from nodeagent.drivers.host import Reaper
from nodeagent.drivers.switches import ConnectSwitches, HostedSwitches, LingquSettings
from nodeagent.policy.configuration import build_configuration
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table import Document
from nodeagent.policy.table_records import Finding
from nodeagent.publish.book import BookParameters
from nodeagent.publish.manner import Manner
from nodeagent.publish.other_writer import WriterGuard, node_info_guard
from nodeagent.publish.targets import Target
from nodeagent.sources.config_documents import shipped
from nodeagent.sources.configuration import ConfigPlaces
from nodeagent.sources.link_plan import LinkTimes
from nodeagent.sources.switch_plan import SwitchTimes
from nodeagent.sources.switches import SwitchSource

if TYPE_CHECKING:
    from nodeagent.daemon.http_api import HttpApi
    from nodeagent.daemon.status import Pages

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def site_documents(settings: Settings) -> list[Document]:
    """The site's file, if one is set. Raises TableError when it cannot be read."""
    path = settings.faults.site_file
    return [(path, read_text(path, error=TableError))] if path else []


def configuration(settings: Settings) -> tuple[Configuration, tuple[Finding, ...]]:
    """Shipped layer and site file, as at the start, and the warnings of their loading. Raises TableError."""
    return build_configuration(shipped(), site_documents(settings))


def dcmi_settings(settings: Settings) -> DcmiSettings:
    """How the DCMI library is found and opened."""
    driver = settings.driver
    return DcmiSettings(
        library=driver.library,
        trust=driver.trust_library,
        generation=driver.generation,
        call_deadline_s=driver.call_deadline_s,
        init_deadline_s=driver.init_deadline_s,
        environment=_mock_environment(settings),
    )


def lingqu_settings(settings: Settings) -> LingquSettings:
    """How the LingQu library is found and opened."""
    driver = settings.driver
    return LingquSettings(
        library=settings.switches.library,
        trust=driver.trust_library,
        call_deadline_s=driver.call_deadline_s,
        init_deadline_s=driver.init_deadline_s,
        environment=_mock_environment(settings),
    )


def _mock_environment(settings: Settings) -> dict[str, str]:
    return {"NODEAGENT_MOCK_SOCKET": settings.mock.socket} if settings.mock.socket else {}


def connect_dcmi(settings: Settings, reaper: Reaper) -> Connect:
    """Maker of sessions with DCMI in a driver host."""
    dcmi = dcmi_settings(settings)

    def connect(on_news: Callable[[DriverNews], None]) -> ChipDriver:
        return HostedChips("dcmi", dcmi, reaper, on_news)

    return connect


def connect_gateway(settings: Settings, reaper: Reaper) -> ConnectGateway | None:
    """Maker of sessions for gateway calls, which may hang; None when the gateway is not to be asked."""
    if not settings.links.gateway:
        return None
    return lambda: HostedGateway(dcmi_settings(settings), settings.links.gateway_deadline_s, reaper)


def link_tool(settings: Settings) -> HccnTool | None:
    """hccn_tool, if it is to be asked (`tool_path` says which)."""
    path = tool_path(settings.links.hccn_tool)
    if not path:
        return None
    return HccnTool(path, settings.links.hccn_deadline_s, os.environ, trust=settings.driver.trust_library)


def link_times(settings: Settings) -> LinkTimes:
    """Periods of gateway samples and questions to hccn_tool."""
    links = settings.links
    return LinkTimes(links.gateway_period_s, links.query_period_s, links.down_query_period_s)


def connect_switches(settings: Settings, reaper: Reaper) -> ConnectSwitches | None:
    """Maker of sessions with the LingQu library in a driver host of its own; None when it is not to be used."""
    if not settings.switches.enabled:
        return None
    return lambda on_news: HostedSwitches(lingqu_settings(settings), reaper, on_news)


def switch_source(
    settings: Settings,
    reaper: Reaper,
    clock: Clock,
    emit: Callable[[Sequence[Observation]], None],
    events: EventSink,
    metrics: Metrics,
) -> SwitchSource:
    """The source of switch faults; it sleeps until it sees that the node is an A3."""
    times = SwitchTimes(settings.switches.query_period_s, settings.switches.poll_period_s)
    return SwitchSource(connect_switches(settings, reaper), clock, times, emit, events, metrics)


def local_target(settings: Settings) -> Target | None:
    """Where objects are written without a cluster; None for target `kubernetes`. Raises SettingsError."""
    publish = settings.publish
    if publish.target == "directory":
        from nodeagent.publish.directory import DirectoryTarget

        if not publish.directory:
            raise SettingsError("publish.target is directory, but publish.directory is empty")
        return DirectoryTarget(Path(publish.directory))
    if publish.target == "stdout":
        from nodeagent.publish.stdout import StdoutTarget

        return StdoutTarget(sys.stdout)
    return None


def check_access(settings: Settings) -> None:
    """Raise SettingsError when there is no way to a cluster at all."""
    if not settings.publish.kubeconfig and not SERVICE_ACCOUNT.exists():
        raise SettingsError(
            f"publish.target is kubernetes, but there is neither publish.kubeconfig nor {SERVICE_ACCOUNT}",
            "run in a pod, name a kubeconfig file, or set publish.target=directory",
        )


def configuration_places(settings: Settings) -> ConfigPlaces:
    """Where the layers of the configuration lie. Raises SettingsError for a ConfigMap that is not named."""
    faults = settings.faults
    return ConfigPlaces(
        Path(faults.site_file) if faults.site_file else None,
        Path(faults.config_dir) if faults.config_dir else None,
        object_place(settings, faults.config_map, "faults.config_map"),
    )


def object_place(settings: Settings, text: str, key: str) -> tuple[str, str] | None:
    """Namespace and name of a ConfigMap that is read; None when there is none to be read.

    Raises SettingsError, naming the key, for a text that is no NAMESPACE/NAME.
    """
    if not text or settings.publish.target == "stdout":
        return None
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise SettingsError(f"{key} must be NAMESPACE/NAME, not {text!r}")
    return namespace, name


def http_endpoint(settings: Settings, pages: "Pages", metrics: Metrics) -> "HttpApi | None":
    """The HTTP endpoint, if there is to be one. Raises SettingsError for an address that is none."""
    if not settings.http.port:
        return None
    from nodeagent.daemon.http_api import HttpApi, place_of

    return HttpApi(place_of(settings.http.address, settings.http.port), pages, metrics)


def book_parameters(settings: Settings) -> BookParameters:
    """Intervals of the publisher."""
    publish = settings.publish
    return BookParameters(
        min_distance_ms=int(publish.min_distance_s * 1000), refresh_ms=int(publish.refresh_period_s * 1000)
    )


def manner(settings: Settings) -> Manner:
    """How objects are written: live or shadow, and whether we look for other writers first (decision 22)."""
    publish = settings.publish
    shadow = publish.mode == "shadow"
    guarded = publish.target == "kubernetes" and not shadow
    return Manner(shadow, WriterGuard(publish.other_writer == "overwrite") if guarded else None)


def manner_of_node_info(settings: Settings) -> Manner:
    """The same for the node-info object, which NodeD writes too."""
    shadow, guard = manner(settings).shadow, manner(settings).guard
    return Manner(shadow, None if guard is None else node_info_guard(settings.publish.other_writer == "overwrite"))
