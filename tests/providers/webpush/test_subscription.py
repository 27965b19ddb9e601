"""The push key of Web Push: one strict form."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from tests.deliveries import BROWSER_AUTH, BROWSER_KEY, point, push_key, subscription_document

from heliograph.delivery.egress import EgressRules
from heliograph.providers.webpush.subscription import PREFIX, read_subscription
from heliograph.wire import base64url
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

RULES = EgressRules()


def changed(change: Callable[[dict[str, Any]], object]) -> Secret:
    document: dict[str, Any] = json.loads(json.dumps(subscription_document()))
    change(document)
    return push_key(document)


def test_a_browsers_subscription_is_read() -> None:
    """As PushSubscription.toJSON() gives it, and its repr shows nothing."""
    subscription = read_subscription(push_key(), RULES)

    assert subscription.endpoint.url == "https://push.example.org/send/abc"
    assert subscription.p256dh.public_numbers() == BROWSER_KEY.public_key().public_numbers()
    assert subscription.auth == BROWSER_AUTH
    assert subscription.expires_at is None
    assert repr(subscription) == "Subscription()"


def test_an_expiration_time_is_optional_and_whole() -> None:
    """Some browsers leave it out, some give null, some a number."""
    assert read_subscription(changed(lambda d: d.pop("expirationTime")), RULES).expires_at is None
    assert read_subscription(changed(lambda d: d.update(expirationTime=5)), RULES).expires_at == 5


OFF_CURVE = b"\x04" + bytes(31) + b"\x01" + bytes(31) + b"\x01"
COMPRESSED = b"\x02" + point(BROWSER_KEY)[1:33]
P384 = ec.derive_private_key(5, ec.SECP384R1())

ENDPOINT, P256DH, AUTH = "push_key.endpoint", "push_key.keys.p256dh", "push_key.keys.auth"

WRONG: dict[str, tuple[Secret, str]] = {
    "no prefix": (Secret(json.dumps(subscription_document())), "push_key"),
    "another prefix": (Secret("WebPush:" + json.dumps(subscription_document())), "push_key"),
    "prefix alone": (Secret(PREFIX), "push_key"),
    "not JSON": (Secret(PREFIX + "{"), "push_key"),
    "trailing text": (Secret(PREFIX + json.dumps(subscription_document()) + "x"), "push_key"),
    "an array": (Secret(PREFIX + "[]"), "push_key"),
    "deep": (Secret(PREFIX + "[" * 4_000), "push_key"),
    "NaN": (Secret(PREFIX + '{"endpoint":NaN}'), "push_key"),
    "lone surrogate": (Secret(PREFIX + '{"endpoint":"\ud800"}'), "push_key"),
    "repeated member": (
        Secret(PREFIX + json.dumps(subscription_document())[:-1] + ',"endpoint":"https://b.example.org/"}'),
        "push_key",
    ),
    "repeated key": (
        Secret(PREFIX + '{"endpoint":"https://b.example.org/","keys":{"auth":"a","auth":"b"}}'),
        "push_key",
    ),
    "too long": (changed(lambda d: d.update(endpoint="https://push.example.org/" + "x" * 4_000)), "push_key"),
    "unknown member": (changed(lambda d: d.update(extra=1)), "push_key"),
    "no endpoint": (changed(lambda d: d.pop("endpoint")), "push_key"),
    "no keys": (changed(lambda d: d.pop("keys")), "push_key"),
    "keys no object": (changed(lambda d: d.update(keys="x")), "push_key.keys"),
    "unknown key": (changed(lambda d: d["keys"].update(extra="x")), "push_key.keys"),
    "no auth": (changed(lambda d: d["keys"].pop("auth")), "push_key.keys"),
    "endpoint no text": (changed(lambda d: d.update(endpoint=5)), ENDPOINT),
    "endpoint not https": (
        changed(lambda d: d.update(endpoint="http://push.example.org/")),
        ENDPOINT,
    ),
    "endpoint inside": (changed(lambda d: d.update(endpoint="https://127.0.0.1/")), ENDPOINT),
    "endpoint mapped": (
        changed(lambda d: d.update(endpoint="https://[::ffff:10.0.0.1]/")),
        ENDPOINT,
    ),
    "endpoint in hexadecimal": (changed(lambda d: d.update(endpoint="https://0x7f.1/")), ENDPOINT),
    "endpoint metadata": (
        changed(lambda d: d.update(endpoint="https://169.254.169.254/")),
        ENDPOINT,
    ),
    "endpoint with a user": (
        changed(lambda d: d.update(endpoint="https://u@push.example.org/")),
        ENDPOINT,
    ),
    "endpoint port": (
        changed(lambda d: d.update(endpoint="https://push.example.org:22/")),
        ENDPOINT,
    ),
    "endpoint too long": (
        changed(lambda d: d.update(endpoint="https://push.example.org/" + "x" * 2_048)),
        ENDPOINT,
    ),
    "expiration text": (changed(lambda d: d.update(expirationTime="5")), "push_key.expirationTime"),
    "expiration fraction": (changed(lambda d: d.update(expirationTime=1.5)), "push_key.expirationTime"),
    "expiration truth": (changed(lambda d: d.update(expirationTime=True)), "push_key.expirationTime"),
    "expiration negative": (changed(lambda d: d.update(expirationTime=-1)), "push_key.expirationTime"),
    "expiration too late": (changed(lambda d: d.update(expirationTime=10**18)), "push_key.expirationTime"),
    "p256dh no text": (changed(lambda d: d["keys"].update(p256dh=5)), P256DH),
    "p256dh padded": (
        changed(lambda d: d["keys"].update(p256dh=d["keys"]["p256dh"] + "=")),
        P256DH,
    ),
    "p256dh short": (changed(lambda d: d["keys"].update(p256dh="BAAA")), P256DH),
    "p256dh compressed": (
        changed(lambda d: d["keys"].update(p256dh=base64url.encode(COMPRESSED))),
        P256DH,
    ),
    "p256dh hybrid": (
        changed(lambda d: d["keys"].update(p256dh=base64url.encode(b"\x06" + point(BROWSER_KEY)[1:]))),
        P256DH,
    ),
    "p256dh off the curve": (
        changed(lambda d: d["keys"].update(p256dh=base64url.encode(OFF_CURVE))),
        P256DH,
    ),
    "p256dh of another curve": (
        changed(lambda d: d["keys"].update(p256dh=base64url.encode(point(P384)))),
        P256DH,
    ),
    "auth short": (
        changed(lambda d: d["keys"].update(auth=base64url.encode(bytes(15)))),
        AUTH,
    ),
    "auth long": (
        changed(lambda d: d["keys"].update(auth=base64url.encode(bytes(17)))),
        AUTH,
    ),
    "auth other alphabet": (
        changed(lambda d: d["keys"].update(auth="+" + base64url.encode(BROWSER_AUTH)[1:])),
        AUTH,
    ),
    "auth stray bits": (
        changed(lambda d: d["keys"].update(auth=base64url.encode(BROWSER_AUTH)[:-1] + "x")),
        AUTH,
    ),
}


@pytest.mark.clause("R117")
@pytest.mark.parametrize(("wrong", "field"), WRONG.values(), ids=WRONG)
def test_anything_else_is_refused_by_the_name_of_its_place_alone(wrong: Secret, field: str) -> None:
    """S1 at registration; the refusal repeats nothing of the push key."""
    with pytest.raises(Malformed) as caught:
        read_subscription(wrong, RULES)

    assert caught.value.field == field
    assert "push.example.org" not in str(caught.value)
    assert base64url.encode(BROWSER_AUTH) not in str(caught.value)


@given(st.text(max_size=200))
def test_no_text_whatever_breaks_the_reader(text: str) -> None:
    """Junk is malformed, never an error of another kind."""
    for junk in (text, PREFIX + text):
        with pytest.raises(Malformed):
            read_subscription(Secret(junk), RULES)
