"""The seven conditions: how each is read, and when it holds.

A condition that cannot be understood is refused and not kept: a mute that never matches is worse than an
error. Every value that a device may not know makes the answer indeterminate, never yes and never no.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from heliograph.pushrules import document
from heliograph.pushrules.arkret import members
from heliograph.pushrules.arkret.event import Subject
from heliograph.pushrules.arkret.members import Bucket, Comparison, Grid
from heliograph.pushrules.arkret.star import Star
from heliograph.pushrules.arkret.watch import WatchLevel
from heliograph.pushrules.document import DocumentRefused, Fault, within
from heliograph.pushrules.engine import Truth
from heliograph.pushrules.glob import fold
from heliograph.wire.canonical import INTEGER_MAX

FIELD_MAX_CHARACTERS: Final = 256
"""Longest name of a field; a path of sixteen ordinary names fits."""

PATTERN_MAX_CHARACTERS: Final = 1_024
"""Longest pattern. The work for one character of a text grows with the pattern."""

PATTERNS_MAX: Final = 256
"""Alternatives in one condition at most, keywords between ``|`` included."""

YES: Final = Truth.YES
NO: Final = Truth.NO
INDETERMINATE: Final = Truth.INDETERMINATE


@dataclass(frozen=True, slots=True)
class FieldMatch:
    """A field of the Event holds a text that matches one of the patterns, case and all.

    Attributes:
        name: Which field.
        patterns: Any of them will do.
    """

    name: str
    patterns: tuple[Star, ...]

    def holds(self, subject: Subject, /) -> Truth:
        """Compare; a field that is not there matches nothing, one that is not readable yet cannot tell."""
        return _any_matches(self.patterns, subject.texts(self.name))


@dataclass(frozen=True, slots=True)
class ContainsKeyword:
    """The decrypted body contains one of the keywords somewhere, whatever the case.

    Attributes:
        keywords: Folded.
    """

    keywords: tuple[str, ...]

    def holds(self, subject: Subject, /) -> Truth:
        """Look for each; a body that is not decrypted cannot tell."""
        if not subject.event.readable:
            return INDETERMINATE
        body = subject.folded_body()
        return Truth.of(any(keyword in body for keyword in self.keywords))


@dataclass(frozen=True, slots=True)
class MentionsActor:
    """The Event mentions the receiver, directly or through an audience that they belong to (R186)."""

    def holds(self, subject: Subject, /) -> Truth:
        """Say what is known of it."""
        return subject.facts.mentions_actor


@dataclass(frozen=True, slots=True)
class IsDirectMessage:
    """The Realm is a verified conversation of two."""

    def holds(self, subject: Subject, /) -> Truth:
        """Say what is known of it."""
        return subject.facts.direct_message


@dataclass(frozen=True, slots=True)
class MemberCount:
    """The Realm has so many members.

    Attributes:
        comparison: How.
        number: With what.
    """

    comparison: Comparison
    number: int

    def holds(self, subject: Subject, /) -> Truth:
        """Compare the number, or all the numbers of the bucket; an undisclosed count cannot tell."""
        count = subject.facts.members
        if count is None:
            return INDETERMINATE
        if isinstance(count, Bucket):
            return members.in_bucket(self.comparison, self.number, count)
        return Truth.of(members.holds(self.comparison, self.number, count))


@dataclass(frozen=True, slots=True)
class StrandTrack:
    """One of the Event's derived tracks matches one of the patterns (R167, R168, R169)."""

    patterns: tuple[Star, ...]

    def holds(self, subject: Subject, /) -> Truth:
        """Compare; an Event without a track matches nothing."""
        tracks = subject.facts.tracks
        return _any_matches(self.patterns, None if tracks is None else tuple(tracks))


@dataclass(frozen=True, slots=True)
class WatchState:
    """The receiver's effective watch level is one of these; without a record it is ``mentions_only``."""

    levels: frozenset[WatchLevel]

    def holds(self, subject: Subject, /) -> Truth:
        """Compare the level."""
        return Truth.of((subject.facts.watch or WatchLevel.MENTIONS_ONLY) in self.levels)


Condition: TypeAlias = (
    FieldMatch | ContainsKeyword | MentionsActor | IsDirectMessage | MemberCount | StrandTrack | WatchState
)


def _any_matches(patterns: tuple[Star, ...], texts: tuple[str, ...] | None) -> Truth:
    if texts is None:
        return INDETERMINATE
    return Truth.of(any(pattern.matches(text) for pattern in patterns for text in texts))


