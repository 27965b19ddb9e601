"""JSON values as one text each: what is equal is spelled equal, and 1, 1.0, "1" and true are four texts.

Python takes 1, 1.0 and True for equal, and rules that differ in just that must never be taken for one. So
rules are compared by how they are spelled. A text is also hashable and cannot change under anyone's hands.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from heliograph.pushrules.matrix.refusal import Fault, RuleRefused

RULE_SIZE_MAX_CHARACTERS: Final = 65_536
"""Longest spelling of what one rule holds: as much as the largest event, so no honest rule comes near."""

LEVELS_MAX: Final = 32
"""Deepest nesting inside a rule. Rules nest three levels; the value of a tweak may be anything."""

_INTEGER_MAX_BITS: Final = 1_024
"""Integers beyond this are longer than any double, and cost more than linear time to spell."""


def spell(value: object, field: str) -> str:
    """Spell a JSON value.

    Args:
        value: None, booleans, numbers, texts, and lists, tuples and mappings of them.
        field: Where it stood, for the error.

    Returns:
        The same text for the same value, whatever the order of members, in ASCII.

    Raises:
        RuleRefused: The value is not JSON, or larger or deeper than a rule may be.
    """
    text = json.dumps(_plain(value, field, LEVELS_MAX), sort_keys=True, separators=(",", ":"))
    if len(text) > RULE_SIZE_MAX_CHARACTERS:
        raise RuleRefused(Fault.TOO_LARGE, field, f"must not pass {RULE_SIZE_MAX_CHARACTERS} characters")
    return text


def unspell(text: str) -> Any:
    """Read a spelling back, as lists and dicts of the caller's own."""
    return json.loads(text)


def _plain(value: object, field: str, levels: int) -> object:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and value.bit_length() <= _INTEGER_MAX_BITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if not levels:
        raise RuleRefused(Fault.TOO_LARGE, field, f"must not be nested deeper than {LEVELS_MAX} levels")
    if isinstance(value, list | tuple):
        return [_plain(item, field, levels - 1) for item in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(item, field, levels - 1) for name, item in value.items()}
    raise RuleRefused(Fault.INVALID, field, "must be JSON")
