"""A JSON reader that refuses whatever two readers could understand differently.

Duplicate names, a byte order mark, lone surrogates, numbers that a double cannot hold, denormalized
text: each is a way in which the octets that were signed and the value that is acted upon can part. All
are refused, none is repaired.

Most bodies that arrive are canonical already, for our callers sign canonical octets. They take a short
road: msgspec reads them, msgspec writes what it read with sorted keys, and if the octets come back the
same, nothing can have been lost on the way — no duplicate, no escape, no white space, no spelling of a
number but the shortest. The short road only ever says yes. Whatever it cannot vouch for takes the long
road, which knows every fault by name; so the two cannot disagree.
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Any, Final, Never, TypeAlias

import msgspec

from heliograph.wire.canonical import INTEGER_MAX, is_canonical
from heliograph.wire.malformed import Malformed

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""What a JSON text can hold. Floats only where the limits allow them."""

OCTETS_MAX: Final = 8 * 1024 * 1024
"""The published limit of a canonical operation body."""

DEPTH_MAX: Final = 64
"""The published limit of nesting; the outermost container is level one."""

NUMBER_CHARACTERS_MAX: Final = 400
"""A double needs at most some 330 plain digits. Longer numbers cost quadratic time to convert."""


class JsonFault(StrEnum):
    """Why a JSON text was refused; a closed set."""

    TOO_LARGE = "too_large"
    NOT_UTF8 = "not_utf8"
    BYTE_ORDER_MARK = "byte_order_mark"
    SYNTAX = "syntax"
    TRAILING = "trailing"
    DEPTH = "depth"
    DUPLICATE = "duplicate"
    NOT_FINITE = "not_finite"
    FRACTION = "fraction"
    NEGATIVE_ZERO = "negative_zero"
    NUMBER_RANGE = "number_range"
    LONE_SURROGATE = "lone_surrogate"
    NOT_NFC = "not_nfc"


_PROBLEMS: Final = {
    JsonFault.TOO_LARGE: "is larger than allowed",
    JsonFault.NOT_UTF8: "is not UTF-8",
    JsonFault.BYTE_ORDER_MARK: "holds a byte order mark (U+FEFF)",
    JsonFault.SYNTAX: "is not JSON",
    JsonFault.TRAILING: "has something after the JSON value",
    JsonFault.DEPTH: "is nested too deeply",
    JsonFault.DUPLICATE: "has an object that names a member twice",
    JsonFault.NOT_FINITE: "holds NaN or an infinity",
    JsonFault.FRACTION: "holds a number that is not written as an integer",
    JsonFault.NEGATIVE_ZERO: "holds a negative zero",
    JsonFault.NUMBER_RANGE: "holds a number beyond what is exchanged exactly",
    JsonFault.LONE_SURROGATE: "holds half of a surrogate pair",
    JsonFault.NOT_NFC: "holds text that is not in Unicode normalization form C",
}


