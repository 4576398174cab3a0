"""Requests in the words of rights: their URLs, and what errors say."""

import pytest

from nodeagent.cluster.backoff import Backoff
from nodeagent.cluster.calls import Call, RefusalError, retry_after_s, status_message, version_of

NOW_S = 1_760_000_000.0


@pytest.mark.parametrize(
    ("call", "method", "path"),
    [
        (Call("get", "configmaps", "x", "ns", "a"), "GET", "/api/v1/namespaces/ns/configmaps/a"),
        (Call("create", "configmaps", "x", "ns"), "POST", "/api/v1/namespaces/ns/configmaps"),
        (Call("patch", "nodes", "x", name="n", subresource="status"), "PATCH", "/api/v1/nodes/n/status"),
        (
            Call("create", "selfsubjectaccessreviews", "x", group="authorization.k8s.io/v1"),
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        ),
        (
            Call("list", "pods", "x", query={"fieldSelector": "spec.nodeName=n,status.phase!=Failed"}),
            "GET",
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dn%2Cstatus.phase%21%3DFailed",
        ),
        (Call("get", "configmaps", "x", "ns", "a/../b"), "GET", "/api/v1/namespaces/ns/configmaps/a%2F..%2Fb"),
    ],
)
def test_urls(call: Call, method: str, path: str) -> None:
    assert (call.method, call.path) == (method, path)


def test_a_missing_right_is_named_as_an_administrator_says_it() -> None:
    namespaced = RefusalError(Call("update", "configmaps", "x", "kube-system", "a"), 403, "forbidden")
    assert namespaced.sentence == "PUT of kube-system/a was answered with status 403: forbidden"
    assert namespaced.hint == "grant the verb update on configmaps in the namespace kube-system"
    wide = RefusalError(Call("patch", "nodes", "x", name="n", subresource="status"), 403, "")
    assert wide.hint == "grant the verb patch on nodes/status in the whole cluster"


@pytest.mark.parametrize(
    ("status", "verb", "message", "word"),
    [
        (401, "get", "", "token or certificate"),
        (422, "update", "Forbidden: field is immutable when `immutable` is set", "kubectl delete configmaps -n ns a"),
        (404, "create", "", "is there a namespace ns?"),
        (500, "get", "", ""),
    ],
)
def test_hints(status: int, verb: str, message: str, word: str) -> None:
    error = RefusalError(Call(verb, "configmaps", "x", "ns", "a"), status, message)
    assert word in error.hint
    assert bool(word) == bool(error.hint)


@pytest.mark.parametrize(
    ("headers", "document", "seconds"),
    [
        ({}, None, 0),
        ({"Retry-After": "17"}, None, 17),
        ({"Retry-After": " 17 "}, None, 17),
        ({"Retry-After": "99999999999999"}, None, 300),
        ({"Retry-After": "-4"}, None, 0),
        ({"Retry-After": "Thu, 09 Oct 2025 08:53:40 GMT"}, None, 20),
        ({"Retry-After": "Thu, 09 Oct 2025 08:53:10 GMT"}, None, 0),
        ({"Retry-After": "soon"}, None, 0),
        ({"Retry-After": "\u0664"}, None, 0),
        ({}, {"details": {"retryAfterSeconds": 5}}, 5),
        ({}, {"details": {"retryAfterSeconds": True}}, 0),
        ({}, {"details": {"retryAfterSeconds": "5"}}, 0),
        ({}, {"details": None}, 0),
        ({"Retry-After": "2"}, {"details": {"retryAfterSeconds": 5}}, 2),
    ],
)
def test_retry_after(headers: dict[str, str], document: object, seconds: float) -> None:
    assert retry_after_s(headers, document, NOW_S) == seconds


def test_odd_answers_say_nothing() -> None:
    assert status_message(None) == status_message({"message": 7}) == ""
    assert version_of({}) == version_of({"metadata": 3}) == version_of({"metadata": {"resourceVersion": 3}}) == ""


def test_pauses_double_up_to_the_cap_and_begin_anew() -> None:
    backoff = Backoff(lambda: 1.0)
    assert [backoff.failed() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    backoff.succeeded()
    assert backoff.failed() == 1
    assert Backoff(lambda: 1.0).failed(429, 50) == pytest.approx(55)
    assert Backoff(lambda: 0.0).failed(429, 50) == 50
    forbidden = Backoff(lambda: 1.0)
    assert [forbidden.failed(403) for _ in range(11)][-1] == 300
