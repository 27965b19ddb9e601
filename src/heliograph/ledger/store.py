"""Idempotency: one key, one body, one answer; and a proof that admits one request.

A caller repeats a request under the same key when it did not hear the answer, and gets the stored answer
octet for octet. The request that first brought the key leaves its proof in the same row, so that the very
same octets, sent again by somebody who overheard them, are told apart from an honest retry, which is signed
anew.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from heliograph.storage.database import Tx
from heliograph.storage.queries import load_queries
from heliograph.wire.instant import Instant

_SQL: Final = load_queries("heliograph.ledger", "ledger.sql")

RETENTION_MS_MIN: Final = 86_400_000
"""How long an answer is kept at the least: a caller that lost its network for a day still gets it."""


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
    row = tx.one(_SQL["entry"], {"scope": scope, "key": key})
    if row is None:
        return New()
    known_digest, first_proof, reply = row
    if bytes(first_proof) == proof:
        return Reused()
    if known_digest != digest:
        return Clash()
    if not admit(tx, _retries(scope, key), proof, proof_expires_at):
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
