"""What was already answered: idempotency keys, stored replies, proofs that were used."""

from heliograph.ledger.store import (
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

__all__ = [
    "RETENTION_MS_MIN",
    "Clash",
    "New",
    "Recalled",
    "Replay",
    "Reused",
    "admit",
    "answer",
    "prune",
    "recall",
]
