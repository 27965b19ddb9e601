"""A wakeup is a reason to look, and nothing to show."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.arkret.client.wakeup import (
    AggressiveThreshold,
    Disclosure,
    WakeupMeter,
    disclosure,
    read_wakeup,
    sender_hint,
    unread_after,
)
from heliograph.delivery.blind import blind_members
from heliograph.delivery.model import Counts, Wakeup, WakeupKind
from heliograph.pushrules.document import DocumentRefused
from tests.arkret.make import TARGET
from tests.pushrules.arkret.strategies import JSON

WAKEUPS = st.builds(
    Wakeup,
    push_target_id=st.just(TARGET),
    kind=st.sampled_from(WakeupKind),
    push_hint=st.sampled_from([None, "new_message", "incoming_call", "mention_self"]),
    counts=st.builds(
        Counts,
        badge=st.sampled_from([None, True, False, "1", "21+"]),
        unread_increment=st.none() | st.integers(0, 99),
        missed_call=st.sampled_from([None, True, "2-5"]),
    ),
)


@given(WAKEUPS)
def test_what_a_gateway_sends_is_what_a_device_reads(wakeup: Wakeup) -> None:
    """Member by member, through the one place where a gateway spells it."""
    read = read_wakeup(blind_members(wakeup))

    assert (read.push_target_id, read.kind, read.push_hint) == (TARGET, wakeup.kind, wakeup.push_hint)
    assert (read.counts or Counts()) == wakeup.counts


@pytest.mark.clause("R213", "R282")
def test_nothing_that_could_be_shown_comes_out_of_a_wakeup() -> None:
    """Whatever a push service adds, text and names are fetched and decrypted or not shown at all."""
    smuggled = {"title": "Bob", "body": "secret", "realm_title": "Plan", "event_id": "x", "content": {"a": 1}}
    read = read_wakeup({"push_target_id": TARGET, "wakeup_kind": "mention"} | smuggled)

    assert read == Wakeup(TARGET, WakeupKind.MENTION)
    assert set(msgspec.to_builtins(read)) == {
        *("push_target_id", "kind", "push_hint", "push_hint_l10n_key", "counts")
    }


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, ""),
        ({}, "push_target_id"),
        ({"push_target_id": TARGET + "A", "wakeup_kind": "message"}, "push_target_id"),
        ({"push_target_id": TARGET[:-1] + "9", "wakeup_kind": "message"}, "push_target_id"),
        ({"push_target_id": TARGET}, "wakeup_kind"),
        ({"push_target_id": TARGET, "wakeup_kind": "new_message"}, "wakeup_kind"),
    ],
)
@pytest.mark.clause("R018")
def test_a_wakeup_for_nobody_or_for_nothing_is_refused(value: object, field: str) -> None:
    """A pseudonym has exactly 32 octets in their one spelling."""
    with pytest.raises(DocumentRefused) as refused:
        read_wakeup(value)

    assert refused.value.field == field


@given(JSON, JSON)
def test_whatever_a_provider_delivers_is_a_wakeup_or_refused(value: Any, counts: Any) -> None:
    """A wakeup with senseless counts and hints is still a wakeup."""
    known = {"push_target_id": TARGET, "wakeup_kind": "message"}
    read = read_wakeup(known | {"counts": counts, "push_hint": value, "push_hint_l10n_key": value})
    assert read.kind is WakeupKind.MESSAGE
    with pytest.raises(DocumentRefused):
        read_wakeup(value)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"badge": "2-5"}, Counts(badge="2-5")),
        ({"badge": "5-2"}, Counts()),
        ({"badge": "0"}, Counts()),
        ({"badge": 7}, Counts()),
        ({"unread_increment": 3}, Counts(unread_increment=3)),
        ({"unread_increment": 100}, Counts()),
        ({"unread_increment": True}, Counts()),
    ],
)
def test_a_count_off_the_grid_is_dropped(counts: object, expected: Counts) -> None:
    """It is never read as a number."""
    read = read_wakeup({"push_target_id": TARGET, "wakeup_kind": "message", "counts": counts})

    assert read.counts == expected


def test_a_key_for_a_text_comes_only_with_its_hint() -> None:
    """The text itself is the app's own."""
    known = {"push_target_id": TARGET, "wakeup_kind": "message", "push_hint_l10n_key": "push.new"}

    assert read_wakeup(known | {"push_hint": "l10n_key"}).push_hint_l10n_key == "push.new"
    assert read_wakeup(known | {"push_hint": "new_message"}).push_hint_l10n_key is None


