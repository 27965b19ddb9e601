"""Turns a schema library's complaint into a refusal that names the member and repeats no value."""

import re
from typing import Final

import msgspec

from heliograph.wire.malformed import Malformed

_PLACE: Final = re.compile(r"^(?P<said>.*?)(?: - at `(?P<place>(?:key in )?\$?.*)`)?$", re.DOTALL)
_NAME: Final = re.compile(r"`([A-Za-z0-9_]{1,64})`")
_WORDS: Final = (
    ("Object contains unknown field", "is not a member of this object"),
    ("Object missing required field", "is missing"),
    ("Expected `str` matching regex", "is not spelled as it must be"),
    ("Expected `str` of length", "has the wrong length"),
    ("Expected `array` of length", "has the wrong number of items"),
    ("Expected `int`", "is outside its range or no integer"),
    ("Expected `", "has the wrong type"),
    ("Invalid enum value", "is not one of the allowed words"),
    ("Invalid value", "is not one of the allowed words"),
)


def shape_refusal(error: msgspec.ValidationError) -> Malformed:
    """Name what was wrong with the shape of a value.

    The library's own text may quote the value, which may be a secret, so only its kind and its place are
    used. What our own types say of themselves is static and is passed on.

    Args:
        error: As raised by decoding into a closed type.

    Returns:
        A refusal whose field is the path of the member, for example ``notification.devices[0].device_id``.
    """
    match = _PLACE.match(str(error))
    said, place = (match["said"], match["place"] or "") if match else ("", "")
    path = place.removeprefix("key in ").removeprefix("$").removeprefix(".")
    for prefix, problem in _WORDS:
        if said.startswith(prefix):
            if prefix.startswith("Object") and (name := _NAME.search(said)):
                path = f"{path}.{name[1]}" if path else name[1]
            return Malformed(path, problem)
    if isinstance(error.__cause__, ValueError):
        return Malformed(path, said)
    return Malformed(path, "is not acceptable")
