"""Canonical JSON is what RFC 8785 says, by somebody else's reading of it too."""

import hashlib
import json
import math
from enum import IntEnum, StrEnum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from tests.shared import shared_json

from heliograph.wire import canonical

FIXTURES = "spec/arkret/fixtures/"

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=6)
    ),
    max_leaves=25,
)


@given(anything)
def test_another_implementation_spells_every_value_alike(value: Any) -> None:
    """The rfc8785 package is the oracle."""
    assert canonical.encode(value) == rfc8785.dumps(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_another_implementation_spells_every_number_alike(value: float) -> None:
    """Doubles take ECMAScript's form."""
    assert canonical.encode(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (100.0, "100"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (1.25e-7, "1.25e-7"),
        (5e-324, "5e-324"),
        (9007199254740991.0, "9007199254740991"),
        (0.1, "0.1"),
        (0.05, "0.05"),
    ],
)
def test_numbers_take_the_form_of_ecmascript(value: float, text: str) -> None:
    """The boundaries of RFC 8785's number form, by hand."""
    assert canonical.encode(value) == text.encode()


def test_names_are_sorted_by_utf16_code_units() -> None:
    """A supplementary character sorts by its surrogates, before U+FB33 and after U+20AC."""
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\u00f6": 7}
    expected = '{"\\r":2,"1":4,"\x80":6,"\u00f6":7,"\u20ac":1,"\U0001f600":5,"\ufb33":3}'

    assert canonical.encode(value) == expected.encode()


def test_controls_are_escaped_in_their_shortest_form() -> None:
    """Short escapes where JSON has them, lower-case hexadecimal elsewhere, and nothing more."""
    text = '\x00\b\t\n\x0b\f\r\x1f"\\/\x7f\u2028'

    assert canonical.encode(text) == '"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\"\\\\/\x7f\u2028"'.encode()


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Table(dict[str, int]):
    pass


def test_closed_words_and_named_numbers_are_texts_and_numbers() -> None:
    """Subclasses of what JSON knows are spelled as what they extend."""
    assert (
        canonical.encode([Colour.RED, Level.HIGH, Table(b=1, a=2), True]) == b'["red",3,{"a":2,"b":1},true]'
    )
    assert (
        canonical.encode(["\u00e9", 0.5, {"\u00e9": Colour.RED}])
        == '["\u00e9",0.5,{"\u00e9":"red"}]'.encode()
    )


def test_white_space_is_left_out_and_lists_keep_their_order() -> None:
    """Nested values are sorted at every level; lists are not touched."""
    assert canonical.encode({"b": [{"z": 1, "a": (2, 1)}], "a": {}}) == b'{"a":{},"b":[{"a":[2,1],"z":1}]}'


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, 2**53, -(2**53), "\ud800", {"\ud800": 1}, {"é": 2**53}, ["é", "\udc00"]],
)
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    """No number that readers disagree on, no half of a character."""
    with pytest.raises(ValueError, match=r".+"):
        canonical.encode(value)

    assert not canonical.is_canonical(b"", value)


@pytest.mark.parametrize("value", [b"x", {1: 2}, {"a"}, [object(), 1.5], [1.5, object()], {"é": {1: 2}}])
def test_what_json_has_no_form_for_is_our_own_mistake(value: Any) -> None:
    """Octets, sets and numeric names raise a plain error."""
    with pytest.raises(TypeError):
        canonical.encode(value)


@pytest.mark.clause("R014")
def test_published_canonical_forms_come_out_octet_for_octet() -> None:
    """Push target inputs and receipts of the worked examples."""
    for case in shared_json(FIXTURES + "push-target-id.WORKED-EXAMPLE.json")["cases"]:
        assert canonical.encode(case["hmac_input"]) == case["hmac_input_canonical_utf8"].encode()
    for case in shared_json(FIXTURES + "receipt-proof.WORKED-EXAMPLE.json")["cases"]:
        assert canonical.encode(case["request"]) == case["request_canonical_utf8"].encode()
        assert canonical.digest(case["request"]) == case["request_digest"]

        assert canonical.encode({"receipt": case["receipt"]}) == case["response_body_canonical_utf8"].encode()


def test_published_digests_come_out() -> None:
    """The known answers put a domain label and a line feed before the canonical octets."""
    for case in shared_json(FIXTURES + "canonical-json-digest-kat-fixture.json")["cases"]:
        octets = bytes.fromhex(case["prefix_bytes_hex"]) + canonical.encode(case["transcript"])

        assert octets.hex() == case["digest_input_hex"]
        assert "sha256:" + hashlib.sha256(octets).hexdigest() == case["expected_digest"]


def test_the_published_detached_object_is_spelled_alike() -> None:
    """Another known answer, with null, integers and nesting."""
    case = shared_json(FIXTURES + "detached-object-signature-kat.extract.json")["case"]

    assert canonical.encode(case["unsigned_projection"]).hex() == case["unsigned_jcs_utf8_hex"]


def test_a_digest_names_the_canonical_octets() -> None:
    """SHA-256 of ``{}`` is well known."""
    empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

    assert canonical.digest({}) == empty
    assert canonical.digest_of_octets(b"{}") == empty


def test_a_text_in_another_spelling_is_not_canonical() -> None:
    """Order, space and escapes all count."""
    for data in (b'{"b":1,"a":2}', b'{"a": 1}', b'"\\u0041"', b"1.0", b"[1e2]"):
        assert not canonical.is_canonical(data, json.loads(data))
