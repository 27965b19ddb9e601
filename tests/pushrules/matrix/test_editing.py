"""Changes of a user's rules: where a rule goes, what it keeps, what is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.matrix import editing
from heliograph.pushrules.matrix.actions import read_actions
from heliograph.pushrules.matrix.refusal import Fault, RuleRefused
from heliograph.pushrules.matrix.rule import Kind, Rule
from heliograph.pushrules.matrix.ruleset import RULES_MAX, UNTOUCHED, Ruleset
from tests.pushrules.matrix.make import own
from tests.pushrules.matrix.strategies import RULESETS, own_rules


def keyword(name: str, pattern: str = "x") -> Ruleset:
    return editing.put(UNTOUCHED, own(Kind.CONTENT, name, pattern=pattern))


def three() -> Ruleset:
    """Make a ruleset whose content rules are a, b, c, and that has an override beside them."""
    return Ruleset(
        (
            own(Kind.OVERRIDE, "a"),
            *(own(Kind.CONTENT, name, pattern=name, enabled=name != "b") for name in "abc"),
        )
    )


def names(ruleset: Ruleset, kind: Kind = Kind.CONTENT) -> str:
    return "".join(rule.rule_id for rule in ruleset.of_kind(kind))


@pytest.mark.clause("M051")
def test_a_new_rule_goes_first_among_the_own_rules_of_its_kind() -> None:
    """And is enabled."""
    ruleset = editing.put(three(), own(Kind.CONTENT, "d", pattern="d"))

    assert names(ruleset) == "dabc"
    assert ruleset.of_kind(Kind.CONTENT)[0].enabled


@pytest.mark.clause("M052", "M053")
def test_a_replaced_rule_keeps_its_place_and_stays_as_enabled_as_it_was() -> None:
    """It only asks and does something else."""
    ruleset = editing.put(three(), own(Kind.CONTENT, "b", pattern="new", actions=[]))

    assert names(ruleset) == "abc"
    assert ruleset.of_kind(Kind.CONTENT)[1] == own(
        Kind.CONTENT, "b", pattern="new", actions=[], enabled=False
    )


@pytest.mark.clause("M058", "M059")
@pytest.mark.parametrize(
    ("name", "before", "after", "order"),
    [
        ("d", "b", None, "adbc"),
        ("d", None, "b", "abdc"),
        ("d", "a", None, "dabc"),
        ("d", None, "c", "abcd"),
        ("d", "a", "c", "dabc"),
        ("a", "c", None, "bac"),
        ("a", None, "c", "bca"),
        ("c", "a", None, "cab"),
        ("c", None, "a", "acb"),
        ("b", "b", None, "abc"),
        ("b", None, "b", "abc"),
    ],
)
def test_a_rule_goes_directly_next_to_the_neighbour_that_is_named(
    name: str, before: str | None, after: str | None, order: str
) -> None:
    """New or moved; with both named ``before`` wins, and next to itself it stays."""
    ruleset = editing.put(three(), own(Kind.CONTENT, name, pattern="x"), before=before, after=after)

    assert names(ruleset) == order
    assert [rule.enabled for rule in ruleset.own if rule.rule_id == "b"] == [False]


@pytest.mark.clause("M054", "M055")
@pytest.mark.parametrize("neighbour", [".m.rule.contains_user_name", "z", "d", ""])
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_neighbour_must_be_an_own_rule_of_the_same_kind(neighbour: str, side: str) -> None:
    """Not a predefined one, not one that is not there, not the new rule itself."""
    with pytest.raises(RuleRefused) as refused:
        editing.put(three(), own(Kind.CONTENT, "d", pattern="d"), **{side: neighbour})

    assert (refused.value.fault, refused.value.field) == (Fault.UNKNOWN_RULE, side)


@pytest.mark.clause("M054", "M055")
def test_a_rule_of_another_kind_is_no_neighbour() -> None:
    """Ids are unique within their kind only."""
    with pytest.raises(RuleRefused):
        editing.put(three(), own(Kind.OVERRIDE, "d"), before="b")

    assert names(editing.put(three(), own(Kind.OVERRIDE, "d"), after="a"), Kind.OVERRIDE) == "ad"


def test_the_same_id_in_two_kinds_is_two_rules() -> None:
    """What is done to one leaves the other alone."""
    ruleset = editing.set_enabled(three(), Kind.OVERRIDE, "a", enabled=False)
    ruleset = editing.delete(ruleset, Kind.CONTENT, "a")

    assert (names(ruleset, Kind.OVERRIDE), names(ruleset)) == ("a", "bc")


def test_a_rule_that_is_deleted_and_made_again_is_enabled() -> None:
    """Nothing of the old one is remembered."""
    ruleset = editing.set_enabled(keyword("k"), Kind.CONTENT, "k", enabled=False)

    ruleset = editing.put(editing.delete(ruleset, Kind.CONTENT, "k"), own(Kind.CONTENT, "k", pattern="x"))

    assert ruleset.own[0].enabled


@pytest.mark.parametrize(("kind", "name"), [(Kind.CONTENT, "z"), (Kind.OVERRIDE, "b")])
def test_a_rule_that_is_not_there_cannot_be_changed(kind: Kind, name: str) -> None:
    """Nor found, nor deleted."""
    for refuse in (
        lambda: editing.find(three(), kind, name),
        lambda: editing.delete(three(), kind, name),
        lambda: editing.set_enabled(three(), kind, name, enabled=True),
        lambda: editing.set_actions(three(), kind, name, read_actions([])),
    ):
        with pytest.raises(RuleRefused) as refused:
            refuse()

        assert refused.value.fault is Fault.UNKNOWN_RULE


def test_a_predefined_rule_can_be_changed_but_not_deleted() -> None:
    """Its enabled flag and its actions are the user's."""
    kind, name = Kind.UNDERRIDE, ".m.rule.message"
    ruleset = editing.set_enabled(three(), kind, name, enabled=False)
    ruleset = editing.set_actions(ruleset, kind, name, read_actions(["notify", {"set_tweak": "highlight"}]))

    found = editing.find(ruleset, kind, name)
    with pytest.raises(RuleRefused) as refused:
        editing.delete(ruleset, kind, name)

    assert (found.enabled, found.default, found.actions.tweaks) == (False, True, {"highlight": True})
    assert refused.value.fault is Fault.UNKNOWN_RULE


