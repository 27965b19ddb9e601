"""The JSON reader lets in what has one meaning, and names the rule that anything else broke."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.wire import canonical, strict_json
from heliograph.wire.malformed import Malformed
from heliograph.wire.strict_json import ARKRET, PLAIN, JsonFault, JsonLimits, JsonRefused, loads


def fault_of(data: bytes, limits: JsonLimits = ARKRET) -> JsonFault:
    with pytest.raises(JsonRefused) as caught:
        loads(data, limits)
    return caught.value.fault


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a":1,"b":[true,false,null,"x"]}', {"a": 1, "b": [True, False, None, "x"]}),
        (b' {"b" : 1 , "a" : 2}\r\n\t', {"b": 1, "a": 2}),
        (b'"\\u0041\\n"', "A\n"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        ('"\u00e9"'.encode(), "\u00e9"),
        (b"9007199254740991", 2**53 - 1),
        (b"-9007199254740991", -(2**53) + 1),
        (b'{"{[{[{[":"}\\"]"}', {"{[{[{[": '}"]'}),
        (b'{"x":"1234567890123456789"}', {"x": "1234567890123456789"}),
        (b"0", 0),
    ],
)
def test_a_text_with_one_meaning_is_read(data: bytes, value: Any) -> None:
    """Both roads through the reader give the value that the text spells."""
    assert loads(data) == value


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", JsonFault.SYNTAX),
        (b"{", JsonFault.SYNTAX),
        (b"[1,]", JsonFault.SYNTAX),
        (b"{'a':1}", JsonFault.SYNTAX),
        (b'"a\x01"', JsonFault.SYNTAX),
        (b'"\\x41"', JsonFault.SYNTAX),
        (b"01", JsonFault.TRAILING),
        (b"\xc2\xa01", JsonFault.SYNTAX),
        ("\u0661".encode(), JsonFault.SYNTAX),
        (b"{} {}", JsonFault.TRAILING),
        (b"1 x", JsonFault.TRAILING),
        (b'"\xff"', JsonFault.NOT_UTF8),
        (b'"\xed\xa0\x80"', JsonFault.NOT_UTF8),
        (b'"\xc0\xaf"', JsonFault.NOT_UTF8),
        (b"\xef\xbb\xbf{}", JsonFault.BYTE_ORDER_MARK),
        (b'"a\xef\xbb\xbf"', JsonFault.BYTE_ORDER_MARK),
        (b'"\\ufeff"', JsonFault.BYTE_ORDER_MARK),
        (b'{"\\uFeFf":1}', JsonFault.BYTE_ORDER_MARK),
        (b'{"a":1,"a":1}', JsonFault.DUPLICATE),
        (b'{"a":1,"\\u0061":2}', JsonFault.DUPLICATE),
        (b'[{"x":{"b":1,"c":2,"b":3}}]', JsonFault.DUPLICATE),
        (b"NaN", JsonFault.NOT_FINITE),
        (b"[Infinity]", JsonFault.NOT_FINITE),
        (b"[-Infinity]", JsonFault.NOT_FINITE),
        (b"1.0", JsonFault.FRACTION),
        (b"[1e3]", JsonFault.FRACTION),
        (b"-0", JsonFault.NEGATIVE_ZERO),
        (b'{"n":-0}', JsonFault.NEGATIVE_ZERO),
        (b"9007199254740992", JsonFault.NUMBER_RANGE),
        (b"-9007199254740992", JsonFault.NUMBER_RANGE),
        (b"1" * 5000, JsonFault.NUMBER_RANGE),
        (b'"\\ud800"', JsonFault.LONE_SURROGATE),
        (b'["\\udc00\\ud800"]', JsonFault.LONE_SURROGATE),
        (b'{"\\ud800":1}', JsonFault.LONE_SURROGATE),
        ('"e\u0301"'.encode(), JsonFault.NOT_NFC),
        (b'"e\\u0301"', JsonFault.NOT_NFC),
        (b'[{"e\\u0301":[]}]', JsonFault.NOT_NFC),
        (nested(65), JsonFault.DEPTH),
        (nested(100_000), JsonFault.DEPTH),
        (b"[" * 100_000, JsonFault.DEPTH),
        (b'{"a":' * 65 + b"1" + b"}" * 65, JsonFault.DEPTH),
    ],
)
def test_a_text_that_could_be_understood_twice_is_refused(data: bytes, fault: JsonFault) -> None:
    """Every fault is told from every other."""
    assert fault_of(data) == fault


def test_nesting_is_counted_from_the_outermost_container() -> None:
    """The root is level one, so 64 levels pass and brackets inside texts do not count."""
    loads(nested(64))
    loads(b"[" + b'"[[[[",' * 100 + b"1]")
    loads(b"[" + b"[]," * 100 + b"[]]")

    assert fault_of(b"[" + b"[]," * 100 + nested(64) + b"]") == JsonFault.DEPTH


def test_quotation_marks_without_end_do_not_slow_the_reader() -> None:
    """A megabyte of escaped quotation marks is judged in one pass."""
    assert fault_of(b"[" * 65 + b'"\\' * 500_000) == JsonFault.DEPTH
    assert fault_of(b"[{" * 40 + b'\\"' * 500_000) == JsonFault.DEPTH


def test_size_is_judged_before_anything_is_read() -> None:
    """One octet over the limit is refused, whatever it spells."""
    limits = JsonLimits(octets_max=4)

    assert loads(b'"ab"', limits) == "ab"
    assert fault_of(b'"abc"', limits) == JsonFault.TOO_LARGE
    assert fault_of(b"\xff" * 5, limits) == JsonFault.TOO_LARGE


def test_eight_mebibytes_are_read() -> None:
    """The published limit of a body fits, whichever road it takes."""
    short = b'{"a":"' + b"x" * (strict_json.OCTETS_MAX - 8) + b'"}'
    long = b'{"a":"' + "\u00e9".encode() * (strict_json.OCTETS_MAX // 2 - 4) + b'"}'

    assert len(short) == strict_json.OCTETS_MAX
    assert isinstance(loads(short), dict)
    assert isinstance(loads(long), dict)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"[1.5,-0.0,1e2,-0]", [1.5, -0.0, 100.0, 0]),
        (b"[12345678901234567890]", [12345678901234567890]),
        ('"e\u0301 a\ufeff"'.encode(), "e\u0301 a\ufeff"),
        (b'"e\\u0301\\ufeff"', "e\u0301\ufeff"),
    ],
)
def test_other_systems_bodies_may_hold_more(data: bytes, value: Any) -> None:
    """Fractions, large integers and any text pass where the limits say so."""
    assert loads(data, PLAIN) == value


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"1e400", JsonFault.NUMBER_RANGE),
        (b"-1e400", JsonFault.NUMBER_RANGE),
        (b"0." + b"1" * 500, JsonFault.NUMBER_RANGE),
        (b"1" * 500, JsonFault.NUMBER_RANGE),
        (b"NaN", JsonFault.NOT_FINITE),
        (b'{"a":1,"a":1}', JsonFault.DUPLICATE),
        (b'"\\ud800"', JsonFault.LONE_SURROGATE),
        (b"\xef\xbb\xbf1", JsonFault.BYTE_ORDER_MARK),
    ],
)
def test_other_systems_bodies_still_have_one_meaning(data: bytes, fault: JsonFault) -> None:
    """Looser limits are no licence for duplicates, halves of characters or numbers that do not exist."""
    assert fault_of(data, PLAIN) == fault


def test_limits_deeper_than_the_interpreter_end_in_a_refusal() -> None:
    """However deep the limits allow, depth never becomes a crash."""
    limits = JsonLimits(depth_max=1_000_000)

    assert fault_of(nested(100_000), limits) == JsonFault.DEPTH


def test_a_refusal_tells_the_place_and_not_the_value() -> None:
    """Octet, line and column, counted over multi-octet characters; never what stood there."""
    with pytest.raises(JsonRefused) as caught:
        loads('{"é":\n"é" secret}'.encode())

    refused = caught.value
    assert isinstance(refused, Malformed)
    assert (refused.offset, refused.line, refused.column) == (12, 2, 5)
    assert str(refused) == "is not JSON (octet 12, line 2, column 5)"
    assert (refused.field, refused.problem) == ("", str(refused))


def test_a_refusal_without_a_cheap_place_tells_none() -> None:
    """Where only the fault is known, the text stops there."""
    with pytest.raises(JsonRefused) as caught:
        loads(b'{"a":1,"a":2}')

    assert str(caught.value) == "has an object that names a member twice"


@given(st.binary(max_size=200))
def test_no_octets_make_the_reader_fail_otherwise(data: bytes) -> None:
    """Whatever arrives is read or refused."""
    try:
        loads(data)
    except JsonRefused:
        return


json_text = st.text(
    alphabet=' \t"\\/{}[]:,.-+eE0123456789abfnrtuNIy\u00e9\u0301\ufeff\U0001f600', max_size=60
)


@given(json_text, st.sampled_from([ARKRET, PLAIN]))
def test_the_short_road_never_says_yes_where_the_long_one_says_no(text: str, limits: JsonLimits) -> None:
    """Reading with and without the short road gives the same value or the same fault."""
    data = text.encode()
    try:
        slow: Any = strict_json._long_road(data, limits)
    except JsonRefused as refused:
        slow = refused.fault
    try:
        quick: Any = loads(data, limits)
    except JsonRefused as refused:
        quick = refused.fault

    assert repr(quick) == repr(slow)


nfc_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=20).map(
    lambda text: unicodedata.normalize("NFC", text)
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | nfc_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(nfc_text, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_was_written_is_read_back(value: Any) -> None:
    """Canonical, spaced and escaped spellings of one value all read as it."""
    assert loads(canonical.encode(value)) == value
    assert loads(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value
    assert loads(json.dumps(value).encode()) == value


@given(values)
def test_canonical_octets_are_known_as_such(value: Any) -> None:
    """Only the one canonical spelling passes for canonical."""
    data = canonical.encode(value)

    assert strict_json.read(data).canonical
    assert canonical.is_canonical(data, loads(data))
    assert not strict_json.read(data + b" ").canonical
    assert not canonical.is_canonical(data + b" ", loads(data + b" "))
