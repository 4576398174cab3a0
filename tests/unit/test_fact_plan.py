"""The plan of facts: when which is asked for, what is kept, what is reported. No I/O, time passed in."""

from dataclasses import replace

from nodeagent.core.instant import Instant
from nodeagent.core.model import ChipId, Family, Inventory, Product
from nodeagent.core.node_facts import ChipFacts, FactKind, NodeFacts
from nodeagent.drivers.chips import CodesAnswer
from nodeagent.sources.fact_plan import FactPlan
from nodeagent.sources.plan import ChipPlan, ChipTimes
from nodeagent.sources.tracks import Track

CORES, MEMORY, ADDRESS, SUPER_DEVICE, PRODUCT_TYPE = FactKind
VALUES: dict[FactKind, int | str] = {
    CORES: 20,
    MEMORY: 64,
    ADDRESS: "10.0.0.1",
    SUPER_DEVICE: 7,
    PRODUCT_TYPE: "Atlas 300I Duo",
}


def at(ms: int) -> Instant:
    return Instant(ms, 1_760_000_000_000 + ms)


def node(family: Family = Family.A2, chips: int = 2, version: str = "25.2.0") -> Inventory:
    ids = tuple(ChipId(i, i + 10, i, 0) for i in range(chips))
    return Inventory(Product(family, "910B4", driver_version=version), ids)


class Rig:
    """A plan whose chips are all askable until a test says otherwise."""

    def __init__(self, inventory: Inventory | None = None) -> None:
        self.inventory = inventory or node()
        self.tracks = {c.logic_id: Track(c, 0, 0) for c in self.inventory.chips}
        self.plan = FactPlan(self.tracks, 60.0)
        self.plan.on_opened(self.inventory, at(0))

    def answer_all(self, ms: int, **values: int | str) -> NodeFacts | None:
        """Answer what is due, like the chip source does; the last report."""
        found = None
        while (asked := self.plan.next_fact(ms)) is not None:
            value = values.get(f"{asked[1].value}_{asked[0]}", VALUES[asked[1]])
            self.plan.on_answer(*asked, value, at(ms))
            found = self.plan.report(ms) or found
        return found

    def asked(self, ms: int) -> list[tuple[int, FactKind]]:
        """What is asked at a moment when every answer is as before."""
        found = []
        while (asked := self.plan.next_fact(ms)) is not None:
            found.append(asked)
            self.plan.on_answer(*asked, VALUES[asked[1]], at(ms))
        return found


def known(**fields: object) -> NodeFacts:
    """Facts of the usual node when all is told; fields change chip 0."""
    inventory = node()
    chips = [ChipFacts(c, 20, 64, "10.0.0.1") for c in inventory.chips]
    return NodeFacts(inventory.product, (replace(chips[0], **fields), chips[1]))  # type: ignore[arg-type]


class TestRound:
    def test_every_chip_is_asked_what_its_family_has_and_the_end_is_one_report(self) -> None:
        rig = Rig()
        reports = []
        order = []
        while (asked := rig.plan.next_fact(0)) is not None:
            order.append(asked)
            rig.plan.on_answer(*asked, VALUES[asked[1]], at(0))
            reports.append(rig.plan.report(0))
        assert order == [(chip, kind) for chip in (0, 1) for kind in (CORES, MEMORY, ADDRESS)]
        assert reports == [None] * 5 + [known()]
        assert rig.plan.report(0) is None

    def test_only_addresses_are_looked_at_again_every_60_s(self) -> None:
        rig = Rig()
        rig.answer_all(0)
        assert rig.plan.next_due_ms() == 60_000
        assert rig.plan.next_fact(59_999) is None
        assert rig.asked(60_000) == [(0, ADDRESS), (1, ADDRESS)]
        assert rig.plan.report(60_000) is None

    def test_a_changed_address_is_reported_when_the_round_is_over(self) -> None:
        rig = Rig()
        rig.answer_all(0)
        assert rig.answer_all(60_000, address_0="10.0.0.9") == known(address="10.0.0.9")

    def test_a_product_without_addresses_is_asked_once(self) -> None:
        rig = Rig(node(Family.A310P, 1))
        facts = rig.answer_all(0)
        assert facts is not None
        assert facts.chips == (ChipFacts(ChipId(0, 10, 0, 0), aicore_count=20, product_type="Atlas 300I Duo"),)
        assert rig.plan.next_due_ms() is None

    def test_a_chip_that_is_left_alone_is_passed_over_and_asked_later(self) -> None:
        rig = Rig()
        rig.tracks[0].probe_due_ms = 5
        assert rig.asked(0) == [(1, CORES), (1, MEMORY), (1, ADDRESS)]
        assert rig.plan.report(0) == known(aicore_count=None, memory_gib=None, address=None)
        rig.tracks[0].probe_due_ms = None
        assert rig.answer_all(30_000) == known()

    def test_nothing_is_due_before_the_node_was_seen(self) -> None:
        plan = FactPlan({}, 60.0)
        assert (plan.next_fact(0), plan.next_due_ms(), plan.report(0)) == (None, None, None)


