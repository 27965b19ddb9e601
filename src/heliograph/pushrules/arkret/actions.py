"""What a rule does when it matches."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from heliograph.pushrules import document

ACTIONS_MAX: Final = 16
"""Actions in one rule at most; there are five, and saying one twice is no fault."""


class Action(StrEnum):
    """The actions; a closed set (R198)."""

    NOTIFY = "notify"
    DONT_NOTIFY = "dont_notify"
    SOUND_DEFAULT = "sound_default"
    SOUND_CRITICAL = "sound_critical"
    HIGHLIGHT = "highlight"


class Sound(StrEnum):
    """What is heard; a closed set."""

    NONE = "none"
    DEFAULT = "default"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Effect:
    """What several actions come to.

    Attributes:
        notify: Whether the person is told at all; without it there is neither sound nor highlight.
        sound: What is heard.
        highlight: Whether it stands out.
    """

    notify: bool
    sound: Sound = Sound.NONE
    highlight: bool = False


SILENT: Final = Effect(notify=False)
PLAIN: Final = Effect(notify=True)


def effect_of(actions: Iterable[Action]) -> Effect:
    """Say what actions come to, in whatever order they stand.

    ``dont_notify`` beats everything beside it, the critical sound beats the default one, and without
    ``notify`` there is nothing to hear or to see.
    """
    said = frozenset(actions)
    if Action.NOTIFY not in said or Action.DONT_NOTIFY in said:
        return SILENT
    sound = Sound.DEFAULT if Action.SOUND_DEFAULT in said else Sound.NONE
    if Action.SOUND_CRITICAL in said:
        sound = Sound.CRITICAL
    return Effect(notify=True, sound=sound, highlight=Action.HIGHLIGHT in said)


def read_actions(value: object, field: str) -> tuple[Action, ...]:
    """Read a list of actions.

    Raises:
        DocumentRefused: It is no list, too long, or holds a word that is no action.
    """
    listed = document.items(value, field, ACTIONS_MAX, clause="R198")
    return tuple(
        document.word(item, f"{field}[{place}]", Action, clause="R198") for place, item in enumerate(listed)
    )
