"""Idempotency: one key, one body, one answer; and a proof that admits one request.

A caller repeats a request under the same key when it did not hear the answer, and gets the stored answer
octet for octet. The request that first brought the key leaves its proof in the same row, so that the very
same octets, sent again by somebody who overheard them, are told apart from an honest retry, which is signed
anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from heliograph.storage.database import Row, Tx
from heliograph.storage.queries import load_queries
from heliograph.wire.instant import Instant

_SQL: Final = load_queries("heliograph.ledger", "ledger.sql")

RETENTION_MS_MIN: Final = 86_400_000
"""How long an answer is kept at the least: a caller that lost its network for a day still gets it."""


class Asked(msgspec.Struct, frozen=True):
    """A request as the ledger sees it.

    Attributes:
        scope: Who asked for what: keys of other callers and operations are other keys.
        key: The caller's key.
        digest: Of the canonical body.
        proof: What admitted this request, for example its signature.
        proof_expires_at: When this proof could no longer be accepted anyway.
    """

    scope: str
    key: str
    digest: str
    proof: bytes
    proof_expires_at: Instant


@dataclass(frozen=True, slots=True)
class New:
    """Nothing stands under this key."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The same body was answered before, with these octets."""

    reply: bytes


@dataclass(frozen=True, slots=True)
class Clash:
    """The key stands for another body."""


@dataclass(frozen=True, slots=True)
class Reused:
    """This very proof was used before."""


Recalled: TypeAlias = New | Replay | Clash | Reused


def _retries(scope: str, key: str) -> str:
    """Return the scope of the proofs of one key's retries. The length keeps one pair apart from another."""
    return f"{len(scope)}:{scope}:{key}"


def recall(tx: Tx, scope: str, key: str, *, digest: str, proof: bytes, proof_expires_at: Instant) -> Recalled:
    """Look a key up before doing anything.

    Args:
        tx: The transaction that will answer.
        scope: Who asked for what: keys of other callers and operations are other keys.
        key: The caller's key.
        digest: Of the canonical body.
        proof: What admitted this request, for example its signature.
        proof_expires_at: When this proof could no longer be accepted anyway.

    Returns:
        ``New``: nothing stands under this key, and nothing was written. ``Replay``: the stored octets; the
        proof is remembered now. ``Clash``: another body has the key. ``Reused``: this very request was
        here before.
    """
    asked = Asked(scope, key, digest, proof, proof_expires_at)
    row = tx.one(_SQL["entry"], {"scope": scope, "key": key})
    return New() if row is None else _recalled(tx, asked, row)


def recall_all(tx: Tx, asked: Sequence[Asked]) -> list[Recalled]:
    """Look up many keys, no two of them equal, as ``recall`` does one.

    Args:
        tx: The transaction that will answer.
        asked: What to look up.

    Returns:
        What ``recall`` would for each, in the same order.
    """
    keys = msgspec.json.encode([(one.scope, one.key) for one in asked]).decode()
    rows = {(row[0], row[1]): row[2:] for row in tx.all(_SQL["entries"], {"keys": keys})}
    found = [rows.get((one.scope, one.key)) for one in asked]
    return [New() if row is None else _recalled(tx, one, row) for one, row in zip(asked, found, strict=True)]


def _recalled(tx: Tx, asked: Asked, row: Row) -> Recalled:
    """Say what the stored answer is to this request."""
    known_digest, first_proof, reply = row
    if bytes(first_proof) == asked.proof:
        return Reused()
    if known_digest != asked.digest:
        return Clash()
    if not admit(tx, _retries(asked.scope, asked.key), asked.proof, asked.proof_expires_at):
        return Reused()
    return Replay(bytes(reply))


def answer(tx: Tx, scope: str, key: str, *, digest: str, proof: bytes, reply: bytes, now: Instant) -> None:
    """Store the answer of a new key.

    Args:
        tx: The transaction in which ``recall`` said ``New``.
        scope: As for ``recall``.
        key: As for ``recall``.
        digest: As for ``recall``.
        proof: As for ``recall``; it is remembered with the answer.
        reply: The octets to give again.
        now: The present instant.
    """
    tx.run(
        _SQL["answer"],
        {"scope": scope, "key": key, "digest": digest, "proof": proof, "reply": reply, "now": now},
    )


def answer_all(tx: Tx, answered: Sequence[tuple[Asked, bytes]], now: Instant) -> None:
    """Store the answers of many new keys.

    Args:
        tx: The transaction in which ``recall_all`` said ``New`` of each.
        answered: Each request with the octets to give again.
        now: The present instant.
    """
    tx.many(
        _SQL["answer"],
        [
            {
                "scope": asked.scope,
                "key": asked.key,
                "digest": asked.digest,
                "proof": asked.proof,
                "reply": reply,
                "now": now,
            }
            for asked, reply in answered
        ],
    )


def admit(tx: Tx, scope: str, proof: bytes, expires_at: Instant) -> bool:
    """Remember a proof, and tell whether it is new.

    Args:
        tx: The transaction.
        scope: Among which requests it must be unique.
        proof: The proof.
        expires_at: When it could no longer be accepted anyway.
    """
    return tx.run(_SQL["admit"], {"scope": scope, "proof": proof, "expires_at": expires_at}) == 1


def prune(tx: Tx, now: Instant, entries_before: Instant, limit: int) -> int:
    """Forget answers older than an instant and proofs that have expired.

    Args:
        tx: The transaction.
        now: The present instant.
        entries_before: Answers created before it are forgotten.
        limit: The most rows of each kind.

    Returns:
        The larger of both numbers of rows: as many as the limit means that more may be left.

    Raises:
        ValueError: Answers younger than ``RETENTION_MS_MIN`` would be forgotten.
    """
    if entries_before > now - RETENTION_MS_MIN:
        raise ValueError("an answer is kept for 24 hours at the least")
    entries = tx.run(_SQL["prune_entries"], {"before": entries_before, "limit": limit})
    proofs = tx.run(_SQL["prune_proofs"], {"now": now, "limit": limit})
    return max(entries, proofs)
