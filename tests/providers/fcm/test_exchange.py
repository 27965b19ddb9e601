"""One message over FCM, driven by hand."""

import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from tests import deliveries
from tests.deliveries import COLLAPSE_KEY, DELIVERY_ID, FULLEST, NOW, drive, moment
from tests.providers.cases import answer_rows, payload_rows
from tests.providers.fcm.account import ACCOUNT, DOCUMENT, EMAIL, KEY, PUSH_KEY, TOKEN, grant, provider

from heliograph.delivery.exchange import Answer, Ask, Loss, Lost
from heliograph.delivery.model import Delivery, Outcome, Verdict, Wakeup, WakeupKind
from heliograph.providers.fcm.answers import SENDING, TOKENS
from heliograph.providers.fcm.exchange import FcmProvider
from heliograph.providers.fcm.settings import FcmSettings
from heliograph.wire import base64url
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

TAKEN = Answer(200, {}, b'{"name":"projects/project-1/messages/1"}')
UNAUTHENTICATED = Answer(401, {}, b'{"error":{"code":401}}')
MINUTE_MS = 60_000
HOUR_MS = 3_600_000


def delivery(**changes: Any) -> Delivery:
    return deliveries.delivery(PUSH_KEY, provider="fcm", **changes)


def message(ask: Ask) -> dict[str, Any]:
    document = json.loads(ask.body)
    assert document.keys() <= {"message", "validate_only"}
    read: dict[str, Any] = document["message"]
    return read


def sent(by: FcmProvider, **changes: Any) -> dict[str, Any]:
    """Return the message of one delivery."""
    asks, _ = drive(by.exchange(delivery(**changes), moment()), [grant(), TAKEN])
    return message(asks[-1])


@pytest.mark.clause("R140")
@pytest.mark.parametrize(("heard", "verdict"), answer_rows("fcm").values(), ids=answer_rows("fcm"))
def test_every_row_of_the_verdict_tables(heard: list[Answer | Lost], verdict: Verdict) -> None:
    """P1, P6: each answer of FCM and of its token endpoint means exactly one thing, in so many asks."""
    asks, reached = drive(provider().exchange(delivery(), moment()), heard)

    assert reached == verdict
    assert len(asks) == len(heard)


def test_every_row_of_the_code_stands_in_the_cases() -> None:
    """No row of the tables is without a case that reaches it, besides those with tests of their own."""
    reached = {verdict.reason for _, verdict in answer_rows("fcm").values()}
    own = {"fcm_unauthenticated"}

    assert {row.reason for row in (*SENDING.rows, *TOKENS.rows)} - reached == own


@pytest.mark.clause("R279", "R280")
@pytest.mark.parametrize(("content", "data"), payload_rows("fcm").values(), ids=payload_rows("fcm"))
def test_a_wakeup_becomes_texts_by_name_and_nothing_else(content: Wakeup, data: dict[str, Any]) -> None:
    """The allow-listed members, each a text."""
    assert sent(provider(), content=content)["data"] == data


def test_a_message_names_the_token_how_long_and_how_it_folds() -> None:
    """A minute is left of the delivery's life; the token comes without the prefix of the push key."""
    read = sent(provider(), expires_at=NOW + MINUTE_MS)

    assert read["token"] == TOKEN
    assert read["android"] == {"collapse_key": COLLAPSE_KEY, "priority": "NORMAL", "ttl": "60s"}


def test_a_delivery_that_folds_with_nothing_still_folds_with_its_own_repeats() -> None:
    """I8: an ambiguous loss is repeated under the same key."""
    assert sent(provider(), collapse_key=None)["android"]["collapse_key"] == DELIVERY_ID


@pytest.mark.parametrize(
    ("kind", "priority"),
    [
        (kind, "HIGH" if kind in {WakeupKind.CALL_INVITE, WakeupKind.MENTION} else "NORMAL")
        for kind in WakeupKind
    ],
)
def test_only_what_is_for_this_person_now_wakes_a_sleeping_device(kind: WakeupKind, priority: str) -> None:
    """An application that shows nothing for HIGH is demoted."""
    assert sent(provider(), content=deliveries.wakeup(kind))["android"]["priority"] == priority


def test_settings_narrow_and_label_every_message() -> None:
    """They are the operator's; none is there unless set."""
    by = provider(restricted_package_name="com.example.app", direct_boot_ok=True, analytics_label="blind")
    read = sent(by)

    assert read["android"]["restricted_package_name"] == "com.example.app"
    assert read["android"]["direct_boot_ok"] is True
    assert read["fcm_options"] == {"analytics_label": "blind"}


