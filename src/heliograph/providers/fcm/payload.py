"""What FCM and the device are told: a data message, and how to treat it.

FCM's data are texts by name. The allow-listed members of the wakeup (R279) become these and no others:

| data                      | member                    | value                                 |
|---------------------------|---------------------------|---------------------------------------|
| ``push_target_id``        | ``push_target_id``        | as it is                              |
| ``wakeup_kind``           | ``wakeup_kind``           | as it is                              |
| ``push_hint``             | ``push_hint``             | as it is                              |
| ``push_hint_l10n_key``    | ``push_hint_l10n_key``    | as it is                              |
| ``counts_badge``          | ``counts.badge``          | ``true``, ``false``, or the bucket    |
| ``counts_unread_increment`` | ``counts.unread_increment`` | in decimal digits                 |
| ``counts_missed_call``    | ``counts.missed_call``    | ``true``, ``false``, or the bucket    |

A bucket begins with a digit, so a text tells which of the two a count is.
"""

import hashlib
import re
from typing import Any, Final, assert_never

import msgspec

from heliograph.delivery.blind import BLIND_PAYLOAD_OCTETS_MAX, blind_members
from heliograph.delivery.model import Delivery, Wakeup, WakeupKind
from heliograph.providers.fcm.settings import FcmSettings
from heliograph.wire import base64url
from heliograph.wire.instant import Instant

DATA_OCTETS_MAX: Final = 4_096
"""What FCM takes, counted on the names and values of the data."""

TTL_SECONDS_MAX: Final = 2_419_200
"""Four weeks: FCM keeps nothing longer."""

_COLLAPSE_KEY: Final = re.compile(r"[\x21-\x7e]{1,64}", re.ASCII)


def fcm_data(wakeup: Wakeup) -> dict[str, str]:
    """Spell a wakeup as FCM's data: texts by name, and nothing else (R279)."""
    data: dict[str, str] = {}
    for name, value in blind_members(wakeup).items():
        if isinstance(value, dict):
            data.update((f"{name}_{inner}", _text(count)) for inner, count in value.items())
        else:
            data[name] = _text(value)
    return data


def fits(data: dict[str, str]) -> bool:
    """Tell whether the data are within FCM's limit, and within ours for a device."""
    octets = sum(
        len(name.encode()) + len(value.encode("utf-8", "surrogatepass")) for name, value in data.items()
    )
    return octets <= min(BLIND_PAYLOAD_OCTETS_MAX, DATA_OCTETS_MAX)


def fcm_message(
    delivery: Delivery, token: str, data: dict[str, str], now: Instant, settings: FcmSettings
) -> bytes:
    """Spell a message to one device.

    Args:
        delivery: What goes where.
        token: The registration token.
        data: The wakeup as FCM's data.
        now: The time of this attempt: the message lives for what is left of the delivery's life.
        settings: The operator's settings.
    """
    android: dict[str, Any] = {
        "collapse_key": collapse_key(delivery),
        "priority": priority(delivery.wakeup.kind),
        "ttl": f"{ttl_seconds(delivery.expires_at, now)}s",
    }
    if settings.restricted_package_name is not None:
        android["restricted_package_name"] = settings.restricted_package_name
    if settings.direct_boot_ok:
        android["direct_boot_ok"] = True
    message: dict[str, Any] = {"token": token, "data": data, "android": android}
    if settings.analytics_label is not None:
        message["fcm_options"] = {"analytics_label": settings.analytics_label}
    if settings.validate_only:
        return msgspec.json.encode({"validate_only": True, "message": message})
    return msgspec.json.encode({"message": message})


def collapse_key(delivery: Delivery) -> str:
    """Return the key under which a later message replaces this one while it waits (R037).

    A delivery that must fold with nothing else still folds with its own repeats (I8): its key is then its
    delivery id. A key that is none as it stands is hashed, which keeps equal keys equal.
    """
    if delivery.collapse_key is None:
        return delivery.delivery_id
    if _COLLAPSE_KEY.fullmatch(delivery.collapse_key):
        return delivery.collapse_key
    return base64url.encode(hashlib.sha256(delivery.collapse_key.encode("utf-8", "surrogatepass")).digest())


def ttl_seconds(expires_at: Instant, now: Instant) -> int:
    """Return how long FCM may keep the message: what is left of its life, in whole seconds."""
    return min(max((expires_at - now) // 1_000, 0), TTL_SECONDS_MAX)


def priority(kind: WakeupKind) -> str:
    """Return how soon the device is to hear.

    ``HIGH`` wakes a sleeping device; an application that shows nothing for it is demoted by the system. So
    only what is meant for this very person, now, has it.
    """
    match kind:
        case WakeupKind.CALL_INVITE | WakeupKind.MENTION:
            return "HIGH"
        case (
            WakeupKind.MESSAGE
            | WakeupKind.ASSIGNMENT
            | WakeupKind.SCHEDULE
            | WakeupKind.REACTION
            | WakeupKind.REMINDER
            | WakeupKind.SCHEDULED_SEND
            | WakeupKind.EXPIRY_INVALIDATION
        ):
            return "NORMAL"
        case _:
            assert_never(kind)


def _text(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
