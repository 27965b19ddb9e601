"""One suite for both databases: whatever a store relies on is proved on each."""

import asyncio
import re
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.databases import BOTH
from tests.postgres_server import PostgresServer
from tests.storage.things import SQL, add, create, get, halves, names, opened, put, total

from heliograph.storage.database import (
    ConstraintViolated,
    Database,
    DatabaseUnavailable,
    Query,
    StatementRefused,
    Tx,
    UnstorableValue,
    Value,
)
from heliograph.storage.migrations.runner import known_migrations, migrate, plan
from heliograph.storage.postgres import PostgresDatabase
from heliograph.storage.queries import load_queries, parameters, parse_queries
from heliograph.storage.sqlite import SqliteDatabase

pytestmark = pytest.mark.anyio


class OopsError(Exception):
    """A caller's own failure."""


@pytest.fixture
async def things(database: Database) -> Database:
    """A database with a table to play with."""
    await database.transact(create)
    return database


class TestAtomicity:
    async def test_a_function_that_raises_leaves_nothing_and_spares_the_others(
        self, things: Database
    ) -> None:
        """Twenty share a commit; the odd ones raise behind their writes and roll back alone."""

        def write(tx: Tx, number: int) -> int:
            put(tx, f"a{number}")
            put(tx, f"b{number}")
            if number % 2:
                raise OopsError(number)
            return number

        results = await asyncio.gather(
            *(things.transact(write, n) for n in range(20)), return_exceptions=True
        )

        assert [n for n, end in enumerate(results) if isinstance(end, OopsError)] == list(range(1, 20, 2))
        assert await things.read(total) == 20

    async def test_a_function_that_raises_first_costs_nobody_a_second_run(self, things: Database) -> None:
        """Nobody wrote before it, so there is nothing of theirs to run again."""
        runs: list[int] = []

        def write(tx: Tx, number: int) -> None:
            runs.append(number)
            put(tx, f"n{number}")
            if number == 0:
                raise OopsError

        await asyncio.gather(*(things.transact(write, n) for n in range(3)), return_exceptions=True)

        assert runs == [0, 1, 2]
        assert await things.read(names) == ["n1", "n2"]

    async def test_a_function_that_raises_behind_a_look_costs_nobody_a_second_run(
        self, things: Database
    ) -> None:
        """Refusals are made of looks: whoever provokes them shall not slow down the others."""
        runs: list[int] = []

        def write(tx: Tx, number: int) -> None:
            runs.append(number)
            if number % 2:
                total(tx)
                raise OopsError
            put(tx, f"n{number}")

        await asyncio.gather(*(things.transact(write, n) for n in range(6)), return_exceptions=True)

        assert runs == [0, 1, 2, 3, 4, 5]
        assert await things.read(names) == ["n0", "n2", "n4"]

    @pytest.mark.parametrize("wrong", ["constraint", "statement"])
    async def test_a_statement_that_fails_ends_its_transaction_alone(
        self, things: Database, wrong: str
    ) -> None:
        """Whatever the function makes of the error: swallowed, it is rolled back and told all the same."""

        def write(tx: Tx, number: int) -> None:
            put(tx, f"n{number}")
            if number % 2:
                try:
                    if wrong == "constraint":
                        put(tx, f"n{number}")
                    else:
                        tx.all(SQL["wrong"], {"name": "x"})
                except StatementRefused:
                    with pytest.raises(StatementRefused):
                        put(tx, "behind a failure")

        ends = await asyncio.gather(*(things.transact(write, n) for n in range(6)), return_exceptions=True)
        kind = ConstraintViolated if wrong == "constraint" else StatementRefused

        assert [type(end) for end in ends] == [type(None), kind] * 3
        assert await things.read(names) == ["n0", "n2", "n4"]

    async def test_a_transaction_is_over_when_its_function_is(self, things: Database) -> None:
        """A Tx that escapes writes nothing into somebody else's commit."""
        escaped: list[Tx] = []
        await things.transact(escaped.append)
        await things.read(escaped.append)

        for tx in escaped:
            with pytest.raises(RuntimeError, match="the transaction is over"):
                put(tx, "late")
            with pytest.raises(RuntimeError, match="the transaction is over"):
                tx.many(SQL["put"], [])

        assert await things.read(total) == 0


