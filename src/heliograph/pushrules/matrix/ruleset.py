"""What one user owns of their rules, the document it is kept in, and the chain that it makes.

A user owns the rules they wrote, in their order, and for each predefined rule whether it is enabled and what
it does. Everything else of a predefined rule comes from the server. So an upgrade that adds a rule gives it
to everybody, and nobody's document has to be rewritten.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from heliograph.pushrules.matrix.actions import Actions, read_actions
from heliograph.pushrules.matrix.defaults import BY_ID, MASTER, predefined, shown_to
from heliograph.pushrules.matrix.dialect import USUAL, Dialect
from heliograph.pushrules.matrix.refusal import Fault, RuleRefused
from heliograph.pushrules.matrix.rule import Kind, Rule, read_rule

RULES_MAX: Final = 1_000
"""Rules that one user may write. All may be asked of every event in every room of the user."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a user made of a predefined rule.

    Attributes:
        kind: The kind of the rule.
        rule_id: Its name.
        enabled: Whether it is asked; None where the user has not changed that.
        actions: What it does; None where the user has not changed that.
    """

    kind: Kind
    rule_id: str
    enabled: bool | None = None
    actions: Actions | None = None

    def of(self, rule: Rule) -> Rule:
        """Apply the change."""
        return replace(
            rule,
            enabled=rule.enabled if self.enabled is None else self.enabled,
            actions=rule.actions if self.actions is None else self.actions,
        )


@dataclass(frozen=True, slots=True)
class Ruleset:
    """What one user owns; as it is made without arguments, that of a user who never changed a rule.

    Attributes:
        own: The rules they wrote, kind by kind; within a kind the first is the most important.
        changes: What they made of predefined rules; none that changes nothing, in the predefined order.
    """

    own: tuple[Rule, ...] = ()
    changes: tuple[Change, ...] = ()

    def of_kind(self, kind: Kind) -> tuple[Rule, ...]:
        """Return the user's own rules of one kind, in order."""
        return tuple(rule for rule in self.own if rule.kind is kind)


UNTOUCHED: Final = Ruleset()
"""What a user owns who never changed a rule. Nothing need be stored for them."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a stored document that could not be read and was left out.

    Attributes:
        field: Where it stood.
        problem: What is wrong. Neither holds a word of what the user wrote.
    """

    field: str
    problem: str


def settle_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Bring changes into their one form: none that changes nothing, in the predefined order.

    Args:
        changes: Of rules that are predefined. Of several for one rule the last counts.
    """
    settled: dict[tuple[Kind, str], Change] = {}
    for change in changes:
        rule = BY_ID[change.kind, change.rule_id]
        enabled = None if change.enabled == rule.enabled else change.enabled
        actions = None if change.actions == rule.actions else change.actions
        settled[change.kind, change.rule_id] = Change(change.kind, change.rule_id, enabled, actions)
    return tuple(
        settled[key]
        for key in BY_ID
        if key in settled and (settled[key].enabled is not None or settled[key].actions is not None)
    )


def merged(ruleset: Ruleset, dialect: Dialect = USUAL) -> tuple[Rule, ...]:
    """Put a user's rules and the predefined ones into the order in which they are asked.

    Kinds stand in their order, and within a kind the user's own before the predefined. The master rule is the
    first of all.
    """
    changes = {(change.kind, change.rule_id): change for change in ruleset.changes}
    defaults: dict[Kind, list[Rule]] = {kind: [] for kind in Kind}
    first: list[Rule] = []
    for rule in predefined(dialect):
        change = changes.get((rule.kind, rule.rule_id))
        (first if rule.rule_id == MASTER else defaults[rule.kind]).append(change.of(rule) if change else rule)
    for kind in Kind:
        first.extend(ruleset.of_kind(kind))
        first.extend(defaults[kind])
    return tuple(first)


def shown(ruleset: Ruleset, user_id: str, dialect: Dialect = USUAL) -> dict[str, Any]:
    """Show a user's rules as their clients see them; also the document in which they are stored.

    Args:
        ruleset: What the user owns.
        user_id: Who it is.
        dialect: The reading; it says which predefined rules there are.

    Returns:
        The content of ``m.push_rules``: ``{"global": {kind: [rule, …], …}}`` with all five kinds.
    """
    kinds: dict[str, list[dict[str, Any]]] = {kind.value: [] for kind in Kind}
    for rule in merged(ruleset, dialect):
        kinds[rule.kind.value].append(shown_to(rule, user_id))
    return {"global": kinds}


def read_stored(document: object) -> tuple[Ruleset, tuple[Damage, ...]]:
    """Read the content of ``m.push_rules`` back.

    A damaged rule is left out and the others are kept. A predefined rule that the server does not know is
    ignored; of one that it knows only ``enabled`` and ``actions`` are taken, each for itself.

    Args:
        document: The stored JSON value, whatever it is.

    Returns:
        What the user owns, and what could not be read.
    """
    scope = document.get("global") if isinstance(document, Mapping) else None
    if not isinstance(scope, Mapping):
        return UNTOUCHED, (Damage("global", "must be an object"),)
    own: dict[tuple[Kind, str], Rule] = {}
    changes: list[Change] = []
    damages: list[Damage] = []
    for kind in Kind:
        rows = scope.get(kind.value, ())
        if not isinstance(rows, list | tuple):
            damages.append(Damage(kind.value, "must be a list"))
            continue
        for place, row in enumerate(rows):
            field = f"{kind.value}[{place}]"
            try:
                rule_id = _rule_id(row, field)
                if rule_id.startswith("."):
                    if (kind, rule_id) in BY_ID:
                        changes.append(_read_change(kind, rule_id, row, field, damages))
                    continue
                _add_own(own, _read_own(kind, rule_id, row, field), field)
            except RuleRefused as refused:
                damages.append(Damage(refused.field, refused.problem))
    return Ruleset(tuple(own.values()), settle_changes(changes)), tuple(damages)


def _rule_id(row: object, field: str) -> str:
    rule_id = row.get("rule_id") if isinstance(row, Mapping) else None
    if not isinstance(rule_id, str):
        raise RuleRefused(Fault.INVALID, field, "must be an object with a rule_id")
    return rule_id


def _read_own(kind: Kind, rule_id: str, row: Mapping[str, object], field: str) -> Rule:
    rule = read_rule(kind, rule_id, row, field)
    enabled = row.get("enabled")
    if not isinstance(enabled, bool):
        raise RuleRefused(Fault.INVALID, f"{field}.enabled", "must be true or false")
    return rule if enabled else replace(rule, enabled=False)


def _add_own(own: dict[tuple[Kind, str], Rule], rule: Rule, field: str) -> None:
    if (rule.kind, rule.rule_id) in own:
        raise RuleRefused(Fault.INVALID, field, "is there twice")
    if len(own) == RULES_MAX:
        raise RuleRefused(Fault.TOO_LARGE, field, f"is more than {RULES_MAX} rules")
    own[rule.kind, rule.rule_id] = rule


def _read_change(
    kind: Kind, rule_id: str, row: Mapping[str, object], field: str, damages: list[Damage]
) -> Change:
    enabled = row.get("enabled")
    if not isinstance(enabled, bool):
        damages.append(Damage(f"{field}.enabled", "must be true or false"))
        enabled = None
    try:
        actions = read_actions(row.get("actions"), f"{field}.actions")
    except RuleRefused as refused:
        damages.append(Damage(refused.field, refused.problem))
        actions = None
    return Change(kind, rule_id, enabled, actions)
