"""The wire bodies that both Arkret roles share: closed at every level (seed 001).

A body is read in one pass into a closed type. What the types cannot say (which members belong together,
which sets must be unique) is checked here too, so that a value of these types is always a legal one.
"""

import re
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from heliograph.delivery.model import WakeupKind
from heliograph.wire.ids import (
    DeviceIdText,
    DidCoreIdText,
    DigestText,
    EventIdText,
    MessageIdText,
    PushTargetIdText,
    RealmIdText,
    RegistrationIdText,
    RouteTokenText,
    StrandIdText,
)

MAX_NOTIFY_DEVICES: Final = 256
"""Devices in one notify: a person's devices, with much room; each costs a row in one transaction."""

MAX_PUSH_KEY_CODE_POINTS: Final = 4_096

InstantText = Annotated[
    str,
    Meta(
        pattern=r"\A[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z\Z"
    ),
]
NonEmptyText = Annotated[str, Meta(min_length=1)]
NameText = Annotated[str, Meta(pattern=r"\A[^\u0000-\u001F\u007F]{1,256}\Z")]
AppIdText = Annotated[str, Meta(pattern=r"\A(?!ak:)[^\u0000-\u001F\u007F]{1,256}\Z")]
PushKeyText = Annotated[str, Meta(min_length=1, max_length=MAX_PUSH_KEY_CODE_POINTS)]
LocalizationKeyText = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}\Z")]
"""A key token. Free text here would be a way to carry a message body past the blind boundary (R229)."""
_DISPLAY: Final = (
    r"\A[^\u0000-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\uFEFF]*"
    r"[^\s\u0000-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\uFEFF]"
    r"[^\u0000-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\uFEFF]*\Z"
)
DisplayText256 = Annotated[str, Meta(pattern=_DISPLAY, max_length=256)]
DisplayText512 = Annotated[str, Meta(pattern=_DISPLAY, max_length=512)]

_BUCKET: Final = re.compile(r"(?:0|[1-9][0-9]*(?:-[1-9][0-9]*|\+)?)", re.ASCII)
_MAX_BUCKET_CHARACTERS: Final = 32


class Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A body with exactly these members; an unknown one is refused (S01)."""


class PushHint(StrEnum):
    """The sanitised hint; ``l10n_key`` selects a form whose key stands in a member of its own (R024)."""

    NEW_MESSAGE = "new_message"
    INCOMING_CALL = "incoming_call"
    MENTION_SELF = "mention_self"
    L10N_KEY = "l10n_key"


class CountsBody(Closed, frozen=True, kw_only=True):
    """Coarse counts; an absolute number has no place to stand in (R232, R267)."""

    badge: bool | str | UnsetType = UNSET
    unread_increment: Annotated[int, Meta(ge=0, le=99)] | UnsetType = UNSET
    missed_call: bool | str | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Check the spelling of bucket strings; whether they lie on the grid is the receiver's to judge."""
        for name, value in (("badge", self.badge), ("missed_call", self.missed_call)):
            if isinstance(value, str) and (
                len(value) > _MAX_BUCKET_CHARACTERS or _BUCKET.fullmatch(value) is None
            ):
                raise ValueError(f"{name} must be true, false or a bucket such as 2-5 or 21+")


class RouteTokens(Closed, frozen=True, kw_only=True):
    """Opaque tokens for routing inside the Gateway; they end here (R251, R253)."""

    realm_route_token: RouteTokenText | UnsetType = UNSET
    scope_route_token: RouteTokenText | UnsetType = UNSET


class DeviceRef(Closed, frozen=True, kw_only=True):
    """A device by its registered id and by nothing else (R094, R249)."""

    device_id: DeviceIdText


