"""One daemon of a node at a time (decision 23), with real processes."""

import logging
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kit.daemon import wait_until

from nodeagent.daemon.lock import NodeLock

_HOLD = """
import sys, threading
from pathlib import Path
from nodeagent.daemon.lock import NodeLock
assert NodeLock(Path(sys.argv[1])).acquire(threading.Event())
print("held", flush=True)
threading.Event().wait()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", _HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.stdout.close()
    return process


def test_the_second_waits_until_the_first_is_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "run" / "lock"
    first = holder(path)
    lock = NodeLock(path)
    done: list[bool] = []
    thread = threading.Thread(target=lambda: done.append(lock.acquire(threading.Event())))
    thread.start()
    wait_until(lambda: lock.waits)
    assert f"pid={first.pid}" in caplog.text
    assert done == []
    first.send_signal(signal.SIGKILL)
    first.wait()
    thread.join()
    assert done == [True]
    assert not lock.waits
    assert "has ended" in caplog.text
    lock.release()


def test_a_stop_ends_the_wait(tmp_path: Path) -> None:
    first = NodeLock(tmp_path / "lock")
    assert first.acquire(threading.Event())
    stopping = threading.Event()
    stopping.set()
    assert not NodeLock(tmp_path / "lock").acquire(stopping)
    first.release()
    again = NodeLock(tmp_path / "lock")
    assert again.acquire(threading.Event())
    again.release()


def test_a_place_where_nothing_can_be_locked_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    assert NodeLock(tmp_path / "file" / "lock").acquire(threading.Event())
    assert "no lock" in caplog.text
    assert NodeLock(None).acquire(threading.Event())
