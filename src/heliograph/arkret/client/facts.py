"""What a device works out about an Event from the Event itself and the state that it has verified."""

from heliograph.pushrules.arkret.event import Account, Event, Facts
from heliograph.pushrules.arkret.members import Bucket
from heliograph.pushrules.arkret.mention import mentions_actor
from heliograph.pushrules.arkret.track import IN_DISCUSSION, derive_tracks
from heliograph.pushrules.arkret.watch import WatchLevel
from heliograph.pushrules.engine import Truth


def facts_of(
    event: Event,
    me: Account,
    *,
    audience: Truth = Truth.INDETERMINATE,
    active_tracks: frozenset[str] | None = None,
    direct_message: bool | None = None,
    members: int | Bucket | None = None,
    watch: WatchLevel | None = None,
    assigned_to_actor: bool = False,
    reply_to_self: bool = False,
    participating_thread_update: bool = False,
) -> Facts:
    """Derive mentions and tracks, and put beside them what the app knows anyway (R154, R160, R186).

    Args:
        event: The Event.
        me: The receiver.
        audience: Whether the receiver belonged to the Event's audience mention at its committed position.
        active_tracks: The tracks that are active in the verified state of the Strand; None when it is not
            here.
        direct_message: Whether the Realm is a verified conversation of two; None when it does not say.
        members: How many members the Realm has, or in which bucket that lies; None when it does not say.
        watch: The receiver's effective level on the Strand; None outside Strands.
        assigned_to_actor: The Event concerns something assigned to the receiver.
        reply_to_self: It answers a Message of the receiver.
        participating_thread_update: It is a new reply where the receiver took part.
    """
    if event.readable:
        mentioned = mentions_actor(event.payload, me, event.sender, audience)
    else:
        mentioned = Truth.INDETERMINATE
    if event.readable or event.kind in IN_DISCUSSION or event.strand_id is None:
        tracks = derive_tracks(event.kind, event.strand_id, event.payload, active_tracks)
    else:
        tracks = None
    return Facts(
        mentions_actor=mentioned,
        direct_message=Truth.INDETERMINATE if direct_message is None else Truth.of(direct_message),
        members=members,
        tracks=tracks,
        watch=watch,
        assigned_to_actor=assigned_to_actor,
        reply_to_self=reply_to_self,
        participating_thread_update=participating_thread_update,
    )
