"""What went wrong in comparable systems, as whole kinds of faults that cannot happen here.

Each test names the public report that it answers.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.glob import Alphabet
from heliograph.pushrules.matrix import editing
from heliograph.pushrules.matrix.defaults import predefined
from heliograph.pushrules.matrix.dialect import USUAL, Dialect
from heliograph.pushrules.matrix.evaluation import Person
from heliograph.pushrules.matrix.power import PowerLevels
from heliograph.pushrules.matrix.rule import Kind
from heliograph.pushrules.matrix.ruleset import UNTOUCHED, Ruleset, shown
from tests.pushrules.matrix.make import (
    BOB,
    CAROL,
    HIGHLIGHT,
    ROOM,
    decide,
    event,
    facts,
    holds,
    message,
    own,
    told,
)

ASCII = Dialect(words=Alphabet.ASCII)
RULE_NAMES = st.sampled_from([rule.rule_id for rule in predefined(USUAL)])


def keyword(pattern: str) -> dict[str, Any]:
    return {"kind": "event_match", "key": "content.body", "pattern": pattern}


@pytest.mark.parametrize("body", ["ütest", "testü"])
def test_e01_a_letter_of_another_script_is_a_boundary_by_the_specification_alone(body: str) -> None:
    """The seed counts letters of every script as letters; a switch follows the specification."""
    assert holds(keyword("test"), message(body), dialect=ASCII)
    assert not holds(keyword("test"), message(body))


@pytest.mark.parametrize("body", ["xtest", "test1", "test_", "1test"])
@pytest.mark.parametrize("words", list(Alphabet))
def test_e01_an_ascii_letter_digit_or_underscore_is_no_boundary(body: str, words: Alphabet) -> None:
    """In neither reading."""
    assert not holds(keyword("test"), message(body), dialect=Dialect(words=words))


@pytest.mark.parametrize(
    ("pattern", "body"), [("Angelo", "D'Angelo rode home"), ("gg", "https://discord.gg")]
)
def test_e02_punctuation_is_a_boundary_however_unwelcome(pattern: str, body: str) -> None:
    """The text says so."""
    assert holds(keyword(pattern), message(body))


@given(st.text(min_size=1, max_size=6), st.text(alphabet="abcz *?", max_size=10))
def test_e03_no_display_name_matches_what_does_not_contain_it(name: str, body: str) -> None:
    """Whatever characters it is made of: it is never a pattern."""
    if holds({"kind": "contains_display_name"}, message(body), name=name):
        assert name.lower() in body.lower()


@pytest.mark.parametrize(
    ("body", "expected"), [("anything", ".m.rule.message"), ("a * b", ".m.rule.contains_display_name")]
)
def test_e03_who_is_called_star_is_named_only_by_a_star(body: str, expected: str) -> None:
    """In a room where guessing rules are on."""
    assert told(decide(message(body), person=Person(BOB, "*")))[0] == expected


@pytest.mark.parametrize("body", [1, True, {}, ["x"], None, 1.5, [], 2**80], ids=repr)
def test_e04_a_body_that_is_no_text_does_not_stop_the_evaluation(body: Any) -> None:
    """A message for two still notifies."""
    assert told(decide(message(body), room=facts(2)))[0] == ".m.rule.room_one_to_one"
    assert told(decide(event(content={}), room=facts(2)))[0] == ".m.rule.room_one_to_one"


def test_e05_a_dotted_name_and_a_nested_one_have_different_keys() -> None:
    """An edit is found under the escaped key only."""
    edit = message(m_relates_to={"rel_type": "m.replace"})
    is_edit = {"kind": "event_property_is", "value": "m.replace"}

    assert holds({**is_edit, "key": r"content.m\.relates_to.rel_type"}, edit)
    assert not holds({**is_edit, "key": "content.m.relates_to.rel_type"}, edit)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, (None, False, {})),
        ({"state_key": ""}, (".m.rule.tombstone", True, {"highlight": True})),
        ({"state_key": "x"}, (None, False, {})),
        ({"state_key": None}, (None, False, {})),
        ({"state_key": 0}, (None, False, {})),
    ],
)
def test_e06_only_the_room_s_own_state_is_a_tombstone(members: dict[str, Any], expected: Any) -> None:
    """An absent state key is not an empty one."""
    assert told(decide(event("m.room.tombstone", {}, **members))) == expected


@pytest.mark.parametrize(
    ("key", "pattern", "document"),
    [
        ("type", "m.room.message", event("org.example.m.room.message")),
        ("type", "m.room.message", event("m.room.message.org.example")),
        ("content.topic", "foo", event("m.room.topic", {"topic": "a foo b"})),
    ],
)
def test_e07_a_pattern_without_wildcards_has_none(key: str, pattern: str, document: dict[str, Any]) -> None:
    """Nothing is added to either end of it."""
    assert not holds({"kind": "event_match", "key": key, "pattern": pattern}, document)


@pytest.mark.parametrize(
    ("pattern", "body", "expected"),
    [
        ("[a-z]*", "matrix", False),
        ("[a-z]*", "[a-z] and", True),
        (r"\w*", "matrix", False),
        (r"\w*", r"\w", True),
        ("foo[ab]", "fooa", False),
        ("foo[ab]", "foo[ab]", True),
        ("{a,b}", "a", False),
        ("f**o", "fo", True),
        ("?**?", "a", False),
        ("?**?", "ab", True),
    ],
)
def test_e08_e09_only_star_and_question_mark_are_wildcards(pattern: str, body: str, expected: bool) -> None:
    """No other notation leaks through, and two stars are one."""
    assert holds(keyword(pattern), message(body)) is expected


def test_e11_a_muted_sender_is_silent() -> None:
    """A sender rule compares the sender, under the name that events carry."""
    assert told(decide(message(), Ruleset((own(Kind.SENDER, CAROL, actions=[]),)))) == (CAROL, False, {})


def test_e14_a_highlight_without_a_value_is_true() -> None:
    """It counts and it is passed on."""
    decision = decide(message(), Ruleset((own(Kind.OVERRIDE, actions=["notify", HIGHLIGHT]),)))

    assert told(decision) == ("mine", True, {"highlight": True})
    assert decision.rule is not None
    assert decision.rule.actions.highlight


def test_e15_nobody_is_told_of_their_own_message() -> None:
    """Not even when they mention themselves."""
    assert decide(message(sender=BOB, m_mentions={"user_ids": [BOB]})).rule is None


MUTED_ROOM = own(Kind.ROOM, ROOM, actions=[])


@pytest.mark.parametrize(
    ("rules", "document", "expected"),
    [
        ((MUTED_ROOM, own(Kind.CONTENT, "cake", pattern="cake")), message("cake!"), "cake"),
        ((MUTED_ROOM,), message(m_mentions={"user_ids": [BOB]}), ".m.rule.is_user_mention"),
        ((own(Kind.SENDER, CAROL, actions=[]), own(Kind.ROOM, ROOM)), message(), ROOM),
    ],
    ids=["keyword in a muted room", "mention in a muted room", "muted sender in a chosen room"],
)
def test_e16_kinds_are_asked_in_their_order(rules: Any, document: dict[str, Any], expected: str) -> None:
    """However they stand in the document."""
    decision = told(decide(document, Ruleset(rules)))

    assert decision[:2] == (expected, True)


@given(RULE_NAMES)
def test_e17_e18_e19_a_fresh_user_has_every_predefined_rule_on_but_the_master(name: str) -> None:
    """In the order of the text, which another test spells out."""
    rules = {
        rule["rule_id"]: rule["enabled"]
        for rules in shown(UNTOUCHED, BOB)["global"].values()
        for rule in rules
    }

    assert rules[name] is (name != ".m.rule.master")


def test_e17_the_master_comes_before_an_override_that_matches_everything() -> None:
    """Switched on, it silences that too."""
    ruleset = editing.put(UNTOUCHED, own(Kind.OVERRIDE))
    ruleset = editing.set_enabled(ruleset, Kind.OVERRIDE, ".m.rule.master", enabled=True)

    assert told(decide(message(), ruleset)) == (".m.rule.master", False, {})


@pytest.mark.parametrize(
    ("mentions", "expected"),
    [({}, ".m.rule.suppress_edits"), ({"user_ids": [BOB]}, ".m.rule.is_user_mention")],
    ids=["nobody new", "bob is new"],
)
def test_e21_an_edit_notifies_only_whom_it_newly_mentions(mentions: dict[str, Any], expected: str) -> None:
    """Mentions inside the new content were told of before."""
    document = message(
        "* hey",
        m_mentions=mentions,
        m_relates_to={"rel_type": "m.replace", "event_id": "$x"},
        m_new_content={"body": "hey", "m.mentions": {"user_ids": [BOB]}},
    )

    assert told(decide(document))[0] == expected


def test_e22_a_muted_encrypted_room_is_silent_unless_an_override_says_otherwise() -> None:
    """Nothing can be read in it, so mentions cannot be found; but an override comes first."""
    secret = event("m.room.encrypted", {"ciphertext": "x"})
    override = own(
        Kind.OVERRIDE, conditions=[{"kind": "event_match", "key": "type", "pattern": "m.room.encrypted"}]
    )

    assert told(decide(secret, Ruleset((MUTED_ROOM,))))[1] is False
    assert told(decide(secret, Ruleset((MUTED_ROOM, override))))[:2] == ("mine", True)


@pytest.mark.parametrize("body", ["hello there", " ", "", "\n"], ids=repr)
def test_e23_the_empty_pattern_fits_no_word(body: str) -> None:
    """A keyword that somebody emptied does not notify of everything."""
    assert told(decide(message(body), Ruleset((own(Kind.CONTENT, pattern=""),))))[0] == ".m.rule.message"


@pytest.mark.parametrize(
    ("body", "pattern"),
    [("ÅNGSTRÖM", "ångström"), ("ångström", "ÅNGSTRÖM"), ("ΟΔΟΣ", "οδος"), ("İ", "i"), ("ПРИВЕТ", "привет")],
)
def test_e24_case_is_ignored_in_every_script(body: str, pattern: str) -> None:
    """On both sides alike, one letter for one letter."""
    assert holds(keyword(pattern), message(body))


def test_a06_an_unspecified_member_of_a_condition_has_no_power() -> None:
    """Neither the pattern type nor the value type of other implementations is honoured."""
    document = event(sender=BOB)

    assert not holds({"kind": "event_match", "key": "sender", "pattern_type": "user_id"}, document)
    assert not holds({"kind": "event_property_is", "key": "sender", "value_type": "user_id"}, document)


def test_a04_a_shown_rule_has_no_members_of_our_own_making() -> None:
    """The mention rule names the user in its value, and holds nothing else."""
    override = {rule["rule_id"]: rule for rule in shown(UNTOUCHED, BOB)["global"]["override"]}

    assert override[".m.rule.is_user_mention"]["conditions"] == [
        {"kind": "event_property_contains", "key": r"content.m\.mentions.user_ids", "value": BOB}
    ]


def test_who_may_notify_the_room_is_asked_of_the_levels_alone() -> None:
    """A room mention by a moderator stands out, by anybody else it does not."""
    mention = message(m_mentions={"room": True})
    moderator = PowerLevels({"users": {CAROL: 50}})

    assert told(decide(mention, room=facts(3, moderator)))[2] == {"highlight": True}
    assert told(decide(mention))[2] == {}
