"""Every condition of the Matrix rule language: how it is read, and when it holds.

A condition that the server does not know, or that is not formed as it must be, is kept as it is and never
holds. So it cannot refuse a rule that a newer client wrote, and cannot make it fire either.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from heliograph.pushrules.engine import Truth
from heliograph.pushrules.glob import PATTERNS, fold
from heliograph.pushrules.matrix.event import BODY, Path, TypedScalar, read_path, typed
from heliograph.pushrules.matrix.refusal import Fault, RuleRefused
from heliograph.pushrules.matrix.subject import Subject

PATTERN_MAX_BYTES: Final = 1_024
"""Longest pattern. Keywords are words; the work for one character of a body grows with the pattern."""

_COUNT_MAX_DIGITS: Final = 18
"""Digits in a member count that are read as a number; anything longer is more than any room has."""


@dataclass(frozen=True, slots=True)
class EventMatch:
    """The text at a path matches a pattern, whatever the case.

    In the body the pattern has to fit whole words somewhere; elsewhere it has to match the whole text.

    Attributes:
        path: Where the text stands.
        pattern: The folded pattern.
    """

    path: Path
    pattern: str

    def holds(self, subject: Subject, /) -> Truth:
        """Compare the text, if there is one."""
        text = subject.event.folded(self.path)
        if text is None:
            return Truth.NO
        compiled = PATTERNS.glob(self.pattern)
        if self.path == BODY:
            return Truth.of(compiled.finds(text, subject.event.dialect.words))
        return Truth.of(compiled.matches(text))


@dataclass(frozen=True, slots=True)
class PropertyIs:
    """The value at a path is exactly this scalar, type included."""

    path: Path
    value: TypedScalar

    def holds(self, subject: Subject, /) -> Truth:
        """Compare the value; where there is none, nothing is equal to it, not even null."""
        return Truth.of(typed(subject.event.value(self.path)) == self.value)


@dataclass(frozen=True, slots=True)
class PropertyContains:
    """The list at a path contains exactly this scalar, type included."""

    path: Path
    value: TypedScalar

    def holds(self, subject: Subject, /) -> Truth:
        """Look into the list, if there is one."""
        return Truth.of(self.value in subject.event.items(self.path))


@dataclass(frozen=True, slots=True)
class ContainsDisplayName:
    """The body contains the display name of the person, in that room, as whole words."""

    def holds(self, subject: Subject, /) -> Truth:
        """Ask how the event involves the person."""
        return Truth.of(subject.involvement.named)


class Comparison(StrEnum):
    """How a member count is compared; a closed set."""

    EQUAL = "=="
    AT_MOST = "<="
    AT_LEAST = ">="
    FEWER = "<"
    MORE = ">"


@dataclass(frozen=True, slots=True)
class RoomMemberCount:
    """The number of joined members compares so with a number."""

    comparison: Comparison
    number: int

    def holds(self, subject: Subject, /) -> Truth:
        """Compare the count."""
        count = subject.room.joined_members
        match self.comparison:
            case Comparison.EQUAL:
                return Truth.of(count == self.number)
            case Comparison.AT_MOST:
                return Truth.of(count <= self.number)
            case Comparison.AT_LEAST:
                return Truth.of(count >= self.number)
            case Comparison.FEWER:
                return Truth.of(count < self.number)
            case Comparison.MORE:
                return Truth.of(count > self.number)
            case _:
                assert_never(self.comparison)


@dataclass(frozen=True, slots=True)
class SenderNotificationPermission:
    """The sender's power level suffices for the notification that a key names."""

    key: str

    def holds(self, subject: Subject, /) -> Truth:
        """Ask the room's power levels."""
        return Truth.of(subject.room.power.may_notify(subject.event.sender, self.key))


@dataclass(frozen=True, slots=True)
class Never:
    """A condition that the server does not know, or that is not formed as it must be."""

    def holds(self, subject: Subject, /) -> Truth:
        """Never."""
        del subject
        return Truth.NO


@dataclass(frozen=True, slots=True)
class RoomIs:
    """The event is in this room: what a rule of kind room asks. The id is compared as it is."""

    room_id: str

    def holds(self, subject: Subject, /) -> Truth:
        """Compare the room."""
        return Truth.of(subject.room.room_id == self.room_id)


@dataclass(frozen=True, slots=True)
class SenderIs:
    """The event is from this user: what a rule of kind sender asks. The id is compared as it is."""

    user_id: str

    def holds(self, subject: Subject, /) -> Truth:
        """Compare the sender."""
        return Truth.of(subject.event.sender == self.user_id)


@dataclass(frozen=True, slots=True)
class IsMentioned:
    """``m.mentions`` names the person. Only a predefined rule asks so."""

    def holds(self, subject: Subject, /) -> Truth:
        """Ask how the event involves the person."""
        return Truth.of(subject.involvement.mentioned)


