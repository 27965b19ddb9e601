"""Whom and what a person does not want to hear from: ``ak.account.blocklist``.

It is judged on the person's own device and nowhere else, and nothing that a sender could notice depends on
it. An entry names exactly what it means: an account is two components, a handle or a domain counts only
where it was verified, and no entry grows to anybody who merely belongs to its target.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from heliograph.pushrules import document
from heliograph.pushrules.arkret.event import Actor, actor_of
from heliograph.pushrules.document import DocumentRefused, Fault, within
from heliograph.pushrules.glob import fold
from heliograph.wire import ids
from heliograph.wire.canonical import INTEGER_MAX
from heliograph.wire.instant import Instant, parse_instant

ENTRIES_MAX: Final = 4_096
"""Entries in one list at most; published."""

VALUE_MAX_CHARACTERS: Final = ids.VERIFICATION_METHOD_CHARACTERS_MAX
"""Longest handle, domain, keyword or verification method; the last is the longest of them."""

INSTANT_CHARACTERS: Final = 24

CLAUSE: Final = "R006"

_ENTRY_ID: Final = re.compile(r"ak:block:[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_APPLET: Final = re.compile(r"ak:applet:[A-Za-z0-9._~:-]{1,256}")


class Mode(StrEnum):
    """What an entry does beyond keeping quiet, the strongest first; a closed set."""

    BLOCK = "block"
    """Hidden, and new requests are refused."""

    HIDE = "hide"
    """Kept out of the usual views."""

    MUTE = "mute"
    """Still there to be read; it only draws no attention."""


class Surface(StrEnum):
    """Where an entry applies; a closed set."""

    MESSAGES = "messages"
    MENTIONS = "mentions"
    DM = "dm"
    CALLS = "calls"
    CONTACTS = "contacts"
    APPLETS = "applets"
    PRESENCE = "presence"
    NOTIFICATIONS = "notifications"
    DIRECTORY = "directory"


class TargetKind(StrEnum):
    """What an entry can name; a closed set."""

    ACTOR = "actor"
    DEVICE = "device"
    HANDLE = "handle"
    DOMAIN = "domain"
    APPLET = "applet"
    KEYWORD = "keyword"


Target: TypeAlias = tuple[TargetKind, Actor | str]
"""What an entry names, ready to be looked up. A keyword is folded."""

_STRENGTH: Final = {mode: rank for rank, mode in enumerate(Mode)}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry.

    Attributes:
        entry_id: Its name.
        target: What it names.
        mode: What it does.
        applies_to: Where.
        expires_at: From when on it counts no more, in milliseconds; None for never.
    """

    entry_id: str
    target: Target
    mode: Mode
    applies_to: frozenset[Surface]
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an Event comes from, as far as this device has verified it.

    Attributes:
        actor: Who sent it.
        device_id: From which device.
        verification_method: By which key.
        handle: The canonical handle of a verified claim.
        domains: The domain of that handle, and domains verified to be bound to the sender's DID.
        applet: Through which applet.
    """

    actor: Actor | None = None
    device_id: str | None = None
    verification_method: str | None = None
    handle: str | None = None
    domains: frozenset[str] = frozenset()
    applet: str | None = None


NOWHERE: Final = Origin()


class Blocklist:
    """A valid list, ready to be asked.

    Attributes:
        version: Its revision, which grows by one with every change.
        entries: As written.
    """

    __slots__ = ("_by_target", "_keywords", "entries", "version")

    def __init__(self, version: int, entries: Iterable[Entry]) -> None:
        """File the entries under what they name."""
        self.version: Final = version
        self.entries: Final = tuple(entries)
        by_target: dict[Target, list[Entry]] = {}
        self._keywords: Final = [
            (entry.target[1], entry)
            for entry in self.entries
            if entry.target[0] is TargetKind.KEYWORD and isinstance(entry.target[1], str)
        ]
        for entry in self.entries:
            if entry.target[0] is not TargetKind.KEYWORD:
                by_target.setdefault(entry.target, []).append(entry)
        self._by_target: Final = by_target

    def find(self, origin: Origin, folded_body: str, where: frozenset[Surface], now: Instant) -> Entry | None:
        """Find the strongest entry that covers an Event.

        Args:
            origin: Where it comes from.
            folded_body: Its decrypted text without regard to case; empty when there is none.
            where: The surfaces that it would appear on.
            now: When, for entries that expire.
        """
        found = [
            entry
            for target in _targets(origin)
            for entry in self._by_target.get(target, ())
            if _counts(entry, where, now)
        ]
        if folded_body:
            found += [
                entry
                for keyword, entry in self._keywords
                if keyword in folded_body and _counts(entry, where, now)
            ]
        return min(found, key=lambda entry: _STRENGTH[entry.mode], default=None)


@dataclass(frozen=True, slots=True)
class SavedBlocklist:
    """What could be read of a damaged list: entries are independent of one another.

    Attributes:
        blocklist: The entries that are spelled rightly.
        refusals: What is wrong with the others.
    """

    blocklist: Blocklist
    refusals: tuple[DocumentRefused, ...]


def read_blocklist(value: object) -> Blocklist:
    """Read a decrypted ``ak.account.blocklist`` (R006).

    Args:
        value: Any JSON value.

    Raises:
        DocumentRefused: The list, or the first entry that is wrong.
    """
    version, listed = _read_list(value)
    entries = [_read_entry(item, f"entries[{place}]") for place, item in enumerate(listed)]
    seen: set[tuple[Target, Surface]] = set()
    names: set[str] = set()
    for place, entry in enumerate(entries):
        _check_unique(entry, seen, names, f"entries[{place}]")
    return Blocklist(version, entries)


def salvage_blocklist(value: object) -> SavedBlocklist:
    """Read what can be read of a list that ``read_blocklist`` refused."""
    try:
        version, listed = _read_list(value)
    except DocumentRefused as refused:
        return SavedBlocklist(Blocklist(0, ()), (refused,))
    entries: list[Entry] = []
    refusals: list[DocumentRefused] = []
    for place, item in enumerate(listed):
        try:
            entries.append(_read_entry(item, f"entries[{place}]"))
        except DocumentRefused as refused:
            refusals.append(refused)
    return SavedBlocklist(Blocklist(version, entries), tuple(refusals))


def _counts(entry: Entry, where: frozenset[Surface], now: Instant) -> bool:
    return not entry.applies_to.isdisjoint(where) and (entry.expires_at is None or now < entry.expires_at)


def _targets(origin: Origin) -> list[Target]:
    found: list[Target] = [(TargetKind.DOMAIN, domain) for domain in origin.domains]
    if origin.actor is not None:
        found.append((TargetKind.ACTOR, origin.actor))
    found += [
        (kind, name)
        for kind, name in (
            (TargetKind.DEVICE, origin.device_id),
            (TargetKind.DEVICE, origin.verification_method),
            (TargetKind.HANDLE, origin.handle),
            (TargetKind.APPLET, origin.applet),
        )
        if name is not None
    ]
    return found


def _read_list(value: object) -> tuple[int, Sequence[Any]]:
    given = document.members(value, "", ("version", "entries"), clause=CLAUSE)
    version = given["version"]
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= INTEGER_MAX:
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, CLAUSE, "version", "must be a whole number from 1 on")
    return version, document.items(given["entries"], "entries", ENTRIES_MAX, clause=CLAUSE)


def _check_unique(entry: Entry, seen: set[tuple[Target, Surface]], names: set[str], field: str) -> None:
    if entry.entry_id in names:
        raise DocumentRefused(
            Fault.PARAM_INVALID, CLAUSE, within(field, "entry_id"), "must not name two entries"
        )
    names.add(entry.entry_id)
    for surface in sorted(entry.applies_to):
        if (entry.target, surface) in seen:
            raise DocumentRefused(
                Fault.PARAM_INVALID, CLAUSE, within(field, "applies_to"), "must not cover a target twice"
            )
        seen.add((entry.target, surface))


def _read_entry(value: object, field: str) -> Entry:
    given = document.members(
        value,
        field,
        ("entry_id", "target", "mode", "applies_to"),
        ("reason_code", "created_at", "expires_at"),
        clause=CLAUSE,
    )
    entry_id = given["entry_id"]
    if not isinstance(entry_id, str) or not _ENTRY_ID.fullmatch(entry_id):
        raise DocumentRefused(
            Fault.SCHEMA_VIOLATION, CLAUSE, within(field, "entry_id"), "must be ak:block: and a UUIDv7"
        )
    place = within(field, "applies_to")
    surfaces = [
        document.word(item, f"{place}[{number}]", Surface, clause=CLAUSE)
        for number, item in enumerate(document.items(given["applies_to"], place, len(Surface), clause=CLAUSE))
    ]
    if not surfaces:
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, CLAUSE, place, "must name at least one surface")
    if given.get("created_at") is not None:
        _read_instant(given["created_at"], within(field, "created_at"))
    if given.get("reason_code") is not None:
        document.text(given["reason_code"], within(field, "reason_code"), VALUE_MAX_CHARACTERS, clause=CLAUSE)
    expires_at = given.get("expires_at")
    return Entry(
        entry_id,
        _read_target(given["target"], within(field, "target")),
        document.word(given["mode"], within(field, "mode"), Mode, clause=CLAUSE),
        frozenset(surfaces),
        None if expires_at is None else _read_instant(expires_at, within(field, "expires_at")),
    )


def _read_instant(value: object, field: str) -> Instant:
    return document.spelled(value, field, parse_instant, INSTANT_CHARACTERS, clause=CLAUSE)


def _read_target(value: object, field: str) -> Target:
    """Read a target: each kind has one member beside its name, a device one of two."""
    given = document.members(value, field, ("kind",), ("actor_id", "object_ref", "value"), clause=CLAUSE)
    kind: TargetKind = document.word(given["kind"], within(field, "kind"), TargetKind, clause=CLAUSE)
    wanted = {
        TargetKind.ACTOR: ("actor_id",),
        TargetKind.APPLET: ("object_ref",),
        TargetKind.DEVICE: ("object_ref", "value"),
    }.get(kind, ("value",))
    names = [name for name in given if name != "kind"]
    if len(names) != 1 or names[0] not in wanted:
        raise DocumentRefused(
            Fault.SCHEMA_VIOLATION, CLAUSE, field, f"must hold {' or '.join(wanted)} and nothing else"
        )
    return kind, _read_name(kind, given, names[0], within(field, names[0]))


def _read_name(kind: TargetKind, given: Mapping[str, Any], member: str, field: str) -> Actor | str:
    if member == "actor_id":
        actor = actor_of(given[member])
        if actor is None:
            raise DocumentRefused(Fault.SCHEMA_VIOLATION, CLAUSE, field, "must be a complete ActorId")
        return actor
    name = document.text(given[member], field, VALUE_MAX_CHARACTERS, clause=CLAUSE)
    if kind is TargetKind.KEYWORD:
        return fold(name)
    if kind is TargetKind.APPLET and not _APPLET.fullmatch(name):
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, CLAUSE, field, "must be an ak:applet: reference")
    if kind is TargetKind.DEVICE:
        parse = ids.parse_device_id if member == "object_ref" else ids.parse_verification_method
        return document.spelled(name, field, parse, VALUE_MAX_CHARACTERS, clause=CLAUSE)
    return name
