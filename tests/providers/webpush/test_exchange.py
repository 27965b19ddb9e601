"""One Web Push message, driven by hand."""

import json
from dataclasses import replace

import http_ece
import pytest
from tests import deliveries
from tests.deliveries import BROWSER_AUTH, BROWSER_KEY, COLLAPSE_KEY, FULLEST, NOW, TARGET, drive, moment
from tests.providers.cases import answer_rows, payload_rows

from heliograph.delivery.egress import EgressRules
from heliograph.delivery.exchange import Answer, Ask, Lost
from heliograph.delivery.model import Outcome, Verdict, Wakeup, WakeupKind
from heliograph.providers.webpush.answers import verdict_of
from heliograph.providers.webpush.exchange import WebPushProvider
from heliograph.providers.webpush.payload import TTL_SECONDS_MAX, topic
from heliograph.providers.webpush.settings import WebPushSettings
from heliograph.providers.webpush.vapid import VapidKey
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

SETTINGS = WebPushSettings(subject=deliveries.SUBJECT, vapid_key="env:VAPID", hosts=())


def provider(*, previous: VapidKey | None = None, hosts: tuple[str, ...] = ()) -> WebPushProvider:
    settings = WebPushSettings(subject=deliveries.SUBJECT, vapid_key="env:VAPID", hosts=hosts)
    return WebPushProvider(settings, key=deliveries.vapid_key(), previous_key=previous)


def first_ask(
    content: Wakeup | None = None, *, expires_at: int = NOW + 60_000, collapse_key: str | None = COLLAPSE_KEY
) -> Ask:
    delivery = deliveries.delivery(
        deliveries.push_key(),
        provider="webpush",
        content=content,
        expires_at=expires_at,
        collapse_key=collapse_key,
    )
    return next(provider().exchange(delivery, moment()))


def opened(body: bytes) -> bytes:
    return bytes(
        http_ece.decrypt(body, private_key=BROWSER_KEY, auth_secret=BROWSER_AUTH, version="aes128gcm")
    )


@pytest.mark.parametrize(("heard", "verdict"), answer_rows("webpush").values(), ids=answer_rows("webpush"))
def test_every_row_of_the_verdict_table(heard: list[Answer | Lost], verdict: Verdict) -> None:
    """W4, W6: each answer of a push service means exactly one thing, in exactly so many asks."""
    delivery = deliveries.delivery(deliveries.push_key(), provider="webpush")

    asks, reached = drive(provider().exchange(delivery, moment()), heard)

    assert reached == verdict
    assert len(asks) == len(heard)


@pytest.mark.clause("R011", "R253", "R254", "R278", "R279", "R280")
@pytest.mark.parametrize(
    ("content", "payload"), payload_rows("webpush").values(), ids=payload_rows("webpush")
)
def test_the_browser_reads_the_allow_listed_members_and_no_other(
    content: Wakeup, payload: dict[str, object]
) -> None:
    """The golden payloads, decrypted by the other library."""
    assert json.loads(opened(first_ask(content).body)) == payload


def test_the_request_is_what_the_rfcs_ask_for() -> None:
    """RFC 8030: TTL, Urgency, Topic; RFC 8188: the encoding; RFC 8292: who sends."""
    ask = first_ask()

    assert ask.method == "POST"
    assert ask.url == Secret("https://push.example.org/send/abc")
    assert ask.untrusted_host
    assert ask.body_limit == 4_096
    authorization = ask.headers["authorization"]
    assert authorization == deliveries.vapid_key().authorization(
        "https://push.example.org", deliveries.SUBJECT, NOW
    )
    assert {name: value for name, value in ask.headers.items() if name != "authorization"} == {
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "topic": COLLAPSE_KEY,
        "ttl": "60",
        "urgency": "normal",
    }


