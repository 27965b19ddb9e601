"""What those who make work and those who do it know of the doorbell."""

from collections.abc import Collection
from typing import Protocol


class Doorbell(Protocol):
    """Says that there may be work. It may lie and it may be lost: the rows are the truth.

    A lost ring costs the waiter its poll interval, a false one costs it a look.
    """

    def ring(self, kind: str) -> None:
        """Wake whoever waits for this kind of work. Call it in the event loop, after the commit.

        Never raises and never waits, so that it can be handed to ``Tx.after_commit``.
        """
        ...

    async def wait(self, kinds: Collection[str], at_most_seconds: float) -> bool:
        """Wait until one of these kinds is rung for, or the time is over.

        A ring that comes while nobody waits is kept for the next who does.

        Returns:
            True when it rang.
        """
        ...
