"""Applies numbered schema steps, forward only, each once, under a lock, in one transaction each.

A step is a file ``NNNN_name.sql``. Statements end in ``;`` at the end of a line. A block between
``-- only: sqlite`` (or ``postgres``) and ``-- end`` is for that database alone and must say why in a
``-- why:`` line. Two numbers guard the data: the newest step a database has seen, which must be one we know,
and the oldest program that the newest step still allows (``-- oldest: N``), so that a program which is too
old for the data refuses to start.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from heliograph.storage.database import Database, Query, Tx
from heliograph.storage.queries import load_queries, percent_style
from heliograph.wire.instant import Instant

_SQL: Final = load_queries("heliograph.storage.migrations", "runner.sql")
_FILE: Final = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.sql", re.ASCII)
_OLDEST: Final = re.compile(r"^-- oldest: (\d+)\s*$", re.MULTILINE)


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
    """

    version: int
    name: str
    text: str
    checksum: str
    oldest: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What stands between a database and this program.

    Attributes:
        current: The newest applied step, or 0.
        pending: The steps to apply, in order.
    """

    current: int
    pending: tuple[Migration, ...]


def known_migrations(package: str = "heliograph.storage.migrations") -> tuple[Migration, ...]:
    """Return every step this program knows, in order.

    Raises:
        MigrationRefused: The files leave out a number.
    """
    found = []
    for entry in sorted(resources.files(package).iterdir(), key=lambda entry: entry.name):
        match = _FILE.fullmatch(entry.name)
        if match is None:
            continue
        text = entry.read_text(encoding="utf-8")
        oldest = _OLDEST.search(text)
        found.append(
            Migration(
                version=int(match["version"]),
                name=match["name"],
                text=text,
                checksum=hashlib.sha256(text.encode()).hexdigest(),
                oldest=int(oldest[1]) if oldest else 1,
            )
        )
    if [step.version for step in found] != list(range(1, len(found) + 1)):
        raise MigrationRefused("the schema steps leave out a number")
    return tuple(found)


async def plan(database: Database, known: Sequence[Migration] | None = None) -> Plan:
    """Say what would be applied.

    Raises:
        MigrationRefused: The data is newer than this program allows, or an applied step was edited.
    """
    return await database.read(_plan, tuple(known_migrations() if known is None else known))


async def migrate(
    database: Database,
    now: Instant,
    known: Sequence[Migration] | None = None,
    progress: Callable[[Migration], None] | None = None,
) -> Plan:
    """Apply what is pending. Two processes that start at once apply each step once between them.

    Args:
        database: The database.
        now: Recorded with each step.
        known: The steps; those of the package by default.
        progress: Told of each step when it is on disk.

    Returns:
        What had been pending.

    Raises:
        MigrationRefused: As for ``plan``.
    """
    steps = tuple(known_migrations() if known is None else known)
    before = await plan(database, steps)
    for step in before.pending:
        if await database.claim(_apply, step, steps, now) and progress is not None:
            progress(step)
    return before


def _plan(tx: Tx, known: tuple[Migration, ...]) -> Plan:
    if tx.one(_SQL["exists"]) is None:
        return Plan(0, known)
    rows = tx.all(_SQL["applied"])
    newest = 0
    by_version = {step.version: step for step in known}
    for version, name, checksum, oldest in rows:
        newest = version
        step = by_version.get(version)
        if step is None:
            if oldest > len(known):
                raise MigrationRefused(
                    f"this program is too old for the data: a newer one applied step {version} ({name})"
                )
        elif step.checksum != checksum:
            raise MigrationRefused(f"step {version} ({name}) was edited after it was applied")
    return Plan(newest, tuple(step for step in known if step.version > newest))


def _apply(tx: Tx, step: Migration, known: tuple[Migration, ...], now: Instant) -> bool:
    """Apply one step, unless another process was quicker.

    At READ COMMITTED on purpose: what is looked at behind the lock must be what the other process left, not
    a snapshot from before the wait.
    """
    tx.run(_SQL["lock"])
    tx.run(_SQL["create"])
    if step not in _plan(tx, known).pending:
        return False
    for number, (sqlite, postgres) in enumerate(_statements(step.text)):
        tx.run(Query(f"{step.version:04d}_{step.name}.{number}", sqlite, percent_style(postgres)))
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


def _statements(text: str) -> list[tuple[str, str]]:
    """Split a step into statements, each spelled for both databases; a no-op where one has none."""
    statements: list[tuple[str, str]] = []
    only = ""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("-- only: "):
            only = line.removeprefix("-- only: ").strip()
        elif line.startswith("-- end"):
            only = ""
        elif line.strip() and not line.lstrip().startswith("--"):
            lines.append(line)
            if line.rstrip().endswith(";"):
                statement = "\n".join(lines).rstrip().removesuffix(";")
                lines = []
                statements.append(
                    (
                        _NOTHING if only == "postgres" else statement,
                        _NOTHING if only == "sqlite" else statement,
                    )
                )
    return statements


_NOTHING: Final = "SELECT 1"
