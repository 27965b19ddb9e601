"""Where readings of the Matrix texts differ, and which one is meant."""

from dataclasses import dataclass
from typing import Final

from heliograph.pushrules.glob import Alphabet


@dataclass(frozen=True, slots=True)
class Dialect:
    """One reading of the rule language.

    Attributes:
        legacy_mentions: Whether the three predefined rules exist that guess from the body who is mentioned.
            They left the specification with version 1.17; clients in the wild expect either.
        words: Which characters make up words in a body. The published specification says ASCII.
    """

    legacy_mentions: bool = True
    words: Alphabet = Alphabet.UNICODE


USUAL: Final = Dialect()
"""The reading that holds unless an operator chooses otherwise."""
