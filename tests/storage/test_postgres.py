"""What is PostgreSQL's own: collisions, servers that go away, statements that take too long."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from heliograph.storage.database import (
    CommitUnknown,
    ConstraintViolated,
    Database,
    DatabaseUnavailable,
    Query,
    StatementRefused,
    Tx,
)
from heliograph.storage.postgres import APART_BATCHES, PostgresDatabase
from heliograph.storage.postgres_link import PAUSE_S_FIRST, PAUSE_S_MAX, PostgresLink
from heliograph.storage.postgres_writer import ALONE_MAX, BATCH_MAX
from tests.postgres_server import PostgresServer
from tests.storage.things import SQL, add, create, get, names, put, total

pytestmark = [pytest.mark.anyio, pytest.mark.service]


def query(text: str) -> Query:
    """Wrap a text that is PostgreSQL's alone."""
    return Query("test.query", "", text)


class Outside:
    """Another client of the same database, whose transactions come in between."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)

    def put(self, name: str, value: int = 0) -> None:
        self.connection.execute("INSERT INTO things (name, value) VALUES (%s, %s)", (name, value))

    def add(self, name: str) -> None:
        self.connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        self.connection.execute("UPDATE things SET value = value + 100 WHERE name = %s", (name,))
        self.connection.execute("COMMIT")

    def end_the_others(self) -> None:
        self.connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
async def outside(postgres_url: str, things: Database) -> AsyncIterator[Outside]:
    """Another client."""
    other = Outside(postgres_url)
    yield other
    other.connection.close()


@pytest.fixture
async def retried() -> list[str]:
    """Why transactions were run again."""
    return []


@pytest.fixture
async def things(postgres_url: str, retried: list[str]) -> AsyncIterator[PostgresDatabase]:
    """A database with a table to play with."""
    database = await PostgresDatabase.open(postgres_url, retried=retried.append)
    await database.transact(create)
    yield database
    await database.close()


class TestCollisions:
    async def test_a_transaction_that_collides_is_run_again_and_sees_the_other(
        self, things: PostgresDatabase, outside: Outside, retried: list[str]
    ) -> None:
        """Its neighbours of the batch are run again with it; each is committed once."""
        await things.transact(put, "n", 0)
        runs: list[int] = []

        def collide(tx: Tx) -> int:
            seen = get(tx, "n")
            if not runs:
                outside.add("n")
            runs.append(seen or 0)
            return add(tx, "n")

        ends = await asyncio.gather(
            things.transact(put, "before"), things.transact(collide), things.transact(put, "after")
        )

        assert (ends[1], runs) == (101, [0, 100])
        assert await things.read(names) == ["after", "before", "n"]
        assert (retried, things.retries) == (["SerializationFailure"], 1)

    async def test_one_that_always_collides_is_given_up_alone(
        self, things: PostgresDatabase, outside: Outside
    ) -> None:
        """It is bounded, and its neighbours are served."""
        await things.transact(put, "n", 0)

        def collide(tx: Tx) -> int:
            get(tx, "n")
            outside.add("n")
            return add(tx, "n")

        ends = await asyncio.gather(
            *(things.transact(put, f"a{n}") for n in range(3)),
            things.transact(collide),
            *(things.transact(put, f"b{n}") for n in range(3)),
            return_exceptions=True,
        )

        assert [type(end) for end in ends] == [type(None)] * 3 + [DatabaseUnavailable] + [type(None)] * 3
        assert str(ends[3]) == "it keeps colliding"
        assert await things.read(total) == 7
        assert things.retries >= ALONE_MAX

    async def test_a_row_that_another_wrote_behind_the_look_is_found(
        self, things: PostgresDatabase, outside: Outside
    ) -> None:
        """A unique constraint that breaks for this reason alone is a collision, not a mistake."""
        runs: list[bool] = []

        def install(tx: Tx) -> str:
            names(tx)
            there = get(tx, "n") is not None
            runs.append(there)
            if there:
                return "found"
            if len(runs) == 1:
                outside.put("n")
            put(tx, "n")
            return "made"

        ends = await asyncio.gather(things.transact(install), things.transact(put, "neighbour"))

        assert ends[0] == "found"
        assert runs == [False, True]

    async def test_a_constraint_that_one_breaks_by_itself_is_its_own_mistake(
        self, things: PostgresDatabase
    ) -> None:
        """Found out by running it once more, alone."""
        runs: list[int] = []

        def twice(tx: Tx) -> None:
            runs.append(1)
            put(tx, "n")
            put(tx, "n")

        with pytest.raises(ConstraintViolated, match=r"things\.put: duplicate key value violates unique"):
            await things.transact(twice)

        assert len(runs) == 2
        assert await things.read(total) == 0

    async def test_a_rule_over_several_rows_holds_between_processes(
        self, things: PostgresDatabase, postgres_url: str
    ) -> None:
        """Of two on call one must stay; each looks at both and leaves if it may, in its own row."""
        other = await PostgresDatabase.open(postgres_url)

        def leave(tx: Tx, name: str, pair: str) -> None:
            if (get(tx, f"{pair} a") or 0) + (get(tx, f"{pair} b") or 0) == 2:
                add(tx, f"{pair} {name}", -1)

        pairs = [f"pair {number}" for number in range(30)]
        for pair in pairs:
            await things.transact(put, f"{pair} a", 1)
            await things.transact(put, f"{pair} b", 1)
        await asyncio.gather(
            *(things.transact(leave, "a", pair) for pair in pairs),
            *(other.transact(leave, "b", pair) for pair in pairs),
        )
        await other.close()
        left = await things.read(lambda tx: tx.one(query("SELECT sum(value) FROM things")))

        assert left == (30,)

    async def test_writers_that_collide_take_turns_for_a_while(
        self, things: PostgresDatabase, outside: Outside
    ) -> None:
        """Two that keep running each other's work again achieve less than one."""
        await things.transact(put, "n", 0)
        first = [True]

        def collide(tx: Tx) -> None:
            get(tx, "n")
            if first.pop() if first else False:
                outside.add("n")
            add(tx, "n")

        await things.transact(collide)
        apart = things._apart
        for number in range(APART_BATCHES + 1):
            await things.transact(put, f"n{number}")

        assert (apart, things._apart) == (APART_BATCHES, 0)

    async def test_claims_that_block_each_other_are_untied(
        self, things: PostgresDatabase, postgres_url: str, retried: list[str]
    ) -> None:
        """Two take the same rows in opposite order; the server ends one, which is run again."""
        other = await PostgresDatabase.open(postgres_url, retried=retried.append)
        await things.transact(put, "a")
        await things.transact(put, "b")
        met = threading.Barrier(2)
        tied = [2]

        def take(tx: Tx, first: str, second: str) -> None:
            tx.run(SQL["increment"], {"name": first})
            if tied[0]:
                tied[0] -= 1
                met.wait()
            tx.run(SQL["increment"], {"name": second})

        await asyncio.gather(things.claim(take, "a", "b"), other.claim(take, "b", "a"))
        await other.close()

        assert (await things.read(get, "a"), await things.read(get, "b")) == (2, 2)
        assert set(retried) == {"DeadlockDetected"}  # a busy server may end one again when it is run again


