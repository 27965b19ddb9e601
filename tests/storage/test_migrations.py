"""Schema steps: read strictly, applied once, in order, by one of several, on data that is in use."""

import asyncio
from pathlib import Path

import pytest

from heliograph.storage.database import Database, Query
from heliograph.storage.migrations.runner import (
    Migration,
    MigrationRefused,
    known_migrations,
    migrate,
    plan,
    read_migration,
)
from heliograph.storage.postgres import PostgresDatabase
from heliograph.storage.queries import BrokenQueryFile
from heliograph.storage.sqlite import SqliteDatabase
from tests.databases import BOTH

FIRST = read_migration("0001_things.sql", "CREATE TABLE things (name TEXT NOT NULL PRIMARY KEY);\n")
SECOND = read_migration("0002_value.sql", "ALTER TABLE things ADD COLUMN value BIGINT NOT NULL DEFAULT 7;\n")
THIRD = read_migration("0003_index.sql", "-- oldest: 2\nCREATE INDEX things_value ON things (value);\n")
STEPS = (FIRST, SECOND, THIRD)

FILL = Query(
    "fill",
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
    "INSERT INTO things (name) SELECT 'n' || i FROM n",
    "INSERT INTO things (name) SELECT 'n' || i FROM generate_series(1, 1000) AS i",
)
VALUES = Query("v", "SELECT count(*), sum(value) FROM things", "SELECT count(*), sum(value) FROM things")
DATES = Query(
    "d",
    "SELECT version, applied_at FROM schema_migrations ORDER BY version",
    "SELECT version, applied_at FROM schema_migrations ORDER BY version",
)
FORGET_SECOND = Query(
    "f", "DELETE FROM schema_migrations WHERE version = 2", "DELETE FROM schema_migrations WHERE version = 2"
)


@pytest.fixture(params=BOTH)
async def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """A database without a schema."""
    if request.param == "sqlite":
        return await SqliteDatabase.open(tmp_path / "empty.sqlite")
    return await PostgresDatabase.open(request.getfixturevalue("postgres_url"))


class TestReading:
    def test_statements_are_told_apart_by_the_semicolon_at_the_end_of_a_line(self) -> None:
        """One inside a line belongs to its statement; remarks are left out."""
        step = read_migration(
            "0007_two.sql", "-- Why.\nCREATE TABLE a (\n  -- x\n  b TEXT\n);\nSELECT ';' ;\n"
        )

        assert [(one.name, one.sqlite, one.postgres) for one in step.statements] == [
            ("0007_two.1", "CREATE TABLE a (\n  b TEXT\n)", "CREATE TABLE a (\n  b TEXT\n)"),
            ("0007_two.2", "SELECT ';' ", "SELECT ';' "),
        ]

    def test_a_block_is_for_its_database_alone(self) -> None:
        """The other runs nothing in its place."""
        step = read_migration("0001_a.sql", "-- only: postgres\n-- why: x\nSELECT '%';\n-- end\nSELECT 3;\n")

        assert [(one.sqlite, one.postgres) for one in step.statements] == [
            ("SELECT 1", "SELECT '%%'"),
            ("SELECT 3", "SELECT 3"),
        ]

    @pytest.mark.parametrize(
        ("file", "text", "why"),
        [
            ("1_a.sql", "", "1_a.sql: a step is named NNNN_name.sql"),
            (
                "0001_a.sql",
                "-- only: mysql\n-- end\n",
                "0001_a.sql: there is no database 'mysql', only sqlite and postgres",
            ),
            (
                "0001_a.sql",
                "-- only: sqlite\nSELECT 1;\n-- end\n",
                "0001_a.sql: the block for sqlite does not say why",
            ),
            (
                "0001_a.sql",
                "-- only: sqlite\n-- why: x\nSELECT 1;\n",
                "0001_a.sql: the block for sqlite does not end",
            ),
            ("0001_a.sql", "SELECT 1", "0001_a.sql: its last statement does not end in ';'"),
            ("0001_a.sql", "SELECT :a;", "0001_a.1: a schema step has no parameters"),
            (
                "0001_a.sql",
                "-- oldest: 2\n",
                "0001_a.sql: no program that knows this step is as new as step 2",
            ),
        ],
    )
    def test_a_step_that_could_be_misread_is_refused(self, file: str, text: str, why: str) -> None:
        """A statement that is silently left out would be found in production."""
        with pytest.raises(BrokenQueryFile) as refusal:
            read_migration(file, text)

        assert str(refusal.value) == why

    def test_our_own_steps_are_complete(self) -> None:
        """Numbered from one without a gap, each with a name and statements."""
        ours = known_migrations()

        assert [step.version for step in ours] == list(range(1, len(ours) + 1))
        assert all(step.statements for step in ours)