def test_the_fullest_wakeup_fits() -> None:
    """What the wire lets through is never too large for the provider."""
    _, verdict = drive(provider().exchange(delivery(content=FULLEST), moment()), [grant(), TAKEN])

    assert verdict.outcome is Outcome.ACCEPTED


def test_the_account_signs_for_exactly_this_endpoint_and_scope() -> None:
    """RFC 7523: RS256, an hour at most, back-dated by half a minute for clocks that differ."""
    exchange = provider().exchange(delivery(), moment())
    ask = next(exchange)
    form = parse_qs(ask.body.decode())
    head, claims, signature = form["assertion"][0].split(".")
    KEY.public_key().verify(
        base64url.decode(signature, "s"), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
    )

    assert ask.url.reveal() == "https://oauth2.googleapis.com/token"
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert json.loads(base64url.decode(head, "h")) == {"alg": "RS256", "typ": "JWT", "kid": "key-1"}
    assert json.loads(base64url.decode(claims, "c")) == {
        "iss": EMAIL,
        "scope": "https://www.googleapis.com/auth/firebase.messaging",
        "aud": "https://oauth2.googleapis.com/token",
        "iat": NOW // 1_000 - 30,
        "exp": NOW // 1_000 - 30 + 3_600,
    }


def test_one_bearer_token_serves_until_four_fifths_of_its_life() -> None:
    """At 48 minutes of 60 the next exchange fetches another; before that none does."""
    by = provider()
    drive(by.exchange(delivery(), moment()), [grant("first"), TAKEN])

    before, _ = drive(by.exchange(delivery(), moment(now=NOW + 48 * MINUTE_MS - 1)), [TAKEN])
    after, _ = drive(by.exchange(delivery(), moment(now=NOW + 48 * MINUTE_MS)), [grant("second"), TAKEN])

    assert before[0].headers["authorization"] == "Bearer first"
    assert after[1].headers["authorization"] == "Bearer second"


def test_while_one_exchange_fetches_the_first_token_the_others_wait_unsent() -> None:
    """Single flight: a burst makes one request for a token and burns no attempt."""
    by = provider()
    fetching = by.exchange(delivery(), moment())
    next(fetching)

    asks, verdict = drive(by.exchange(delivery(), moment()), [])

    assert asks == []
    assert verdict == Verdict(Outcome.TRANSIENT, "fcm_token_awaited", rests_ms=1_000)


def test_an_exchange_that_is_closed_gives_its_duty_back() -> None:
    """Otherwise nobody would ever fetch a token again."""
    by = provider()
    fetching = by.exchange(delivery(), moment())
    next(fetching)
    fetching.close()

    _, verdict = drive(by.exchange(delivery(), moment()), [grant(), TAKEN])

    assert verdict.outcome is Outcome.ACCEPTED


def test_a_refused_bearer_is_fetched_anew_once_and_the_same_message_sent_again() -> None:
    """401 without a word is about our token, if it is not fresh."""
    by = provider()
    drive(by.exchange(delivery(), moment()), [grant("old"), TAKEN])

    asks, verdict = drive(
        by.exchange(delivery(), moment(now=NOW + 2 * MINUTE_MS)), [UNAUTHENTICATED, grant("new"), TAKEN]
    )

    assert verdict == Verdict(Outcome.ACCEPTED, "fcm_accepted")
    assert asks[0].body == asks[2].body
    assert [asks[n].headers["authorization"] for n in (0, 2)] == ["Bearer old", "Bearer new"]


def test_a_fresh_bearer_that_is_refused_is_an_operators_matter() -> None:
    """No other one would be taken either."""
    _, verdict = drive(provider().exchange(delivery(), moment()), [grant(), UNAUTHENTICATED])

    assert verdict == Verdict(Outcome.CONFIG_BAD, "fcm_unauthenticated")


def test_a_failed_grant_is_not_tried_again_by_everybody() -> None:
    """A minute after a refusal, two seconds after an outage; meanwhile all end with the same verdict."""
    by = provider()
    drive(by.exchange(delivery(), moment()), [Answer(400, {}, b'{"error":"invalid_grant"}')])

    asks, verdict = drive(by.exchange(delivery(), moment(now=NOW + 59_000)), [])
    _, recovered = drive(by.exchange(delivery(), moment(now=NOW + 60_000)), [grant(), TAKEN])

    assert asks == []
    assert verdict == Verdict(Outcome.CONFIG_BAD, "fcm_grant_refused")
    assert recovered.outcome is Outcome.ACCEPTED


