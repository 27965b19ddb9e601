"""Changes of a user's rules, each from one ruleset to the next, or refused."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain

from heliograph.pushrules.matrix.actions import Actions
from heliograph.pushrules.matrix.dialect import USUAL, Dialect
from heliograph.pushrules.matrix.refusal import Fault, RuleRefused
from heliograph.pushrules.matrix.rule import Kind, Rule
from heliograph.pushrules.matrix.ruleset import RULES_MAX, Change, Ruleset, merged, settle_changes


def find(ruleset: Ruleset, kind: Kind, rule_id: str, dialect: Dialect = USUAL) -> Rule:
    """Find one rule, a user's own or a predefined one, as it stands for the user.

    Raises:
        RuleRefused: There is none (``unknown_rule``).
    """
    for rule in merged(ruleset, dialect):
        if rule.kind is kind and rule.rule_id == rule_id:
            return rule
    raise _unknown("rule_id")


def put(ruleset: Ruleset, rule: Rule, *, before: str | None = None, after: str | None = None) -> Ruleset:
    """Add a rule, or replace the one of its kind and name.

    A new rule is enabled and goes first among the user's own of its kind. A replaced rule keeps its place and
    stays as enabled as it was. With a neighbour named, either goes next to it.

    Args:
        ruleset: What the user owns.
        rule: The rule, as ``read_rule`` gives it.
        before: The user's own rule of the same kind that it goes directly ahead of. Wins over ``after``.
        after: The user's own rule of the same kind that it goes directly behind.

    Returns:
        What the user owns then.

    Raises:
        RuleRefused: A neighbour is not one of the user's own rules of that kind (``unknown_rule``), or it
            would be one rule too many (``too_large``).
    """
    kind = list(ruleset.of_kind(rule.kind))
    names = [other.rule_id for other in kind]
    for name, neighbour in (("before", before), ("after", after)):
        if neighbour is not None and neighbour not in names:
            raise _unknown(name)
    old = names.index(rule.rule_id) if rule.rule_id in names else None
    if old is None and len(ruleset.own) >= RULES_MAX:
        raise RuleRefused(Fault.TOO_LARGE, "", f"would be more than {RULES_MAX} rules")
    place = 0
    if old is not None:
        rule = replace(rule, enabled=kind[old].enabled)
        place = old
        del kind[old], names[old]
    neighbour = after if before is None else before
    if neighbour is not None and neighbour != rule.rule_id:
        place = names.index(neighbour) + (before is None)
    kind.insert(place, rule)
    kinds = (kind if each is rule.kind else ruleset.of_kind(each) for each in Kind)
    return replace(ruleset, own=tuple(chain.from_iterable(kinds)))


def delete(ruleset: Ruleset, kind: Kind, rule_id: str) -> Ruleset:
    """Remove one of the user's own rules.

    Raises:
        RuleRefused: The user has no such rule (``unknown_rule``). A predefined rule is none of theirs.
    """
    own = tuple(rule for rule in ruleset.own if (rule.kind, rule.rule_id) != (kind, rule_id))
    if len(own) == len(ruleset.own):
        raise _unknown("rule_id")
    return replace(ruleset, own=own)


def set_enabled(
    ruleset: Ruleset, kind: Kind, rule_id: str, enabled: bool, dialect: Dialect = USUAL
) -> Ruleset:
    """Switch a rule on or off, a user's own or a predefined one.

    Raises:
        RuleRefused: There is none (``unknown_rule``).
    """
    return _alter(ruleset, kind, rule_id, dialect, lambda rule: replace(rule, enabled=enabled))


def set_actions(
    ruleset: Ruleset, kind: Kind, rule_id: str, actions: Actions, dialect: Dialect = USUAL
) -> Ruleset:
    """Change what a rule does, a user's own or a predefined one.

    Raises:
        RuleRefused: There is none (``unknown_rule``).
    """
    return _alter(ruleset, kind, rule_id, dialect, lambda rule: replace(rule, actions=actions))


def _alter(
    ruleset: Ruleset, kind: Kind, rule_id: str, dialect: Dialect, alter: Callable[[Rule], Rule]
) -> Ruleset:
    altered = alter(find(ruleset, kind, rule_id, dialect))
    if altered.default:
        change = Change(kind, rule_id, altered.enabled, altered.actions)
        return replace(ruleset, changes=settle_changes((*ruleset.changes, change)))
    own = (altered if (rule.kind, rule.rule_id) == (kind, rule_id) else rule for rule in ruleset.own)
    return replace(ruleset, own=tuple(own))


def _unknown(field: str) -> RuleRefused:
    return RuleRefused(Fault.UNKNOWN_RULE, field, "names no rule that this can be done with")
