"""Reads closed documents member by member, and says of a refusal where, what and by which clause.

A document is JSON that somebody wrote elsewhere: another client, an older version, a damaged store. Reading
one never raises anything but ``DocumentRefused``, and that names a place and a clause and repeats no value: a
keyword, a name and a schedule are private.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

from heliograph.wire.malformed import Malformed

T = TypeVar("T")

_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,64}")


class Fault(StrEnum):
    """The code of a refusal; a closed set. The first three are published."""

    SCHEMA_VIOLATION = "schema_violation"
    """The value has not the shape of its kind: a member, a type, a word or a limit."""

    PARAM_INVALID = "param_invalid"
    """The shape is right and the meaning is not."""

    UNSUPPORTED_FEATURE = "unsupported_feature"
    """The value asks for something that version 1 reserves."""

    UNREADABLE = "unreadable"
    """The value does not open with this key, or not as what it claims to be."""


class DocumentRefused(Malformed):
    """A document was refused; whatever was valid before stays valid.

    Attributes:
        fault: The code.
        clause: The requirement that the document breaks, such as ``R151``.
        field: Where, as a path such as ``rules[2].conditions[0].pattern``.
        problem: What is required there.
    """

    def __init__(self, fault: Fault, clause: str, field: str, problem: str) -> None:
        self.fault = fault
        self.clause = clause
        super().__init__(field, problem)

    def __str__(self) -> str:
        """Say place, rule and clause; a person can look the clause up."""
        return f"{super().__str__()} ({self.clause})"


def within(field: str, member: str) -> str:
    """Name a member of what stands at a path; the empty path is the whole document."""
    return f"{field}.{member}" if field else member


def members(
    value: object, field: str, required: Sequence[str], optional: Sequence[str] = (), *, clause: str
) -> Mapping[str, Any]:
    """Read a closed object.

    Args:
        value: Any JSON value.
        field: Where it stands.
        required: Members that must be there.
        optional: Members that may be there.
        clause: What demands this shape.

    Raises:
        DocumentRefused: It is no object, a member is missing, or one is there that has no place in it.
    """
    if not isinstance(value, Mapping):
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, clause, field, "must be an object")
    for name in required:
        if name not in value:
            raise DocumentRefused(Fault.SCHEMA_VIOLATION, clause, within(field, name), "is missing")
    for name in value:
        if name not in required and name not in optional:
            known = isinstance(name, str) and _NAME.fullmatch(name)
            place = within(field, name) if known else field
            raise DocumentRefused(
                Fault.SCHEMA_VIOLATION, clause, place, "has a member that is not one of this object's"
            )
    return value


def items(value: object, field: str, items_max: int, *, clause: str) -> Sequence[Any]:
    """Read a list of bounded length.

    Raises:
        DocumentRefused: It is no list, or a longer one.
    """
    if not isinstance(value, list | tuple):
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, clause, field, "must be a list")
    if len(value) > items_max:
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, clause, field, f"must hold at most {items_max} items")
    return value


def text(value: object, field: str, characters_max: int, *, clause: str) -> str:
    """Read a text that is not empty and not too long.

    Raises:
        DocumentRefused: It is no text, or empty, or longer.
    """
    if not isinstance(value, str) or not 0 < len(value) <= characters_max:
        raise DocumentRefused(
            Fault.SCHEMA_VIOLATION, clause, field, f"must be a text of 1 to {characters_max} characters"
        )
    return value


def spelled(
    value: object, field: str, parse: Callable[[str, str], T], characters_max: int, *, clause: str
) -> T:
    """Read a text that has a spelling of its own, such as an id or an instant.

    Args:
        value: Any JSON value.
        field: Where it stands.
        parse: Reads the text, or raises ``Malformed``.
        characters_max: Longest text that is looked at.
        clause: What demands this spelling.

    Raises:
        DocumentRefused: It is no text, too long, or not spelled so.
    """
    try:
        return parse(text(value, field, characters_max, clause=clause), field)
    except DocumentRefused:
        raise
    except Malformed as malformed:
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, clause, malformed.field, malformed.problem) from None


def boolean(value: object, field: str, *, clause: str) -> bool:
    """Read true or false; nothing else counts as either.

    Raises:
        DocumentRefused: It is neither.
    """
    if not isinstance(value, bool):
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, clause, field, "must be true or false")
    return value


def word(value: object, field: str, words: type[Any], *, clause: str) -> Any:
    """Read a word of a closed set.

    Args:
        value: Any JSON value.
        field: Where it stands.
        words: The ``StrEnum`` of the allowed words.
        clause: What closes the set.

    Raises:
        DocumentRefused: It is no text, or none of the words.
    """
    if isinstance(value, str) and value in words.__members__.values():
        return words(value)
    raise DocumentRefused(
        Fault.SCHEMA_VIOLATION, clause, field, "must be one of " + ", ".join(words.__members__.values())
    )
