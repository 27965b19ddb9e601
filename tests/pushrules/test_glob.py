"""Globs and word boundaries: the same answer as the slowest possible reading, without its cost."""

import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heliograph.pushrules.glob import (
    PATTERNS,
    PATTERNS_MAX,
    Alphabet,
    Glob,
    PatternCache,
    contains_word,
    fold,
)
from tests.pushrules.steps import lines_run

FEW = st.text(alphabet="ab _é", max_size=12)
GLOBS = st.text(alphabet="ab _é*?", max_size=8)
ALPHABETS = st.sampled_from(list(Alphabet))


def slow_match(pattern: str, text: str) -> bool:
    """Match by trying everything."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(slow_match(pattern[1:], text[skip:]) for skip in range(len(text) + 1))
    return bool(text) and pattern[0] in {"?", text[0]} and slow_match(pattern[1:], text[1:])


def slow_find(pattern: str, text: str, alphabet: Alphabet) -> bool:
    """Try every part of the text between two boundaries."""
    if not pattern:
        return False
    places = [
        place
        for place in range(len(text) + 1)
        if place in {0, len(text)} or not (alphabet.holds(text[place - 1]) and alphabet.holds(text[place]))
    ]
    return any(slow_match(pattern, text[a:b]) for a in places for b in places if a <= b)


# ── wildcards ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.clause("M007", "M086", "M087")
@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("*", "anything\nat all", True),
        ("**", "", True),
        ("foo", "foo", True),
        ("foo", "foobar", False),
        ("foo", "afoo", False),
        ("foo*", "foo", True),
        ("foo*", "foobar", True),
        ("*foo", "barfoo", True),
        ("*foo", "foobar", False),
        ("foo*foo", "foo", False),
        ("foo*foo", "foofoo", True),
        ("?", "", False),
        ("?", "\n", True),
        ("?", "ab", False),
        ("a?b", "ab", False),
        ("a?*?b", "axyb", True),
        ("a?*?b", "axb", False),
        ("?**?", "a", False),
        ("?**?", "ab", True),
        ("*a*b*", "xxaxxbxx", True),
        ("*a*b*", "xxbxxaxx", False),
        ("*b*aa", "baa", True),
        ("a*a", "a", False),
    ],
)
def test_a_star_is_any_run_and_a_question_mark_exactly_one(pattern: str, text: str, expected: bool) -> None:
    """The whole text has to match; a line break is a character like any other."""
    assert Glob(pattern).matches(text) is expected


@pytest.mark.clause("M086")
@pytest.mark.parametrize(
    "pattern", ["[a-z]*", "\\w*", "^foo$", "(foo)", "a+b", "foo[ab]", "{a,b}", "\\*x", "a|b"]
)
def test_nothing_else_in_a_pattern_is_special(pattern: str) -> None:
    """What is special in other languages matches itself, and itself only."""
    itself = pattern.replace("*", "")

    assert Glob(pattern).matches(itself)
    assert not Glob(pattern).matches("foo")


@given(GLOBS, FEW)
@example("a*a", "a")
@example("*?b?*b", "abab")
def test_the_whole_match_agrees_with_trying_everything(pattern: str, text: str) -> None:
    """Both roads, the quick one and the sure one, give the only right answer."""
    compiled = Glob(pattern)

    assert compiled.matches(text) is slow_match(pattern, text)
    assert compiled._sure().matches(text) is slow_match(pattern, text)


@given(GLOBS, FEW)
def test_a_text_without_the_fragment_matches_nowhere(pattern: str, text: str) -> None:
    """So one look for the fragment rules most patterns out."""
    compiled = Glob(pattern)

    if compiled.fragment not in text:
        assert not compiled.matches(text)
        assert not compiled.finds(text, Alphabet.UNICODE)


# ── words ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.clause("M089", "M118")
@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("foo", "foo", True),
        ("foo", "a foo b", True),
        ("foo", "a-foo.", True),
        ("foo", "line\nfoo\nline", True),
        ("foo", "foobar", False),
        ("foo", "foo_bar", False),
        ("foo", "foo1", False),
        ("foo", "xfoo foo", True),
        ("foo", "#foo", True),
        ("foo", "d'foo'e", True),
        ("@room", "user@room", True),
        ("@room", "@rooms", False),
        ("foo ", " foo  ", True),
        ("a?b", "a a a b", True),
        ("t*e", "tea time", True),
        ("fo*", "some food", True),
        ("oo*", "some food", False),
        ("*od", "some food", True),
        ("*oo", "some food", False),
        ("*", "", True),
        ("*", "word", True),
        ("", "", False),
        ("", "word", False),
        ("?", "ab", False),
        ("?", "ab c", True),
        ("?", "", False),
        ("gg", "https://discord.gg", True),
    ],
)
def test_a_pattern_fits_whole_words_somewhere(pattern: str, text: str, expected: bool) -> None:
    """It starts and ends where a word starts or ends, or where there is no word at all."""
    assert Glob(pattern).finds(text, Alphabet.UNICODE) is expected


@pytest.mark.clause("M119")
@pytest.mark.parametrize("text", ["über", "приветмир", "日本語", "٢ber", "éber", "ǅber"])
def test_letters_and_digits_of_every_script_are_word_characters(text: str) -> None:
    """Nobody is called by the end of another word."""
    assert not Glob(text[1:]).finds(text, Alphabet.UNICODE)
    assert Glob(text[1:]).finds(text[0] + " " + text[1:], Alphabet.UNICODE)


def test_with_the_ascii_alphabet_other_letters_are_boundaries() -> None:
    """The published specification of Matrix reads words so."""
    assert Glob("ber").finds("über", Alphabet.ASCII)
    assert not Glob("ber").finds("xber", Alphabet.ASCII)


@pytest.mark.clause("M119")
def test_the_unicode_alphabet_is_the_class_that_python_names() -> None:
    """Character by character, over all of Unicode."""
    word = re.compile(r"\w")

    assert [
        point
        for point in range(sys.maxunicode + 1)
        if Alphabet.UNICODE.holds(chr(point)) != bool(word.match(chr(point)))
    ] == []


@given(st.text(alphabet="ab_ é.9", max_size=20), ALPHABETS)
def test_words_are_the_runs_of_word_characters(text: str, alphabet: Alphabet) -> None:
    """Joined again, they are the word characters of the text."""
    words = alphabet.words(text)

    assert "".join(words) == "".join(character for character in text if alphabet.holds(character))
    assert all(contains_word(text, word, alphabet) for word in words)


@given(GLOBS, FEW, ALPHABETS)
@example("*b", "ab a", Alphabet.UNICODE)
def test_the_word_search_agrees_with_trying_everything(pattern: str, text: str, alphabet: Alphabet) -> None:
    """On both roads, in both alphabets."""
    compiled = Glob(pattern)
    expected = slow_find(pattern, text, alphabet)

    assert compiled.finds(text, alphabet) is expected
    if pattern.strip("*"):
        assert compiled._sure().finds(text, alphabet) is expected


@pytest.mark.clause("M103", "M104")
@pytest.mark.parametrize(
    ("text", "literal", "expected"),
    [
        ("anything", "*", False),
        ("a * b", "*", True),
        ("what?", "?", True),
        ("what", "wh?t", False),
        ("wh?t", "wh?t", True),
        ("a.b here", "a.b", True),
        ("aXb here", "a.b", False),
        ("a text", "", False),
        ("", "", False),
    ],
)
def test_a_literal_has_no_wildcards(text: str, literal: str, expected: bool) -> None:
    """A person may be called anything, and is called by nothing else."""
    assert contains_word(text, literal, Alphabet.UNICODE) is expected


# ── hostile input ────────────────────────────────────────────────────────────────────────────────

HOSTILE = [
    ("*a*a*a*b", "a"),
    ("a*a*a*a*a*a*a*a*b", "a "),
    ("*" + "a*" * 300 + "b", "a"),
    ("?" * 500 + "b", "a"),
    ("*" + "?a" * 400 + "?b", "a"),
    ("ab " * 300 + "a", "ab "),
    ("*a?b*", "aab"),
    ("b" + "?" * 300, "ab"),
    ("a" * 500, "a"),
    ("*\ud800*b", "\ud800"),
    ("\0*\0?b", "\0"),
]


@pytest.mark.clause("M086", "M087", "M089")
@pytest.mark.parametrize(("pattern", "unit"), HOSTILE)
@pytest.mark.parametrize("alphabet", list(Alphabet))
def test_a_hostile_pattern_costs_no_more_than_the_length_of_the_text(
    pattern: str, unit: str, alphabet: Alphabet
) -> None:
    """Counted in lines run: at most a few for each character, on the longest event there is."""
    text = (unit * 60_000)[:60_000]

    whole = lines_run(lambda: Glob(pattern).matches(text))
    words = lines_run(lambda: Glob(pattern).finds(text, alphabet))

    of_the_pattern = 100 * (len(pattern) + 10)
    assert whole <= 6 * len(text) + of_the_pattern
    assert words <= 16 * len(text) + of_the_pattern


def test_the_sure_road_takes_over_where_the_quick_one_finds_too_many_wrong_places() -> None:
    """Each of these has hundreds of places that look right and are not."""
    text = "xab" * 500
    word = Glob("ab")

    assert not word.finds(text, Alphabet.UNICODE)
    assert word.finds(text + " ab", Alphabet.UNICODE)
    assert word.finds(text + " ab and more", Alphabet.UNICODE)
    assert not Glob("*a?c?d*").matches("axcx" * 200)
    assert Glob("*a?c?d*").matches("axcx" * 200 + "axcxd")


def test_lone_surrogates_and_nul_are_characters_like_any_other() -> None:
    """They come in events of old rooms, and nothing may break on them."""
    assert Glob("\ud800?").matches("\ud800\0")
    assert Glob("\0").finds("a\0b", Alphabet.UNICODE)


# ── case ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.clause("M085")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FooBar", "foobar"),
        ("ÅNGSTRÖM", "ångström"),
        ("ПРИВЕТ", "привет"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("İstanbul", "istanbul"),
        ("STRAẞE", "straße"),
    ],
)
def test_folding_makes_the_cases_equal(one: str, other: str) -> None:
    """Both sides are folded, so what is equal but for case compares equal."""
    assert fold(one) == fold(other)


def test_folding_does_not_turn_one_letter_into_two() -> None:
    """Or a question mark would no longer stand for one character."""
    assert fold("straße") != fold("strasse")
    assert [point for point in range(sys.maxunicode + 1) if len(fold(chr(point))) != 1] == []


@given(st.text(), st.text())
@example("Σ", "Σ")
@example("\u0391\u03a3", "\u0391")
@example("a", "\u0307İ")
def test_folding_looks_at_each_character_alone(one: str, other: str) -> None:
    """So a part of a text folds to a part of the folded text."""
    assert fold(one + other) == fold(one) + fold(other)
    assert fold(fold(one)) == fold(one)
    assert len(fold(one)) == len(one)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_folding_agrees_with_lower_casing_one_by_one(text: str) -> None:
    """But for the two letters whose lower case is not one letter of its own."""
    expected = [character.lower() for character in text if character not in "İΣς"]

    assert [fold(character) for character in text if character not in "İΣς"] == expected
    assert unicodedata.name(fold("Σ")) == "GREEK SMALL LETTER SIGMA"


# ── the cache ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.clause("M120")
def test_a_compiled_pattern_is_kept() -> None:
    """Asking again gives the same object."""
    cache = PatternCache()

    assert cache.glob("a*b") is cache.glob("a*b")


@pytest.mark.clause("M121", "M122")
def test_a_full_cache_is_emptied_and_starts_over() -> None:
    """It holds 4096 patterns and never one more."""
    cache = PatternCache()
    for number in range(4096):
        cache.glob(f"pattern{number}")
    full = len(cache)

    cache.glob("one more")

    assert (PATTERNS_MAX, full, len(cache)) == (4096, 4096, 1)


@pytest.mark.clause("M121")
def test_the_cache_of_the_process_is_bounded() -> None:
    """Whatever users write, it holds no more than the limit."""
    for number in range(5000):
        PATTERNS.glob(f"keyword{number}*")

    assert len(PATTERNS) <= 4096
