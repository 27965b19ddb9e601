"""How a runner paces itself: how much at once, how long, how often. Values only."""

from dataclasses import dataclass
from typing import Final

from heliograph.queue.model import CLAIM_ITEMS_MAX, LEASE_MS_MAX, LEASE_MS_MIN
from heliograph.wire.malformed import Malformed

CONCURRENCY_MAX: Final = 10_000
"""Items in flight of one runner: each holds its loaded details in memory."""

INTERVAL_MS_MAX: Final = 3_600_000
"""The longest interval: above an hour somebody has mistaken the unit."""

KEEP_MS_MAX: Final = 366 * 86_400_000


def check_lease(lease_ms: int) -> None:
    """Refuse a lease that is no lease.

    Raises:
        Malformed: It is not within the limits.
    """
    _check("lease_ms", lease_ms, LEASE_MS_MIN, LEASE_MS_MAX)


def _check(field: str, value: int, least: int, most: int) -> None:
    """Refuse a number outside its limits."""
    if not least <= value <= most:
        raise Malformed(field, f"must be from {least} to {most}")


@dataclass(frozen=True, slots=True)
class Pace:
    """The settings of a runner. Numbers outside their limits are refused, never repaired.

    Attributes:
        concurrency: Items in flight at once, from their claim to their settlement. No more are claimed
            than are performed at once, so a provider that stalls fills no memory.
        batch: Items of one claim or one settling transaction at most.
        lease_ms: How long a claim is ours. A performance is stopped after three quarters of it, so that
            it can be settled before somebody else takes over; leases are not renewed.
        poll_ms: The longest wait for a ring before looking anyway.
        sweep_ms: How often leases that have ended are taken over.
        prune_ms: How often old rows are removed.
        grace_ms: How long a stopping runner lets what is in flight finish before it hands it back.
        keep_ms: How long done, failed and canceled items are kept.
        keep_dead_ms: How long dead items are kept.
    """

    concurrency: int = 256
    batch: int = 256
    lease_ms: int = 60_000
    poll_ms: int = 1_000
    sweep_ms: int = 3_000
    prune_ms: int = 30_000
    grace_ms: int = 10_000
    keep_ms: int = 3_600_000
    keep_dead_ms: int = 30 * 86_400_000

    def __post_init__(self) -> None:
        _check("concurrency", self.concurrency, 1, CONCURRENCY_MAX)
        _check("batch", self.batch, 1, CLAIM_ITEMS_MAX)
        check_lease(self.lease_ms)
        for interval in ("poll_ms", "sweep_ms", "prune_ms"):
            _check(interval, getattr(self, interval), 1, INTERVAL_MS_MAX)
        _check("grace_ms", self.grace_ms, 0, INTERVAL_MS_MAX)
        _check("keep_ms", self.keep_ms, 0, KEEP_MS_MAX)
        _check("keep_dead_ms", self.keep_dead_ms, 0, KEEP_MS_MAX)

    @property
    def perform_seconds(self) -> float:
        """How long one performance may take."""
        return self.lease_ms * 0.75 / 1_000
