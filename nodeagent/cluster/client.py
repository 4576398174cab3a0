"""Requests to the API server: one client for the whole process, every request bounded, counted and judged.

Bodies are plain dictionaries. Nothing is repeated here but a request that was refused for expired credentials (401):
whoever asks knows best when to ask again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeagent.cluster.access import Access, Way
from nodeagent.cluster.calls import UNAUTHORIZED, Call, NoAnswerError, RefusalError, retry_after_s, status_message
from nodeagent.cluster.stream import Stream
from nodeagent.core.clock import SystemClock, monotonic_s
from nodeagent.core.telemetry import Metrics

CONNECT_S, READ_S = 3.0, 10.0
"""Client-side limits: to connect, and for each read of an answer. Without them a lost network hangs a call for ever."""
MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""No object is larger than 3 MiB; this much is a server gone mad, or something that is no API server."""
USER_AGENT = "nodeagent"
"""Becomes our manager name in `managedFields` too."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered with success. headers: names in any letter case."""

    document: dict[str, Any]
    headers: Mapping[str, str]


class ApiClient:
    """Asks the API server; from any thread.

    kubeconfig: path of a kubeconfig file; None = the service account of the pod we run in. Nothing is loaded and
    nothing is connected before the first call.
    """

    def __init__(self, kubeconfig: str | None, metrics: Metrics) -> None:
        self._access = Access(kubeconfig)
        self._metrics = metrics
        self._clock = SystemClock()

    def describe(self) -> str:
        """`Kubernetes at <URL>`, or how it will be found while there was no call yet."""
        return self._access.describe()

    def close(self) -> None:
        """Close idle connections; a later call loads the configuration again."""
        self._access.close()

    def send(self, call: Call, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        """The object that the server answers with.

        Raises RefusalError for a status other than 2xx, NoAnswerError for no answer, half of one, or one that is no
        JSON object. After a NoAnswerError the server may have done what it was asked.
        """
        return self.ask(call, body).document

    def ask(self, call: Call, body: Mapping[str, object] | None = None) -> Reply:
        """As `send`, with the headers of the answer."""
        data = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        status, headers, answer = self._exchange(call, data)
        try:
            document = json.loads(answer)
        except (ValueError, RecursionError):
            document = None
        if not 200 <= status < 300:
            raise self._refusal(call, status, headers, document)
        if not isinstance(document, dict):
            raise NoAnswerError(f"{call} was answered with something that is no object")
        return Reply(document, headers)

    def stream(self, call: Call, read_s: float) -> Stream:
        """Open a watch: lines until the server ends it. read_s: longest silence. Raises as `send` does."""
        started_s = monotonic_s()
        status, response = self._open(call, None, read_s)
        self._count(call, str(status), started_s, 0)
        if 200 <= status < 300:
            return Stream(call, response, lambda size: self._received(call, size))
        headers, answer = self._rest(call, response)
        try:
            document = json.loads(answer)
        except (ValueError, RecursionError):
            document = None
        raise self._refusal(call, status, headers, document)

    def _refusal(self, call: Call, status: int, headers: Mapping[str, str], document: object) -> RefusalError:
        wait_s = retry_after_s(headers, document, self._clock.now().wall_ms / 1000)
        return RefusalError(call, status, status_message(document), wait_s)

    def _exchange(self, call: Call, data: bytes | None) -> tuple[int, Mapping[str, str], bytes]:
        started_s = monotonic_s()
        code = "none"
        try:
            status, response = self._open(call, data, READ_S)
            headers, answer = self._rest(call, response)
            code = str(status)
        finally:
            self._count(call, code, started_s, len(data or b""))
        self._received(call, len(answer))
        return status, headers, answer

    def _open(self, call: Call, data: bytes | None, read_s: float) -> tuple[int, Any]:
        """Status and response of a request, repeated once with freshly read credentials when they have expired."""
        way = self._access.way()
        response = self._ask(way, call, data, read_s)
        if response.status != UNAUTHORIZED:
            return int(response.status), response
        response.drain_conn()
        response.release_conn()
        self._metrics.count("api_credentials_reloaded_total")
        self._access.expired(way.serial)
        response = self._ask(self._access.way(), call, data, read_s)
        return int(response.status), response

    def _ask(self, way: Way, call: Call, data: bytes | None, read_s: float) -> Any:
        import urllib3
        import urllib3.exceptions

        headers = {"Accept": call.accept, "User-Agent": USER_AGENT, **way.credentials()}
        if data is not None:
            headers["Content-Type"] = call.content_type
        try:
            return way.pool.request(
                call.method,
                way.host + call.path,
                body=data,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=read_s),
                preload_content=False,
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if isinstance(error, urllib3.exceptions.SSLError):
                self._access.expired(way.serial)  # another CA or certificate may be there by now
            raise _no_answer(call, error) from error

    def _rest(self, call: Call, response: Any) -> tuple[Mapping[str, str], bytes]:
        """Headers and the whole body; the connection goes back into the pool."""
        import urllib3.exceptions

        try:
            answer: bytes = response.read(MAX_ANSWER_BYTES, decode_content=True)
            if len(answer) >= MAX_ANSWER_BYTES:
                response.close()
                raise NoAnswerError(f"{call} was answered with more than {MAX_ANSWER_BYTES} bytes")
            response.drain_conn()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            response.close()
            raise _no_answer(call, error) from error
        response.release_conn()
        return response.headers, answer

    def _count(self, call: Call, code: str, started_s: float, sent_bytes: int) -> None:
        self._metrics.count("api_requests_total", object=call.label, verb=call.verb, code=code)
        self._metrics.count("api_request_bytes_total", sent_bytes, object=call.label)
        self._metrics.observe("api_request_seconds", monotonic_s() - started_s, object=call.label, verb=call.verb)

    def _received(self, call: Call, size: int) -> None:
        self._metrics.count("api_response_bytes_total", size, object=call.label)


def _no_answer(call: Call, error: Exception) -> NoAnswerError:
    return NoAnswerError(f"{call} got no complete answer: {type(error).__name__}: {error}")
