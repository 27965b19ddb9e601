"""Builders of Arkret bodies: legal by default, changed where a test says so."""

from typing import Any

import msgspec

from heliograph.arkret.gateway.model import Installation, InstallationState, Standing
from heliograph.arkret.schema import BlindNotify, HandoffActive, HandoffRevoked, VisibleNotify

STATION = "ak:did_core:web:station.example"
OTHER_STATION = "ak:did_core:web:other.example"
GATEWAY = "ak:did_core:web:push.example"
TARGET = "ak:pseudonym:push:kosc9iQ4gVct1OB-b6X364WIFIsJFVbVzn7BMBs1sm8"
OTHER_TARGET = "ak:pseudonym:push:" + "A" * 43
DEVICE = "ak:device:0192f3a1-4c2b-7d5e-9f10-2a3b4c5d6e7f"
OTHER_DEVICE = "ak:device:0192f3a1-4c2b-7d5e-b021-3c4d5e6f7a8b"
REGISTRATION = "registration_0123456789abcdef"
SUCCESSOR = "registration_fedcba9876543210"


def active_body(**changes: Any) -> dict[str, Any]:
    """Return an active handoff body as plain JSON; a change to None leaves the member out."""
    body = {
        "registration_id": REGISTRATION,
        "push_target_id": TARGET,
        "device_id": DEVICE,
        "state": "active",
        "push_key": "stub-key",
        "app_id": "com.example.app",
        "visible_notification_opt_in": False,
    } | changes
    return {name: value for name, value in body.items() if value is not None}


def revoked_body(**changes: Any) -> dict[str, Any]:
    """Return a revoked handoff body as plain JSON."""
    return {
        "registration_id": REGISTRATION,
        "push_target_id": TARGET,
        "device_id": DEVICE,
        "state": "revoked",
    } | changes


def notify_body(*devices: str, top: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a blind notify body as plain JSON."""
    note = {
        "push_target_id": TARGET,
        "wakeup_kind": "message",
        "devices": [{"device_id": device} for device in devices or (DEVICE,)],
    } | changes
    return {"notification": {name: value for name, value in note.items() if value is not None}} | (top or {})


def visible_body(*devices: str, **changes: Any) -> dict[str, Any]:
    """Return a visible notify body as plain JSON."""
    return notify_body(
        *devices,
        **{
            "event_id": "ak:event:" + "A" * 44,
            "realm_id": "ak:realm:" + "B" * 44,
            "sender_actor_id": {"kind": "service", "service_id": STATION},
        }
        | changes,
    )


def active(**changes: Any) -> HandoffActive:
    """Return an active handoff as a value."""
    return msgspec.convert(active_body(**changes), HandoffActive)


def revoked(**changes: Any) -> HandoffRevoked:
    """Return a revoked handoff as a value."""
    return msgspec.convert(revoked_body(**changes), HandoffRevoked)


def notify(*devices: str, top: dict[str, Any] | None = None, **changes: Any) -> BlindNotify:
    """Return a blind notify as a value."""
    return msgspec.convert(notify_body(*devices, top=top, **changes), BlindNotify)


def visible(*devices: str, **changes: Any) -> VisibleNotify:
    """Return a visible notify as a value."""
    return msgspec.convert(visible_body(*devices, **changes), VisibleNotify)


def installation(**changes: Any) -> Installation:
    """Return a live installation."""
    values: dict[str, Any] = {
        "tenant": STATION,
        "registration_id": REGISTRATION,
        "push_target_id": TARGET,
        "device_id": DEVICE,
        "state": InstallationState.ACTIVE,
        "request_digest": "sha256:" + "0" * 64,
        "receipt": b"{}",
        "app": "com.example.app",
    }
    return Installation(**(values | changes))


def standing(**changes: Any) -> Standing:
    """Return how a live installation stands."""
    return Standing(**({"registration_id": REGISTRATION, "app": "com.example.app"} | changes))
