"""The stored document: what is taken from it, what is left out, and what the server adds."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.matrix import editing
from heliograph.pushrules.matrix.actions import read_actions
from heliograph.pushrules.matrix.dialect import Dialect
from heliograph.pushrules.matrix.rule import Kind, read_rule
from heliograph.pushrules.matrix.ruleset import (
    RULES_MAX,
    UNTOUCHED,
    Change,
    Damage,
    Ruleset,
    merged,
    read_stored,
    shown,
)
from tests.pushrules.matrix.make import BOB, BOB_IN_ROOM, ROOM, decide, message, own, told
from tests.pushrules.matrix.strategies import RULESETS

KEYWORD = {"rule_id": "cake", "default": False, "enabled": True, "actions": ["notify"], "pattern": "cake"}
MASTER = {"rule_id": ".m.rule.master", "default": True, "enabled": True, "actions": [], "conditions": []}


def stored(**kinds: Any) -> dict[str, Any]:
    return {"global": kinds}


@pytest.mark.clause("M026", "M027", "M028", "M029", "M030")
@given(RULESETS)
def test_what_is_stored_and_read_back_is_what_the_user_owns(ruleset: Ruleset) -> None:
    """Their rules in their order, and of each predefined rule whether it is on and what it does."""
    document = json.loads(json.dumps(shown(ruleset, BOB)))

    assert read_stored(document) == (ruleset, ())


def test_a_user_who_never_changed_a_rule_owns_nothing() -> None:
    """And the document that their client sees says just that."""
    assert read_stored(shown(UNTOUCHED, BOB)) == (Ruleset(), ())


@pytest.mark.clause("M031", "M033")
def test_a_predefined_rule_that_the_document_lacks_is_there_nevertheless() -> None:
    """So a rule that an upgrade adds reaches everybody on the next read."""
    ruleset, damages = read_stored(stored(content=[KEYWORD], override=[MASTER]))

    assert damages == ()
    assert [rule.rule_id for rule in ruleset.own] == ["cake"]
    assert len(merged(ruleset)) == 19


@pytest.mark.clause("M035")
def test_a_predefined_rule_that_the_server_does_not_know_is_ignored() -> None:
    """It is no damage either: an older server knew it."""
    gone = MASTER | {"rule_id": ".m.rule.gone"}
    moved = MASTER | {"rule_id": ".m.rule.message"}

    assert read_stored(stored(override=[gone, moved])) == (UNTOUCHED, ())


@pytest.mark.clause("M032")
def test_the_conditions_of_a_predefined_rule_never_come_from_the_document() -> None:
    """Whatever it says they are, they are the server's."""
    message_rule = {
        "rule_id": ".m.rule.message",
        "default": True,
        "enabled": True,
        "actions": ["notify", {"set_tweak": "sound", "value": "ring"}],
        "conditions": [{"kind": "event_match", "key": "type", "pattern": "nothing"}],
    }

    ruleset, _ = read_stored(stored(underride=[message_rule]))

    assert told(decide(message(), ruleset)) == (".m.rule.message", True, {"sound": "ring"})
    assert shown(ruleset, BOB)["global"]["underride"][3]["conditions"] == [
        {"kind": "event_match", "key": "type", "pattern": "m.room.message"}
    ]


@pytest.mark.clause("M029", "M030")
def test_enabled_and_actions_of_a_predefined_rule_are_each_taken_for_itself() -> None:
    """Where one is damaged the other still counts."""
    damaged_actions = MASTER | {"actions": "shout"}
    damaged_flag = {"rule_id": ".m.rule.reaction", "enabled": "yes", "actions": ["notify"]}

    ruleset, damages = read_stored(stored(override=[damaged_actions, damaged_flag]))

    assert ruleset == Ruleset(
        changes=(
            Change(Kind.OVERRIDE, ".m.rule.master", enabled=True),
            Change(Kind.OVERRIDE, ".m.rule.reaction", actions=read_actions(["notify"])),
        )
    )
    assert [damage.field for damage in damages] == ["override[0].actions", "override[1].enabled"]


@pytest.mark.parametrize("document", [None, 5, "x", [], {}, {"global": None}, {"global": []}, {"device": {}}])
def test_a_document_that_is_none_leaves_the_predefined_rules(document: Any) -> None:
    """And says that it was damaged."""
    assert read_stored(document) == (UNTOUCHED, (Damage("global", "must be an object"),))


