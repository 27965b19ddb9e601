"""What an event must hold for a rule or a name to matter, turned round: from the event to all that it wakes.

A room may hold a hundred thousand keywords and names of which a message contains two. Each is filed under
one thing that an event must hold for it: a word, a value, a piece of text. Then an event is taken apart once
and its parts are looked up, and nothing else is touched. A trigger may wake what turns out not to match,
never the other way round.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar, assert_never

from heliograph.pushrules.glob import PATTERNS, Alphabet
from heliograph.pushrules.matrix.conditions import (
    Condition,
    ContainsDisplayName,
    ContainsLocalpart,
    EventMatch,
    IsMentioned,
    IsTarget,
    Never,
    PropertyContains,
    PropertyIs,
    RoomIs,
    RoomMemberCount,
    SaysNoMentions,
    SenderIs,
    SenderNotificationPermission,
)
from heliograph.pushrules.matrix.event import BODY, SENDER, Event, Path, typed
from heliograph.pushrules.matrix.rule import Rule

T = TypeVar("T")


class Asks(StrEnum):
    """What a trigger asks of an event, the rarest answer first; a closed set."""

    PERSON = "person"
    """That it involves the person, which is worked out person by person. Wakes nothing by itself."""

    WORD = "word"
    """That the body has this word."""

    ITEM = "item"
    """That the list at the path has this scalar."""

    VALUE = "value"
    """That the value at the path is this scalar."""

    FRAGMENT = "fragment"
    """That the body contains this text."""

    TEXT = "text"
    """That the text at the path is this one, folded."""

    NOTHING = "nothing"
    """Nothing: every event wakes it."""


_RARITY = {asks: place for place, asks in enumerate(Asks)}


@dataclass(frozen=True, slots=True)
class Trigger:
    """One thing that an event must hold.

    Attributes:
        asks: What is asked.
        path: Where in the event.
        key: What has to be there.
    """

    asks: Asks
    path: Path = BODY
    key: object = None


ALWAYS = Trigger(Asks.NOTHING)


def literal_trigger(text: str, alphabet: Alphabet) -> Trigger:
    """Find what a body must hold in order to contain a text as whole words.

    A run of word characters in the text is a whole word of every such body: inside the text its neighbours
    are no word characters, and at the ends of the text the boundary is asked for.

    Args:
        text: What to look for, folded; not empty.
        alphabet: What a word is made of.
    """
    words = alphabet.words(text)
    return Trigger(Asks.WORD, key=max(words, key=len)) if words else Trigger(Asks.FRAGMENT, key=text)


def rule_trigger(rule: Rule, alphabet: Alphabet) -> Trigger:
    """Find the rarest thing that an event must hold for a user's rule to match."""
    found = (_condition_trigger(condition, alphabet) for condition in rule.conditions)
    return min(found, key=lambda trigger: _RARITY[trigger.asks], default=ALWAYS)


def _condition_trigger(condition: Condition, alphabet: Alphabet) -> Trigger:
    match condition:
        case EventMatch():
            return _match_trigger(condition, alphabet)
        case PropertyIs():
            return Trigger(Asks.VALUE, condition.path, condition.value)
        case PropertyContains():
            return Trigger(Asks.ITEM, condition.path, condition.value)
        case SenderIs():
            return Trigger(Asks.VALUE, SENDER, typed(condition.user_id))
        case ContainsDisplayName() | ContainsLocalpart() | IsMentioned() | IsTarget():
            return Trigger(Asks.PERSON)
        case RoomIs() | RoomMemberCount() | SenderNotificationPermission() | SaysNoMentions() | Never():
            return ALWAYS
        case _:
            assert_never(condition)


def _match_trigger(condition: EventMatch, alphabet: Alphabet) -> Trigger:
    pattern = condition.pattern
    literal = "*" not in pattern and "?" not in pattern
    if condition.path != BODY:
        return Trigger(Asks.TEXT, condition.path, pattern) if literal else ALWAYS
    if literal:
        return literal_trigger(pattern, alphabet)
    return Trigger(Asks.FRAGMENT, key=PATTERNS.glob(pattern).fragment)


class Triggers(Generic[T]):
    """Things filed under their triggers."""

    __slots__ = ("_filed",)

    def __init__(self) -> None:
        self._filed: dict[Asks, dict[Path, dict[object, dict[T, None]]]] = {asks: {} for asks in Asks}

    def add(self, trigger: Trigger, thing: T) -> None:
        """File a thing; once more is as good as once."""
        keys = self._filed[trigger.asks].setdefault(trigger.path, {})
        keys.setdefault(trigger.key, {})[thing] = None

    def discard(self, trigger: Trigger, thing: T) -> None:
        """Take a thing out that is filed under this trigger, and what it leaves empty."""
        paths = self._filed[trigger.asks]
        keys = paths[trigger.path]
        keys[trigger.key].pop(thing)
        if not keys[trigger.key]:
            del keys[trigger.key]
        if not keys:
            del paths[trigger.path]

    def woken(self, event: Event) -> Iterator[T]:
        """Find all that an event wakes; a thing filed under several triggers comes once for each of them."""
        for asks, paths in self._filed.items():
            for path, keys in paths.items():
                for key in _met(asks, path, keys, event):
                    yield from keys[key]


def _met(asks: Asks, path: Path, keys: dict[object, dict[T, None]], event: Event) -> Iterator[object]:
    """Find those keys of one path that an event meets."""
    match asks:
        case Asks.PERSON:
            return
        case Asks.WORD:
            yield from keys.keys() & event.words
        case Asks.ITEM:
            yield from keys.keys() & event.items(path)
        case Asks.VALUE:
            value = typed(event.value(path))
            if value in keys:
                yield value
        case Asks.FRAGMENT:
            body = event.body
            if body is not None:
                yield from (key for key in keys if isinstance(key, str) and key in body)
        case Asks.TEXT:
            text = event.folded(path)
            if text in keys:
                yield text
        case Asks.NOTHING:
            yield from keys
        case _:
            assert_never(asks)
