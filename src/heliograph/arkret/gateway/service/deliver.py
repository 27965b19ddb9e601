"""Turns a claimed work item into a delivery, and remembers what its end means for the route."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import msgspec

from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.hygiene import store as hygiene
from heliograph.arkret.gateway.model import RouteEnd
from heliograph.arkret.gateway.service.routes import open_route
from heliograph.arkret.gateway.store import StoredDelivery
from heliograph.delivery.hygiene.decide import condemned, strike
from heliograph.delivery.hygiene.store import frozen
from heliograph.delivery.model import Delivery, Outcome, Verdict, Wakeup
from heliograph.delivery.ruling import Ruling, ruling_of
from heliograph.queue.machine import Change, State
from heliograph.queue.model import Claim
from heliograph.signing.seal import TenantKeys
from heliograph.storage.database import Tx
from heliograph.wire.instant import Instant

_decode_wakeup: Final = msgspec.json.Decoder(Wakeup).decode


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a claim stands for, still sealed; None when its content is gone."""

    stored: StoredDelivery | None
    expires_at: Instant


@final
class WakeupSource:
    """The Gateway's deliveries of one kind; a ``delivery.handler.DeliverySource``.

    A work item holds no secret and no body: the route is read, still sealed, when the item is claimed, and
    opened when it is performed. A route that was revoked meanwhile reads as nothing (R098, R139).
    """

    def __init__(self, kind: str, keys: TenantKeys) -> None:
        self._kind = kind
        self._keys = keys

    @property
    def kind(self) -> str:
        """The kind of work item that stands for one delivery."""
        return self._kind

    def load(self, tx: Tx, claims: Sequence[Claim]) -> Sequence[Loaded]:
        """Read the stored details of each claim, in the same order."""
        return [Loaded(store.delivery_load(tx, claim.item_id), claim.expires_at) for claim in claims]

    def open(self, loaded: Loaded) -> Delivery | None:
        """Open the sealed route and spell the delivery; None when there is no route any more.

        Raises:
            SealBroken: No key we have opens the route. The item is tried again and ends among the dead ones,
                where an operator who brings the key back can retry it.
        """
        stored = loaded.stored
        if stored is None or stored.route is None:
            return None
        route = open_route(self._keys, stored.tenant, stored.registration_id, stored.route)
        expires_at = loaded.expires_at
        if stored.registration_expires_at is not None:
            expires_at = min(expires_at, stored.registration_expires_at)
        return Delivery(
            delivery_id=stored.provider_id,
            wakeup=_decode_wakeup(stored.wakeup),
            route=route,
            collapse_key=stored.collapse_key,
            expires_at=expires_at,
        )

    def registered_at(self, loaded: Loaded) -> Instant:
        """Tell when the route was registered."""
        return 0 if loaded.stored is None else loaded.stored.registered_at

    def settled(self, tx: Tx, claim: Claim, change: Change, verdict: Verdict | None) -> None:
        """Note what the end means for the route, and forget what is needed no more (R310).

        Nothing of it reaches the answer that was given when the wakeup was taken over.
        """
        if change.state is State.READY:
            return
        ruling = ruling_of(change.signal)
        if verdict is not None and isinstance(ruling.loaded, Loaded) and ruling.loaded.stored is not None:
            self._judge(tx, ruling.loaded.stored, change, ruling, verdict)
        if change.state is not State.DEAD:
            # A dead item may be tried again by an operator, so it keeps its content.
            store.delivery_delete(tx, claim.item_id)

    def _judge(
        self, tx: Tx, stored: StoredDelivery, change: Change, ruling: Ruling, verdict: Verdict
    ) -> None:
        """End a route that its provider called dead or has doubted too often; clear one that it took."""
        if change.state is State.DONE:
            if stored.suspected:
                hygiene.forget_suspicion(tx, stored.tenant, stored.registration_id)
            return
        if (change.state, change.reason) != (State.FAILED, verdict.reason):
            return
        now = change.due_at  # of a change that leads to an end, the time of the change
        if verdict.outcome is Outcome.TOKEN_DEAD:
            self._end(tx, stored, ruling, verdict.reason, now)
        elif verdict.outcome is Outcome.TOKEN_SUSPECT and not ruling.frozen:
            held = strike(
                hygiene.suspicion(tx, stored.tenant, stored.registration_id), stored.provider_id, now
            )
            hygiene.suspicion_put(tx, stored.tenant, stored.registration_id, held)
            if condemned(held, ruling.accepted_at):
                self._end(tx, stored, ruling, verdict.reason, now)

    @staticmethod
    def _end(tx: Tx, stored: StoredDelivery, ruling: Ruling, reason: str, now: Instant) -> None:
        """End a route, unless another process has frozen its credential meanwhile; keep it for an undo."""
        if frozen(tx, ruling.credential):
            return
        hygiene.keep(
            tx,
            stored.tenant,
            stored.registration_id,
            credential=ruling.credential,
            reason=reason,
            now=now,
        )
        store.route_end(tx, stored.tenant, stored.registration_id, RouteEnd.PROVIDER)
