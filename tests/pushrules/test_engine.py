"""The engine: order, the first match, three answers, and the trace of why."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.engine import Because, Decision, Skipped, Truth, evaluate, judge


@dataclass(frozen=True)
class Says:
    """A condition that answers what the subject holds for it."""

    name: str
    asked: list[str] = field(default_factory=list, compare=False)

    def holds(self, subject: dict[str, Truth], /) -> Truth:
        self.asked.append(self.name)
        return subject[self.name]


@dataclass(frozen=True)
class Plain:
    rule_id: str
    conditions: tuple[Says, ...] = ()
    enabled: bool = True


SUBJECT = {"yes": Truth.YES, "no": Truth.NO, "unknown": Truth.INDETERMINATE}
YES, NO, UNKNOWN = Says("yes"), Says("no"), Says("unknown")


def test_a_known_fact_is_yes_or_no() -> None:
    """Only what cannot be told is indeterminate."""
    assert (Truth.of(fact=True), Truth.of(fact=False)) == (Truth.YES, Truth.NO)


def test_a_rule_without_conditions_always_holds() -> None:
    """Nothing is asked of it, so nothing can speak against it."""
    rule = Plain("always")

    assert evaluate([rule], SUBJECT) == Decision(rule, ())


@pytest.mark.clause("M042")
def test_the_first_rule_that_holds_decides() -> None:
    """Later rules are not consulted, even when they hold too."""
    rules = [Plain("a", (NO,)), Plain("b", (YES,)), Plain("c", (YES,))]

    decision = evaluate(rules, SUBJECT)

    assert decision == Decision(rules[1], (Skipped(rules[0], Because.DOES_NOT_HOLD, 0),))


@pytest.mark.clause("M042")
def test_rules_behind_the_match_are_not_asked() -> None:
    """Their conditions see nothing of the subject."""
    late = Says("yes", [])

    evaluate([Plain("a", (YES,)), Plain("b", (late,))], SUBJECT)

    assert late.asked == []


@pytest.mark.clause("M042")
def test_a_disabled_rule_never_holds() -> None:
    """It is passed over without being asked."""
    off, on = Plain("off", (), enabled=False), Plain("on")

    decision = evaluate([off, on], SUBJECT)

    assert decision == Decision(on, (Skipped(off, Because.DISABLED),))


def test_a_rule_that_cannot_tell_is_passed_over_and_says_so() -> None:
    """Indeterminate neither allows nor forbids: the next rule is asked."""
    vague, sure = Plain("vague", (YES, UNKNOWN)), Plain("sure")

    decision = evaluate([vague, sure], SUBJECT)

    assert decision == Decision(sure, (Skipped(vague, Because.INDETERMINATE, 1),))


def test_one_no_settles_a_rule_that_otherwise_cannot_tell() -> None:
    """Whatever the unknown fact is, the rule does not hold."""
    assert judge((UNKNOWN, NO), SUBJECT) == (Truth.NO, 1)


def test_the_first_condition_that_cannot_tell_is_the_one_named() -> None:
    """The trace points at one place."""
    assert judge((YES, UNKNOWN, UNKNOWN), SUBJECT) == (Truth.INDETERMINATE, 1)


def test_no_rule_at_all_decides_nothing() -> None:
    """What that means is for the dialect to say."""
    assert evaluate([], SUBJECT) == Decision(None, ())


@given(
    st.lists(
        st.builds(
            Plain,
            rule_id=st.text(max_size=3),
            conditions=st.lists(st.sampled_from([YES, NO, UNKNOWN]), max_size=3).map(tuple),
            enabled=st.booleans(),
        ),
        max_size=8,
    )
)
def test_the_trace_names_every_rule_before_the_match(rules: list[Plain]) -> None:
    """In order, once; and the match is the first that is enabled and of which every condition says yes."""
    holding = [rule for rule in rules if rule.enabled and set(rule.conditions) <= {YES}]

    decision = evaluate(rules, SUBJECT)

    passed_over = len(decision.skipped)
    assert [skipped.rule for skipped in decision.skipped] == rules[:passed_over]
    assert decision.rule is (rules[passed_over] if passed_over < len(rules) else None)
    assert (decision.rule is None) == (not holding)
    assert not holding or decision.rule is holding[0]
