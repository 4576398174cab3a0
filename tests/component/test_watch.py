"""Watches against a server that speaks the protocol: edits, ends, cuts, 410, refusals, and a peer that vanished."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kit.daemon import wait_until
from kit.fake_api import Answer, FakeApi, fake_api

from nodeagent.cluster.client import ApiClient
from nodeagent.cluster.followed import FollowedObject
from nodeagent.cluster.stream import MAX_LINE_BYTES
from nodeagent.cluster.watch import Selection, Watch, named
from nodeagent.core.errors import ForbiddenError, NotAskedError, ReadBackError
from nodeagent.daemon.metrics import Registry

KEY = ("kube-system", "rules")


def obj(text: str, name: str = KEY[1]) -> dict[str, Any]:
    return {"metadata": {"namespace": KEY[0], "name": name}, "data": {"text": text}}


class Heard:
    """A follower that writes down what it hears."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def listed(self, objects: list[dict[str, Any]]) -> None:
        self.words.append("listed " + ",".join(o["data"]["text"] for o in objects))

    def changed(self, kind: str, obj: dict[str, Any]) -> None:
        self.words.append(f"{kind} {obj['data']['text']}")

    def trouble(self, sentence: str, hint: str, forbidden: bool) -> None:
        self.words.append(f"trouble {forbidden}" if sentence else "works again")


class House:
    """A watch in a thread of its own."""

    def __init__(self, api: FakeApi, folder: Path) -> None:
        self.api = api
        self.metrics = Registry()
        self.heard = Heard()
        client = ApiClient(api.kubeconfig(folder), self.metrics)
        self.watch = Watch(client, named("configmaps", "rules", *KEY), self.heard, self.metrics, draw=lambda: 0.0)
        self.thread = threading.Thread(target=self.watch.run)

    def wait(self, *words: str) -> None:
        wait_until(lambda: self.heard.words == list(words), f"{words}, not {self.heard.words}")

    def watching(self, times: int) -> None:
        wait_until(lambda: self.api.followed >= times, f"{times} watches")

    def restarts(self, why: str) -> float:
        return self.metrics.value("watch_restarts_total", object="rules", why=why)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with fake_api() as api:
        made = House(api, tmp_path)
        yield made
        made.watch.stop()
        if made.thread.ident is not None:
            made.thread.join(5)
            assert not made.thread.is_alive(), "a watch can be stopped (lesson 59)"


def test_one_list_and_one_watch_by_name_then_every_change(house: House) -> None:
    house.api.put_object(obj("one"))
    house.thread.start()
    house.wait("listed one")
    house.watching(1)
    house.api.put_object(obj("two"))
    house.api.put_object(obj("not ours", "other"))
    house.api.delete_object(KEY)
    house.api.put_object(obj("three"))
    house.wait("listed one", "MODIFIED two", "DELETED two", "ADDED three")
    assert [r.method for r in house.api.requests] == ["GET", "GET"]
    assert all("/namespaces/kube-system/configmaps?" in r.path for r in house.api.requests)
    assert all("fieldSelector=metadata.name%3Drules" in r.path for r in house.api.requests)
    assert "allowWatchBookmarks=true" in house.api.requests[1].path


def test_a_proper_end_goes_on_from_the_last_version(house: House) -> None:
    house.thread.start()
    house.watching(1)
    house.api.put_object(obj("one"))
    house.wait("listed ", "ADDED one")
    version = house.api.version
    house.api.cut_watches({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version + 5)}}}, None)
    house.watching(2)
    assert f"resourceVersion={version + 5}" in house.api.requests[-1].path
    assert house.restarts("ended") == 1
    assert house.heard.words == ["listed ", "ADDED one"], "nothing is listed again"


@pytest.mark.parametrize(
    "parting",
    [
        [],
        [b'{"type": "MODIFIED", "obj'],
        [b"<html>\n"],
        [b'{"type": "MODIFIED"}\n'],
        [b"7\n"],
        [{"type": "ERROR", "object": {"code": 500, "message": "etcd is away"}}],
        [b"x" * (MAX_LINE_BYTES + 2), b"y"],
    ],
    ids=["cut", "half an event", "html", "no object", "a number", "error event", "endless line"],
)
def test_a_broken_stream_lists_anew_and_loses_nothing(house: House, parting: list[Any]) -> None:
    house.thread.start()
    house.watching(1)
    house.api.cut_watches(*parting)
    house.api.put_object(obj("meanwhile"))
    house.watching(2)
    wait_until(lambda: "listed meanwhile" in house.heard.words or "ADDED meanwhile" in house.heard.words)
    assert house.restarts("broken") == 1