class TestServers:
    async def test_a_server_that_went_away_is_unavailable_and_comes_back(
        self, postgres: PostgresServer, things: PostgresDatabase
    ) -> None:
        """Every call says so meanwhile; nothing needs a restart afterwards."""
        await things.read(total)
        postgres.stop("immediate")
        try:
            for _ in range(2):
                with pytest.raises(DatabaseUnavailable):
                    await things.transact(put, "while away")
                with pytest.raises(DatabaseUnavailable):
                    await things.claim(put, "while away")
                with pytest.raises(DatabaseUnavailable):
                    await things.read(total)
                with pytest.raises(DatabaseUnavailable):
                    await things.ping()
        finally:
            postgres.start()
        await available(things)

        await things.transact(put, "back again")
        await things.claim(put, "claims too")
        assert await things.read(names) == ["back again", "claims too"]

    async def test_connections_that_broke_while_they_lay_idle_are_replaced_unnoticed(
        self, things: PostgresDatabase, outside: Outside
    ) -> None:
        """A firewall, a pooler or a restart ends them; nothing was on its way."""
        await things.read(total)
        await things.claim(total)
        outside.end_the_others()

        await things.transact(put, "a")
        await things.claim(put, "b")

        assert await things.read(names) == ["a", "b"]

    async def test_a_connection_that_breaks_in_a_function_commits_nothing(
        self, things: PostgresDatabase, outside: Outside
    ) -> None:
        """Neither of it nor of its neighbours, whatever the function makes of it."""

        def break_off(tx: Tx) -> str:
            put(tx, "lost")
            outside.end_the_others()
            try:
                total(tx)
            except DatabaseUnavailable:
                return "all is well"
            return "too well"

        ends = await asyncio.gather(
            things.transact(put, "a"), things.transact(break_off), return_exceptions=True
        )

        assert [type(end) for end in ends] == [DatabaseUnavailable] * 2
        assert await things.read(total) == 0

    async def test_a_connection_that_breaks_in_a_commit_leaves_it_open(
        self, things: PostgresDatabase
    ) -> None:
        """Nobody can know here whether it is on disk; both readings must be possible to the caller."""
        await things.transact(lambda tx: tx.run(query(BREAKS_IN_COMMIT)))
        await things.transact(lambda tx: tx.run(query(AT_COMMIT)))

        with pytest.raises(CommitUnknown, match="the connection broke in a commit"):
            await things.transact(put, "perhaps")

        assert await things.read(total) == 0

    async def test_a_server_that_may_not_write_is_unavailable(self, postgres_url: str) -> None:
        """A standby, or one that was told to; reads go on."""
        writable = await PostgresDatabase.open(postgres_url)
        await writable.transact(create)
        await writable.close()
        url = f"{postgres_url}&options=-c%20default_transaction_read_only%3Don"

        with pytest.raises(DatabaseUnavailable, match="ReadOnlySqlTransaction"):
            await (await PostgresDatabase.open(url)).transact(put, "n")

    @pytest.mark.parametrize("way", ["read", "transact", "claim"])
    async def test_a_statement_that_takes_too_long_is_cut_off_alone(
        self, things: PostgresDatabase, postgres_url: str, way: str
    ) -> None:
        """Its neighbours and its connection are none the worse."""
        hasty = await PostgresDatabase.open(f"{postgres_url}&options=-c%20statement_timeout%3D50")
        call = {"read": hasty.read, "transact": hasty.transact, "claim": hasty.claim}[way]

        ends = await asyncio.gather(
            hasty.transact(put, "a"),
            call(lambda tx: tx.all(query("SELECT pg_sleep(10)"))),
            hasty.transact(put, "b"),
            return_exceptions=True,
        )
        seen = await hasty.read(names)
        await hasty.close()

        assert [type(end) for end in ends] == [type(None), DatabaseUnavailable, type(None)]
        assert str(ends[1]) == "test.query: QueryCanceled"
        assert seen == ["a", "b"]

    async def test_more_than_fits_into_one_commit_is_committed_in_several(self, postgres_url: str) -> None:
        """Each caller hears of its own."""
        commits: list[int] = []
        database = await PostgresDatabase.open(
            postgres_url, writers=1, observe=lambda n, _: commits.append(n)
        )
        await database.transact(create)
        commits.clear()

        await asyncio.gather(*(database.transact(put, f"n{n}") for n in range(3 * BATCH_MAX)))

        assert await database.read(total) == sum(commits) == 3 * BATCH_MAX
        assert max(commits) <= BATCH_MAX
        assert database.waiting == 0
        await database.close()

    async def test_a_batch_is_committed_when_its_time_is_up(self, postgres_url: str) -> None:
        """Functions that take long do not keep the first of them waiting for the last."""
        commits: list[int] = []
        database = await PostgresDatabase.open(
            postgres_url, writers=1, observe=lambda n, _: commits.append(n)
        )
        commits.clear()

        await asyncio.gather(
            *(database.transact(lambda tx: tx.all(query("SELECT pg_sleep(0.06)"))) for _ in range(3))
        )
        await database.close()

        assert commits == [1, 1, 1]


