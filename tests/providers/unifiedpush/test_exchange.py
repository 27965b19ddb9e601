"""One message over UnifiedPush, driven by hand: Web Push, and what is its own."""

import json

import http_ece
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import deliveries
from tests.deliveries import BROWSER_AUTH, BROWSER_KEY, COLLAPSE_KEY, NOW, TARGET, drive, moment
from tests.providers.cases import answer_rows, payload_rows

from heliograph.delivery.egress import EgressRules
from heliograph.delivery.exchange import Answer, Lost
from heliograph.delivery.model import Outcome, Verdict, Wakeup
from heliograph.providers.unifiedpush.exchange import UnifiedPushProvider
from heliograph.providers.unifiedpush.settings import UnifiedPushSettings, check_settings
from heliograph.providers.webpush.vapid import VapidKey
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

ENDPOINT = "https://push.example.org/upAbC123?up=1"
PREVIOUS = VapidKey(Secret("IB8eHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgE"))


def settings(*, subject: str = deliveries.SUBJECT, hosts: tuple[str, ...] = ()) -> UnifiedPushSettings:
    return UnifiedPushSettings(subject=subject, hosts=hosts)


def provider(
    *, hosts: tuple[str, ...] = (), egress: EgressRules | None = None, previous: VapidKey | None = None
) -> UnifiedPushProvider:
    return UnifiedPushProvider(
        settings(hosts=hosts), key=deliveries.vapid_key(), previous_key=previous, egress=egress
    )


def document(endpoint: str = ENDPOINT) -> dict[str, object]:
    return {"endpoint": endpoint, "keys": deliveries.subscription_document()["keys"]}


def push_key(spelled: object = None) -> Secret:
    return Secret("unifiedpush:" + json.dumps(document() if spelled is None else spelled))


@pytest.mark.parametrize(
    ("heard", "verdict"), answer_rows("unifiedpush").values(), ids=answer_rows("unifiedpush")
)
def test_every_row_of_the_verdict_table(heard: list[Answer | Lost], verdict: Verdict) -> None:
    """Each answer of a push server means exactly one thing, in exactly so many asks."""
    delivery = deliveries.delivery(push_key(), provider="unifiedpush")

    asks, reached = drive(provider().exchange(delivery, moment()), heard)

    assert reached == verdict
    assert len(asks) == len(heard)


def test_no_answer_of_a_users_own_server_throttles_everybody() -> None:
    """Limits count by endpoint: whoever runs a server must not pause a credential with it."""
    outcomes = {verdict.outcome for _, verdict in answer_rows("unifiedpush").values()}

    assert Outcome.THROTTLED_APP not in outcomes


@pytest.mark.clause("R011", "R253", "R254", "R278", "R279", "R280")
@pytest.mark.parametrize(
    ("content", "payload"), payload_rows("unifiedpush").values(), ids=payload_rows("unifiedpush")
)
def test_the_application_reads_the_allow_listed_members_and_no_other(
    content: Wakeup, payload: dict[str, object]
) -> None:
    """The golden payloads, decrypted by the other library; the server reads nothing."""
    ask = next(provider().exchange(deliveries.delivery(push_key(), content=content), moment()))
    opened = http_ece.decrypt(
        ask.body, private_key=BROWSER_KEY, auth_secret=BROWSER_AUTH, version="aes128gcm"
    )

    assert json.loads(opened) == payload
    assert TARGET.encode() not in ask.body


def test_the_request_is_what_the_specification_asks_for() -> None:
    """Web Push headers, 1 to 4,096 octets, our key, no redirect, a host that the guard looks at."""
    ask = next(provider().exchange(deliveries.delivery(push_key()), moment()))

    assert ask.method == "POST"
    assert ask.url == Secret(ENDPOINT)
    assert ask.untrusted_host
    assert 1 <= len(ask.body) <= 4_096
    authorization = ask.headers["authorization"]
    assert authorization.endswith(f", k={provider().application_server_key}")
    assert {name: value for name, value in ask.headers.items() if name != "authorization"} == {
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "topic": COLLAPSE_KEY,
        "ttl": "60",
        "urgency": "normal",
    }


def test_an_endpoint_registered_with_the_previous_key_is_reached_with_it() -> None:
    """Rotation without an outage."""
    exchange = provider(previous=PREVIOUS).exchange(deliveries.delivery(push_key()), moment())

    asks, verdict = drive(exchange, [Answer(403, {}, b""), Answer(201, {}, b"")])

    assert verdict == Verdict(Outcome.ACCEPTED, "unifiedpush_accepted")
    assert PREVIOUS.public_key in asks[1].headers["authorization"]


