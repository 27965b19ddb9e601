"""Input made to hurt: no exception, and no more work than the size of the input."""

import sys
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.matrix.evaluation import Person
from heliograph.pushrules.matrix.event import Event
from heliograph.pushrules.matrix.power import PowerLevels
from heliograph.pushrules.matrix.room import Room
from heliograph.pushrules.matrix.rule import Kind
from heliograph.pushrules.matrix.ruleset import UNTOUCHED, Ruleset, read_stored
from heliograph.pushrules.matrix.subject import RoomFacts
from tests.pushrules.matrix.make import BOB, ROOM, decide, event, facts, message, own
from tests.pushrules.matrix.strategies import RULESETS
from tests.pushrules.steps import lines_run

PATTERNS = [
    "*a*a*a*b",
    "a*a*a*a*a*b",
    "?a?a?a?b",
    "*" * 1_000 + "b",
    "*a?" * 300 + "b",
    "a" * 1_000,
    "?" * 1_000,
]


@pytest.mark.clause("M086", "M089")
@pytest.mark.parametrize("pattern", PATTERNS, ids=[pattern[:12] for pattern in PATTERNS])
@pytest.mark.parametrize("unit", ["a", "a ", "aab"])
def test_a_keyword_costs_no_more_than_the_body_is_long(pattern: str, unit: str) -> None:
    """Counted in lines run on bodies of thirty and sixty thousand characters."""
    ruleset = Ruleset((own(Kind.CONTENT, pattern=pattern),))
    half, whole = ((unit * size)[:size] for size in (30_000, 60_000))

    lines = [lines_run(partial(decide, message(body), ruleset)) for body in (half, whole)]

    assert lines[1] <= 2.1 * lines[0] + 1_000
    assert lines[1] <= 16 * 60_000 + 200_000


def test_a_room_of_hostile_keywords_costs_the_sum_of_them() -> None:
    """Thirty members, thirty patterns: no pattern makes another dearer."""
    body = "aab" * 5_000
    room = Room(ROOM)
    for number in range(30):
        ruleset = Ruleset((own(Kind.CONTENT, pattern=f"?a?a{'?' * number}?b"),))
        room.put(Person(f"@u{number}:test"), ruleset)

    cost = lines_run(lambda: room.evaluate(Event(message(body)), facts()))

    assert cost <= 30 * (16 * len(body) + 10_000)


@pytest.mark.parametrize("name", ["ab " * 300 + "a", "a" * 1_024, "\ud800" * 500, "*" * 1_000], ids=repr)
def test_a_hostile_name_costs_no_more_than_the_body_is_long(name: str) -> None:
    """Also where it is found in thousands of wrong places."""
    body = (name[:3] * 20_000)[:60_000]
    person = Person(BOB, name)

    cost = lines_run(lambda: decide(message(body), person=person))

    assert cost <= 16 * len(body) + 200_000


def test_a_long_key_and_a_deep_event_cost_no_more_than_they_are_long() -> None:
    """The path is walked once, and nothing recurses."""
    deep: Any = "x"
    for _ in range(100_000):
        deep = {"a": deep}
    key = "content" + ".a" * 20_000
    conditions = [{"kind": "event_match", "key": key, "pattern": "*"}]
    ruleset = Ruleset((own(Kind.OVERRIDE, conditions=conditions),))

    cost = lines_run(lambda: decide(event(content=deep), ruleset))

    assert cost <= 5 * 20_000 + 5_000


def test_a_long_list_is_read_once_for_all_who_ask() -> None:
    """Thirty members ask for thirty scalars in a list of ten thousand."""
    room = Room(ROOM)
    for number in range(30):
        asks = [
            {"kind": "event_property_contains", "key": "content.list", "value": number},
            {"kind": "event_property_contains", "key": "content.list", "value": f"x{number}"},
        ]
        room.put(Person(f"@u{number}:test"), Ruleset((own(Kind.OVERRIDE, conditions=asks),)))

    cost = lines_run(lambda: room.evaluate(Event(event(content={"list": list(range(10_000))})), facts()))

    assert cost <= 10 * 10_000 + 10_000


