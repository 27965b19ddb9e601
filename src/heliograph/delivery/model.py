"""What goes out, to where, and how it ended. Values only."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from heliograph.wire.instant import Instant
from heliograph.wire.secret import Secret


class WakeupKind(StrEnum):
    """The coarse class of a wakeup; a closed set (R026, R226)."""

    MESSAGE = "message"
    MENTION = "mention"
    ASSIGNMENT = "assignment"
    SCHEDULE = "schedule"
    REACTION = "reaction"
    CALL_INVITE = "call_invite"
    REMINDER = "reminder"
    SCHEDULED_SEND = "scheduled_send"
    EXPIRY_INVALIDATION = "expiry_invalidation"


@dataclass(frozen=True, slots=True)
class Counts:
    """Coarse counts: a flag, a bucket string of a closed grid, or a bounded increment; never a total."""

    badge: bool | str | None = None
    unread_increment: int | None = None
    missed_call: bool | str | None = None


@dataclass(frozen=True, slots=True)
class Wakeup:
    """All that a provider may learn of a blind wakeup (R279).

    The type is the privacy boundary: there is no field for a Realm, a sender, an event, a route token
    or a reason, so no adapter can forward one (R011, R253, R280).
    """

    push_target_id: str
    kind: WakeupKind
    push_hint: str | None = None
    push_hint_l10n_key: str | None = None
    counts: Counts | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """Where a delivery goes: a provider, the address it issued, and the application it belongs to."""

    provider: str
    push_key: Secret
    app_id: str | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One wakeup on its way to one route.

    Attributes:
        delivery_id: The provider-visible id: a lower-case UUID that tells neither time nor tenant and
            is the same on every retry of this delivery, so that a provider can fold repeats.
        wakeup: What the provider may learn.
        route: Where it goes.
        collapse_key: At most 32 characters of the base64url alphabet, unlinkable between windows,
            devices and Stations (R037); None when the provider must not fold.
        expires_at: After this instant it is worth nothing and must not be sent.
    """

    delivery_id: str
    wakeup: Wakeup
    route: Route
    collapse_key: str | None
    expires_at: Instant


class Outcome(StrEnum):
    """The one vocabulary in which every provider's answer is told; a closed set of ten."""

    ACCEPTED = "accepted"
    ACCEPTED_DEGRADED = "accepted_degraded"
    TOKEN_DEAD = "token_dead"  # noqa: S105 - a word of the vocabulary
    TOKEN_SUSPECT = "token_suspect"  # noqa: S105 - as above
    PAYLOAD_BAD = "payload_bad"
    CONFIG_BAD = "config_bad"
    THROTTLED_TARGET = "throttled_target"
    THROTTLED_APP = "throttled_app"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one attempt ended.

    Attributes:
        outcome: Which of the ten.
        reason: A stable lower-case code such as ``apns_unregistered``; never provider free text.
        retry_after_ms: The provider's own wish for a pause, already clamped to one second to one hour.
        dead_since: For ``TOKEN_DEAD``: since when the provider says that the token is dead.
        ambiguous: The request may have been taken though no answer came.
        rests_ms: For ``TRANSIENT``: nothing was sent, for the host, or one that has to be asked before it,
            rests for so long. The carrier says so, or an exchange that asks several hosts.
    """

    outcome: Outcome
    reason: str
    retry_after_ms: int | None = None
    dead_since: Instant | None = None
    ambiguous: bool = False
    rests_ms: int | None = None


ProviderName: TypeAlias = str