URGENCIES = {
    WakeupKind.MESSAGE: "normal",
    WakeupKind.MENTION: "high",
    WakeupKind.ASSIGNMENT: "normal",
    WakeupKind.SCHEDULE: "normal",
    WakeupKind.REACTION: "low",
    WakeupKind.CALL_INVITE: "high",
    WakeupKind.REMINDER: "high",
    WakeupKind.SCHEDULED_SEND: "normal",
    WakeupKind.EXPIRY_INVALIDATION: "very-low",
}


@pytest.mark.parametrize("kind", WakeupKind)
def test_the_urgency_follows_the_kind(kind: WakeupKind) -> None:
    """A call wakes a sleeping phone; a reaction can wait."""
    assert first_ask(deliveries.wakeup(kind)).headers["urgency"] == URGENCIES[kind]


@pytest.mark.parametrize(
    ("life_ms", "ttl"),
    [(999, "0"), (1_000, "1"), (59_999, "59"), (10**12, str(TTL_SECONDS_MAX))],
)
def test_the_ttl_is_what_is_left_of_the_deliverys_life(life_ms: int, ttl: str) -> None:
    """Never beyond it, never beyond thirty days."""
    assert first_ask(expires_at=NOW + life_ms).headers["ttl"] == ttl


@pytest.mark.parametrize("key", [None, "", "x" * 33, "not a topic", "\u00fc", COLLAPSE_KEY, "a"])
def test_a_topic_is_always_legal_and_the_same_on_every_attempt(key: str | None) -> None:
    """W8: at most 32 characters of the alphabet; without a key it folds with its own repeats alone."""
    named = topic(deliveries.delivery(collapse_key=key))

    assert 1 <= len(named) <= 32
    assert set(named) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert named == topic(deliveries.delivery(collapse_key=key, content=FULLEST, expires_at=NOW + 1))
    if key is None:
        other = replace(deliveries.delivery(collapse_key=None), delivery_id="another")
        assert named != topic(other)


def test_every_body_has_one_length() -> None:
    """The smallest and the largest wakeup cannot be told apart on the wire."""
    assert len(first_ask(deliveries.wakeup()).body) == len(first_ask(FULLEST).body) == 86 + 512 + 1 + 16


def test_the_largest_wakeup_that_the_schema_admits_fits() -> None:
    """So payload_too_large is for content that could never have been accepted."""
    assert provider().fits(FULLEST)
    assert not provider().fits(replace(FULLEST, push_hint_l10n_key="k" * 600))


def test_content_that_does_not_fit_is_refused_before_anything_is_sent() -> None:
    """It can go to nobody."""
    delivery = deliveries.delivery(
        deliveries.push_key(), content=replace(FULLEST, push_hint_l10n_key="k" * 600)
    )

    assert drive(provider().exchange(delivery, moment()), []) == (
        [],
        Verdict(Outcome.PAYLOAD_BAD, "webpush_payload_too_large"),
    )


def test_after_a_413_the_smallest_form_is_sent_once_under_another_key() -> None:
    """W6: ids alone, in a shorter body; never one key and salt over two texts."""
    delivery = deliveries.delivery(deliveries.push_key(), content=FULLEST)
    asks, _ = drive(provider().exchange(delivery, moment()), [Answer(413, {}, b""), Answer(201, {}, b"")])

    assert json.loads(opened(asks[1].body)) == {
        "push_target_id": TARGET,
        "wakeup_kind": "expiry_invalidation",
    }
    assert len(asks[1].body) == 86 + 128 + 1 + 16
    assert asks[0].body[:16] != asks[1].body[:16]
    assert asks[0].body[21:86] != asks[1].body[21:86]
    assert asks[0].headers == asks[1].headers


@pytest.mark.parametrize("status", [401, 403])
def test_a_subscription_made_with_the_previous_key_is_reached_with_it(status: int) -> None:
    """Rotation without an outage: the same body, identified by the key that the browser knows."""
    previous = VapidKey(Secret("IB8eHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgE"))
    delivery = deliveries.delivery(deliveries.push_key())
    exchange = provider(previous=previous).exchange(delivery, moment())

    asks, verdict = drive(exchange, [Answer(status, {}, b""), Answer(201, {}, b"")])

    assert verdict.outcome is Outcome.ACCEPTED
    assert asks[0].body == asks[1].body
    assert previous.public_key in asks[1].headers["authorization"]


