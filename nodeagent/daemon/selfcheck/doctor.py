"""All checks of the self-check in their order: facts are gathered when a check needs them, each at most once."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nodeagent.cluster.client import ApiClient
from nodeagent.core.clock import SystemClock
from nodeagent.core.errors import NodeAgentError
from nodeagent.core.model import Family, Product
from nodeagent.core.settings import Settings
from nodeagent.core.telemetry import NullTelemetry
from nodeagent.daemon.build import (
    check_access,
    configuration_places,
    connect_dcmi,
    dcmi_settings,
    lingqu_settings,
    local_target,
    site_documents,
)
from nodeagent.daemon.oneshot import Look, look
from nodeagent.daemon.oneshot_node_faults import NodeFaultsLook, look_at_node_faults
from nodeagent.daemon.selfcheck import cluster_checks, node_checks, settings_checks
from nodeagent.daemon.selfcheck.check import Check, fail, failed, skipped, warn
from nodeagent.daemon.selfcheck.cluster_checks import ServerSaid
from nodeagent.daemon.selfcheck.cluster_facts import ask_server, denied_of, read_object
from nodeagent.daemon.selfcheck.node_checks import DaemonFound, LibraryFound
from nodeagent.daemon.selfcheck.node_facts import device_files, running_daemon, try_folder, versions
from nodeagent.daemon.selfcheck.node_fault_checks import (
    BOARD,
    PUBLIC_FAULTS,
    STORAGE,
    check_board,
    check_public_faults,
    check_storage,
)
from nodeagent.daemon.selfcheck.rights import NAME as RIGHTS
from nodeagent.daemon.selfcheck.rights import Right, check_rights, needed_rights
from nodeagent.daemon.selfcheck.settings_checks import Judged
from nodeagent.daemon.state_file import LIMIT_BYTES
from nodeagent.drivers.host import Reaper
from nodeagent.drivers.probe import probe_library, probe_switch_library
from nodeagent.policy.configuration import ClusterDocuments, build_configuration
from nodeagent.render.device_info import NAMESPACE, object_name
from nodeagent.sources.config_documents import documents_of_object, read_folder, shipped

ROOM_BYTES = 2 * LIMIT_BYTES
"""A state file at its limit and the one that replaces it."""


@dataclass(frozen=True, slots=True)
class Examination:
    """One check that can be made. what: what it looks at, a phrase for the progress line."""

    name: str
    what: str
    run: Callable[[], Check]


class Doctor:
    """Examines one node; used by one thread.

    client: of a running daemon; None = one of its own, closed by `close`. settings_file: for people. dev: folder of
    the device files. progress: told of each step inside a slow check.
    """

    def __init__(
        self,
        settings: Settings,
        client: ApiClient | None = None,
        settings_file: str = "",
        dev: Path = Path("/dev"),
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._given = client
        self._settings_file = settings_file
        self._dev = dev
        self._progress = progress
        self._clock = SystemClock()
        self._pretended = bool(settings.mock.socket)

    def examinations(self) -> list[Examination]:
        """Every check, in the order in which people read them."""
        node, cluster, own = node_checks, cluster_checks, settings_checks
        return [
            Examination(own.SETTINGS, "settings", lambda: own.check_settings(self._settings_file)),
            Examination(own.FAULT_TABLES, "fault tables", lambda: own.check_tables(self._tables)),
            Examination(cluster.NODE_NAME, "node name", self._node),
            Examination(cluster.API_SERVER, "API server", self._api_server),
            Examination(cluster.CLOCK, "clock", lambda: self._of_cluster(cluster.CLOCK) or self._clocks()),
            Examination(RIGHTS, "rights", self._rights),
            Examination(cluster.OTHER_WRITER, "other writers", self._other_writer),
            Examination(own.FAULT_CONFIGMAP, "fault ConfigMap", self._fault_object),
            Examination(node.USER, "user", lambda: node.check_user(os.geteuid(), self._pretended)),
            Examination(node.DEVICE_FILES, "device files", self._device_files),
            Examination(node.LIBRARY, "driver library", self._library),
            Examination(node.CHIPS, "chips", self._chips),
            Examination(node.SWITCH_LIBRARY, "switch library", self._switch_library),
            Examination(BOARD, "BMC of the board", self._board),
            Examination(STORAGE, "storage clients", lambda: check_storage(self._node_faults)),
            Examination(PUBLIC_FAULTS, "way to ClusterD", self._public_faults),
            Examination(node.DAEMON, "daemon", lambda: node.check_daemon(self._daemon)),
            Examination(node.STATE_FOLDER, "state folder", self._state_folder),
            Examination(node.TARGET_FOLDER, "target folder", self._target_folder),
            Examination(own.VERSIONS, "versions", lambda: own.check_versions(self.words())),
        ]

    @property
    def missing_rights(self) -> list[Right] | None:
        """Rights that the settings need and we do not have; None when that is not known."""
        if self._of_cluster(RIGHTS) or self._nameless(RIGHTS):
            return None
        found = self._denied
        return None if isinstance(found, NodeAgentError) else found

    def words(self, product: Product | None = None, look: bool = True) -> Mapping[str, str]:
        """The versions by name. product: what a daemon knows of its node. look: without one ask the driver."""
        library = ""
        if product is None and look and not self._daemon.released and isinstance(self._look, Look):
            product, library = self._look.view.product, self._look.library
        said = self._server if self._has_cluster and not isinstance(self._client, NodeAgentError) else None
        api_server = said.version if isinstance(said, ServerSaid) else ""
        return settings_checks.words_of(versions(api_server), product, library)

    def close(self) -> None:
        """Close what was opened here."""
        client = self.__dict__.get("_client")  # only if it was ever made
        if self._given is None and isinstance(client, ApiClient):
            client.close()

    @property
    def _has_cluster(self) -> bool:
        return self._settings.publish.target == "kubernetes"

    @cached_property
    def _client(self) -> ApiClient | NodeAgentError:
        if self._given is not None:
            return self._given
        try:
            check_access(self._settings)
        except NodeAgentError as error:
            return error
        return ApiClient(self._settings.publish.kubeconfig or None, NullTelemetry())

    @cached_property
    def _server(self) -> ServerSaid | NodeAgentError:
        client = self._client
        return client if isinstance(client, NodeAgentError) else ask_server(client, self._clock)

    @cached_property
    def _denied(self) -> list[Right] | NodeAgentError:
        client = self._client
        return client if isinstance(client, NodeAgentError) else denied_of(client, needed_rights(self._settings))

    @cached_property
    def _tables(self) -> Judged | NodeAgentError:
        """The layers that lie on this node."""
        try:
            return build_configuration(shipped(), site_documents(self._settings), self._folder)
        except NodeAgentError as error:
            return error

    @cached_property
    def _folder(self) -> list[ClusterDocuments]:
        path = self._settings.faults.config_dir
        found = read_folder(Path(path)) if path else None
        return [] if found is None else [found]

    @cached_property
    def _found_library(self) -> LibraryFound | NodeAgentError:
        driver = self._settings.driver
        try:
            path, generations = probe_library(dcmi_settings(self._settings), Reaper())
        except NodeAgentError as error:
            return error
        return LibraryFound(path, not (driver.library and driver.trust_library), generations)

    @cached_property
    def _look(self) -> Look | NodeAgentError:
        """One look at the chips; levels do not matter, so the shipped tables do."""
        if isinstance(self._found_library, NodeAgentError):
            return self._found_library
        try:
            return look(connect_dcmi(self._settings, Reaper()), shipped(), self._progress)
        except NodeAgentError as error:
            return error

    def _of_cluster(self, name: str) -> Check | None:
        """Why nothing about the cluster can be asked; None when it can."""
        if not self._has_cluster:
            return skipped(name, f"the target is {self._settings.publish.target}, not a cluster")
        reason = cluster_checks.no_use_to_ask(self._server)
        return skipped(name, reason) if reason else None

    def _node(self) -> Check:
        name, shadow = self._settings.node.name, self._settings.publish.mode == "shadow"
        if bad := cluster_checks.check_name(name, shadow):
            return bad
        if without := self._of_cluster(cluster_checks.NODE_NAME):
            return Check(without.name, without.verdict, f"{name}; {without.detail}")
        return cluster_checks.check_node(name, self._read("nodes", "", name))

    def _api_server(self) -> Check:
        if not self._has_cluster:
            return skipped(cluster_checks.API_SERVER, f"the target is {self._settings.publish.target}, not a cluster")
        said = self._server  # first, because after it the client knows the URL
        where = "" if isinstance(self._client, NodeAgentError) else self._client.describe()
        return cluster_checks.check_server(where, said)

    def _clocks(self) -> Check:
        return cluster_checks.check_clock(self._server)

    def _rights(self) -> Check:
        if without := self._of_cluster(RIGHTS) or self._nameless(RIGHTS):
            return without
        return check_rights(needed_rights(self._settings), self._denied)

    def _other_writer(self) -> Check:
        name = cluster_checks.OTHER_WRITER
        if without := self._of_cluster(name) or self._nameless(name):
            return without
        found = self._read("configmaps", NAMESPACE, object_name(self._settings.node.name))
        return cluster_checks.check_other_writer(self._settings.publish, found, self._clock.now())

    def _nameless(self, name: str) -> Check | None:
        shadow = self._settings.publish.mode == "shadow"
        bad = cluster_checks.check_name(self._settings.node.name, shadow)
        return skipped(name, "this needs a node name") if bad else None

    def _fault_object(self) -> Check:
        name = settings_checks.FAULT_CONFIGMAP
        try:
            key = configuration_places(self._settings).config_map
            if key is None:
                return skipped(name, "none is set, or the target has none")
            if self._has_cluster and (without := self._of_cluster(name)):
                return without
            if isinstance(self._tables, NodeAgentError):
                return skipped(name, "the tables below it are not usable")
            return self._judged_object(name, key)
        except NodeAgentError as error:
            return failed(name, error)

    def _judged_object(self, name: str, key: tuple[str, str]) -> Check:
        where = "/".join(key)
        found = self._read("configmaps", *key)
        if cluster_checks.is_forbidden(found):
            return skipped(name, f"we may not read {where} (get on configmaps)")
        if isinstance(found, NodeAgentError):
            return warn(name, f"{where} cannot be read: {found.sentence}", found.hint)
        layers = [] if found is None else [documents_of_object(dict(found), where)]
        try:
            judged: Judged | NodeAgentError = build_configuration(
                shipped(), site_documents(self._settings), [*self._folder, *layers]
            )
        except NodeAgentError as error:
            judged = error
        return settings_checks.check_fault_object(where, found is not None, judged)

    def _read(self, resource: str, namespace: str, name: str) -> Mapping[str, object] | NodeAgentError | None:
        """An object of the cluster or, without one, of the target."""
        if self._has_cluster:
            client = self._client
            return client if isinstance(client, NodeAgentError) else read_object(client, resource, namespace, name)
        target = local_target(self._settings)
        return None if target is None else target.read(namespace, name)

    def _device_files(self) -> Check:
        return node_checks.check_device_files(device_files(self._dev), self._pretended)

    @cached_property
    def _daemon(self) -> DaemonFound:
        return running_daemon(self._settings.daemon)

    def _released(self, name: str) -> Check | None:
        """A driver that is released for an upgrade must not be opened by anybody."""
        until = self._daemon.released
        return skipped(name, f"the driver is released for an upgrade until {until}") if until else None

    def _library(self) -> Check:
        if released := self._released(node_checks.LIBRARY):
            return released
        return node_checks.check_library(self._found_library, self._settings.driver.generation, self._pretended)

    def _chips(self) -> Check:
        if released := self._released(node_checks.CHIPS):
            return released
        if isinstance(self._found_library, NodeAgentError):
            return skipped(node_checks.CHIPS, "the library cannot be used")
        return node_checks.check_chips(self._look)

    def _switch_library(self) -> Check:
        name, own, driver = node_checks.SWITCH_LIBRARY, self._settings.switches, self._settings.driver
        if released := self._released(name):
            return released
        if not own.enabled:
            return skipped(name, "switches.enabled is false")
        if isinstance(self._look, NodeAgentError):
            return skipped(name, "which product this is is not known: the driver library cannot be used")
        family = self._look.view.product.family
        if family is not Family.A3:
            return skipped(name, f"{family.value} has no LingQu switches")
        try:
            path = probe_switch_library(lingqu_settings(self._settings), Reaper())
        except NodeAgentError as error:
            return node_checks.check_switch_library(error, self._pretended)
        found = LibraryFound(path, not (own.library and driver.trust_library))
        return node_checks.check_switch_library(found, self._pretended)

    @cached_property
    def _node_faults(self) -> NodeFaultsLook | NodeAgentError:
        try:
            return look_at_node_faults(self._settings)
        except NodeAgentError as error:
            return error

    def _board(self) -> Check:
        return check_board(self._node_faults, self._settings.ipmi.transport)

    def _public_faults(self) -> Check:
        own, problem = self._settings.public_faults, None
        if own.delivery == "grpc":
            from nodeagent.publish.courier_grpc import GrpcCourier

            try:
                GrpcCourier(own)
            except NodeAgentError as error:
                problem = error
        found = self._node_faults
        watched = [] if isinstance(found, NodeAgentError) else [c["name"] for c in found.storage if c["watched"]]
        return check_public_faults(own, problem, watched)

    def _state_folder(self) -> Check:
        path = self._settings.daemon.state_dir
        tried = try_folder(Path(path)) if path else None
        return node_checks.check_folder(node_checks.STATE_FOLDER, "daemon.state_dir", tried, ROOM_BYTES)

    def _target_folder(self) -> Check:
        publish = self._settings.publish
        if publish.target != "directory":
            return skipped(node_checks.TARGET_FOLDER, f"the target is {publish.target}, not a directory")
        if not publish.directory:
            return fail(node_checks.TARGET_FOLDER, "publish.directory is empty", "name the folder for the objects")
        tried = try_folder(Path(publish.directory))
        return node_checks.check_folder(node_checks.TARGET_FOLDER, "publish.directory", tried, ROOM_BYTES)
