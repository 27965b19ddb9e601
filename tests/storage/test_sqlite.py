"""What is SQLite's own: one process to a file, disks that fill up or fail, a database in memory."""

import asyncio
import json
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from heliograph.storage.database import (
    CommitUnknown,
    ConstraintViolated,
    DatabaseUnavailable,
    Query,
    StatementRefused,
    Tx,
)
from heliograph.storage.sqlite import AlreadyOpen, SqliteDatabase
from tests.storage.things import add, create, get, names, put, total

pytestmark = pytest.mark.anyio

MEMORY: Literal[":memory:"] = ":memory:"


def query(text: str) -> Query:
    """Wrap a text that is SQLite's alone."""
    return Query("test.query", text, "")


class TestOneProcess:
    async def test_a_second_process_may_not_write_to_the_same_file(self, tmp_path: Path) -> None:
        """Two writers would starve each other; the second is told at once, also by another name."""
        first = await SqliteDatabase.open(tmp_path / "a.sqlite")
        (tmp_path / "alias.sqlite").symlink_to(tmp_path / "a.sqlite")

        for name in ("a.sqlite", "alias.sqlite"):
            with pytest.raises(AlreadyOpen, match=r"a\.sqlite is in use by another process"):
                await SqliteDatabase.open(tmp_path / name)
        await first.close()
        await (await SqliteDatabase.open(tmp_path / "a.sqlite")).close()

    async def test_a_guest_writes_beside_the_process_that_serves(self, tmp_path: Path) -> None:
        """A command adds its row while the program runs; both see both."""
        host = await SqliteDatabase.open(tmp_path / "a.sqlite")
        await host.transact(create)
        guest = await SqliteDatabase.open(tmp_path / "a.sqlite", exclusive=False)

        await asyncio.gather(host.transact(put, "host"), guest.transact(put, "guest"))

        assert await host.read(names) == await guest.read(names) == ["guest", "host"]
        await guest.close()
        await host.close()

    async def test_a_guest_leaves_the_log_to_the_host(self, tmp_path: Path) -> None:
        """Only one process ever copies it back."""
        host = await SqliteDatabase.open(tmp_path / "a.sqlite")
        guest = await SqliteDatabase.open(tmp_path / "a.sqlite", exclusive=False)
        pages = query("PRAGMA wal_autocheckpoint")

        of_host = await host.transact(lambda tx: tx.one(pages))
        of_guest = await guest.transact(lambda tx: tx.one(pages))
        await guest.close()
        await host.close()

        assert (of_host, of_guest) == ((8_000,), (0,))

    async def test_a_file_that_another_holds_too_long_is_unavailable(self, tmp_path: Path) -> None:
        """And available again when it lets go."""
        database = await SqliteDatabase.open(tmp_path / "a.sqlite", busy_s=0.01)
        await database.transact(create)
        other = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(DatabaseUnavailable, match="SQLITE_BUSY"):
            await database.transact(put, "while held")
        with pytest.raises(DatabaseUnavailable, match="SQLITE_BUSY"):
            await database.ping()
        other.execute("ROLLBACK")
        other.close()
        await database.transact(put, "after")

        assert await database.read(names) == ["after"]
        await database.close()


