"""The Kubernetes target against a server that speaks the protocol: its requests, and what it makes of answers."""

import json
import socket
from pathlib import Path

import pytest
from contract.data.device_info.cases import VIEWS
from kit.fake_api import Answer, FakeApi
from kit.target import kubernetes_target

from nodeagent.core.errors import PublishError, ReadBackError
from nodeagent.daemon.metrics import Registry
from nodeagent.publish.kubernetes import KubernetesTarget
from nodeagent.publish.targets import LaterError, ObjectChanged
from nodeagent.render.device_info import NAMESPACE, config_map, object_name, render_device_info

NAME = object_name("worker-1")
KEY = (NAMESPACE, NAME)


def some_object(case: str = "A1") -> dict[str, object]:
    return config_map("worker-1", render_device_info(VIEWS[case](), 1760000000))


@pytest.fixture
def target(api: FakeApi, tmp_path: Path) -> KubernetesTarget:
    return kubernetes_target(api.kubeconfig(tmp_path))


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


# -- what the watch tells -------------------------------------------------------------------------------------------


def by_watch(target: KubernetesTarget, api: FakeApi) -> dict[str, object] | None:
    """The watch tells of the object as it is now; what the target makes of it."""
    target.heard(*KEY, api.objects.get(KEY))
    return target.edited(*KEY)


def test_our_own_writes_are_no_edits_however_late_they_show(target: KubernetesTarget, api: FakeApi) -> None:
    versions = []
    for case in ("A1", "A2", "A3"):
        target.write(some_object(case))
        versions.append(api.objects[KEY])
    for version in versions:
        target.heard(*KEY, version)
        assert target.edited(*KEY) is None
    assert target.edited(*KEY) is None, "nothing was told since"


