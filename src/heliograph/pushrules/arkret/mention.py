"""Whether an Event mentions the receiver, from its decrypted payload.

A direct mention names an account, and an account is two components: the same principal on another Station is
somebody else. An audience mention names nobody. Who is meant was settled when the Event was committed, so its
expansion at that position of the stream is asked, never the present roster.
"""

from collections.abc import Mapping

from heliograph.pushrules.arkret.event import Account, Actor
from heliograph.pushrules.engine import Truth


def mentions_actor(payload: object, me: Account, sender: Actor | None, audience: Truth) -> Truth:
    """Tell whether the receiver is mentioned (R186).

    Args:
        payload: The decrypted payload, any JSON.
        me: The receiver.
        sender: Who wrote it. Nobody is told that they mentioned themselves.
        audience: Whether the receiver is a legal recipient of the Event's audience mention, expanded at the
            Event's committed position; indeterminate while that expansion is not here.

    Returns:
        Yes, no, or that only a missing expansion could tell.
    """
    if sender == me or not isinstance(payload, Mapping):
        return Truth.NO
    direct = payload.get("mentions")
    if isinstance(direct, list | tuple) and any(_names(mention, me) for mention in direct):
        return Truth.YES
    audiences = payload.get("audience_mentions")
    return audience if isinstance(audiences, list | tuple) and audiences else Truth.NO


def _names(mention: object, me: Account) -> bool:
    subject = mention.get("subject_account_id") if isinstance(mention, Mapping) else None
    return (
        isinstance(subject, Mapping)
        and subject.get("principal_id") == me.principal_id
        and subject.get("station_id") == me.station_id
    )
