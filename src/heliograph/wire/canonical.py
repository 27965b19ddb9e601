"""Canonical JSON (RFC 8785): the one byte string that spells a value, and its digest.

msgspec with sorted keys writes the same octets as RFC 8785, some forty times faster than a writer in
Python, but only where three things hold: every key is ASCII (so that octet order is UTF-16 order), there
is no float (it writes ``1.0`` where ECMAScript writes ``1``) and every integer is one that a double
holds exactly. ``encode`` looks before it leaps: one walk over the value decides whether the fast
writer may be trusted; where not, the value is rebuilt with its keys in UTF-16 order and its floats
spelled as ECMAScript spells them, and the same writer only joins the pieces.
"""

import hashlib
import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Canonical: TypeAlias = "bool | int | float | str | Sequence[Canonical] | Mapping[str, Canonical] | None"
"""What can be spelled: at run time dicts, lists and tuples of texts, numbers, booleans and null."""

INTEGER_MAX: Final = 2**53 - 1
"""The largest magnitude that every JSON reader keeps exactly."""

# ECMAScript writes plain digits while the decimal point falls in this range of positions.
_POINT_MAX: Final = 21
_POINT_MIN: Final = -6

# What a value is mostly made of, and what both writers always spell alike.
_LEAVES: Final = frozenset({str, bool, type(None)})

_sorted: Final = msgspec.json.Encoder(order="sorted").encode
_as_given: Final = msgspec.json.Encoder().encode


def encode(value: Canonical) -> bytes:
    """Spell a value in canonical JSON.

    Args:
        value: Dicts with text keys, lists, tuples, texts, numbers, booleans and null.

    Returns:
        UTF-8 octets without white space.

    Raises:
        TypeError: The value holds something that JSON has no form for; our own mistake.
        ValueError: The value holds NaN, an infinity, an integer beyond 2^53-1 in magnitude, or a lone
            surrogate. ``strict_json.loads`` with its default limits lets none of them in.
    """
    if _is_plain(value):
        return _sorted(value)
    return _as_given(_rebuilt(value))


def digest(value: Canonical) -> str:
    """Name a value by its content.

    Args:
        value: As for ``encode``.

    Returns:
        ``sha256:`` and 64 lower-case hexadecimal digits over the canonical octets.

    Raises:
        TypeError: As for ``encode``.
        ValueError: As for ``encode``.
    """
    return digest_of_octets(encode(value))


def digest_of_octets(octets: bytes) -> str:
    """Spell the SHA-256 of octets that are canonical already, as ``sha256:`` and lower-case hex."""
    return "sha256:" + hashlib.sha256(octets).hexdigest()


def is_canonical(data: bytes, value: Canonical) -> bool:
    """Tell whether these octets are the canonical spelling of the value they were read as.

    Args:
        data: The octets as they came.
        value: What ``strict_json.loads`` read from them.

    Returns:
        False too where the value has no canonical spelling.
    """
    try:
        return data == encode(value)
    except ValueError:
        return False


def _is_plain(value: Canonical) -> bool:
    """Tell whether the fast writer spells this value as RFC 8785 does."""
    containers: list[Any] = [(value,)]
    while containers:
        container = containers.pop()
        if isinstance(container, dict):
            # Joining is the quickest proof that every key is a text, and all of them ASCII.
            if not "".join(container).isascii():
                return False
            container = container.values()
        for item in container:
            kind = type(item)
            if kind in _LEAVES:
                continue
            if kind is dict or kind is list:
                containers.append(item)
            elif isinstance(item, int):
                if not -INTEGER_MAX <= item <= INTEGER_MAX:
                    raise ValueError("an integer beyond 2^53-1 has no canonical form")
            elif isinstance(item, float):
                return False
            elif isinstance(item, dict | list | tuple):
                containers.append(item)
            elif not isinstance(item, str):
                raise TypeError(f"JSON has no form for {kind.__name__}")
    return True


def _rebuilt(value: Any) -> Any:
    """Copy a value with its keys in UTF-16 order and its floats already spelled."""
    if isinstance(value, dict):
        "".join(value)  # a key that is no text is a TypeError here
        ordered = sorted(value, key=_utf16)
        return {key: _rebuilt(value[key]) for key in ordered}
    if isinstance(value, list | tuple):
        return [_rebuilt(item) for item in value]
    if isinstance(value, float):
        return msgspec.Raw(_number(value).encode("ascii"))
    if isinstance(value, int) and not -INTEGER_MAX <= value <= INTEGER_MAX:
        raise ValueError("an integer beyond 2^53-1 has no canonical form")
    if value is not None and not isinstance(value, str | int):
        raise TypeError(f"JSON has no form for {type(value).__name__}")
    return value


def _utf16(key: str) -> bytes:
    # Big-endian octets compare as the code units do.
    return key.encode("utf-16-be")


def _number(value: float) -> str:
    """Spell a double as ECMAScript's Number::toString does."""
    if not math.isfinite(value):
        raise ValueError("NaN and the infinities have no canonical form")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    # repr gives the shortest digits that read back as the same double, which is also ECMAScript's choice.
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.DIGITS times ten to the power of point.
    point = len(whole) + int(exponent or "0")
    if whole == "0":
        point -= len(fraction) - len(fraction.lstrip("0")) + 1
    digits = digits.rstrip("0")
    if len(digits) <= point <= _POINT_MAX:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= _POINT_MAX:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if _POINT_MIN < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"
