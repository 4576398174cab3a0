"""How the API server is reached: address, TLS and credentials from the package `kubernetes`.

Only its configuration and transport are used; the generated models would double our memory.
"""

import logging
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodeagent.cluster.calls import NoAnswerError

if TYPE_CHECKING:
    from kubernetes.client import Configuration
    from urllib3 import PoolManager

log = logging.getLogger("nodeagent.cluster")

CONNECTIONS = 8
"""Idle connections that are kept: watches, publisher, node object, Events and a spare."""
_KEEPALIVE_IDLE_S, _KEEPALIVE_INTERVAL_S, _KEEPALIVE_PROBES, _USER_TIMEOUT_MS = 20, 10, 3, 40_000


@dataclass(frozen=True, slots=True)
class Way:
    """A loaded configuration and the connections made with it. serial: grows with each loading."""

    configuration: "Configuration"
    pool: "PoolManager"
    serial: int

    @property
    def host(self) -> str:
        """URL of the server, without a slash at the end."""
        return str(self.configuration.host).rstrip("/")

    def credentials(self) -> dict[str, str]:
        """The headers that authenticate us. In a pod this reads the token file again once a minute, as tokens expire.

        Raises NoAnswerError when they cannot be read.
        """
        from kubernetes.config import ConfigException

        try:
            settings = self.configuration.auth_settings().values()
        except (ConfigException, OSError) as error:
            raise NoAnswerError(f"the credentials cannot be read: {error}") from error
        return {setting["key"]: setting["value"] for setting in settings if setting["in"] == "header"}


class Access:
    """The way to one cluster; loaded at the first use, and anew when the server refuses the credentials.

    kubeconfig: path of a kubeconfig file; None = the service account of the pod we run in. From any thread.
    """

    def __init__(self, kubeconfig: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._lock = threading.Lock()
        self._way: Way | None = None
        self._serial = 0

    def describe(self) -> str:
        """`Kubernetes at <URL>`, or how it will be found while nothing was loaded yet."""
        way = self._way
        if way is not None:
            return f"Kubernetes at {way.host}"
        return f"Kubernetes by {self._source}"

    @property
    def _source(self) -> str:
        return self._kubeconfig or "the service account of the pod"

    def way(self) -> Way:
        """The loaded way. Raises NoAnswerError when the configuration cannot be had now."""
        with self._lock:
            if self._way is None:
                configuration = self._load()
                from kubernetes.client.rest import RESTClientObject

                _tell_insecure(configuration)
                try:
                    pool = RESTClientObject(configuration).pool_manager
                except (OSError, ValueError) as error:
                    raise NoAnswerError(f"{self._source} gives no access to a cluster: {error}") from error
                self._serial += 1
                self._way = Way(configuration, pool, self._serial)
            return self._way

    def expired(self, serial: int) -> None:
        """The credentials of this loading were refused: load anew at the next use. Streams that run go on."""
        with self._lock:
            if self._way is not None and self._way.serial == serial:
                self._way = None

    def close(self) -> None:
        """Close idle connections; a later use loads the configuration again."""
        with self._lock:
            way, self._way = self._way, None
        if way is not None:
            way.pool.clear()

    def _load(self) -> "Configuration":
        import yaml
        from kubernetes.client import Configuration
        from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

        configuration = Configuration()
        try:
            if self._kubeconfig is None:
                load_incluster_config(client_configuration=configuration)
            else:
                load_kube_config(config_file=self._kubeconfig, client_configuration=configuration, persist_config=False)
        except (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError) as error:
            # The package does not check the shape of a kubeconfig: a wrong one shows in any of these.
            raise NoAnswerError(f"{self._source} gives no access to a cluster: {error}") from error
        # Whoever asks repeats with a pause of its own; retries inside the transport would only stretch time-outs.
        configuration.retries = False
        configuration.connection_pool_maxsize = CONNECTIONS
        configuration.socket_options = [
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            # A peer that vanished without a word is noticed within a minute, also on a watch where nobody sends.
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_S),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES),
            (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MS),
        ]
        return configuration


def _tell_insecure(configuration: "Configuration") -> None:
    """Say once that the server is not verified, instead of the transport's warning with each request."""
    if not configuration.verify_ssl:
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        log.warning(
            "the API server's certificate is not verified, anybody could answer for it server=%s", configuration.host
        )
