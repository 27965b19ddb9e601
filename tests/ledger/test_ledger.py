"""One key, one body, one answer; one proof, one request."""

import pytest

from heliograph.ledger import Clash, New, Recalled, Replay, Reused, admit, answer, prune, recall
from heliograph.storage.database import Database, Tx

DAY_MS = 86_400_000


def ask(tx: Tx, proof: bytes, digest: str = "sha256:a", scope: str = "notify:a", key: str = "k") -> Recalled:
    return recall(tx, scope, key, digest=digest, proof=proof, proof_expires_at=1_000)


def tell(tx: Tx, proof: bytes, scope: str = "notify:a") -> None:
    answer(tx, scope, "k", digest="sha256:a", proof=proof, reply=b"first octets", now=500)


@pytest.mark.anyio
@pytest.mark.clause("R316", "R317")
async def test_a_key_answers_its_body_again_and_no_other(database: Database) -> None:
    """The stored octets for the same body under a new proof; a clash for another body."""
    assert await database.transact(ask, b"proof 1") == New()
    await database.transact(tell, b"proof 1")

    assert await database.transact(ask, b"proof 2") == Replay(b"first octets")
    assert await database.transact(ask, b"proof 3", digest="sha256:b") == Clash()


@pytest.mark.anyio
async def test_a_proof_admits_one_request(database: Database) -> None:
    """Neither the first proof nor that of a retry may come again."""
    await database.transact(tell, b"proof 1")

    assert await database.transact(ask, b"proof 1") == Reused()
    assert await database.transact(ask, b"proof 2") == Replay(b"first octets")
    assert await database.transact(ask, b"proof 2") == Reused()


@pytest.mark.anyio
async def test_keys_of_other_callers_are_other_keys(database: Database) -> None:
    """The scope is part of the key."""
    await database.transact(tell, b"proof 1")

    assert await database.transact(ask, b"proof 1", scope="notify:b") == New()


@pytest.mark.anyio
async def test_what_may_be_forgotten_is_forgotten_and_nothing_else(database: Database) -> None:
    """Answers by age, proofs by their own end."""
    await database.transact(tell, b"proof 1")
    await database.transact(lambda tx: admit(tx, "apply", b"p", 2_000))

    assert await database.transact(prune, 2_000, 500, 10) == 0
    assert await database.transact(prune, 2_001, 501, 10) == 1
    assert await database.transact(ask, b"proof 1") == New()
    assert await database.transact(lambda tx: admit(tx, "apply", b"p", 9_000))
