"""What a simulated fleet counts: from the metrics of the real client and publisher, by the names these declare."""

import pytest
from fleet import traffic
from fleet.traffic import Traffic

from nodeagent.daemon.metrics import DECLARED


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the traffic: its only element."""
    now = [100.0]
    monkeypatch.setattr(traffic, "monotonic_s", lambda: now[0])
    return now


def ask(counted: Traffic, code: str, verb: str = "update") -> None:
    counted.count("api_requests_total", object="device_info", verb=verb, code=code)


def test_the_names_are_those_that_are_declared() -> None:
    for name in ("api_requests_total", "api_request_bytes_total", "api_response_bytes_total", "publish_writes_total"):
        assert name in DECLARED
    assert "verb" in DECLARED["api_request_seconds"].labels


def test_answers_by_status_and_second(seconds: list[float]) -> None:
    counted = Traffic()
    for at, codes in ((100.2, ["200"]), (101.0, ["201", "429", "409"]), (101.9, ["200", "none"]), (140.0, ["200"] * 9)):
        seconds[0] = at
        for code in codes:
            ask(counted, code)
    span = counted.span()
    assert span.seconds == 40.0
    assert (span.answered, span.written, span.told_to_wait, span.conflicts, span.unanswered) == (14, 12, 1, 1, 1)
    assert span.per_second == {0: 1, 1: 4, 40: 9}
    assert span.unanswered_per_second == {1: 1}
    assert span.peak_per_s() == 9
    assert span.peak_per_s(first_s=30) == 4


def test_bytes_durations_and_failures() -> None:
    counted = Traffic()
    counted.count("api_request_bytes_total", 700, object="device_info")
    counted.count("api_response_bytes_total", 900, object="device_info")
    counted.count("publish_writes_total", object="device_info", result="failed")
    counted.count("publish_writes_total", object="device_info", result="ok")
    counted.observe("api_request_seconds", 0.004, object="device_info", verb="update")
    counted.observe("api_request_seconds", 9.0, object="device_info", verb="get")
    span = counted.span()
    assert (span.sent_bytes, span.received_bytes, span.failed_writes) == (700, 900, 1)
    assert span.seconds_each == (0.004,)


def test_a_new_span_begins_empty() -> None:
    counted = Traffic()
    ask(counted, "200")
    counted.begin()
    assert counted.span().answered == 0
