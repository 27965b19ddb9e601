"""The page about the client library keeps its word."""

import re
from pathlib import Path

from heliograph.arkret.client import account_data, blocklist
from heliograph.pushrules.arkret import conditions, ruleset
from heliograph.pushrules.dnd import schedule

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "client.md").read_text(encoding="utf-8")


def test_the_examples_run_as_one_program() -> None:
    """One after the other; their assertions hold."""
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)

    assert len(examples) == 5


def test_the_limits_are_the_limits() -> None:
    """Number by number, in the order of the table."""
    rows = re.findall(r"\| ([\d,]+) ?(?:characters|octets)? ?\|", PAGE)

    assert [int(row.replace(",", "")) for row in rows] == [
        ruleset.RULES_MAX,
        ruleset.CONDITIONS_MAX,
        conditions.PATTERNS_MAX,
        conditions.PATTERN_MAX_CHARACTERS,
        ruleset.RULE_ID_MAX_CHARACTERS,
        schedule.PERIODS_MAX,
        schedule.EXCEPTIONS_MAX,
        blocklist.ENTRIES_MAX,
        account_data.VALUE_OCTETS_MAX,
    ]


def test_every_module_is_named() -> None:
    """None that an app would look for is left out."""
    modules = Path(account_data.__file__).parent.glob("*.py")
    names = {path.stem for path in modules} - {"__init__", "kept", "blocklist"}

    assert [name for name in sorted(names) if f"`{name}`" not in PAGE] == []
