"""Display text is one visible, normalized line; other text is at least there."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared import shared_json

from heliograph.wire import text
from heliograph.wire.malformed import Malformed


@pytest.mark.parametrize(
    "line", ["Alice", "\u00e9", "  a ", "\u7530\u4e2d \U0001f600", "a\u200db", "x" * 256, "\U0001f600" * 256]
)
def test_a_visible_line_is_taken_unchanged(line: str) -> None:
    """Any script, emoji and joiners, up to 256 code points."""
    assert text.parse_display_text_256(line, "sender") == line
    assert text.parse_display_text_512(line + line, "title") == line + line


@pytest.mark.parametrize(
    "line",
    [
        "",
        "  ",
        "\u00a0\u2003",
        "a\nb",
        "a\r",
        "a\tb",
        "a\x00",
        "a\x7f",
        "a\x85b",
        "a\x9f",
        "a\u202eb",
        "a\u202a",
        "a\u2066b",
        "a\u2069",
        "a\ufeff",
        "e\u0301",
        "a\ud800",
        "x" * 257,
    ],
)
def test_what_could_deceive_or_break_a_line_is_refused(line: str) -> None:
    """Blank, controls, bidirectional controls, byte order mark, denormalized, half characters, too long."""
    with pytest.raises(Malformed) as caught:
        text.parse_display_text_256(line, "visible.sender")

    assert caught.value.field == "visible.sender"


def test_the_longer_profile_ends_at_512() -> None:
    """512 code points pass, 513 do not."""
    assert text.parse_display_text_512("x" * 512, "title")

    with pytest.raises(Malformed, match="512"):
        text.parse_display_text_512("x" * 513, "title")


def test_presence_is_all_that_other_text_needs() -> None:
    """A space is a text; nothing, too much and U+0000 are not."""
    assert text.parse_non_empty(" ", "platform", 8) == " "
    assert text.parse_non_empty("12345678", "platform", 8) == "12345678"

    for wrong in ("", "123456789", "a\0b"):
        with pytest.raises(Malformed, match="platform"):
            text.parse_non_empty(wrong, "platform", 8)


def test_an_application_id_does_not_pass_for_a_typed_one() -> None:
    """Identifiers that begin with ak: are Arkret's own."""
    assert text.parse_untyped("com.example.app", "app_id", 64) == "com.example.app"

    for wrong in ("", "ak:device:x", "ak:"):
        with pytest.raises(Malformed, match="app_id"):
            text.parse_untyped(wrong, "app_id", 64)


@given(st.text(max_size=40))
def test_the_published_pattern_agrees(line: str) -> None:
    """What we take matches the published pattern; what we refuse does not, or is not normalized."""
    schema = shared_json("spec/arkret/fixtures/string-profiles.schema.json")
    published = schema["$defs"]["single_line_display_text"]["pattern"]
    # In the dialect of JSON Schema a dollar is the very end; in ours it allows one line feed more.
    pattern = re.compile(published.removesuffix("$") + r"\Z")
    try:
        text.parse_display_text_256(line, "x")
    except Malformed as refused:
        problem = refused.problem
    else:
        problem = ""

    # The pattern knows nothing of normalization and lone surrogates.
    if "normalization" not in problem and "surrogates" not in problem:
        assert bool(pattern.search(line)) == (problem == "")
