"""Hypothesis strategies for rules, people and events that meet one another often."""

from typing import Any

from hypothesis import strategies as st

from heliograph.pushrules.glob import Alphabet
from heliograph.pushrules.matrix import editing
from heliograph.pushrules.matrix.actions import read_actions
from heliograph.pushrules.matrix.defaults import BY_ID
from heliograph.pushrules.matrix.dialect import Dialect
from heliograph.pushrules.matrix.evaluation import Person
from heliograph.pushrules.matrix.power import PowerLevels
from heliograph.pushrules.matrix.rule import Kind, Rule
from heliograph.pushrules.matrix.ruleset import UNTOUCHED, Ruleset
from heliograph.pushrules.matrix.subject import RoomFacts
from tests.pushrules.matrix.make import ROOM, own

USER_IDS = ["@ann:test", "@Ann:test", "@bob.b:test", "@*:test", "@cake:test", "@ü:test", "odd", ""]
NAMES: list[object] = [
    None,
    "",
    " ",
    "Ann",
    "ann b",
    "*",
    "?",
    "🎉",
    "..",
    "über",
    "a_b",
    "Cake",
    5,
    "x" * 1_025,
]
WORDS = [
    "ann",
    "Ann",
    "b",
    "bob.b",
    "*",
    "🎉",
    "...",
    "über",
    "ber",
    "a_b",
    "cake",
    "@room",
    "lie",
    "@ann:test",
]
PATTERNS = [*WORDS, "", "c*e", "c?ke", "*", "?", "ca*", "*ke", "a*b", "an", "*🎉*", "@*", "b.b"]
TYPES = ["m.room.message", "m.room.encrypted", "m.room.member", "m.reaction", "m.room.tombstone", "org.x"]
VALUES: list[Any] = ["cake", "Cake", 1, True, 0, False, None, 1.0, "@ann:test", [], {}, 2**60]
KEYS = ["content.body", "type", "content.msgtype", "sender", "state_key", "content.x", r"content.m\.x", "age"]

DIALECTS = st.builds(Dialect, legacy_mentions=st.booleans(), words=st.sampled_from(list(Alphabet)))

CONDITIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.just("event_match"),
            "key": st.sampled_from(KEYS),
            "pattern": st.sampled_from([*PATTERNS, *TYPES, 5]),
        }
    ),
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["event_property_is", "event_property_contains"]),
            "key": st.sampled_from([*KEYS, "content.list", r"content.m\.mentions.user_ids"]),
            "value": st.sampled_from(VALUES),
        }
    ),
    st.just({"kind": "contains_display_name"}),
    st.fixed_dictionaries({"kind": st.just("room_member_count"), "is": st.sampled_from(["2", ">2", "x"])}),
    st.just({"kind": "sender_notification_permission", "key": "room"}),
    st.just({"kind": "org.example.unknown"}),
)

ACTIONS: st.SearchStrategy[list[Any]] = st.sampled_from(
    [
        ["notify"],
        [],
        ["notify", {"set_tweak": "highlight"}],
        ["notify", {"set_tweak": "highlight", "value": 1}],
        ["notify", {"set_tweak": "highlight", "value": True}],
    ]
)


@st.composite
def own_rules(draw: st.DrawFn) -> Rule:
    """Draw a rule as a user may have written it."""
    kind = draw(st.sampled_from(list(Kind)))
    ids = {
        Kind.ROOM: [ROOM, "!other:test", "!*:test"],
        Kind.SENDER: ["@ann:test", "@Ann:test", "@cake:test"],
    }.get(kind, ["one", "two"])
    return own(
        kind,
        draw(st.sampled_from(ids)),
        actions=draw(ACTIONS),
        enabled=draw(st.booleans() | st.just(value=True)),
        conditions=draw(st.lists(CONDITIONS, max_size=3)),
        pattern=draw(st.sampled_from(PATTERNS)),
    )


@st.composite
def rulesets(draw: st.DrawFn) -> Ruleset:
    """Draw what a user may own, made by the edits that make it."""
    ruleset = UNTOUCHED
    for rule in draw(st.lists(own_rules(), max_size=3)):
        ruleset = editing.put(ruleset, rule)
        ruleset = editing.set_enabled(ruleset, rule.kind, rule.rule_id, enabled=rule.enabled)
    for kind, rule_id in draw(st.lists(st.sampled_from(list(BY_ID)), max_size=2)):
        if draw(st.booleans()):
            ruleset = editing.set_enabled(ruleset, kind, rule_id, enabled=draw(st.booleans()))
        else:
            ruleset = editing.set_actions(ruleset, kind, rule_id, read_actions(draw(ACTIONS)))
    return ruleset


RULESETS = st.just(UNTOUCHED) | rulesets()
PEOPLE = st.builds(Person, st.sampled_from(USER_IDS), st.sampled_from(NAMES))

BODIES = st.lists(st.sampled_from(WORDS), max_size=4).flatmap(
    lambda words: st.sampled_from([" ", "", "-", "\n"]).map(lambda between: between.join(words))
) | st.sampled_from([5, None, ["ann"]])

CONTENTS = st.fixed_dictionaries(
    {},
    optional={
        "body": BODIES,
        "msgtype": st.sampled_from(["m.text", "m.notice", "cake"]),
        "membership": st.sampled_from(["invite", "join"]),
        "m.mentions": st.sampled_from(
            [{}, None, {"user_ids": ["@ann:test", 5]}, {"user_ids": "@ann:test"}, {"room": True}, {"room": 1}]
        ),
        "m.relates_to": st.just({"rel_type": "m.replace"}),
        "x": st.sampled_from(VALUES),
        "m.x": st.sampled_from(VALUES),
        "list": st.lists(st.sampled_from(VALUES), max_size=3),
    },
)

EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES), "sender": st.sampled_from([*USER_IDS, None]), "content": CONTENTS},
    optional={"state_key": st.sampled_from([*USER_IDS, "", 5]), "age": st.just("cake")},
)

ROOMS = st.builds(
    RoomFacts,
    st.just(ROOM),
    st.sampled_from([1, 2, 3]),
    st.builds(
        PowerLevels,
        st.sampled_from([None, {}, {"users_default": 50}, {"users": {"@ann:test": 50}}]),
        st.sampled_from(["9", "12"]),
        st.sampled_from([(), ("@ann:test",)]),
    ),
)