class _Notification(Closed, frozen=True, kw_only=True):
    push_target_id: PushTargetIdText
    wakeup_kind: WakeupKind
    devices: Annotated[tuple[DeviceRef, ...], Meta(min_length=1)]
    push_hint: PushHint | UnsetType = UNSET
    push_hint_l10n_key: LocalizationKeyText | UnsetType = UNSET
    evaluation_locus_unresolved: bool | UnsetType = UNSET
    counts: CountsBody | UnsetType = UNSET
    route_tokens: RouteTokens | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Check what belongs together: the hint and its key (R227, R228), the devices as a set (R248)."""
        if (self.push_hint is PushHint.L10N_KEY) != (self.push_hint_l10n_key is not UNSET):
            raise ValueError("push_hint_l10n_key stands exactly where push_hint is l10n_key")
        if len(self.devices) > 1 and len({device.device_id for device in self.devices}) != len(self.devices):
            raise ValueError("devices must not name a device_id twice")


class BlindNotification(_Notification, frozen=True, kw_only=True):
    """The default form: it has no member that could name a Realm, a sender or an event (R224, R283)."""


class AccountId(Closed, frozen=True, kw_only=True):
    """A complete account identity; both components are compared, neither alone (R258)."""

    principal_id: DidCoreIdText
    station_id: DidCoreIdText


class AccountActor(Closed, frozen=True, kw_only=True, tag_field="kind", tag="account"):
    """An account as the author of an event."""

    account_id: AccountId


class ServiceActor(Closed, frozen=True, kw_only=True, tag_field="kind", tag="service"):
    """A service acting as itself."""

    service_id: DidCoreIdText


class VisibleNotification(_Notification, frozen=True, kw_only=True):
    """The profile-gated form with its three required identities (R257, S08)."""

    event_id: EventIdText
    realm_id: RealmIdText
    sender_actor_id: AccountActor | ServiceActor
    strand_id: StrandIdText | UnsetType = UNSET
    message_id: MessageIdText | UnsetType = UNSET
    sender_actor_display_name: DisplayText256 | UnsetType = UNSET
    strand_title: DisplayText512 | UnsetType = UNSET
    realm_title: DisplayText256 | UnsetType = UNSET
    user_is_target: bool | UnsetType = UNSET
    priority: NameText | UnsetType = UNSET
    membership: NameText | UnsetType = UNSET


VISIBLE_MEMBERS: Final = frozenset(VisibleNotification.__struct_fields__) - frozenset(
    BlindNotification.__struct_fields__
)
"""Members that only the visible form has."""


class AuditEnvelope(Closed, frozen=True, kw_only=True):
    """Marks a request as an audit event instead of a push (R266, S14)."""

    access_kind: NameText
    late_recovery_original_event_id: EventIdText | UnsetType = UNSET


class _NotifyTop(Closed, frozen=True, kw_only=True):
    event_kind: NameText | UnsetType = UNSET
    reason_code: NameText | UnsetType = UNSET
    audit_envelope: AuditEnvelope | UnsetType = UNSET


class BlindNotify(_NotifyTop, frozen=True, kw_only=True):
    """A notify request in the blind form."""

    notification: BlindNotification


class VisibleNotify(_NotifyTop, frozen=True, kw_only=True):
    """A notify request in the visible form."""

    notification: VisibleNotification


NotifyBody = BlindNotify | VisibleNotify


class HandoffActive(Closed, frozen=True, kw_only=True):
    """A whole-value installation wish; the opt-in is always said (R110, S05)."""

    registration_id: RegistrationIdText
    push_target_id: PushTargetIdText
    device_id: DeviceIdText
    state: Literal["active"]
    push_key: PushKeyText
    visible_notification_opt_in: bool
    platform: NameText | UnsetType = UNSET
    app_id: AppIdText | UnsetType = UNSET
    expires_at: InstantText | UnsetType = UNSET
    supersedes_registration_id: RegistrationIdText | UnsetType = UNSET

    def __repr__(self) -> str:
        """Show nothing: the push key is a secret (R118)."""
        return "HandoffActive(…)"


class HandoffRevoked(Closed, frozen=True, kw_only=True):
    """A terminal tombstone wish; it carries no route (R111)."""

    registration_id: RegistrationIdText
    push_target_id: PushTargetIdText
    device_id: DeviceIdText
    state: Literal["revoked"]


HandoffBody = HandoffActive | HandoffRevoked


class Proof(Closed, frozen=True, kw_only=True):
    """The detached signature of an installation receipt."""

    kind: Literal["detached_jws"]
    verification_method: NonEmptyText
    payload_digest: DigestText
    created_at: InstantText
    jws: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]+\.\.[A-Za-z0-9_-]+\Z")]
    audience: str | tuple[str, ...] | UnsetType = UNSET
    domain: str | UnsetType = UNSET
    proof_purpose: str | UnsetType = UNSET


class Receipt(Closed, frozen=True, kw_only=True):
    """The Gateway's signed word that an installation or tombstone is on disk (R133, S06)."""

    registration_id: RegistrationIdText
    push_target_id: PushTargetIdText
    device_id: DeviceIdText
    state: Literal["active", "revoked"]
    request_digest: DigestText
    source_station_id: DidCoreIdText
    destination_gateway_id: DidCoreIdText
    stored_at: InstantText
    proof: Proof


