"""An API server for tests that speaks just enough of the ConfigMap protocol, over plain HTTP on 127.0.0.1."""

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Key = tuple[str, str]


@dataclass(frozen=True)
class Answer:
    """A scripted answer in place of the normal one.

    apply: do what was asked before answering. half: announce the whole body, send half of it and hang up. A status
    of 0 hangs up without any answer. hold: wait for this event first.
    """

    status: int = 0
    message: str = ""
    apply: bool = False
    half: bool = False
    hold: threading.Event | None = None
    method: str = ""


@dataclass(frozen=True)
class Request:
    """One request as it arrived; names of headers in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class FakeApi:
    """The server's state: objects by namespace and name, scripted answers in order, all requests so far.

    A scripted answer with a `method` waits for the next request of that method, others for the next of any.
    """

    url: str = ""
    objects: dict[Key, dict[str, Any]] = field(default_factory=dict)
    script: deque[Answer] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    token: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    version: int = 100

    @property
    def methods(self) -> list[str]:
        """Methods of all requests so far, in order."""
        return [request.method for request in self.requests]

    def put_object(self, obj: dict[str, Any]) -> None:
        """Change an object behind everybody's back, as `kubectl edit` does."""
        with self.lock:
            self._store((obj["metadata"]["namespace"], obj["metadata"]["name"]), obj)

    def kubeconfig(self, folder: Path) -> str:
        """Write a kubeconfig file for this server; returns its path."""
        path = folder / "kubeconfig"
        cluster = {"name": "fake", "cluster": {"server": self.url}}
        user = {"name": "fake", "user": {"token": self.token or "secret"}}
        context = {"name": "fake", "context": {"cluster": "fake", "user": "fake"}}
        config = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "fake"}
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config"} | config), encoding="utf-8")
        return str(path)

    def take_scripted(self, method: str) -> Answer | None:
        """The scripted answer for this request, if one waits for it."""
        with self.lock:
            for answer in self.script:
                if answer.method in ("", method):
                    self.script.remove(answer)
                    return answer
        return None

    def perform(self, request: Request) -> tuple[int, dict[str, Any]]:
        """What a real server would do; returns status and body."""
        parts = request.path.split("/")
        if parts[1:4] != ["api", "v1", "namespaces"] or parts[5] != "configmaps":
            return 404, _status(404, "the server could not find the requested resource")
        name = request.body["metadata"]["name"] if request.method == "POST" else parts[6]
        key = (parts[4], name)
        with self.lock:
            present = self.objects.get(key)
            if request.method == "POST":
                if present is not None:
                    return 409, _status(409, f'configmaps "{name}" already exists')
                if "resourceVersion" in request.body["metadata"]:
                    return 400, _status(400, "resourceVersion should not be set on objects to be created")
                return 201, self._store(key, request.body)
            if present is None:
                return 404, _status(404, f'configmaps "{name}" not found')
            if request.method == "GET":
                return 200, present
            asked = request.body["metadata"].get("resourceVersion")
            if asked is not None and asked != present["metadata"]["resourceVersion"]:
                return 409, _status(409, "the object has been modified")
            return 200, self._store(key, request.body)

    def _store(self, key: Key, obj: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self.objects[key] = stored
        return stored


def _status(code: int, message: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": message}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets: the second would wait 40 ms for the client
    server: "_Server"

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output clean."""

    def _handle(self) -> None:
        api = self.server.api
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        request = Request(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        api.requests.append(request)
        answer = api.take_scripted(request.method)
        if answer is None:
            authorized = not api.token or self.headers.get("Authorization", "").split(" ")[-1] == api.token
            self._reply(*(api.perform(request) if authorized else (401, _status(401, "Unauthorized"))))
            return
        if answer.hold is not None:
            answer.hold.wait(30)
        status, document = api.perform(request) if answer.apply else (answer.status, {})
        if answer.status == 0 and not answer.half:
            self.close_connection = True
            return
        if not answer.apply or answer.status:
            status, document = answer.status, _status(answer.status, answer.message)
        self._reply(status, document, answer.half)

    do_GET = do_PUT = do_POST = _handle

    def _reply(self, status: int, document: dict[str, Any], half: bool = False) -> None:
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text[: len(text) // 2] if half else text)
        if half:
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    api: FakeApi
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of the tests."""


@contextmanager
def fake_api() -> Iterator[FakeApi]:
    """A running server; ends with the context."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.api = FakeApi(url=f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="fake-api")
        thread.start()
        try:
            yield server.api
        finally:
            server.shutdown()
            thread.join()
