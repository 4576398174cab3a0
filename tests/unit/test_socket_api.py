"""The daemon's socket: what happens when it cannot be made or is not ours."""

import logging
import threading
from pathlib import Path
from typing import cast

import pytest
from kit.daemon import somebody_at, wait_until

from nodeagent.core.clock import SystemClock
from nodeagent.daemon.core_loop import CoreLoop
from nodeagent.daemon.socket_api import SocketApi, SocketError, ask

LIMIT_S = 10.0


def api(path: Path) -> SocketApi:
    """Nobody asks about chips here, so there is no core loop behind it."""
    return SocketApi(path, cast(CoreLoop, None), SystemClock())


@pytest.mark.parametrize("name", ["a file/socket", "s" * 200])
def test_a_socket_that_cannot_be_made_is_one_line_and_delays_no_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    (tmp_path / "a file").write_text("")
    served = api(tmp_path / name)
    with caplog.at_level(logging.WARNING):
        thread = threading.Thread(target=served.run)
        thread.start()
        wait_until(lambda: caplog.records)
        served.stop()
        thread.join(LIMIT_S)
    assert not thread.is_alive()
    (record,) = caplog.records
    assert "questions are not answered" in record.getMessage()
    assert record.exc_info is None


def test_a_socket_that_is_served_ends_with_the_stop(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "socket"
    served = api(path)
    thread = threading.Thread(target=served.run)
    thread.start()
    wait_until(path.exists)
    with pytest.raises(SocketError, match="does not know this question"):
        ask(path, ask="nothing")
    served.stop()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert not path.exists()
    with pytest.raises(SocketError, match=r"no daemon answers at .*socket: No such file or directory"):
        ask(path, ask="why")


def test_an_answer_of_somebody_else_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with somebody_at(path, b"[1]\n"), pytest.raises(SocketError, match="does not know this question"):
        ask(path, ask="why")
