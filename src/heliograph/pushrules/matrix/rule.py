"""One rule: what it is called, what it asks, what it does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, assert_never

from heliograph.pushrules.matrix.actions import Actions, read_actions
from heliograph.pushrules.matrix.conditions import (
    Condition,
    EventMatch,
    RoomIs,
    SenderIs,
    read_condition,
    read_pattern,
)
from heliograph.pushrules.matrix.event import BODY
from heliograph.pushrules.matrix.refusal import Fault, RuleRefused
from heliograph.pushrules.matrix.spelling import RULE_SIZE_MAX_CHARACTERS, spell, unspell

RULE_ID_MAX_BYTES: Final = 255
"""Longest rule id, like every other id of Matrix."""

CONDITIONS_MAX: Final = 64
"""Conditions in one rule at most. All are asked of every event in every room of the user."""


class Kind(StrEnum):
    """The kinds of rules, in the order in which they are asked; a closed set."""

    OVERRIDE = "override"
    CONTENT = "content"
    ROOM = "room"
    SENDER = "sender"
    UNDERRIDE = "underride"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of one user, or a predefined one.

    Two rules are equal when they are spelled alike, so 1 and true are told apart in them.

    Attributes:
        kind: Its kind. Ids are unique within their kind only.
        rule_id: Its name; for rules of kind room and sender the id that it is about.
        enabled: Whether it is asked at all.
        actions: What it does when it matches.
        conditions: What it asks, all of it; ready for the engine.
        asks: The spelling of what it asks as clients see it: its conditions, its pattern, or ``""``.
        default: Whether it is predefined.
    """

    kind: Kind
    rule_id: str
    enabled: bool
    actions: Actions
    conditions: tuple[Condition, ...] = field(compare=False)
    asks: str
    default: bool = False

    def document(self) -> dict[str, Any]:
        """Show the rule as clients see it."""
        shown: dict[str, Any] = {
            "rule_id": self.rule_id,
            "default": self.default,
            "enabled": self.enabled,
            "actions": unspell(self.actions.spelled),
        }
        match self.kind:
            case Kind.OVERRIDE | Kind.UNDERRIDE:
                shown["conditions"] = unspell(self.asks)
            case Kind.CONTENT:
                shown["pattern"] = unspell(self.asks)
            case Kind.ROOM | Kind.SENDER:
                pass
            case _:
                assert_never(self.kind)
        return shown


def read_rule(kind: Kind, rule_id: str, document: object, path: str = "") -> Rule:
    """Read a rule that a user wrote.

    Args:
        kind: Its kind.
        rule_id: Its name.
        document: An object with ``actions`` and, by kind, ``conditions`` or ``pattern``; the rest is ignored.
        path: Where it stood, for the error; empty for a whole body.

    Returns:
        The rule, enabled.

    Raises:
        RuleRefused: Something is missing, has the wrong type, or passes a limit.
    """
    _check_rule_id(rule_id, f"{path}.rule_id" if path else "rule_id")
    if not isinstance(document, Mapping):
        raise RuleRefused(Fault.INVALID, path, "must be an object")
    before = f"{path}." if path else ""
    actions = read_actions(_member(document, "actions", before), f"{before}actions")
    conditions: tuple[Condition, ...]
    asks = ""
    match kind:
        case Kind.OVERRIDE | Kind.UNDERRIDE:
            given = _member(document, "conditions", before)
            conditions = read_conditions(given, f"{before}conditions")
            asks = spell(given, f"{before}conditions")
        case Kind.CONTENT:
            given = _member(document, "pattern", before)
            conditions = (EventMatch(BODY, read_pattern(given, f"{before}pattern")),)
            asks = spell(given, f"{before}pattern")
        case Kind.ROOM:
            conditions = (RoomIs(rule_id),)
        case Kind.SENDER:
            conditions = (SenderIs(rule_id),)
        case _:
            assert_never(kind)
    if len(asks) + len(actions.spelled) > RULE_SIZE_MAX_CHARACTERS:
        raise RuleRefused(Fault.TOO_LARGE, path, f"must not pass {RULE_SIZE_MAX_CHARACTERS} characters")
    return Rule(kind, rule_id, enabled=True, actions=actions, conditions=conditions, asks=asks)


def read_conditions(document: object, path: str) -> tuple[Condition, ...]:
    """Read the conditions of a user's rule.

    Raises:
        RuleRefused: They are no list of objects with a kind, or more than ``CONDITIONS_MAX``.
    """
    if not isinstance(document, list | tuple):
        raise RuleRefused(Fault.INVALID, path, "must be a list")
    if len(document) > CONDITIONS_MAX:
        raise RuleRefused(Fault.TOO_LARGE, path, f"must hold {CONDITIONS_MAX} conditions at most")
    return tuple(read_condition(item, f"{path}[{place}]") for place, item in enumerate(document))


def _check_rule_id(rule_id: str, path: str) -> None:
    if not rule_id or rule_id.startswith(".") or "/" in rule_id or "\\" in rule_id:
        raise RuleRefused(
            Fault.INVALID,
            path,
            "must be a name without slashes and backslashes that does not begin with a dot",
        )
    if len(rule_id.encode("utf-8", "surrogatepass")) > RULE_ID_MAX_BYTES:
        raise RuleRefused(Fault.TOO_LARGE, path, f"must not pass {RULE_ID_MAX_BYTES} bytes")


def _member(document: Mapping[str, object], name: str, before: str) -> object:
    if name not in document:
        raise RuleRefused(Fault.MISSING, f"{before}{name}", "is required")
    return document[name]
