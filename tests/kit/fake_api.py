"""An API server for tests that speaks the protocol of a few resources over plain HTTP on 127.0.0.1.

For the answers that a healthy server does not give; what a real one gives is tested against a real one.
"""

import json
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kit.fake_store import Key, Store, status_of, target_of


@dataclass(frozen=True)
class Answer:
    """A scripted answer in place of the normal one.

    apply: do what was asked before answering. half: announce the whole body, send half of it and hang up. A status
    of 0 hangs up without any answer. hold: wait for this event first. headers: added. text: body as it is.
    pretend: answer as if it was done, without doing it. method, resource: what it waits for; empty = any.
    """

    status: int = 0
    message: str = ""
    apply: bool = False
    half: bool = False
    hold: threading.Event | None = None
    method: str = ""
    resource: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    pretend: bool = False


@dataclass(frozen=True)
class Request:
    """One request as it arrived; names of headers in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def watch(self) -> bool:
        """It opens a watch."""
        return "watch=true" in self.path


@dataclass
class FakeApi(Store):
    """The server's state: objects, scripted answers in order, all requests so far.

    A scripted answer with a `method` waits for the next request of that method, others for the next of any.
    `objects` are the ConfigMaps by namespace and name. ahead_s: how far the server's clock is ahead of ours.
    closing: watches are answered with `Connection: close`, as a server that shuts down does, and some proxies always.
    """

    url: str = ""
    script: deque[Answer] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    token: str = ""
    ahead_s: float = 0.0
    closing: bool = False

    @property
    def objects(self) -> dict[Key, dict[str, Any]]:
        """The ConfigMaps."""
        return self.of("configmaps")

    @property
    def methods(self) -> list[str]:
        """Methods of all requests so far but lists and watches, in order."""
        return [request.method for request in self.requests if "fieldSelector" not in request.path]

    def put_object(self, obj: dict[str, Any], resource: str = "configmaps") -> None:
        """Change an object behind everybody's back, as `kubectl edit` does."""
        with self.lock:
            self.store(resource, (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), obj)

    def delete_object(self, key: Key, resource: str = "configmaps") -> None:
        """Delete an object behind everybody's back."""
        with self.lock:
            self.remove(resource, key)

    def kubeconfig(self, folder: Path) -> str:
        """Write a kubeconfig file for this server; returns its path."""
        path = folder / "kubeconfig"
        cluster = {"name": "fake", "cluster": {"server": self.url}}
        user = {"name": "fake", "user": {"token": self.token or "secret"}}
        context = {"name": "fake", "context": {"cluster": "fake", "user": "fake"}}
        config = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "fake"}
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config"} | config), encoding="utf-8")
        return str(path)

    def take_scripted(self, method: str, path: str) -> Answer | None:
        """The scripted answer for this request, if one waits for it."""
        method = "WATCH" if "watch=true" in path else method
        with self.lock:
            for answer in self.script:
                if answer.method in ("", method) and answer.resource in path:
                    self.script.remove(answer)
                    return answer
        return None

    def perform(self, request: Request) -> tuple[int, dict[str, Any]]:
        """What a real server would do; returns status and body."""
        return self.answer(request.method, request.path, request.headers, request.body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets: the second would wait 40 ms for the client
    server: "_Server"

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output clean."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The `Date` header, by the server's own clock."""
        return super().date_time_string((time.time() if timestamp is None else timestamp) + self.server.api.ahead_s)

    def _handle(self) -> None:
        api = self.server.api
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        request = Request(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        api.requests.append(request)
        answer = api.take_scripted(request.method, request.path)
        if answer is None:
            authorized = not api.token or self.headers.get("Authorization", "").split(" ")[-1] == api.token
            if authorized and request.watch:
                self._watch(request)
                return
            self._reply(*(api.perform(request) if authorized else (401, status_of(401, "Unauthorized"))))
            return
        if answer.hold is not None:
            answer.hold.wait(30)
        status, document = api.perform(request) if answer.apply else (answer.status, {})
        if answer.pretend:
            self._reply(200, _with_version(body))
            return
        if answer.status == 0 and not answer.half:
            self.close_connection = True
            return
        if not answer.apply or answer.status:
            status, document = answer.status, status_of(answer.status, answer.message)
        self._reply(status, document, answer.half, answer.headers, answer.text)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _handle

    def _watch(self, request: Request) -> None:
        """Stream events as chunks until the client goes, the server ends, or the watches are cut."""
        api = self.server.api
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        if api.closing:
            self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in api.follow(target_of(request.path)):
            if event is None:
                self.wfile.write(b"0\r\n\r\n")
                self.close_connection = api.closing  # else the client's next request comes this way
                return
            line = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def _reply(
        self,
        status: int,
        document: dict[str, Any],
        half: bool = False,
        headers: dict[str, str] | None = None,
        text: str = "",
    ) -> None:
        body = text.encode() if text else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if text else "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if half else body)
        if half:
            self.close_connection = True


def _with_version(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": "never-stored"}}


class _Server(ThreadingHTTPServer):
    api: FakeApi
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of the tests."""


@contextmanager
def fake_api() -> Iterator[FakeApi]:
    """A running server, reached directly whatever this machine's HTTP proxy is; ends with the context."""
    with patch.dict(os.environ), _Server(("127.0.0.1", 0), _Handler) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            os.environ.pop(name, None)
        server.api = FakeApi(url=f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="fake-api")
        thread.start()
        try:
            yield server.api
        finally:
            server.api.end_watches()
            server.shutdown()
            thread.join()
