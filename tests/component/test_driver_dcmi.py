"""DCMI through the real path: settings -> child process -> cffi -> shim -> the mock library, on every product."""

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kit.daemon import alive, compile_library, node_file, wait_until

from nodeagent.core.codes import CARD_DROPPED
from nodeagent.core.errors import DriverError, LibraryError, NodeAgentError
from nodeagent.core.model import ChipId, Family, SuperPod
from nodeagent.drivers.answers import AnswerError, AnswerKind
from nodeagent.drivers.chips import CodesAnswer, DcmiSettings, DriverEvent, DriverNews, HostedChips
from nodeagent.drivers.host import HostGoneError, HostStuckError, Reaper
from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer, library_dir

X = 0x80E18005
no_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


class Sessions:
    """Opens sessions and ends them with the test; their news are kept in order."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.reaper = Reaper()
        self.news: list[DriverNews] = []

    def on(self, server: MockServer, **settings: Any) -> HostedChips:
        """A session with the mock library."""
        environment = {"NODEAGENT_MOCK_SOCKET": server.socket}
        return self.with_library(library_dir() / "libdcmi.so", environment=environment, **settings)

    def with_library(self, path: Path, **settings: Any) -> HostedChips:
        settings.setdefault("trust", True)
        chips = HostedChips("dcmi", DcmiSettings(library=str(path), **settings), self.reaper, self.news.append)
        self.stack.callback(chips.close)
        return chips

    @property
    def events(self) -> list[DriverEvent]:
        return [event for news in self.news for event in news.events]

    @property
    def gone(self) -> list[str]:
        return [news.gone for news in self.news if news.gone]


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with ExitStack() as stack:
        yield Sessions(stack)


@pytest.fixture(scope="module")
def a2() -> Iterator[MockServer]:
    with MockServer.start("a2") as server:
        yield server


@pytest.fixture
def control(a2: MockServer) -> Iterator[MockControl]:
    with a2.control() as control:
        yield control


@contextmanager
def served(folder: Path, **node: object) -> Iterator[MockServer]:
    with MockServer.start(node_file(folder, **node)) as server:
        yield server


def complaint(action: Callable[[], object]) -> NodeAgentError:
    """The error of an action, which must be one sentence for people."""
    with pytest.raises(NodeAgentError) as caught:
        action()
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)
    return caught.value


def chip(logic_id: int, per_card: int = 1) -> ChipId:
    return ChipId(logic_id, logic_id, logic_id // per_card, logic_id % per_card)


class TestProducts:
    @pytest.mark.parametrize(
        ("profile", "family", "count", "per_card", "name", "board", "mainboard", "generation", "pod"),
        [
            ("310", Family.A310, 4, 4, "310", 0, 0, "v1", SuperPod()),
            ("310p", Family.A310P, 4, 2, "310P3", 0, 0, "v1", SuperPod()),
            ("910a", Family.A910, 8, 1, "910A", 0, 0, "v1", SuperPod()),
            ("a2", Family.A2, 8, 1, "910B4", 0x30, 0, "v1", SuperPod()),
            ("a3", Family.A3, 16, 2, "910_9391", 0xB0, 0x18, "v1", SuperPod(1, 0, -2, 0)),
            ("950", Family.A5, 8, 0, "Ascend950", 0, 0x03, "v2", SuperPod(1, 0, 0, 0)),
        ],
    )
    def test_a_node_is_what_its_driver_says(
        self,
        sessions: Sessions,
        profile: str,
        family: Family,
        count: int,
        per_card: int,
        name: str,
        board: int,
        mainboard: int,
        generation: str,
        pod: SuperPod,
    ) -> None:
        with MockServer.start(profile) as server, server.control() as control:
            chips = sessions.on(server)
            opened = chips.open(())
            product = opened.inventory.product
            assert (product.family, product.chip_name, product.board_id) == (family, name, board)
            assert (product.mainboard_id, product.generation, product.super_pod) == (mainboard, generation, pod)
            assert product.driver_version == "25.2.0"
            assert opened.problems == ()
            assert opened.library == str(library_dir() / "libdcmi.so")
            if per_card:
                assert opened.inventory.chips == tuple(chip(i, per_card) for i in range(count))
            else:
                assert opened.inventory.chips == tuple(ChipId(i, i, -1, -1) for i in range(count))
            control.raise_fault(count - 1, "80E18005")
            assert chips.codes(opened.inventory.chips[-1]) == CodesAnswer((X,), dropped=False)
            assert chips.codes(opened.inventory.chips[0]) == CodesAnswer((), dropped=False)
            if family.subscribes:
                chips.subscribe()
                control.notice(0, "80C98006")
                wait_until(lambda: sessions.events)
                assert (sessions.events[0].logic_id, sessions.events[0].code) == (0, 0x80C98006)
            else:
                assert complaint(chips.subscribe).kind is AnswerKind.NOT_SUPPORTED  # type: ignore[attr-defined]

    def test_cards_with_holes_in_their_numbers_and_strange_physical_ids(
        self, sessions: Sessions, tmp_path: Path
    ) -> None:
        node = {"profile": "310p", "card_ids": [2, 5], "per_chip": [{"chip": 0, "phy_id": 9}]}
        with served(tmp_path, **node) as server:
            found = sessions.on(server).open(()).inventory.chips
        assert found == (ChipId(0, 9, 2, 0), ChipId(1, 1, 2, 1), ChipId(2, 2, 5, 0), ChipId(3, 3, 5, 1))

    def test_numbers_without_a_super_pod(self, sessions: Sessions, tmp_path: Path) -> None:
        with served(tmp_path, profile="a3", super_pod_id="FFFFFFFF", server_id=5) as server:
            assert sessions.on(server).open(()).inventory.product.super_pod == SuperPod(-1, 5, -2, 0)

    def test_the_generation_can_be_named(self, sessions: Sessions) -> None:
        with MockServer.start("950") as server:
            error = complaint(lambda: sessions.on(server, generation="v1").open(()))
            assert "dcmi_init returned -8255 (NOT_SUPPORT)" in error.sentence
            assert sessions.on(server, generation="v2").open(()).inventory.product.generation == "v2"


ONE_CARD_TALKS_NONSENSE = """
#include <string.h>
#include "na_dcmi.h"
#define PUBLIC __attribute__((visibility("default")))
PUBLIC int dcmi_init(void) { return 0; }
PUBLIC int dcmi_get_card_list(int *n, int *ids, int room) { (void)room; *n = 2; ids[0] = 0; ids[1] = 1; return 0; }
PUBLIC int dcmi_get_device_num_in_card(int card, int *n) { (void)card; *n = 1; return 0; }
PUBLIC int dcmi_get_device_logic_id(int *logic, int card, int device)
{
    (void)device;
    *logic = card == 0 ? 999 : 1;
    return 0;
}
PUBLIC int dcmi_get_device_phyid_from_logicid(unsigned int logic, unsigned int *phy) { *phy = logic; return 0; }
PUBLIC int dcmi_get_device_chip_info_v2(int card, int device, struct dcmi_chip_info_v2 *info)
{
    (void)card, (void)device;
    strcpy((char *)info->chip_name, "910B4");
    return 0;
}
PUBLIC int dcmi_get_device_board_info(int card, int device, struct dcmi_board_info *info)
{
    (void)card, (void)device;
    info->board_id = 0x33;
    return 0;
}
"""


class TestSickParts:
    @no_compiler
    def test_a_chip_that_answers_nonsense_hides_no_other(self, sessions: Sessions, tmp_path: Path) -> None:
        opened = sessions.with_library(compile_library(tmp_path, ONE_CARD_TALKS_NONSENSE)).open(())
        assert [c.logic_id for c in opened.inventory.chips] == [1]
        (problem,) = opened.problems
        assert "chip 0 of card 0" in problem
        assert "dcmi_get_device_logic_id answered id 999, outside 0..255" in problem

    @pytest.mark.parametrize(
        ("function", "sick"),
        [
            ("dcmi_get_device_phyid_from_logicid", None),  # names no chip, so the first call of it fails
            ("dcmi_get_device_logic_id", 3),
            ("dcmi_get_device_num_in_card", 3),
        ],
    )
    def test_a_chip_that_cannot_be_identified_hides_no_other(
        self, sessions: Sessions, a2: MockServer, control: MockControl, function: str, sick: int | None
    ) -> None:
        control.fail(function, -8006, chip=sick, times=1)
        opened = sessions.on(a2).open(())
        assert {c.logic_id for c in opened.inventory.chips} == set(range(8)) - {sick or 0}
        (problem,) = opened.problems
        assert re.search(rf"\b{sick or 0}\b", problem)
        assert f"{function} returned -8006 (TIME_OUT)" in problem

    def test_the_product_is_asked_of_the_first_chip_that_answers(
        self, sessions: Sessions, a2: MockServer, control: MockControl
    ) -> None:
        functions = ("dcmi_get_device_chip_info_v2", "dcmi_get_device_chip_info", "dcmi_get_device_board_info")
        for function in functions:
            control.fail(function, -8005, chip=0)
        try:
            product = sessions.on(a2).open(()).inventory.product
        finally:
            for function in functions:
                control.fail(function, 0, chip=0)
        assert (product.family, product.board_id) == (Family.A2, 0x30)

    def test_a_chip_to_be_avoided_is_not_asked_what_it_is(
        self, sessions: Sessions, a2: MockServer, control: MockControl
    ) -> None:
        control.hang("dcmi_get_device_board_info", 1000, chip=0)
        try:
            opened = sessions.on(a2, call_deadline_s=5).open({0})
        finally:
            control.hang("dcmi_get_device_board_info", 0, chip=0)
        assert len(opened.inventory.chips) == 8

    def test_a_lost_card(self, sessions: Sessions, a2: MockServer, control: MockControl) -> None:
        chips = sessions.on(a2)
        chips.open(())
        assert chips.card_dropped(chip(6)) is False
        control.drop_card(6)
        try:
            assert chips.card_dropped(chip(6)) is True
            answer = chips.codes(chip(6))
            assert answer.dropped
            assert answer.codes is None or CARD_DROPPED in answer.codes
        finally:
            control.return_card(6)
        assert chips.card_dropped(chip(6)) is False

    def test_a_health_query_that_fails_is_no_answer(
        self, sessions: Sessions, a2: MockServer, control: MockControl
    ) -> None:
        chips = sessions.on(a2)
        chips.open(())
        control.fail("dcmi_get_device_health", -8006, chip=1, times=1)
        error = complaint(lambda: chips.card_dropped(chip(1)))
        assert isinstance(error, AnswerError)
        assert error.kind is AnswerKind.BUSY

    def test_a_node_without_chips(self, sessions: Sessions, tmp_path: Path) -> None:
        with served(tmp_path, profile="a2", chips=2, dropped_cards=[0, 1]) as server:
            error = complaint(lambda: sessions.on(server).open(()))
        assert isinstance(error, DriverError)
        assert "no chips" in error.sentence or "dcmi_get_card_list" in error.sentence


class TestEvents:
    def test_raise_clear_and_notice_arrive_with_all_that_they_tell(
        self, sessions: Sessions, a2: MockServer, control: MockControl
    ) -> None:
        chips = sessions.on(a2)
        chips.open(())
        chips.subscribe()
        made = control.raise_fault(3, "80E18005", severity="critical", name="L2 ECC 中文 \x01")
        made += control.clear_fault(3, "80E18005")
        made += control.notice(5, "80C98006", severity="minor")
        wait_until(lambda: len(sessions.events) == 3)
        raised, cleared, noticed = sessions.events
        assert (raised.code, raised.logic_id, raised.assertion, raised.severity) == (X, 3, 1, 3)
        assert raised.name == "L2 ECC 中文 \x01"
        assert (cleared.code, cleared.logic_id, cleared.assertion) == (X, 3, 0)
        assert (noticed.code, noticed.logic_id, noticed.assertion, noticed.severity) == (0x80C98006, 5, 2, 1)
        for event, injected in zip(sessions.events, made, strict=True):
            (callback,) = injected.callbacks
            assert callback.mono_ns <= event.mono_ns  # taken inside the handler, just after the mock took its time
        assert [e.mono_ns for e in sessions.events] == sorted(e.mono_ns for e in sessions.events)

    def test_every_event_of_a_storm_is_delivered_in_order_or_counted(
        self, sessions: Sessions, a2: MockServer, control: MockControl
    ) -> None:
        chips = sessions.on(a2)
        chips.open(())
        chips.subscribe()
        total = control.storm(20_000, 0.3, chip=2, codes=["80E18005"])
        wait_until(lambda: len(sessions.events) + max((n.dropped for n in sessions.news), default=0) >= total)
        assert len(sessions.events) + max(n.dropped for n in sessions.news) == total
        assert [e.assertion for e in sessions.events[:4]] == [1, 0, 1, 0]

    def test_events_during_subscribe_are_not_lost(self, sessions: Sessions, tmp_path: Path) -> None:
        faults = [{"chip": 1, "code": "80E18005"}, {"chip": 0, "code": "80C98008"}]
        with served(tmp_path, profile="a2", chips=2, early_events=True, faults=faults) as server:
            chips = sessions.on(server)
            chips.open(())
            chips.subscribe()
            wait_until(lambda: len(sessions.events) == 2)
        assert {(e.logic_id, e.code) for e in sessions.events} == {(1, X), (0, 0x80C98008)}

    def test_one_subscription_a_process_and_a_slot_is_free_again_when_its_process_ends(
        self, sessions: Sessions, tmp_path: Path
    ) -> None:
        with served(tmp_path, profile="a2", subscribe_slots=1) as server:
            first, second = sessions.on(server), sessions.on(server)
            for chips in (first, second):
                chips.open(())
            first.subscribe()
            for chips in (first, second):
                error = complaint(chips.subscribe)
                assert isinstance(error, AnswerError)
                assert error.rc == -8020
            first.close()
            wait_until(lambda: not alive(first.pid))
            third = sessions.on(server)
            third.open(())
            third.subscribe()


class TestHangsAndCrashes:
    def test_a_chip_that_hangs_stops_calls_and_no_events_and_no_other_session(
        self, sessions: Sessions, a2: MockServer, control: MockControl
    ) -> None:
        stuck, other = sessions.on(a2, call_deadline_s=0.3), sessions.on(a2)
        for chips in (stuck, other):
            chips.open(())
        stuck.subscribe()
        control.hang("dcmi_get_device_health", 1000, chip=3)
        try:
            with pytest.raises(HostStuckError, match=r"health\(3, 0, 3\) did not return within 0.3 s"):
                stuck.card_dropped(chip(3))
            with pytest.raises(HostStuckError):
                stuck.codes(chip(0))
            assert other.codes(chip(0)).codes == ()
            control.raise_fault(5, "80E18005")
            wait_until(lambda: [e for e in sessions.events if e.logic_id == 5])
            stuck.close()
            wait_until(lambda: not alive(stuck.pid), "child and zombie are gone")
        finally:
            control.hang("dcmi_get_device_health", 0, chip=3)
            control.clear_fault(5, "80E18005")

    @pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
    def test_a_driver_that_crashes_names_its_signal(
        self, sessions: Sessions, a2: MockServer, control: MockControl, number: signal.Signals
    ) -> None:
        chips = sessions.on(a2)
        chips.open(())
        control.crash("dcmi_get_device_errorcode_v2", chip=2, signal=number)
        with pytest.raises(HostGoneError, match=rf"was killed by {number.name} during codes\(2, 0, 2\)"):
            chips.codes(chip(2))
        wait_until(lambda: sessions.gone)
        assert sessions.gone == [f"driver host dcmi was killed by {number.name}"]

    def test_a_killed_host_is_told_once(self, sessions: Sessions, a2: MockServer) -> None:
        chips = sessions.on(a2)
        chips.open(())
        os.kill(chips.pid, signal.SIGKILL)
        wait_until(lambda: sessions.gone)
        with pytest.raises(HostGoneError, match="SIGKILL"):
            chips.codes(chip(0))
        chips.close()
        assert sessions.gone == ["driver host dcmi was killed by SIGKILL"]


TINY = """
#include "na_dcmi.h"
#define PUBLIC __attribute__((visibility("default")))
PUBLIC int dcmi_init(void) { return 0; }
PUBLIC int dcmi_get_card_list(int *n, int *ids, int room) { (void)room; *n = 1; ids[0] = 0; return 0; }
"""
NONSENSE = """
#include "na_dcmi.h"
#define PUBLIC __attribute__((visibility("default")))
PUBLIC int dcmi_init(void) { return 0; }
PUBLIC int dcmi_get_card_list(int *n, int *ids, int room) { (void)ids; *n = room + 1; return 0; }
"""


class TestBadLibraries:
    def test_a_missing_file(self, sessions: Sessions, tmp_path: Path) -> None:
        error = complaint(lambda: sessions.with_library(tmp_path / "libdcmi.so").open(()))
        assert isinstance(error, LibraryError)
        assert error.sentence == f"{tmp_path}/libdcmi.so does not exist or is no file"

    def test_a_file_of_another_user_is_not_even_loaded(self, sessions: Sessions, tmp_path: Path) -> None:
        path = tmp_path / "libdcmi.so"
        shutil.copy(library_dir() / "libdcmi.so", path)
        if os.geteuid() == 0:
            os.chown(path, 12345, 0)
        error = complaint(lambda: sessions.with_library(path, trust=False).open(()))
        assert isinstance(error, LibraryError)
        assert f"{path} belongs to uid" in error.sentence

    def test_a_library_of_another_architecture_is_not_called_missing(self, sessions: Sessions, tmp_path: Path) -> None:
        content = bytearray((library_dir() / "libdcmi.so").read_bytes())
        own = int.from_bytes(content[18:20], "little")
        other, name = (183, "aarch64") if own != 183 else (62, "x86_64")
        content[18:20] = other.to_bytes(2, "little")
        path = tmp_path / "libdcmi.so"
        path.write_bytes(content)
        error = complaint(lambda: sessions.with_library(path).open(()))
        assert isinstance(error, LibraryError)
        assert f"it is built for {name}, and this machine runs {os.uname().machine}" in error.sentence
        assert "architecture" in error.hint

    @pytest.mark.parametrize("content", [b"GROUP ( libdcmi.so.1 )\n" * 10, b"", b"\x7fEL", b"\0" * 4096])
    def test_a_file_that_is_no_library(self, sessions: Sessions, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "libdcmi.so"
        path.write_bytes(content)
        error = complaint(lambda: sessions.with_library(path).open(()))
        assert error.sentence == f"{path} could not be loaded: it is no shared library (no ELF header)"

    @pytest.mark.parametrize("kept", [0.02, 0.3])
    def test_a_part_of_a_library_is_named_even_where_loading_it_crashes(
        self, sessions: Sessions, tmp_path: Path, kept: float
    ) -> None:
        whole = (library_dir() / "libdcmi.so").read_bytes()
        path = tmp_path / "libdcmi.so"
        path.write_bytes(whole[: int(len(whole) * kept)])
        error = complaint(lambda: sessions.with_library(path).open(()))
        assert str(path) in error.sentence

    @no_compiler
    def test_a_library_that_is_not_dcmi(self, sessions: Sessions, tmp_path: Path) -> None:
        path = compile_library(tmp_path, "int answer(void); int answer(void) { return 42; }\n")
        error = complaint(lambda: sessions.with_library(path).open(()))
        assert error.sentence == f"{path} is a library, but not DCMI: it has neither dcmi_init nor dcmiv2_init"

    @no_compiler
    def test_a_missing_companion_is_named(self, sessions: Sessions, tmp_path: Path) -> None:
        compile_library(tmp_path, '__attribute__((visibility("default"))) int help(void) { return 1; }\n', "libmmpa.so")
        source = TINY + "int help(void);\nPUBLIC int need(void);\nPUBLIC int need(void) { return help(); }\n"
        path = compile_library(tmp_path, source, "libdcmi.so", "-L", tmp_path, "-lmmpa")
        (tmp_path / "libmmpa.so").unlink()
        error = complaint(lambda: sessions.with_library(path).open(()))
        assert "libmmpa.so" in error.sentence
        assert "companions in LD_LIBRARY_PATH" in error.hint

    @no_compiler
    def test_a_missing_symbol_counts_as_not_supported(self, sessions: Sessions, tmp_path: Path) -> None:
        error = complaint(lambda: sessions.with_library(compile_library(tmp_path, TINY)).open(()))
        assert error.sentence == (
            "the driver lists no chips: card 0 does not tell its chips: dcmi_get_device_num_in_card returned -99998"
            " (NO_SYMBOL): this driver version does not offer the function"
        )

    @no_compiler
    def test_a_count_beyond_the_room_is_damage_and_not_read(self, sessions: Sessions, tmp_path: Path) -> None:
        error = complaint(lambda: sessions.with_library(compile_library(tmp_path, NONSENSE)).open(()))
        assert error.sentence == "dcmi_get_card_list answered a card count of 65, outside 0..64"


class TestInit:
    @pytest.mark.parametrize(
        ("rc", "words", "hint"),
        [
            (-8005, "dcmi_init returned -8005 (INNER_ERR): internal error of the driver", ""),
            (-8002, "dcmi_init returned -8002 (OPER_NOT_PERMITTED)", "privileged container"),
            (-8010, "dcmi_init returned -8010 (SEND_MSG_FAIL)", "may not match this product"),
        ],
    )
    def test_an_init_that_fails_is_told_by_the_generation_that_the_product_has(
        self, sessions: Sessions, a2: MockServer, control: MockControl, rc: int, words: str, hint: str
    ) -> None:
        control.fail("dcmi_init", rc)
        try:
            error = complaint(lambda: sessions.on(a2).open(()))
        finally:
            control.fail("dcmi_init", 0)
        assert error.sentence.startswith(words)
        assert hint in error.hint

    def test_an_init_that_takes_its_time_succeeds_within_its_own_deadline(
        self, sessions: Sessions, tmp_path: Path
    ) -> None:
        with served(tmp_path, profile="a2", chips=1, init_delay_s=1.0) as server:
            with pytest.raises(HostStuckError, match=r"did not return within 0\.3 s"):
                sessions.on(server, init_deadline_s=0.3).open(())
            opened = sessions.on(server, call_deadline_s=0.5, init_deadline_s=30).open(())
        assert len(opened.inventory.chips) == 1
