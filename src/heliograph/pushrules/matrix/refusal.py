"""The one refusal of this dialect."""

from enum import StrEnum

from heliograph.wire.malformed import Malformed


class Fault(StrEnum):
    """What is wrong with a rule or with a change of rules; a closed set."""

    MISSING = "missing"
    """A member that must be there is not."""

    INVALID = "invalid"
    """A value has the wrong type or form."""

    TOO_LARGE = "too_large"
    """A named limit is passed."""

    UNKNOWN_RULE = "unknown_rule"
    """No such rule, or none that this may be done to."""


class RuleRefused(Malformed):
    """A rule or a change was refused; nothing has changed.

    Attributes:
        fault: The kind of trouble, on which the answer's code depends.
        field: Where, as a path such as ``conditions[2].kind``.
        problem: The rule that was broken. It never repeats a value: a keyword is private.
    """

    def __init__(self, fault: Fault, field: str, problem: str) -> None:
        self.fault = fault
        super().__init__(field, problem)
