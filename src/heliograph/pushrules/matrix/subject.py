"""What a condition is asked about: an event, in a room, for somebody."""

from dataclasses import dataclass, field
from typing import Final

from heliograph.pushrules.glob import Alphabet, contains_word, fold
from heliograph.pushrules.matrix.event import Event
from heliograph.pushrules.matrix.power import PowerLevels

NAME_MAX_CHARACTERS: Final = 1_024
"""Longest display name that is looked for in bodies. Nobody types more, and the search is paid per member."""


@dataclass(frozen=True, slots=True)
class RoomFacts:
    """What rules may ask about a room.

    Attributes:
        room_id: Its id.
        joined_members: How many members have joined, those of other servers included.
        power: The power levels before the event.
    """

    room_id: str
    joined_members: int
    power: PowerLevels = field(default_factory=PowerLevels)


@dataclass(frozen=True, slots=True)
class Involvement:
    """How an event involves one person; all that a condition may know of whom it is asked for.

    Two people with equal rules and equal involvement get equal answers. That is what lets a whole room be
    judged at once, so no condition may look at anything else of a person.

    Attributes:
        mentioned: ``m.mentions`` names them.
        targeted: The state key is their user id.
        named: The body holds their display name as whole words.
        called: The body holds the local part of their user id as whole words.
    """

    mentioned: bool = False
    targeted: bool = False
    named: bool = False
    called: bool = False


NOBODY: Final = Involvement()
"""Somebody whom the event does not involve."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An event in a room for somebody.

    Attributes:
        event: The event.
        room: The room it is in.
        involvement: How it involves the person it is judged for.
    """

    event: Event
    room: RoomFacts
    involvement: Involvement


def searched_name(display_name: object) -> str:
    """Fold a display name to what is looked for in bodies.

    Args:
        display_name: As the member event has it, whatever its type.

    Returns:
        Empty where nothing is to be looked for: without a name, with a blank one, which nearly every message
        would contain, and with one longer than ``NAME_MAX_CHARACTERS``.
    """
    if not isinstance(display_name, str) or len(display_name) > NAME_MAX_CHARACTERS or display_name.isspace():
        return ""
    return fold(display_name)


def localpart(user_id: str) -> str:
    """Return what stands between the sigil and the first colon of a user id; empty when it is no user id."""
    name, colon, _ = user_id.partition(":")
    return name[1:] if colon and name.startswith("@") else ""


def searched_localpart(user_id: str) -> str:
    """Fold the local part of a user id to what is looked for in bodies."""
    return searched_name(localpart(user_id))


def involvement(event: Event, user_id: str, display_name: object) -> Involvement:
    """Work out how an event involves one person."""
    body, alphabet = event.body, event.dialect.words
    return Involvement(
        mentioned=(str, user_id) in event.mentioned,
        targeted=event.state_key == user_id,
        named=_holds(body, searched_name(display_name), alphabet),
        called=_holds(body, searched_localpart(user_id), alphabet),
    )


def _holds(body: str | None, name: str, alphabet: Alphabet) -> bool:
    return body is not None and contains_word(body, name, alphabet)