def test_an_outage_of_the_token_endpoint_makes_everybody_rest_for_what_is_left_of_it() -> None:
    """Nothing was sent, so no attempt is burned; the next one that tries comes when the pause is over."""
    by = provider()
    _, first = drive(by.exchange(delivery(), moment()), [Answer(503, {"retry-after": "45"}, b"")])

    asks, second = drive(by.exchange(delivery(), moment(now=NOW + 30_000)), [])
    _, recovered = drive(by.exchange(delivery(), moment(now=NOW + 45_000)), [grant(), TAKEN])

    assert asks == []
    assert (first.rests_ms, second.rests_ms) == (45_000, 15_000)
    assert recovered.outcome is Outcome.ACCEPTED


@pytest.mark.parametrize("step_ms", [-10 * HOUR_MS, 10 * HOUR_MS])
def test_a_clock_that_steps_costs_one_token_and_no_message(step_ms: int) -> None:
    """T: the token looks too old, or made in the future; either way another one is fetched."""
    by = provider()
    drive(by.exchange(delivery(), moment()), [grant("first"), TAKEN])

    later = delivery(expires_at=NOW + step_ms + MINUTE_MS)
    asks, verdict = drive(by.exchange(later, moment(now=NOW + step_ms)), [grant("second"), TAKEN])

    assert verdict.outcome is Outcome.ACCEPTED
    assert asks[-1].headers["authorization"] == "Bearer second"


def test_a_lost_answer_is_repeated_as_the_same_message() -> None:
    """The collapse key folds both on the device."""
    by = provider()
    first, lost = drive(by.exchange(delivery(), moment()), [grant(), Lost(Loss.CUT)])
    second, _ = drive(by.exchange(delivery(), moment(now=NOW + 1)), [TAKEN])

    assert lost.ambiguous
    assert message(first[-1])["android"]["collapse_key"] == message(second[0])["android"]["collapse_key"]


@pytest.mark.parametrize(
    "push_key", ["", "fcm:", TOKEN, "fcm:a b", "fcm:a/b", "webpush:{}", "fcm:" + "a" * 4_093]
)
def test_a_push_key_of_another_form_is_refused_without_being_repeated(push_key: str) -> None:
    """The error names the member and never shows any of it."""
    with pytest.raises(Malformed) as refused:
        provider().check_push_key(Secret(push_key))

    assert refused.value.field == "push_key"
    assert not push_key or push_key not in refused.value.problem


def test_a_push_key_that_is_no_longer_a_form_is_suspect_and_kept() -> None:
    """It was checked when it was registered; it may be our rules that changed."""
    stray = deliveries.delivery("another form", provider="fcm")

    assert drive(provider().exchange(stray, moment()), []) == (
        [],
        Verdict(Outcome.TOKEN_SUSPECT, "fcm_push_key_not_allowed"),
    )


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[]",
        "{}",
        json.dumps(DOCUMENT | {"type": "authorized_user"}),
        json.dumps(DOCUMENT | {"private_key": "-----BEGIN PRIVATE KEY-----"}),
        json.dumps(DOCUMENT | {"client_email": ""}),
    ],
)
def test_what_is_no_service_account_is_refused_at_the_start(document: str) -> None:
    """Not at the first send; the error holds none of it."""
    settings = FcmSettings(project_id="project-1", service_account="file:/k")
    with pytest.raises(Malformed) as refused:
        FcmProvider(settings, service_account=Secret(document))

    assert refused.value.field == "service_account"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("project_id", "Project"),
        ("project_id", "a"),
        ("project_id", "project/../x"),
        ("token_url", "http://oauth2.example.com/token"),
        ("token_url", "https://oauth2.example.com/token?x=y"),
        ("send_origin", "https://fcm.example.com/"),
        ("send_origin", "https://user@fcm.example.com"),
        ("restricted_package_name", "app"),
        ("analytics_label", "a label"),
    ],
)
def test_settings_that_fcm_would_refuse_are_refused_at_the_start(field: str, value: str) -> None:
    """The error names the setting."""
    chosen = {"project_id": "project-1", "service_account": "file:/k"} | {field: value}
    with pytest.raises(Malformed) as refused:
        FcmProvider(FcmSettings(**chosen), service_account=Secret(ACCOUNT))  # type: ignore[arg-type] # all texts

    assert refused.value.field == field
