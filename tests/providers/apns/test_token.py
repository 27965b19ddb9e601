"""When a provider token is signed, and which one is used."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import deliveries
from tests.deliveries import NOW, OCTETS, drive, moment
from tests.providers.apns.provider import KEY_ID, PEM, TEAM_ID, opened, provider, push_key, refused

from heliograph.delivery.exchange import Answer
from heliograph.delivery.model import Outcome
from heliograph.providers.apns.token import ProviderToken, TokenMinter
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

MINUTE_MS = 60_000


def minter() -> TokenMinter:
    return TokenMinter(TEAM_ID, KEY_ID, Secret(PEM))


def test_a_token_says_who_signed_it_and_when_a_little_early() -> None:
    """ES256 with the raw pair, lower-case scheme, ten-character ids, seconds."""
    head, claims = opened(minter().token(NOW, OCTETS).authorization)

    assert head == {"alg": "ES256", "kid": "KEY4567890"}
    assert claims == {"iss": "TEAM567890", "iat": 1_789_999_970}


@given(octets=st.binary(min_size=64, max_size=64))
def test_a_token_is_used_for_40_to_50_minutes(octets: bytes) -> None:
    """Within the hour that it lives and beyond the 20 minutes that it must not change in."""
    by = minter()
    token = by.token(NOW, octets)

    assert by.token(NOW + 40 * MINUTE_MS - 1, octets) is token
    assert by.token(NOW + 50 * MINUTE_MS + 1, octets) is not token


@given(
    steps=st.lists(
        st.tuples(
            st.integers(0, 30 * MINUTE_MS), st.sampled_from(["sent", "expired", "too many", "wrong key"])
        ),
        max_size=60,
    )
)
def test_over_any_hours_tokens_change_20_minutes_apart_and_live_for_one(steps: list[tuple[int, str]]) -> None:
    """P4: whatever is heard meanwhile, per connection; a refused change goes back to the token of before."""
    by, now = minter(), NOW
    signed: list[int] = []
    for after_ms, heard in steps:
        now += after_ms
        token = by.token(now, OCTETS)
        match heard:
            case "expired":
                token = by.after_expiry(token, now, OCTETS) or token
            case "too many":
                by.too_many_updates(token, now)
            case "wrong key":
                token = by.after_wrong_key(token, now) or token
            case _:
                pass
        signed.extend([] if token.signed_at in signed else [token.signed_at])
        assert now - token.signed_at < 59 * MINUTE_MS

    assert all(later - earlier >= 20 * MINUTE_MS for earlier, later in pairwise(signed))


@given(steps=st.lists(st.integers(-90 * MINUTE_MS, 90 * MINUTE_MS), max_size=40))
def test_a_clock_that_steps_either_way_causes_no_storm_of_tokens(steps: list[int]) -> None:
    """T5: two signings are 20 minutes apart on the clock that we are given, forward or back."""
    by, now = minter(), NOW
    signings: list[int] = []
    seen: set[str] = set()
    for step in steps:
        now += step
        token = by.token(now, OCTETS)
        if token.authorization not in seen:
            seen.add(token.authorization)
            signings.append(now)

    assert all(abs(b - a) >= 20 * MINUTE_MS for a, b in pairwise(signings))


def test_workers_of_one_process_use_one_token_for_two_hours() -> None:
    """P4: eight workers, three topics, a push a minute each: three tokens, not hundreds."""
    by = provider(topics={"a": "org.a", "b": "org.b", "c": "org.c"})
    tokens: dict[str, int] = {}
    for minute in range(120):
        for worker in range(8):
            exchange = by.exchange(
                deliveries.delivery(push_key(f"{worker:02x}"), provider="apns"),
                moment(now=NOW + minute * MINUTE_MS + worker),
            )
            asks, _ = drive(exchange, [Answer(200, {}, b"")])
            tokens.setdefault(asks[0].headers["authorization"], minute)

    assert len(tokens) == 3
    assert all(20 <= b - a <= 50 for a, b in pairwise(tokens.values()))


def test_too_many_updates_goes_back_to_the_token_of_before() -> None:
    """P4: APNs has not taken the new one, and the old one is still good."""
    by = minter()
    old = by.token(NOW, OCTETS)
    new = by.after_expiry(old, NOW + 21 * MINUTE_MS, OCTETS)
    assert new is not None

    by.too_many_updates(new, NOW + 21 * MINUTE_MS)

    assert by.token(NOW + 22 * MINUTE_MS, OCTETS) is old


def test_after_too_many_updates_nothing_is_signed_for_20_minutes() -> None:
    """The present one serves on, beyond its usual time if need be."""
    by = minter()
    token = by.token(NOW, OCTETS)

    by.too_many_updates(token, NOW + 35 * MINUTE_MS)

    assert by.token(NOW + 52 * MINUTE_MS, OCTETS) is token
    assert by.after_expiry(token, NOW + 52 * MINUTE_MS, OCTETS) is None
    assert by.token(NOW + 56 * MINUTE_MS, OCTETS) is not token


def test_an_exchange_that_hears_too_many_updates_holds_and_the_next_sends_the_old_token() -> None:
    """End to end through the provider: held without burning an attempt, then over."""
    by, delivery = provider(), deliveries.delivery(push_key(), provider="apns", expires_at=NOW + 10**8)
    (first,), _ = drive(by.exchange(delivery, moment()), [Answer(200, {}, b"")])
    changed = moment(now=NOW + 51 * MINUTE_MS)

    (refused_ask,), verdict = drive(
        by.exchange(delivery, changed), [refused(429, "TooManyProviderTokenUpdates")]
    )
    (again,), _ = drive(by.exchange(delivery, changed), [Answer(200, {}, b"")])

    assert verdict.outcome is Outcome.CONFIG_BAD
    assert refused_ask.headers["authorization"] != first.headers["authorization"]
    assert again.headers["authorization"] == first.headers["authorization"]


def test_a_token_that_another_exchange_has_renewed_is_taken_over() -> None:
    """Two that hear of one expiry sign one token."""
    by = minter()
    old = by.token(NOW, OCTETS)
    one = by.after_expiry(old, NOW + 25 * MINUTE_MS, OCTETS)
    two = by.after_expiry(old, NOW + 25 * MINUTE_MS, OCTETS)

    assert one is two is not None


def test_neither_the_token_nor_the_minter_shows_itself() -> None:
    """A bearer token is as good as the key for an hour."""
    by = minter()
    token: ProviderToken = by.token(NOW, OCTETS)

    assert token.authorization.split()[1] not in repr(token)
    assert TEAM_ID not in repr(by)


@pytest.mark.parametrize(
    "text",
    ["", "no key", PEM.replace("PRIVATE", "PUBLIC"), PEM[:60], "\u00fc", "-----BEGIN PRIVATE KEY-----"],
)
def test_a_key_that_is_none_is_refused_and_not_repeated(text: str) -> None:
    """By its member's name."""
    with pytest.raises(Malformed, match="key") as refusal:
        TokenMinter(TEAM_ID, KEY_ID, Secret(text))

    assert text == "" or text not in str(refusal.value)
