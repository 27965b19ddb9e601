"""The transaction of many notifies: what was asked before is answered again, the rest is taken over.

Its statements serve all notifies that wait at the same moment. It treats them as if they came one after
another: no two of them share a key, and equal wakeups of one device fold into the first of them, as into one
that waits.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, final

import msgspec
from msgspec import UNSET

from heliograph.arkret.errors import DUPLICATE_CONFLICT, HTTP_SIGNATURE_INVALID, ArkretRefused
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.decide import (
    Acknowledge,
    Rejection,
    acknowledged,
    all_rejected,
    answer,
    departs_at,
    judge_device,
    outcome_of,
)
from heliograph.arkret.gateway.model import RouteEnd, Standing
from heliograph.arkret.gateway.service.admission import Admitted
from heliograph.arkret.gateway.settings import GatewaySettings
from heliograph.arkret.gateway.store import Address, NewDelivery
from heliograph.arkret.reading import Reading
from heliograph.arkret.schema import NotifyBody, NotifyOutcome, RejectReason
from heliograph.delivery.applications import Applications
from heliograph.delivery.model import Wakeup, WakeupKind
from heliograph.ledger import Asked, Clash, Replay, Reused, answer_all, recall_all
from heliograph.queue.model import NewItem
from heliograph.queue.store import enqueue
from heliograph.signing.seal import TenantKeys, derive
from heliograph.storage.database import Tx
from heliograph.wire.base64url import encode as base64url
from heliograph.wire.instant import Instant

KIND: Final = "arkret.deliver"
"""Work items of ordinary sources."""

KIND_HARDENED: Final = "arkret.deliver.hardened"
"""Work items of hardened sources: every attempt leaves at a five-minute mark."""

APP_RETRY_AFTER_MS: Final = 300_000
"""What a caller waits for an operator to bring a removed application back."""

LANES_KEPT: Final = 4_096
"""Lanes whose names are remembered: as many Stations as one Gateway is likely to trust, and more."""

_COLLAPSE_OCTETS: Final = 24
"""32 characters of base64url: the longest that every provider takes."""

_encode_wakeup: Final = msgspec.json.Encoder().encode
_encode_answer: Final = msgspec.json.Encoder(order="sorted").encode


class Prepared(msgspec.Struct, frozen=True):
    """What a notify brings to its transaction: drawn and computed before, so that it can be re-run.

    Attributes:
        admitted: Who asks.
        reading: The body and its digest.
        asked: The request as the ledger sees it.
        acknowledge: It is to be acknowledged only, or None.
        wakeup: What the provider may learn.
        refused: Why no device can be taken over now, or None.
        addresses: The address of each device.
        ids: The work item's and the provider's id for each device.
        now: When the request came.
    """

    admitted: Admitted
    reading: Reading[NotifyBody]
    asked: Asked
    acknowledge: Acknowledge | None
    wakeup: Wakeup
    refused: Rejection | None
    addresses: tuple[Address, ...]
    ids: tuple[tuple[str, str], ...]
    now: Instant


class Taken(msgspec.Struct, frozen=True):
    """What the transaction answered: the octets, and what it did unless it only repeated them."""

    reply: bytes
    outcome: NotifyOutcome | None
    accepted: int


Ended: TypeAlias = Taken | ArkretRefused


class _Wish(msgspec.Struct, frozen=True):
    """A device that may be taken over, unless an equal wakeup of it waits."""

    item: NewItem
    delivery: NewDelivery


class _Judged(msgspec.Struct, frozen=True):
    """What was decided of one device."""

    device_id: str
    rejection: Rejection | None
    wish: _Wish | None


@final
class Takeover:
    """Takes notifies over, many in one transaction.

    Args:
        applications: What is configured.
        settings: Lives, windows and limits.
        keys: Derive collapse keys.
        ring: Called once work that was enqueued is on disk.
    """

    def __init__(
        self,
        applications: Applications,
        settings: GatewaySettings,
        keys: TenantKeys,
        ring: Callable[[], None],
    ) -> None:
        self._applications = applications
        self._settings = settings
        self._keys = keys
        self._ring = ring

    def __call__(self, tx: Tx, batch: Sequence[Prepared]) -> list[Ended]:
        """Answer each notify.

        Args:
            tx: The transaction.
            batch: No two with one tenant and key.

        Returns:
            For each what was answered, or the refusal that its caller gets.
        """
        ended: list[Ended | None] = []
        fresh: list[Prepared] = []
        for one, recalled in zip(batch, recall_all(tx, [one.asked for one in batch]), strict=True):
            match recalled:
                case Replay(reply=reply):
                    ended.append(Taken(reply, None, 0))
                case Clash():
                    ended.append(
                        ArkretRefused(
                            DUPLICATE_CONFLICT, "stands for another body already", field="Idempotency-Key"
                        )
                    )
                case Reused():
                    # Octet for octet the same signed request: not a retry, which is signed anew (A20).
                    ended.append(ArkretRefused(HTTP_SIGNATURE_INVALID))
                case _:
                    fresh.append(one)
                    ended.append(None)
        if not fresh:
            return [end for end in ended if end is not None]
        told = iter(self._answer(tx, fresh))
        return [next(told) if end is None else end for end in ended]

    def _answer(self, tx: Tx, fresh: Sequence[Prepared]) -> list[Taken]:
        """Answer notifies that are new, and remember the answers."""
        takers = [one for one in fresh if one.acknowledge is None and one.refused is None]
        addresses = [address for one in takers for address in one.addresses]
        standings = store.standings(tx, addresses) if addresses else {}
        judged = {id(one): self._judge(tx, one, standings) for one in takers}
        wishes = [each.wish for devices in judged.values() for each in devices if each.wish is not None]
        now = max(one.now for one in fresh)
        added = enqueue(tx, [wish.item for wish in wishes], now) if wishes else set()
        if added:
            store.deliveries_insert(tx, [wish.delivery for wish in wishes if wish.item.item_id in added])
            tx.after_commit(self._ring)
        taken: list[Taken] = []
        for one in fresh:
            body = one.reading.value
            accepted = 0
            if one.acknowledge is not None:
                _audit(tx, one)
                outcome = acknowledged(body)
            elif one.refused is not None:
                outcome = all_rejected(body, one.refused)
            else:
                devices = judged[id(one)]
                outcome, accepted = self._outcome(tx, one, devices, standings, added)
            taken.append(Taken(_encode_answer(outcome), outcome, accepted))
        answer_all(tx, [(one.asked, end.reply) for one, end in zip(fresh, taken, strict=True)], now)
        return taken

    def _judge(self, tx: Tx, one: Prepared, standings: dict[Address, Standing]) -> list[_Judged]:
        """Decide on each device, and erase the route of one whose own expiry has passed."""
        judged: list[_Judged] = []
        tenant, body = one.admitted.tenant, one.reading.value
        for ids, address in zip(one.ids, one.addresses, strict=True):
            standing = standings.get(address)
            rejection = judge_device(
                standing,
                body,
                one.now,
                app_exists=self._applications.exists,
                visible_allowed=False,
                app_retry_after_ms=APP_RETRY_AFTER_MS,
            )
            wish = None
            if standing is not None and rejection is None:
                wish = self._wish(one, ids, address[2], standing)
            elif standing is not None and standing.expired(one.now):
                store.route_end(tx, tenant, standing.registration_id, RouteEnd.EXPIRED)
            judged.append(_Judged(address[2], rejection, wish))
        return judged

    def _outcome(
        self,
        tx: Tx,
        one: Prepared,
        devices: Sequence[_Judged],
        standings: dict[Address, Standing],
        added: set[str],
    ) -> tuple[NotifyOutcome, int]:
        """Spell what became of each device, and count those that were really taken over."""
        body, tenant = one.reading.value, one.admitted.tenant
        target = body.notification.push_target_id
        nowhere = standings.keys().isdisjoint(one.addresses)
        if nowhere and not store.target_known(tx, tenant, target):
            return all_rejected(body, Rejection(RejectReason.PUSH_TARGET_UNKNOWN)), 0
        accepted = 0
        told = {}
        for each in devices:
            joined = each.wish is not None and each.wish.item.item_id not in added
            accepted += each.wish is not None and not joined
            told[each.device_id] = outcome_of(each.device_id, each.rejection, joined=joined)
        return answer(body, told), accepted

    def _wish(self, one: Prepared, ids: tuple[str, str], device_id: str, standing: Standing) -> _Wish:
        item_id, provider_id = ids
        tenant, wakeup, hardened = one.admitted.tenant, one.wakeup, one.admitted.hardened
        due_at = departs_at(one.now, hardened=hardened)
        content = _encode_wakeup(wakeup)
        window = one.now // (self._settings.collapse_window_s * 1000)
        item = NewItem(
            item_id=item_id,
            kind=KIND_HARDENED if hardened else KIND,
            lane=lane_of(tenant),
            reference=item_id,
            due_at=due_at,
            expires_at=due_at + self._life_ms(wakeup.kind),
            fold_key=_fold_key(tenant, standing.registration_id, wakeup, content),
            gate=self._gate(standing),
        )
        delivery = NewDelivery(
            item_id=item_id,
            tenant=tenant,
            registration_id=standing.registration_id,
            wakeup=content.decode(),
            collapse_key=collapse_key(self._keys, tenant, wakeup, device_id, window),
            provider_id=provider_id,
            accepted_at=one.now,
        )
        return _Wish(item, delivery)

    def _gate(self, standing: Standing) -> str | None:
        """Name what the delivery will need, so that it is not claimed while that rests."""
        application = self._applications.resolve(standing.app)
        return None if application is None else application.provider.credential

    def _life_ms(self, kind: WakeupKind) -> int:
        call = kind is WakeupKind.CALL_INVITE
        return 1000 * (self._settings.call_life_s if call else self._settings.wakeup_life_s)


def _audit(tx: Tx, one: Prepared) -> None:
    """Keep the least that identifies an audit event."""
    envelope = one.reading.value.audit_envelope
    if envelope is not UNSET:
        event_id = envelope.late_recovery_original_event_id
        store.audit_insert(
            tx,
            one.ids[0][0],
            one.admitted.tenant,
            access_kind=envelope.access_kind,
            event_id=None if event_id is UNSET else event_id,
            recorded_at=one.now,
        )


@lru_cache(maxsize=LANES_KEPT)
def lane_of(tenant: str) -> str:
    """Return the opaque name of a tenant's lane in queues, metrics and subjects."""
    return base64url(hashlib.sha256(tenant.encode()).digest()[:12])


def collapse_key(keys: TenantKeys, tenant: str, wakeup: Wakeup, device_id: str, window: int) -> str:
    """Derive what a provider may fold by: unlinkable between windows, devices and Stations (R037–R039).

    It depends on a secret of this tenant alone, on the target, the device, the class of the wakeup and the
    window, and on nothing of the event.
    """
    message = f"{window}\0{wakeup.push_target_id}\0{device_id}\0{wakeup.kind}".encode()
    tag = hmac.digest(derive(keys, tenant, "arkret-collapse"), message, "sha256")
    return base64url(tag[:_COLLAPSE_OCTETS])


def _fold_key(tenant: str, registration_id: str, wakeup: Wakeup, content: bytes) -> str | None:
    """Return what makes a wakeup equal to one that waits; increments add up and are never folded."""
    if wakeup.counts is not None and wakeup.counts.unread_increment is not None:
        return None
    digest = hashlib.sha256(b"\0".join((tenant.encode(), registration_id.encode(), content))).digest()
    return base64url(digest[:16])