DAMAGED: list[tuple[str, Any]] = [
    ("content[1]", None),
    ("content[1]", 5),
    ("content[1]", []),
    ("content[1]", {}),
    ("content[1]", {"rule_id": 5}),
    ("content[1].rule_id", KEYWORD | {"rule_id": ""}),
    ("content[1].rule_id", KEYWORD | {"rule_id": "a/b"}),
    ("content[1].rule_id", KEYWORD | {"rule_id": "x" * 256}),
    ("content[1].actions", {"rule_id": "r", "enabled": True, "pattern": "x"}),
    ("content[1].actions[0]", KEYWORD | {"rule_id": "r", "actions": ["shout"]}),
    ("content[1].pattern", {"rule_id": "r", "enabled": True, "actions": []}),
    ("content[1].pattern", KEYWORD | {"rule_id": "r", "pattern": 5}),
    ("content[1].pattern", KEYWORD | {"rule_id": "r", "pattern": "x" * 1_025}),
    ("content[1].enabled", KEYWORD | {"rule_id": "r", "enabled": "true"}),
    ("content[1].enabled", {"rule_id": "r", "actions": [], "pattern": "x"}),
    ("content[1]", KEYWORD),
]


@pytest.mark.parametrize(("field", "row"), DAMAGED, ids=[str(number) for number in range(len(DAMAGED))])
def test_a_damaged_rule_is_left_out_and_the_others_are_kept(field: str, row: Any) -> None:
    """With a word on where the damage is, and none of what the user wrote."""
    other = KEYWORD | {"rule_id": "pie", "pattern": "pie"}

    ruleset, damages = read_stored(stored(content=[KEYWORD, row, other], room="x", sender=None))

    assert [rule.rule_id for rule in ruleset.own] == ["cake", "pie"]
    assert [damage.field for damage in damages] == [field, "room", "sender"]
    assert "shout" not in str(damages)


def test_an_override_without_conditions_is_damaged_and_does_not_match_everything() -> None:
    """An empty list matches everything; a missing one is no empty list."""
    row = {"rule_id": "r", "enabled": True, "actions": []}

    ruleset, damages = read_stored(stored(override=[row]))

    assert ruleset == UNTOUCHED
    assert [damage.field for damage in damages] == ["override[0].conditions"]


def test_no_more_rules_are_read_than_a_user_may_have() -> None:
    """The first thousand count."""
    rows = [KEYWORD | {"rule_id": f"r{number}"} for number in range(RULES_MAX + 2)]

    ruleset, damages = read_stored(stored(content=rows))

    assert (len(ruleset.own), len(damages)) == (RULES_MAX, 2)
    assert ruleset.own[-1].rule_id == "r999"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "rule_id": st.sampled_from(["cake", ".m.rule.master", ".m.rule.x", ROOM]) | JSON,
        "enabled": st.booleans() | JSON,
        "actions": st.just(["notify"]) | JSON,
        "conditions": st.lists(st.fixed_dictionaries({"kind": st.just("event_match") | JSON}) | JSON) | JSON,
        "pattern": JSON,
        "default": JSON,
    },
)


@given(
    st.fixed_dictionaries({"global": st.dictionaries(st.sampled_from(list(Kind)), st.lists(ROWS | JSON))})
    | JSON
)
def test_no_document_breaks_the_reader(document: Any) -> None:
    """Whatever is in it, the outcome can be shown, read again, and judged by."""
    ruleset, _ = read_stored(document)

    assert read_stored(shown(ruleset, BOB)) == (ruleset, ())
    decide(message(), ruleset, person=BOB_IN_ROOM)


def test_changes_of_a_rule_that_guesses_survive_while_such_rules_are_there() -> None:
    """And without them they are neither shown nor asked."""
    ruleset = editing.set_enabled(UNTOUCHED, Kind.CONTENT, ".m.rule.contains_user_name", enabled=False)

    assert told(decide(message("ask bob"), ruleset))[0] == ".m.rule.message"
    assert shown(ruleset, BOB, Dialect(legacy_mentions=False))["global"]["content"] == []


def test_showing_rules_gives_away_nothing_that_is_shared() -> None:
    """Whoever changes what they were shown changes nobody's rules."""
    document = shown(Ruleset((read_rule(Kind.CONTENT, "cake", KEYWORD),)), BOB)
    document["global"]["override"][1]["actions"].append("notify")
    document["global"]["override"][1]["conditions"].clear()

    assert shown(UNTOUCHED, BOB)["global"]["override"][1]["conditions"] != []
    assert own(Kind.ROOM, ROOM).document()["actions"] == ["notify"]
