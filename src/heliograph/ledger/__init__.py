"""What was already answered: idempotency keys, stored replies, proofs that were used."""

from heliograph.ledger.store import Clash, New, Recalled, Replay, Reused, admit, answer, prune, recall

__all__ = ["Clash", "New", "Recalled", "Replay", "Reused", "admit", "answer", "prune", "recall"]
