"""The rows of ended and suspected routes. Every function that names a route names its tenant (R116).

A route that ended by a provider's word is kept for a while, sealed as it was, in a table of its own: its
registration has no route any more, and whatever revokes or supersedes the registration erases this copy as
well.
"""

from dataclasses import dataclass
from typing import Final

from heliograph.delivery.hygiene.decide import SUSPICION_KEPT_MS, Suspicion
from heliograph.storage.database import Params, Tx
from heliograph.storage.queries import load_queries
from heliograph.wire.instant import Instant

_SQL: Final = load_queries("heliograph.arkret.gateway.hygiene", "hygiene.sql")

ENDED_KEPT_MS: Final = 86_400_000
"""How long the end of a route can be undone. An alarm at night is read in the morning; a device that is gone
is not remembered for longer than that."""


@dataclass(frozen=True, slots=True)
class Undoable:
    """Routes that ended for one reason and could be brought back."""

    reason: str
    routes: int
    stations: int


def keep(tx: Tx, tenant: str, registration_id: str, *, credential: str, reason: str, now: Instant) -> None:
    """Keep the route of a registration that is about to lose it by a provider's word."""
    tx.run(
        _SQL["route_keep"],
        {
            "tenant": tenant,
            "registration_id": registration_id,
            "credential": credential,
            "reason": reason,
            "ended_at": now,
        },
    )
    forget_suspicion(tx, tenant, registration_id)


def erase(tx: Tx, tenant: str, registration_id: str) -> None:
    """Erase what was kept of a registration that is over."""
    row = {"tenant": tenant, "registration_id": registration_id}
    tx.run(_SQL["route_forget"], row)
    tx.run(_SQL["suspicion_forget"], row)


def suspicion(tx: Tx, tenant: str, registration_id: str) -> Suspicion | None:
    """Return what is held against a route."""
    row = tx.one(_SQL["suspicion"], {"tenant": tenant, "registration_id": registration_id})
    return None if row is None else Suspicion(*row)


def suspicion_put(tx: Tx, tenant: str, registration_id: str, held: Suspicion) -> None:
    """Hold something against a route."""
    tx.run(
        _SQL["suspicion_put"],
        {
            "tenant": tenant,
            "registration_id": registration_id,
            "strikes": held.strikes,
            "first_at": held.first_at,
            "last_at": held.last_at,
            "last_delivery": held.last_delivery,
        },
    )


def forget_suspicion(tx: Tx, tenant: str, registration_id: str) -> None:
    """Hold nothing against a route any more."""
    tx.run(_SQL["suspicion_forget"], {"tenant": tenant, "registration_id": registration_id})


def undoable(tx: Tx, credential: str, since: Instant, now: Instant) -> list[Undoable]:
    """Tell what an undo would bring back, by reason."""
    rows = tx.all(_SQL["undoable"], {"credential": credential, "since": since, "now": now})
    return [Undoable(*row) for row in rows]


def undo(tx: Tx, credential: str, since: Instant, now: Instant) -> int:
    """Bring back the routes that ended by a credential's word since an instant; tell how many."""
    span: Params = {"credential": credential, "since": since}
    revived = tx.run(_SQL["undo"], {**span, "now": now})
    tx.run(_SQL["undone"], span)
    return revived


def prune(tx: Tx, now: Instant) -> int:
    """Forget what can be undone no more, and suspicions that nothing has confirmed."""
    ended = tx.run(_SQL["prune_ended"], {"before": now - ENDED_KEPT_MS})
    return ended + tx.run(_SQL["prune_suspicions"], {"before": now - SUSPICION_KEPT_MS})