@pytest.mark.clause("R268")
def test_an_increment_is_added_and_is_never_a_total() -> None:
    """Where no count is known, none becomes known."""
    wakeup = Wakeup(TARGET, WakeupKind.MESSAGE, counts=Counts(unread_increment=3))

    assert unread_after(4, wakeup) == 7
    assert unread_after(None, wakeup) is None
    assert unread_after(4, Wakeup(TARGET, WakeupKind.MESSAGE)) == 4


@pytest.mark.parametrize("hint", ["new_message", "l10n_key"])
@pytest.mark.clause("R320")
def test_a_sender_may_hint_that_there_is_something(hint: str) -> None:
    """And nothing of whom or where."""
    assert sender_hint(hint) == hint


@pytest.mark.parametrize("hint", ["mention_self", "incoming_call", "Bob wrote", None])
@pytest.mark.clause("R320")
def test_a_sender_may_not_hint_at_more(hint: object) -> None:
    """Neither who is called nor who is meant, nor a word of its own."""
    with pytest.raises(DocumentRefused) as refused:
        sender_hint(hint)

    assert (refused.value.clause, refused.value.field) == ("R320", "push_hint")


@pytest.mark.clause("R288", "R291")
def test_a_session_is_blind_unless_everything_says_otherwise_and_then_it_shows() -> None:
    """Each of the three is needed, and none is assumed."""
    every = {"gateway_listed": True, "realm_allows_visible": True, "opted_in": True}

    assert disclosure() is Disclosure.BLIND
    assert not Disclosure.BLIND.must_be_shown
    for name in every:
        assert disclosure(**(every | {name: False})) is Disclosure.BLIND
    assert disclosure(**every) is Disclosure.VISIBLE
    assert Disclosure.VISIBLE.must_be_shown


@pytest.mark.clause("R217")
def test_thirty_wakeups_in_a_minute_are_borne_and_one_more_is_not() -> None:
    """Unless the person chose otherwise; with time the count starts anew."""
    meter = WakeupMeter()

    assert not any(meter.wake(second * 1_000) for second in range(30))
    assert meter.wake(30_000)
    assert not meter.wake(61_500)
    assert WakeupMeter(AggressiveThreshold(wakeups_max=1, window_ms=10)).wake(0) is False


@given(st.lists(st.integers(0, 5_000), max_size=40), st.integers(1, 5), st.integers(1, 6_000))
@pytest.mark.clause("R217")
def test_the_meter_counts_as_one_would_by_hand(gaps: list[int], most: int, window: int) -> None:
    """At each wakeup, how many fell into the window that ends there."""
    meter = WakeupMeter(AggressiveThreshold(most, window))
    seen: list[int] = []
    now = 0
    for gap in gaps:
        now += gap
        seen.append(now)

        assert meter.wake(now) is (sum(one > now - window for one in seen) > most)


@pytest.mark.parametrize("bad", [{"wakeups_max": 0}, {"wakeups_max": 10_001}, {"window_ms": 0}])
def test_a_threshold_that_means_nothing_is_refused(bad: dict[str, int]) -> None:
    """By the name of the number."""
    with pytest.raises(DocumentRefused) as refused:
        AggressiveThreshold(**bad)

    assert [refused.value.field] == list(bad)
