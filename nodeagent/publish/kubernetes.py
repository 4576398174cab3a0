"""Publish to the Kubernetes API server, one ConfigMap at a time.

Configuration, TLS and transport come from the `kubernetes` package; bodies are plain dictionaries, as its generated
models would double our memory. Objects are replaced with the `resourceVersion` of the server's last answer, so a
change that somebody else made in between is noticed instead of overwritten blindly (device-info 8).
"""

import json
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from nodeagent.core.errors import NodeAgentError, PublishError, ReadBackError
from nodeagent.publish.targets import ObjectChanged, identity

if TYPE_CHECKING:
    from kubernetes.client import Configuration
    from kubernetes.client.rest import RESTClientObject

_TIMEOUTS_S = (3.0, 10.0)
"""Client-side: to connect, and for each read of an answer. Without these a lost network hangs a call for ever."""
_CONFLICTS = 3
"""How often one write starts again when others change the object meanwhile."""
_VERBS = {"GET": "get", "PUT": "update", "POST": "create"}
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 401, 403, 404, 409


class NoAnswerError(NodeAgentError):
    """No complete answer came back: whether the server did what it was asked is not known."""

    code: ClassVar[str] = "NA502"


class RefusalError(NodeAgentError):
    """The server answered with a status other than 2xx. status: the HTTP status."""

    code: ClassVar[str] = "NA502"

    def __init__(self, method: str, namespace: str, name: str, status: int, message: str) -> None:
        hint = ""
        if status == _FORBIDDEN:
            hint = f"grant the verb {_VERBS[method]} on configmaps in the namespace {namespace}"
        detail = f": {message}" if message else ""
        super().__init__(f"{method} of {namespace}/{name} was answered with status {status}{detail}", hint)
        self.status = status


_EDIT_PERIOD_S = 60.0


