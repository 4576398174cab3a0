"""The child of IPMI over LAN without a network: what pyghmi says in words, and a machine without pyghmi."""

import sys

import pytest
from pyghmi.exceptions import IpmiException
from pyghmi.ipmi.private.constants import rmcp_codes

from nodeagent.drivers.ipmi_lan_child import ACCESS, OK, REFUSED, SILENT, LanAdapter, judge_login

BMC = "the BMC at bmc-7 port 623"


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("Incorrect password provided", REFUSED, "the password is wrong"),
        ("Invalid RAKP4 integrity code (wrong Kg?)", REFUSED, "the password is wrong"),
        ("None", SILENT, "does not answer"),
        ("", SILENT, "does not answer"),
        ("timeout", SILENT, "does not answer"),
        ("Session no longer connected", SILENT, "does not answer"),
        ("Unable to transmit to specified address", ACCESS, "cannot be resolved"),
        (
            "Insufficient privilege while requesting privelege level 4 for b'monitor'",
            REFUSED,
            "neither the privilege of an administrator nor of an operator",
        ),
        ("something that nobody has seen", ACCESS, "failed: something that nobody has seen"),
    ],
)
def test_words_of_a_failed_login(text: str, kind: str, words: str) -> None:
    told, sentence, _ = judge_login(text, BMC)
    assert told == kind
    assert BMC in sentence
    assert words in sentence


KINDS = {
    0x01: (ACCESS, "no free session"),
    0x04: (ACCESS, "cipher suite"),
    0x05: (ACCESS, "cipher suite"),
    0x06: (ACCESS, "cipher suite"),
    0x09: (REFUSED, "privilege"),
    0x0A: (REFUSED, "privilege"),
    0x0B: (ACCESS, "no free session"),
    0x0C: (REFUSED, "no such user"),
    0x0D: (REFUSED, "no such user"),
    0x0F: (REFUSED, "password"),
    0x10: (ACCESS, "cipher suite"),
    0x11: (ACCESS, "cipher suite"),
    0x12: (ACCESS, "failed: Illegal or unrecognized parameter"),
}


@pytest.mark.parametrize("code", KINDS)
def test_the_status_codes_of_a_login(code: int) -> None:
    """IPMI 2.0, table 13-15, in the words of the installed pyghmi."""
    kind, words = KINDS[code]
    told, sentence, _ = judge_login(f"{rmcp_codes[code]} in RAKP2", BMC)
    assert (told, words in sentence) == (kind, True), sentence


def test_without_pyghmi_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyghmi.ipmi", None)
    kind, sentence, hint = LanAdapter().load()
    assert kind == ACCESS
    assert sentence.startswith("IPMI over LAN needs pyghmi")
    assert hint == "pip install nodeagent[lan]"


class Bmc:
    """What a `Command` of pyghmi answers."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def raw_command(self, **_: object) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"code": 0, "data": bytearray(b"\x01\x02")}, [OK, [0, 1, 2]]),
        ({"code": 0xC1, "data": bytearray(), "error": "Invalid command"}, [OK, [0xC1]]),
        ({"code": 0xFFFF, "error": "timeout"}, SILENT),
        (None, SILENT),
        (IpmiException("Session no longer connected"), SILENT),
    ],
)
def test_answers(answer: object, outcome: object) -> None:
    adapter = LanAdapter()
    adapter.load()
    adapter._bmc = Bmc(answer)
    told = adapter.raw(0x30, 0x94, "00")
    assert (told[0] if outcome == SILENT else told) == outcome


def test_it_has_no_events() -> None:
    assert LanAdapter().event_fd() == -1
    assert LanAdapter().drain(10) == ([], 0)
