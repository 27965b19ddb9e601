"""What one push over APNs looks like."""

import json
from dataclasses import replace

import pytest
from tests import deliveries
from tests.deliveries import COLLAPSE_KEY, DELIVERY_ID, FULLEST, NOW, drive, moment
from tests.providers.apns.provider import TOKEN, provider, push_key, settings
from tests.providers.cases import payload_rows

from heliograph.delivery.exchange import Ask
from heliograph.delivery.model import Delivery, Outcome, Route, Verdict, Wakeup, WakeupKind
from heliograph.providers.apns.exchange import ApnsProvider
from heliograph.providers.apns.payload import collapse_id
from heliograph.providers.apns.settings import ApnsSettings, PushType
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret


def first_ask(delivery: Delivery | None = None, by: ApnsProvider | None = None) -> Ask:
    return next(
        (by or provider()).exchange(delivery or deliveries.delivery(push_key(), provider="apns"), moment())
    )


def of_app(app_id: str | None) -> Delivery:
    return replace(deliveries.delivery(), route=Route("apns", push_key(), app_id))


def test_the_request_is_what_apns_asks_for() -> None:
    """Every header that applies, the delivery id as apns-id, and the token in the path alone."""
    ask = first_ask()

    assert ask.method == "POST"
    assert ask.url == Secret(f"https://api.push.apple.com/3/device/{TOKEN}")
    assert not ask.untrusted_host
    assert {name: value for name, value in ask.headers.items() if name != "authorization"} == {
        "apns-collapse-id": COLLAPSE_KEY,
        "apns-expiration": "1790000060",
        "apns-id": DELIVERY_ID,
        "apns-priority": "10",
        "apns-push-type": "alert",
        "apns-topic": "org.example.a",
        "content-type": "application/json",
    }


@pytest.mark.clause("R011", "R253", "R254", "R278", "R279", "R280")
@pytest.mark.parametrize(("content", "payload"), payload_rows("apns").values(), ids=payload_rows("apns"))
def test_the_device_reads_the_allow_listed_members_and_a_form_without_content(
    content: Wakeup, payload: dict[str, object]
) -> None:
    """The golden payloads."""
    ask = first_ask(deliveries.delivery(push_key(), content=content))

    assert json.loads(ask.body) == payload


def test_a_background_push_has_no_alert_and_suits_the_battery() -> None:
    """Priority 10 would be an error there, for a call too."""
    by = provider(push_type=PushType.BACKGROUND)
    ask = first_ask(deliveries.delivery(push_key(), content=deliveries.wakeup(WakeupKind.CALL_INVITE)), by)

    assert json.loads(ask.body)["aps"] == {"content-available": 1}
    assert (ask.headers["apns-push-type"], ask.headers["apns-priority"]) == ("background", "5")


PRIORITIES = {
    WakeupKind.MESSAGE: "10",
    WakeupKind.MENTION: "10",
    WakeupKind.ASSIGNMENT: "10",
    WakeupKind.SCHEDULE: "10",
    WakeupKind.REACTION: "5",
    WakeupKind.CALL_INVITE: "10",
    WakeupKind.REMINDER: "10",
    WakeupKind.SCHEDULED_SEND: "10",
    WakeupKind.EXPIRY_INVALIDATION: "5",
}


@pytest.mark.parametrize("kind", WakeupKind)
def test_the_priority_follows_the_kind(kind: WakeupKind) -> None:
    """A message is shown at once; a reaction can wait for a better moment."""
    delivery = deliveries.delivery(push_key(), content=deliveries.wakeup(kind))

    assert first_ask(delivery).headers["apns-priority"] == PRIORITIES[kind]


@pytest.mark.parametrize(
    ("expires_at", "header"),
    [
        (NOW + 999, "1790000000"),
        (NOW + 1_000, "1790000001"),
        (0, "1"),
        (-5_000, "1"),
        (10**18, "253402300799"),
    ],
)
def test_the_expiration_is_the_end_of_the_deliverys_life_and_never_zero(expires_at: int, header: str) -> None:
    """Seconds; zero would mean one attempt without storing."""
    delivery = deliveries.delivery(push_key(), expires_at=expires_at)

    assert first_ask(delivery).headers["apns-expiration"] == header