class JsonRefused(Malformed):
    """A JSON text was refused.

    Attributes:
        fault: Which rule was broken.
        offset: The octet, counted from zero, where it showed; None where finding it would cost more than
            telling is worth.
        line: The line of that octet, counted from one; None with ``offset``.
        column: Its character within the line, counted from one; None with ``offset``.
    """

    def __init__(
        self, fault: JsonFault, offset: int | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        self.fault = fault
        self.offset = offset
        self.line = line
        self.column = column
        place = "" if offset is None else f" (octet {offset}, line {line}, column {column})"
        super().__init__("", _PROBLEMS[fault] + place)


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """What a reader lets in.

    Attributes:
        octets_max: Most octets of the whole text.
        depth_max: Most nested containers; the outermost is level one.
        integers_only: Refuse fractions, exponents, negative zero and magnitudes above 2^53-1.
        nfc: Refuse names and texts that are not in normalization form C.
        feff: Let U+FEFF stand inside texts. In front of the text it is always refused.
    """

    octets_max: int = OCTETS_MAX
    depth_max: int = DEPTH_MAX
    integers_only: bool = True
    nfc: bool = True
    feff: bool = False


ARKRET: Final = JsonLimits()
"""Arkret bodies: integers only, normalized, no byte order mark anywhere."""

PLAIN: Final = JsonLimits(integers_only=False, nfc=False, feff=True)
"""Other systems' bodies: any finite number, any text; still no duplicate names."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, and whether the octets were its canonical spelling.

    Attributes:
        value: Dicts, lists, texts, numbers, booleans and None.
        canonical: The octets equal ``canonical.encode(value)``.
    """

    value: JsonValue
    canonical: bool


def loads(data: bytes, limits: JsonLimits = ARKRET) -> JsonValue:
    """Read one JSON text.

    Args:
        data: The octets as they came.
        limits: What to let in.

    Returns:
        Dicts, lists, texts, numbers, booleans and None.

    Raises:
        JsonRefused: The text breaks a rule; ``fault`` says which.
    """
    return read(data, limits).value


def read(data: bytes, limits: JsonLimits = ARKRET) -> Reading:
    """Read one JSON text and tell whether it was canonical, which the short road knows for nothing.

    Args:
        data: The octets as they came.
        limits: What to let in.

    Raises:
        JsonRefused: The text breaks a rule; ``fault`` says which.
    """
    if len(data) > limits.octets_max:
        raise JsonRefused(JsonFault.TOO_LARGE)
    if data.isascii() and data.count(b"{") + data.count(b"[") <= limits.depth_max:
        try:
            value: JsonValue = None if _LONG_NUMBER in data.translate(_DIGITS) else _decode(data)
            if _encode(value) == data:
                return Reading(value, canonical=True)
        except (msgspec.MsgspecError, RecursionError, _FloatMet):
            pass  # the long road knows why, or knows better
    value = _long_road(data, limits)
    return Reading(value, is_canonical(data, value))


class _FloatMet(Exception):  # noqa: N818 - a turning back, not an error
    """The short road met a float, whose shortest spelling differs between writers."""


def _turn_back(_text: str) -> Never:
    raise _FloatMet


# Sixteen digits are the least that can pass 2^53-1; identifiers rarely hold so many in a row.
_DIGITS: Final = bytes(ord("0") if octet in b"0123456789" else ord(".") for octet in range(256))
_LONG_NUMBER: Final = b"0" * 16
_decode: Final = msgspec.json.Decoder(float_hook=_turn_back).decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode

# Possessive, and closed by the end of the text too: a text of quotation marks must not be rescanned.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS: Final = bytes(octet for octet in range(256) if octet not in b"[]{}")
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _Faulted(Exception):  # noqa: N818 - carries a fault out of the parser's hooks
    def __init__(self, fault: JsonFault) -> None:
        self.fault = fault
        super().__init__(fault)


def _long_road(data: bytes, limits: JsonLimits) -> JsonValue:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _at(JsonFault.NOT_UTF8, data, error.start) from None
    mark = text.find("\ufeff")
    if mark == 0 or (mark > 0 and not limits.feff):
        raise _at(JsonFault.BYTE_ORDER_MARK, data, len(text[:mark].encode()))
    if _too_deep(data, limits.depth_max):
        raise JsonRefused(JsonFault.DEPTH)
    try:
        value: JsonValue = (_INTEGERS if limits.integers_only else _NUMBERS).decode(text)
    except json.JSONDecodeError as error:
        fault = JsonFault.TRAILING if error.msg == "Extra data" else JsonFault.SYNTAX
        raise _at(fault, data, len(text[: error.pos].encode())) from None
    except _Faulted as faulted:
        raise JsonRefused(faulted.fault) from None
    except RecursionError:  # only where the limits allow more levels than the interpreter does
        raise JsonRefused(JsonFault.DEPTH) from None
    # Without an escape every text is a piece of the input, and the input was checked as a whole: quotation
    # marks compose with nothing, so the whole is normalized exactly when its pieces are.
    if "\\u" in text:
        _check_texts(value, limits)
    elif limits.nfc and not unicodedata.is_normalized("NFC", text):
        raise JsonRefused(JsonFault.NOT_NFC)
    return value


def _at(fault: JsonFault, data: bytes, offset: int) -> JsonRefused:
    before = data[:offset]
    start = before.rfind(b"\n") + 1
    column = len(before[start:].decode("utf-8", "replace")) + 1
    return JsonRefused(fault, offset, before.count(b"\n") + 1, column)


def _too_deep(data: bytes, depth_max: int) -> bool:
    """Tell whether brackets outside texts ever nest too deeply, without recursion and in linear time."""
    if data.count(b"{") + data.count(b"[") <= depth_max:
        return False
    brackets = _STRING.sub(b"", data).translate(None, _NOT_BRACKETS)
    return any(depth > depth_max for depth in accumulate(map(_STEPS.__getitem__, brackets)))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Faulted(JsonFault.DUPLICATE)
    return members


def _not_finite(_word: str) -> Never:
    raise _Faulted(JsonFault.NOT_FINITE)


def _fraction(_digits: str) -> Never:
    raise _Faulted(JsonFault.FRACTION)


def _integer(digits: str) -> int:
    if digits == "-0":
        raise _Faulted(JsonFault.NEGATIVE_ZERO)
    value = _any_integer(digits)
    if not -INTEGER_MAX <= value <= INTEGER_MAX:
        raise _Faulted(JsonFault.NUMBER_RANGE)
    return value


def _any_integer(digits: str) -> int:
    if len(digits) > NUMBER_CHARACTERS_MAX:
        raise _Faulted(JsonFault.NUMBER_RANGE)
    return int(digits)


def _any_float(digits: str) -> float:
    value = float(digits) if len(digits) <= NUMBER_CHARACTERS_MAX else float("inf")
    if value in (float("inf"), float("-inf")):
        raise _Faulted(JsonFault.NUMBER_RANGE)
    return value


_INTEGERS: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_fraction, parse_constant=_not_finite
)
_NUMBERS: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_any_integer, parse_float=_any_float, parse_constant=_not_finite
)


def _check_texts(value: JsonValue, limits: JsonLimits) -> None:
    """Check every name and text of a value whose input hid some of them behind escapes."""
    waiting: list[JsonValue] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            _check_text(item, limits)
        elif isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _check_text(text: str, limits: JsonLimits) -> None:
    if text.isascii():
        return
    if _SURROGATE.search(text):
        raise JsonRefused(JsonFault.LONE_SURROGATE)
    if not limits.feff and "\ufeff" in text:
        raise JsonRefused(JsonFault.BYTE_ORDER_MARK)
    if limits.nfc and not unicodedata.is_normalized("NFC", text):
        raise JsonRefused(JsonFault.NOT_NFC)
