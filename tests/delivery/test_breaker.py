"""The breaker of an origin: it opens for those who do not answer, and lets one ask try."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.deliveries import NOW

from heliograph.delivery.breaker import (
    ORIGINS_KEPT_MAX,
    SPREAD,
    STALE_MS,
    TRIAL_MS,
    BreakerPace,
    BreakerState,
    HostBreaker,
)
from heliograph.delivery.exchange import Answer, Loss, Lost
from heliograph.delivery.settings import DeliverySettings, check_settings
from heliograph.wire.malformed import Malformed

HOST = "https://push.example.org"
OK = Answer(201, {}, b"")
REFUSED = Answer(410, {}, b"")
BUSY = Answer(503, {}, b"")
LOST = Lost(Loss.TIMED_OUT)
PACE = BreakerPace(failures_min=10, pause_ms_first=30_000, pause_ms_longest=900_000)


def breaker(told: list[BreakerState] | None = None, fraction: float = 0.0) -> HostBreaker:
    return HostBreaker(
        lambda: fraction, PACE, None if told is None else lambda provider, state: told.append(state)
    )


def hear(by: HostBreaker, *ends: Answer | Lost, now: int = NOW, host: str = HOST) -> None:
    for end in ends:
        by.heard(host, "fcm", end, now)


@pytest.mark.parametrize(
    "failure",
    [BUSY, LOST, Lost(Loss.CUT), Lost(Loss.NOT_SENT)],
    ids=["5xx", "timed out", "cut", "not sent"],
)
def test_ten_failures_open_it_for_half_a_minute(failure: Answer | Lost) -> None:
    """Nine do not."""
    by = breaker()
    hear(by, *[failure] * 9)
    before = by.wait_ms(HOST, NOW)
    hear(by, failure)

    assert before == 0
    assert [by.wait_ms(HOST, NOW + ms) for ms in (0, 1, 29_999, 30_000)] == [30_000, 29_999, 1, 0]


@pytest.mark.parametrize("answer", [OK, REFUSED, Answer(429, {}, b""), Answer(403, {}, b"")])
def test_whoever_answers_is_there_whatever_it_says(answer: Answer) -> None:
    """A refusal is no outage; nor is a quota, which has its own pause."""
    by = breaker()
    hear(by, *[answer] * 100)

    assert by.wait_ms(HOST, NOW) == 0


def test_an_address_that_the_guard_refuses_says_nothing_of_a_host() -> None:
    """Nobody was asked."""
    by = breaker()
    hear(by, *[Lost(Loss.REFUSED_EGRESS)] * 100)

    assert by.wait_ms(HOST, NOW) == 0


def test_a_host_that_loses_less_than_half_stays_in_use() -> None:
    """Nine of twenty, for as long as you like."""
    by = breaker()
    for _ in range(50):
        hear(by, *[LOST] * 9, *[OK] * 11)

    assert by.wait_ms(HOST, NOW) == 0


def test_failures_of_long_ago_do_not_count() -> None:
    """One in two minutes opens nothing."""
    by = breaker()
    for number in range(100):
        hear(by, LOST, now=NOW + number * 2 * STALE_MS)

    assert by.wait_ms(HOST, NOW + 200 * STALE_MS) == 0


def test_when_the_pause_is_over_one_ask_tries_and_the_others_wait() -> None:
    """What it hears decides for all."""
    told: list[BreakerState] = []
    by = breaker(told)
    hear(by, *[LOST] * 10)
    then = NOW + 30_000

    trial, others = by.wait_ms(HOST, then), [by.wait_ms(HOST, then) for _ in range(3)]
    hear(by, REFUSED, now=then + 100)

    assert (trial, others) == (0, [TRIAL_MS] * 3)
    assert by.wait_ms(HOST, then + 100) == 0
    assert told == [BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED]


def test_pauses_double_while_trials_fail() -> None:
    """Up to a quarter of an hour, and from the start again after a success."""
    by, now, pauses = breaker(), NOW, []
    hear(by, *[LOST] * 10)
    for _ in range(7):
        pauses.append(by.wait_ms(HOST, now))
        now += pauses[-1]
        assert by.wait_ms(HOST, now) == 0
        hear(by, BUSY, now=now)
    now += by.wait_ms(HOST, now)
    by.wait_ms(HOST, now)
    hear(by, OK, now=now)
    hear(by, *[LOST] * 10, now=now)

    assert pauses == [30_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000]
    assert by.wait_ms(HOST, now) == 30_000


def test_a_trial_that_never_tells_its_end_is_not_waited_for_for_ever() -> None:
    """Its task was cancelled, perhaps."""
    by = breaker()
    hear(by, *[LOST] * 10)
    by.wait_ms(HOST, NOW + 30_000)

    assert by.wait_ms(HOST, NOW + 30_000 + TRIAL_MS - 1) == 1
    assert by.wait_ms(HOST, NOW + 30_000 + TRIAL_MS) == 0


def test_what_began_before_it_opened_changes_nothing_when_it_ends() -> None:
    """Ninety asks were under way; neither their failures nor a late success count."""
    by = breaker()
    hear(by, *[LOST] * 10)
    hear(by, *[LOST] * 90, OK, now=NOW + 9_000)

    assert by.wait_ms(HOST, NOW + 9_000) == 21_000


def test_one_host_is_no_other() -> None:
    """Not even of the same provider."""
    by = breaker()
    hear(by, *[LOST] * 10)

    assert by.wait_ms("https://other.example.org", NOW) == 0
    assert by.opened() == {"fcm": 1}


def test_a_spread_pause_is_longer_and_never_shorter() -> None:
    """So that processes do not try together."""
    by = breaker(fraction=0.5)
    hear(by, *[LOST] * 10)

    assert by.wait_ms(HOST, NOW) == int(30_000 * (1 + SPREAD / 2))


def test_what_is_remembered_is_bounded_and_open_breakers_outlive_closed_ones() -> None:
    """Strangers can name hosts."""
    by = breaker()
    hear(by, *[LOST] * 10)
    for number in range(2 * ORIGINS_KEPT_MAX):
        hear(by, OK, host=f"https://h{number}.example.org")

    assert len(by._hosts) == ORIGINS_KEPT_MAX
    assert by.wait_ms(HOST, NOW) == 30_000


@pytest.mark.parametrize(("failures_min", "first", "longest"), [(0, 1, 1), (21, 1, 1), (1, 0, 1), (1, 2, 1)])
def test_a_pace_that_cannot_be_meant_is_a_bug(failures_min: int, first: int, longest: int) -> None:
    """It would never open, or for no time."""
    with pytest.raises(ValueError, match="must be"):
        BreakerPace(failures_min, first, longest)


def test_settings_that_contradict_one_another_are_refused() -> None:
    """By name."""
    with pytest.raises(Malformed) as caught:
        check_settings(DeliverySettings(breaker_pause_s=60, breaker_pause_s_max=30))

    assert caught.value.field == "breaker_pause_s"


class Asks(RuleBasedStateMachine):
    """Asks come, wait, are sent and end in any order, on one host."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[BreakerState] = []
        self.by = breaker(self.states)
        self.now = NOW
        self.open_until = 0
        self.trying_since: int | None = None
        self.under_way = 0

    @property
    def state(self) -> BreakerState:
        return self.states[-1] if self.states else BreakerState.CLOSED

    @rule(ms=st.sampled_from([1, 1_000, 30_000, STALE_MS, TRIAL_MS, 900_000]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule()
    def ask(self) -> None:
        before, wait = self.state, self.by.wait_ms(HOST, self.now)
        if wait == 0:
            self.under_way += 1
        match before:
            case BreakerState.CLOSED:
                assert wait == 0
            case BreakerState.OPEN:
                assert (wait == 0) == (self.state is BreakerState.HALF_OPEN)
            case _:
                assert (wait == 0) == (
                    self.trying_since is not None and self.now >= self.trying_since + TRIAL_MS
                )
        if before is not BreakerState.CLOSED and wait == 0:
            self.trying_since = self.now

    @precondition(lambda self: self.under_way)
    @rule(end=st.sampled_from([OK, REFUSED, BUSY, LOST]), count=st.integers(1, 12))
    def end(self, end: Answer | Lost, count: int) -> None:
        for _ in range(min(count, self.under_way)):
            before = self.state
            self.under_way -= 1
            self.by.heard(HOST, "fcm", end, self.now)
            if before is BreakerState.OPEN:
                assert self.state is BreakerState.OPEN
            if before is BreakerState.HALF_OPEN:
                failed = end in (BUSY, LOST)
                assert self.state is (BreakerState.OPEN if failed else BreakerState.CLOSED)

    @invariant()
    def it_is_never_closed_for_longer_than_it_may_be(self) -> None:
        if self.state is not BreakerState.CLOSED:
            host = self.by._hosts[HOST]
            assert host.until <= self.now + PACE.pause_ms_longest


Asks.TestCase.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
test_any_order_of_asks_and_ends_keeps_the_breaker_s_word = Asks.TestCase
