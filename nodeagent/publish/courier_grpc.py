"""Tell public faults by calling ClusterD (node-faults 13.2). Needs `nodeagent[grpc]`.

Each message has a connection of its own: there are hours between two, and ClusterD takes 1024 connections, which a
fleet that keeps them open would use up. The packages are loaded at the first message: they cost about 21 MiB.
"""

import importlib.util
import os
from pathlib import Path
from typing import Any

from nodeagent.core.errors import PublicFaultError, SettingsError
from nodeagent.core.settings import PublicFaultSettings
from nodeagent.core.storage import StorageClient
from nodeagent.publish.courier import BusyError, RefusedError
from nodeagent.publish.public_fault_proto import METHOD, WireTypes, wire_types
from nodeagent.render.public_fault import LastWord, Message

_TAKEN, _REFUSED, _BUSY = 0, 409, 410
_SERVER_BUSY = "qps exceeded"
"""Text of the gRPC error above 1000 requests in a second (node-faults 13.2)."""
_PACKAGES = ("grpc", "google.protobuf")
_HINT = "pip install 'nodeagent[grpc]', or set public_faults.delivery=configmap"


class GrpcCourier:
    """Calls ClusterD. Raises SettingsError for settings that cannot work, the missing packages included."""

    whole = False

    def __init__(self, settings: PublicFaultSettings) -> None:
        _check(settings)
        self._settings = settings
        self._wire: WireTypes | None = None

    def deliver(self, message: Message) -> None:
        """Send the message. Raises RefusedError, BusyError, or PublicFaultError when there was no usable answer."""
        # The library writes lines of its own to standard error; what matters is in the error that it raises.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        try:
            import grpc

            self._wire = self._wire or wire_types()
        except ImportError as error:
            raise PublicFaultError(
                f"the packages for public_faults.delivery=grpc cannot be loaded: {error}", _HINT
            ) from error
        request = self._wire.encode(message.document)
        try:
            with self._channel(grpc) as channel:
                answer = channel.unary_unary(METHOD)(request, timeout=self._settings.call_deadline_s)
            code, info = self._wire.decode(answer)
        except grpc.RpcError as error:
            self._failed(error)
        except ValueError as error:
            raise PublicFaultError(f"ClusterD at {self._settings.address} sent an answer of another form") from error
        else:
            self._judge(code, info)

    def recall(self, client: StorageClient) -> LastWord | None:
        """ClusterD cannot be asked what it has: None."""
        return None

    def describe(self) -> str:
        """`ClusterD at <address>`, and whether by TLS."""
        return f"ClusterD at {self._settings.address}" + (" (TLS)" if self._settings.tls_ca else "")

    def _channel(self, grpc: Any) -> Any:
        settings = self._settings
        # A proxy of the environment is for the world outside, ClusterD is a Service of this cluster.
        options: list[tuple[str, Any]] = [("grpc.enable_http_proxy", 0)]
        if not settings.tls_ca:
            return grpc.insecure_channel(settings.address, options=options)
        if settings.tls_server_name:
            options.append(("grpc.ssl_target_name_override", settings.tls_server_name))
        # Read for each message, so that renewed certificates are used without a restart.
        parts = [_content(path) for path in (settings.tls_ca, settings.tls_key, settings.tls_certificate)]
        return grpc.secure_channel(settings.address, grpc.ssl_channel_credentials(*parts), options=options)

    def _judge(self, code: int, info: str) -> None:
        said = f"ClusterD at {self._settings.address} answered {code}" + (f": {info[:300]!r}" if info else "")
        if code == _BUSY:
            raise BusyError(said, "too many messages at once, or it does not know the sender: publicFaultResource")
        if code == _REFUSED:
            raise RefusedError(said, "compare publicFaultConfiguration.json of ClusterD with the codes")
        if code != _TAKEN:
            raise PublicFaultError(said)

    def _failed(self, error: Any) -> None:
        details = str(error.details() or "")[:300]
        where = f"ClusterD at {self._settings.address}"
        if _SERVER_BUSY in details:
            raise BusyError(f"{where} has too many calls: {details!r}") from error
        hint = "" if self._settings.tls_ca else "if it wants TLS, set public_faults.tls_ca"
        raise PublicFaultError(f"{where} gave no answer: {error.code().name} {details!r}", hint) from error


def _check(settings: PublicFaultSettings) -> None:
    missing = [name for name in _PACKAGES if not _is_there(name)]
    if missing:
        raise SettingsError(f"public_faults.delivery is grpc, but the package {missing[0]} is not installed", _HINT)
    host, colon, port = settings.address.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit()):
        raise SettingsError(f"public_faults.address {settings.address!r} is not HOST:PORT")
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise SettingsError("public_faults.tls_certificate and public_faults.tls_key go together")
    if not settings.tls_ca and (settings.tls_certificate or settings.tls_server_name):
        raise SettingsError("public_faults.tls_ca is empty, so there is no TLS, but other settings of TLS are not")


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the parent is missing
        return False


def _content(path: str) -> bytes | None:
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise PublicFaultError(f"{path} cannot be read: {error.strerror or error}") from error
