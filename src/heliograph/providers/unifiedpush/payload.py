"""What is encrypted for an application: the same JSON, padded alike, as for a browser."""

from heliograph.delivery.blind import BLIND_PAYLOAD_OCTETS_MAX
from heliograph.delivery.model import Wakeup
from heliograph.providers.webpush.payload import webpush_payload


def unifiedpush_payload(wakeup: Wakeup) -> bytes:
    """Spell a wakeup as the JSON object that the application decrypts (R279)."""
    return webpush_payload(wakeup)


def fits(payload: bytes) -> bool:
    """Tell whether a payload stays within what a device payload may hold."""
    return len(payload) <= BLIND_PAYLOAD_OCTETS_MAX
