"""The HTTP endpoint on a real socket: pages, refusals, slow clients, ports that cannot be had."""

import contextlib
import http.client
import json
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kit.daemon import wait_until

from nodeagent.core.errors import SettingsError
from nodeagent.daemon import http_api
from nodeagent.daemon.http_api import MAX_CLIENTS, HttpApi, Place, place_of
from nodeagent.daemon.metrics import Registry
from nodeagent.daemon.status import Pages

LIMIT_S = 10.0
LOOPBACK = "127.0.0.1"


@dataclass
class Rig:
    """An endpoint in a thread. Tests change what its pages say."""

    problems: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    chips: dict[str, Any] = field(default_factory=lambda: {"chips": [{"name": "Ascend910-0"}]})
    metrics: Registry = field(default_factory=Registry)
    api: HttpApi = field(init=False)
    thread: threading.Thread = field(init=False)

    def serve(self, place: Place) -> None:
        pages = Pages(lambda: self.problems, lambda: self.reasons, self.page, lambda: self.chips)
        self.api = HttpApi(place, pages, self.metrics)
        self.thread = threading.Thread(target=self.api.run)
        self.thread.start()

    def page(self, accept: str) -> tuple[bytes, str]:
        if accept == "bomb":
            raise RuntimeError("bomb")
        return f"accept={accept}\n".encode(), "text/plain; version=0.0.4"

    @property
    def port(self) -> int:
        return int(wait_until(lambda: self.api.port))

    def ask(self, path: str, method: str = "GET", host: str = LOOPBACK, **headers: str) -> tuple[int, str, str]:
        """Status, content type, body."""
        connection = http.client.HTTPConnection(host, self.port, timeout=LIMIT_S)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read().decode()

    def stop(self) -> None:
        self.api.stop()
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive()


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    rig.serve(place_of(LOOPBACK, 0))
    yield rig
    rig.stop()


def raw(rig: Rig, request: bytes) -> bytes:
    """Everything that comes back for these bytes."""
    with socket.create_connection((LOOPBACK, rig.port), timeout=LIMIT_S) as client:
        client.sendall(request)
        got = b""
        with contextlib.suppress(ConnectionResetError):  # what was sent and not read
            while more := client.recv(65536):
                got += more
        return got


