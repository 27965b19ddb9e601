"""What was already answered: idempotency keys, stored replies, proofs that were used."""

from heliograph.ledger.store import (
    RETENTION_MS_MIN,
    Asked,
    Clash,
    New,
    Recalled,
    Replay,
    Reused,
    admit,
    answer,
    answer_all,
    prune,
    recall,
    recall_all,
)

__all__ = [
    "RETENTION_MS_MIN",
    "Asked",
    "Clash",
    "New",
    "Recalled",
    "Replay",
    "Reused",
    "admit",
    "answer",
    "answer_all",
    "prune",
    "recall",
    "recall_all",
]