BREAKS_IN_COMMIT = """
CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10); RETURN NULL; END $$
"""

AT_COMMIT = """
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON things DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION break_off()
"""


async def available(database: Database) -> None:
    """Wait until a server that was started again is noticed."""
    while True:
        try:
            await database.ping()
        except DatabaseUnavailable:
            await asyncio.sleep(PAUSE_S_FIRST)
        else:
            return


class TestLink:
    async def test_a_server_that_is_not_there_is_not_asked_by_every_call(self, tmp_path: Path) -> None:
        """Pauses double up to a limit, and end with the first success."""
        now = [100.0]
        link = PostgresLink(f"postgresql://nobody@/nothing?host={tmp_path}", lambda: now[0])
        pauses = []
        for _ in range(7):
            with pytest.raises(DatabaseUnavailable, match="OperationalError"):
                link.connect()
            with pytest.raises(DatabaseUnavailable, match="could not be reached a moment ago"):
                link.connect()
            pauses.append(link._not_before - now[0])
            now[0] = link._not_before

        assert pauses == pytest.approx([PAUSE_S_FIRST * 2**n for n in range(5)] + [PAUSE_S_MAX] * 2)

    async def test_of_several_that_fail_at_once_only_the_first_counts(self, tmp_path: Path) -> None:
        """Otherwise five connections would pause as long as five failures in a row."""
        now = [100.0]
        link = PostgresLink(f"postgresql://nobody@/nothing?host={tmp_path}", lambda: now[0])
        for _ in range(5):
            link._hold_off()

        assert link._not_before == pytest.approx(100 + PAUSE_S_FIRST)

    async def test_a_url_that_is_none_is_told_without_its_text(self) -> None:
        """It may hold a password."""
        with pytest.raises(DatabaseUnavailable) as refused:
            await PostgresDatabase.open("postgresql://me:hunter2@host?such=option")

        assert str(refused.value) == "the URL of the database is not one that PostgreSQL knows"

    async def test_a_server_that_cannot_be_reached_is_told_without_the_url(self, tmp_path: Path) -> None:
        """Nor does the driver's own text get through."""
        with pytest.raises(DatabaseUnavailable) as refused:
            await PostgresDatabase.open(f"postgresql://me:hunter2@/n?host={tmp_path}")

        assert str(refused.value) == "OperationalError"
        assert refused.value.__suppress_context__

    async def test_a_database_that_keeps_text_in_another_encoding_is_refused(
        self, postgres: PostgresServer
    ) -> None:
        """It could not keep what we promise to keep."""
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")

            with pytest.raises(DatabaseUnavailable, match="with encoding LATIN1 is not one for us"):
                await PostgresDatabase.open(postgres.url("latin"))
            connection.execute("DROP DATABASE latin WITH (FORCE)")

    async def test_every_commit_is_synced_whatever_the_server_s_own_setting(self, postgres_url: str) -> None:
        """What a role or a database has as its default does not weaken the promise."""
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(
                psycopg.sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(
                    psycopg.sql.Identifier(name)
                )
            )
        database = await PostgresDatabase.open(postgres_url)

        assert await database.transact(lambda tx: tx.one(query("SHOW synchronous_commit"))) == ("on",)
        await database.close()

    async def test_a_ping_writes_as_any_user(self, postgres: PostgresServer, postgres_url: str) -> None:
        """It needs no right that an ordinary user lacks."""
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("CREATE ROLE plain LOGIN")
        database = await PostgresDatabase.open(postgres_url.replace("heliograph@", "plain@"))
        await database.ping()
        await database.close()
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute("DROP ROLE plain")