FATES = ["write", "raise behind a write", "raise behind a look", "break", "swallow", "give up"]
EXAMPLES = count()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fates=st.lists(st.sampled_from(FATES), max_size=24))
async def test_in_any_mixture_each_has_its_own_end(things: Database, fates: list[str]) -> None:
    """What is committed is exactly what the functions wrote that did not fail, and each hears of its own."""
    example = next(EXAMPLES)
    await things.transact(lambda tx: tx.run(SQL["clear"]))
    await things.transact(put, "there")

    def play(tx: Tx, number: int, fate: str) -> str:
        if fate == "raise behind a look":
            total(tx)
            raise OopsError
        put(tx, f"{example} {number:02}")
        if fate == "raise behind a write":
            raise OopsError
        if fate == "break":
            put(tx, "there")
        if fate == "swallow":
            try:
                put(tx, "there")
            except ConstraintViolated:
                return "swallowed"
        return fate

    tasks = [asyncio.create_task(things.transact(play, number, fate)) for number, fate in enumerate(fates)]
    await asyncio.sleep(0)  # they wait now
    for task, fate in zip(tasks, fates, strict=True):
        if fate == "give up":
            task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    expected = {
        "write": str,
        "raise behind a write": OopsError,
        "raise behind a look": OopsError,
        "break": ConstraintViolated,
        "swallow": ConstraintViolated,
        "give up": asyncio.CancelledError,
    }

    assert [type(end) for end in ends] == [expected[fate] for fate in fates]
    assert await things.read(names) == sorted(
        ["there", *(f"{example} {number:02}" for number, fate in enumerate(fates) if fate == "write")]
    )


class TestIsolation:
    async def test_concurrent_increments_lose_nothing(self, things: Database) -> None:
        """Each transaction behaves as if it ran alone: read, add, write, a hundred times at once."""
        await things.transact(put, "n")

        await asyncio.gather(*(things.transact(add, "n") for _ in range(100)))

        assert await things.read(get, "n") == 100

    async def test_of_eight_racers_one_wins_each_race(self, things: Database) -> None:
        """Look, find nobody, write: forty races, each with one winner and seven who see it."""

        def race(tx: Tx, prize: str, racer: int) -> bool:
            if get(tx, prize) is not None:
                return False
            put(tx, prize, racer)
            return True

        prizes = [f"prize {number}" for number in range(40)]
        won = await asyncio.gather(
            *(things.transact(race, prize, racer) for prize in prizes for racer in range(8))
        )

        assert [sum(won[start : start + 8]) for start in range(0, 320, 8)] == [1] * 40
        assert await things.read(total) == 40

    async def test_a_read_sees_one_moment(self, things: Database) -> None:
        """What is committed while it looks is not there for it, however often it looks."""
        await things.transact(put, "before")
        looked, written = threading.Event(), threading.Event()

        def look_twice(tx: Tx) -> tuple[int, int]:
            first = total(tx)
            looked.set()
            written.wait()
            return first, total(tx)

        reading = asyncio.create_task(things.read(look_twice))
        await asyncio.to_thread(looked.wait)
        await things.transact(put, "meanwhile")
        written.set()

        assert await reading == (1, 1)
        assert await things.read(total) == 2

    async def test_a_read_cannot_write(self, things: Database) -> None:
        """Not even by mistake."""
        with pytest.raises(StatementRefused):
            await things.read(put, "sneaked in")
        with pytest.raises(StatementRefused):
            await things.read(_swallowing, "sneaked in")

        assert await things.read(total) == 0

    async def test_a_function_that_raises_in_a_read_raises_to_its_caller(self, things: Database) -> None:
        """And the next read is none the worse."""

        def fail(tx: Tx) -> None:
            total(tx)
            raise OopsError

        with pytest.raises(OopsError):
            await things.read(fail)

        assert await things.read(total) == 0

    async def test_a_claim_is_a_transaction_too(self, things: Database) -> None:
        """Committed when it returns, rolled back when it raises."""

        def fail(tx: Tx) -> None:
            put(tx, "lost")
            raise OopsError

        await things.claim(put, "kept")
        with pytest.raises(OopsError):
            await things.claim(fail)

        assert await things.read(names) == ["kept"]