@pytest.mark.parametrize("how", ["in the stream", "as a status"])
def test_410_lists_anew(house: House, how: str) -> None:
    """Lesson 60: both ways in which a server says it."""
    if how == "as a status":
        house.api.script.append(Answer(410, "too old", method="WATCH"))
    house.thread.start()
    house.watching(1)
    if how == "in the stream":
        house.api.cut_watches({"type": "ERROR", "object": {"code": 410, "message": "too old"}}, None)
    house.api.put_object(obj("meanwhile"))
    wait_until(lambda: house.heard.words[-1].endswith("meanwhile"))
    assert house.restarts("gone") == 1


def test_a_watch_whose_version_is_gone_after_a_reconnect(house: House) -> None:
    house.thread.start()
    house.watching(1)
    house.api.forget_history()
    house.api.cut_watches(None)
    house.watching(3)
    house.wait("listed ", "listed ")


def test_a_missing_right_is_said_once_and_its_end_too(house: House) -> None:
    house.api.script.extend(
        [Answer(403, "forbidden"), Answer(403, "forbidden"), Answer(403, "forbidden", method="WATCH")]
    )
    house.thread.start()
    house.wait("trouble True", "works again", "listed ", "trouble True", "works again")
    assert house.restarts("refused") == 3


def test_an_absent_server_is_trouble_and_the_retry_succeeds(house: House) -> None:
    house.api.script.extend([Answer(0), Answer(0), Answer(200, text="<html>a proxy</html>"), Answer(200, half=True)])
    house.thread.start()
    house.wait("trouble False", "trouble False", "trouble False", "works again", "listed ")


def test_an_expired_token_is_read_again(house: House, tmp_path: Path) -> None:
    """Lesson 63."""
    house.api.token = "old"
    house.api.kubeconfig(tmp_path)
    house.thread.start()
    house.watching(1)
    house.api.token = "new"
    house.api.kubeconfig(tmp_path)
    house.api.cut_watches(None)
    house.watching(2)
    house.api.put_object(obj("after"))
    house.wait("listed ", "ADDED after")
    assert house.metrics.value("api_credentials_reloaded_total") == 1


either_connection = pytest.mark.parametrize("closing", [False, True], ids=["kept open", "Connection: close"])


@either_connection
def test_an_interrupted_watch_lists_anew(house: House, closing: bool) -> None:
    house.api.closing = closing
    house.thread.start()
    house.watching(1)
    wait_until(lambda: house.watch._stream is not None)
    house.watch.interrupt()
    house.watching(2)
    house.wait("listed ", "listed ")


@contextmanager
def mute_server() -> Iterator[str]:
    """A listener that accepts and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_peer_that_never_answers_ends_by_our_own_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lesson 58: the server's time limit is no limit when the server is gone."""
    monkeypatch.setattr("nodeagent.cluster.client.READ_S", 0.2)
    with mute_server() as url:
        metrics = Registry()
        heard = Heard()
        client = ApiClient(FakeApi(url=url).kubeconfig(tmp_path), metrics)
        watch = Watch(client, Selection("pods", "pods", "spec.nodeName=a"), heard, metrics, draw=lambda: 0.0)
        thread = threading.Thread(target=watch.run)
        thread.start()
        wait_until(lambda: heard.words[:1] == ["trouble False"])
        watch.stop()
        thread.join(5)
        assert metrics.value("api_requests_total", object="pods", verb="list", code="none") >= 2


@either_connection
def test_a_stream_that_falls_silent_ends(house: House, monkeypatch: pytest.MonkeyPatch, closing: bool) -> None:
    """Once a server has shown that it sends bookmarks, their absence is a half-open connection."""
    house.api.closing = closing
    monkeypatch.setattr("nodeagent.cluster.watch._SILENCE_S", 0.2)
    house.thread.start()
    house.watching(1)
    with house.api.lock:
        house.api.happened.append((house.api.version + 1, "configmaps", "BOOKMARK", _bookmark(house.api.version + 1)))
        house.api._changed.notify_all()
    house.watching(2)
    assert house.restarts("broken") == 1


def _bookmark(version: int) -> dict[str, Any]:
    return {"metadata": {"namespace": KEY[0], "name": KEY[1], "resourceVersion": str(version)}}


@pytest.mark.parametrize(
    ("tell", "raises"),
    [
        (lambda _: None, NotAskedError),
        (lambda f: f.trouble("no", "", True), ForbiddenError),
        (lambda f: f.trouble("no", "", False), ReadBackError),
    ],
)
def test_a_followed_object_is_unknown_until_told(
    tell: Callable[[FollowedObject], None], raises: type[ReadBackError]
) -> None:
    followed = FollowedObject(lambda: None)
    tell(followed)
    with pytest.raises(raises):
        followed.read(*KEY)
    followed.listed([])
    assert followed.read(*KEY) is None
    followed.changed("ADDED", obj("one"))
    followed.trouble("gone", "", False)
    assert followed.read(*KEY) == obj("one"), "what was told stays true"
    followed.changed("DELETED", obj("one"))
    assert followed.read(*KEY) is None
