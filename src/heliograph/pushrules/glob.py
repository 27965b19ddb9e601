"""Globs and whole words in time that grows with the text, never with what can be tried on it.

In a pattern ``*`` stands for any run of characters, the empty one included, and ``?`` for exactly one; a line
break is a character like any other. Nothing else is special: there are no escapes and no classes. Patterns
and texts come from strangers, so no pattern ever becomes a regular expression.

Two roads lead to one answer. The quick road cuts the pattern at its stars and looks for the pieces from left
to right with ``str.find``. Leftmost is enough, for a star takes whatever lies between. A piece that has to
start or end at a word boundary may be found in many wrong places, so the quick road gives up after a few. The
sure road then walks over the text once and keeps, as the bits of one integer, every place in the pattern that
could have been reached. It takes one step for each character, whatever the pattern; a step costs some machine
words for each 30 characters of the pattern, so whoever reads patterns from strangers bounds their length.

Whoever wants to ignore case folds pattern and text with ``fold`` first; nothing here does it for them.
"""

import re
from enum import StrEnum
from typing import Final, assert_never

PATTERNS_MAX: Final = 4096
"""Compiled patterns kept at most. Users write the patterns, so the memory must not be theirs to fill."""

_TRIES_MAX: Final = 32
"""Places where the quick road looks for a piece before the sure road takes over. Words rarely need three."""

_UNICODE_RUN: Final = re.compile(r"\w+")
_ASCII_RUN: Final = re.compile(r"\w+", re.ASCII)
_ASCII_WORD: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


class Alphabet(StrEnum):
    """Which characters make up words; between two of them there is no word boundary. A closed set."""

    UNICODE = "unicode"
    """Letters and digits of every script, and the underscore: what ``\\w`` means in Python."""

    ASCII = "ascii"
    """``A`` to ``Z``, ``a`` to ``z``, ``0`` to ``9`` and the underscore."""

    def holds(self, character: str) -> bool:
        """Tell whether one character is part of a word."""
        match self:
            case Alphabet.UNICODE:
                return character == "_" or character.isalnum()
            case Alphabet.ASCII:
                return character in _ASCII_WORD
            case _:
                assert_never(self)

    def words(self, text: str) -> list[str]:
        """List the longest runs of word characters in a text, in order."""
        match self:
            case Alphabet.UNICODE:
                return _UNICODE_RUN.findall(text)
            case Alphabet.ASCII:
                return _ASCII_RUN.findall(text)
            case _:
                assert_never(self)


def fold(text: str) -> str:
    """Make a text comparable without regard to case.

    Each character becomes exactly one, whatever stands around it, so that ``?`` counts the same before and
    after and a piece of a text folds to a piece of the folded text. That is lower-casing but for two letters:
    the dotted capital I becomes a plain i, and the final sigma equals the other one.
    """
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


class _Piece:
    """What stands between two stars: characters that must be there, and places where any will do."""

    __slots__ = ("anchor", "length", "offset", "others")

    def __init__(self, text: str, *, wildcards: bool) -> None:
        runs: list[tuple[int, str]] = [(0, text)]
        if wildcards and "?" in text:
            runs = []
            place = 0
            for run in text.split("?"):
                if run:
                    runs.append((place, run))
                place += len(run) + 1
        # The longest run is the rarest, so it is the one to look for.
        self.offset, self.anchor = max(runs, key=lambda run: len(run[1]), default=(0, ""))
        self.others = tuple(run for run in runs if run[0] != self.offset)
        self.length = len(text)

    def fits(self, text: str, place: int) -> bool:
        """Tell whether the piece matches at a place that lies inside the text."""
        return (
            place + self.length <= len(text)
            and text.startswith(self.anchor, place + self.offset)
            and all(text.startswith(run, place + offset) for offset, run in self.others)
        )


class _Undecided(Exception):  # noqa: N818 - a turning back, not an error
    """The quick road has tried often enough."""


class _Steps:
    """The sure road: every place in the pattern that could have been reached, as bits of one integer.

    Bit i stands for "the first i characters of the pattern are matched", stars not counted.
    """

    __slots__ = ("_any", "_exact", "_loops", "_reached")

    def __init__(self, pattern: str, *, wildcards: bool) -> None:
        here = 1
        loops = any_character = 0
        exact: dict[str, int] = {}
        for character in pattern:
            if wildcards and character == "*":
                loops |= here
                continue
            if wildcards and character == "?":
                any_character |= here
            else:
                exact[character] = exact.get(character, 0) | here
            here <<= 1
        self._any = any_character
        self._exact = {character: bits | any_character for character, bits in exact.items()}
        self._loops = loops
        self._reached = here

    def matches(self, text: str) -> bool:
        """Tell whether the whole text matches."""
        states = 1
        for character in text:
            states = (states & self._exact.get(character, self._any)) << 1 | (states & self._loops)
        return states & self._reached != 0

    def finds(self, text: str, alphabet: Alphabet) -> bool:
        """Tell whether a part of the text between two word boundaries matches."""
        states = 0
        in_word = False
        for character in text:
            is_word = alphabet.holds(character)
            if not (in_word and is_word):
                if states & self._reached:
                    return True
                states |= 1
            states = (states & self._exact.get(character, self._any)) << 1 | (states & self._loops)
            in_word = is_word
        return states & self._reached != 0