class TestPages:
    def test_well(self, rig: Rig) -> None:
        assert rig.ask("/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
        assert rig.ask("/readyz") == (200, "text/plain; charset=utf-8", "ok\n")

    def test_a_problem_a_line(self, rig: Rig) -> None:
        rig.problems, rig.reasons = ["core: stuck"], ["chips: 3 of 8 not asked yet", "publish: 故障"]
        assert rig.ask("/healthz")[::2] == (503, "core: stuck\n")
        assert rig.ask("/readyz")[::2] == (503, "chips: 3 of 8 not asked yet\npublish: 故障\n")

    def test_metrics_in_the_format_that_is_asked_for(self, rig: Rig) -> None:
        assert rig.ask("/metrics", Accept="a/b") == (200, "text/plain; version=0.0.4", "accept=a/b\n")

    def test_state(self, rig: Rig) -> None:
        status, content_type, body = rig.ask("/state")
        assert (status, content_type) == (200, "application/json")
        assert json.loads(body) == rig.chips

    def test_a_query_changes_nothing(self, rig: Rig) -> None:
        assert rig.ask("/healthz?verbose")[0] == 200

    def test_other_paths_are_not_there(self, rig: Rig) -> None:
        for path in ("/", "/healthz/", "/etc/passwd", "/../state"):
            status, _, body = rig.ask(path)
            assert (status, body) == (404, "there are /healthz, /readyz, /metrics and /state\n")

    def test_head_has_no_body(self, rig: Rig) -> None:
        answer = raw(rig, b"HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 200 " in answer
        assert b"Content-Length: 3" in answer
        assert answer.endswith(b"\r\n\r\n")

    def test_answers_are_counted(self, rig: Rig) -> None:
        rig.ask("/healthz")
        rig.ask("/nothing")
        assert rig.metrics.value("http_requests_total", code="200") == 1
        assert rig.metrics.value("http_requests_total", code="404") == 1

    def test_an_unforeseen_error_is_an_answer_and_a_line(self, rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
        assert rig.ask("/metrics", Accept="bomb")[0] == 500
        assert "unforeseen error while answering" in caplog.text
        assert rig.ask("/healthz")[0] == 200


class TestRefusals:
    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "BREW"])
    def test_only_get_and_head(self, rig: Rig, method: str) -> None:
        answer = raw(rig, f"{method} /state HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.0 405 ")
        assert b"Allow: GET, HEAD" in answer

    @pytest.mark.parametrize(
        ("request_bytes", "status"),
        [
            (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"414"),
            (b"GET /healthz HTTP/9.1\r\n\r\n", b"505"),
            (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
            (b"nonsense\r\n\r\n", b"400"),
        ],
        ids=["long", "version", "TLS", "nonsense"],
    )
    def test_what_is_no_request(self, rig: Rig, request_bytes: bytes, status: bytes) -> None:
        assert status in raw(rig, request_bytes).splitlines()[0]
        assert rig.ask("/healthz")[0] == 200

    def test_headers_without_end_are_cut(self, rig: Rig) -> None:
        answer = raw(rig, b"GET /healthz HTTP/1.1\r\n" + b"X-Much: " + b"a" * 1_000_000)
        assert answer == b"" or b" 200 " in answer.splitlines()[0]
        assert rig.ask("/healthz")[0] == 200

    def test_state_stays_on_the_node(self) -> None:
        rig = Rig()
        rig.serve(place_of("0.0.0.0", 0))
        try:
            status, _, body = rig.ask("/state")
            assert status == 404
            assert "loopback" in body
            assert "Ascend" not in body
            assert rig.ask("/healthz")[0] == 200
        finally:
            rig.stop()


class TestSlowClients:
    def test_they_are_cut_off_and_the_next_one_is_served(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_api, "REQUEST_LIMIT_S", 0.3)
        with contextlib.ExitStack() as stack:
            for _ in range(3 * MAX_CLIENTS):
                client = stack.enter_context(socket.create_connection((LOOPBACK, rig.port), timeout=LIMIT_S))
                client.sendall(b"GET /hea")
            assert rig.ask("/healthz")[0] == 200

    def test_a_byte_now_and_then_buys_no_time(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_api, "REQUEST_LIMIT_S", 0.3)
        with socket.create_connection((LOOPBACK, rig.port), timeout=LIMIT_S) as client:

            def cut() -> bool:
                try:
                    client.sendall(b"G")
                except OSError:
                    return True
                return False

            wait_until(cut, limit_s=LIMIT_S)

    def test_threads_do_not_pile_up(self, rig: Rig) -> None:
        def serving() -> int:
            return sum(thread.name == "http.client" for thread in threading.enumerate())

        with contextlib.ExitStack() as stack:
            for _ in range(3 * MAX_CLIENTS):
                stack.enter_context(socket.create_connection((LOOPBACK, rig.port), timeout=LIMIT_S))
            wait_until(lambda: serving() == MAX_CLIENTS)
            rig.api.stop()  # does not wait for them
            rig.thread.join(LIMIT_S)
            assert not rig.thread.is_alive()
            assert serving() <= MAX_CLIENTS
        wait_until(lambda: serving() == 0)

    def test_a_thread_that_cannot_be_started_costs_no_place(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        class NoThread(threading.Thread):
            def start(self) -> None:
                raise RuntimeError("can't start new thread")

        rig.ask("/healthz")
        rig.stop()  # its loop is run here instead, as the supervisor would do again and again
        with socket.create_server((LOOPBACK, 0)) as listener:
            api = HttpApi(place_of(LOOPBACK, 0), rig.api._pages, rig.metrics)
            monkeypatch.setattr(http_api.threading, "Thread", NoThread)
            for _ in range(3 * MAX_CLIENTS):
                with socket.create_connection(listener.getsockname()), pytest.raises(RuntimeError):
                    api._accept(listener)

    def test_a_client_that_goes_away_is_nobodys_trouble(self, rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
        for _ in range(3 * MAX_CLIENTS):
            with socket.create_connection((LOOPBACK, rig.port), timeout=LIMIT_S) as client:
                client.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert rig.ask("/healthz")[0] == 200
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


class TestPlaces:
    @pytest.mark.parametrize("address", ["", "localhost", "node-1", "[::1]", "127.0.0.1:80", "1.2.3.4.5", "ü"])
    def test_names_and_nonsense_are_refused(self, address: str) -> None:
        with pytest.raises(SettingsError, match=r"http\.address must be an IP address, not"):
            place_of(address, 80)

    @pytest.mark.parametrize(
        ("address", "loopback"),
        [
            ("127.0.0.1", True),
            ("127.8.0.1", True),
            ("::1", True),
            ("::ffff:127.0.0.1", True),
            ("0.0.0.0", False),
            ("::", False),
            ("10.1.2.3", False),
            ("::ffff:10.1.2.3", False),
            ("fd00::1", False),
        ],
    )
    def test_what_only_the_node_can_reach(self, address: str, loopback: bool) -> None:
        assert place_of(address, 80).loopback is loopback

    @pytest.mark.parametrize("address", ["::1", "::"])
    def test_ipv6(self, address: str) -> None:
        rig = Rig()
        rig.serve(place_of(address, 0))
        try:
            assert rig.ask("/healthz", host="::1")[0] == 200
            if address == "::":
                assert rig.ask("/healthz", host=LOOPBACK)[0] == 200
        finally:
            rig.stop()

    def test_a_port_in_use_is_one_line_and_taken_when_it_is_free(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(http_api, "RETRY_S", 0.05)
        rig = Rig()
        with socket.create_server((LOOPBACK, 0)) as other, caplog.at_level(logging.WARNING):
            rig.serve(place_of(LOOPBACK, other.getsockname()[1]))
            wait_until(lambda: caplog.records)
            rig.thread.join(0.3)  # several tries
            assert rig.metrics.value("http_listening") == 0
        assert rig.ask("/healthz")[0] == 200
        assert rig.metrics.value("http_listening") == 1
        rig.stop()
        (record,) = caplog.records
        assert "no HTTP endpoint" in record.getMessage()
        assert "Address already in use" in record.getMessage()
        assert rig.metrics.value("http_listening") == 0

    def test_an_address_of_another_node_delays_no_stop(self, caplog: pytest.LogCaptureFixture) -> None:
        rig = Rig()
        with caplog.at_level(logging.WARNING):
            rig.serve(place_of("192.0.2.1", 0))
            wait_until(lambda: caplog.records)
        rig.stop()
        assert "Cannot assign requested address" in caplog.text
