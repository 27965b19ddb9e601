"""One key, one body, one answer; one proof, one request."""

import asyncio

import pytest

from heliograph.ledger import (
    RETENTION_MS_MIN,
    Clash,
    New,
    Recalled,
    Replay,
    Reused,
    admit,
    answer,
    prune,
    recall,
)
from heliograph.storage.database import ConstraintViolated, Database, Tx

pytestmark = pytest.mark.anyio

NOW = 1_000_000_000_000


def ask(tx: Tx, proof: bytes, digest: str = "sha256:a", scope: str = "notify:a", key: str = "k") -> Recalled:
    return recall(tx, scope, key, digest=digest, proof=proof, proof_expires_at=NOW + 300_000)


def tell(tx: Tx, proof: bytes, scope: str = "notify:a", key: str = "k", now: int = NOW) -> None:
    answer(tx, scope, key, digest="sha256:a", proof=proof, reply=b"first octets \x00\xff", now=now)


@pytest.mark.clause("R316", "R317")
async def test_a_key_answers_its_body_again_and_no_other(database: Database) -> None:
    """The stored octets for the same body under a new proof; a clash for another body."""
    assert await database.transact(ask, b"proof 1") == New()
    await database.transact(tell, b"proof 1")

    assert await database.transact(ask, b"proof 2") == Replay(b"first octets \x00\xff")
    assert await database.transact(ask, b"proof 3", digest="sha256:b") == Clash()


async def test_a_proof_admits_one_request(database: Database) -> None:
    """Neither the first proof nor that of a retry may come again, with whatever body."""
    await database.transact(tell, b"proof 1")

    assert await database.transact(ask, b"proof 1") == Reused()
    assert await database.transact(ask, b"proof 1", digest="sha256:b") == Reused()
    assert await database.transact(ask, b"proof 2") == Replay(b"first octets \x00\xff")
    assert await database.transact(ask, b"proof 2") == Reused()


async def test_a_new_key_leaves_nothing_until_it_is_answered(database: Database) -> None:
    """A request that fails may come again under its key and its proof."""
    assert await database.transact(ask, b"proof 1") == New()
    assert await database.transact(ask, b"proof 1") == New()


async def test_keys_of_other_callers_are_other_keys(database: Database) -> None:
    """The scope is part of the key, and no scope runs over into its keys."""
    await database.transact(tell, b"proof 1")
    await database.transact(tell, b"proof 1", scope="a:b", key="c")
    await database.transact(tell, b"proof 1", scope="a", key="b:c")

    assert await database.transact(ask, b"proof 1", scope="notify:b") == New()
    for scope, key in (("a:b", "c"), ("a", "b:c")):
        assert await database.transact(ask, b"proof 2", scope=scope, key=key) == Replay(
            b"first octets \x00\xff"
        )


async def test_of_two_that_bring_one_key_at_once_one_is_first(database: Database) -> None:
    """The other finds the answer, however closely they race."""

    def serve(tx: Tx, proof: bytes, key: str) -> Recalled:
        known = ask(tx, proof, key=key)
        if isinstance(known, New):
            tell(tx, proof, key=key)
        return known

    keys = [f"k{number}" for number in range(20)]
    known = await asyncio.gather(
        *(database.transact(serve, proof, key) for key in keys for proof in (b"proof 1", b"proof 2"))
    )
    pairs = [{type(first), type(second)} for first, second in zip(known[::2], known[1::2], strict=True)]

    assert pairs == [{New, Replay}] * 20


async def test_a_key_that_is_answered_twice_is_a_bug(database: Database) -> None:
    """The first answer stands."""
    await database.transact(tell, b"proof 1")

    with pytest.raises(ConstraintViolated):
        await database.transact(tell, b"proof 2")


async def test_a_proof_without_a_key_is_admitted_once_in_its_scope(database: Database) -> None:
    """For operations that have no key."""
    assert await database.transact(admit, "apply:a", b"proof", NOW) is True
    assert await database.transact(admit, "apply:a", b"proof", NOW) is False
    assert await database.transact(admit, "apply:b", b"proof", NOW) is True
    assert await database.transact(admit, "apply:a", b"other", NOW) is True


async def test_what_may_be_forgotten_is_forgotten_and_nothing_else(database: Database) -> None:
    """Answers by age, proofs by their own end; both at the very millisecond."""
    day = RETENTION_MS_MIN
    await database.transact(tell, b"proof 1")
    await database.transact(admit, "apply", b"p", NOW + day)

    assert await database.transact(prune, NOW + day, NOW, 10) == 0
    assert await database.transact(prune, NOW + day + 1, NOW + 1, 10) == 1
    assert await database.transact(ask, b"proof 1") == New()
    assert await database.transact(admit, "apply", b"p", NOW) is True


async def test_forgetting_is_bounded_and_begins_with_the_oldest(database: Database) -> None:
    """A page at a time; as many as the limit means that more may be left."""
    for number in range(5):
        await database.transact(tell, b"proof", key=f"k{number}", now=NOW + number)
    later = NOW + RETENTION_MS_MIN + 1_000

    first = await database.transact(prune, later, NOW + 1_000, 2)
    known = [await database.transact(ask, b"proof 2", key=f"k{number}") for number in range(5)]
    rest = [await database.transact(prune, later, NOW + 1_000, 2) for _ in range(3)]

    assert [type(each) for each in known] == [New, New, Replay, Replay, Replay]
    assert (first, rest) == (2, [2, 1, 0])


async def test_an_answer_younger_than_a_day_is_never_forgotten(database: Database) -> None:
    """Whatever the settings say."""
    await database.transact(tell, b"proof 1")

    with pytest.raises(ValueError, match="24 hours"):
        await database.transact(prune, NOW + 1, NOW + 1, 10)
    assert await database.transact(ask, b"proof 1") == Reused()