def _swallowing(tx: Tx, name: str) -> None:
    try:
        put(tx, name)
    except StatementRefused:
        return


class TestAfterCommit:
    async def test_a_callback_runs_after_its_commit_and_not_without_one(self, things: Database) -> None:
        """In the loop's thread, when everybody can see what was written, before the caller goes on."""
        rung: list[tuple[str, bool]] = []
        here = threading.get_ident()

        def write(tx: Tx, name: str, fails: bool) -> None:
            put(tx, name)
            tx.after_commit(lambda: rung.append((name, threading.get_ident() == here)))
            if fails:
                raise OopsError

        await things.transact(write, "kept", fails=False)
        with pytest.raises(OopsError):
            await things.transact(write, "lost", fails=True)

        assert rung == [("kept", True)]

    async def test_a_function_that_was_run_twice_rings_once(self, things: Database) -> None:
        """The batch is begun anew because the last of it raises behind its write."""
        rung: list[int] = []
        runs: list[int] = []

        def write(tx: Tx, number: int) -> None:
            runs.append(number)
            put(tx, f"n{number}")
            tx.after_commit(lambda: rung.append(number))
            if number == 3:
                raise OopsError

        await asyncio.gather(*(things.transact(write, n) for n in range(4)), return_exceptions=True)

        assert runs == [0, 1, 2, 3, 0, 1, 2, 3]
        assert rung == [0, 1, 2]


