"""Base64url has one spelling for every octet string."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.wire import base64url
from heliograph.wire.malformed import Malformed


@given(st.binary(max_size=100))
def test_what_was_encoded_decodes(octets: bytes) -> None:
    """Round trip, against the standard library's padded form."""
    text = base64url.encode(octets)

    assert base64.urlsafe_b64decode(text + "==") == octets
    assert base64url.decode(text, "x") == octets
    assert base64url.decode_exactly(text, len(octets), "x") == octets


@pytest.mark.parametrize(
    "text",
    ["AA==", "A", "AB", "AAB", "A+", "A/A", "AA\n", " AA", "A A", "é", "AA=", "=", "\ud800", "A\x00AA"],
)
def test_another_spelling_is_refused(text: str) -> None:
    """Padding, stray bits, white space, the other alphabet and single characters."""
    with pytest.raises(Malformed) as caught:
        base64url.decode(text, "tag")

    assert caught.value.field == "tag"


def test_a_fixed_length_is_judged_before_decoding() -> None:
    """32 octets are 43 characters, no more and no fewer."""
    assert base64url.decode_exactly("A" * 43, 32, "tag") == bytes(32)

    for text in ("A" * 42, "A" * 44, "A" * 42 + "B", "A" * 43 + "="):
        with pytest.raises(Malformed):
            base64url.decode_exactly(text, 32, "tag")


@given(st.text(max_size=60))
def test_no_text_makes_the_reader_fail_otherwise(text: str) -> None:
    """Whatever is decoded encodes to the same text; all else is refused."""
    try:
        octets = base64url.decode(text, "x")
    except Malformed:
        return

    assert base64url.encode(octets) == text
