"""Patterns in which ``*`` is any run of characters, the empty one included, and nothing else is special.

A pattern has to match the whole text, case and all. It is cut at its stars, and the pieces are looked for
from left to right; leftmost is enough, for a star takes whatever lies between. No pattern becomes a regular
expression.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Star:
    """A pattern, ready to be compared. Two are equal when they are spelled alike.

    Attributes:
        text: As it was written.
        literal: Whether there is no star in it.
        fragment: The longest piece; every text that matches contains it. Empty when there is none.
    """

    text: str
    literal: bool = field(init=False, compare=False)
    fragment: str = field(init=False, compare=False)
    _pieces: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Cut the pattern."""
        pieces = tuple(self.text.split("*"))
        object.__setattr__(self, "literal", len(pieces) == 1)
        object.__setattr__(self, "fragment", max(pieces, key=len))
        object.__setattr__(self, "_pieces", pieces)

    def matches(self, text: str) -> bool:
        """Tell whether the whole text matches."""
        if self.literal:
            return text == self.text
        first, *middle, last = self._pieces
        place, end = len(first), len(text) - len(last)
        if place > end or not (text.startswith(first) and text.endswith(last)):
            return False
        for piece in middle:
            place = text.find(piece, place, end)
            if place < 0:
                return False
            place += len(piece)
        return True