ODD: list[Any] = [
    2**64,
    -(2**63) - 1,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    -0.0,
    "\ud800",
    "\udfff\ud800",
    "\0",
    "a\0b",
    "\ufeff",
    sys.maxsize,
    (),
    [[[]]],
    {"": {"": {}}},
    {"\ud800": "\0"},
]


@pytest.mark.parametrize("odd", ODD, ids=[str(number) for number in range(len(ODD))])
def test_an_odd_value_anywhere_breaks_nothing(odd: Any) -> None:
    """Huge integers, fractions, halves of surrogate pairs, NUL: in every place of an event and a room."""
    power = PowerLevels(
        {"users": odd, "users_default": odd, "notifications": {"room": odd}}, "1", (CAROL_ID,)
    )
    room = RoomFacts(ROOM, 3, power)
    ruleset = Ruleset(
        tuple(
            own(Kind.OVERRIDE, f"r{place}", conditions=[condition])
            for place, condition in enumerate(
                [
                    {"kind": "event_match", "key": "content.x", "pattern": "\ud800\0*"},
                    {"kind": "event_property_is", "key": "content.x", "value": "\udfff\ud800"},
                    {"kind": "event_property_contains", "key": "content.x", "value": "\0"},
                    {"kind": "sender_notification_permission", "key": "\ud800"},
                    {"kind": "contains_display_name"},
                ]
            )
        )
    )
    documents = [
        dict.fromkeys(("type", "sender", "state_key", "content", "room_id"), odd),
        event(content=dict.fromkeys(("body", "msgtype", "m.mentions", "m.relates_to", "x"), odd)),
        event(content={"body": "x", "x": [odd, odd], "m.mentions": {"user_ids": odd, "room": odd}}),
        event(content={"body": "x", "m.mentions": {"user_ids": [odd, BOB], "room": True}}),
    ]
    whole = Room(ROOM)
    for name in (odd, "Robert"):
        whole.put(Person(f"@{name!r}:test", name), ruleset)

    for document in documents:
        alone = decide(document, ruleset, room=room, person=Person(BOB, odd))
        whole.evaluate(Event(document), room)
        assert alone == decide(document, ruleset, room=room, person=Person(BOB, odd))


CAROL_ID = "@carol:test"
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=5)
    | st.sampled_from([BOB, "bob", "Robert", ROOM, "m.room.message"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["body", "m.mentions", "user_ids", "room", "membership"]) | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["type", "sender", "state_key", "content", "room_id"]) | st.text(max_size=3), ANYTHING
    ),
    RULESETS,
    ANYTHING,
    st.none() | st.dictionaries(st.sampled_from(["users", "users_default", "notifications"]), ANYTHING),
    st.sampled_from(["1", "10", "12", "", "x", "\u0662"]),
)
def test_nothing_that_is_json_breaks_the_evaluation(
    document: dict[str, Any], ruleset: Ruleset, name: object, levels: dict[str, Any] | None, version: str
) -> None:
    """Events, names and power levels of every shape; alone and with the whole room alike."""
    where = RoomFacts(ROOM, 3, PowerLevels(levels, version))
    person = Person(BOB, name)
    room = Room(ROOM)
    room.put(person, ruleset)

    rule = decide(document, ruleset, room=where, person=person).rule
    told = [notified.rule for notified in room.evaluate(Event(document), where)]

    assert told == ([rule] if rule and rule.actions.notify else [])


def test_a_stored_document_of_any_depth_is_read() -> None:
    """What is too deep in it is left out."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    row = {"rule_id": "r", "enabled": True, "actions": deep, "conditions": deep, "pattern": deep}

    ruleset, damages = read_stored({"global": {"override": [row], "content": [row], "room": deep}})

    assert ruleset == UNTOUCHED
    assert len(damages) == 3
