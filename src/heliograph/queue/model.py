"""What goes into the queue and what comes out of it. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from heliograph.queue.machine import Change, Happening, Policy
from heliograph.wire.instant import Instant

KEY_CHARACTERS_MAX: Final = 512
"""The longest kind, lane, group, reference or fold key: references and digests, never bodies."""

LIFE_MS: Final = 7 * 86_400_000
"""How long after its due time an item without an expiry of its own is worth trying. A week outlasts any
outage that somebody is still going to repair, and nothing waits for ever."""


LEASE_MS_MIN: Final = 1_000
LEASE_MS_MAX: Final = 3_600_000
"""A lease of no time would expire under its holder, and a crash under a lease of days would look like
lost work; whoever asks for one has mistaken the unit."""

CLAIM_ITEMS_MAX: Final = 1_000
"""Items of one claim: one transaction must not keep the others waiting."""


class NewItem(msgspec.Struct, frozen=True):
    """A piece of work to enqueue.

    Attributes:
        item_id: A new time-ordered UUID.
        kind: Which handler performs it.
        lane: The fairness key: whose work it is.
        reference: Where the handler finds the details; never a secret or a body.
        due_at: Not before this instant.
        group: The cancel key, for work that may be called off together.
        expires_at: From this instant on it is worth nothing; by default ``LIFE_MS`` after it is due.
        fold_key: Equal keys mean equal work: it joins an item that waits unclaimed instead of adding one.
        gate: What it needs together with others and may have to wait for; None needs nothing.
    """

    item_id: str
    kind: str
    lane: str
    reference: str
    due_at: Instant
    group: str | None = None
    expires_at: Instant | None = None
    fold_key: str | None = None
    gate: str | None = None

    def __post_init__(self) -> None:
        for name in ("item_id", "kind", "lane", "reference", "group", "fold_key", "gate"):
            text = getattr(self, name)
            if text is not None and not 0 < len(text) <= KEY_CHARACTERS_MAX:
                raise ValueError(f"{name} must have 1 to {KEY_CHARACTERS_MAX} characters")


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease on one item, and the fence that goes with it.

    Attributes:
        item_id: The item.
        kind: Which handler performs it.
        lane: The fairness key.
        group: The cancel key, if any.
        reference: Where the handler finds the details.
        attempt: Which attempt this is, from 1.
        revision: The fence: how many times the item was ever claimed.
        leased_until: When somebody else may take it over.
        created_at: When it was enqueued.
        expires_at: From this instant on it is worth nothing.
        gate: The gate that it came through; empty for none.
        probe: It is the one item that tries its gate now; nothing else comes through meanwhile.
    """

    item_id: str
    kind: str
    lane: str
    group: str | None
    reference: str
    attempt: int
    revision: int
    leased_until: Instant
    created_at: Instant
    expires_at: Instant
    gate: str = ""
    probe: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """How far a round through all lanes has come. Keep it between claims; an empty one is a new round.

    Attributes:
        marks: For each kind the gate and the lane that were visited last, or None when all were.
        taken: How many items the claims of this round have taken.
    """

    marks: Mapping[str, tuple[str, str] | None] = field(default_factory=dict)
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one claim brought.

    Attributes:
        claims: The leases, longest due first.
        place: Where the next claim goes on.
        more: Work that is due may be left: claim again before waiting for a ring. A whole round that
            takes nothing ends with False, so nobody spins.
        crowded: Work that is due was left because its lane or its gate has enough in progress: claim again
            when some of that has ended.
    """

    claims: list[Claim]
    place: Round
    more: bool
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """How a claim ended, before its row is asked.

    Attributes:
        claim: The lease.
        happening: What happened to it.
        policy: The patience of its kind.
        fraction: A random number in [0, 1) for the pause.
    """

    claim: Claim
    happening: Happening
    policy: Policy
    fraction: float = 0.0


@dataclass(frozen=True, slots=True)
class Swept:
    """One page of a sweep.

    Attributes:
        settled: The leases that had ended, and what became of their items.
        following: Where the next page begins; None after the last.
    """

    settled: list[tuple[Claim, Change]]
    following: tuple[Instant, str] | None


@dataclass(frozen=True, slots=True)
class Canceled:
    """What a cancel did: items canceled at once, and items in progress that were asked."""

    waiting: int
    leased: int


@dataclass(frozen=True, slots=True)
class DeadItem:
    """A row of the dead-letter list."""

    item_id: str
    kind: str
    lane: str
    reference: str
    attempt: int
    reason: str
    cause: str | None
    created_at: Instant
    settled_at: Instant
    expires_at: Instant
