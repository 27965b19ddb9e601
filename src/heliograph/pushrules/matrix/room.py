"""One event judged for everybody in a room at once.

Most members never touched a rule, and most messages involve hardly anybody. So members whose rules come to
the same in this room are held together and judged once. Looked at apart are only those whom the event may
involve (it mentions them, its state key is theirs, its body holds their name) and the groups whose own rules
the event may meet; triggers find both without looking at anybody else. The predefined rules are asked once
for each way in which an event involves somebody, of which there are sixteen.

The answer is the same as that of judging one person after the other, for every event and every room.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from heliograph.pushrules import engine
from heliograph.pushrules.engine import Truth
from heliograph.pushrules.glob import Alphabet, contains_word
from heliograph.pushrules.matrix.conditions import Never, RoomIs
from heliograph.pushrules.matrix.dialect import USUAL, Dialect
from heliograph.pushrules.matrix.evaluation import Person
from heliograph.pushrules.matrix.event import Event
from heliograph.pushrules.matrix.rule import Rule
from heliograph.pushrules.matrix.ruleset import Change, Ruleset, merged
from heliograph.pushrules.matrix.subject import (
    NOBODY,
    Involvement,
    RoomFacts,
    Subject,
    involvement,
    searched_localpart,
    searched_name,
)
from heliograph.pushrules.matrix.triggers import Trigger, Triggers, literal_trigger, rule_trigger

_Changes: TypeAlias = tuple[Change, ...]
_Own: TypeAlias = tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Notified:
    """People whom one rule notifies.

    Attributes:
        rule: The rule; its actions say how.
        user_ids: Who, at least one, in no particular order.
    """

    rule: Rule
    user_ids: tuple[str, ...]


class _Crowd:
    """All members who made the same changes of predefined rules, whatever rules of their own they have.

    An event that meets no rule of their own comes to the same for all of them.
    """

    __slots__ = ("members", "rules")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.members: dict[str, None] = {}


class _Group:
    """Members of one crowd whose own rules come to the same in this room."""

    __slots__ = ("crowd", "members", "rules", "triggers")

    def __init__(self, crowd: _Crowd, rules: tuple[Rule, ...], triggers: frozenset[Trigger]) -> None:
        self.crowd = crowd
        self.rules = rules
        self.triggers = triggers
        self.members: dict[str, None] = {}


class _Names:
    """The names that are looked for in bodies, each once, and who bears them."""

    __slots__ = ("_alphabet", "_bearers", "_triggers")

    def __init__(self, alphabet: Alphabet) -> None:
        self._alphabet = alphabet
        self._bearers: dict[str, dict[str, None]] = {}
        self._triggers: Triggers[str] = Triggers()

    def add(self, name: str, user_id: str) -> None:
        """Take a name in; the empty one is no name."""
        if name:
            self._triggers.add(literal_trigger(name, self._alphabet), name)
            self._bearers.setdefault(name, {})[user_id] = None

    def discard(self, name: str, user_id: str) -> None:
        """Take a name out again."""
        if name:
            del self._bearers[name][user_id]
            if not self._bearers[name]:
                del self._bearers[name]
                self._triggers.discard(literal_trigger(name, self._alphabet), name)

    def found_in(self, event: Event) -> set[str]:
        """Find those whose name the body contains as whole words."""
        body = event.body or ""
        return {
            user_id
            for name in self._triggers.woken(event)
            if contains_word(body, name, self._alphabet)
            for user_id in self._bearers[name]
        }


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a member is filed."""

    key: tuple[_Changes, _Own]
    named: str
    called: str


