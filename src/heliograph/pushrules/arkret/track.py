"""Which tracks of a Strand an Event belongs to: derived, never taken from the wire (R160).

A track has no membership and no rights of its own. What is derived here serves notification preferences and
nothing else (R159).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

DISCUSSION: Final = "discussion"
SYNTHESIS: Final = "synthesis"

NO_TRACK: Final[frozenset[str]] = frozenset()

IN_DISCUSSION: Final = frozenset(
    {
        "ak.message.create",
        "ak.message.revise",
        "ak.message.redact",
        "ak.reaction.add",
        "ak.reaction.remove",
    }
)
"""Kinds that happen in the discussion of their Strand (R163)."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CONTENT: Final = frozenset({"content", "encrypted_content"})


def derive_tracks(
    kind: str | None, strand_id: str | None, payload: object, active: frozenset[str] | None
) -> frozenset[str] | None:
    """Derive the tracks of an Event.

    Args:
        kind: The Event's kind.
        strand_id: The Strand it belongs to; None for an Event outside every Strand, which has no track and
            is no error (R169).
        payload: Its decrypted payload; only the ``patch`` of a Strand update is looked into.
        active: The tracks that are active in the verified state of the Strand; None when that state is not
            here yet.

    Returns:
        Their names, often none; None when the answer depends on a state that is not here.
    """
    if strand_id is None:
        return NO_TRACK
    if kind in IN_DISCUSSION:
        return frozenset({DISCUSSION})
    if kind == "ak.strand.update":
        touched = {parts[2] for parts in _patched(payload) if parts[:2] == ("tracks", SYNTHESIS)}
        if not touched & _CONTENT:
            return NO_TRACK
        if active is None:
            return None
        return frozenset({SYNTHESIS}) & active
    if kind == "ak.strand.tracks.update":
        return frozenset(parts[1] for parts in _patched(payload) if parts[0] == "tracks" and parts[1])
    # Everything else is the Strand itself or personal: its life, its place, who watches it.
    return NO_TRACK


def _patched(payload: object) -> Iterator[tuple[str, str, str]]:
    """List the first three steps of each path that a patch touches, however the patch is nested."""
    patch = payload.get("patch") if isinstance(payload, Mapping) else None
    for steps in _paths(patch, ()):
        first, second, third = (*steps, "", "", "")[:3]
        if second and not _NAME.fullmatch(second):
            continue
        yield first, second, third


def _paths(value: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if len(above) >= 3 or not isinstance(value, Mapping) or not value:  # noqa: PLR2004 - as deep as is asked
        if above:
            yield above
        return
    for name, below in value.items():
        yield from _paths(below, above + tuple(str(name).split(".")))
