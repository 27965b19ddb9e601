"""Reading a rule that a user wrote, and showing it again."""

from typing import Any

import pytest

from heliograph.pushrules.matrix.refusal import Fault, RuleRefused
from heliograph.pushrules.matrix.rule import CONDITIONS_MAX, Kind, read_rule
from heliograph.pushrules.matrix.ruleset import Ruleset
from tests.pushrules.matrix.make import CAROL, ROOM, decide, event, message, own, told

CONDITION = {"kind": "event_match", "key": "type", "pattern": "X", "more": [1, 1.0, True, None, {"a": "b"}]}


@pytest.mark.clause("M004")
@pytest.mark.parametrize(
    ("kind", "rule_id", "asks"),
    [
        (Kind.OVERRIDE, "o", {"conditions": [CONDITION, {"kind": "org.example.x", "any": "thing"}]}),
        (Kind.UNDERRIDE, "u ü 🎉", {"conditions": []}),
        (Kind.CONTENT, "c", {"pattern": "KeyWord*"}),
        (Kind.ROOM, ROOM, {}),
        (Kind.SENDER, CAROL, {}),
    ],
)
def test_a_rule_is_shown_as_it_was_written(kind: Kind, rule_id: str, asks: dict[str, Any]) -> None:
    """With what is not known to us; and with the four members that every rule has."""
    actions = ["notify", {"set_tweak": "sound", "value": "ring"}, "dont_notify"]

    document = read_rule(kind, rule_id, {"actions": actions, **asks}).document()

    assert document == {"rule_id": rule_id, "default": False, "enabled": True, "actions": actions, **asks}


def test_what_a_kind_does_not_ask_is_not_kept() -> None:
    """A room rule has no conditions, whatever a client sends."""
    body = {"actions": [], "conditions": [CONDITION], "pattern": "x", "enabled": False, "more": 5}

    assert read_rule(Kind.ROOM, ROOM, body).document() == {
        "rule_id": ROOM,
        "default": False,
        "enabled": True,
        "actions": [],
    }


@pytest.mark.parametrize("kind", [Kind.ROOM, Kind.SENDER])
@pytest.mark.parametrize("rule_id", ["!*:test", "!ROOM:test", "*", "@carol:*", "@CAROL:test", "!room:test "])
def test_the_id_of_a_room_or_sender_rule_is_compared_exactly(kind: Kind, rule_id: str) -> None:
    """It is no pattern, and its case counts."""
    assert told(decide(message(), Ruleset((own(kind, rule_id, actions=[]),))))[0] == ".m.rule.message"


@pytest.mark.parametrize(("kind", "rule_id"), [(Kind.ROOM, ROOM), (Kind.SENDER, CAROL)])
def test_a_room_or_a_sender_can_be_muted(kind: Kind, rule_id: str) -> None:
    """By its very id."""
    assert told(decide(message(), Ruleset((own(kind, rule_id, actions=[]),)))) == (rule_id, False, {})


@pytest.mark.parametrize("content", [{}, {"body": None}, {"body": ["cake"]}, {"body": "no pie"}], ids=repr)
def test_a_content_rule_needs_a_body_with_its_word(content: dict[str, Any]) -> None:
    """A lone star asks for a body of any kind, but for a body."""
    ruleset = Ruleset((own(Kind.CONTENT, "cake", pattern="cake"),))

    assert told(decide(event(content=content), ruleset))[0] == ".m.rule.message"
    assert told(decide(event("org.example.x", {"body": "Cake!"}), ruleset))[0] == "cake"


@pytest.mark.parametrize(
    ("kind", "rule_id", "document", "fault", "field"),
    [
        (Kind.ROOM, "", {"actions": []}, Fault.INVALID, "rule_id"),
        (Kind.ROOM, ".m.rule.master", {"actions": []}, Fault.INVALID, "rule_id"),
        (Kind.ROOM, ".mine", {"actions": []}, Fault.INVALID, "rule_id"),
        (Kind.ROOM, "a/b", {"actions": []}, Fault.INVALID, "rule_id"),
        (Kind.ROOM, "a\\b", {"actions": []}, Fault.INVALID, "rule_id"),
        (Kind.ROOM, "é" * 128, {"actions": []}, Fault.TOO_LARGE, "rule_id"),
        (Kind.ROOM, "r", [], Fault.INVALID, ""),
        (Kind.ROOM, "r", None, Fault.INVALID, ""),
        (Kind.ROOM, "r", {}, Fault.MISSING, "actions"),
        (Kind.ROOM, "r", {"actions": "notify"}, Fault.INVALID, "actions"),
        (Kind.CONTENT, "r", {"actions": []}, Fault.MISSING, "pattern"),
        (Kind.CONTENT, "r", {"actions": [], "pattern": 5}, Fault.INVALID, "pattern"),
        (Kind.CONTENT, "r", {"actions": [], "pattern": None}, Fault.INVALID, "pattern"),
        (Kind.CONTENT, "r", {"actions": [], "pattern": "x" * 1_025}, Fault.TOO_LARGE, "pattern"),
        (Kind.OVERRIDE, "r", {"actions": []}, Fault.MISSING, "conditions"),
        (Kind.UNDERRIDE, "r", {"actions": [], "conditions": {}}, Fault.INVALID, "conditions"),
        (Kind.UNDERRIDE, "r", {"actions": [], "conditions": [{}]}, Fault.MISSING, "conditions[0].kind"),
        (
            Kind.OVERRIDE,
            "r",
            {"actions": [], "conditions": [CONDITION] * (CONDITIONS_MAX + 1)},
            Fault.TOO_LARGE,
            "conditions",
        ),
        (
            Kind.OVERRIDE,
            "r",
            {
                "actions": [{"set_tweak": "x", "value": "x" * 40_000}],
                "conditions": [{"kind": "org.example", "x": "x" * 40_000}],
            },
            Fault.TOO_LARGE,
            "",
        ),
    ],
    ids=[str(number) for number in range(19)],
)
def test_a_rule_that_is_not_formed_as_it_must_be_is_refused(
    kind: Kind, rule_id: str, document: Any, fault: Fault, field: str
) -> None:
    """With the kind of trouble and the place."""
    with pytest.raises(RuleRefused) as refused:
        read_rule(kind, rule_id, document)

    assert (refused.value.fault, refused.value.field) == (fault, field)


def test_a_rule_may_be_as_large_as_its_limits() -> None:
    """255 bytes of id, 1024 of pattern, 64 conditions."""
    body = {"actions": [], "conditions": [{"kind": "event_match", "key": "a", "pattern": "x" * 900}] * 64}

    assert len(read_rule(Kind.OVERRIDE, "é" * 127, body).conditions) == 64


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, 1.0), ("1", 1)], ids=repr)
def test_rules_that_differ_in_a_type_alone_are_different(one: Any, other: Any) -> None:
    """Or one member's rule would be taken for another's."""
    rules = [
        own(Kind.OVERRIDE, conditions=[{"kind": "event_property_is", "key": "content.x", "value": value}])
        for value in (one, other)
    ]

    assert rules[0] != rules[1]
