"""IPMI over LAN: the real child process and pyghmi against a BMC that is a process of its own."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kit.bmc import numbered
from kit.daemon import alive, wait_until
from kit.lan_bmc import PASSWORD, USER, State
from kit.server_process import ServerProcess, free_ports

from nodeagent.core.errors import IpmiAccessError, IpmiError, IpmiNotSupportedError
from nodeagent.drivers.host import Reaper
from nodeagent.drivers.ipmi import LoginRefusedError, NoAnswerError
from nodeagent.drivers.ipmi_alarms import poll_alarms
from nodeagent.drivers.ipmi_label import read_serial_number
from nodeagent.drivers.ipmi_lan import LanConnector, LanSettings, LanTransport

TESTS = Path(__file__).parent.parent


class Bmc:
    """A BMC, a folder of credentials for it, and sessions that end with the test."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.state = State()
        [self.port] = free_ports(1)
        code = f"import sys; sys.path.insert(0, {str(TESTS)!r}); from kit.lan_bmc import main; main()"
        ready = folder / "ready"
        self.process = ServerProcess(
            "bmc", [sys.executable, "-W", "ignore", "-c", code, self.port, folder], folder, ready.exists
        )
        stack.callback(self.process.kill)
        self.credentials(USER, PASSWORD)
        self.reaper = Reaper()
        self.warnings: list[str] = []
        self.connect = self.connector()

    def connector(self, deadline_s: float = 20.0) -> LanConnector:
        settings = LanSettings("127.0.0.1", self.port, str(self.folder / "login"), deadline_s)
        return LanConnector(settings, self.reaper, self.warnings.append)

    def start(self, **state: object) -> None:
        (self.folder / "ready").unlink(missing_ok=True)
        self.be(**state)
        self.process.start()

    def be(self, **state: object) -> None:
        for name, value in state.items():
            setattr(self.state, name, value)
        self.state.write(self.folder)

    def credentials(self, user: str, password: str) -> None:
        login = self.folder / "login"
        login.mkdir(exist_ok=True)
        for name, text in (("username", user), ("password", password)):
            (login / name).write_text(text + "\n")
            (login / name).chmod(0o600)

    def session(self) -> LanTransport:
        transport = self.connect()
        self.stack.callback(transport.close)
        return transport

    def journal(self) -> list[str]:
        """What happened at the BMC, in order of the first time: pyghmi repeats what is not answered at once."""
        return list(dict.fromkeys((self.folder / "journal").read_text().split()))


@pytest.fixture
def bmc(tmp_path: Path) -> Iterator[Bmc]:
    with ExitStack() as stack:
        made = Bmc(tmp_path, stack)
        yield made
    wait_until(lambda: made.reaper.alive() == 0, "no child is left")


def fields(count: int) -> list[list[int]]:
    return [[a.code, a.raised_s, a.severity, a.subject, a.device_id] for a in numbered(count)]


def test_alarms_and_serial_number_over_the_network(bmc: Bmc, capfd: pytest.CaptureFixture[str]) -> None:
    bmc.start(alarms=fields(33), page_size=12, serial=["0000" + b"2102".hex(), "0080" + b"314NMV".hex()])
    session = bmc.session()
    assert poll_alarms(session.raw) == tuple(numbered(33))
    assert read_serial_number(session.raw) == "2102314NMV"
    session.close()
    wait_until(lambda: bmc.journal()[4:] == ["logout"], "the session was given back")
    assert bmc.journal() == ["open", "login", "30/94", "30/90", "logout"]
    wait_until(lambda: not alive(session.pid), "the child is collected")
    assert capfd.readouterr().err == "", "no warnings of pyghmi or of what it imports"


def test_a_completion_code_stands_before_the_payload_as_in_band(bmc: Bmc) -> None:
    bmc.start()
    session = bmc.session()
    assert session.raw(0x30, 0x94, bytes.fromhex("DB07004000 0000 0EFF")) == bytes.fromhex("00 DB0700 0000 00 00")
    assert session.raw(0x30, 0x94, bytes.fromhex("DB07004000")) == b"\xc7"
    bmc.be(code=0xD4)
    with pytest.raises(IpmiNotSupportedError, match="D4") as caught:
        poll_alarms(session.raw)
    assert "administrator" in caught.value.hint
    bmc.be(code=0)
    assert poll_alarms(session.raw) == (), "an error of the BMC is no error of the session"


