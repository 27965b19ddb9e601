"""A star is any run of characters, and everything else is itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.arkret.star import Star


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("ak.message.create", "ak.message.create", True),
        ("ak.message", "ak.message.create", False),
        ("ak.*", "ak.message.create", True),
        ("*.create", "ak.message.create", True),
        ("ak.*.create", "ak.message.create", True),
        ("ak.*.create", "ak.create", False),
        ("*", "", True),
        ("*", "anything\nat all", True),
        ("**", "", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "abbc", True),
        ("a*bb*bc", "abbc", False),
        ("A*", "a", False),
        ("?", "a", False),
        ("?", "?", True),
        ("[a-z]", "a", False),
        (".*", "a", False),
        ("a\\*", "a\\b", True),
    ],
)
@pytest.mark.clause("R149")
def test_a_pattern_matches_the_whole_text(pattern: str, text: str, expected: bool) -> None:
    """Case and all."""
    assert Star(pattern).matches(text) is expected


def by_definition(pattern: str, text: str) -> bool:
    """Match by trying everything; slow, and right at a glance."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(by_definition(pattern[1:], text[start:]) for start in range(len(text) + 1))
    return text[:1] == pattern[0] and by_definition(pattern[1:], text[1:])


@given(st.text("ab*", max_size=7), st.text("ab*", max_size=8))
@pytest.mark.clause("R149")
def test_a_pattern_matches_what_its_definition_says(pattern: str, text: str) -> None:
    """And every text that matches holds its longest piece."""
    found = Star(pattern).matches(text)

    assert found is by_definition(pattern, text)
    assert not found or Star(pattern).fragment in text


def test_a_hostile_pattern_is_as_cheap_as_any() -> None:
    """A thousand stars over a long text are one walk; trying everything would never end."""
    assert not Star("*a" * 500 + "b").matches("a" * 100_000)


def test_patterns_are_equal_by_their_spelling() -> None:
    """So that equal conditions are asked once."""
    assert Star("a*") == Star("a*")
    assert len({Star("a*"), Star("a*"), Star("a**")}) == 2