@pytest.mark.anyio
class TestApplying:
    async def test_a_plan_lists_what_would_run_and_runs_nothing(self, empty: Database) -> None:
        """Before, between and after."""
        before = await plan(empty, STEPS)
        await migrate(empty, 5, STEPS[:2])
        between = await plan(empty, STEPS)
        await migrate(empty, 6, STEPS)
        after = await plan(empty, STEPS)
        dates = await empty.read(lambda tx: tx.all(DATES))
        await empty.close()

        assert (before.current, before.pending) == (0, STEPS)
        assert (between.current, between.pending) == (2, (THIRD,))
        assert (after.current, after.pending) == (3, ())
        assert dates == [(1, 5), (2, 5), (3, 6)]

    async def test_a_step_is_told_when_it_is_on_disk(self, empty: Database) -> None:
        """And only by who applied it."""
        told: list[Migration] = []

        first = await migrate(empty, 0, STEPS, told.append)
        second = await migrate(empty, 1, STEPS, told.append)
        await empty.close()

        assert (first.pending, second.pending, told) == (STEPS, (), list(STEPS))

    async def test_a_step_runs_on_rows_that_are_there(self, empty: Database) -> None:
        """New columns fill themselves in; programs that do not know them go on writing."""
        await migrate(empty, 0, STEPS[:1])
        await empty.transact(lambda tx: tx.run(FILL))
        await migrate(empty, 0, STEPS)

        assert await empty.read(lambda tx: tx.one(VALUES)) == (1_000, 7_000)
        await empty.close()

    async def test_a_step_that_fails_leaves_nothing_of_itself(self, empty: Database) -> None:
        """Those before it stay, and the corrected one is applied."""
        text = (
            "ALTER TABLE things ADD COLUMN value BIGINT NOT NULL DEFAULT 7;\nSELECT nothing FROM nowhere;\n"
        )
        broken = read_migration("0002_value.sql", text)

        with pytest.raises(Exception, match=r"0002_value\.2"):
            await migrate(empty, 0, (FIRST, broken))
        stopped_at = (await plan(empty, STEPS)).current
        await migrate(empty, 0, STEPS)
        await empty.close()

        assert stopped_at == 1

    async def test_a_step_that_was_edited_after_it_was_applied_is_refused(self, empty: Database) -> None:
        """Two databases would differ and nobody would know."""
        await migrate(empty, 0, STEPS[:1])
        edited = read_migration("0001_things.sql", FIRST.text + "\n-- harmless\n")

        with pytest.raises(MigrationRefused, match=r"step 1 \(things\) was edited after it was applied"):
            await migrate(empty, 0, (edited, SECOND))
        await empty.close()

    async def test_a_program_that_is_too_old_for_the_data_refuses_to_start(self, empty: Database) -> None:
        """Step 3 says that only programs which know step 2 may work with what it leaves."""
        await migrate(empty, 0, STEPS)

        with pytest.raises(MigrationRefused, match="this program is too old for the data: it knows 1 steps"):
            await plan(empty, STEPS[:1])
        assert (await plan(empty, STEPS[:2])).pending == ()
        await empty.close()

    async def test_a_gap_is_refused(self, empty: Database) -> None:
        """In the program's steps and in the data's."""
        with pytest.raises(MigrationRefused, match="the schema steps have no 2: after it comes 3"):
            await migrate(empty, 0, (FIRST, THIRD))
        await migrate(empty, 0, STEPS)
        await empty.transact(lambda tx: tx.run(FORGET_SECOND))

        with pytest.raises(MigrationRefused, match=r"the data has no step 2, but step 3 \(index\)"):
            await plan(empty, STEPS)
        await empty.close()

    async def test_of_two_that_start_at_once_one_applies_each_step(
        self, empty: Database, tmp_path: Path
    ) -> None:
        """The other waits and finds it done."""
        told: list[int] = []

        def tell(step: Migration) -> None:
            told.append(step.version)

        await asyncio.gather(migrate(empty, 0, STEPS, tell), migrate(empty, 0, STEPS, tell))
        await empty.close()

        assert told == [1, 2, 3]


@pytest.mark.anyio
@pytest.mark.service
async def test_of_two_processes_one_applies_each_step(postgres_url: str) -> None:
    """The lock is the server's: it holds between connections that know nothing of one another."""
    told: list[int] = []
    pair = [await PostgresDatabase.open(postgres_url) for _ in range(2)]

    await asyncio.gather(*(migrate(each, 0, STEPS, lambda step: told.append(step.version)) for each in pair))
    for each in pair:
        await each.close()

    assert told == [1, 2, 3]


@pytest.mark.anyio
async def test_two_guests_of_one_file_apply_each_step_once(tmp_path: Path) -> None:
    """Neither holds the file's lock, so the database's own keeps them apart."""
    told: list[int] = []
    pair = [await SqliteDatabase.open(tmp_path / "a.sqlite", exclusive=False) for _ in range(2)]

    await asyncio.gather(*(migrate(each, 0, STEPS, lambda step: told.append(step.version)) for each in pair))
    for each in pair:
        await each.close()

    assert told == [1, 2, 3]


@pytest.mark.anyio
async def test_every_step_of_ours_runs_on_data_of_the_step_before(empty: Database) -> None:
    """One after another, as on a database that has lived through all of them."""
    ours = known_migrations()
    for upto in range(1, len(ours) + 1):
        applied = await migrate(empty, upto, ours[:upto])
        assert applied.pending == ours[upto - 1 : upto]

    assert (await plan(empty)).current == len(ours)
    await empty.close()