def test_an_edit_shows_and_the_next_write_replaces_it_without_a_read(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    api.put_object(some_object("A3"))
    assert by_watch(target, api) == api.objects[KEY]
    assert target.edited(*KEY) is None, "told once"
    target.write(some_object("A2"))
    assert api.methods == ["GET", "POST", "PUT"]
    assert api.objects[KEY]["data"] == some_object("A2")["data"]


def test_a_deletion_is_an_edit_that_says_nothing(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    api.delete_object(KEY)
    assert by_watch(target, api) == {}
    assert target.edited(*KEY) is None
    target.write(some_object("A2"))
    assert api.methods == ["GET", "POST", "POST"]


def test_an_absent_object_that_we_never_had_is_no_deletion(target: KubernetesTarget, api: FakeApi) -> None:
    assert target.read(*KEY) is None
    assert by_watch(target, api) is None


def test_absence_that_was_told_before_we_created_it_is_no_deletion(target: KubernetesTarget, api: FakeApi) -> None:
    assert target.read(*KEY) is None
    target.heard(*KEY, None)
    target.write(some_object("A1"))
    assert target.edited(*KEY) is None
    assert by_watch(target, api) is None


def test_a_write_whose_answer_got_lost_is_ours_when_the_watch_shows_it(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    api.script.append(Answer(0, apply=True, method="PUT"))
    with pytest.raises(PublishError):
        target.write(some_object("A2"))
    assert by_watch(target, api) is None


def test_a_success_that_keeps_nothing_is_found_out(api: FakeApi, tmp_path: Path) -> None:
    """A server that answers 200 to a write it did not keep."""
    lags: list[bool] = []
    target = kubernetes_target(api.kubeconfig(tmp_path), confirm_s=0.0, on_lag=lambda: lags.append(True))
    target.write(some_object("A1"))
    assert by_watch(target, api) is None
    assert target.edit_period_s() is None, "the watch has shown the write"
    api.script.append(Answer(200, pretend=True, method="PUT"))
    target.write(some_object("A2"))
    assert target.edit_period_s() == 0.0
    found = target.edited(*KEY)
    assert found is not None
    assert found["data"] == some_object("A1")["data"]
    assert lags == [True], "the watch is begun anew too"
    target.write(some_object("A2"))
    assert api.objects[KEY]["data"] == some_object("A2")["data"]


def test_without_a_watch_nothing_is_expected_to_show(api: FakeApi, tmp_path: Path) -> None:
    target = kubernetes_target(api.kubeconfig(tmp_path), confirm_s=0.0)
    target.write(some_object("A1"))
    assert target.edit_period_s() is None
    target.heard(*KEY, api.objects[KEY])
    target.write(some_object("A2"))
    assert target.edit_period_s() == 0.0
    target.deaf()
    assert target.edit_period_s() is None
    assert target.edited(*KEY) is None


# -- answers that a healthy server does not give ----------------------------------------------------------------------


def test_success_with_other_content_is_no_acknowledgement(target: KubernetesTarget, api: FakeApi) -> None:
    """An admission webhook that changes what we send."""
    target.write(some_object("A1"))
    api.script.append(Answer(200, text=json.dumps({"metadata": {"resourceVersion": "9"}, "data": {}}), method="PUT"))
    with pytest.raises(PublishError, match="not with what was sent") as caught:
        target.write(some_object("A2"))
    assert "webhook" in caught.value.hint


@pytest.mark.parametrize("status", [200, 502])
def test_html_is_no_object(target: KubernetesTarget, api: FakeApi, status: int) -> None:
    target.write(some_object("A1"))
    api.script.append(Answer(status, text="<html>Bad Gateway</html>", method="PUT"))
    with pytest.raises(PublishError, match=r"no object|status 502"):
        target.write(some_object("A2"))
    target.write(some_object("A2"))


def test_retry_after_goes_with_the_error(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    api.script.append(Answer(429, "too many requests", method="PUT", headers={"Retry-After": "17"}))
    with pytest.raises(LaterError) as caught:
        target.write(some_object("A2"))
    assert caught.value.retry_after_s == 17


def test_an_immutable_object_says_what_to_do(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    api.script.append(Answer(422, "field is immutable when `immutable` is set", method="PUT"))
    with pytest.raises(PublishError) as caught:
        target.write(some_object("A2"))
    assert f"kubectl delete configmaps -n kube-system {NAME}" in caught.value.hint


def test_writes_carry_our_name(target: KubernetesTarget, api: FakeApi) -> None:
    target.write(some_object("A1"))
    target.write(some_object("A2"))
    assert [r.path.partition("?")[2] for r in api.requests] == ["", "fieldManager=nodeagent", "fieldManager=nodeagent"]


def test_requests_are_counted(api: FakeApi, tmp_path: Path) -> None:
    metrics = Registry()
    target = kubernetes_target(api.kubeconfig(tmp_path), metrics)
    api.script.append(Answer(503, method="POST"))
    with pytest.raises(PublishError):
        target.write(some_object("A1"))
    target.write(some_object("A1"))

    def count(verb: str, code: str) -> float:
        return metrics.value("api_requests_total", object="device_info", verb=verb, code=code)

    assert (count("get", "404"), count("create", "503"), count("create", "201")) == (1, 1, 1)
    assert metrics.value("api_request_bytes_total", object="device_info") > 500
    assert metrics.value("api_response_bytes_total", object="device_info") > 500


class TestDelete:
    def test_it_deletes_the_version_that_it_knows(self, target: KubernetesTarget, api: FakeApi) -> None:
        target.write(some_object())
        version = api.objects[KEY]["metadata"]["resourceVersion"]
        target.delete(*KEY)
        assert api.methods == ["GET", "POST", "DELETE"]
        assert api.requests[-1].body["preconditions"] == {"resourceVersion": version}
        assert api.objects == {}

    def test_what_is_surely_not_there_costs_one_look_at_most(self, target: KubernetesTarget, api: FakeApi) -> None:
        target.delete(*KEY)
        target.delete(*KEY)
        assert api.methods == ["GET"]

    def test_one_that_is_gone_already_is_fine(self, target: KubernetesTarget, api: FakeApi) -> None:
        target.write(some_object())
        api.delete_object(KEY)
        target.delete(*KEY)
        target.write(some_object("A2"))
        assert api.methods == ["GET", "POST", "DELETE", "POST"]

    def test_what_others_wrote_is_shown_first(self, target: KubernetesTarget, api: FakeApi) -> None:
        target.write(some_object("A1"))
        api.put_object(some_object("A3"))
        with pytest.raises(ObjectChanged) as caught:
            target.delete(*KEY)
        assert caught.value.obj["data"] == some_object("A3")["data"]
        target.delete(*KEY)
        assert api.objects == {}

    def test_our_own_write_whose_answer_got_lost_is_deleted(self, target: KubernetesTarget, api: FakeApi) -> None:
        target.write(some_object("A1"))
        api.script.append(Answer(apply=True, half=True, method="PUT"))
        with pytest.raises(PublishError):
            target.write(some_object("A2"))
        target.delete(*KEY)
        assert api.methods == ["GET", "POST", "PUT", "DELETE", "GET", "DELETE"]
        assert api.objects == {}

    def test_so_is_a_creation_whose_answer_got_lost(self, target: KubernetesTarget, api: FakeApi) -> None:
        api.script.append(Answer(apply=True, half=True, method="POST"))
        with pytest.raises(PublishError):
            target.write(some_object())
        target.delete(*KEY)
        assert api.objects == {}

    def test_a_deletion_whose_answer_got_lost_is_found_done(self, target: KubernetesTarget, api: FakeApi) -> None:
        target.write(some_object())
        api.script.append(Answer(apply=True, half=True, method="DELETE"))
        with pytest.raises(PublishError):
            target.delete(*KEY)
        target.delete(*KEY)
        assert api.methods == ["GET", "POST", "DELETE", "DELETE"]

    @pytest.mark.parametrize("status", [403, 429, 500])
    def test_other_statuses_are_errors(self, target: KubernetesTarget, api: FakeApi, status: int) -> None:
        target.write(some_object())
        api.script.append(Answer(status, "no", method="DELETE", headers={"Retry-After": "7"}))
        with pytest.raises(LaterError) as caught:
            target.delete(*KEY)
        assert f"status {status}" in caught.value.sentence
        assert caught.value.retry_after_s == 7.0
        assert status != 403 or "verb delete on configmaps in the namespace kube-system" in caught.value.hint
        assert KEY in api.objects

    def test_a_look_that_is_refused_says_when_to_come_again(self, target: KubernetesTarget, api: FakeApi) -> None:
        api.script.append(Answer(429, "busy", method="GET", headers={"Retry-After": "9"}))
        with pytest.raises(ReadBackError) as caught:
            target.read(*KEY)
        assert caught.value.retry_after_s == 9.0
