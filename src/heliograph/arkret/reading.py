"""Reads the bodies of signed requests: canonical bytes in, closed values and their digest out.

The usual body is read in one pass: decode into the closed type, spell the value canonically again, and
compare with what came. Equal bytes prove at once that the body was canonical, that no member stood twice
and that no number was out of range. Only a body that fails this is looked at slowly, to say what is wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import UNSET

from heliograph.arkret.errors import (
    DEPTH_EXCEEDED,
    INVALID_CANONICAL_JSON,
    PAYLOAD_TOO_LARGE,
    SCHEMA_VIOLATION,
    ArkretRefused,
)
from heliograph.arkret.schema import (
    MAX_NOTIFY_DEVICES,
    VISIBLE_MEMBERS,
    BlindNotify,
    HandoffActive,
    HandoffBody,
    HandoffRevoked,
    NotifyBody,
    VisibleNotify,
)
from heliograph.wire import canonical, strict_json
from heliograph.wire.instant import parse_instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.shape import shape_refusal

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A legal body and the digest that identifies it: SHA-256 over its canonical bytes."""

    value: T
    digest: str


_CANONICAL: Final = msgspec.json.Encoder(order="sorted")


def _quick(decode: Callable[[bytes], T], body: bytes) -> T | None:
    """Return the value when the body is provably canonical and legal; None when it must be looked at."""
    if not body.isascii():
        return None
    try:
        value = decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if _CANONICAL.encode(value) == body else None


def _slow(body: bytes, *, canonical_required: bool) -> tuple[Any, str]:
    """Read any body, or say why it is no body at all."""
    try:
        read = strict_json.read(body)
    except strict_json.JsonRefused as refused:
        if refused.fault is strict_json.JsonFault.DEPTH:
            raise ArkretRefused(
                SCHEMA_VIOLATION, "the body is nested too deeply", reason_code=DEPTH_EXCEEDED
            ) from None
        raise ArkretRefused(INVALID_CANONICAL_JSON, refused.problem, field=refused.field or None) from None
    if not read.canonical and canonical_required:
        raise ArkretRefused(
            INVALID_CANONICAL_JSON, "the bytes differ from the RFC 8785 form of what they say"
        )
    digest = canonical.digest_of_octets(body) if read.canonical else canonical.digest(read.value)
    return read.value, digest


def _shape(tree: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        malformed = shape_refusal(error)
        raise ArkretRefused(SCHEMA_VIOLATION, malformed.problem, field=malformed.field or None) from None


_BLIND: Final = msgspec.json.Decoder(BlindNotify)


def read_notify(body: bytes, *, canonical_required: bool = True) -> Reading[NotifyBody]:
    """Read a notify body: blind, or visible with all its three identities (S08).

    Args:
        body: The exact octets that were signed.
        canonical_required: Refuse octets that are not canonical JSON; only a trust entry may relax it.

    Raises:
        ArkretRefused: ``invalid_canonical_json``, ``schema_violation`` or ``payload_too_large``.
    """
    value: NotifyBody | None = _quick(_BLIND.decode, body) if canonical_required else None
    if value is not None:
        digest = canonical.digest_of_octets(body)
    else:
        tree, digest = _slow(body, canonical_required=canonical_required)
        note = tree.get("notification") if isinstance(tree, dict) else None
        visible = isinstance(note, dict) and not VISIBLE_MEMBERS.isdisjoint(note)
        value = _shape(tree, VisibleNotify) if visible else _shape(tree, BlindNotify)
    if len(value.notification.devices) > MAX_NOTIFY_DEVICES:
        raise ArkretRefused(
            PAYLOAD_TOO_LARGE, f"at most {MAX_NOTIFY_DEVICES} devices", field="notification.devices"
        )
    return Reading(value, digest)


def _instant(text: str, field: str) -> None:
    """Refuse a date that its pattern lets through and the calendar does not."""
    try:
        parse_instant(text, field)
    except Malformed as malformed:
        raise ArkretRefused(SCHEMA_VIOLATION, malformed.problem, field=malformed.field) from None


def read_handoff(body: bytes, *, canonical_required: bool = True) -> Reading[HandoffBody]:
    """Read a handoff body: active or revoked, by its ``state`` (S05).

    Args:
        body: The exact octets that were signed.
        canonical_required: As for ``read_notify``.

    Raises:
        ArkretRefused: ``invalid_canonical_json`` or ``schema_violation``.
    """
    tree, digest = _slow(body, canonical_required=canonical_required)
    revoked = isinstance(tree, dict) and tree.get("state") == "revoked"
    value: HandoffBody = _shape(tree, HandoffRevoked) if revoked else _shape(tree, HandoffActive)
    if isinstance(value, HandoffActive) and value.supersedes_registration_id == value.registration_id:
        raise ArkretRefused(
            SCHEMA_VIOLATION, "a registration cannot supersede itself", field="supersedes_registration_id"
        )
    if isinstance(value, HandoffActive) and value.expires_at is not UNSET:
        _instant(value.expires_at, "expires_at")
    return Reading(value, digest)