class TestCallers:
    async def test_a_cancelled_caller_breaks_nobody_elses_transaction(self, things: Database) -> None:
        """Whether it gave up before its function ran or meanwhile."""
        tasks = [asyncio.create_task(things.transact(put, f"n{n}")) for n in range(10)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.sleep(0)
        tasks[4].cancel()

        await asyncio.gather(*tasks, return_exceptions=True)

        assert set(await things.read(names)) >= {f"n{n}" for n in range(10)} - {"n3", "n4"}
        assert [task.cancelled() for task in tasks].count(True) == 2

    async def test_a_closed_database_takes_nothing(self, things: Database) -> None:
        """It says so instead of hanging; closing it again does no harm."""
        await things.close()
        await things.close()

        for call in (things.transact, things.claim, things.read):
            with pytest.raises(DatabaseUnavailable):
                await call(total)
        with pytest.raises(DatabaseUnavailable):
            await things.ping()

    async def test_closing_finishes_what_was_handed_over(
        self, things: Database, reopen: Callable[[], Awaitable[Database]]
    ) -> None:
        """Whoever waits when it closes is committed and told."""
        tasks = [asyncio.create_task(things.transact(put, f"n{n}")) for n in range(10)]
        await asyncio.sleep(0)
        await things.close()

        await asyncio.gather(*tasks)
        again = await reopen()
        assert await again.read(total) == 10
        await again.close()

    async def test_a_ping_commits(self, database: Database) -> None:
        """Readiness is proved with the commit that acceptance needs."""
        await database.ping()


@pytest.fixture
def reopen(
    request: pytest.FixtureRequest, tmp_path: Path, database: Database
) -> Callable[[], Awaitable[Database]]:
    """Open the test's database a second time, once it was closed."""
    if isinstance(database, SqliteDatabase):
        return lambda: opened(str(tmp_path / "test.sqlite"))
    url: str = request.getfixturevalue("migrated_postgres_url")
    return lambda: opened(url)


class TestDurability:
    async def test_what_was_committed_is_there_after_reopening(
        self, things: Database, reopen: Callable[[], Awaitable[Database]]
    ) -> None:
        """Durable means on disk."""
        await things.transact(put, "kept", 5)
        await things.close()

        again = await reopen()
        assert await again.read(get, "kept") == 5
        await again.close()

    @pytest.mark.slow
    async def test_what_was_acknowledged_outlives_the_death_of_everything(self, killed: list[int]) -> None:
        """A process is killed in the middle of its load, and its server crashes: nothing told is lost."""
        assert len(killed) >= 500


@pytest.fixture(params=BOTH)
async def killed(request: pytest.FixtureRequest, tmp_path: Path) -> list[int]:
    """Kill a writing process; return what it had told, after holding it against what is there."""
    server: PostgresServer | None = None
    where = str(tmp_path / "killed.sqlite")
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        where = request.getfixturevalue("postgres_url")
    database = await opened(where)
    await database.transact(create)
    await database.close()
    told = await asyncio.to_thread(write_and_kill, where, server)
    database = await opened(where)
    there = await database.read(halves)
    await database.close()
    numbers = {number for number, _ in there}

    assert set(told) - numbers == set(), "acknowledged and lost"
    assert there == [(number, half) for number in sorted(numbers) for half in (1, 2)], "half a transaction"
    return told


def write_and_kill(where: str, server: PostgresServer | None) -> list[int]:
    """Let another process write, kill it once it told of enough, and return all it told of."""
    command = [sys.executable, "-m", "tests.storage.things", where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(500)]
        if server is not None:
            server.stop("immediate")
        process.kill()
        rest = process.stdout.read().split(b"\n")[:-1]
    if server is not None:
        server.start()
    return [*told, *(int(line) for line in rest)]


@pytest.fixture(params=BOTH)
async def narrow(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """A database at which few may wait."""
    database: Database
    if request.param == "sqlite":
        database = await SqliteDatabase.open(tmp_path / "narrow.sqlite", waiting_max=5)
    else:
        url = request.getfixturevalue("postgres_url")
        database = await PostgresDatabase.open(url, waiting_max=5, writers=1)
    yield database
    await database.close()


async def test_more_than_may_wait_is_refused_and_the_others_are_served(narrow: Database) -> None:
    """Better refused at once than made to wait for seconds."""
    await narrow.transact(create)
    may_go = threading.Event()
    running = asyncio.create_task(narrow.transact(lambda tx: may_go.wait()))
    for _ in range(3):
        await asyncio.sleep(0)
    tasks = [asyncio.create_task(narrow.transact(put, f"n{n}")) for n in range(9)]
    await asyncio.sleep(0)
    may_go.set()

    ends = await asyncio.gather(*tasks, return_exceptions=True)
    await running

    assert [type(end) for end in ends] == [type(None)] * 5 + [DatabaseUnavailable] * 4
    assert await narrow.read(total) == 5


TYPES = parse_queries(
    """
-- name: create
CREATE TABLE kinds (a BIGINT, b BYTEA, c BOOLEAN, d TEXT, e TEXT, f DOUBLE PRECISION);
-- name: put
INSERT INTO kinds (a, b, c, d, e, f) VALUES (:a, :b, :c, :d, :e, :f);
-- name: get
SELECT a, b, c, d, e, f FROM kinds;
""",
    "kinds.sql",
)


class TestValues:
    @pytest.mark.parametrize("a", [0, 2**63 - 1, -(2**63)])
    @pytest.mark.parametrize("d", ["", "ä\U0001f4a1%:x\n'\"\\", "\ufeff\u2028\ufffe"])
    async def test_values_come_back_as_they_went(self, database: Database, a: int, d: str) -> None:
        """Large integers, octets, truth values and every plane of Unicode."""
        values: dict[str, Value] = {"a": a, "b": b"\x00\xff", "c": a == 0, "d": d, "e": None, "f": 0.1}
        await database.transact(lambda tx: tx.run(TYPES["create"]))
        await database.transact(lambda tx: tx.run(TYPES["put"], values))

        row = await database.read(lambda tx: tx.one(TYPES["get"]))

        assert row is not None
        assert (row[0], bytes(row[1]), bool(row[2]), *row[3:]) == (a, b"\x00\xff", a == 0, d, None, 0.1)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("nul", "a\x00b"), ("surrogate", "\udc00"), ("wide", 2**63), ("no number", float("nan"))],
    )
    async def test_what_not_both_can_keep_is_refused_by_both(
        self, things: Database, name: str, value: Any
    ) -> None:
        """With the same error, by every way in; nothing of the transaction stays."""
        params = {"name": value, "value": 0}

        def write(tx: Tx, how: Callable[[Tx], object]) -> None:
            put(tx, "before")
            how(tx)

        ways: list[Callable[[Tx], object]] = [
            lambda tx: tx.run(SQL["put"], params),
            lambda tx: tx.one(SQL["get"], params),
            lambda tx: tx.all(SQL["get"], params),
            lambda tx: tx.many(SQL["put"], [{"name": "fine", "value": 0}, params]),
        ]
        for way in ways:
            with pytest.raises(UnstorableValue, match=r"^name "):
                await things.transact(write, way)
        with pytest.raises(UnstorableValue, match=r"^name "):
            await things.read(ways[1])

        assert await things.read(total) == 0

    async def test_rows_changed_are_counted(self, things: Database) -> None:
        """Of one statement and of many; none where there was nothing to do."""

        def write(tx: Tx) -> list[int]:
            return [
                tx.many(SQL["put"], ({"name": f"n{n}", "value": n} for n in range(5))),
                tx.many(SQL["put"], []),
                tx.run(SQL["set"], {"name": "n1", "value": 7}),
                tx.run(SQL["set"], {"name": "nobody", "value": 7}),
                tx.run(SQL["clear"]),
            ]

        assert await things.transact(write) == [5, 0, 1, 0, 5]

    async def test_an_error_does_not_tell_the_values(self, things: Database) -> None:
        """Drivers quote them; they may be secrets, and errors are logged with all that led to them."""
        await things.transact(put, "hunter2")
        wrongs: list[Callable[[Tx], object]] = [
            lambda tx: put(tx, "hunter2"),
            lambda tx: put(tx, "hunter2-too", 10**12),
            lambda tx: tx.many(SQL["put"], [{"name": "hunter2", "value": 0}]),
            lambda tx: tx.all(SQL["wrong"], {"name": "hunter2"}),
        ]
        for wrong in wrongs:
            with pytest.raises(StatementRefused, match=r"^things\.") as caught:
                await things.transact(wrong)

            assert "hunter2" not in "".join(traceback.format_exception(caught.value, limit=0))


