"""The push key of Web Push: a browser's subscription, as text.

The form is ``webpush:`` followed by the JSON that a browser's ``PushSubscription.toJSON()`` gives:

    webpush:{"endpoint":"https://…","expirationTime":null,"keys":{"p256dh":"…","auth":"…"}}

The prefix names the form, so that a push key of another kind that strays here is refused as what it is.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from heliograph.delivery.address import Refusal
from heliograph.delivery.egress import EgressRules, Endpoint, read_endpoint
from heliograph.wire import base64url, strict_json
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret
from heliograph.wire.strict_json import JsonLimits, JsonRefused

PREFIX: Final = "webpush:"

PUSH_KEY_CODE_POINTS_MAX: Final = 4_096
"""The longest push key that the wire schema lets through; a subscription is a quarter of it."""

POINT_OCTETS: Final = 65
"""An uncompressed P-256 point: a format octet and two coordinates (RFC 8291 3.2)."""

AUTH_OCTETS: Final = 16
"""The authentication secret (RFC 8291 3.2)."""

EXPIRATION_MS_MAX: Final = 253_402_300_799_999
"""The end of year 9999: later is not a time."""

_UNCOMPRESSED: Final = 4
_JSON_LIMITS: Final = JsonLimits(
    octets_max=4 * PUSH_KEY_CODE_POINTS_MAX, depth_max=4, integers_only=False, nfc=False
)
"""Four octets spell any code point; the document has two levels."""


class _EndpointAlone(msgspec.Struct, frozen=True):
    """The one member that names the push service."""

    endpoint: str

    def __repr__(self) -> str:
        return "_EndpointAlone(…)"


_decode_endpoint: Final = msgspec.json.Decoder(_EndpointAlone).decode


@dataclass(frozen=True, slots=True)
class Subscription:
    """A browser's subscription. Its repr shows nothing of it.

    Attributes:
        endpoint: Where the push service takes messages for it; a capability.
        p256dh: The browser's public key, a point on the curve.
        auth: The secret that it shares with us.
        expires_at: When the push service said that it ends, or None.
    """

    endpoint: Endpoint = field(repr=False)
    p256dh: ec.EllipticCurvePublicKey = field(repr=False)
    auth: bytes = field(repr=False)
    expires_at: Instant | None = field(repr=False, default=None)


def read_subscription(push_key: Secret, rules: EgressRules) -> Subscription:
    """Read a push key of Web Push.

    Args:
        push_key: The text that was registered.
        rules: Which endpoints may be called.

    Returns:
        The subscription.

    Raises:
        Malformed: It is not in the documented form, or its endpoint may not be called.
    """
    text = push_key.reveal()
    if len(text) > PUSH_KEY_CODE_POINTS_MAX:
        raise Malformed("push_key", f"must have at most {PUSH_KEY_CODE_POINTS_MAX} characters")
    if not text.startswith(PREFIX):
        raise Malformed("push_key", f"must be {PREFIX} followed by a PushSubscription as JSON")
    document = _closed(_json(text.removeprefix(PREFIX)), "push_key", {"endpoint", "keys"}, {"expirationTime"})
    keys = _closed(document["keys"], "push_key.keys", {"p256dh", "auth"}, set())
    endpoint = document["endpoint"]
    if not isinstance(endpoint, str):
        raise Malformed("push_key.endpoint", "must be a string")
    read = read_endpoint(endpoint, rules)
    if isinstance(read, Refusal):
        raise Malformed("push_key.endpoint", f"may not be called: {read.value}")
    expires_at = document.get("expirationTime")
    if expires_at is not None and (type(expires_at) is not int or not 0 <= expires_at <= EXPIRATION_MS_MAX):
        raise Malformed("push_key.expirationTime", "must be null or a whole number of milliseconds")
    return Subscription(
        endpoint=read,
        p256dh=_point(_octets(keys["p256dh"], "push_key.keys.p256dh", POINT_OCTETS)),
        auth=_octets(keys["auth"], "push_key.keys.auth", AUTH_OCTETS),
        expires_at=expires_at,
    )


def origin_of(push_key: Secret, rules: EgressRules) -> str:
    """Return the origin of a push key's endpoint, or nothing where there is none that may be called.

    It looks no further than that, for it is asked before each delivery and again by the delivery itself.
    """
    try:
        found = _decode_endpoint(push_key.reveal().removeprefix(PREFIX))
    except (msgspec.DecodeError, RecursionError):
        return ""
    read = read_endpoint(found.endpoint, rules)
    return "" if isinstance(read, Refusal) else read.origin


def _json(text: str) -> object:
    try:
        return strict_json.loads(text.encode("utf-8", "surrogatepass"), _JSON_LIMITS)
    except JsonRefused:  # its text is dropped: nothing that was seen inside a push key is repeated
        raise Malformed(
            "push_key", "must hold one JSON object after the prefix, without repeated members"
        ) from None


def _closed(value: object, field_name: str, required: set[str], optional: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(field_name, "must be an object")
    if not required <= value.keys() <= required | optional:
        raise Malformed(field_name, f"must hold {', '.join(sorted(required))} and nothing unknown")
    return value


def _octets(value: object, field_name: str, length: int) -> bytes:
    if not isinstance(value, str):
        raise Malformed(field_name, "must be a string")
    return base64url.decode_exactly(value, length, field_name)


def _point(octets: bytes) -> ec.EllipticCurvePublicKey:
    """Read a point and check that it lies on the curve: any other would leak our side of the secret."""
    problem = "must be an uncompressed point on P-256"
    if octets[0] != _UNCOMPRESSED:
        raise Malformed("push_key.keys.p256dh", problem)
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), octets)
    except ValueError:
        raise Malformed("push_key.keys.p256dh", problem) from None
