"""The rows of freezes and pulses. Synchronous; every function takes a ``Tx``."""

from collections.abc import Mapping, Sequence
from typing import Final

from heliograph.delivery.hygiene.decide import BUCKET_MS, WINDOW_MS, Bucket, Freeze, Tally
from heliograph.storage.database import Tx
from heliograph.storage.queries import load_queries
from heliograph.wire.instant import Instant

_SQL: Final = load_queries("heliograph.delivery.hygiene", "hygiene.sql")

FREEZES_MAX: Final = 1_000
"""Rows read at once; there is one for each credential at most."""


def freeze(tx: Tx, new: Freeze) -> bool:
    """Freeze a credential; tell whether it was not frozen."""
    return (
        tx.run(
            _SQL["freeze"],
            {
                "credential": new.credential,
                "frozen_at": new.frozen_at,
                "sends": new.tally.sends,
                "bad": new.tally.bad,
            },
        )
        == 1
    )


def frozen(tx: Tx, credential: str) -> bool:
    """Tell whether a credential is frozen."""
    return tx.one(_SQL["frozen"], {"credential": credential}) is not None


def freezes(tx: Tx) -> list[Freeze]:
    """Return every freeze."""
    rows = tx.all(_SQL["freezes"], {"limit": FREEZES_MAX})
    return [Freeze(row[0], row[1], Tally(row[2], row[3])) for row in rows]


def thaw(tx: Tx, credential: str) -> bool:
    """Believe a credential's word again, beginning with a fresh minute; tell whether it was frozen."""
    tx.run(_SQL["thaw_pulses"], {"credential": credential})
    return tx.run(_SQL["thaw"], {"credential": credential}) == 1


def beat(tx: Tx, worker: str, pulses: Mapping[str, Sequence[Bucket]]) -> None:
    """Write what a process has counted."""
    tx.many(
        _SQL["beat"],
        [
            {
                "credential": credential,
                "bucket": bucket.start,
                "worker": worker,
                "sends": bucket.tally.sends,
                "bad": bucket.tally.bad,
            }
            for credential, buckets in pulses.items()
            for bucket in buckets
        ],
    )


def others(tx: Tx, worker: str, now: Instant) -> dict[str, Tally]:
    """Sum up what other processes counted within the last minute."""
    rows = tx.all(_SQL["others"], {"since": now - WINDOW_MS - BUCKET_MS, "worker": worker})
    return {credential: Tally(int(sends), int(bad)) for credential, sends, bad in rows}


def forget(tx: Tx, now: Instant) -> int:
    """Forget pulses that no minute looks at any more."""
    return tx.run(_SQL["forget"], {"before": now - 2 * WINDOW_MS})
