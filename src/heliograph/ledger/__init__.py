"""What was already answered: idempotency keys, stored replies, proofs that were used."""
