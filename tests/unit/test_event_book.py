"""Which Events are sent when: rate, merging, repetitions, precedence, age. Time is an argument."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodeagent.core.instant import Instant
from nodeagent.core.telemetry import Event, EventReason
from nodeagent.publish.event_book import ABOUT_CHIPS, MAX_MESSAGE_BYTES, EventBook, EventLimits, Letter, cut

START = Instant(5_000_000, 1_760_000_000_000)
MINUTE_MS = 60_000
any_pace = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def occur(chip: int = 0, text: str = "80E18005") -> Event:
    return Event(EventReason.FAULT_OCCURRED, text, warning=True, subject=f"chip {chip}")


def recovery(chip: int = 0) -> Event:
    return Event(EventReason.FAULT_RECOVERED, "80E18005", subject=f"chip {chip}")


LOST = Event(EventReason.DRIVER_LOST, "the driver host ended", warning=True)


def drain(book: EventBook, now: Instant) -> list[Letter]:
    """Everything that may be sent at this moment, taken by the server."""
    letters = []
    while (letter := book.take(now)) is not None:
        letters.append(letter)
        book.ended(now)
    return letters


def later(minutes: float) -> Instant:
    return START.plus_ms(int(minutes * MINUTE_MS))


def test_nothing_added_nothing_to_wait_for() -> None:
    book = EventBook(EventLimits())
    assert book.wait_ms(START) is None
    assert book.take(START) is None


def test_a_single_event_is_sent_at_once_as_it_is() -> None:
    book = EventBook(EventLimits())
    book.add(occur(3), START)
    assert book.wait_ms(START) == 0
    assert drain(book, START) == [
        Letter(1, EventReason.FAULT_OCCURRED, True, "chip 3: 80E18005", count=1, first=START, last=START)
    ]
    assert book.wait_ms(START) is None
    assert book.waiting == 0


def test_eight_chips_at_once_are_eight_events() -> None:
    book = EventBook(EventLimits())
    for chip in range(8):
        book.add(occur(chip), START)
    assert [letter.message for letter in drain(book, START)] == [f"chip {chip}: 80E18005" for chip in range(8)]


def test_what_the_bucket_does_not_hold_is_merged_with_a_number_and_a_few_subjects() -> None:
    book = EventBook(EventLimits(per_minute=10, burst=4))
    for chip in range(12):
        book.add(occur(chip), START)
    apart = drain(book, START)
    assert [letter.count for letter in apart] == [1, 1, 1, 1]
    assert book.wait_ms(START) == MINUTE_MS // 10
    [merged] = drain(book, later(0.1))
    assert merged.count == 8
    assert merged.message == "chip 4: 80E18005 and 7 more (chip 5, chip 6, chip 7, chip 8, chip 9, …)"
    assert book.waiting == 0


def test_reasons_and_types_are_not_mixed() -> None:
    book = EventBook(EventLimits(per_minute=60, burst=1))
    for chip in range(3):
        book.add(occur(chip), START)
        book.add(recovery(chip), START)
    book.add(Event(EventReason.FAULT_OCCURRED, "mild", warning=False), START)
    letters = [letter for second in range(6) for letter in drain(book, START.plus_ms(1000 * second))]
    assert [(letter.reason.value, letter.warning, letter.count) for letter in letters] == [
        ("Occur", True, 1),
        ("Recovery", False, 3),
        ("Occur", True, 2),
        ("Occur", False, 1),
    ]


def test_a_merged_event_tells_its_first_and_last_moment() -> None:
    book = EventBook(EventLimits(per_minute=1, burst=1))
    book.add(occur(0), START)
    drain(book, START)
    book.add(occur(1), later(0.2))
    book.add(occur(2), later(0.5))
    [merged] = drain(book, later(1))
    assert (merged.first, merged.last) == (later(0.2), later(0.5))


def test_own_trouble_passes_a_flood_that_waits_and_one_that_has_emptied_the_bucket() -> None:
    book = EventBook(EventLimits(per_minute=10, burst=25))
    for chip in range(100):
        book.add(occur(chip), START)
    book.add(LOST, START)
    first, *rest = drain(book, START)
    assert first.reason is EventReason.DRIVER_LOST
    assert len(rest) == 19, "a fifth of the burst is kept for own trouble, of which one was used"
    book.add(Event(EventReason.PUBLISH_FAILED, "no answer", warning=True), START)
    assert [letter.reason for letter in drain(book, START)] == [EventReason.PUBLISH_FAILED]


def test_reasons_about_chips_and_own_trouble_are_a_whole() -> None:
    own = set(EventReason) - ABOUT_CHIPS
    assert {EventReason.DRIVER_LOST, EventReason.PUBLISH_FAILED, EventReason.BAD_CONFIGURATION} <= own
    assert {EventReason.OTHER_WRITER, EventReason.CONTRACT_REFUSED, EventReason.FOREIGN_PARTS} <= own


def test_a_repetition_is_counted_into_the_next_one() -> None:
    book = EventBook(EventLimits())
    book.add(LOST, START)
    drain(book, START)
    for minutes in (1, 2, 3):
        book.add(LOST, later(minutes))
        assert drain(book, later(minutes)) == []
    assert book.waiting == 3
    assert book.wait_ms(later(3)) == 7 * MINUTE_MS
    [again] = drain(book, later(10))
    assert (again.message, again.count, again.first, again.last) == (LOST.message, 3, later(1), later(3))


def test_a_repetition_after_ten_minutes_takes_the_held_ones_along() -> None:
    book = EventBook(EventLimits())
    book.add(LOST, START)
    drain(book, START)
    book.add(LOST, later(9))
    book.add(LOST, later(10))
    [again] = drain(book, later(10))
    assert again.count == 2


def test_what_went_away_and_came_again_is_told_within_a_minute() -> None:
    book = EventBook(EventLimits())
    for event, minutes in ((occur(), 0.0), (recovery(), 0.1)):
        book.add(event, later(minutes))
        assert len(drain(book, later(minutes))) == 1
    book.add(occur(), later(0.2))
    assert drain(book, later(0.2)) == []
    [again] = drain(book, later(1))
    assert again.reason is EventReason.FAULT_OCCURRED
    assert again.first == later(0.2)


def test_a_repetition_becomes_news_when_its_subject_changed_meanwhile() -> None:
    book = EventBook(EventLimits())
    book.add(occur(), START)
    drain(book, START)
    book.add(occur(), later(0.1))
    assert book.wait_ms(later(0.1)) == 9.9 * MINUTE_MS
    book.add(recovery(), later(0.2))
    drain(book, later(0.2))
    book.add(occur(), later(0.3))
    assert book.wait_ms(later(0.3)) == 0.7 * MINUTE_MS
    [again] = drain(book, later(1))
    assert again.count == 2


def test_a_repetition_of_what_still_waits_is_not_lost_when_that_is_sent() -> None:
    book = EventBook(EventLimits(per_minute=1, burst=1))
    book.add(occur(), START)
    drain(book, START)
    book.add(LOST, later(1))
    drain(book, later(1))  # the bucket is empty
    book.add(recovery(), later(1.1))
    book.add(occur(), later(1.2))  # news again, but it must wait
    book.add(occur(), later(1.3))  # a repetition
    assert book.waiting == 3
    told = [letter.reason.value for letter in drain(book, later(2)) + drain(book, later(3))]
    assert told == ["Recovery", "Occur"]
    assert book.waiting == 1
    assert [letter.count for letter in drain(book, later(13))] == [1]


def test_a_held_repetition_that_joins_others_brings_its_moment_along() -> None:
    book = EventBook(EventLimits(per_minute=1, burst=1))
    book.add(occur(1), START)
    drain(book, START)
    book.add(occur(1), later(9))
    book.add(LOST, later(9.95))
    drain(book, later(9.95))  # the bucket is empty
    book.add(occur(2), later(9.97))
    assert drain(book, later(10)) == [], "the held one joins what waits"
    [both] = drain(book, later(11))
    assert (both.count, both.first, both.last) == (2, later(9), later(9.97))
    assert both.message == "chip 2: 80E18005 and 1 more (chip 1)"


def test_a_held_repetition_is_as_young_as_its_release() -> None:
    book = EventBook(EventLimits())
    book.add(LOST, START)
    drain(book, START)
    book.add(LOST, later(1))
    letter = book.take(later(10))
    assert letter is not None
    book.failed(later(10), 1000)
    assert book.expire(later(19.9)) == []
    assert book.expire(later(20)) == [letter]


def test_the_letter_under_way_takes_its_place_in_the_bucket() -> None:
    book = EventBook(EventLimits(per_minute=1, burst=3))
    book.add(occur(0), START)
    assert book.take(START) is not None
    for chip in range(1, 5):
        book.add(occur(chip), START)
    book.ended(START)
    assert [letter.count for letter in drain(book, START)] == [1, 1]
    assert [letter.count for letter in drain(book, later(1))] == [2]


def test_what_is_merged_takes_its_place_in_the_bucket() -> None:
    book = EventBook(EventLimits(per_minute=1, burst=2))
    for chip in range(3):
        book.add(occur(chip), START)
    drain(book, START)  # one is left, alone among the merged
    for chip in (5, 6):
        book.add(recovery(chip), later(1))
    letters = [letter for minute in range(1, 5) for letter in drain(book, later(minute))]
    assert [(letter.reason.value, letter.count) for letter in letters] == [("Occur", 1), ("Recovery", 2)]


def test_other_chips_do_not_make_a_repetition_news() -> None:
    book = EventBook(EventLimits())
    book.add(occur(1), START)
    book.add(occur(2), START)
    drain(book, START)
    book.add(occur(1), later(1))
    assert drain(book, later(9.9)) == []
    assert len(drain(book, later(10))) == 1


def test_a_failed_letter_comes_again_unchanged_and_keeps_its_serial() -> None:
    book = EventBook(EventLimits())
    book.add(LOST, START)
    letter = book.take(START)
    book.failed(START, 4000)
    book.add(LOST, START)
    assert book.take(START.plus_ms(3999)) is None
    assert book.wait_ms(START) == 4000
    assert book.take(START.plus_ms(4000)) == letter
    book.ended(START.plus_ms(4000))
    assert book.waiting == 1, "what came meanwhile is a repetition"


def test_an_outage_of_30_minutes_ends_with_the_burst_at_most() -> None:
    book = EventBook(EventLimits(per_minute=10, burst=25))
    added, dropped = 0, 0
    for minute in range(31):
        for chip in range(50):
            book.add(occur(chip, f"code {minute}"), later(minute))
            added += 1
        dropped += sum(letter.count for letter in book.expire(later(minute)))
        if book.take(later(minute)) is not None:
            book.failed(later(minute), 30_000)
    dropped += sum(letter.count for letter in book.expire(later(31)))
    letters = drain(book, later(31))
    assert 0 < len(letters) <= 25
    assert all(letter.last >= later(21) for letter in letters)
    assert added == dropped + sum(letter.count for letter in letters) + book.waiting


def test_what_waited_ten_minutes_is_dropped_whole() -> None:
    book = EventBook(EventLimits())
    book.add(LOST, START)
    book.add(occur(), later(5))
    book.take(START)
    book.failed(START, 3_600_000)
    assert book.expire(later(9.9)) == []
    assert [letter.reason for letter in book.expire(later(10))] == [EventReason.DRIVER_LOST]
    assert book.wait_ms(later(10)) == 50 * MINUTE_MS, "the server asked to be left alone"
    assert [letter.reason for letter in book.expire(later(15))] == [EventReason.FAULT_OCCURRED]
    assert book.waiting == 0


def test_memory_is_bounded_and_pushes_nothing_out_unsent() -> None:
    book = EventBook(EventLimits(per_minute=600, burst=250))
    now, told, added = START, 0, 0
    for number in range(1000):
        event = Event(EventReason.DRIVER_LOST, f"number {number}", subject=f"{number}")
        for _ in range(2):
            book.add(event, now)
            added += 1
            told += sum(letter.count for letter in drain(book, now))
        now = now.plus_ms(100)
    now = now.plus_ms(700_000)
    for second in range(100):
        told += sum(letter.count for letter in drain(book, now.plus_ms(1000 * second)))
    assert told == added
    assert len(book._told) <= 256
    assert len(book._latest) <= 256


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 5, "short"),
        ("longer", 5, "lo…"),
        ("故障故障", 12, "故障故障"),
        ("故障故障", 11, "故障…"),
        ("故障故障", 10, "故障…"),
        ("故障故障", 8, "故…"),
        ("half \udc80 pair", 40, "half ? pair"),
    ],
)
def test_texts_are_cut_between_characters(text: str, limit: int, expected: str) -> None:
    assert cut(text, limit) == expected


def test_the_number_of_the_others_survives_the_cut() -> None:
    book = EventBook(EventLimits(per_minute=1, burst=1))
    for chip in range(3):
        book.add(Event(EventReason.FAULT_OCCURRED, "障" * 2000, True, f"chip {chip}"), START)
    letters = drain(book, START) + drain(book, later(1))
    assert [len(letter.message.encode()) <= MAX_MESSAGE_BYTES for letter in letters] == [True, True]
    assert letters[0].message.endswith("障…")
    assert letters[1].message.endswith("障… and 1 more (chip 2)")


@any_pace
@given(st.text(st.characters(codec="utf-8")), st.integers(3, 50))
def test_a_cut_text_is_a_start_of_the_text_within_the_limit(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short.encode()) <= limit
    assert short == text or (len(text.encode()) > limit and text.startswith(short.removesuffix("…")))


EVENTS = st.builds(
    Event,
    st.sampled_from([EventReason.FAULT_OCCURRED, EventReason.FAULT_RECOVERED, EventReason.DRIVER_LOST]),
    st.sampled_from(["a", "b", "c"]),
    st.booleans(),
    st.sampled_from(["", "chip 1", "chip 2", "chip 3"]),
)


class Life(RuleBasedStateMachine):
    """Any order of Events, attempts and time; a balance by reason is kept beside the book."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = EventLimits(per_minute=10, burst=6)
        self.book = EventBook(self.limits)
        self.now = START
        self.added: Counter[EventReason] = Counter()
        self.ended: Counter[EventReason] = Counter()
        self.ends_ms: list[int] = []
        self.serials: list[int] = []

    @rule(events=st.lists(EVENTS, min_size=1, max_size=12))
    def add(self, events: list[Event]) -> None:
        for event in events:
            self.book.add(event, self.now)
            self.added[event.reason] += 1

    @rule(delta_ms=st.integers(1, 200_000))
    def pass_time(self, delta_ms: int) -> None:
        self.now = self.now.plus_ms(delta_ms)

    @rule()
    def wait(self) -> None:
        wait_ms = self.book.wait_ms(self.now)
        if wait_ms is not None:
            self.now = self.now.plus_ms(wait_ms)

    @rule(failures=st.integers(0, 2))
    def send(self, failures: int) -> None:
        letter = self.book.take(self.now)
        for _ in range(failures):
            if letter is None:
                return
            self.book.failed(self.now, 1000)
            self.now = self.now.plus_ms(1000)
            assert self.book.take(self.now) == letter
        if letter is not None:
            self.book.ended(self.now)
            self.ended[letter.reason] += letter.count
            self.ends_ms.append(self.now.mono_ms)
            self.serials.append(letter.serial)

    @rule()
    def expire(self) -> None:
        for letter in self.book.expire(self.now):
            self.ended[letter.reason] += letter.count

    @invariant()
    def every_event_ends_once(self) -> None:
        assert self.added.total() == self.ended.total() + self.book.waiting
        assert all(self.ended[reason] <= self.added[reason] for reason in EventReason)

    @invariant()
    def never_above_the_rate(self) -> None:
        for index, end_ms in enumerate(self.ends_ms):
            span_ms = self.now.mono_ms - end_ms
            most = self.limits.burst + span_ms * self.limits.per_minute / MINUTE_MS
            assert len(self.ends_ms) - index <= most

    @invariant()
    def serials_are_used_once(self) -> None:
        assert len(set(self.serials)) == len(self.serials)

    def teardown(self) -> None:
        """Left alone with a working server, the book empties, and its waits lead there."""
        for _ in range(500):
            wait_ms = self.book.wait_ms(self.now)
            if wait_ms is None:
                break
            self.now = self.now.plus_ms(wait_ms)
            self.send(0)
        assert self.book.waiting == 0
        assert self.added == self.ended


TestLife = Life.TestCase
TestLife.settings = settings(any_pace, max_examples=60, stateful_step_count=40)


@any_pace
@given(st.lists(EVENTS, min_size=1, max_size=60), st.integers(1, 40))
def test_own_trouble_is_always_sent_first(events: list[Event], burst: int) -> None:
    book = EventBook(EventLimits(per_minute=60, burst=burst))
    for event in events:
        book.add(event, START)
    letters: list[Letter] = []
    now = START
    while (wait_ms := book.wait_ms(now)) is not None:
        now = now.plus_ms(wait_ms)
        letters += drain(book, now)
    about_chips = [letter.reason in ABOUT_CHIPS for letter in letters]
    assert about_chips == sorted(about_chips)
