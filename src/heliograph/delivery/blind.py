"""The members of a blind payload: the one place where a wakeup becomes what a provider may read."""

from typing import Final, TypeAlias

from heliograph.delivery.model import Counts, Wakeup

BLIND_PAYLOAD_OCTETS_MAX: Final = 512
"""The published privacy fixture caps what reaches a device at 512 octets; room for more is room to leak."""

BlindValue: TypeAlias = str | int | bool | dict[str, str | int | bool]


def blind_members(wakeup: Wakeup) -> dict[str, BlindValue]:
    """Rebuild the allow-listed members of a blind payload, and nothing else (R011, R278, R279).

    Members are written one by one from a type that has no other field, so an adapter cannot pass on a
    route token, a reason, an event kind, an audit envelope or any identity (R253, R254, R280).

    Args:
        wakeup: What the provider may learn.

    Returns:
        The members in a fixed order; absent ones are left out.
    """
    members: dict[str, BlindValue] = {
        "push_target_id": wakeup.push_target_id,
        "wakeup_kind": wakeup.kind.value,
    }
    if wakeup.push_hint is not None:
        members["push_hint"] = wakeup.push_hint
    if wakeup.push_hint_l10n_key is not None:
        members["push_hint_l10n_key"] = wakeup.push_hint_l10n_key
    if wakeup.counts is not None and (counts := _counts(wakeup.counts)):
        members["counts"] = counts
    return members


def _counts(counts: Counts) -> dict[str, str | int | bool]:
    members: dict[str, str | int | bool] = {}
    if counts.badge is not None:
        members["badge"] = counts.badge
    if counts.unread_increment is not None:
        members["unread_increment"] = counts.unread_increment
    if counts.missed_call is not None:
        members["missed_call"] = counts.missed_call
    return members