class Glob:
    """A compiled pattern.

    Attributes:
        fragment: The longest run of characters that every match contains; empty when there is none. A text
            without it cannot match, which is the cheapest question there is.
    """

    __slots__ = (
        "_in_words",
        "_open_end",
        "_open_start",
        "_pattern",
        "_pieces",
        "_steps",
        "_wildcards",
        "fragment",
    )

    def __init__(self, pattern: str, *, wildcards: bool = True) -> None:
        """Compile a pattern.

        Args:
            pattern: Any text of any length.
            wildcards: Whether ``*`` and ``?`` are wildcards or characters like any other.
        """
        parts = pattern.split("*") if wildcards else [pattern]
        self._pattern = pattern
        self._wildcards = wildcards
        self._open_start = len(parts) > 1 and not parts[0]
        self._open_end = len(parts) > 1 and not parts[-1]
        self._pieces = tuple(_Piece(part, wildcards=wildcards) for part in parts if part)
        last = len(self._pieces) - 1
        self._in_words = tuple(
            (piece, place == 0 and not self._open_start, place == last and not self._open_end)
            for place, piece in enumerate(self._pieces)
        )
        self._steps: _Steps | None = None
        self.fragment = max((piece.anchor for piece in self._pieces), key=len, default="")

    def matches(self, text: str) -> bool:
        """Tell whether the whole text matches."""
        start, end, pieces = 0, len(text), self._pieces
        if not pieces:
            return self._open_start or not text
        if not self._open_start:
            if not pieces[0].fits(text, 0):
                return False
            start = pieces[0].length
            pieces = pieces[1:]
            if not (pieces or self._open_end):
                return start == end
        if not self._open_end:
            end -= pieces[-1].length
            if end < start or not pieces[-1].fits(text, end):
                return False
            pieces = pieces[:-1]
        try:
            for piece in pieces:
                start = _find(piece, text, start, None, starts=False, ends=False)
                if start < 0 or start > end:
                    return False
        except _Undecided:
            return self._sure().matches(text)
        return True

    def finds(self, text: str, alphabet: Alphabet) -> bool:
        """Tell whether a part of the text matches that starts and ends at a word boundary.

        The ends of the text are boundaries, and so is every place that has not a word character on both
        sides. The empty pattern fits no word.
        """
        if not self._pieces:
            return self._open_start
        place = 0
        try:
            for piece, starts, ends in self._in_words:
                place = _find(piece, text, place, alphabet, starts=starts, ends=ends)
                if place < 0:
                    return False
        except _Undecided:
            return self._sure().finds(text, alphabet)
        return True

    def _sure(self) -> _Steps:
        if self._steps is None:
            self._steps = _Steps(self._pattern, wildcards=self._wildcards)
        return self._steps


def _find(
    piece: _Piece, text: str, start: int, alphabet: Alphabet | None, *, starts: bool, ends: bool
) -> int:
    """Find the leftmost place for a piece and return where it ends; -1 when there is none.

    Raises:
        _Undecided: Too many places looked right and were not.
    """
    anchor = start + piece.offset
    for _ in range(_TRIES_MAX):
        anchor = text.find(piece.anchor, anchor)
        if anchor < 0:
            return -1
        place = anchor - piece.offset
        end = place + piece.length
        if ((not piece.others and end <= len(text)) or piece.fits(text, place)) and (
            alphabet is None
            or (
                (not starts or _boundary(text, place, alphabet))
                and (not ends or _boundary(text, end, alphabet))
            )
        ):
            return end
        anchor += 1
    raise _Undecided


def _boundary(text: str, place: int, alphabet: Alphabet) -> bool:
    """Tell whether a place, counted between characters, is a word boundary."""
    return (
        place == 0
        or place == len(text)
        or not (alphabet.holds(text[place - 1]) and alphabet.holds(text[place]))
    )


def contains_word(text: str, literal: str, alphabet: Alphabet) -> bool:
    """Tell whether a text contains a literal as whole words.

    Args:
        text: Where to look.
        literal: What to look for, character by character; ``*`` and ``?`` are nothing special. The empty one
            is contained nowhere.
        alphabet: What a word is made of.
    """
    return literal in text and Glob(literal, wildcards=False).finds(text, alphabet)


class PatternCache:
    """Compiled patterns, so that a keyword is compiled once and not for every message.

    It is bounded and simply starts over when it is full: patterns come from users, and no order of leaving
    is worth its bookkeeping. Safe to share between threads; at worst a pattern is compiled twice.
    """

    __slots__ = ("_compiled", "_patterns_max")

    def __init__(self, patterns_max: int = PATTERNS_MAX) -> None:
        self._compiled: dict[str, Glob] = {}
        self._patterns_max = patterns_max

    def __len__(self) -> int:
        return len(self._compiled)

    def glob(self, pattern: str) -> Glob:
        """Return the compiled form of a pattern.

        Args:
            pattern: As it is to be compared: folded already if case is to be ignored.
        """
        found = self._compiled.get(pattern)
        if found is None:
            found = Glob(pattern)
            if len(self._compiled) >= self._patterns_max:
                self._compiled.clear()
            self._compiled[pattern] = found
        return found


PATTERNS: Final = PatternCache()
"""The one cache of the process."""