class TestLogin:
    def test_a_wrong_password_is_refused_and_shown_nowhere(self, bmc: Bmc, capfd: pytest.CaptureFixture[str]) -> None:
        bmc.start()
        bmc.credentials(USER, "not-the-password")
        with pytest.raises(LoginRefusedError, match="refuses the login: the password is wrong") as caught:
            bmc.connect()
        assert "locked" in caught.value.hint
        assert bmc.journal() == ["open", "login"]
        assert "not-the-password" not in "".join([str(caught.value), *capfd.readouterr()])

    def test_the_right_one_is_read_for_the_next_try(self, bmc: Bmc) -> None:
        bmc.start()
        bmc.credentials(USER, "not-the-password")
        with pytest.raises(LoginRefusedError):
            bmc.connect()
        bmc.credentials(USER, PASSWORD)
        assert poll_alarms(bmc.session().raw) == ()

    def test_an_unknown_user(self, bmc: Bmc) -> None:
        bmc.start()
        bmc.credentials("nobody", PASSWORD)
        with pytest.raises(LoginRefusedError, match="no such user"):
            bmc.connect()
        assert bmc.journal() == ["open", "stranger"]

    def test_a_privilege_that_the_user_does_not_have(self, bmc: Bmc) -> None:
        bmc.start(rakp_status=0x0A)
        with pytest.raises(LoginRefusedError, match="privilege"):
            bmc.connect()

    def test_no_common_cipher_suite(self, bmc: Bmc) -> None:
        bmc.start(no_cipher=True)
        with pytest.raises(IpmiAccessError, match="neither cipher suite 17 nor 3") as caught:
            bmc.connect()
        assert not isinstance(caught.value, LoginRefusedError)

    def test_no_free_session(self, bmc: Bmc) -> None:
        bmc.start(rakp_status=0x01)
        with pytest.raises(IpmiAccessError, match="no free session") as caught:
            bmc.connect()
        assert not isinstance(caught.value, LoginRefusedError)

    def test_nobody_answers(self, bmc: Bmc) -> None:
        with pytest.raises(NoAnswerError, match=f"the BMC at 127.0.0.1 port {bmc.port} does not answer"):
            bmc.connect()

    def test_a_login_that_takes_too_long_is_ended(self, bmc: Bmc) -> None:
        bmc.connect = bmc.connector(deadline_s=0.1)
        with pytest.raises(NoAnswerError, match=r"did not answer login within 0\.3 s"):
            bmc.connect()

    def test_an_address_that_is_none(self, bmc: Bmc) -> None:
        settings = LanSettings("bmc.invalid", bmc.port, str(bmc.folder / "login"), 20.0)
        with pytest.raises(IpmiAccessError, match=r"bmc\.invalid"):
            LanConnector(settings, bmc.reaper, bmc.warnings.append)()

    def test_no_address(self, bmc: Bmc) -> None:
        settings = LanSettings("", bmc.port, str(bmc.folder / "login"), 20.0)
        with pytest.raises(IpmiAccessError, match="no address of the BMC"):
            LanConnector(settings, bmc.reaper, bmc.warnings.append)()

    def test_no_credentials(self, bmc: Bmc) -> None:
        (bmc.folder / "login" / "password").unlink()
        with pytest.raises(IpmiAccessError, match=r"there is no .*/login/password"):
            bmc.connect()
        assert bmc.reaper.alive() == 0

    def test_open_files_are_named_once(self, bmc: Bmc) -> None:
        bmc.start()
        (bmc.folder / "login" / "password").chmod(0o644)
        for _ in range(2):
            bmc.session().close()
        [warning] = bmc.warnings
        assert "password has mode 0644" in warning


class TestTrouble:
    def test_a_bmc_that_stops_answering_and_comes_back(self, bmc: Bmc) -> None:
        bmc.start(alarms=fields(2))
        bmc.connect = bmc.connector(deadline_s=2.0)
        session = bmc.session()
        assert len(poll_alarms(session.raw)) == 2
        bmc.process.kill()
        with pytest.raises(NoAnswerError):
            poll_alarms(session.raw)
        with pytest.raises(IpmiError, match="the session was given up"):
            session.raw(0x06, 0x01, b"")
        session.close()
        bmc.start(alarms=fields(3))
        assert len(poll_alarms(bmc.session().raw)) == 3

    def test_a_command_without_an_answer_ends_at_the_deadline_and_takes_the_child_with_it(self, bmc: Bmc) -> None:
        bmc.start()
        bmc.connect = bmc.connector(deadline_s=1.0)
        session = bmc.session()
        bmc.be(mute=True)
        with pytest.raises(NoAnswerError, match="did not answer raw within 1 s"):
            poll_alarms(session.raw)
        wait_until(lambda: not alive(session.pid), "the child is collected")

    def test_a_child_that_hangs_is_killed(self, bmc: Bmc) -> None:
        bmc.start()
        bmc.connect = bmc.connector(deadline_s=1.0)
        session = bmc.session()
        os.kill(session.pid, signal.SIGSTOP)
        with pytest.raises(NoAnswerError):
            poll_alarms(session.raw)
        wait_until(lambda: not alive(session.pid), "the child is collected")

    def test_a_child_that_dies_is_an_error_of_the_session(self, bmc: Bmc) -> None:
        bmc.start()
        session = bmc.session()
        os.kill(session.pid, signal.SIGKILL)
        with pytest.raises(IpmiError, match=r"SIGKILL|is gone"):
            poll_alarms(session.raw)
        assert poll_alarms(bmc.session().raw) == ()

    def test_answers_of_something_else_than_a_bmc(self, bmc: Bmc) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.1", bmc.port))
            bmc.connect = bmc.connector(deadline_s=0.5)
            with pytest.raises(NoAnswerError):
                bmc.connect()


def test_the_password_is_in_no_argument_and_no_environment_of_the_child(bmc: Bmc) -> None:
    bmc.start()
    session = bmc.session()
    for file in ("cmdline", "environ"):
        assert PASSWORD.encode() not in Path(f"/proc/{session.pid}/{file}").read_bytes()
