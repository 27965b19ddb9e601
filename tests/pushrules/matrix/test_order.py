"""The order in which rules are asked: kinds, users' own before the predefined, the master before all."""

import pytest

from heliograph.pushrules.engine import Because, Decision
from heliograph.pushrules.matrix import editing
from heliograph.pushrules.matrix.rule import Kind
from heliograph.pushrules.matrix.ruleset import UNTOUCHED, Ruleset, merged
from tests.pushrules.matrix.make import BOB, BOB_IN_ROOM, ROOM, decide, message, own, told

OWN = Ruleset(
    tuple(
        own(kind, rule_id, pattern="hello", enabled=False)
        for kind, rule_id in [
            (Kind.OVERRIDE, "o1"),
            (Kind.OVERRIDE, "o2"),
            (Kind.CONTENT, "c1"),
            (Kind.ROOM, ROOM),
            (Kind.SENDER, "@carol:test"),
            (Kind.UNDERRIDE, "u1"),
        ]
    )
)


@pytest.mark.clause("M041", "M043", "M044", "M046", "M047", "M048", "M049", "M050")
def test_own_rules_stand_before_the_predefined_of_their_kind() -> None:
    """And the master rule before everything."""
    asked = [(rule.kind.value, rule.rule_id.removeprefix(".m.rule.")) for rule in merged(OWN)]

    assert asked == [
        ("override", "master"),
        ("override", "o1"),
        ("override", "o2"),
        ("override", "suppress_notices"),
        ("override", "invite_for_me"),
        ("override", "member_event"),
        ("override", "is_user_mention"),
        ("override", "contains_display_name"),
        ("override", "is_room_mention"),
        ("override", "roomnotif"),
        ("override", "tombstone"),
        ("override", "reaction"),
        ("override", "room.server_acl"),
        ("override", "suppress_edits"),
        ("content", "c1"),
        ("content", "contains_user_name"),
        ("room", ROOM),
        ("sender", "@carol:test"),
        ("underride", "u1"),
        ("underride", "call"),
        ("underride", "encrypted_room_one_to_one"),
        ("underride", "room_one_to_one"),
        ("underride", "message"),
        ("underride", "encrypted"),
    ]


@pytest.mark.clause("M041", "M042", "M043")
def test_the_first_enabled_rule_that_holds_decides_kind_after_kind() -> None:
    """Every own rule holds for this message; as each goes off, the next in order decides."""
    ruleset = OWN
    for rule in OWN.own:
        ruleset = editing.set_enabled(ruleset, rule.kind, rule.rule_id, enabled=True)
    decided = []
    for rule in OWN.own:
        decided.append(told(decide(message(), ruleset))[0])
        ruleset = editing.set_enabled(ruleset, rule.kind, rule.rule_id, enabled=False)
    decided.append(told(decide(message(), ruleset))[0])

    assert decided == ["o1", "o2", "c1", ROOM, "@carol:test", "u1", ".m.rule.message"]


@pytest.mark.clause("M044", "M045")
def test_the_master_rule_silences_everything_once_it_is_on() -> None:
    """A user's own override that matches everything comes behind it."""
    ruleset = Ruleset((own(Kind.OVERRIDE),))
    silenced = editing.set_enabled(ruleset, Kind.OVERRIDE, ".m.rule.master", enabled=True)

    assert told(decide(message(), ruleset)) == ("mine", True, {})
    assert told(decide(message(m_mentions={"user_ids": [BOB]}), silenced)) == (".m.rule.master", False, {})


@pytest.mark.clause("M008", "M042")
def test_the_decision_says_why_the_rules_before_it_do_not_hold() -> None:
    """So a user can be told why a message was silent, or was not."""
    ruleset = Ruleset((own(Kind.OVERRIDE, conditions=[{"kind": "org.example.x"}]),))

    decision = decide(message(), ruleset)

    assert [(skipped.rule.rule_id, skipped.because) for skipped in decision.skipped[:3]] == [
        (".m.rule.master", Because.DISABLED),
        ("mine", Because.DOES_NOT_HOLD),
        (".m.rule.suppress_notices", Because.DOES_NOT_HOLD),
    ]
    assert len(decision.skipped) == 17
    assert decision.rule is not None


@pytest.mark.clause("M115")
def test_a_rule_with_a_condition_that_is_not_known_never_matches() -> None:
    """Though all its other conditions hold."""
    known = {"kind": "event_match", "key": "type", "pattern": "*"}
    rule = own(Kind.OVERRIDE, conditions=[known, {"kind": "org.example.x"}])

    assert told(decide(message(), Ruleset((rule,))))[0] == ".m.rule.message"


def test_nobody_is_notified_of_what_they_sent_themselves() -> None:
    """Not even by a rule that matches everything, or by mentioning themselves."""
    document = message(sender=BOB, m_mentions={"user_ids": [BOB]})

    assert decide(document, Ruleset((own(Kind.OVERRIDE),))) == Decision(None, ())


def test_a_rule_that_only_sets_tweaks_notifies_nobody() -> None:
    """It matches, and later rules are not asked."""
    rule = own(Kind.OVERRIDE, actions=[{"set_tweak": "highlight"}])

    assert told(decide(message(), Ruleset((rule,)))) == ("mine", False, {"highlight": True})


def test_the_same_message_for_the_same_person_always_comes_to_the_same() -> None:
    """A fresh user and one whose rules were read from nothing are alike."""
    assert decide(message(), UNTOUCHED) == decide(message(), Ruleset(), person=BOB_IN_ROOM)
