"""Loads named statements from ``.sql`` files and spells their parameters for each database.

A file holds statements, each behind a line ``-- name: <word>``. Where a dialect forces another text, a twin
follows behind ``-- name: <word> (postgres)`` or ``(sqlite)``, with a ``-- why:`` line that gives the reason.
Parameters are written ``:name``. Lines that begin with ``--`` are for the reader and not sent.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Final

from heliograph.storage.database import Query

TWINS: Final = ("sqlite", "postgres")

_NAME: Final = re.compile(r"-- name: (?P<name>[a-z][a-z0-9_]*)(?: \((?P<twin>\w+)\))?\s*", re.ASCII)
_NEARLY_A_NAME: Final = re.compile(r"\s*--+\s*name\s*:", re.IGNORECASE)
_WHY: Final = re.compile(r"-- why: \S")
_TOKEN: Final = re.compile(
    r"""
      (?P<escape> (?<!\w)[eE]' )                         # E'…' has rules of its own; nobody needs it here
    | (?P<opaque> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )
    | (?P<cast> :: )
    | :(?P<name> [A-Za-z_]\w* )
    | (?P<percent> % )
    | (?P<end> ; )
    | (?P<torn> ['"] | /\* )                           # begins something that does not end
    """,
    re.DOTALL | re.VERBOSE | re.ASCII,
)


class BrokenQueryFile(Exception):  # noqa: N818 - a bug of ours, found when the program starts
    """A ``.sql`` file does not follow the rules above."""


@dataclass(slots=True)
class _Block:
    """What stands behind one name line."""

    name: str
    twin: str
    why: bool = False
    lines: list[str] = field(default_factory=list)


def load_queries(package: str, file: str) -> Mapping[str, Query]:
    """Load the statements of one file.

    Args:
        package: The package that ships the file.
        file: Its name.

    Raises:
        BrokenQueryFile: A statement without a name, a name twice, a twin without a reason or a partner, a
            text that could not be sent.
    """
    text = resources.files(package).joinpath(file).read_text(encoding="utf-8")
    return parse_queries(text, file)


def parse_queries(text: str, file: str) -> Mapping[str, Query]:
    """Read the statements of a text; ``file`` is what errors and names call it.

    Raises:
        BrokenQueryFile: As for ``load_queries``.
    """
    found: dict[str, dict[str, str]] = {}
    for block in _blocks(text, file):
        of_name = found.setdefault(block.name, {})
        if block.twin in of_name:
            raise BrokenQueryFile(f"{file}: {block.name} stands twice")
        of_name[block.twin] = _statement(block, file)
    stem = file.removesuffix(".sql")
    return {name: _query(f"{stem}.{name}", texts) for name, texts in found.items()}


def percent_style(text: str) -> str:
    """Turn ``:name`` parameters into ``%(name)s``, outside of literals, comments and casts."""

    def spelled(match: re.Match[str]) -> str:
        if match["name"]:
            return f"%({match['name']})s"
        return match[0].replace("%", "%%")

    return _TOKEN.sub(spelled, text)


def parameters(text: str) -> frozenset[str]:
    """Return the names of a statement's ``:name`` parameters."""
    return frozenset(match["name"] for match in _TOKEN.finditer(text) if match["name"])


def _query(name: str, texts: Mapping[str, str]) -> Query:
    plain = texts.get("")
    if plain is not None and all(twin in texts for twin in TWINS):
        raise BrokenQueryFile(f"{name}: both databases have a twin, so its plain text is never used")
    sqlite, postgres = texts.get("sqlite", plain), texts.get("postgres", plain)
    if sqlite is None or postgres is None:
        raise BrokenQueryFile(f"{name} has no text for {'sqlite' if sqlite is None else 'postgres'}")
    if any(match["cast"] for match in _TOKEN.finditer(sqlite)):
        raise BrokenQueryFile(f"{name}: SQLite does not know '::'; write CAST(… AS …), or a twin")
    return Query(name, sqlite, percent_style(postgres))


def _statement(block: _Block, file: str) -> str:
    """Return the one statement of a block, having looked for what no database or only a guess could read."""
    where = f"{file}: {block.name}"
    if block.twin and block.twin not in TWINS:
        raise BrokenQueryFile(f"{where}: there is no database {block.twin!r}, only {' and '.join(TWINS)}")
    if block.twin and not block.why:
        raise BrokenQueryFile(f"{where}: the {block.twin} twin does not say why")
    statement = "\n".join(block.lines).strip().removesuffix(";").strip()
    if not statement:
        raise BrokenQueryFile(f"{where} is empty")
    for match in _TOKEN.finditer(statement):
        if match["escape"]:
            raise BrokenQueryFile(f"{where}: E'…' is PostgreSQL's own; write a plain literal")
        if match["torn"]:
            raise BrokenQueryFile(f"{where}: {match['torn']} opens something that is never closed")
        if match["end"]:
            raise BrokenQueryFile(f"{where} is more than one statement")
        if match["name"] and not match["name"].islower():
            raise BrokenQueryFile(f"{where}: a parameter is a lower-case word: :{match['name']}")
    return statement


def _blocks(text: str, file: str) -> Iterator[_Block]:
    block: _Block | None = None
    for line in text.split("\n"):
        head = _NAME.fullmatch(line)
        if head is not None:
            if block is not None:
                yield block
            block = _Block(head["name"], head["twin"] or "")
        elif _NEARLY_A_NAME.match(line):
            raise BrokenQueryFile(f"{file}: write '-- name: lower_case_word', not {line.strip()!r}")
        elif line.startswith("--"):
            if block is not None and _WHY.match(line):
                block.why = True
        elif block is not None:
            block.lines.append(line)
        elif line.strip():
            raise BrokenQueryFile(f"{file}: a statement stands before the first name")
    if block is not None:
        yield block
