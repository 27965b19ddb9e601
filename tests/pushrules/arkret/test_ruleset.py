"""What is a rule set and what is none, and what a damaged one comes to."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.arkret.actions import PLAIN, SILENT, Effect, Sound
from heliograph.pushrules.arkret.ruleset import (
    CONDITIONS_MAX,
    RULES_MAX,
    Kind,
    read_rule,
    read_ruleset,
    salvage,
)
from heliograph.pushrules.document import DocumentRefused
from tests.pushrules.arkret.make import FIELD, KEYWORD, MENTION, rule
from tests.pushrules.arkret.strategies import JSON


def refusal(value: Any) -> tuple[str, str, str]:
    """Return code, clause and place of a refused rule set."""
    with pytest.raises(DocumentRefused) as refused:
        read_ruleset(value)
    return refused.value.fault.value, refused.value.clause, refused.value.field


@pytest.mark.clause("R148")
def test_overrides_come_first_then_content_then_underrides() -> None:
    """Whatever the order in which the kinds were written; within a kind the written order counts."""
    names = ["underride.a", "content.b", "override.c", "content.a", "override.a", "underride.b"]
    rules = read_ruleset({"rules": [rule(name) for name in names]}).rules

    assert [each.rule_id for each in rules] == [
        "override.c",
        "override.a",
        "content.b",
        "content.a",
        "underride.a",
        "underride.b",
    ]


@given(
    st.permutations([("override", 0), ("override", 1), ("content", 0), ("underride", 0), ("underride", 1)])
)
@pytest.mark.clause("R148")
def test_how_the_kinds_are_mixed_in_the_document_changes_nothing(mixed: list[tuple[str, int]]) -> None:
    """Only the order within each kind is the user's."""
    written = {kind.value: [place for name, place in mixed if name == kind] for kind in Kind}
    rules = read_ruleset({"rules": [rule(f"{kind}.{place}") for kind, place in mixed]}).rules
    expected = [f"{kind}.{place}" for kind, places in written.items() for place in places]

    assert [each.rule_id for each in rules] == expected


def test_what_may_be_left_out_has_its_default() -> None:
    """A rule is enabled, asks nothing and does nothing unless it says so."""
    read = read_rule(rule(enabled=None, conditions=None, actions=None))

    assert (read.enabled, read.conditions, read.actions, read.effect) == (True, (), (), SILENT)


@pytest.mark.parametrize("locus", ["server", "Client", "", None, 1, ["client"]])
@pytest.mark.clause("R150", "R151", "R202")
def test_a_rule_that_is_not_for_the_client_is_refused(locus: object) -> None:
    """Also one that does not say where it is to be evaluated."""
    value = {"rules": [rule("content.one"), rule("content.two", evaluation_locus=locus)]}

    assert refusal(value) == ("unsupported_feature", "R151", "rules[1].evaluation_locus")


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, ""),
        ([], ""),
        ({}, "rules"),
        ({"rules": None}, "rules"),
        ({"rules": {}}, "rules"),
        ({"rules": [], "dnd": 1}, "dnd"),
        ({"rules": [None]}, "rules[0]"),
        ({"rules": [rule() | {"rule_id": None}]}, "rules[0].rule_id"),
        ({"rules": [rule() | {"rule_id": ""}]}, "rules[0].rule_id"),
        ({"rules": [rule() | {"rule_id": "r" * 129}]}, "rules[0].rule_id"),
        ({"rules": [rule() | {"rule_id": 7}]}, "rules[0].rule_id"),
        ({"rules": [rule(kind="room")]}, "rules[0].kind"),
        ({"rules": [rule(kind=["override"])]}, "rules[0].kind"),
        ({"rules": [rule(enabled=1)]}, "rules[0].enabled"),
        ({"rules": [rule(note="x")]}, "rules[0].note"),
        ({"rules": [rule() | {"ü x": 1}]}, "rules[0]"),
        ({"rules": [rule(actions="notify")]}, "rules[0].actions"),
        ({"rules": [rule(actions=["notify", "ring"])]}, "rules[0].actions[1]"),
        ({"rules": [rule(actions=[{}])]}, "rules[0].actions[0]"),
        ({"rules": [rule(conditions={})]}, "rules[0].conditions"),
        ({"rules": [rule(conditions=[FIELD] * (CONDITIONS_MAX + 1))]}, "rules[0].conditions"),
        ({"rules": [rule()] * (RULES_MAX + 1)}, "rules"),
    ],
)
@pytest.mark.clause("R146", "R148", "R198")
def test_what_has_not_the_shape_of_rules_is_refused_by_name(value: object, field: str) -> None:
    """Each refusal says where."""
    code, clause, place = refusal(value)

    assert (code, place) == ("schema_violation", field)
    assert clause.startswith("R")