class Room:
    """The members of a room and their rules, kept ready for any event.

    Keep one for each busy room, and tell it who comes, goes, takes another name or changes a rule.
    """

    def __init__(self, room_id: str, dialect: Dialect = USUAL) -> None:
        """Begin with nobody.

        Args:
            room_id: The room; rules about other rooms are left aside.
            dialect: The reading by which events are judged.
        """
        self.room_id: Final = room_id
        self.dialect: Final = dialect
        self._places: dict[str, _Place] = {}
        self._crowds: dict[_Changes, _Crowd] = {}
        self._groups: dict[tuple[_Changes, _Own], _Group] = {}
        self._own_rules: Triggers[_Group] = Triggers()
        self._display_names = _Names(dialect.words)
        self._localparts = _Names(dialect.words)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, user_id: str) -> bool:
        return user_id in self._places

    def put(self, person: Person, ruleset: Ruleset) -> None:
        """Let somebody in, or take note of another name or other rules of somebody who is in already."""
        user_id = person.user_id
        self.drop(user_id)
        key = (ruleset.changes, tuple(rule for rule in ruleset.own if self._can_hold(rule)))
        called = searched_localpart(user_id) if self.dialect.legacy_mentions else ""
        place = _Place(key, searched_name(person.display_name), called)
        self._places[user_id] = place
        group = self._groups.get(key) or self._new_group(key)
        group.members[user_id] = None
        group.crowd.members[user_id] = None
        self._display_names.add(place.named, user_id)
        self._localparts.add(place.called, user_id)

    def drop(self, user_id: str) -> None:
        """Let somebody go; nothing happens if they are not in."""
        place = self._places.pop(user_id, None)
        if place is None:
            return
        group = self._groups[place.key]
        del group.members[user_id], group.crowd.members[user_id]
        if not group.members:
            del self._groups[place.key]
            for trigger in group.triggers:
                self._own_rules.discard(trigger, group)
        if not group.crowd.members:
            del self._crowds[place.key[0]]
        self._display_names.discard(place.named, user_id)
        self._localparts.discard(place.called, user_id)

    def evaluate(
        self, event: Event, facts: RoomFacts, also: Sequence[tuple[Person, Ruleset]] = ()
    ) -> tuple[Notified, ...]:
        """Find everybody whom an event notifies.

        Args:
            event: What happened. It must be read in this room's dialect.
            facts: What rules may ask about this room.
            also: People who are judged though they are not in the room, such as whoever is invited. Those
                who are in it are not judged twice.

        Returns:
            Those to notify, each once, with the rule that says so; a rule may come more than once. The sender
            is never among them.
        """
        if event.dialect != self.dialect or facts.room_id != self.room_id:
            raise ValueError("the event is read in another dialect, or is in another room")
        judge = _Judge(event, facts)
        people, groups = self._involved(event, judge), self._woken(event, judge)
        found: list[Notified] = []
        for crowd in self._crowds.values():
            alone = people.get(crowd, {})
            together = groups.get(crowd, [])
            for rule, user_ids in _by_rule(alone):
                _note(found, rule, user_ids)
            for group, met in together:
                _note(found, met, group.members.keys() - alone.keys())
            usual = judge.usual(crowd)
            if usual is not None and usual.actions.notify:
                rest = crowd.members.copy()
                for user_id in set(alone).union(*(group.members for group, _ in together)):
                    del rest[user_id]
                _note(found, usual, rest)
        for person, ruleset in also:
            if person.user_id not in self._places and person.user_id != event.sender:
                how = involvement(event, person.user_id, person.display_name)
                _note(found, judge.first(self._asked(ruleset), how), (person.user_id,))
        return tuple(found)

    def _can_hold(self, rule: Rule) -> bool:
        """Tell whether one of a user's rules can ever match in this room."""
        return rule.enabled and not any(
            isinstance(condition, Never)
            or (isinstance(condition, RoomIs) and condition.room_id != self.room_id)
            for condition in rule.conditions
        )

    def _asked(self, ruleset: Ruleset) -> tuple[Rule, ...]:
        return tuple(rule for rule in merged(ruleset, self.dialect) if rule.enabled)

    def _new_group(self, key: tuple[_Changes, _Own]) -> _Group:
        changes, own = key
        crowd = self._crowds.get(changes)
        if crowd is None:
            crowd = self._crowds[changes] = _Crowd(self._asked(Ruleset(changes=changes)))
        triggers = frozenset(rule_trigger(rule, self.dialect.words) for rule in own)
        group = self._groups[key] = _Group(crowd, self._asked(Ruleset(own, changes)), triggers)
        for trigger in triggers:
            self._own_rules.add(trigger, group)
        return group

    def _woken(self, event: Event, judge: "_Judge") -> Mapping[_Crowd, Sequence[tuple[_Group, Rule | None]]]:
        """Find the groups to which the event comes to something else than to their crowd, and to what."""
        found: dict[_Crowd, list[tuple[_Group, Rule | None]]] = {}
        for group in dict.fromkeys(self._own_rules.woken(event)):
            rule = judge.first(group.rules, NOBODY)
            if (rule is not None and not rule.default) or rule != judge.usual(group.crowd):
                found.setdefault(group.crowd, []).append((group, rule))
        return found

    def _involved(self, event: Event, judge: "_Judge") -> Mapping[_Crowd, Mapping[str, Rule | None]]:
        """Find the members whom the event involves, the sender among them, and what it comes to for each."""
        places = self._places
        mentioned = {name for _, name in event.mentioned if isinstance(name, str) and name in places}
        targeted = {name for name in (event.state_key,) if name is not None and name in places}
        sender = {name for name in (event.sender,) if name is not None and name in places}
        named = self._display_names.found_in(event)
        called = self._localparts.found_in(event)
        found: dict[_Crowd, dict[str, Rule | None]] = {}
        for user_id in mentioned.union(targeted, named, called, sender):
            group = self._groups[places[user_id].key]
            how = Involvement(
                mentioned=user_id in mentioned,
                targeted=user_id in targeted,
                named=user_id in named,
                called=user_id in called,
            )
            rule = None if user_id in sender else judge.involved(group, how)
            found.setdefault(group.crowd, {})[user_id] = rule
        return found


