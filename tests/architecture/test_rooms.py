"""The tree keeps the names and sizes that the architecture gives it."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "heliograph"


def test_no_module_is_named_for_what_it_is_not() -> None:
    """A module called helpers says nothing of what it holds."""
    banned = {"utils", "util", "helpers", "common", "base", "manager", "misc"}

    offenders = [path for path in PACKAGE.rglob("*.py") if path.stem in banned]

    assert offenders == []


def test_no_file_outgrows_what_can_be_read_at_once() -> None:
    """600 lines need a decision record; none has one."""
    long = [path for path in PACKAGE.rglob("*.py") if len(path.read_text().splitlines()) > 600]

    assert long == []
