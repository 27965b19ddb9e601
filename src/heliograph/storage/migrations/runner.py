"""Applies numbered schema steps, forward only, each once, under a lock, in one transaction each.

A step is a file ``NNNN_name.sql``. Statements end in ``;`` at the end of a line. A block between
``-- only: sqlite`` (or ``postgres``) and ``-- end`` is for that database alone and must say why in a
``-- why:`` line. Two numbers guard the data: the newest step a database has seen, which must be one we know,
and the oldest program that the newest step still allows (``-- oldest: N``), so that a program which is too
old for the data refuses to start. A step only adds: tables, columns that may be left out, indexes. Whoever
must take something away says ``-- oldest:`` with the first program that no longer uses it.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Final

from heliograph.storage.database import Database, Query, Tx
from heliograph.storage.queries import TWINS, BrokenQueryFile, load_queries, parameters, percent_style
from heliograph.wire.instant import Instant

_SQL: Final = load_queries("heliograph.storage.migrations", "runner.sql")
_FILE: Final = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.sql", re.ASCII)
_OLDEST: Final = re.compile(r"^-- oldest: (\d+)\s*$", re.MULTILINE | re.ASCII)
_NOTHING: Final = "SELECT 1"


class MigrationRefused(Exception):  # noqa: N818 - a refusal, in words for an operator
    """The data and this program do not go together; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step.

    Attributes:
        version: Its number; the first is 1 and none is left out.
        name: What it brings.
        text: The whole file.
        checksum: Of the file, to notice that an applied step was edited.
        oldest: The oldest program version (its newest known step) that may work with the data afterwards.
        statements: What is run, in order.
    """

    version: int
    name: str
    text: str = field(repr=False)
    checksum: str
    oldest: int
    statements: tuple[Query, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """What stands between a database and this program.

    Attributes:
        current: The newest applied step, or 0.
        pending: The steps to apply, in order.
    """

    current: int
    pending: tuple[Migration, ...]


def read_migration(file: str, text: str) -> Migration:
    """Read one step.

    Args:
        file: Its name.
        text: What it holds.

    Raises:
        BrokenQueryFile: The file does not follow the rules above.
    """
    match = _FILE.fullmatch(file)
    if match is None:
        raise BrokenQueryFile(f"{file}: a step is named NNNN_name.sql")
    version = int(match["version"])
    oldest = _OLDEST.search(text)
    step = Migration(
        version=version,
        name=match["name"],
        text=text,
        checksum=hashlib.sha256(text.encode()).hexdigest(),
        oldest=int(oldest[1]) if oldest else 1,
        statements=_statements(file, text),
    )
    if step.oldest > version:
        raise BrokenQueryFile(f"{file}: no program that knows this step is as new as step {step.oldest}")
    return step


def known_migrations(package: str = "heliograph.storage.migrations") -> tuple[Migration, ...]:
    """Return every step this program knows, in order.

    Raises:
        BrokenQueryFile: A file does not follow the rules above.
        MigrationRefused: The files leave out a number or give one twice.
    """
    entries = sorted(resources.files(package).iterdir(), key=lambda entry: entry.name)
    found = tuple(
        read_migration(entry.name, entry.read_text(encoding="utf-8"))
        for entry in entries
        if _FILE.fullmatch(entry.name)
    )
    return _without_gaps(found)


async def plan(database: Database, known: Sequence[Migration] | None = None) -> Plan:
    """Say what would be applied.

    Raises:
        MigrationRefused: The data is newer than this program allows, an applied step was edited, or a number
            is left out.
    """
    return await database.read(_plan, known_migrations() if known is None else _without_gaps(known))


async def migrate(
    database: Database,
    now: Instant,
    known: Sequence[Migration] | None = None,
    progress: Callable[[Migration], None] | None = None,
) -> Plan:
    """Apply what is pending. Of two processes that start at once, one applies a step and the other waits.

    Args:
        database: The database.
        now: Recorded with each step.
        known: The steps; those of the package by default.
        progress: Told of each step that we applied, when it is on disk.

    Returns:
        What had been pending.

    Raises:
        MigrationRefused: As for ``plan``.
    """
    steps = known_migrations() if known is None else _without_gaps(known)
    before = await plan(database, steps)
    for step in before.pending:
        if await database.claim(_apply, step, steps, now) and progress is not None:
            progress(step)
    return before


def _without_gaps(known: Sequence[Migration]) -> tuple[Migration, ...]:
    for expected, step in enumerate(known, 1):
        if step.version != expected:
            raise MigrationRefused(f"the schema steps have no {expected}: after it comes {step.version}")
    return tuple(known)


def _plan(tx: Tx, known: tuple[Migration, ...]) -> Plan:
    if tx.one(_SQL["exists"]) is None:
        return Plan(0, known)
    applied = tx.all(_SQL["applied"])
    for expected, (version, name, checksum, oldest) in enumerate(applied, 1):
        if version != expected:
            raise MigrationRefused(f"the data has no step {expected}, but step {version} ({name})")
        if oldest > len(known):
            raise MigrationRefused(
                f"this program is too old for the data: it knows {len(known)} steps, and step {version} "
                f"({name}) allows none that knows fewer than {oldest}"
            )
        if version <= len(known) and known[version - 1].checksum != checksum:
            raise MigrationRefused(f"step {version} ({name}) was edited after it was applied")
    return Plan(len(applied), known[len(applied) :])


def _apply(tx: Tx, step: Migration, known: tuple[Migration, ...], now: Instant) -> bool:
    """Apply one step, unless another process was quicker.

    At READ COMMITTED on purpose: what is looked at behind the lock must be what the other process left, not
    a snapshot from before the wait.
    """
    tx.run(_SQL["unhurried"])
    tx.run(_SQL["lock"])
    tx.run(_SQL["create"])
    if step not in _plan(tx, known).pending:
        return False
    for statement in step.statements:
        tx.run(statement)
    tx.run(
        _SQL["record"],
        {
            "version": step.version,
            "name": step.name,
            "checksum": step.checksum,
            "oldest": step.oldest,
            "applied_at": now,
        },
    )
    return True


def _statements(file: str, text: str) -> tuple[Query, ...]:
    """Split a step into statements, each spelled for both databases; a no-op where one has none."""
    found: list[Query] = []
    lines: list[str] = []
    only, why = "", True
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped.startswith("-- only:"):
            only, why = stripped.removeprefix("-- only:").strip(), False
            if only not in TWINS:
                raise BrokenQueryFile(f"{file}: there is no database {only!r}, only {' and '.join(TWINS)}")
        elif stripped.startswith("-- why: "):
            why = True
        elif stripped == "-- end":
            only = ""
        elif stripped and not stripped.startswith("--"):
            if not why:
                raise BrokenQueryFile(f"{file}: the block for {only} does not say why")
            lines.append(line)
            if stripped.endswith(";"):
                statement = "\n".join(lines).rstrip().removesuffix(";")
                found.append(_query(f"{file.removesuffix('.sql')}.{len(found) + 1}", statement, only))
                lines = []
    if lines:
        raise BrokenQueryFile(f"{file}: its last statement does not end in ';'")
    if only:
        raise BrokenQueryFile(f"{file}: the block for {only} does not end")
    return tuple(found)


def _query(name: str, statement: str, only: str) -> Query:
    if parameters(statement):
        raise BrokenQueryFile(f"{name}: a schema step has no parameters")
    return Query(
        name,
        _NOTHING if only == "postgres" else statement,
        _NOTHING if only == "sqlite" else percent_style(statement),
    )