def read_condition(value: object, field: str, grid: Grid) -> Condition:
    """Read one condition.

    Args:
        value: Any JSON value.
        field: Where it stands.
        grid: The buckets that every member count must be able to answer from.

    Raises:
        DocumentRefused: It is none of the seven, lacks what its kind needs, holds what its kind has no use
            for, passes a limit, or asks for a member count that a bucket overlaps in part (R149, R156).
    """
    kind = value.get("kind") if isinstance(value, Mapping) else None
    reader = READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        named = document.members(value, field, ("kind",), ("field", "pattern", "op", "value"), clause="R149")
        place = within(field, "kind")
        if not isinstance(named["kind"], str):
            raise DocumentRefused(Fault.SCHEMA_VIOLATION, "R149", place, "must be a text")
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, "R149", place, "must be one of " + ", ".join(READERS))
    return reader(value, field, grid)


def _read_field_match(value: object, field: str, _grid: Grid) -> Condition:
    given = document.members(value, field, ("kind", "field", "pattern"), clause="R149")
    name = document.text(given["field"], within(field, "field"), FIELD_MAX_CHARACTERS, clause="R149")
    return FieldMatch(name, _read_stars(given["pattern"], within(field, "pattern")))


def _read_contains_keyword(value: object, field: str, _grid: Grid) -> Condition:
    given = document.members(value, field, ("kind", "pattern"), clause="R149")
    place = within(field, "pattern")
    patterns = _read_patterns(given["pattern"], place)
    terms = (term.strip() for pattern in patterns for term in pattern.split("|"))
    keywords = tuple(dict.fromkeys(fold(term) for term in terms if term))
    if not keywords:
        raise DocumentRefused(Fault.PARAM_INVALID, "R149", place, "must hold at least one keyword")
    if len(keywords) > PATTERNS_MAX:
        raise DocumentRefused(
            Fault.PARAM_INVALID, "R149", place, f"must hold at most {PATTERNS_MAX} keywords"
        )
    return ContainsKeyword(keywords)


def _read_mentions_actor(value: object, field: str, _grid: Grid) -> Condition:
    document.members(value, field, ("kind",), clause="R149")
    return MentionsActor()


def _read_is_direct_message(value: object, field: str, _grid: Grid) -> Condition:
    document.members(value, field, ("kind",), clause="R149")
    return IsDirectMessage()


def _read_member_count(value: object, field: str, grid: Grid) -> Condition:
    given = document.members(value, field, ("kind", "value"), ("op",), clause="R149")
    spelled, number = given.get("op", "eq"), given["value"]
    comparison = members.SPELLINGS.get(spelled) if isinstance(spelled, str) else None
    if comparison is None:
        raise DocumentRefused(
            Fault.SCHEMA_VIOLATION,
            "R149",
            within(field, "op"),
            "must be one of " + " ".join(members.SPELLINGS),
        )
    place = within(field, "value")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= INTEGER_MAX:
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, "R149", place, "must be a whole number from 0 on")
    bucket = members.torn(comparison, number, grid)
    if bucket is not None:
        raise DocumentRefused(
            Fault.PARAM_INVALID, "R156", place, f"must not divide the bucket {bucket}: align it with an edge"
        )
    return MemberCount(comparison, number)


def _read_strand_track(value: object, field: str, _grid: Grid) -> Condition:
    given = document.members(value, field, ("kind", "pattern"), clause="R149")
    return StrandTrack(_read_stars(given["pattern"], within(field, "pattern")))


def _read_watch_state(value: object, field: str, _grid: Grid) -> Condition:
    given = document.members(value, field, ("kind", "pattern"), clause="R149")
    place = within(field, "pattern")
    pattern = given["pattern"]
    if isinstance(pattern, str):
        return WatchState(frozenset({document.word(pattern, place, WatchLevel, clause="R149")}))
    listed = document.items(pattern, place, PATTERNS_MAX, clause="R149")
    levels = [
        document.word(item, f"{place}[{number}]", WatchLevel, clause="R149")
        for number, item in enumerate(listed)
    ]
    if not levels:
        raise DocumentRefused(Fault.PARAM_INVALID, "R149", place, "must name at least one level")
    return WatchState(frozenset(levels))


def _read_stars(value: Any, place: str) -> tuple[Star, ...]:
    return tuple(Star(pattern) for pattern in _read_patterns(value, place))


def _read_patterns(value: Any, place: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (document.text(value, place, PATTERN_MAX_CHARACTERS, clause="R149"),)
    listed = document.items(value, place, PATTERNS_MAX, clause="R149")
    if not listed:
        raise DocumentRefused(Fault.PARAM_INVALID, "R149", place, "must hold at least one pattern")
    return tuple(
        document.text(item, f"{place}[{number}]", PATTERN_MAX_CHARACTERS, clause="R149")
        for number, item in enumerate(listed)
    )


READERS: Final[Mapping[str, Callable[[object, str, Grid], Condition]]] = {
    "field_match": _read_field_match,
    "contains_keyword": _read_contains_keyword,
    "mentions_actor": _read_mentions_actor,
    "is_direct_message": _read_is_direct_message,
    "member_count": _read_member_count,
    "strand_track": _read_strand_track,
    "watch_state": _read_watch_state,
}
"""Every kind of condition and what reads it (R149)."""