class _Judge:
    """Asks rules about one event, and each predefined rule only once for each way to be involved."""

    def __init__(self, event: Event, facts: RoomFacts) -> None:
        self._event = event
        self._facts = facts
        self._asked: dict[Involvement, tuple[Subject, dict[str, bool]]] = {}
        self._usual: dict[_Crowd, Rule | None] = {}
        self._involved: dict[tuple[_Group, Involvement], Rule | None] = {}

    def usual(self, crowd: _Crowd) -> Rule | None:
        """Find what the event comes to for a crowd if it involves nobody; worked out once."""
        if crowd not in self._usual:
            self._usual[crowd] = self.first(crowd.rules, NOBODY)
        return self._usual[crowd]

    def involved(self, group: _Group, how: Involvement) -> Rule | None:
        """Find what the event comes to for those of a group whom it so involves; worked out once."""
        key = (group, how)
        if key not in self._involved:
            self._involved[key] = self.first(group.rules, how)
        return self._involved[key]

    def first(self, rules: Sequence[Rule], how: Involvement) -> Rule | None:
        """Find the first rule that holds for somebody so involved; all of them are enabled."""
        asked = self._asked.get(how)
        if asked is None:
            asked = self._asked[how] = (Subject(self._event, self._facts, how), {})
        subject, answers = asked
        for rule in rules:
            if not rule.default:
                held = engine.judge(rule.conditions, subject)[0] is Truth.YES
            elif (answer := answers.get(rule.rule_id)) is not None:
                held = answer
            else:
                held = answers[rule.rule_id] = engine.judge(rule.conditions, subject)[0] is Truth.YES
            if held:
                return rule
        return None


def _by_rule(people: Mapping[str, Rule | None]) -> Iterable[tuple[Rule, list[str]]]:
    found: dict[Rule, list[str]] = {}
    for user_id, rule in people.items():
        if rule is not None:
            found.setdefault(rule, []).append(user_id)
    return found.items()


def _note(found: list[Notified], rule: Rule | None, user_ids: Collection[str]) -> None:
    if rule is not None and rule.actions.notify and user_ids:
        found.append(Notified(rule, tuple(user_ids)))
