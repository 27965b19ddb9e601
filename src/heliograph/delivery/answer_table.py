"""The verdict table of an adapter, as data: what a provider says, and what it means. Pure.

An adapter looks answers up in its table, the tests drive every row of it, and the page about providers
prints it. So a correction is one row, in one place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from heliograph.delivery.model import Outcome

STATUS_MIN: Final = 100
STATUS_MAX: Final = 999
"""What HTTP can spell as a status."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row.

    Attributes:
        status: The status, or the first of a range.
        said: The provider's own word for it, as it spells it; empty for every other word or none.
        outcome: Which of the ten outcomes it is.
        reason: The stable code of the verdict.
        note: What else is done, for the page.
        last: The last status of a range; None for a single one. A range is for every word.
    """

    status: int
    said: str
    outcome: Outcome
    reason: str
    note: str = ""
    last: int | None = None


@final
class AnswerTable:
    """Rows, and how to find the one that fits an answer.

    A row with the status and the word comes first, then the one for the status with any word, then the
    first range that holds the status.

    Args:
        rows: All rows; the last one is the range of every status, for what nobody has mapped.
    """

    def __init__(self, rows: Sequence[AnswerRow]) -> None:
        self.rows = tuple(rows)
        self._exact = {(row.status, row.said): row for row in rows if row.last is None}
        self._ranges = tuple((range(row.status, row.last + 1), row) for row in rows if row.last is not None)
        self._unmapped = self.rows[-1]

    def find(self, status: int, said: str) -> AnswerRow:
        """Return the row that fits.

        Args:
            status: The answer's status.
            said: The word that the provider used, or an empty one.
        """
        row = self._exact.get((status, said)) or self._exact.get((status, ""))
        if row is not None:
            return row
        return next((row for statuses, row in self._ranges if status in statuses), self._unmapped)