class TestStatements:
    async def test_the_schema_is_applied_once_and_knows_it(self, database: Database) -> None:
        """A second run finds nothing to do."""
        assert (await plan(database)).pending == ()
        assert (await migrate(database, now=1)).pending == ()
        assert (await plan(database)).current == len(known_migrations())

    async def test_every_statement_prepares(self, database: Database) -> None:
        """A statement with a wrong column would otherwise fail on the day it is first needed."""
        prepare = _explain if isinstance(database, SqliteDatabase) else _prepare
        for statement in STATEMENTS:
            await database.read(prepare, statement)

        assert len(STATEMENTS) >= 40


def _statements() -> list[Query]:
    """Every statement of every file but the runner's own, which make and lock tables as each test does."""
    root = Path(str(resources.files("heliograph")))
    return [
        statement
        for path in sorted(root.rglob("*.sql"))
        if path.parent.name != "migrations"
        for statement in load_queries(
            ".".join(("heliograph", *path.parent.relative_to(root).parts)), path.name
        ).values()
    ]


STATEMENTS = _statements()


def _explain(tx: Tx, statement: Query) -> None:
    params = dict.fromkeys(parameters(statement.sqlite))
    tx.all(Query(statement.name, f"EXPLAIN {statement.sqlite}", ""), params)


def _prepare(tx: Tx, statement: Query) -> None:
    """Let the server find out the types of the parameters, which it could not of constants."""
    order: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        if match[1] not in order:
            order.append(match[1])
        return f"${order.index(match[1]) + 1}"

    text = re.sub(r"%\((\w+)\)s", numbered, statement.postgres)
    tx.run(Query(statement.name, "", f"PREPARE {statement.name.replace('.', '_')} AS {text}"))