def test_when_neither_key_is_taken_it_is_our_configuration() -> None:
    """The subscription is kept."""
    previous = VapidKey(Secret("IB8eHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgE"))
    exchange = provider(previous=previous).exchange(deliveries.delivery(deliveries.push_key()), moment())

    _, verdict = drive(exchange, [Answer(403, {}, b""), Answer(403, {}, b"")])

    assert verdict == Verdict(Outcome.CONFIG_BAD, "webpush_forbidden")


def test_equal_moments_make_equal_requests_and_fresh_octets_fresh_ones() -> None:
    """Pure: nothing is drawn or read inside."""
    delivery = deliveries.delivery(deliveries.push_key())
    bodies = [
        next(provider().exchange(delivery, moment(octets))).body
        for octets in (bytes(64), bytes(64), b"x" * 64)
    ]

    assert bodies[0] == bodies[1]
    assert bodies[0][:86] != bodies[2][:86]


@pytest.mark.clause("R072")
def test_a_subscription_past_its_own_end_is_dead_since_then() -> None:
    """R072: the provider's own end of life stays with the adapter."""
    document = {**deliveries.subscription_document(), "expirationTime": NOW}
    delivery = deliveries.delivery(deliveries.push_key(document))

    assert drive(provider().exchange(delivery, moment()), []) == (
        [],
        Verdict(Outcome.TOKEN_DEAD, "webpush_subscription_expired", dead_since=NOW),
    )


def test_a_push_key_that_the_rules_no_longer_allow_is_kept_and_not_called() -> None:
    """Checked again at every send; a narrowed host list is our doing, not the token's."""
    exchange = provider(hosts=("*.push.apple.com",)).exchange(
        deliveries.delivery(deliveries.push_key()), moment()
    )

    assert drive(exchange, []) == ([], Verdict(Outcome.TOKEN_SUSPECT, "webpush_push_key_not_allowed"))


def test_the_host_list_of_the_settings_holds_at_registration() -> None:
    """S12's kind: a foreign host never gets our token."""
    provider(hosts=("push.example.org",)).check_push_key(deliveries.push_key())
    with pytest.raises(Malformed, match="host_not_listed"):
        provider(hosts=("*.push.apple.com",)).check_push_key(deliveries.push_key())


def test_an_operators_exception_reaches_the_adapter() -> None:
    """A self-hosted distributor in a private network, by exact host and port."""
    rules = EgressRules(exceptions=("ntfy.lan:8443",))
    built = WebPushProvider(SETTINGS, key=deliveries.vapid_key(), egress=rules)
    document = deliveries.subscription_document("https://ntfy.lan:8443/up")

    built.check_push_key(deliveries.push_key(document))

    assert built.name == "webpush"
    assert len(built.application_server_key) == 87


def test_no_body_text_of_a_provider_reaches_a_verdict() -> None:
    """S7: what a provider writes is reduced to a code."""
    verdict = verdict_of(Answer(400, {}, b"<img onerror=alert(1)> vapid"), 60, NOW)

    assert verdict == Verdict(Outcome.CONFIG_BAD, "webpush_vapid_refused")


@pytest.mark.parametrize(
    ("push_key", "origin"),
    [
        (deliveries.push_key(), "https://push.example.org"),
        (Secret("webpush:{}"), ""),
        (Secret("webpush:" + "[" * 100_000), ""),
        (Secret('webpush:{"endpoint":"https://10.0.0.1/x"}'), ""),
        (Secret("something else"), ""),
    ],
    ids=["subscription", "no endpoint", "deep", "forbidden", "junk"],
)
def test_each_push_service_judges_our_key_for_itself(push_key: Secret, origin: str) -> None:
    """So what one refuses holds up nothing that goes to another."""
    assert provider().scope(deliveries.delivery(push_key, provider="webpush")) == origin
