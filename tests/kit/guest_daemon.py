"""The daemon in a guest, beside its real /dev/ipmi0: publishes to a folder that both sides see."""

import signal
from typing import Any

import yaml
from kit.daemon import NODE, PROGRAM, flags, wait_until
from kit.guest import ANSWER_LIMIT_S, SHARE, IpmiGuest, ProgramInGuest


class GuestDaemon:
    """A `nodeagent run` in a guest, without chips. name: for its files; no other daemon of this guest has it.

    settings: more of them, with `a__b` for `a.b`.
    """

    def __init__(self, guest: IpmiGuest, name: str, **settings: object) -> None:
        self._out = guest.share / name
        every = {**_settings(name), **{key.replace("__", "."): value for key, value in settings.items()}}
        self._program = ProgramInGuest(guest, name, PROGRAM, "run", *flags(every))

    def object(self, namespace: str, name: str) -> dict[str, Any] | None:
        """A published object; None while there is none."""
        try:
            found: dict[str, Any] | None = yaml.safe_load((self._out / namespace / f"{name}.yaml").read_text())
        except (FileNotFoundError, NotADirectoryError, yaml.YAMLError):
            return None
        return found

    def words(self) -> str:
        """The log so far."""
        return self._program.log.read_text(errors="replace")

    def wait_for_words(self, words: str) -> None:
        """Until the log has them. AssertionError with the log after the limit."""
        try:
            wait_until(lambda: words in self.words(), words, ANSWER_LIMIT_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\nend of the log:\n{self.words()[-4000:]}") from None

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self._program.end()

    def kill(self) -> int:
        """SIGKILL; the exit code."""
        return self._program.end(signal.SIGKILL)


def _settings(name: str) -> dict[str, object]:
    """Quick ones. Only the objects are in the share: sockets and locks need a file system of Linux."""
    state = f"/run/{name}"
    return {
        "driver.library": "/nonexistent/libdcmi.so",
        "publish.target": "directory",
        "publish.directory": f"{SHARE}/{name}",
        "publish.min_distance_s": "0.02",
        "ipmi.poll_period_s": "0.5",
        "ipmi.report_interval_s": "0.02",
        "node.name": NODE,
        "http.port": 0,
        "daemon.state_dir": state,
        "daemon.socket": f"{state}/socket",
        "daemon.lock": f"{state}/lock",
    }