class HandoffOutcome(Closed, frozen=True, kw_only=True):
    """The answer to a handoff."""

    receipt: Receipt


class GatewayStatus(StrEnum):
    """How one device of a notify fared (R299)."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"


class RejectReason(StrEnum):
    """Why a device was not taken over; a closed set of seven (R300)."""

    PUSH_TARGET_UNKNOWN = "push_target_unknown"
    PUSH_PAYLOAD_TOO_LARGE = "push_payload_too_large"
    UNSUPPORTED_PROFILE = "unsupported_profile"
    PUSH_TOKEN_UNKNOWN = "push_token_unknown"  # noqa: S105 - a word of the vocabulary
    PUSH_TOKEN_INVALID = "push_token_invalid"  # noqa: S105 - as above
    PUSH_GATEWAY_UNREACHABLE = "push_gateway_unreachable"
    RATE_LIMITED = "rate_limited"


CALLER_RETRYABLE: Final = frozenset({RejectReason.PUSH_GATEWAY_UNREACHABLE, RejectReason.RATE_LIMITED})
"""The only reasons that may carry ``retry_after_ms`` (R301)."""


class DeviceOutcome(Closed, frozen=True, kw_only=True):
    """One device's part of the answer; reason and backoff stand only where they have a meaning (S11)."""

    device_id: DeviceIdText
    gateway_status: GatewayStatus
    reason_code: RejectReason | UnsetType = UNSET
    retry_after_ms: Annotated[int, Meta(ge=1)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Check which members may stand together."""
        rejected = self.gateway_status is GatewayStatus.REJECTED
        if rejected != (self.reason_code is not UNSET):
            raise ValueError("reason_code stands exactly where gateway_status is rejected")
        if self.retry_after_ms is not UNSET and self.reason_code not in CALLER_RETRYABLE:
            raise ValueError("retry_after_ms stands only beside a reason the caller may retry")


class NotifyOutcome(Closed, frozen=True, kw_only=True):
    """The answer to a notify: one outcome per requested device."""

    push_target_id: PushTargetIdText
    outcomes: Annotated[tuple[DeviceOutcome, ...], Meta(min_length=1)]


def conserved(request: NotifyBody, answer: NotifyOutcome) -> bool:
    """Tell whether an answer accounts for exactly what was asked (R296, R297, R302, R319).

    A shape that is legal by its schema still violates the protocol when a device is missing, repeated
    or was never asked for, or when the target is not the one that was asked.
    """
    asked = [device.device_id for device in request.notification.devices]
    told = [outcome.device_id for outcome in answer.outcomes]
    return answer.push_target_id == request.notification.push_target_id and sorted(asked) == sorted(told)
