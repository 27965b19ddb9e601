"""Events, rules and people to test with; whatever a test does not name is ordinary."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heliograph.pushrules.engine import Decision, Truth, judge
from heliograph.pushrules.matrix.dialect import USUAL, Dialect
from heliograph.pushrules.matrix.evaluation import Person, evaluate
from heliograph.pushrules.matrix.event import Event
from heliograph.pushrules.matrix.power import PowerLevels
from heliograph.pushrules.matrix.rule import Kind, Rule, read_conditions, read_rule
from heliograph.pushrules.matrix.ruleset import UNTOUCHED, Ruleset, merged
from heliograph.pushrules.matrix.subject import RoomFacts, Subject, involvement

ROOM = "!room:test"
BOB = "@bob:test"
CAROL = "@carol:test"
BOB_IN_ROOM = Person(BOB, "Robert")

SOUND = {"set_tweak": "sound", "value": "default"}
HIGHLIGHT = {"set_tweak": "highlight"}


def event(
    event_type: str = "m.room.message", content: Any = None, *, sender: Any = CAROL, **members: Any
) -> dict[str, Any]:
    """Make an event that Carol sends."""
    return {
        "type": event_type,
        "sender": sender,
        "room_id": ROOM,
        "event_id": "$event",
        "origin_server_ts": 1,
        "content": {"msgtype": "m.text", "body": "hello there"} if content is None else content,
        **members,
    }


def message(body: Any = "hello there", *, sender: str = CAROL, **content: Any) -> dict[str, Any]:
    """Make a message; members of its content are given with underscores for dots."""
    named = {name.replace("m_", "m.", 1): value for name, value in content.items()}
    return event(content={"msgtype": "m.text", "body": body, **named}, sender=sender)


def facts(joined: int = 3, power: PowerLevels | None = None) -> RoomFacts:
    """Make a room of three without power levels."""
    return RoomFacts(ROOM, joined, power or PowerLevels())


def holds(
    condition: Any,
    document: Mapping[str, Any],
    *,
    room: RoomFacts | None = None,
    name: object = "Robert",
    dialect: Dialect = USUAL,
) -> bool:
    """Tell whether one condition, as a user writes it, holds for Bob."""
    read = Event(document, dialect)
    subject = Subject(read, room or facts(), involvement(read, BOB, name))
    return judge(read_conditions([condition], "conditions"), subject)[0] is Truth.YES


def own(
    kind: Kind,
    rule_id: str = "mine",
    *,
    actions: Sequence[Any] = ("notify",),
    enabled: bool = True,
    **asks: Any,
) -> Rule:
    """Make a rule of a user; an override or underride without conditions matches everything."""
    if kind in {Kind.OVERRIDE, Kind.UNDERRIDE}:
        asks.setdefault("conditions", [])
    return replace(read_rule(kind, rule_id, {"actions": actions, **asks}), enabled=enabled)


def decide(
    document: Mapping[str, Any],
    ruleset: Ruleset = UNTOUCHED,
    *,
    room: RoomFacts | None = None,
    person: Person = BOB_IN_ROOM,
    dialect: Dialect = USUAL,
) -> Decision[Rule]:
    """Judge an event for Bob."""
    return evaluate(merged(ruleset, dialect), Event(document, dialect), room or facts(), person)


def told(decision: Decision[Rule]) -> tuple[str | None, bool, dict[str, object]]:
    """Say what a decision comes to: the rule's name, whether it notifies, and its tweaks."""
    rule = decision.rule
    if rule is None:
        return None, False, {}
    return rule.rule_id, rule.actions.notify, dict(rule.actions.tweaks)
