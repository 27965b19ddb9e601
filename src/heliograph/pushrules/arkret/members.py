"""Member counts as sets of integers: what a rule asks, what a client may know, and whether the two meet.

A Realm that protects its size tells a bucket and no number. A rule may therefore only ask what every bucket
can answer. That is decided when the rule is written, not when an Event arrives: a rule that some bucket
could only half answer is refused, and is never completed with an exact number from elsewhere.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from heliograph.pushrules.engine import Truth


@dataclass(frozen=True, slots=True)
class Bucket:
    """Consecutive numbers of members.

    Attributes:
        low: The least.
        high: The greatest; None when there is none.
    """

    low: int
    high: int | None

    def __str__(self) -> str:
        """Spell it as Realms do; ``2000+`` begins behind ``501-2000``."""
        return f"{self.low - 1}+" if self.high is None else f"{self.low}-{self.high}"


Grid = tuple[Bucket, ...]
"""Buckets from the smallest upwards that leave no number out and share none."""

DEFAULT_GRID: Final[Grid] = (
    Bucket(1, 10),
    Bucket(11, 50),
    Bucket(51, 100),
    Bucket(101, 500),
    Bucket(501, 2000),
    Bucket(2001, None),
)
"""The published grid of member counts: 1-10, 11-50, 51-100, 101-500, 501-2000, 2000+."""

_BY_TEXT: Final = {str(bucket): bucket for bucket in DEFAULT_GRID}


def read_bucket(text: str, grid: Grid = DEFAULT_GRID) -> Bucket | None:
    """Read a bucket as a Realm spells it; None when the grid has no such bucket."""
    if grid is DEFAULT_GRID:
        return _BY_TEXT.get(text)
    return next((bucket for bucket in grid if str(bucket) == text), None)


class Comparison(StrEnum):
    """How a count is compared with a number; a closed set."""

    LESS = "lt"
    AT_MOST = "lte"
    MORE = "gt"
    AT_LEAST = "gte"
    EQUAL = "eq"
    NOT_EQUAL = "neq"


SPELLINGS: Final = {
    "lt": Comparison.LESS,
    "<": Comparison.LESS,
    "lte": Comparison.AT_MOST,
    "<=": Comparison.AT_MOST,
    "gt": Comparison.MORE,
    ">": Comparison.MORE,
    "gte": Comparison.AT_LEAST,
    ">=": Comparison.AT_LEAST,
    "eq": Comparison.EQUAL,
    "==": Comparison.EQUAL,
    "neq": Comparison.NOT_EQUAL,
    "!=": Comparison.NOT_EQUAL,
}
"""Each comparison may be written as a word or as a sign."""


def holds(comparison: Comparison, number: int, count: int) -> bool:
    """Compare one count with a number."""
    match comparison:
        case Comparison.LESS:
            return count < number
        case Comparison.AT_MOST:
            return count <= number
        case Comparison.MORE:
            return count > number
        case Comparison.AT_LEAST:
            return count >= number
        case Comparison.EQUAL:
            return count == number
        case Comparison.NOT_EQUAL:
            return count != number
        case _:
            assert_never(comparison)


def in_bucket(comparison: Comparison, number: int, bucket: Bucket) -> Truth:
    """Compare all the counts of a bucket with a number (R155, R157).

    Returns:
        Yes when each satisfies the comparison, no when none does, else that the bucket cannot tell.
    """
    # Along the numbers an answer changes only beside the number itself, so the two ends and the number's
    # neighbours stand for all. Behind the number everything is alike, which settles the open bucket.
    last = max(bucket.low, number) + 1 if bucket.high is None else bucket.high
    counts = {bucket.low, last} | {
        count for count in (number - 1, number, number + 1) if bucket.low <= count <= last
    }
    answers = {holds(comparison, number, count) for count in counts}
    if len(answers) > 1:
        return Truth.INDETERMINATE
    return Truth.of(answers.pop())


def torn(comparison: Comparison, number: int, grid: Grid) -> Bucket | None:
    """Find a bucket that the comparison overlaps in part; None when each bucket can answer (R156, R158)."""
    for bucket in grid:
        if in_bucket(comparison, number, bucket) is Truth.INDETERMINATE:
            return bucket
    return None
