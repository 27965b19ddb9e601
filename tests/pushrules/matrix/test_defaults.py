"""The predefined rules: which there are, in which order, what each does, and how a user sees them."""

from typing import Any

import pytest

from heliograph.pushrules.matrix.defaults import BY_ID, MASTER, predefined
from heliograph.pushrules.matrix.dialect import Dialect
from heliograph.pushrules.matrix.evaluation import Person
from heliograph.pushrules.matrix.power import PowerLevels
from heliograph.pushrules.matrix.rule import Kind
from heliograph.pushrules.matrix.ruleset import UNTOUCHED, Ruleset, shown
from tests.pushrules.matrix.make import BOB, decide, event, facts, message, own, told
from tests.shared import shared_json

MODERN = Dialect(legacy_mentions=False)
LOUD = {"sound": "default"}
BRIGHT = {"highlight": True}
MODERATOR = PowerLevels({"users": {"@carol:test": 50}})


def listed(document: dict[str, Any]) -> dict[str, list[str]]:
    return {kind: [rule["rule_id"] for rule in rules] for kind, rules in document["global"].items()}


@pytest.mark.clause("M005", "M031", "M046", "M047", "M048", "M049", "M050", "M078")
def test_the_predefined_rules_stand_in_the_order_of_the_text() -> None:
    """Eighteen of them, none of kind room or sender."""
    assert listed(shown(UNTOUCHED, BOB)) == {
        "override": [
            ".m.rule.master",
            ".m.rule.suppress_notices",
            ".m.rule.invite_for_me",
            ".m.rule.member_event",
            ".m.rule.is_user_mention",
            ".m.rule.contains_display_name",
            ".m.rule.is_room_mention",
            ".m.rule.roomnotif",
            ".m.rule.tombstone",
            ".m.rule.reaction",
            ".m.rule.room.server_acl",
            ".m.rule.suppress_edits",
        ],
        "content": [".m.rule.contains_user_name"],
        "room": [],
        "sender": [],
        "underride": [
            ".m.rule.call",
            ".m.rule.encrypted_room_one_to_one",
            ".m.rule.room_one_to_one",
            ".m.rule.message",
            ".m.rule.encrypted",
        ],
    }


@pytest.mark.clause("M005", "M032")
@pytest.mark.parametrize(
    ("dialect", "name"),
    [(Dialect(), "spec_1_16_with_legacy_mentions"), (MODERN, "spec_1_19")],
    ids=["with the rules that guess", "without"],
)
def test_a_user_sees_the_published_rules(dialect: Dialect, name: str) -> None:
    """Word for word, with their own id and local part where they are asked about."""
    published = shared_json("spec/matrix/default_rules.json")[name]
    rules = {
        kind: [
            {
                member: _filled(value) if member in {"conditions", "pattern"} else value
                for member, value in rule.items()
            }
            for rule in rules
        ]
        for kind, rules in published.items()
    }

    assert shown(UNTOUCHED, BOB, dialect) == {"global": rules}


