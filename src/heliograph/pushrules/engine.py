"""Ordered rules, the first match, and why. Knows no dialect: neither a kind of rule nor a kind of condition.

A condition answers yes, no, or that it cannot tell. A rule holds when every condition says yes; a rule with
no condition always holds. One no settles a rule, whatever its other conditions could not tell. A rule that
stays undecided is passed over like one that does not hold, and the trace says which of the two it was.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

S_contra = TypeVar("S_contra", contravariant=True)
S = TypeVar("S")


class Truth(StrEnum):
    """What a condition can answer; a closed set."""

    YES = "yes"
    NO = "no"
    INDETERMINATE = "indeterminate"

    @classmethod
    def of(cls, fact: bool) -> "Truth":
        """Turn a fact that is known into an answer."""
        return cls.YES if fact else cls.NO


class Condition(Protocol[S_contra]):
    """One question about a subject."""

    def holds(self, subject: S_contra, /) -> Truth:
        """Answer without raising, whatever the subject holds."""
        ...


class Rule(Protocol[S_contra]):
    """What the engine needs to see of a dialect's rule."""

    @property
    def rule_id(self) -> str:
        """Its name, for the trace."""
        ...

    @property
    def enabled(self) -> bool:
        """A rule that is not enabled never holds."""
        ...

    @property
    def conditions(self) -> Sequence[Condition[S_contra]]:
        """All of them must hold."""
        ...


R = TypeVar("R", bound=Rule[Any])


class Because(StrEnum):
    """Why a rule was passed over; a closed set."""

    DISABLED = "disabled"
    DOES_NOT_HOLD = "does_not_hold"
    INDETERMINATE = "indeterminate"


@dataclass(frozen=True, slots=True)
class Skipped(Generic[R]):
    """A rule that stood before the match and was passed over.

    Attributes:
        rule: The rule.
        because: Why.
        condition: Which of its conditions, counted from zero, settled that; None for a disabled rule.
    """

    rule: R
    because: Because
    condition: int | None = None


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """What a chain of rules came to.

    Attributes:
        rule: The first rule that holds; None when none does.
        skipped: Every rule before it, in order, with the reason; the whole chain when none holds.
    """

    rule: R | None
    skipped: tuple[Skipped[R], ...]


def judge(conditions: Sequence[Condition[S]], subject: S) -> tuple[Truth, int | None]:
    """Ask whether all conditions hold.

    Args:
        conditions: Asked in order, until one says no.
        subject: What they are asked about.

    Returns:
        The answer, and the condition that settled it: the first that says no, else the first that cannot
        tell, else None.
    """
    undecided: int | None = None
    for place, condition in enumerate(conditions):
        truth = condition.holds(subject)
        if truth is Truth.NO:
            return Truth.NO, place
        if truth is Truth.INDETERMINATE and undecided is None:
            undecided = place
    return (Truth.YES if undecided is None else Truth.INDETERMINATE), undecided


def evaluate(rules: Iterable[R], subject: Any) -> Decision[R]:
    """Find the first rule that holds, and say why those before it do not.

    Args:
        rules: Highest priority first. Rules behind the match are not looked at.
        subject: What the rules' conditions are asked about.

    Returns:
        The decision.
    """
    skipped: list[Skipped[R]] = []
    for rule in rules:
        if not rule.enabled:
            skipped.append(Skipped(rule, Because.DISABLED))
            continue
        truth, place = judge(rule.conditions, subject)
        if truth is Truth.YES:
            return Decision(rule, tuple(skipped))
        because = Because.DOES_NOT_HOLD if truth is Truth.NO else Because.INDETERMINATE
        skipped.append(Skipped(rule, because, place))
    return Decision(None, tuple(skipped))
