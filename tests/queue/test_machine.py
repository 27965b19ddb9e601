"""The table of changes: what may happen to a work item, and what never may."""

from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.queue.machine import (
    TRANSITIONS,
    CancelAsked,
    Change,
    Circumstance,
    Claimed,
    Cue,
    Delivered,
    FoundExpired,
    Happening,
    ImpossibleChange,
    Item,
    Later,
    LeaseExpired,
    Policy,
    Refused,
    Released,
    RetryAsked,
    RouteGone,
    State,
    backoff_ms,
    change,
)

NOW = 1_000_000
POLICY = Policy(max_attempts=5, first_backoff_ms=1_000, max_backoff_ms=60_000)

HAPPENINGS: tuple[Happening, ...] = (
    Delivered(),
    RouteGone("token_dead"),
    Refused("payload_bad"),
    Later("busy"),
    LeaseExpired(),
    Released(),
    FoundExpired(),
    Claimed(),
    CancelAsked(),
    RetryAsked(),
)


def leased(
    attempt: int = 1, *, revision: int | None = None, cancel: bool = False, expires_in: int = 3_600_000
) -> Item:
    return Item(State.LEASED, attempt, revision or attempt, cancel, NOW + expires_in)


def decide(item: Item, happening: Happening, fraction: float = 0.0) -> Change:
    return change(item, happening, POLICY, NOW, fraction)


def test_a_delivered_item_is_done_and_has_no_reason() -> None:
    """The good end."""
    made = decide(leased(2), Delivered())

    assert made == Change(State.DONE, NOW, None, 2)
    assert made.signal == Delivered()


@pytest.mark.parametrize("signal", [RouteGone("token_dead"), Refused("token_dead")])
def test_a_no_for_good_fails_with_its_reason(signal: RouteGone | Refused) -> None:
    """Neither is tried again, however many attempts are left."""
    assert decide(leased(), signal) == Change(State.FAILED, NOW, "token_dead", 1)


def test_later_waits_for_a_share_of_a_doubling_pause() -> None:
    """The third attempt has a ceiling of four times the first; the half of that is drawn."""
    assert decide(leased(3), Later("busy"), 0.5) == Change(State.READY, NOW + 2_000, "busy", 3)


def test_the_far_side_may_ask_for_a_longer_pause_but_not_for_a_shorter_one() -> None:
    """The longer of the two holds."""
    longer = decide(leased(), Later("busy", after_ms=54_000), 0.9)
    shorter = decide(leased(), Later("busy", after_ms=1), 0.9)

    assert (longer.due_at, shorter.due_at) == (NOW + 54_000, NOW + 900)


def test_the_last_attempt_ends_dead_and_tells_what_it_died_of() -> None:
    """J9, J10: exactly `attempts_exhausted`, with the provider's reason beside it."""
    assert decide(leased(5), Later("busy")) == Change(State.DEAD, NOW, "attempts_exhausted", 5, cause="busy")


def test_a_crash_on_the_last_attempt_is_as_final_as_an_answer() -> None:
    """J9: an item at its last attempt whose holder crashed is not blocked for ever."""
    assert decide(leased(5), LeaseExpired()) == Change(
        State.DEAD, NOW, "attempts_exhausted", 5, cause="lease_expired"
    )


def test_a_crash_before_that_makes_the_item_ready_at_once() -> None:
    """J4: waiting for the lease was pause enough."""
    assert decide(leased(4), LeaseExpired()) == Change(State.READY, NOW, "lease_expired", 4)


def test_a_pause_that_burns_no_attempt_gives_it_back() -> None:
    """A throttled credential says nothing about this item, not even at its last attempt."""
    assert decide(leased(5), Later("throttled", burns_attempt=False)) == Change(
        State.READY, NOW, "throttled", 4
    )


def test_pauses_that_burn_no_attempt_still_grow() -> None:
    """The attempt stays 1, so the number of claims decides: the fourth has a ceiling of eight seconds."""
    made = decide(leased(1, revision=4), Later("throttled", burns_attempt=False), 0.5)

    assert made == Change(State.READY, NOW + 4_000, "throttled", 0)


def test_a_stopping_runner_burns_no_attempt() -> None:
    """J8: six stops in a row leave the item where it was."""
    item, made = leased(5), None
    for _ in range(6):
        made = decide(item, Released())
        item = leased(decide(Item(State.READY, made.attempt, 9, False, item.expires_at), Claimed()).attempt)

    assert made == Change(State.READY, NOW, "released", 4)
    assert item.attempt == 5


def test_a_retry_that_would_come_too_late_is_the_end() -> None:
    """From its expiry on the item is worth nothing, so it does not wait for it."""
    item = leased(expires_in=500)

    assert decide(item, Later("busy", after_ms=499)).state is State.READY
    assert decide(item, Later("busy", after_ms=500)) == Change(State.DEAD, NOW, "expired", 1, cause="busy")


@pytest.mark.parametrize("happening", [LeaseExpired(), Released(), FoundExpired()])
def test_an_item_past_its_expiry_does_not_wait_again(happening: Happening) -> None:
    """However it came back."""
    assert decide(leased(expires_in=0), happening).state is State.DEAD


def test_an_item_found_expired_was_not_tried() -> None:
    """Its claim is not counted as an attempt."""
    assert decide(leased(1, expires_in=0), FoundExpired()) == Change(State.DEAD, NOW, "expired", 0)


def test_a_clock_that_was_set_back_does_not_revive_what_was_found_expired() -> None:
    """T5: the claim saw the expiry; the settlement believes it."""
    assert decide(leased(1, expires_in=3_600_000), FoundExpired()).state is State.DEAD