WITHOUT_DRIVER = """
import asyncio, pathlib, sys
sys.modules["psycopg"] = None
from heliograph.app.opening import open_database
from heliograph.app.settings import Settings, DatabaseSettings
from heliograph.storage.database import DatabaseUnavailable
from heliograph.storage.sqlite import SqliteDatabase

async def main():
    database = await SqliteDatabase.open(pathlib.Path(sys.argv[1]))
    await database.ping()
    await database.close()
    try:
        await open_database(Settings(database=DatabaseSettings(url="postgresql://me@/n")))
    except DatabaseUnavailable as refused:
        print(refused)

asyncio.run(main())
"""


def test_without_the_driver_sqlite_works_and_postgresql_names_the_extra(tmp_path: Path) -> None:
    """The driver is for those who need it."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DRIVER, str(tmp_path / "a.sqlite")],
        capture_output=True,
        check=True,
        text=True,
    )

    assert done.stdout == "install heliograph[postgres] to use PostgreSQL\n"


async def test_a_wrong_statement_is_said_with_its_place(things: PostgresDatabase) -> None:
    """The server's first line where it holds no value, its code's name where it might."""
    with pytest.raises(StatementRefused) as missing:
        await things.transact(lambda tx: tx.all(query("SELECT no_such_column FROM things")))
    with pytest.raises(StatementRefused) as wrong:
        await things.transact(lambda tx: tx.all(query("SELECT CAST(%(v)s AS BIGINT)"), {"v": "hunter2"}))

    assert str(missing.value) == 'test.query: column "no_such_column" does not exist'
    assert str(wrong.value) == "test.query: InvalidTextRepresentation"
