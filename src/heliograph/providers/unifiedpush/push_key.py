"""The push key of UnifiedPush: an endpoint and the application's keys, as text.

The form is ``unifiedpush:`` followed by JSON with the members of a Web Push subscription:

    unifiedpush:{"endpoint":"https://…","keys":{"p256dh":"…","auth":"…"}}

``p256dh`` and ``auth`` are what the connector library calls the public key and the authentication secret of
an endpoint; both are base64url without padding. The prefix names the form, so that a push key of another
kind that strays here is refused as what it is.
"""

from typing import Final

from heliograph.delivery.egress import EgressRules
from heliograph.providers.webpush.subscription import PREFIX as WEBPUSH
from heliograph.providers.webpush.subscription import origin_of, read_subscription
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

PREFIX: Final = "unifiedpush:"

PUSH_KEY_CODE_POINTS_MAX: Final = 4_096
"""The longest push key that the wire schema lets through."""

ENDPOINT_OCTETS_MAX: Final = 1_000
"""The longest endpoint that the specification of UnifiedPush allows."""


def as_webpush(push_key: Secret, rules: EgressRules) -> Secret:
    """Read a push key and return the Web Push push key that it stands for.

    Args:
        push_key: The text that was registered.
        rules: Which endpoints may be called.

    Returns:
        A push key that the Web Push adapter takes; a secret like the first.

    Raises:
        Malformed: It is not in the documented form, or its endpoint may not be called. The text never
            repeats any part of it.
    """
    text = push_key.reveal()
    if len(text) > PUSH_KEY_CODE_POINTS_MAX:
        raise Malformed("push_key", f"must have at most {PUSH_KEY_CODE_POINTS_MAX} characters")
    if not text.startswith(PREFIX):
        raise Malformed("push_key", f"must be {PREFIX} followed by an endpoint and its keys as JSON")
    spelled = Secret(WEBPUSH + text.removeprefix(PREFIX))
    # What is read is plain ASCII, so characters are octets.
    if len(read_subscription(spelled, rules).endpoint.url) > ENDPOINT_OCTETS_MAX:
        raise Malformed("push_key.endpoint", f"must have at most {ENDPOINT_OCTETS_MAX} octets")
    return spelled


def origin(push_key: Secret, rules: EgressRules) -> str:
    """Return the origin of a push key's endpoint, or nothing where there is none that may be called."""
    return origin_of(Secret(push_key.reveal().removeprefix(PREFIX)), rules)