def test_aligned_work_waits_for_a_multiple_of_its_interval() -> None:
    """So that the time of an attempt tells nothing of what led to it."""
    aligned = Policy(first_backoff_ms=1_000, align_ms=60_000)

    made = change(leased(), Later("busy"), aligned, NOW, 0.5)

    assert (made.due_at, made.due_at % 60_000) == (1_020_000, 0)


def test_canceling_a_waiting_item_ends_it() -> None:
    """C4."""
    item = Item(State.READY, 0, 0, cancel_requested=False, expires_at=NOW - 1)

    assert decide(item, CancelAsked()) == Change(State.CANCELED, NOW, "canceled", 0)


def test_canceling_a_leased_item_leaves_it_to_its_holder() -> None:
    """It may finish, once."""
    assert decide(leased(), CancelAsked()).state is State.LEASED


@pytest.mark.parametrize(
    ("happening", "end"),
    [
        (Delivered(), State.DONE),
        (RouteGone("gone"), State.FAILED),
        (Refused("bad"), State.FAILED),
        (Later("busy"), State.CANCELED),
        (LeaseExpired(), State.CANCELED),
        (Released(), State.CANCELED),
        (FoundExpired(), State.CANCELED),
    ],
)
def test_a_canceled_attempt_finishes_or_is_canceled_but_never_waits_again(
    happening: Happening, end: State
) -> None:
    """C2: what has happened is not denied, and nothing new begins, not even at the last attempt."""
    assert decide(leased(5, cancel=True, expires_in=0), happening).state is end


def test_a_dead_item_begins_anew_when_an_operator_says_so() -> None:
    """J10: with all its attempts."""
    item = Item(State.DEAD, 5, 5, cancel_requested=False, expires_at=NOW + 1)

    assert decide(item, RetryAsked()) == Change(State.READY, NOW, "retried", 0)


def test_a_dead_item_past_its_expiry_stays_dead() -> None:
    """There is nothing left to be gained."""
    with pytest.raises(ImpossibleChange):
        decide(Item(State.DEAD, 5, 5, cancel_requested=False, expires_at=NOW), RetryAsked())


@pytest.mark.parametrize(
    ("state", "happening"), list(product([State.DONE, State.FAILED, State.CANCELED], HAPPENINGS))
)
def test_what_is_settled_never_changes(state: State, happening: Happening) -> None:
    """C2: the machine is monotone."""
    with pytest.raises(ImpossibleChange):
        decide(Item(state, 1, 1, cancel_requested=False, expires_at=NOW + 1), happening)


def test_only_a_retry_brings_anything_back() -> None:
    """Every row out of a settled state, read from the table itself."""
    rows = {(state, cue, target.state) for (state, cue, _), target in TRANSITIONS.items() if state.settled}

    assert rows == {(State.DEAD, Cue.RETRY_ASKED, State.READY)}


def test_an_ended_lease_always_has_a_next_state() -> None:
    """No circumstance leaves a lease that ended without a row."""
    ends = (Cue.DELIVERED, Cue.ROUTE_GONE, Cue.REFUSED, Cue.LATER, Cue.LEASE_EXPIRED)
    missing = [key for key in product([State.LEASED], ends, Circumstance) if key not in TRANSITIONS]

    assert missing == []


@dataclass(frozen=True, slots=True)
class DeliveredWith(Delivered):
    """A handler's own richer signal."""

    receipt: str = "r-1"


def test_a_handlers_own_signal_comes_back_with_the_change() -> None:
    """So that its settlement needs no memory of its own."""
    assert decide(leased(), DeliveredWith("r-2")).signal == DeliveredWith("r-2")


@pytest.mark.parametrize("reason", ["", "Busy", "a b", "x" * 65, "ü", "busy\n", "9lives"])
@pytest.mark.parametrize("kind", [Later, Refused, RouteGone])
def test_a_reason_is_a_short_code(kind: type[Later | Refused | RouteGone], reason: str) -> None:
    """Provider free text must not reach a log by this way."""
    with pytest.raises(ValueError, match="a reason is a code"):
        kind(reason)


def test_a_negative_pause_is_refused() -> None:
    """Junk from a provider is dropped before it comes here."""
    with pytest.raises(ValueError, match="after_ms"):
        Later("busy", after_ms=-1)


@pytest.mark.parametrize(
    "numbers", [{"max_attempts": 0}, {"first_backoff_ms": 0}, {"first_backoff_ms": 2, "max_backoff_ms": 1}]
)
def test_a_policy_without_patience_is_refused(numbers: dict[str, int]) -> None:
    """J7: zero is not a way to say never."""
    with pytest.raises(ValueError, match="must"):
        Policy(**numbers)


@given(tries=st.integers(1, 10_000), fraction=st.floats(0, 1, exclude_max=True))
def test_a_pause_is_never_negative_and_never_above_its_ceiling(tries: int, fraction: float) -> None:
    """Full jitter, for any number of tries."""
    assert 0 <= backoff_ms(POLICY, tries, fraction) <= min(1_000 * 2 ** min(tries - 1, 40), 60_000)


@given(
    attempt=st.integers(1, 9),
    cancel=st.booleans(),
    expires_in=st.integers(-10, 100_000),
    happening=st.sampled_from(HAPPENINGS[:7]),
    fraction=st.floats(0, 1, exclude_max=True),
)
def test_whatever_waits_again_is_wanted_in_time_and_has_attempts_left(
    attempt: int, cancel: bool, expires_in: int, happening: Happening, fraction: float
) -> None:
    """The three conditions of waiting, for every way a lease can end."""
    made = decide(leased(attempt, cancel=cancel, expires_in=expires_in), happening, fraction)

    if made.state is State.READY:
        assert not cancel
        assert made.due_at < NOW + expires_in
        assert made.attempt < POLICY.max_attempts or attempt > POLICY.max_attempts
    else:
        assert made.state.settled