class KubernetesTarget:
    """ConfigMaps of one cluster.

    kubeconfig: path of a kubeconfig file; None = the service account of the pod we run in. Nothing is loaded and
    nothing is connected before the first call.
    """

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._configuration: Configuration | None = None
        self._client: RESTClientObject | None = None
        self._versions: dict[tuple[str, str], str] = {}

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        """The ConfigMap, read with quorum; None when the server says 404.

        Raises ReadBackError for every other answer, and for none.
        """
        try:
            return self._send("GET", (namespace, name))
        except RefusalError as refusal:
            if refusal.status == _NOT_FOUND:
                return None
            raise ReadBackError(refusal.sentence, refusal.hint) from refusal
        except NoAnswerError as error:
            raise ReadBackError(error.sentence, error.hint) from error

    def write(self, obj: dict[str, object]) -> None:
        """Replace the ConfigMap, or create it where there is none.

        Raises PublishError; the object may have arrived all the same when there was no answer. After a conflict the
        object is read, so that an operator's edit is seen before it is overwritten, and ObjectChanged is raised.
        """
        key = identity(obj)
        try:
            for _ in range(_CONFLICTS):
                if self._replace_or_create(key, obj):
                    return
                found = self.read(*key)
                if found is not None:
                    raise ObjectChanged(f"{key[0]}/{key[1]} was changed by somebody else", found)
        except (RefusalError, NoAnswerError, ReadBackError) as error:
            raise PublishError(error.sentence, error.hint) from error
        raise PublishError(f"{key[0]}/{key[1]} was changed by others {_CONFLICTS} times during one write")

    def edited(self, namespace: str, name: str) -> dict[str, object] | None:
        """The ConfigMap when its version is not the one that we know; one GET."""
        known = self._versions.get((namespace, name))
        try:
            found = self.read(namespace, name)
        except ReadBackError:
            return None
        return found if known is not None and known != self._versions.get((namespace, name)) else None

    def edit_period_s(self, waiting: bool) -> float | None:
        """Only while an operator may have something to lift: requests are budgeted (a watch is to replace this)."""
        return _EDIT_PERIOD_S if waiting else None

    def describe(self) -> str:
        """`Kubernetes at <URL>`, or how it will be found while there was no call yet."""
        if self._configuration is not None:
            return f"Kubernetes at {self._configuration.host}"
        return f"Kubernetes by {self._kubeconfig or 'the service account of the pod'}"

    def close(self) -> None:
        """Close all connections; a later call loads the configuration again and opens new ones."""
        if self._client is not None:
            self._client.close()
        self._client = None
        self._configuration = None

    def _replace_or_create(self, key: tuple[str, str], obj: dict[str, object]) -> bool:
        """One course of requests; false when somebody else was quicker and the version must be read anew."""
        try:
            if key in self._versions or self._exists(key):
                try:
                    self._send("PUT", key, _with_version(obj, self._versions.get(key)))
                    return True
                except RefusalError as refusal:
                    if refusal.status != _NOT_FOUND:
                        raise
            self._versions.pop(key, None)
            self._send("POST", key, obj)
            return True
        except RefusalError as refusal:
            if refusal.status != _CONFLICT:
                raise
            self._versions.pop(key, None)
            return False

    def _exists(self, key: tuple[str, str]) -> bool:
        try:
            self._send("GET", key)
        except RefusalError as refusal:
            if refusal.status == _NOT_FOUND:
                return False
            raise
        return True

    def _send(self, method: str, key: tuple[str, str], body: dict[str, object] | None = None) -> dict[str, object]:
        """One request, repeated once with freshly read credentials when they have expired (401)."""
        status, answer = self._request(method, key, body)
        if status == _UNAUTHORIZED:
            self.close()
            status, answer = self._request(method, key, body)
        try:
            document = json.loads(answer)
        except ValueError:
            document = None
        if not 200 <= status < 300:
            message = document.get("message") if isinstance(document, dict) else None
            raise RefusalError(method, *key, status, message if isinstance(message, str) else "")
        if not isinstance(document, dict):
            raise NoAnswerError(f"{method} of {key[0]}/{key[1]} was answered with something that is no object")
        metadata = document.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        if isinstance(version, str) and version:
            self._versions[key] = version
        return document

    def _request(self, method: str, key: tuple[str, str], body: dict[str, object] | None) -> tuple[int, bytes]:
        import urllib3.exceptions
        from kubernetes.client.exceptions import ApiException

        client, configuration = self._connected()
        namespace, name = (quote(part, safe="") for part in key)
        url = f"{configuration.host}/api/v1/namespaces/{namespace}/configmaps"
        if method != "POST":
            url += f"/{name}"
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "nodeagent"}
        headers.update(_credentials(configuration))
        try:
            response = client.request(method, url, headers=headers, body=body, _request_timeout=_TIMEOUTS_S)
            return int(response.status), bytes(response.read())
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            # ApiException comes here only for TLS failures: the transport leaves judging the status to us.
            problem = f"{type(error).__name__}: {error}"
            raise NoAnswerError(f"{method} of {key[0]}/{key[1]} got no complete answer: {problem}") from error

    def _connected(self) -> tuple["RESTClientObject", "Configuration"]:
        if self._client is None or self._configuration is None:
            self._configuration = self._load()
            from kubernetes.client.rest import RESTClientObject

            self._client = RESTClientObject(self._configuration)
        return self._client, self._configuration

    def _load(self) -> "Configuration":
        """The configuration of the package. Raises NoAnswerError when it cannot be had now."""
        import yaml
        from kubernetes.client import Configuration
        from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

        configuration = Configuration()
        try:
            if self._kubeconfig is None:
                load_incluster_config(client_configuration=configuration)
            else:
                load_kube_config(
                    config_file=self._kubeconfig,
                    context=self._context,
                    client_configuration=configuration,
                    persist_config=False,
                )
        except (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError) as error:
            # The package does not check the shape of a kubeconfig: a wrong one shows in any of these.
            source = self._kubeconfig or "the service account of the pod"
            raise NoAnswerError(f"{source} gives no access to a cluster: {error}") from error
        # The publisher repeats with back-off; retries inside the transport would only stretch the time-outs.
        configuration.retries = False
        configuration.keep_alive = True
        return configuration


def _credentials(configuration: "Configuration") -> dict[str, str]:
    """The headers that authenticate us. In a pod this reads the token file again once a minute, as tokens expire."""
    from kubernetes.config import ConfigException

    try:
        settings = configuration.auth_settings().values()
    except (ConfigException, OSError) as error:
        raise NoAnswerError(f"the credentials cannot be read: {error}") from error
    return {setting["key"]: setting["value"] for setting in settings if setting["in"] == "header"}


def _with_version(obj: dict[str, object], version: str | None) -> dict[str, object]:
    """The object as a replacement of exactly that version; without one it replaces whatever is there."""
    metadata = obj["metadata"]
    if version is None or not isinstance(metadata, dict):
        return obj
    return {**obj, "metadata": {**metadata, "resourceVersion": version}}