@pytest.mark.clause("R037")
@pytest.mark.parametrize("key", [None, "", "x" * 64, "x" * 65, "two words", "\u00fc", "\ud800", COLLAPSE_KEY])
def test_a_collapse_id_is_always_legal_and_the_same_on_every_attempt(key: str | None) -> None:
    """At most 64 octets; without a key it folds with its own repeats alone (I8)."""
    named = collapse_id(deliveries.delivery(collapse_key=key))

    assert 1 <= len(named.encode("ascii")) <= 64
    assert named == collapse_id(deliveries.delivery(collapse_key=key, content=FULLEST, expires_at=NOW))
    assert (named == DELIVERY_ID) == (key is None)


def test_the_topic_is_that_of_the_exact_application() -> None:
    """S9: a dot is a dot; an application without a topic of its own has the common one."""
    by = provider(topics={"com.x": "org.example.x"})

    topics = [first_ask(of_app(app), by).headers["apns-topic"] for app in ("com.x", "comAx", None)]

    assert topics == ["org.example.x", "org.example.a", "org.example.a"]


def test_an_application_without_any_topic_is_a_fault_of_the_settings() -> None:
    """The token is kept, and nothing is sent."""
    asks, verdict = drive(
        provider(topic=None, topics={"com.x": "org.example.x"}).exchange(of_app("com.y"), moment()), []
    )

    assert asks == []
    assert verdict == Verdict(Outcome.CONFIG_BAD, "apns_topic_not_configured")


def test_content_that_does_not_fit_is_refused_before_anything_is_sent() -> None:
    """P7: octets are counted, on the final JSON; it can go to nobody."""
    too_long = replace(FULLEST, push_hint_l10n_key="\U0001f468" * 130)
    asks, verdict = drive(
        provider().exchange(deliveries.delivery(push_key(), content=too_long), moment()), []
    )

    assert (asks, verdict) == ([], Verdict(Outcome.PAYLOAD_BAD, "apns_payload_too_large"))
    assert provider().fits(FULLEST)
    assert not provider().fits(too_long)


@pytest.mark.parametrize("token", ["00", TOKEN, TOKEN.upper(), "a" * 200])
def test_a_token_of_any_even_length_is_taken_and_sent_in_lower_case(token: str) -> None:
    """Apple promises no length."""
    provider().check_push_key(push_key(token))

    url = first_ask(deliveries.delivery(push_key(token))).url.reveal()
    assert url.endswith(f"/3/device/{token.lower()}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "apns:",
        TOKEN,
        f"APNS:{TOKEN}",
        f"fcm:{TOKEN}",
        "apns:0",
        "apns:0g",
        "apns:" + "a" * 202,
        f"apns:{TOKEN}\n",
        f"apns: {TOKEN}",
        "apns:\u0660\u0661",
        "apns:../../x",
    ],
)
def test_a_push_key_of_another_form_is_refused_and_not_repeated(text: str) -> None:
    """It would become part of a path."""
    with pytest.raises(Malformed, match="push_key") as refusal:
        provider().check_push_key(Secret(text))

    assert TOKEN not in str(refusal.value)


def test_a_push_key_that_is_refused_only_now_is_kept() -> None:
    """It was registered when the form was another one."""
    asks, verdict = drive(provider().exchange(deliveries.delivery("apns:xyz"), moment()), [])

    assert (asks, verdict) == ([], Verdict(Outcome.TOKEN_SUSPECT, "apns_push_key_not_allowed"))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("team_id", "TEAM"),
        ("team_id", "team567890"),
        ("key_id", "KEY456789\n"),
        ("topic", None),
        ("topic", "org.example.*"),
        ("topics.com.x", {"com.x": "a b"}),
        ("alert_loc_key", "a key"),
        ("alert_loc_key", ""),
        ("production_origin", "http://api.push.apple.com"),
        ("sandbox_origin", "https://api.sandbox.push.apple.com/3"),
    ],
)
def test_settings_that_could_never_deliver_are_refused_by_name(member: str, value: object) -> None:
    """At start, not at the first push."""
    name = member.split(".", maxsplit=1)[0]
    with pytest.raises(Malformed) as refusal:
        provider(**{name: value})

    assert refusal.value.field == member


def test_settings_have_apples_own_origins_unless_told_otherwise() -> None:
    """So an operator writes four lines."""
    given: ApnsSettings = settings()

    assert given.production_origin == "https://api.push.apple.com"
    assert given.sandbox_origin == "https://api.sandbox.push.apple.com"