REFUSED: dict[str, object] = {
    "no object": [],
    "no keys": {"endpoint": ENDPOINT},
    "a member more": {**document(), "temporary": False},
    "http": document("http://push.example.org/up"),
    "a private address": document("https://10.0.0.1/up"),
    "this machine": document("https://localhost/up"),
    "a user name": document("https://me@push.example.org/up"),
    "an endpoint of 1001 octets": document("https://push.example.org/" + "u" * 976),
    "a point off the curve": {**document(), "keys": {"p256dh": "A" * 87, "auth": "A" * 22}},
}


@pytest.mark.parametrize("spelled", REFUSED.values(), ids=REFUSED)
def test_a_push_key_in_another_form_is_refused(spelled: object) -> None:
    """By the name of the member, without a word of it."""
    with pytest.raises(Malformed) as refused:
        provider().check_push_key(push_key(spelled))

    assert refused.value.field.startswith("push_key")
    assert "example" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "unifiedpush:", deliveries.push_key().reveal(), ENDPOINT])
def test_a_push_key_of_another_kind_is_refused(text: str) -> None:
    """A browser's subscription, or an endpoint alone, that strays here."""
    with pytest.raises(Malformed):
        provider().check_push_key(Secret(text))


def test_an_endpoint_of_exactly_a_thousand_octets_is_taken() -> None:
    """The longest that the specification allows."""
    longest = "https://push.example.org/" + "u" * 975

    provider().check_push_key(push_key(document(longest)))

    assert len(longest) == 1_000


@given(st.text(max_size=60))
def test_whatever_stands_after_the_prefix_is_taken_or_refused(text: str) -> None:
    """Never a traceback."""
    with pytest.raises(Malformed):
        provider().check_push_key(Secret("unifiedpush:" + text))


def test_which_servers_may_be_called_is_the_operators_choice() -> None:
    """Listed hosts alone, or every public one; a private one by an exception of host and port."""
    listed = provider(hosts=("ntfy.example.net",))
    lan = provider(egress=EgressRules(exceptions=("ntfy.lan:8443",)))

    provider().check_push_key(push_key())
    lan.check_push_key(push_key(document("https://ntfy.lan:8443/up?up=1")))
    with pytest.raises(Malformed, match="host_not_listed"):
        listed.check_push_key(push_key())
    with pytest.raises(Malformed, match="may not be called"):
        lan.check_push_key(push_key(document("https://ntfy.lan:8444/up?up=1")))


def test_a_push_key_that_the_rules_no_longer_allow_is_kept_and_not_called() -> None:
    """Checked again at every send."""
    exchange = provider(hosts=("ntfy.example.net",)).exchange(deliveries.delivery(push_key()), moment())

    assert drive(exchange, []) == ([], Verdict(Outcome.TOKEN_SUSPECT, "unifiedpush_push_key_not_allowed"))


@pytest.mark.parametrize(
    ("spelled", "origin"),
    [
        (push_key(), "https://push.example.org"),
        (push_key(document("https://push.example.org:8443/up")), ""),
        (Secret("unifiedpush:{}"), ""),
        (Secret("something else"), ""),
    ],
    ids=["endpoint", "forbidden", "no endpoint", "junk"],
)
def test_each_push_server_is_judged_by_itself(spelled: Secret, origin: str) -> None:
    """What a user's own server refuses holds up nothing that goes to another."""
    assert provider().scope(deliveries.delivery(spelled, provider="unifiedpush")) == origin


@pytest.mark.parametrize(
    ("subject", "hosts", "field"),
    [("mailto:ops@x.local", (), "subject"), (deliveries.SUBJECT, ("NTFY.example.net",), "hosts[0]")],
)
def test_settings_that_could_never_deliver_are_refused(
    subject: str, hosts: tuple[str, ...], field: str
) -> None:
    """W1's kind, when settings are read."""
    wrong = settings(subject=subject, hosts=hosts)
    for build in (check_settings, lambda one: UnifiedPushProvider(one, key=deliveries.vapid_key())):
        with pytest.raises(Malformed) as refused:
            build(wrong)

        assert refused.value.field == field


def test_an_exchange_that_is_closed_leaves_nothing_open() -> None:
    """The carrier closes what it gives up."""
    exchange = provider().exchange(deliveries.delivery(push_key()), moment(now=NOW))
    next(exchange)
    exchange.close()

    with pytest.raises(StopIteration):
        next(exchange)
