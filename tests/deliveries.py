"""Builders for deliveries and what is around them."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from heliograph.delivery.exchange import Answer, Ask, Exchange, Lost, Moment
from heliograph.delivery.model import Counts, Delivery, Route, Verdict, Wakeup, WakeupKind
from heliograph.providers.webpush.vapid import VapidKey
from heliograph.wire.instant import Instant
from heliograph.wire.secret import Secret

NOW: Instant = 1_790_000_000_000
DELIVERY_ID = "0b5c2f5e-9d52-4a51-8c1d-6f1f5f6f1a10"
TARGET = "ak:pseudonym:push:" + "A" * 42 + "E"
COLLAPSE_KEY = "c0llapse-Key_0123456789abcdefABC"
SUBJECT = "mailto:ops@example.org"
OCTETS = bytes(range(64))
VAPID_SCALAR = urlsafe_b64encode(bytes(range(1, 33))).rstrip(b"=").decode()

FULLEST = Wakeup(
    push_target_id=TARGET,
    kind=WakeupKind.EXPIRY_INVALIDATION,
    push_hint="l10n_key",
    push_hint_l10n_key="k" * 128,
    counts=Counts(
        badge="1" * 15 + "-" + "2" * 16, unread_increment=99, missed_call="1" * 15 + "-" + "2" * 16
    ),
)
"""The largest wakeup that the wire schema lets through."""


def wakeup(kind: WakeupKind = WakeupKind.MESSAGE, **more: object) -> Wakeup:
    return Wakeup(TARGET, kind, **more)  # type: ignore[arg-type] # the builder's callers are checked by the tests


def delivery(
    push_key: str | Secret = "any text",
    *,
    provider: str = "stub",
    content: Wakeup | None = None,
    collapse_key: str | None = COLLAPSE_KEY,
    expires_at: Instant = NOW + 60_000,
) -> Delivery:
    return Delivery(
        delivery_id=DELIVERY_ID,
        wakeup=content or wakeup(),
        route=Route(provider, push_key if isinstance(push_key, Secret) else Secret(push_key), None),
        collapse_key=collapse_key,
        expires_at=expires_at,
    )


def moment(octets: bytes = OCTETS, now: Instant = NOW) -> Moment:
    return Moment(now, octets)


def vapid_key() -> VapidKey:
    return VapidKey(Secret(VAPID_SCALAR))


def base64url(octets: bytes) -> str:
    return urlsafe_b64encode(octets).rstrip(b"=").decode()


def point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


BROWSER_KEY = ec.derive_private_key(7, ec.SECP256R1())
BROWSER_AUTH = bytes(range(16))


def subscription_document(endpoint: str = "https://push.example.org/send/abc") -> dict[str, object]:
    return {
        "endpoint": endpoint,
        "expirationTime": None,
        "keys": {"p256dh": base64url(point(BROWSER_KEY)), "auth": base64url(BROWSER_AUTH)},
    }


def push_key(document: Mapping[str, object] | None = None) -> Secret:
    return Secret("webpush:" + json.dumps(subscription_document() if document is None else document))


def drive(exchange: Exchange, answers: Sequence[Answer | Lost]) -> tuple[list[Ask], Verdict]:
    """Drive an exchange by hand through the given answers and return its asks and its verdict."""
    asks: list[Ask] = []
    left = list(answers)
    try:
        ask = next(exchange)
        while True:
            asks.append(ask)
            ask = exchange.send(left.pop(0))
    except StopIteration as end:
        assert left == []
        return asks, end.value
