"""What a kind of work is, seen from the runner."""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from heliograph.queue.machine import Change, Policy, Signal
from heliograph.queue.model import Claim
from heliograph.storage.database import Tx

TIMED_OUT: Final = "timed_out"
"""The reason of a performance that was cut off at its limit."""

L = TypeVar("L")


class Handler(Protocol[L]):
    """Performs one kind of work. ``L`` is whatever its ``load`` hands to its ``perform``.

    An exception from any of these is a bug. It is told without its text, counts as *later* and hurts
    no other item.
    """

    @property
    def kind(self) -> str:
        """The kind of work that it performs."""
        ...

    @property
    def policy(self) -> Policy:
        """How patient that kind is."""
        ...

    def load(self, tx: Tx, claims: Sequence[Claim], /) -> Sequence[L]:
        """Read the details of each claim, in the same order, inside the claiming transaction.

        That runs at READ COMMITTED and may be run again, so it only reads.
        """
        ...

    async def perform(self, claim: Claim, loaded: L, /) -> Signal:
        """Do the work, holding no transaction, and say how it ended.

        It is cut off at ``Pace.perform_seconds`` and may be done more than once for one item: after a
        crash, a lost lease or a stop in the middle.
        """
        ...

    def settled(self, tx: Tx, claim: Claim, change: Change, /) -> None:
        """Note what became of the claim, inside the settling transaction. May be run again.

        Called for every claim whose fence held, whether it was performed, found expired, handed back or
        swept after a crash; ``change.signal`` is what ``perform`` said, if it came to that.
        """
        ...
