"""The HTTP endpoint: /healthz, /readyz, /metrics, and on a loopback address /state.

One thread listens, at most MAX_CLIENTS serve; further connections wait in the kernel's queue. A request has to be
complete within REQUEST_LIMIT_S and HEAD_BYTES, so a slow client holds its thread for seconds only. Each connection
carries one request.
"""

import contextlib
import io
import json
import logging
import socket
import threading
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from nodeagent.core.clock import monotonic_s
from nodeagent.core.errors import SettingsError
from nodeagent.core.telemetry import Metrics
from nodeagent.daemon.status import Pages

log = logging.getLogger("nodeagent.http")

MAX_CLIENTS = 4
QUEUED_CLIENTS = 16
REQUEST_LIMIT_S = 2.0
SEND_LIMIT_S = 5.0
HEAD_BYTES = 8192
RETRY_S = 5.0
_TURN_S = 0.1
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen. family, address: as the socket module takes them. loopback: nobody else can reach it."""

    family: socket.AddressFamily
    address: tuple[Any, ...]
    loopback: bool


def place_of(address: str, port: int) -> Place:
    """The place of an IP address and a port (0 = any free one). Raises SettingsError. No name is looked up."""
    try:
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV | socket.AI_PASSIVE
        family, _, _, _, place = socket.getaddrinfo(address or "?", port, type=socket.SOCK_STREAM, flags=flags)[0]
    except OSError:
        hint = "write 127.0.0.1, ::1, 0.0.0.0, :: or an address of this node, without brackets and port"
        raise SettingsError(f"http.address must be an IP address, not {address!r}", hint) from None
    host = str(place[0]).removeprefix("::ffff:")
    return Place(family, place, host.startswith("127.") or host == "::1")


class HttpApi:
    """The listening end."""

    def __init__(self, place: Place, pages: Pages, metrics: Metrics) -> None:
        self._place = place
        self._pages = pages
        self._metrics = metrics
        self._listener: socket.socket | None = None
        self._slots = threading.BoundedSemaphore(MAX_CLIENTS)
        self._stopping = threading.Event()
        self.port: int | None = None
        """The port that is listened at, None while there is none."""

    def run(self) -> None:
        """Serve until `stop`. A port that cannot be had is said once and tried for ever; all else goes on without."""
        said = ""
        while not self._stopping.is_set():
            try:
                with socket.socket(self._place.family, socket.SOCK_STREAM) as listener:
                    self._listener = listener
                    self._listen(listener)
                    said = ""
                    self._accept(listener)
            except OSError as error:
                problem = error.strerror or str(error)
                if problem != said and not self._stopping.is_set():
                    said = problem
                    host, port = self._place.address[:2]
                    log.warning(
                        "no HTTP endpoint, it is tried again and again address=%s port=%d problem=%r",
                        *(host, port, problem),
                    )
            finally:
                self.port = None
                self._metrics.set("http_listening", 0)
            self._stopping.wait(RETRY_S)

    def stop(self) -> None:
        """Make `run` return; answers under way are not waited for."""
        self._stopping.set()
        with contextlib.suppress(OSError):  # closed already, or never made
            if self._listener is not None:
                self._listener.shutdown(socket.SHUT_RDWR)

    def _listen(self, listener: socket.socket) -> None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._place.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(self._place.address)
        listener.listen(QUEUED_CLIENTS)
        host, self.port = listener.getsockname()[:2]
        self._metrics.set("http_listening", 1)
        log.info("HTTP endpoint address=%s port=%d", host, self.port)

    def _accept(self, listener: socket.socket) -> None:
        """Hand clients to threads; ends with an OSError, which `stop` causes too."""
        while not self._stopping.is_set():
            if not self._slots.acquire(timeout=_TURN_S):
                continue
            try:
                client, address = listener.accept()
            except ConnectionError:  # gone again before it was served
                self._slots.release()
                continue
            except OSError:
                self._slots.release()
                raise
            server = threading.Thread(target=self._serve, args=(client, address), name="http.client", daemon=True)
            try:
                server.start()
            except RuntimeError:  # the process may have no more threads just now; the place must not be lost for ever
                self._slots.release()
                client.close()
                raise

    def _serve(self, client: socket.socket, address: tuple[Any, ...]) -> None:
        try:
            with client:
                _Handler(client, address, self)
        except OSError as error:
            log.debug("a client went away: %s", error)
        finally:
            self._slots.release()

    def answer(self, path: str, accept: str) -> tuple[HTTPStatus, bytes, str]:
        """Status, body and content type for a path."""
        if path == "/metrics":
            return HTTPStatus.OK, *self._pages.metrics(accept)
        if path in ("/healthz", "/readyz"):
            problems = self._pages.unhealthy() if path == "/healthz" else self._pages.not_ready()
            status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
            return status, _lines(problems or ["ok"]), _TEXT
        if path != "/state":
            return HTTPStatus.NOT_FOUND, _lines(["there are /healthz, /readyz, /metrics and /state"]), _TEXT
        if not self._place.loopback:
            here = "the state of the chips is told on a loopback address only; `nodeagent scan` on the node shows it"
            return HTTPStatus.NOT_FOUND, _lines([here]), _TEXT
        body = json.dumps(self._pages.state(), ensure_ascii=False).encode() + b"\n"
        return HTTPStatus.OK, body, "application/json"

    def count(self, status: int) -> None:
        """Count one answer."""
        self._metrics.count("http_requests_total", code=str(status))


class _RequestReader(io.RawIOBase):
    """The bytes of one request: HEAD_BYTES at most, and not later than REQUEST_LIMIT_S after the first look."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._left = HEAD_BYTES
        self._until_s = monotonic_s() + REQUEST_LIMIT_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises TimeoutError when the time is over; past the limit there is nothing more to read."""
        left_s = self._until_s - monotonic_s()
        if left_s <= 0:
            raise TimeoutError("the request did not come in time")
        self._client.settimeout(left_s)
        count = self._client.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count


class _Handler(BaseHTTPRequestHandler):
    """One request. `http.server` reads and checks its head; everything else is ours."""

    raw_requestline: bytes
    default_request_version = "HTTP/1.0"  # 0.9 would have answers without a status
    error_message_format = "%(message)s\n"
    error_content_type = _TEXT

    def __init__(self, client: socket.socket, address: tuple[Any, ...], api: HttpApi) -> None:
        self._api = api
        super().__init__(client, address, None)  # type: ignore[arg-type]  # nothing here asks for a server

    def setup(self) -> None:
        """Our reader in place of the one without a limit."""
        super().setup()
        self.rfile = io.BufferedReader(_RequestReader(self.connection))

    def parse_request(self) -> bool:
        """Only whole request lines, and only GET and HEAD."""
        if not self.raw_requestline.endswith(b"\n"):
            self.requestline, self.request_version, self.command = "", "HTTP/1.0", ""
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)
            return False
        if not super().parse_request():
            return False
        if self.command in ("GET", "HEAD"):
            return True
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, _lines(["only GET and HEAD are answered"]), _TEXT)
        return False

    def do_GET(self) -> None:
        """Answer."""
        path = self.path.partition("?")[0]
        try:
            status, body, content_type = self._api.answer(path, self.headers.get("Accept", ""))
        except Exception:  # border of a thread
            log.exception("unforeseen error while answering path=%r", path)
            status, body, content_type = (
                HTTPStatus.INTERNAL_SERVER_ERROR,
                _lines(["unforeseen error, see the log"]),
                _TEXT,
            )
        self._send(status, body, content_type)

    do_HEAD = do_GET

    def _send(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_response(self, code: int, message: str | None = None) -> None:
        """Count every answer; the time for sending begins here."""
        self.connection.settimeout(SEND_LIMIT_S)
        self._api.count(code)
        super().send_response(code, message)

    def version_string(self) -> str:
        """Who answers; no version, which is nobody's business on a host address."""
        return "nodeagent"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are counted, not logged: probes and scrapes come several times a minute."""
        log.debug("request client=%s %r", self.client_address[0], format % args)


def _lines(texts: list[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()
