"""Loads named statements from ``.sql`` files and spells their parameters for each database.

A file holds statements, each behind a line ``-- name: <word>``. Where a dialect forces another text, a twin
follows behind ``-- name: <word> (postgres)`` or ``(sqlite)``, with a ``-- why:`` line that gives the reason.
"""

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Final

from heliograph.storage.database import Query

_NAME: Final = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)(?: \((?P<twin>postgres|sqlite)\))?\s*$")
_WHY: Final = re.compile(r"^-- why: \S")
_TOKEN: Final = re.compile(
    r"(?P<skip>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|::)|:(?P<name>[a-z_][a-z0-9_]*)|(?P<percent>%)",
    re.DOTALL,
)


class BrokenQueryFile(Exception):  # noqa: N818 - a bug of ours, found when the program starts
    """A ``.sql`` file does not follow the rules above."""


def load_queries(package: str, file: str) -> Mapping[str, Query]:
    """Load the statements of one file.

    Args:
        package: The package that ships the file.
        file: Its name.

    Raises:
        BrokenQueryFile: A statement without a name, a name twice, a twin without a reason or a partner.
    """
    text = resources.files(package).joinpath(file).read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    for name, twin, statement in _statements(text, file):
        of_name = found.setdefault(name, {})
        if twin in of_name:
            raise BrokenQueryFile(f"{file}: {name} stands twice")
        of_name[twin] = statement
    queries: dict[str, Query] = {}
    for name, texts in found.items():
        plain = texts.get("")
        sqlite, postgres = texts.get("sqlite", plain), texts.get("postgres", plain)
        if sqlite is None or postgres is None:
            raise BrokenQueryFile(f"{file}: {name} has no text for one database")
        stem = file.removesuffix(".sql")
        queries[name] = Query(f"{stem}.{name}", sqlite, percent_style(postgres))
    return queries


def percent_style(text: str) -> str:
    """Turn ``:name`` parameters into ``%(name)s``, outside of literals, comments and casts."""

    def spelled(match: re.Match[str]) -> str:
        if match["name"]:
            return f"%({match['name']})s"
        return "%%" if match["percent"] else match[0].replace("%", "%%")

    return _TOKEN.sub(spelled, text)


def _statements(text: str, file: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name, twin or empty, statement)."""
    head: re.Match[str] | None = None
    why = False
    lines: list[str] = []

    def finished() -> tuple[str, str, str]:
        assert head is not None  # noqa: S101 - called only behind a name
        statement = "\n".join(lines).strip().removesuffix(";").strip()
        if not statement:
            raise BrokenQueryFile(f"{file}: {head['name']} is empty")
        if head["twin"] and not why:
            raise BrokenQueryFile(f"{file}: the {head['twin']} twin of {head['name']} does not say why")
        return head["name"], head["twin"] or "", statement

    for line in text.splitlines():
        match = _NAME.match(line)
        if match is not None:
            if head is not None:
                yield finished()
            head, why, lines = match, False, []
        elif line.startswith("-- name:"):
            raise BrokenQueryFile(f"{file}: a name is a lower-case word: {line}")
        elif _WHY.match(line):
            why = True
        elif head is not None and not line.startswith("--"):
            lines.append(line)
        elif head is None and line.strip() and not line.startswith("--"):
            raise BrokenQueryFile(f"{file}: a statement stands before the first name")
    if head is not None:
        yield finished()