class TestOpening:
    async def test_what_is_promised_is_set(self, tmp_path: Path) -> None:
        """Every commit is synced, and nobody else can read the files."""
        database = await SqliteDatabase.open(tmp_path / "a.sqlite")
        await database.transact(create)

        settings = {
            name: (await database.transact(lambda tx, text: tx.all(query(text)), f"PRAGMA {name}"))[0][0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
        files = ["a.sqlite", "a.sqlite-wal", "a.sqlite-shm", "a.sqlite.lock"]
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in files]
        await database.close()

        assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        assert modes == [0o600] * 4

    async def test_a_file_that_cannot_be_opened_is_unavailable(self, tmp_path: Path) -> None:
        """A missing folder, a folder, a file that is something else: said in a line, and nothing is held."""
        (tmp_path / "text.sqlite").write_text(
            "This is no database, but long enough to be taken for one." * 99
        )

        with pytest.raises(DatabaseUnavailable, match=r"a\.sqlite cannot be opened: No such file"):
            await SqliteDatabase.open(tmp_path / "missing" / "a.sqlite")
        with pytest.raises(DatabaseUnavailable, match="cannot be opened: Is a directory"):
            await SqliteDatabase.open(tmp_path)
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable, match="SQLITE_NOTADB"):
                await SqliteDatabase.open(tmp_path / "text.sqlite")

    async def test_an_old_library_is_told_in_a_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not by the first statement that it cannot read."""
        monkeypatch.setattr(sqlite3, "sqlite_version", "3.37.2")
        monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))

        with pytest.raises(DatabaseUnavailable, match=r"SQLite 3\.37\.2 is too old: at least 3\.38\.0"):
            await SqliteDatabase.open(tmp_path / "a.sqlite")

    async def test_a_lock_that_cannot_be_made_is_told(self, tmp_path: Path) -> None:
        """Without it nobody could be kept out."""
        (tmp_path / "a.sqlite.lock").mkdir()

        with pytest.raises(DatabaseUnavailable, match=r"a\.sqlite cannot be locked: Is a directory"):
            await SqliteDatabase.open(tmp_path / "a.sqlite")

    async def test_a_reader_that_cannot_be_opened_is_unavailable(self, tmp_path: Path) -> None:
        """The writer goes on; the next read tries again."""
        database = await SqliteDatabase.open(tmp_path / "a.sqlite")
        await database.transact(create)
        (tmp_path / "a.sqlite").rename(tmp_path / "away.sqlite")
        (tmp_path / "a.sqlite").mkdir()

        with pytest.raises(DatabaseUnavailable, match="SQLITE_CANTOPEN"):
            await database.read(total)
        (tmp_path / "a.sqlite").rmdir()
        (tmp_path / "away.sqlite").rename(tmp_path / "a.sqlite")

        assert await database.read(total) == 0
        await database.close()


class TestDisk:
    async def test_a_full_database_accepts_nothing_and_recovers(self, tmp_path: Path) -> None:
        """Nothing is acknowledged while it is full; once there is room it goes on without a restart."""
        database = await SqliteDatabase.open(tmp_path / "a.sqlite")
        await database.transact(create)
        pages = await database.read(lambda tx: tx.all(query("PRAGMA page_count")))
        await database.transact(lambda tx: tx.all(query(f"PRAGMA max_page_count = {pages[0][0]}")))

        fates = await asyncio.gather(
            *(database.transact(put, f"{number}-" + "x" * 1_000) for number in range(1_000)),
            return_exceptions=True,
        )
        accepted = await database.read(total)
        # The limit belongs to the connection that was given up, so the next one has room again.
        await database.transact(put, "after")
        after = await database.read(total)
        await database.close()

        assert {type(fate) for fate in fates} == {type(None), DatabaseUnavailable}
        assert accepted == sum(fate is None for fate in fates)
        assert after == accepted + 1

    async def test_a_function_that_swallows_a_full_disk_is_not_believed(self, tmp_path: Path) -> None:
        """SQLite may have rolled back everything by then; what it would write next must not be committed."""
        database = await SqliteDatabase.open(tmp_path / "a.sqlite")
        await database.transact(create)

        def swallow(tx: Tx) -> str:
            put(tx, "before")
            pages = tx.all(query("PRAGMA page_count"))
            tx.all(query(f"PRAGMA max_page_count = {pages[0][0]}"))
            for number in range(100):
                try:
                    put(tx, f"{number}-" + "x" * 1_000)
                except DatabaseUnavailable:
                    continue
            return "all is well"

        with pytest.raises(DatabaseUnavailable, match="SQLITE_FULL"):
            await database.transact(swallow)

        assert await database.read(total) == 0
        await database.close()

    def test_a_disk_that_fails_in_a_commit_leaves_it_open_what_is_on_it(self, tmp_path: Path) -> None:
        """The operating system cuts the log off in the middle of a commit: nothing is told to be done."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.storage.failing_disk", str(tmp_path / "a.sqlite")],
            capture_output=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )

        assert json.loads(done.stdout) == {
            "before": ["before"],
            "fates": [CommitUnknown.__name__],
            "codes": ["SQLITE_IOERR_WRITE"],
            "meanwhile": ["before"],
            "after": ["after", "before"],
        }


class TestMemory:
    async def test_it_is_a_database_like_the_others(self) -> None:
        """For tests of what lies above; gone when it is closed."""
        database = await SqliteDatabase.open(MEMORY)
        await database.transact(create)
        await asyncio.gather(*(database.transact(put, f"n{number}", number) for number in range(10)))
        added = await database.transact(add, "n5", 2)
        seen = await asyncio.gather(database.read(total), database.read(get, "n5"), database.claim(total))
        await database.close()

        assert (added, *seen) == (7, 10, 7, 10)
        with pytest.raises(DatabaseUnavailable):
            await database.read(total)

    async def test_two_of_them_share_nothing(self) -> None:
        """Each is its own."""
        first, second = await SqliteDatabase.open(MEMORY), await SqliteDatabase.open(MEMORY)
        await first.transact(create)

        with pytest.raises(StatementRefused, match="no such table: things"):
            await second.read(total)
        await first.close()
        await second.close()

    async def test_a_failure_keeps_what_was_committed(self) -> None:
        """Its connection is all there is of it, so that is never given up."""
        database = await SqliteDatabase.open(MEMORY)
        await database.transact(create)
        await database.transact(put, "kept")
        pages = await database.read(lambda tx: tx.all(query("PRAGMA page_count")))
        limit = query(f"PRAGMA max_page_count = {pages[0][0]}")

        def overfill(tx: Tx) -> None:
            tx.all(limit)
            for number in range(100):
                put(tx, f"{number}-" + "x" * 1_000)

        with pytest.raises(DatabaseUnavailable, match="SQLITE_FULL"):
            await database.transact(overfill)
        with pytest.raises(ConstraintViolated):
            await database.transact(put, "kept")
        with pytest.raises(StatementRefused):
            await database.read(put, "sneaked in")

        assert await database.read(names) == ["kept"]
        await database.close()


async def test_a_batch_is_committed_when_its_time_is_up(tmp_path: Path) -> None:
    """Functions that take long do not keep the first of them waiting for the last."""
    commits: list[int] = []
    database = await SqliteDatabase.open(
        tmp_path / "a.sqlite", observe=lambda count, _: commits.append(count)
    )
    await database.transact(create)
    commits.clear()
    # Some tenths of a second of counting, which only SQLite sees.
    slow = query(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) SELECT max(i) FROM n"
    )

    def work(tx: Tx, number: int) -> None:
        tx.all(slow)
        put(tx, f"n{number}")

    await asyncio.gather(*(database.transact(work, number) for number in range(3)))

    assert database.waiting == 0
    assert await database.read(total) == sum(commits) == 3
    assert len(commits) > 1
    await database.close()