def test_changing_a_predefined_rule_back_leaves_no_trace() -> None:
    """Its owner counts again as one who never changed a rule."""
    kind, name = Kind.OVERRIDE, ".m.rule.master"
    on = editing.set_enabled(UNTOUCHED, kind, name, enabled=True)
    loud = editing.set_actions(on, kind, name, read_actions(["notify"]))
    quiet = editing.set_actions(loud, kind, name, read_actions([]))

    assert quiet == on
    assert editing.set_enabled(quiet, kind, name, enabled=False) == UNTOUCHED


def test_actions_of_an_own_rule_can_be_changed() -> None:
    """And nothing else changes with them."""
    ruleset = editing.set_actions(three(), Kind.CONTENT, "b", read_actions([]))

    assert ruleset.of_kind(Kind.CONTENT)[1] == replace(
        three().of_kind(Kind.CONTENT)[1], actions=read_actions([])
    )


def test_a_user_may_write_a_thousand_rules() -> None:
    """One more is refused; replacing one of them is not."""
    rules = tuple(own(Kind.CONTENT, f"r{number}", pattern="x") for number in range(RULES_MAX))
    full = Ruleset(rules)

    with pytest.raises(RuleRefused) as refused:
        editing.put(full, own(Kind.ROOM, "!one:more"))

    assert refused.value.fault is Fault.TOO_LARGE
    assert len(editing.put(full, own(Kind.CONTENT, "r7", pattern="y")).own) == RULES_MAX


@given(RULESETS, own_rules(), st.data())
def test_an_edit_leaves_every_other_rule_in_its_order(
    ruleset: Ruleset, rule: Rule, data: st.DataObject
) -> None:
    """Whatever is put wherever."""
    neighbours = [None, *(other.rule_id for other in ruleset.of_kind(rule.kind))]
    before = data.draw(st.sampled_from(neighbours))

    edited = editing.put(ruleset, rule, before=before, after=data.draw(st.sampled_from(neighbours)))

    key = (rule.kind, rule.rule_id)
    assert [each for each in edited.own if (each.kind, each.rule_id) != key] == [
        each for each in ruleset.own if (each.kind, each.rule_id) != key
    ]
    assert editing.delete(edited, *key).own == tuple(
        each for each in ruleset.own if (each.kind, each.rule_id) != key
    )
    assert edited.changes == ruleset.changes
