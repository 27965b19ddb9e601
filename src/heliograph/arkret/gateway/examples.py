"""Bodies to show: what a Station sends, and what this Gateway answers it.

They belong together: the receipt is that of the first handoff, the outcomes are those of the first notify.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from heliograph.arkret.gateway.describe import Identity, describe
from heliograph.arkret.schema import MAX_NOTIFY_DEVICES
from heliograph.edge.operation import Example
from heliograph.wire.ids import DidCoreId, VerificationMethod

STATION: Final = DidCoreId("ak:did_core:web:station.example")
GATEWAY: Final = DidCoreId("ak:did_core:web:push.example.com")
RECEIPT_METHOD: Final = VerificationMethod("did:web:push.example.com#push")

_TARGET: Final = "ak:pseudonym:push:kosc9iQ4gVct1OB-b6X364WIFIsJFVbVzn7BMBs1sm8"
_PHONE: Final = "ak:device:0192f3a1-4c2b-7d5e-9f10-2a3b4c5d6e7f"
_TABLET: Final = "ak:device:0192f3a1-4c2b-7d5e-b021-3c4d5e6f7a8b"
_FIRST: Final = "registration_0123456789abcdef"
_SECOND: Final = "registration_fedcba9876543210"

INSTALL: Final[Mapping[str, Any]] = {
    "app_id": "com.example.chat",
    "device_id": _PHONE,
    "platform": "android",
    "push_key": "the-provider-token-of-this-device",
    "push_target_id": _TARGET,
    "registration_id": _FIRST,
    "state": "active",
    "visible_notification_opt_in": False,
}

HANDOFFS: Final = (
    Example("install", "The first registration of a device.", INSTALL),
    Example(
        "replace",
        "A new token for the same device: the old registration ends in the same transaction.",
        {
            **INSTALL,
            "expires_at": "2027-01-01T00:00:00.000Z",
            "push_key": "the-next-token-of-this-device",
            "registration_id": _SECOND,
            "supersedes_registration_id": _FIRST,
        },
    ),
    Example(
        "revoke",
        "The end of a registration, for ever.",
        {"device_id": _PHONE, "push_target_id": _TARGET, "registration_id": _SECOND, "state": "revoked"},
    ),
)

RECEIPT: Final[Mapping[str, Any]] = {
    "destination_gateway_id": GATEWAY,
    "device_id": _PHONE,
    "proof": {
        "audience": STATION,
        "created_at": "2026-09-21T13:46:40.000Z",
        "jws": "eyJhbGciOiJFZDI1NTE5In0.."
        "HErnZsFy11rYNDo9DXyrzt_xB_U1xpWG9qtesGue_iV09mzZQw-3Pb7CyYUbA-_hWdEuenE2uYHmcDYb5o47DQ",
        "kind": "detached_jws",
        "payload_digest": "sha256:b530c95b2b8dd744f5ceab8aab6d8c49cba2798bdcee55fdd24f71e50f1cfdc4",
        "verification_method": RECEIPT_METHOD,
    },
    "push_target_id": _TARGET,
    "registration_id": _FIRST,
    "request_digest": "sha256:02e74489f23ca09a571f77615340a208c8e3cd0ed8197ef391023cc85f6b872a",
    "source_station_id": STATION,
    "state": "active",
    "stored_at": "2026-09-21T13:46:40.000Z",
}

RECEIPTS: Final = (Example("installed", "The receipt of the first registration.", {"receipt": RECEIPT}),)

NOTIFIES: Final = (
    Example(
        "message",
        "There is something new, on two devices of one person.",
        {
            "notification": {
                "counts": {"badge": "2-5", "missed_call": False},
                "devices": [{"device_id": _PHONE}, {"device_id": _TABLET}],
                "push_hint": "new_message",
                "push_target_id": _TARGET,
                "wakeup_kind": "message",
            }
        },
    ),
    Example(
        "localized",
        "A hint whose words the device knows by a key.",
        {
            "notification": {
                "devices": [{"device_id": _PHONE}],
                "push_hint": "l10n_key",
                "push_hint_l10n_key": "reminder.due",
                "push_target_id": _TARGET,
                "wakeup_kind": "reminder",
            }
        },
    ),
    Example(
        "historical",
        "Something that happened before: acknowledged, and nobody is woken.",
        {
            "notification": {
                "devices": [{"device_id": _PHONE}],
                "push_target_id": _TARGET,
                "wakeup_kind": "message",
            },
            "reason_code": "historical_only",
        },
    ),
)

OUTCOMES: Final = (
    Example(
        "taken_over",
        "One wakeup is on disk, one device was never registered.",
        {
            "outcomes": [
                {"device_id": _PHONE, "gateway_status": "accepted"},
                {
                    "device_id": _TABLET,
                    "gateway_status": "rejected",
                    "reason_code": "push_token_unknown",
                },
            ],
            "push_target_id": _TARGET,
        },
    ),
    Example(
        "later",
        "Too much at once: ask for this device again, under a new key, when the time has passed.",
        {
            "outcomes": [
                {
                    "device_id": _PHONE,
                    "gateway_status": "rejected",
                    "reason_code": "rate_limited",
                    "retry_after_ms": 2_000,
                }
            ],
            "push_target_id": _TARGET,
        },
    ),
)

DESCRIPTIONS: Final = (
    Example(
        "gateway",
        "What is said of a Gateway before anybody signs.",
        msgspec.to_builtins(
            describe(
                Identity(
                    service_id=GATEWAY,
                    did="did:web:push.example.com",
                    trust_domain="ak:trust_domain:local",
                    method_history_head="sha256:" + "0" * 64,
                    version_id="1",
                    base_url="https://push.example.com",
                    receipt_method=RECEIPT_METHOD,
                ),
                max_devices=MAX_NOTIFY_DEVICES,
                body_octets_max=65_536,
            )
        ),
    ),
)
