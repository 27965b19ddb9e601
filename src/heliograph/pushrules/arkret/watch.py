"""How closely somebody follows a Strand, and what that alone says about one of its Events.

The verdict is the core that Station and client share: the Station asks it before it wakes a device, the
client asks it after decryption. It knows no rules of the user.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never


class WatchLevel(StrEnum):
    """How closely; a closed set. Without a record it is ``mentions_only`` (R183)."""

    MENTIONS_ONLY = "mentions_only"
    PARTICIPATING = "participating"
    ALL = "all"
    MUTED = "muted"


class WatchReason(StrEnum):
    """Why a verdict came out as it did, in the published words; a closed set."""

    MUTED = "muted"
    BLIND_WAKEUP_REQUIRED = "blind_wakeup_required"
    WATCH_ALLOWS = "watch_allows"
    NOT_MENTIONED = "not_mentioned"
    NOT_PARTICIPATING = "not_participating"


@dataclass(frozen=True, slots=True)
class WatchFacts:
    """What is known of an Event's bearing on the receiver.

    Attributes:
        mentions_actor: It mentions the receiver, directly or through an audience.
        assigned_to_actor: It concerns something assigned to the receiver.
        reply_to_self: It answers a Message of the receiver.
        participating_thread_update: It is a new reply where the receiver took part.
        is_e2ee: Its content is end-to-end encrypted.
        local_decrypted: This device has decrypted it.
    """

    mentions_actor: bool = False
    assigned_to_actor: bool = False
    reply_to_self: bool = False
    participating_thread_update: bool = False
    is_e2ee: bool = False
    local_decrypted: bool = True


@dataclass(frozen=True, slots=True)
class WatchVerdict:
    """What a watch level says.

    Attributes:
        deliver: Whether the Event should reach the device at all.
        blind_wakeup: Whether only the device can find out more, once it is awake.
        reason: Why.
    """

    deliver: bool
    blind_wakeup: bool
    reason: WatchReason


@dataclass(frozen=True, slots=True)
class WatchProjection:
    """A verdict as a client shows it in its own records.

    Attributes:
        should_notify: The watch level asks for something visible.
        watch_suppressed: The watch level asks for nothing.
        muted_short_circuit: That is so because of a mute.
        blind_wakeup_required: The content has to be decrypted first.
        unresolved_client_evaluation: Whether the receiver is mentioned is not known before that.
    """

    should_notify: bool
    watch_suppressed: bool
    muted_short_circuit: bool
    blind_wakeup_required: bool
    unresolved_client_evaluation: bool


def effective_level(record: WatchLevel | None, *, subscribed: bool) -> WatchLevel:
    """Tell the level that counts.

    Args:
        record: What the receiver wrote, or None without a record. It beats everything else.
        subscribed: Whether the receiver is subscribed without having said so: something is assigned to them,
            or they have a Message of their own in the discussion.
    """
    if record is not None:
        return record
    return WatchLevel.PARTICIPATING if subscribed else WatchLevel.MENTIONS_ONLY


def verdict(level: WatchLevel, facts: WatchFacts) -> WatchVerdict:
    """Judge an Event by the watch level alone (R183).

    A mute beats everything, also a mention, and is looked at before anything that may not be readable yet.
    """
    if level is WatchLevel.MUTED:
        return WatchVerdict(deliver=False, blind_wakeup=False, reason=WatchReason.MUTED)
    if facts.is_e2ee and not facts.local_decrypted:
        return WatchVerdict(deliver=True, blind_wakeup=True, reason=WatchReason.BLIND_WAKEUP_REQUIRED)
    directed = facts.mentions_actor or facts.assigned_to_actor or facts.reply_to_self
    match level:
        case WatchLevel.ALL:
            allowed, otherwise = True, WatchReason.WATCH_ALLOWS
        case WatchLevel.MENTIONS_ONLY:
            allowed, otherwise = directed, WatchReason.NOT_MENTIONED
        case WatchLevel.PARTICIPATING:
            allowed = directed or facts.participating_thread_update
            otherwise = WatchReason.NOT_PARTICIPATING
        case _:
            assert_never(level)
    return WatchVerdict(
        deliver=allowed, blind_wakeup=False, reason=WatchReason.WATCH_ALLOWS if allowed else otherwise
    )


def projection(
    judged: WatchVerdict, *, mentions_actor_known: bool = True, client_side_mentions_rule: bool = False
) -> WatchProjection:
    """Spell a verdict for the client's own records.

    Args:
        judged: The verdict.
        mentions_actor_known: Whether it is known yet that the receiver is mentioned or not.
        client_side_mentions_rule: Whether one of the user's rules asks for mentions.
    """
    return WatchProjection(
        should_notify=judged.deliver and not judged.blind_wakeup,
        watch_suppressed=not judged.deliver,
        muted_short_circuit=judged.reason is WatchReason.MUTED,
        blind_wakeup_required=judged.blind_wakeup,
        unresolved_client_evaluation=judged.blind_wakeup
        and (not mentions_actor_known or client_side_mentions_rule),
    )
