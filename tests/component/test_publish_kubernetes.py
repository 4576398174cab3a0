"""The Kubernetes target against a server that speaks the protocol: its requests, and what it makes of answers."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract.data.device_info.cases import VIEWS
from kit.fake_api import Answer, FakeApi, fake_api
from kit.target import kubernetes_target

from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.publish.kubernetes import KubernetesTarget
from nodeagent.publish.targets import ObjectChanged
from nodeagent.render.device_info import NAMESPACE, config_map, object_name, render_device_info

NAME = object_name("worker-1")
KEY = (NAMESPACE, NAME)


def some_object(case: str = "A1") -> dict[str, object]:
    return config_map("worker-1", render_device_info(VIEWS[case](), 1760000000))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with fake_api() as running:
        yield running


@pytest.fixture
def target(api: FakeApi, tmp_path: Path) -> KubernetesTarget:
    made = kubernetes_target(api.kubeconfig(tmp_path))
    return made


def test_nothing_is_asked_before_the_first_call(target: KubernetesTarget, api: FakeApi) -> None:
    assert "kubeconfig" in target.describe()
    assert api.requests == []


def test_first_write_looks_first_and_creates(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object())
    assert api.methods == ["GET", "POST"]
    assert api.objects[KEY]["data"] == some_object()["data"]
    assert api.objects[KEY]["metadata"]["labels"] == {"mx-consumer-cim": "true"}
    assert api.url in target.describe()


def test_later_writes_are_one_request_with_the_last_version(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    version = api.objects[KEY]["metadata"]["resourceVersion"]
    target.write(some_object("A2"))
    target.write(some_object("A3"))
    assert api.methods == ["GET", "POST", "PUT", "PUT"]
    assert api.requests[2].body["metadata"]["resourceVersion"] == version
    assert api.objects[KEY]["data"] == some_object("A3")["data"]


def test_write_after_read_needs_no_second_look(target: KubernetesTarget, api: FakeApi) -> None:
    api.put_object(some_object("A1"))
    found = target.read(*KEY)
    assert found is not None
    assert found["data"] == some_object("A1")["data"]
    target.write(some_object("A2"))
    assert api.methods == ["GET", "PUT"]


def test_requests_are_authenticated(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object())
    assert {request.headers["authorization"] for request in api.requests} == {"Bearer secret"}


def test_c5_404_on_replacing_creates_with_the_same_body(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    api.objects.clear()
    target.write(some_object("A2"))
    assert api.methods[2:] == ["PUT", "POST"]
    assert api.requests[-1].body == some_object("A2")


def test_409_shows_what_others_wrote_and_the_next_write_replaces_it(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    api.put_object(some_object("A3"))
    with pytest.raises(ObjectChanged) as caught:
        target.write(some_object("A2"))
    assert caught.value.obj["data"] == some_object("A3")["data"]
    target.write(some_object("A2"))
    assert api.methods[2:] == ["PUT", "GET", "PUT"]
    assert api.objects[KEY]["data"] == some_object("A2")["data"]


def test_409_on_creating_shows_what_came_in_between(target: KubernetesTarget, api: FakeApi) -> None:
    api.put_object(some_object("A3"))
    api.script.append(Answer(404, method="GET"))
    with pytest.raises(ObjectChanged):
        target.write(some_object("A2"))
    target.write(some_object("A2"))
    assert api.methods == ["GET", "POST", "GET", "PUT"]
    assert api.objects[KEY]["data"] == some_object("A2")["data"]


def test_every_conflict_is_a_publish_error_of_few_requests(target: KubernetesTarget, api: FakeApi) -> None:
    api.put_object(some_object("A1"))
    api.script.extend(Answer(409, method="PUT") for _ in range(99))
    for _ in range(3):
        with pytest.raises(PublishError, match="changed by somebody else"):
            target.write(some_object("A2"))
    assert len(api.requests) < 10


@pytest.mark.parametrize(("exists", "method", "verb"), [(True, "PUT", "update"), (False, "POST", "create")])
def test_403_names_the_missing_right(
    target: KubernetesTarget, api: FakeApi, exists: bool, method: str, verb: str
) -> None:
    if exists:
        api.put_object(some_object())
    api.script.append(Answer(403, 'configmaps is forbidden: User "system:serviceaccount:x:y"', method=method))
    with pytest.raises(PublishError) as caught:
        target.write(some_object())
    assert "status 403" in caught.value.sentence
    assert "serviceaccount:x:y" in caught.value.sentence
    assert f"verb {verb} on configmaps in the namespace kube-system" in caught.value.hint


def test_403_on_reading_is_not_taken_for_absence(target: KubernetesTarget, api: FakeApi) -> None:
    api.script.append(Answer(403, method="GET"))
    with pytest.raises(ReadBackError) as caught:
        target.read(*KEY)
    assert "verb get" in caught.value.hint
    api.script.append(Answer(403, method="GET"))
    with pytest.raises(PublishError):
        target.write(some_object())
    assert api.methods == ["GET", "GET"], "nothing is created on the strength of a refused look"


def test_404_is_the_one_sure_absence(target: KubernetesTarget) -> None:
    assert target.read(*KEY) is None


@pytest.mark.parametrize("status", [302, 400, 422, 429, 500, 503])
def test_c6_other_statuses_are_errors_with_their_number(target: KubernetesTarget, api: FakeApi, status: int) -> None:
    api.put_object(some_object("A1"))
    api.script.append(Answer(status, method="PUT"))
    with pytest.raises(PublishError, match=f"status {status}"):
        target.write(some_object("A2"))
    assert api.objects[KEY]["data"] == some_object("A1")["data"]
    target.write(some_object("A2"))
    assert api.objects[KEY]["data"] == some_object("A2")["data"]
    api.script.append(Answer(status, method="GET"))
    with pytest.raises(ReadBackError, match=f"status {status}"):
        target.read(*KEY)


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_cut_answer_is_an_error_and_the_next_write_succeeds(
    target: KubernetesTarget, api: FakeApi, method: str, half: bool
) -> None:
    api.put_object(some_object("A1"))
    api.script.append(Answer(200 if half else 0, half=half, apply=method == "PUT", method=method))
    with pytest.raises(PublishError, match="no complete answer"):
        target.write(some_object("A2"))
    _write_again(target, some_object("A3"))
    assert api.objects[KEY]["data"] == some_object("A3")["data"]


def _write_again(target: KubernetesTarget, obj: dict[str, object]) -> None:
    """A write after one whose fate is not known: it may first be told of our own object."""
    try:
        target.write(obj)
    except ObjectChanged:
        target.write(obj)


def test_write_that_arrived_without_an_answer_is_found_by_the_next_one(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    api.script.append(Answer(0, apply=True, method="PUT"))
    with pytest.raises(PublishError):
        target.write(some_object("A2"))
    assert api.objects[KEY]["data"] == some_object("A2")["data"]
    _write_again(target, some_object("A3"))
    assert api.methods[-3:] == ["PUT", "GET", "PUT"]


def test_401_reads_the_credentials_again_and_tries_once(api: FakeApi, tmp_path: Path) -> None:
    api.token = "old"
    target = kubernetes_target(api.kubeconfig(tmp_path))
    target.write(some_object("A1"))
    api.token = "new"
    api.kubeconfig(tmp_path)
    target.write(some_object("A2"))
    assert api.objects[KEY]["data"] == some_object("A2")["data"]
    api.token = "unknown to us"
    with pytest.raises(PublishError, match="status 401"):
        target.write(some_object("A3"))
    assert api.methods[-2:] == ["PUT", "PUT"]


def test_absent_server_is_an_error_both_ways(tmp_path: Path) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        api = FakeApi(url=f"http://127.0.0.1:{reserved.getsockname()[1]}")
        target = kubernetes_target(api.kubeconfig(tmp_path))
        with pytest.raises(PublishError, match="no complete answer"):
            target.write(some_object())
        with pytest.raises(ReadBackError, match="no complete answer"):
            target.read(*KEY)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "current-context: x"])
def test_unusable_kubeconfig_is_an_error_of_the_call(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ReadBackError, match="kubeconfig"):
        kubernetes_target(str(path)).read(*KEY)
    with pytest.raises(PublishError, match="absent"):
        kubernetes_target(str(tmp_path / "absent")).write(some_object())


def test_outside_a_pod_there_is_no_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    target = kubernetes_target(None)
    assert "service account" in target.describe()
    with pytest.raises(PublishError, match="service account"):
        target.write(some_object())


def test_generated_models_stay_out_of_memory(target: KubernetesTarget) -> None:
    import sys

    target.write(some_object())
    assert not [name for name in sys.modules if name.startswith("kubernetes.client.models.v1_")]
