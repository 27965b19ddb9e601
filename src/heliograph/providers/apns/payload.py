"""What APNs and the device are told, and the headers that say how to treat it.

The payload is the system's own member ``aps`` and beside it exactly the allow-listed members of the wakeup
(R279). What ``aps`` holds is the same for every wakeup, so it tells nothing.
"""

import hashlib
import re
from typing import Any, Final, assert_never

import msgspec

from heliograph.delivery.blind import BLIND_PAYLOAD_OCTETS_MAX, blind_members
from heliograph.delivery.model import Delivery, Wakeup, WakeupKind
from heliograph.providers.apns.settings import PushType
from heliograph.wire import base64url

PAYLOAD_OCTETS_MAX: Final = 4_096
"""What APNs takes, counted on the final JSON."""

COLLAPSE_ID_OCTETS_MAX: Final = 64

EXPIRATION_SECONDS_MAX: Final = 253_402_300_799
"""The end of year 9999: later is not a time."""

_COLLAPSE_ID: Final = re.compile(rf"[\x21-\x7e]{{1,{COLLAPSE_ID_OCTETS_MAX}}}", re.ASCII)


def system_members(push_type: PushType, alert_loc_key: str) -> dict[str, Any]:
    """Return what ``aps`` holds: a form without content (R008, R011)."""
    match push_type:
        case PushType.ALERT:
            return {"alert": {"loc-key": alert_loc_key}, "mutable-content": 1}
        case PushType.BACKGROUND:
            return {"content-available": 1}
        case _:
            assert_never(push_type)


def apns_payload(wakeup: Wakeup, system: dict[str, Any]) -> bytes:
    """Spell a wakeup as the JSON object that the device gets.

    Args:
        wakeup: What the provider may learn.
        system: What ``aps`` holds.
    """
    return msgspec.json.encode({"aps": system, **blind_members(wakeup)})


def fits(wakeup: Wakeup, payload: bytes) -> bool:
    """Tell whether the payload is within APNs' limit, and what it says within ours for a device."""
    members = msgspec.json.encode(blind_members(wakeup))
    return len(members) <= BLIND_PAYLOAD_OCTETS_MAX and len(payload) <= PAYLOAD_OCTETS_MAX


def collapse_id(delivery: Delivery) -> str:
    """Return the id under which a later push replaces this one (R037).

    A delivery that must fold with nothing else still folds with its own repeats (I8): its collapse id is
    then its delivery id. A key that is none as it stands is hashed, which keeps equal keys equal.
    """
    if delivery.collapse_key is None:
        return delivery.delivery_id
    if _COLLAPSE_ID.fullmatch(delivery.collapse_key):
        return delivery.collapse_key
    return base64url.encode(hashlib.sha256(delivery.collapse_key.encode("utf-8", "surrogatepass")).digest())


def expiration(delivery: Delivery) -> str:
    """Return when APNs may forget the push, in whole seconds.

    Zero would mean one attempt without storing, so a time long past is spelled as the first second.
    """
    return str(min(max(delivery.expires_at // 1_000, 1), EXPIRATION_SECONDS_MAX))


def priority(kind: WakeupKind, push_type: PushType) -> str:
    """Return how soon the device is to hear: at once, or when it suits its battery.

    A push in the background must suit the battery: APNs takes no other.
    """
    if push_type is PushType.BACKGROUND:
        return "5"
    match kind:
        case (
            WakeupKind.CALL_INVITE
            | WakeupKind.MENTION
            | WakeupKind.REMINDER
            | WakeupKind.MESSAGE
            | WakeupKind.ASSIGNMENT
            | WakeupKind.SCHEDULE
            | WakeupKind.SCHEDULED_SEND
        ):
            return "10"
        case WakeupKind.REACTION | WakeupKind.EXPIRY_INVALIDATION:
            return "5"
        case _:
            assert_never(kind)
