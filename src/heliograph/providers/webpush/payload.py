"""What is encrypted for a browser, and the headers around it."""

import hashlib
import re
from typing import Final, assert_never

import msgspec

from heliograph.delivery.blind import BLIND_PAYLOAD_OCTETS_MAX, blind_members
from heliograph.delivery.model import Delivery, Wakeup, WakeupKind
from heliograph.wire import base64url
from heliograph.wire.instant import Instant

PADDED_OCTETS: Final = BLIND_PAYLOAD_OCTETS_MAX
"""Every payload is padded to the largest that exists, so a body's length tells nothing at all."""

SMALLEST_STEP_OCTETS: Final = 128
"""The smallest form is padded to a multiple of this: one step for every id that is in use."""

TTL_SECONDS_MAX: Final = 2_592_000
"""30 days; a push service may keep a message for less and says so in its answer."""

TOPIC_CHARACTERS_MAX: Final = 32
_TOPIC: Final = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)


def webpush_payload(wakeup: Wakeup) -> bytes:
    """Spell a wakeup as the JSON object that the service worker decrypts (R279)."""
    return msgspec.json.encode(blind_members(wakeup))


def smallest_payload(wakeup: Wakeup) -> bytes:
    """Spell the smallest form that still wakes the device, for a push service that took no larger one."""
    return msgspec.json.encode({"push_target_id": wakeup.push_target_id, "wakeup_kind": wakeup.kind.value})


def smallest_padded_octets(payload: bytes) -> int:
    """Return the length to which the smallest form is padded."""
    return -(-len(payload) // SMALLEST_STEP_OCTETS) * SMALLEST_STEP_OCTETS


def ttl_seconds(expires_at: Instant, now: Instant) -> int:
    """Return how long the push service may keep the message: what is left of its life, in whole seconds."""
    return min(max((expires_at - now) // 1_000, 0), TTL_SECONDS_MAX)


def topic(delivery: Delivery) -> str:
    """Return the name under which a later message replaces this one while it waits (RFC 8030 5.4).

    A delivery that must fold with nothing else still folds with its own repeats: its topic is then its
    id, hashed. A key that is no topic as it stands is hashed too, which keeps equal keys equal.
    """
    if delivery.collapse_key is not None and _TOPIC.fullmatch(delivery.collapse_key):
        return delivery.collapse_key
    source = delivery.delivery_id if delivery.collapse_key is None else delivery.collapse_key
    return base64url.encode(hashlib.sha256(source.encode()).digest())[:TOPIC_CHARACTERS_MAX]


def urgency(kind: WakeupKind) -> str:
    """Return how urgent a kind is to a device that saves power (RFC 8030 5.3)."""
    match kind:
        case WakeupKind.CALL_INVITE | WakeupKind.MENTION | WakeupKind.REMINDER:
            return "high"
        case WakeupKind.MESSAGE | WakeupKind.ASSIGNMENT | WakeupKind.SCHEDULE | WakeupKind.SCHEDULED_SEND:
            return "normal"
        case WakeupKind.REACTION:
            return "low"
        case WakeupKind.EXPIRY_INVALIDATION:
            return "very-low"
        case _:
            assert_never(kind)
