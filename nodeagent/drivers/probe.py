"""Load a vendor library in a driver host of its own, without initialising it: does the loader take it?"""

from typing import Any

from nodeagent.drivers.chips import DcmiSettings, dcmi_path
from nodeagent.drivers.host import DriverHost, HostSpec, Reaper
from nodeagent.drivers.switches import LingquSettings, lingqu_path


def probe_library(settings: DcmiSettings, reaper: Reaper) -> tuple[str, tuple[str, ...]]:
    """Path of the library and the API generations (v1, v2) whose symbols it has.

    Raises LibraryError when it is not found, not trusted, not loadable or not DCMI; HostError when loading it hangs
    or ends the process.
    """
    path = dcmi_path(settings)
    host = DriverHost(
        HostSpec("probe", "nodeagent.drivers.dcmi_adapter:DcmiAdapter", settings.environment), reaper, _ignore, _ignore
    )
    try:
        host.call("open", path, deadline_s=settings.init_deadline_s)
        return path, tuple(str(each) for each in host.call("generations", deadline_s=settings.call_deadline_s))
    finally:
        host.close()


def probe_switch_library(settings: LingquSettings, reaper: Reaper) -> str:
    """Path of the LingQu library, which has all its functions.

    Raises LibraryError when it is not found, not trusted, not loadable or lacks a function; HostError when loading it
    hangs or ends the process.
    """
    path = lingqu_path(settings)
    host = DriverHost(
        HostSpec("probe", "nodeagent.drivers.lq_adapter:LqAdapter", settings.environment), reaper, _ignore, _ignore
    )
    try:
        host.call("open", path, deadline_s=settings.init_deadline_s)
        return path
    finally:
        host.close()


def _ignore(*_: Any) -> None:
    """Nothing is subscribed, and an end shows in the call."""