@dataclass(frozen=True, slots=True)
class IsTarget:
    """The state key is the person. Only a predefined rule asks so."""

    def holds(self, subject: Subject, /) -> Truth:
        """Ask how the event involves the person."""
        return Truth.of(subject.involvement.targeted)


@dataclass(frozen=True, slots=True)
class ContainsLocalpart:
    """The body contains the local part of the person's user id. Only a predefined rule asks so."""

    def holds(self, subject: Subject, /) -> Truth:
        """Ask how the event involves the person."""
        return Truth.of(subject.involvement.called)


@dataclass(frozen=True, slots=True)
class SaysNoMentions:
    """The event does not say outright whom it mentions. It stands before the rules that guess, unseen."""

    def holds(self, subject: Subject, /) -> Truth:
        """Look for the property."""
        return Truth.of(not subject.event.has_mentions)


Condition: TypeAlias = (
    EventMatch
    | PropertyIs
    | PropertyContains
    | ContainsDisplayName
    | RoomMemberCount
    | SenderNotificationPermission
    | Never
    | RoomIs
    | SenderIs
    | IsMentioned
    | IsTarget
    | ContainsLocalpart
    | SaysNoMentions
)
"""Every condition there is; a closed set."""


def read_pattern(document: object, field: str) -> str:
    """Read a pattern and fold it.

    Raises:
        RuleRefused: It is not a text, or a longer one than ``PATTERN_MAX_BYTES``.
    """
    if not isinstance(document, str):
        raise RuleRefused(Fault.INVALID, field, "must be a text")
    if len(document.encode("utf-8", "surrogatepass")) > PATTERN_MAX_BYTES:
        raise RuleRefused(Fault.TOO_LARGE, field, f"must not pass {PATTERN_MAX_BYTES} bytes")
    return fold(document)


def read_condition(document: object, field: str) -> Condition:
    """Read one condition of a user's rule.

    Args:
        document: The JSON value.
        field: Where it stood, for the error.

    Returns:
        ``Never`` for a kind that is not known, and for one that lacks what it needs.

    Raises:
        RuleRefused: It is no object with a kind, or its pattern is longer than ``PATTERN_MAX_BYTES``.
    """
    if not isinstance(document, Mapping):
        raise RuleRefused(Fault.INVALID, field, "must be an object")
    if "kind" not in document:
        raise RuleRefused(Fault.MISSING, f"{field}.kind", "is required")
    kind = document["kind"]
    if not isinstance(kind, str):
        raise RuleRefused(Fault.INVALID, f"{field}.kind", "must be a text")
    reader = _READERS.get(kind)
    found = reader(document, field) if reader else None
    return Never() if found is None else found


def _event_match(document: Mapping[str, object], field: str) -> Condition | None:
    key, pattern = document.get("key"), document.get("pattern")
    if not isinstance(key, str) or not isinstance(pattern, str):
        return None
    return EventMatch(read_path(key), read_pattern(pattern, f"{field}.pattern"))


def _property(
    make: Callable[[Path, TypedScalar], Condition],
) -> Callable[[Mapping[str, object], str], Condition | None]:
    def read(document: Mapping[str, object], field: str) -> Condition | None:
        del field
        key = document.get("key")
        value = typed(document["value"]) if "value" in document else None
        return make(read_path(key), value) if isinstance(key, str) and value is not None else None

    return read


def _contains_display_name(document: Mapping[str, object], field: str) -> Condition | None:
    del document, field
    return ContainsDisplayName()


def _room_member_count(document: Mapping[str, object], field: str) -> Condition | None:
    del field
    text = document.get("is")
    if not isinstance(text, str):
        return None
    comparison = next((sign for sign in Comparison if text.startswith(sign.value)), None)
    digits = text if comparison is None else text[len(comparison.value) :]
    if not (digits.isascii() and digits.isdecimal()):
        return None
    digits = digits.lstrip("0") or "0"
    number = int(digits) if len(digits) <= _COUNT_MAX_DIGITS else 10**_COUNT_MAX_DIGITS
    return RoomMemberCount(comparison or Comparison.EQUAL, number)


def _sender_notification_permission(document: Mapping[str, object], field: str) -> Condition | None:
    del field
    key = document.get("key")
    return SenderNotificationPermission(key) if isinstance(key, str) else None


_READERS: Final[Mapping[str, Callable[[Mapping[str, object], str], Condition | None]]] = {
    "event_match": _event_match,
    "event_property_is": _property(PropertyIs),
    "event_property_contains": _property(PropertyContains),
    "contains_display_name": _contains_display_name,
    "room_member_count": _room_member_count,
    "sender_notification_permission": _sender_notification_permission,
}
