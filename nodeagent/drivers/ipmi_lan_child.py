"""The side of the child process of IPMI over LAN: the only place that imports pyghmi.

pyghmi keeps a select loop and tables of sessions for the whole process and waits for answers as long as it likes
(node-faults 5). So it lives in a process that serves one session, is killed when it takes too long, and takes its
tables with it. Errors go up as plain values: `[kind, sentence, hint]`; a good answer is `["ok", value]`.

The child reads the credentials itself: they cross no socket, no argument and no environment.
"""

import contextlib
import re
import socket
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from nodeagent.core.errors import IpmiAccessError
from nodeagent.drivers.ipmi_credentials import read_credentials

OK, ACCESS, REFUSED, SILENT = "ok", "access", "refused", "silent"
"""Kinds of outcomes: fine; no way to the BMC; login refused; no answer."""
_CIPHER = re.compile("cipher suite|(authentication|integrity|confidentiality) algorithm|integrity payload", re.I)
_PRIVILEGE = re.compile("role|priv(i|e)l[ae]ge", re.I)
_USER = re.compile("unauthorized name|username|user name", re.I)
_PASSWORD = re.compile("incorrect password|integrity check|integrity code", re.I)
_FULL = re.compile("insufficient resources|slot", re.I)
_UNRESOLVED = re.compile("unable to transmit", re.I)
_SILENT = re.compile("timeout|no longer connected|failed to initialize", re.I)

Outcome = list[Any]


class LanAdapter:
    """The calls of the child: `load`, then `login`, then `raw` as often as wanted, then `logout`."""

    def __init__(self) -> None:
        self._pyghmi: Any = None
        self._errors: tuple[type[Exception], ...] = ()
        self._bmc: Any = None
        self._name = ""

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """Calls by name."""
        return {"load": self.load, "login": self.login, "raw": self.raw, "logout": self.logout}

    def event_fd(self) -> int:
        """A BMC sends no events."""
        return -1

    def drain(self, room: int) -> tuple[list[list[Any]], int]:
        """A BMC sends no events."""
        return [], 0

    def load(self) -> Outcome:
        """Import pyghmi, whose warnings about its own code are nothing that a user could act on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                from pyghmi.exceptions import PyghmiException
                from pyghmi.ipmi import command
            except ImportError as error:
                return [ACCESS, f"IPMI over LAN needs pyghmi: {error}", "pip install nodeagent[lan]"]
        self._pyghmi, self._errors = command, (PyghmiException,)
        return [OK, None]

    def login(self, address: str, port: int, folder: str) -> Outcome:
        """Open a session with the credentials of `folder`. pyghmi chooses the cipher suite: 17, else 3."""
        self._name = f"the BMC at {address} port {port}"
        try:
            credentials = read_credentials(folder)
            self._bmc = self._pyghmi.Command(
                bmc=address, userid=credentials.user, password=credentials.password, port=port, keepalive=False
            )
        except IpmiAccessError as error:
            return [ACCESS, error.sentence, error.hint]
        except socket.gaierror as error:
            return [ACCESS, f"the address of the BMC, {address}, cannot be resolved: {error.strerror}", ""]
        except self._errors as error:
            return judge_login(str(error), self._name)
        return [OK, None]

    def raw(self, netfn: int, command: int, data: str) -> Outcome:
        """Send one command. data: hex. Value: completion code and payload as numbers, as in-band (3.2)."""
        try:
            answer = self._bmc.raw_command(netfn=netfn, command=command, data=tuple(bytes.fromhex(data)))
        except self._errors:
            answer = None
        if answer is None or answer["code"] > 0xFF:  # pyghmi's own code for "timeout" is 0xFFFF
            return [SILENT, f"{self._name} no longer answers", _NETWORK]
        return [OK, [int(answer["code"]), *answer.get("data", b"")]]

    def logout(self) -> Outcome:
        """Give the session back: BMCs have few of them (lesson 90)."""
        if self._bmc is not None:
            with contextlib.suppress(*self._errors):
                self._bmc.ipmi_session.logout()
        return [OK, None]


def judge_login(text: str, bmc: str) -> Outcome:
    """What a failed login means. text: pyghmi's words. bmc: the BMC in words.

    Only wrong credentials are `refused`: the others do not count as a try at the BMC.
    """
    if _PASSWORD.search(text):
        return [REFUSED, f"{bmc} refuses the login: the password is wrong", _SECRET]
    if _USER.search(text):
        return [REFUSED, f"{bmc} refuses the login: it has no such user, or not for its LAN interface", _SECRET]
    if _FULL.search(text):
        return [ACCESS, f"{bmc} has no free session", "sessions that others left open end after a minute or so"]
    if _CIPHER.search(text):
        return [
            ACCESS,
            f"{bmc} accepts neither cipher suite 17 nor 3",
            "allow one of them in the settings of IPMI over LAN",
        ]
    if _PRIVILEGE.search(text):
        return [
            REFUSED,
            f"{bmc} refuses the login: the user has neither the privilege of an administrator nor of an operator",
            "raise the privilege of the user",
        ]
    if _UNRESOLVED.search(text):
        return [ACCESS, f"the address of {bmc} cannot be resolved", ""]
    if not text or text == "None" or _SILENT.search(text):
        return [SILENT, f"{bmc} does not answer", _NETWORK]
    return [ACCESS, f"the login at {bmc} failed: {text}", ""]


_SECRET = "correct the Secret of ipmi.credentials_dir; each try brings the account nearer to being locked"
_NETWORK = "is IPMI over LAN switched on in the BMC, and UDP open on the way to it?"
