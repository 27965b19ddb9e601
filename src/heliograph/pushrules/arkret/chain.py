"""A ruleset compiled for judging many Events: which rule matches first, found without asking most of them.

Of each rule one condition is picked that an Event must satisfy before the rule can match, and the rule is
filed under what satisfies it: a value of a field, a keyword, a fragment of a pattern, a fact. An Event
wakes the rules that its own values file under, and only those are asked in full, from the top. What is
asked is still every condition, by the same code as in ``engine``: filing can wake a rule for nothing but
never let one sleep, so the answer is that of ``engine.evaluate``, which also gives the reasons when
somebody wants them.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, TypeAlias, assert_never

from heliograph.pushrules import engine
from heliograph.pushrules.arkret.conditions import (
    Condition,
    ContainsKeyword,
    FieldMatch,
    IsDirectMessage,
    MemberCount,
    MentionsActor,
    StrandTrack,
    WatchState,
)
from heliograph.pushrules.arkret.event import Subject
from heliograph.pushrules.arkret.ruleset import Rule, Ruleset
from heliograph.pushrules.arkret.star import Star
from heliograph.pushrules.engine import Decision, Truth

_Values: TypeAlias = dict[str, tuple[int, ...]]
_Parts: TypeAlias = tuple[tuple[str, int], ...]

_MENTION: Final = "mention"
_DIRECT: Final = "direct"
_COARSE: Final = frozenset({"kind", "type", "event_kind", "watch_state", "track_name", "priority"})
"""Fields whose few values many Events share, and which therefore tell little."""


class _Index:
    """Where the places of rules are filed while a chain is compiled."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.fragments: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self.keywords: list[tuple[str, int]] = []
        self.facts: dict[str, list[int]] = defaultdict(list)
        self.always: list[int] = []

    def file(self, condition: Condition | None, place: int) -> None:
        """File a rule under whatever this condition of it needs."""
        match condition:
            case FieldMatch(name, patterns):
                self._file_patterns(name, patterns, place)
            case StrandTrack(patterns):
                self._file_patterns("track_name", patterns, place)
            case WatchState(levels):
                for level in levels:
                    self.values["watch_state"][level.value].append(place)
            case ContainsKeyword(words):
                self.keywords.extend((word, place) for word in words)
            case MentionsActor():
                self.facts[_MENTION].append(place)
            case IsDirectMessage():
                self.facts[_DIRECT].append(place)
            case MemberCount() | None:
                self.always.append(place)
            case _:
                assert_never(condition)

    def _file_patterns(self, name: str, patterns: Sequence[Star], place: int) -> None:
        for pattern in patterns:
            if pattern.literal:
                self.values[name][pattern.text].append(place)
            else:
                self.fragments[name].append((pattern.fragment, place))


class Chain:
    """A compiled ruleset.

    Attributes:
        rules: All rules, first asked first.
    """

    __slots__ = ("_always", "_asks", "_facts", "_fragments", "_keywords", "_tests", "_values", "rules")

    def __init__(self, ruleset: Ruleset) -> None:
        """Compile a ruleset; a few microseconds for each rule."""
        self.rules: tuple[Rule, ...] = ruleset.rules
        # Rules repeat one another's conditions: the kind, a count, a level. Each is asked once for an Event.
        numbers: dict[Condition, int] = {}
        self._asks = tuple(
            tuple(numbers.setdefault(condition, len(numbers)) for condition in rule.conditions)
            for rule in self.rules
        )
        self._tests = tuple(condition.holds for condition in numbers)
        index = _Index()
        for place, rule in enumerate(self.rules):
            if rule.enabled:
                index.file(min(rule.conditions, key=_cost, default=None), place)
        self._values: tuple[tuple[str, _Values], ...] = tuple(
            (name, {text: tuple(places) for text, places in filed.items()})
            for name, filed in index.values.items()
        )
        self._fragments: tuple[tuple[str, _Parts], ...] = tuple(
            (name, tuple(parts)) for name, parts in index.fragments.items()
        )
        self._keywords: _Parts = tuple(index.keywords)
        self._facts = {name: tuple(places) for name, places in index.facts.items()}
        self._always = tuple(index.always)

    def decide(self, subject: Subject) -> Rule | None:
        """Find the first rule that matches (R146, R203).

        A rule that cannot tell is passed over like one that does not match (R154).

        Args:
            subject: The Event and what is known of it; any values whatever.
        """
        answers: dict[int, Truth] = {}
        for place in sorted(self._awake(subject)):
            for number in self._asks[place]:
                answer = answers.get(number)
                if answer is None:
                    answer = answers[number] = self._tests[number](subject)
                if answer is not Truth.YES:
                    break
            else:
                return self.rules[place]
        return None

    def explain(self, subject: Subject) -> Decision[Rule]:
        """Find the same rule, and say of each before it why it was passed over."""
        return engine.evaluate(self.rules, subject)

    def _awake(self, subject: Subject) -> set[int]:
        awake = set(self._always)
        for name, filed in self._values:
            for text in subject.texts(name) or ():
                if text in filed:
                    awake.update(filed[text])
        for name, parts in self._fragments:
            for text in subject.texts(name) or ():
                awake.update([place for fragment, place in parts if fragment in text])
        if self._keywords and subject.event.readable:
            body = subject.folded_body()
            awake.update([place for keyword, place in self._keywords if keyword in body])
        if self._facts:
            if subject.facts.mentions_actor is Truth.YES:
                awake.update(self._facts.get(_MENTION, ()))
            if subject.facts.direct_message is Truth.YES:
                awake.update(self._facts.get(_DIRECT, ()))
        return awake


def _cost(condition: Condition) -> int:
    """Rank what a rule can be filed under: the rarer the value and the cheaper the look-up, the better."""
    match condition:
        case FieldMatch(name, patterns):
            if name in _COARSE:
                return 5
            return 0 if all(pattern.literal for pattern in patterns) else 2
        case ContainsKeyword():
            return 1
        case IsDirectMessage() | MentionsActor():
            return 3
        case StrandTrack() | WatchState():
            return 4
        case MemberCount():
            return 6
        case _:
            assert_never(condition)