class TestErrors:
    def test_an_error_leaves_what_is_known_and_is_asked_again_after_the_period(self) -> None:
        rig = Rig()
        rig.answer_all(0)
        assert rig.plan.next_fact(60_000) == (0, ADDRESS)
        assert rig.plan.on_refused(0, ADDRESS, "sick", at(60_000), supported=True)
        assert rig.asked(60_000) == [(1, ADDRESS)]
        assert rig.plan.report(60_000) is None
        assert rig.plan.next_fact(120_000) == (0, ADDRESS)
        assert not rig.plan.on_refused(0, ADDRESS, "sick", at(120_000), supported=True), "told once"

    def test_a_fact_that_was_never_told_is_unknown_and_holds_nothing_up(self) -> None:
        rig = Rig()
        rig.plan.on_refused(0, MEMORY, "sick", at(0), supported=True)
        assert rig.answer_all(0) == known(memory_gib=None)
        assert rig.asked(60_000) == [(0, MEMORY), (0, ADDRESS), (1, ADDRESS)]

    def test_what_is_not_supported_is_unknown_until_the_next_session(self) -> None:
        rig = Rig()
        rig.answer_all(0)
        rig.plan.on_refused(0, ADDRESS, "no such function", at(60_000), supported=False)
        assert rig.answer_all(60_000) == known(address=None)
        assert rig.asked(600_000) == [(1, ADDRESS)]
        rig.plan.on_opened(rig.inventory, at(700_000))
        assert (0, ADDRESS) in rig.asked(700_000)


class TestSessions:
    def test_a_new_session_asks_everything_and_reports_only_what_is_new(self) -> None:
        rig = Rig()
        rig.answer_all(0)
        rig.plan.on_opened(rig.inventory, at(1000))
        assert rig.answer_all(1000) is None
        rig.plan.on_opened(node(version="25.5.1"), at(2000))
        facts = rig.answer_all(2000)
        assert facts is not None
        assert facts.product.driver_version == "25.5.1"

    def test_what_was_known_stays_while_the_new_session_gives_no_answer(self) -> None:
        rig = Rig()
        rig.answer_all(0)
        rig.plan.on_opened(rig.inventory, at(1000))
        while (asked := rig.plan.next_fact(1000)) is not None:
            rig.plan.on_refused(*asked, "busy", at(1000), supported=True)
        assert rig.plan.report(1000) is None

    def test_a_chip_that_is_not_listed_any_more_keeps_its_facts(self) -> None:
        rig = Rig()
        rig.answer_all(0)
        rig.tracks[1].listed = False
        rig.plan.on_opened(replace(rig.inventory, chips=rig.inventory.chips[:1]), at(1000))
        assert rig.asked(1000) == [(0, CORES), (0, MEMORY), (0, ADDRESS)]
        assert rig.plan.report(1000) is None

    def test_another_chip_under_the_same_logic_id_inherits_nothing(self) -> None:
        rig = Rig()
        rig.answer_all(0)
        swapped = replace(rig.inventory.chips[0], physical_id=13)
        rig.plan.on_opened(replace(rig.inventory, chips=(swapped, rig.inventory.chips[1])), at(1000))
        for kind in (CORES, MEMORY, ADDRESS):
            rig.plan.on_refused(0, kind, "busy", at(1000), supported=True)
        assert rig.answer_all(1000) == known(chip=swapped, aicore_count=None, memory_gib=None, address=None)

    def test_another_product_forgets_what_it_does_not_have(self) -> None:
        rig = Rig()
        rig.answer_all(0)
        rig.plan.on_opened(node(Family.A310), at(1000))
        facts = rig.answer_all(1000)
        assert facts is not None
        assert facts.chips[0] == ChipFacts(ChipId(0, 10, 0, 0), aicore_count=20)


def test_there_is_time_for_facts_while_a_session_is_open_after_the_first_complete_query() -> None:
    plan = ChipPlan(ChipTimes())
    seen = [plan.settled]
    plan.on_opened(node(), at(0))
    for chip in (0, 1):
        seen.append(plan.settled)
        plan.on_codes(chip, CodesAnswer((), False), at(0), at(0))
    seen.append(plan.settled)
    plan.on_session_lost(at(1000))
    seen.append(plan.settled)
    assert seen == [False, False, False, True, False]


class TestHangs:
    def test_a_call_that_hung_rests_longer_each_time_whatever_sessions_come(self) -> None:
        rig = Rig(node(Family.A310, 1))
        now_ms = 0
        for pause_s in (60, 600, 3600, 3600):
            assert rig.plan.next_fact(now_ms) == (0, CORES)
            rig.plan.on_hung(0, CORES, at(now_ms))
            rig.plan.on_opened(rig.inventory, at(now_ms + 10))
            now_ms += pause_s * 1000
            assert rig.plan.next_due_ms() == now_ms
            assert rig.plan.next_fact(now_ms - 1) is None

    def test_after_a_hang_nothing_at_all_is_asked_for_a_minute(self) -> None:
        rig = Rig()
        rig.plan.on_hung(0, CORES, at(0))
        rig.plan.on_hung(0, CORES, at(0))
        rig.plan.on_opened(rig.inventory, at(10))
        assert rig.plan.next_fact(59_999) is None
        assert rig.plan.next_due_ms() == 60_000
        assert rig.asked(60_000) == [(0, MEMORY), (0, ADDRESS), (1, CORES), (1, MEMORY), (1, ADDRESS)]

    def test_what_is_known_is_reported_although_the_rest_has_to_wait(self) -> None:
        rig = Rig()
        rig.plan.on_answer(0, CORES, 20, at(0))
        rig.plan.on_hung(0, MEMORY, at(0))
        facts = rig.plan.report(0)
        assert facts is not None
        assert [c.aicore_count for c in facts.chips] == [20, None]

    def test_an_answer_ends_the_series(self) -> None:
        rig = Rig()
        rig.plan.on_hung(0, CORES, at(0))
        rig.plan.on_answer(0, CORES, 20, at(60_000))
        rig.plan.on_opened(rig.inventory, at(60_000))
        rig.plan.on_hung(0, CORES, at(60_000))
        rig.plan.on_opened(rig.inventory, at(60_010))
        assert (0, CORES) in rig.asked(120_000)
