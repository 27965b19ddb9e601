"""Triggers: what an event must hold, found from the event's side."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.engine import Truth, judge
from heliograph.pushrules.glob import Alphabet, contains_word, fold
from heliograph.pushrules.matrix.conditions import ContainsLocalpart, IsMentioned, IsTarget, SaysNoMentions
from heliograph.pushrules.matrix.dialect import Dialect
from heliograph.pushrules.matrix.event import Event
from heliograph.pushrules.matrix.rule import Kind, Rule
from heliograph.pushrules.matrix.subject import NOBODY, RoomFacts, Subject
from heliograph.pushrules.matrix.triggers import Asks, Trigger, Triggers, literal_trigger, rule_trigger
from tests.pushrules.matrix.make import event, message, own
from tests.pushrules.matrix.strategies import DIALECTS, EVENTS, ROOMS, own_rules

BODY = ("content", "body")
TYPE_IS = {"kind": "event_match", "key": "type", "pattern": "m.room.message"}


def asks(*conditions: dict[str, Any]) -> Rule:
    return own(Kind.OVERRIDE, conditions=conditions)


def prop(kind: str, value: Any) -> dict[str, Any]:
    return {"kind": f"event_property_{kind}", "key": "content.x", "value": value}


RULES: list[tuple[Rule, Trigger, dict[str, Any]]] = [
    (own(Kind.CONTENT, pattern="Some Keyword"), Trigger(Asks.WORD, BODY, "keyword"), message("keyword")),
    (own(Kind.CONTENT, pattern="🎉!"), Trigger(Asks.FRAGMENT, BODY, "🎉!"), message("a🎉!")),
    (own(Kind.CONTENT, pattern="key*Word?"), Trigger(Asks.FRAGMENT, BODY, "word"), message("swords")),
    (own(Kind.CONTENT, pattern="*"), Trigger(Asks.FRAGMENT, BODY, ""), message("")),
    (own(Kind.SENDER, "@carol:test"), Trigger(Asks.VALUE, ("sender",), (str, "@carol:test")), message()),
    (own(Kind.ROOM, "!room:test"), Trigger(Asks.NOTHING), message()),
    (asks(), Trigger(Asks.NOTHING), event(content={})),
    (asks(TYPE_IS), Trigger(Asks.TEXT, ("type",), "m.room.message"), message()),
    (asks({**TYPE_IS, "pattern": "m.*"}), Trigger(Asks.NOTHING), message()),
    (asks(prop("is", 1)), Trigger(Asks.VALUE, ("content", "x"), (int, 1)), event(content={"x": 1})),
    (asks(prop("contains", 1)), Trigger(Asks.ITEM, ("content", "x"), (int, 1)), event(content={"x": [1]})),
    (asks({"kind": "room_member_count", "is": "2"}), Trigger(Asks.NOTHING), message()),
    (asks({"kind": "sender_notification_permission", "key": "room"}), Trigger(Asks.NOTHING), message()),
    (asks({"kind": "org.example"}), Trigger(Asks.NOTHING), message()),
    (asks(TYPE_IS, prop("is", 1)), Trigger(Asks.VALUE, ("content", "x"), (int, 1)), event(content={"x": 1})),
]


@pytest.mark.parametrize(
    ("rule", "trigger", "document"), RULES, ids=[str(number) for number in range(len(RULES))]
)
def test_a_rule_is_filed_under_the_rarest_thing_it_needs(
    rule: Rule, trigger: Trigger, document: dict[str, Any]
) -> None:
    """And an event that holds this wakes it, though the rest of the rule may not hold."""
    triggers: Triggers[str] = Triggers()
    triggers.add(rule_trigger(rule, Alphabet.UNICODE), "rule")

    assert rule_trigger(rule, Alphabet.UNICODE) == trigger
    assert list(triggers.woken(Event(document))) == ["rule"]


@pytest.mark.parametrize("trigger", [trigger for _, trigger, _ in RULES if trigger.asks is not Asks.NOTHING])
def test_an_event_without_it_wakes_nothing(trigger: Trigger) -> None:
    """An event of another type, without a body."""
    triggers: Triggers[str] = Triggers()
    triggers.add(trigger, "rule")

    assert list(triggers.woken(Event(event("org.example", {}, sender=None)))) == []


def test_a_rule_about_the_person_is_woken_by_no_event() -> None:
    """Those whom the event involves are found another way."""
    named = {"kind": "contains_display_name"}
    triggers: Triggers[str] = Triggers()
    trigger = rule_trigger(asks(TYPE_IS, named), Alphabet.UNICODE)
    triggers.add(trigger, "rule")

    assert trigger.asks is Asks.PERSON
    assert list(triggers.woken(Event(message("Robert")))) == []


@pytest.mark.parametrize("condition", [ContainsLocalpart(), IsMentioned(), IsTarget()], ids=repr)
def test_what_only_predefined_rules_ask_about_a_person_is_filed_alike(condition: Any) -> None:
    """Every condition that there is has its trigger."""
    rule = Rule(Kind.OVERRIDE, "r", True, own(Kind.OVERRIDE).actions, (condition,), "[]")
    unseen = Rule(Kind.OVERRIDE, "r", True, rule.actions, (SaysNoMentions(),), "[]")

    assert rule_trigger(rule, Alphabet.UNICODE).asks is Asks.PERSON
    assert rule_trigger(unseen, Alphabet.UNICODE).asks is Asks.NOTHING


def test_what_is_taken_out_is_woken_no_more() -> None:
    """What else is filed under the same trigger stays."""
    triggers: Triggers[str] = Triggers()
    trigger = Trigger(Asks.WORD, BODY, "cake")
    for name in ("one", "one", "other"):
        triggers.add(trigger, name)

    triggers.discard(trigger, "one")

    assert list(triggers.woken(Event(message("cake")))) == ["other"]

    triggers.discard(trigger, "other")

    assert not any(triggers._filed.values())


@given(own_rules(), EVENTS, ROOMS, DIALECTS)
def test_a_rule_that_holds_for_whom_nothing_involves_is_always_woken(
    rule: Rule, document: dict[str, Any], room: RoomFacts, dialect: Dialect
) -> None:
    """A trigger may wake too much, but never too little."""
    triggers: Triggers[str] = Triggers()
    triggers.add(rule_trigger(rule, dialect.words), "rule")
    read = Event(document, dialect)

    if judge(rule.conditions, Subject(read, room, NOBODY))[0] is Truth.YES:
        assert list(triggers.woken(read)) == ["rule"]


@given(
    st.text(alphabet="ab _é.🎉", min_size=1, max_size=6),
    st.text(alphabet="ab _é.🎉", max_size=14),
    st.sampled_from(list(Alphabet)),
)
def test_a_name_that_a_body_holds_is_always_woken(name: str, body: str, words: Alphabet) -> None:
    """By a word of it that must stand alone in the body too, or as it is where it has no word."""
    triggers: Triggers[str] = Triggers()
    triggers.add(literal_trigger(fold(name), words), "name")

    if contains_word(fold(body), fold(name), words):
        assert list(triggers.woken(Event(message(body), Dialect(words=words)))) == ["name"]
