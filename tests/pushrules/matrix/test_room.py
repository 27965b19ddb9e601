"""A whole room judged at once: the same answers as one by one, and hardly anybody touched."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.pushrules.glob import Alphabet
from heliograph.pushrules.matrix import editing
from heliograph.pushrules.matrix.dialect import Dialect
from heliograph.pushrules.matrix.evaluation import Person, evaluate
from heliograph.pushrules.matrix.event import Event
from heliograph.pushrules.matrix.room import Room
from heliograph.pushrules.matrix.rule import Kind, Rule
from heliograph.pushrules.matrix.ruleset import UNTOUCHED, Ruleset, merged
from heliograph.pushrules.matrix.subject import RoomFacts
from tests.pushrules.matrix.make import ROOM, event, facts, message, own
from tests.pushrules.matrix.strategies import DIALECTS, EVENTS, PEOPLE, ROOMS, RULESETS, USER_IDS
from tests.pushrules.steps import lines_run

Members = dict[str, tuple[Person, Ruleset]]


def at_once(
    room: Room, document: dict[str, Any], where: RoomFacts, *also: tuple[Person, Ruleset]
) -> dict[str, Rule]:
    """Judge an event for everybody at once; nobody may be told twice."""
    told: dict[str, Rule] = {}
    for notified in room.evaluate(Event(document, room.dialect), where, also):
        for user_id in notified.user_ids:
            assert user_id not in told
            told[user_id] = notified.rule
    return told


def one_by_one(
    members: Members, document: dict[str, Any], where: RoomFacts, dialect: Dialect
) -> dict[str, Rule]:
    """Judge an event for one person after the other."""
    told = {}
    for person, ruleset in members.values():
        rule = evaluate(merged(ruleset, dialect), Event(document, dialect), where, person).rule
        if rule is not None and rule.actions.notify:
            told[person.user_id] = rule
    return told


def filled(members: Members, dialect: Dialect) -> Room:
    room = Room(ROOM, dialect)
    for person, ruleset in members.values():
        room.put(person, ruleset)
    return room


MEMBERS = st.lists(st.tuples(PEOPLE, RULESETS), max_size=7).map(
    lambda rows: {person.user_id: (person, ruleset) for person, ruleset in rows}
)


@settings(max_examples=400)
@given(MEMBERS, EVENTS, ROOMS, DIALECTS)
def test_a_room_at_once_comes_to_the_same_as_one_by_one(
    members: Members, document: dict[str, Any], where: RoomFacts, dialect: Dialect
) -> None:
    """The same people are told by the same rules, whatever the room, the event and the reading."""
    expected = one_by_one(members, document, where, dialect)
    note(f"told: {len(expected)} of {len(members)}")

    assert at_once(filled(members, dialect), document, where) == expected


@given(
    st.lists(st.tuples(PEOPLE, RULESETS) | st.sampled_from(USER_IDS), max_size=12),
    st.lists(st.tuples(PEOPLE, RULESETS), max_size=3),
    EVENTS,
    ROOMS,
    DIALECTS,
)
def test_a_room_may_change_between_events(
    changes: list[tuple[Person, Ruleset] | str],
    also: list[tuple[Person, Ruleset]],
    document: dict[str, Any],
    where: RoomFacts,
    dialect: Dialect,
) -> None:
    """Who came, left, took another name or other rules is judged as they are now; guests are judged too."""
    room = Room(ROOM, dialect)
    members: Members = {}
    for change in changes:
        if isinstance(change, str):
            room.drop(change)
            members.pop(change, None)
        else:
            room.put(*change)
            members[change[0].user_id] = change
    guests = {person.user_id: (person, ruleset) for person, ruleset in also}

    assert at_once(room, document, where, *guests.values()) == one_by_one(
        {**guests, **members}, document, where, dialect
    )
    assert (len(room), {user_id for user_id in USER_IDS if user_id in room}) == (len(members), set(members))


@given(st.lists(st.tuples(PEOPLE, RULESETS), max_size=8), DIALECTS)
def test_a_room_that_everybody_has_left_holds_nothing(
    members: list[tuple[Person, Ruleset]], dialect: Dialect
) -> None:
    """However many came and went, no memory of them stays."""
    room = Room(ROOM, dialect)
    for person, ruleset in members:
        room.put(person, ruleset)
    for person, _ in members:
        room.drop(person.user_id)

    assert [len(room), room._places, room._crowds, room._groups] == [0, {}, {}, {}]
    for triggers in (room._own_rules, room._display_names._triggers, room._localparts._triggers):
        assert not any(triggers._filed.values())
    assert room._display_names._bearers == {}


def test_who_left_or_changed_is_judged_as_they_are_now() -> None:
    """One leaves, one who was never there leaves, one takes another name, one another rule."""
    room = crowd(4, lambda number: keyword(f"word{number}"))
    room.drop("@member0:test")
    room.drop("@stranger:test")
    room.put(Person("@member1:test", "Renamed"), UNTOUCHED)
    room.put(Person("@member2:test", "Somebody Number2"), keyword("renamed"))

    told = at_once(room, message("somebody renamed word2 word3 number1"), facts())

    assert (len(room), "@member0:test" in room, "@member1:test" in room) == (3, False, True)
    assert {user_id: rule.rule_id for user_id, rule in told.items()} == {
        "@member1:test": ".m.rule.contains_display_name",
        "@member2:test": "k",
        "@member3:test": "k",
    }


def test_people_without_a_name_and_namesakes_come_and_go() -> None:
    """One by one, until nobody is left."""
    room = Room(ROOM)
    members = [Person("odd"), Person("@ann:test", "Ann"), Person("@bob:test", "Ann")]
    for person in members:
        room.put(person, UNTOUCHED)
    told = []
    for person in members:
        told.append(set(at_once(room, message("ann"), facts())))
        room.drop(person.user_id)

    assert told == [{"odd", "@ann:test", "@bob:test"}, {"@ann:test", "@bob:test"}, {"@bob:test"}]
    assert at_once(room, message("ann"), facts()) == {}


def test_an_event_of_another_room_or_reading_is_a_mistake_of_the_caller() -> None:
    """It is not judged by the wrong rules in silence."""
    room = Room(ROOM)

    with pytest.raises(ValueError, match="another room"):
        room.evaluate(Event(message()), RoomFacts("!other:test", 3))
    with pytest.raises(ValueError, match="another dialect"):
        room.evaluate(Event(message(), Dialect(words=Alphabet.ASCII)), facts())


# ── how much is touched ──────────────────────────────────────────────────────────────────────────


def crowd(size: int, rules: Callable[[int], Ruleset] = lambda _: UNTOUCHED) -> Room:
    room = Room(ROOM)
    for number in range(size):
        room.put(Person(f"@member{number}:test", f"Somebody Number{number}"), rules(number))
    return room


def lines_per_event(room: Room, document: dict[str, Any]) -> int:
    return lines_run(lambda: room.evaluate(Event(document), facts(len(room))))


def keyword(pattern: str) -> Ruleset:
    return Ruleset((own(Kind.CONTENT, "k", pattern=pattern),))


RULES_OF_MEMBERS: dict[str, Callable[[int], Ruleset]] = {
    "no rules of their own": lambda _: UNTOUCHED,
    "a word each": lambda number: keyword(f"word{number}"),
    "a muted sender each": lambda number: Ruleset((own(Kind.SENDER, f"@noisy{number}:test"),)),
    "a muted room each": lambda number: Ruleset((own(Kind.ROOM, f"!noisy{number}:test"),)),
    "a property each": lambda number: Ruleset(
        (
            own(
                Kind.OVERRIDE,
                conditions=[{"kind": "event_property_is", "key": "content.x", "value": number}],
            ),
        )
    ),
    "a rule that is off": lambda number: Ruleset((own(Kind.OVERRIDE, f"r{number}", enabled=False),)),
    "a rule nobody knows": lambda number: Ruleset(
        (own(Kind.OVERRIDE, f"r{number}", conditions=[{"kind": "org.example"}]),)
    ),
    "their own name": lambda number: Ruleset(
        (own(Kind.OVERRIDE, f"r{number}", conditions=[{"kind": "contains_display_name"}]),)
    ),
}


@pytest.mark.parametrize("rules", RULES_OF_MEMBERS.values(), ids=RULES_OF_MEMBERS)
def test_a_plain_message_costs_the_same_in_a_room_of_any_size(rules: Callable[[int], Ruleset]) -> None:
    """Counted in lines run: nobody is touched whom it does not involve."""
    small, large = (lines_per_event(crowd(size, rules), message()) for size in (20, 400))

    assert large <= small + 5


def test_a_rule_that_many_share_is_asked_once() -> None:
    """Four hundred who chose or muted this room cost a line or two each, to be told apart from the others."""
    chosen = Ruleset((own(Kind.ROOM, ROOM, actions=["notify", "coalesce"]),))
    room = crowd(400, lambda number: chosen if number % 2 else UNTOUCHED)

    cost = lines_per_event(room, message())

    assert cost <= 200 * 3 + 1_000
    assert [len(notified.user_ids) for notified in room.evaluate(Event(message()), facts())] == [200, 200]


def test_a_wildcard_that_cannot_match_costs_one_look() -> None:
    """Of four hundred patterns none is compiled or tried: its longest piece is not in the body."""
    few, many = (
        lines_per_event(crowd(size, lambda number: keyword(f"word{number}*")), message())
        for size in (20, 400)
    )

    assert many - few <= 2 * 380


def test_whom_a_message_involves_is_all_that_it_costs_more() -> None:
    """Two mentions in a room of four hundred cost what two mentions cost in a room of twenty."""
    mentions = message("Number3, and member5", m_mentions={"user_ids": ["@member7:test", "@member8:test"]})

    small, large = (lines_per_event(crowd(size), mentions) for size in (20, 400))

    assert large <= small + 5


def test_a_name_that_many_bear_is_looked_for_once() -> None:
    """A room full of people of one name costs one search, then a little for each of them."""
    room = Room(ROOM)
    for number in range(300):
        room.put(Person(f"@member{number}:test", "Somebody"), UNTOUCHED)

    cost = lines_per_event(room, message("hello somebody"))

    assert cost <= 300 * 25 + 1_000
    assert len(at_once(room, message("hello somebody"), facts())) == 300


def test_the_largest_event_that_names_many_costs_in_proportion() -> None:
    """Sixty thousand characters of names; twice as many named cost twice as much."""
    room = crowd(2_000)

    def naming(count: int) -> dict[str, Any]:
        ids = [f"@member{number}:test" for number in range(count)]
        return message(" ".join(f"Number{number}" for number in range(count)), m_mentions={"user_ids": ids})

    half, whole = (lines_per_event(room, naming(count)) for count in (1_000, 2_000))

    assert whole <= 2.2 * half


# ── what the worker relies on ────────────────────────────────────────────────────────────────────


def test_an_invite_is_judged_for_its_target_who_is_no_member_yet() -> None:
    """And not for whoever invites."""
    room = crowd(3)
    invite = event("m.room.member", {"membership": "invite"}, sender="@member1:test", state_key="@guest:test")

    told = at_once(room, invite, facts(), (Person("@guest:test"), UNTOUCHED))

    assert {user_id: rule.rule_id for user_id, rule in told.items()} == {
        "@guest:test": ".m.rule.invite_for_me"
    }


def test_a_guest_who_is_in_the_room_is_judged_once_and_by_the_rules_they_have_there() -> None:
    """A sender who is a guest is not judged at all."""
    room = crowd(2)
    silent = editing.set_enabled(UNTOUCHED, Kind.OVERRIDE, ".m.rule.master", enabled=True)

    told = at_once(
        room,
        message(sender="@member1:test"),
        facts(),
        (Person("@member0:test"), silent),
        (Person("@member1:test"), UNTOUCHED),
    )

    assert {user_id: rule.rule_id for user_id, rule in told.items()} == {"@member0:test": ".m.rule.message"}


def test_who_silenced_everything_is_left_out_and_the_others_are_told() -> None:
    """Members are told apart by what they made of predefined rules too."""
    silent = editing.set_enabled(UNTOUCHED, Kind.OVERRIDE, ".m.rule.master", enabled=True)
    room = crowd(4, lambda number: silent if number % 2 else UNTOUCHED)

    assert set(at_once(room, message(), facts())) == {"@member0:test", "@member2:test"}


def test_everybody_with_a_keyword_that_a_message_holds_is_told_by_their_own_rule() -> None:
    """Words and wildcards alike."""
    patterns = ["lunch", "lun?h", "l*h", "*unch", "dinner", "lunc", "*"]
    room = crowd(len(patterns), lambda number: keyword(patterns[number]))

    told = at_once(room, message("time for lunch"), facts())

    assert [told[f"@member{number}:test"].rule_id for number in range(7)] == [
        "k",
        "k",
        "k",
        "k",
        ".m.rule.message",
        ".m.rule.message",
        "k",
    ]
