"""What only our LAN transport meets: logins, and a network that is silent (node-faults 5, 19)."""

from pathlib import Path

import pytest
from kit.alarms import CPU_1, WORKED_PAGE
from kit.bmc_simulator import BmcSimulator
from kit.ipmi_ways import LanWay, failure


def test_a_wrong_password(bmc: BmcSimulator, tmp_path: Path) -> None:
    with LanWay(bmc, tmp_path, password="wrong") as way:
        kind, _ = failure(way)
    assert kind == "LoginRefusedError"
    assert not way.warnings


def test_one_session_serves_many_polls(bmc: BmcSimulator, lan: LanWay) -> None:
    bmc.say(WORKED_PAGE)
    before = bmc.sessions()  # the login that was refused may still be among them
    assert [lan.poll() for _ in range(20)] == [WORKED_PAGE] * 20
    assert bmc.sessions() == before + 1


def test_sessions_are_given_back(bmc: BmcSimulator, lan: LanWay) -> None:
    before = bmc.sessions()
    assert lan.poll() == ()
    assert bmc.sessions() == before + 1
    lan.close()
    assert bmc.sessions() == before


def test_a_bad_answer_gives_the_session_back(bmc: BmcSimulator, lan: LanWay) -> None:
    bmc.say(WORKED_PAGE, cut=1)
    before = bmc.sessions()
    assert failure(lan)[0] == "DamagedAnswerError"
    assert bmc.sessions() == before


def test_t12_the_bmc_is_killed_and_comes_back(bmc: BmcSimulator, tmp_path: Path) -> None:
    with LanWay(bmc, tmp_path, deadline_s=2) as way:
        bmc.say([CPU_1])
        assert way.poll() == (CPU_1,)
        bmc.kill()
        for _ in range(2):
            kind, _ = failure(way)
            assert kind == "NoAnswerError"
        bmc.say()
        bmc.start()
        assert way.poll() == ()


@pytest.mark.parametrize("trouble", [{"silent": 1}, {"delay_ms": 5000, "times": 1}])
def test_t11_no_answer_in_time(bmc: BmcSimulator, tmp_path: Path, trouble: dict[str, int]) -> None:
    bmc.say([CPU_1], **trouble)
    with LanWay(bmc, tmp_path, deadline_s=1) as way:
        way.serial_number()  # the login has happened
        kind, _ = failure(way)
    assert kind == "NoAnswerError"