@pytest.mark.clause("R346")
def test_one_name_cannot_stand_for_two_rules() -> None:
    """An exception of the quiet hours would not know which it means."""
    value = {"rules": [rule("content.one"), rule("content.one", kind="override")]}

    assert refusal(value) == ("param_invalid", "R346", "rules[1].rule_id")


def test_a_refusal_repeats_nothing_of_the_document() -> None:
    """A keyword is private, also in an error that a person sends on."""
    value = {"rules": [rule("content.secret", {"kind": "contains_keyword", "pattern": "", "secret1": 1})]}
    with pytest.raises(DocumentRefused) as refused:
        read_ruleset(value)

    assert "content.secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("actions", "effect"),
    [
        ([], SILENT),
        (["notify"], PLAIN),
        (["dont_notify"], SILENT),
        (["notify", "dont_notify"], SILENT),
        (["dont_notify", "notify", "highlight"], SILENT),
        (["sound_critical", "highlight"], SILENT),
        (["notify", "sound_default"], Effect(notify=True, sound=Sound.DEFAULT)),
        (["sound_critical", "sound_default", "notify"], Effect(notify=True, sound=Sound.CRITICAL)),
        (["highlight", "notify"], Effect(notify=True, highlight=True)),
        (["notify", "notify"], PLAIN),
    ],
)
@pytest.mark.clause("R198")
def test_actions_come_to_one_effect(actions: list[str], effect: Effect) -> None:
    """A mute beats everything beside it, and without notify there is nothing to hear or see."""
    assert read_rule(rule(actions=actions)).effect == effect


def test_of_a_damaged_set_the_sound_rules_are_saved() -> None:
    """In their order, with what is wrong with the others."""
    saved = salvage(
        {
            "rules": [
                rule("underride.mention", MENTION),
                rule("content.broken", {"kind": "sorcery"}),
                rule("override.mute", FIELD, actions=["dont_notify"]),
                rule("override.mute", KEYWORD),
            ]
        }
    )

    assert [each.rule_id for each in saved.ruleset.rules] == ["override.mute", "underride.mention"]
    assert [each.field for each in saved.refusals] == ["rules[1].conditions[0].kind", "rules[3].rule_id"]


def test_silence_for_everything_is_not_saved_where_a_rule_was_lost() -> None:
    """The lost rule may have been what kept the person from missing something."""
    rules = [rule("content.urgent", {"kind": "sorcery"}), rule("underride.rest", actions=["dont_notify"])]

    assert salvage({"rules": rules}).ruleset.rules == ()
    assert [each.rule_id for each in salvage({"rules": rules[1:]}).ruleset.rules] == ["underride.rest"]


@given(JSON)
def test_whatever_a_document_holds_it_is_read_or_refused(value: Any) -> None:
    """By name, and salvage takes it too."""
    for document in (value, {"rules": value}, {"rules": [value]}, {"rules": [rule(conditions=value)]}):
        saved = salvage(document)
        with contextlib.suppress(DocumentRefused):
            assert read_ruleset(document) == saved.ruleset
            assert saved.refusals == ()
            continue

        assert all(refused.clause for refused in saved.refusals)
        assert saved.refusals
