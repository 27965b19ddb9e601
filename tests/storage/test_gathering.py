"""Items that wait at the same moment share a transaction, and none can tell."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from heliograph.storage.database import Database, DatabaseUnavailable, Tx
from heliograph.storage.gathering import Gathering
from heliograph.storage.sqlite import SqliteDatabase
from tests.storage.things import SQL


class Notes:
    """Writes down each name it is given; refuses one name after it wrote the others."""

    def __init__(self, refused: str = "") -> None:
        self.together: list[list[str]] = []
        self._refused = refused

    def __call__(self, tx: Tx, names: Sequence[str]) -> list[str]:
        self.together.append(list(names))
        for name in names:
            tx.run(SQL["put"], {"name": name, "value": 1})
        if self._refused in names:
            raise ZeroDivisionError(self._refused)
        return [name.upper() for name in names]


def gathering(database: Database, notes: Notes, *, weight_max: int = 100) -> Gathering[str, str]:
    """Gather names: the first letter is the key, the length the weight."""
    return Gathering(database, notes, key=lambda name: name[0], weight=len, weight_max=weight_max)


async def kept(database: Database) -> list[str]:
    """Return the names on disk."""
    return [row[0] for row in await database.read(lambda tx: tx.all(SQL["names"]))]


@pytest.mark.anyio
async def test_what_waits_together_is_run_together_and_each_gets_its_own_result(database: Database) -> None:
    """One transaction for all three."""
    await database.transact(lambda tx: tx.run(SQL["create"]))
    notes = Notes()
    names = gathering(database, notes)

    results = await asyncio.gather(*(names.put(name) for name in ("a", "b", "c")))

    assert results == ["A", "B", "C"]
    assert notes.together == [["a", "b", "c"]]
    assert await kept(database) == ["a", "b", "c"]


@pytest.mark.anyio
async def test_items_with_equal_keys_never_meet(database: Database) -> None:
    """The second of a key waits for the next transaction, and the third for the one behind it."""
    await database.transact(lambda tx: tx.run(SQL["create"]))
    notes = Notes()
    names = gathering(database, notes)

    await asyncio.gather(*(names.put(name) for name in ("a1", "a2", "b1", "a3")))

    assert notes.together == [["a1", "b1"], ["a2"], ["a3"]]


@pytest.mark.anyio
async def test_a_transaction_takes_no_more_than_its_weight_except_for_one_heavy_item(
    database: Database,
) -> None:
    """Order is kept: what does not fit leads the next one."""
    await database.transact(lambda tx: tx.run(SQL["create"]))
    notes = Notes()
    names = gathering(database, notes, weight_max=4)

    await asyncio.gather(*(names.put(name) for name in ("aa", "bb", "c", "ddddddd", "e")))

    assert notes.together == [["aa", "bb"], ["c"], ["ddddddd"], ["e"]]


@pytest.mark.anyio
async def test_a_bug_that_one_item_lays_bare_harms_no_other(database: Database) -> None:
    """The gathering is undone, and each of its items is run alone."""
    await database.transact(lambda tx: tx.run(SQL["create"]))
    notes = Notes(refused="b")
    names = gathering(database, notes)

    a, b, c = await asyncio.gather(*(names.put(name) for name in ("a", "b", "c")), return_exceptions=True)

    assert (a, c) == ("A", "C")
    assert isinstance(b, ZeroDivisionError)
    assert await kept(database) == ["a", "c"]


@pytest.mark.anyio
async def test_a_caller_that_leaves_before_its_turn_takes_its_item_along(database: Database) -> None:
    """Nobody waits for it any more."""
    await database.transact(lambda tx: tx.run(SQL["create"]))
    notes = Notes()
    names = gathering(database, notes)
    leaving, staying = asyncio.create_task(names.put("a")), asyncio.create_task(names.put("b"))
    asyncio.get_running_loop().call_soon(leaving.cancel)

    await asyncio.wait([leaving, staying])

    assert leaving.cancelled()
    assert notes.together == [["b"]]


@pytest.mark.anyio
async def test_when_the_database_is_away_every_caller_hears_it(tmp_path: Path) -> None:
    """Each gets an error of its own, and nothing was committed."""
    database = await SqliteDatabase.open(tmp_path / "gone.sqlite")
    names = gathering(database, Notes())
    await database.close()

    heard = await asyncio.gather(*(names.put(name) for name in ("a", "b")), return_exceptions=True)

    assert [type(error) for error in heard] == [DatabaseUnavailable] * 2
    assert heard[0] is not heard[1]
