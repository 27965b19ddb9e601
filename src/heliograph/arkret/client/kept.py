"""The last valid value of a preference, which damage never replaces."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from heliograph.pushrules.document import DocumentRefused

T = TypeVar("T")


class Key(StrEnum):
    """The account data that this library knows; a closed set."""

    PUSH_RULES = "ak.push_rules"
    DND_SCHEDULE = "ak.dnd_schedule"
    BLOCKLIST = "ak.account.blocklist"


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """A preference as a device holds it (R342, R343).

    Attributes:
        value: The last valid value; None when there was none yet.
        revision: The highest revision seen, valid or not. What is older arrives late and changes nothing.
        trouble: What is wrong with the newest value, to be shown to the person; None when all is well.
        salvaged: What could be read of a damaged value where there was never a valid one.
    """

    value: T | None = None
    revision: int = 0
    trouble: DocumentRefused | None = None
    salvaged: T | None = None

    @property
    def in_force(self) -> T | None:
        """Return what counts now; None when nothing is configured."""
        return self.salvaged if self.value is None else self.value

    def take(self, revision: int, read: Callable[[], T], salvage: Callable[[], T] | None = None) -> "Kept[T]":
        """Take a newer value, or keep the present one and say why.

        Args:
            revision: The server's revision of the newer value.
            read: Reads it, or raises ``DocumentRefused``.
            salvage: Reads what can be read of a damaged one; asked only where there was never a valid one.
        """
        if revision < self.revision:
            return self
        try:
            return Kept(read(), revision)
        except DocumentRefused as refused:
            if self.value is not None:
                return Kept(self.value, revision, refused)
            saved = self.salvaged if salvage is None else salvage()
            return Kept(None, revision, refused, saved)

    def forget(self, revision: int) -> "Kept[T]":
        """Take the deletion of the value: from then on nothing is configured."""
        return self if revision < self.revision else Kept(revision=revision)
