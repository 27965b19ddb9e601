"""What a user owns: rules in the order in which they are asked, all of them valid or none.

A damaged document is refused as a whole, and the rules that were valid before go on. Only where there are
none, on a device that has never seen a valid document, ``salvage`` takes what can still be read: then a
mute that is spelled rightly holds, and what was lost is made up for by telling the person rather than by
silence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from heliograph.pushrules import document
from heliograph.pushrules.arkret.actions import Action, Effect, effect_of, read_actions
from heliograph.pushrules.arkret.conditions import Condition, read_condition
from heliograph.pushrules.arkret.members import DEFAULT_GRID, Grid
from heliograph.pushrules.document import DocumentRefused, Fault, within

RULES_MAX: Final = 4_096
"""Rules in one set at most. The text sets no number; the enclosing Event has to stay below 1 MiB."""

CONDITIONS_MAX: Final = 64
"""Conditions in one rule at most."""

RULE_ID_MAX_CHARACTERS: Final = 128
"""Longest rule id: the longest that an exception of the quiet hours can name."""

CLIENT: Final = "client"
"""The one place where rules of version 1 are evaluated (R150)."""


class Kind(StrEnum):
    """The kinds of rules, in the order in which they are asked; a closed set (R148)."""

    OVERRIDE = "override"
    CONTENT = "content"
    UNDERRIDE = "underride"


_RANK: Final = {kind: rank for rank, kind in enumerate(Kind)}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        rule_id: Its name, unique in its set.
        kind: Its kind.
        enabled: Whether it is asked at all.
        conditions: What it asks, all of it.
        actions: What it does when it matches, as written.
        effect: What the actions come to.
    """

    rule_id: str
    kind: Kind
    enabled: bool
    conditions: tuple[Condition, ...]
    actions: tuple[Action, ...]
    effect: Effect


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules of one user.

    Attributes:
        rules: In the order in which they are asked: by kind, and within a kind as they were written.
    """

    rules: tuple[Rule, ...] = ()


NO_RULES: Final = Ruleset()


@dataclass(frozen=True, slots=True)
class Salvage:
    """What could still be read of a damaged document.

    Attributes:
        ruleset: The rules that are spelled rightly.
        refusals: What is wrong with the others, first to last.
    """

    ruleset: Ruleset
    refusals: tuple[DocumentRefused, ...]


def read_ruleset(value: object, grid: Grid = DEFAULT_GRID) -> Ruleset:
    """Read a decrypted ``ak.push_rules``: an object that holds ``rules``.

    Args:
        value: Any JSON value.
        grid: The buckets that every member count must be able to answer from.

    Returns:
        All its rules, in the order in which they are asked.

    Raises:
        DocumentRefused: The document, or the first rule that is wrong.
    """
    rules = [read_rule(item, f"rules[{place}]", grid) for place, item in enumerate(_listed(value))]
    seen: set[str] = set()
    for place, rule in enumerate(rules):
        _check_unique(rule, seen, place)
    return Ruleset(_ordered(rules))


def salvage(value: object, grid: Grid = DEFAULT_GRID) -> Salvage:
    """Read what can be read of a document that ``read_ruleset`` refused.

    A rule without conditions that silences everything is left out where a rule was lost: what the lost rule
    would have let through must not stay silent for ever.

    Args:
        value: Any JSON value.
        grid: As for ``read_ruleset``.
    """
    try:
        listed = _listed(value)
    except DocumentRefused as refused:
        return Salvage(NO_RULES, (refused,))
    rules: list[Rule] = []
    refusals: list[DocumentRefused] = []
    seen: set[str] = set()
    for place, item in enumerate(listed):
        try:
            rule = read_rule(item, f"rules[{place}]", grid)
            _check_unique(rule, seen, place)
            rules.append(rule)
        except DocumentRefused as refused:
            refusals.append(refused)
    if refusals:
        rules = [rule for rule in rules if rule.conditions or rule.effect.notify]
    return Salvage(Ruleset(_ordered(rules)), tuple(refusals))


def read_rule(value: object, field: str = "", grid: Grid = DEFAULT_GRID) -> Rule:
    """Read one rule, as when a user writes or changes it.

    Args:
        value: Any JSON value.
        field: Where it stands; empty for a rule alone.
        grid: As for ``read_ruleset``.

    Raises:
        DocumentRefused: A member is wrong, or the rule wants to be evaluated anywhere but here (R151).
    """
    given = document.members(
        value,
        field,
        ("rule_id", "kind"),
        ("enabled", "evaluation_locus", "conditions", "actions"),
        clause="R146",
    )
    if given.get("evaluation_locus") != CLIENT:
        raise DocumentRefused(
            Fault.UNSUPPORTED_FEATURE,
            "R151",
            within(field, "evaluation_locus"),
            "must be client: no rule of version 1 is evaluated elsewhere",
        )
    place = within(field, "conditions")
    conditions = document.items(given.get("conditions", ()), place, CONDITIONS_MAX, clause="R149")
    actions = read_actions(given.get("actions", ()), within(field, "actions"))
    return Rule(
        rule_id=document.text(
            given["rule_id"], within(field, "rule_id"), RULE_ID_MAX_CHARACTERS, clause="R346"
        ),
        kind=document.word(given["kind"], within(field, "kind"), Kind, clause="R148"),
        enabled=document.boolean(given.get("enabled", True), within(field, "enabled"), clause="R146"),
        conditions=tuple(
            read_condition(item, f"{place}[{number}]", grid) for number, item in enumerate(conditions)
        ),
        actions=actions,
        effect=effect_of(actions),
    )


def _listed(value: object) -> Sequence[Any]:
    given = document.members(value, "", ("rules",), clause="R146")
    return document.items(given["rules"], "rules", RULES_MAX, clause="R146")


def _check_unique(rule: Rule, seen: set[str], place: int) -> None:
    if rule.rule_id in seen:
        raise DocumentRefused(
            Fault.PARAM_INVALID, "R346", f"rules[{place}].rule_id", "must not name two rules"
        )
    seen.add(rule.rule_id)


def _ordered(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    return tuple(sorted(rules, key=lambda rule: _RANK[rule.kind]))