def _filled(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("{USER_ID}", BOB).replace("{LOCALPART}", "bob")
    if isinstance(value, list):
        return [_filled(item) for item in value]
    return {name: _filled(item) for name, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.clause("M060", "M079")
def test_the_master_rule_is_there_and_off() -> None:
    """It has no condition and no action."""
    master = BY_ID[Kind.OVERRIDE, MASTER]

    assert predefined(Dialect())[0] is master
    assert (master.enabled, master.conditions, master.actions.notify, master.actions.tweaks) == (
        False,
        (),
        False,
        {},
    )


def test_every_other_predefined_rule_is_on() -> None:
    """A fresh user misses no notification."""
    assert [rule.rule_id for rule in predefined(Dialect()) if not rule.enabled] == [MASTER]


def member(membership: str, state_key: str) -> dict[str, Any]:
    return event("m.room.member", {"membership": membership}, state_key=state_key)


EDIT = {"rel_type": "m.replace", "event_id": "$x"}

EVENTS: list[tuple[str, dict[str, Any], int, tuple[str | None, bool, dict[str, Any]]]] = [
    ("notice", event(content={"msgtype": "m.notice", "body": "bob"}), 3, ("suppress_notices", False, {})),
    ("my invite", member("invite", BOB), 3, ("invite_for_me", True, LOUD)),
    ("another's invite", member("invite", "@x:test"), 3, ("member_event", False, {})),
    ("my leave", member("leave", BOB), 3, ("member_event", False, {})),
    ("mention", message(m_mentions={"user_ids": [BOB]}), 3, ("is_user_mention", True, LOUD | BRIGHT)),
    ("another's mention", message("x", m_mentions={"user_ids": ["@x:t"]}), 3, ("message", True, {})),
    ("display name", message("hey Robert"), 3, ("contains_display_name", True, LOUD | BRIGHT)),
    ("room mention", message(m_mentions={"room": True}), 3, ("is_room_mention", True, BRIGHT)),
    ("senseless room mention", message(m_mentions={"room": 1}), 3, ("message", True, {})),
    ("@room", message("@room hi"), 3, ("roomnotif", True, BRIGHT)),
    ("tombstone", event("m.room.tombstone", {}, state_key=""), 3, ("tombstone", True, BRIGHT)),
    ("stateless tombstone", event("m.room.tombstone", {}), 3, (None, False, {})),
    ("reaction", event("m.reaction", {}), 2, ("reaction", False, {})),
    ("acl", event("m.room.server_acl", {}, state_key=""), 3, ("room.server_acl", False, {})),
    ("keyed acl", event("m.room.server_acl", {}, state_key="x"), 3, (None, False, {})),
    ("edit", message("* hello", m_relates_to=EDIT), 2, ("suppress_edits", False, {})),
    ("user name", message("ask bob"), 3, ("contains_user_name", True, LOUD | BRIGHT)),
    ("call", event("m.call.invite", {}), 2, ("call", True, {"sound": "ring"})),
    ("secret for two", event("m.room.encrypted", {}), 2, ("encrypted_room_one_to_one", True, LOUD)),
    ("message for two", message(), 2, ("room_one_to_one", True, LOUD)),
    ("message", message(), 3, ("message", True, {})),
    ("secret", event("m.room.encrypted", {}), 3, ("encrypted", True, {})),
    ("topic", event("m.room.topic", {"topic": "bob"}, state_key=""), 3, (None, False, {})),
]


@pytest.mark.clause(
    "M061", "M062", "M063", "M064", "M065", "M066", "M067", "M068", "M069", "M070", "M071", "M072", "M073"
)
@pytest.mark.clause("M074", "M075", "M076", "M077")
@pytest.mark.parametrize(
    ("document", "joined", "expected"), [row[1:] for row in EVENTS], ids=[row[0] for row in EVENTS]
)
def test_each_predefined_rule_does_what_it_is_for(
    document: dict[str, Any], joined: int, expected: tuple[str | None, bool, dict[str, Any]]
) -> None:
    """Asked of Bob, who never touched a rule, in a room whose sender may notify it."""
    name, notify, tweaks = expected

    decision = decide(document, room=facts(joined, MODERATOR))

    assert told(decision) == (name and f".m.rule.{name}", notify, tweaks)


@pytest.mark.clause("M066", "M067")
@pytest.mark.parametrize(
    "document", [message(m_mentions={"room": True}), message("@room hi")], ids=["new", "old"]
)
def test_who_may_not_notify_the_room_mentions_nobody(document: dict[str, Any]) -> None:
    """The message is a message like any other."""
    assert told(decide(document)) == (".m.rule.message", True, {})


@pytest.mark.clause("M080", "M081", "M082", "M083")
@pytest.mark.parametrize("mentions", [{}, None, [], "x", 5, False, {"user_ids": ["@x:test"]}], ids=repr)
@pytest.mark.parametrize("body", ["hey Robert", "ask bob", "@room hi"])
def test_where_an_event_says_whom_it_mentions_no_rule_guesses(mentions: Any, body: str) -> None:
    """The property need only be there, whatever it holds."""
    decision = decide(message(body, m_mentions=mentions), room=facts(3, MODERATOR))

    assert told(decision) == (".m.rule.message", True, {})


@pytest.mark.clause("M080", "M081", "M082")
def test_only_the_predefined_rules_are_skipped_then() -> None:
    """A user's own rules for the same words still match."""
    keyword = own(Kind.CONTENT, pattern="bob")
    named = own(Kind.OVERRIDE, conditions=[{"kind": "contains_display_name"}])

    assert told(decide(message("bob", m_mentions={}), Ruleset((keyword,)))) == ("mine", True, {})
    assert told(decide(message("Robert", m_mentions={}), Ruleset((named,)))) == ("mine", True, {})


@pytest.mark.parametrize("body", ["hey Robert", "ask bob", "@room hi"])
def test_an_operator_may_do_without_the_rules_that_guess(body: str) -> None:
    """As the specification does since version 1.17."""
    decision = decide(message(body), room=facts(3, MODERATOR), dialect=MODERN)

    assert told(decision) == (".m.rule.message", True, {})


@pytest.mark.clause("M062", "M064", "M072")
@pytest.mark.parametrize("user_id", ["@*:test", "@b?b:test", "@BOB:test"])
def test_a_user_id_is_no_pattern_and_is_compared_exactly(user_id: str) -> None:
    """Nobody is invited, mentioned or called in another's place."""
    person = Person(user_id)

    assert told(decide(member("invite", BOB), person=person))[0] == ".m.rule.member_event"
    assert told(decide(message(m_mentions={"user_ids": [BOB]}), person=person))[0] == ".m.rule.message"
    assert told(decide(message("any word"), person=person))[0] == ".m.rule.message"


@pytest.mark.clause("M072")
@pytest.mark.parametrize("user_id", ["bob", "@bob", "bob:test", "@:test", "", ":"])
def test_what_is_no_user_id_has_no_local_part(user_id: str) -> None:
    """So nothing in a body calls them, and nothing breaks."""
    assert told(decide(message("bob : @"), person=Person(user_id)))[0] == ".m.rule.message"


def test_a_user_rule_cannot_ask_about_the_person_as_predefined_rules_do() -> None:
    """What stands for the user id in our own file means nothing in a rule that a user writes."""
    asked = [
        {"kind": "event_match", "key": "state_key", "pattern": {"of": "user_id"}},
        {"kind": "event_match", "key": "state_key", "pattern_type": "user_id"},
    ]
    rules = tuple(own(Kind.OVERRIDE, f"r{place}", conditions=[ask]) for place, ask in enumerate(asked))
    ruleset = Ruleset(rules)

    assert told(decide(member("invite", BOB), ruleset))[0] == ".m.rule.invite_for_me"
    assert shown(ruleset, BOB)["global"]["override"][1]["conditions"] == [asked[0]]
