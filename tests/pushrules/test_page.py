"""The page about push rules keeps its word."""

import re
from pathlib import Path

from heliograph.pushrules.glob import PATTERNS_MAX
from heliograph.pushrules.matrix.actions import ACTIONS_MAX
from heliograph.pushrules.matrix.conditions import _READERS, PATTERN_MAX_BYTES
from heliograph.pushrules.matrix.event import DECORATIONS
from heliograph.pushrules.matrix.rule import CONDITIONS_MAX, RULE_ID_MAX_BYTES
from heliograph.pushrules.matrix.ruleset import RULES_MAX
from heliograph.pushrules.matrix.spelling import LEVELS_MAX, RULE_SIZE_MAX_CHARACTERS
from heliograph.pushrules.matrix.subject import NAME_MAX_CHARACTERS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "push-rules.md").read_text(encoding="utf-8")


def test_the_example_runs() -> None:
    """Its assertions hold."""
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    assert len(examples) == 1
    exec(examples[0], {})


def test_the_limits_are_the_limits() -> None:
    """Number by number, in the order of the table."""
    rows = re.findall(r"\| ([\d,]+) (?:bytes|characters|levels)? ?\|", PAGE)

    assert [int(row.replace(",", "")) for row in rows] == [
        PATTERN_MAX_BYTES,
        RULE_ID_MAX_BYTES,
        CONDITIONS_MAX,
        ACTIONS_MAX,
        RULE_SIZE_MAX_CHARACTERS,
        LEVELS_MAX,
        RULES_MAX,
        NAME_MAX_CHARACTERS,
    ]
    assert f"cache of {PATTERNS_MAX:,}" in PAGE


def test_every_condition_and_every_hidden_property_is_named() -> None:
    """None is left out."""
    assert [name for name in (*_READERS, *DECORATIONS) if f"`{name}`" not in PAGE] == []
