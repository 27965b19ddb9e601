"""Takes notifies over: an answer that says ``accepted`` leaves only after the wakeup is on disk."""

import hashlib
import hmac
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import msgspec
from msgspec import UNSET

from heliograph.ambient.entropy import Entropy
from heliograph.ambient.telemetry import Event, Telemetry
from heliograph.arkret.errors import (
    DUPLICATE_CONFLICT,
    HTTP_SIGNATURE_INVALID,
    PARAM_INVALID,
    SCHEMA_VIOLATION,
    ArkretRefused,
)
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.decide import (
    HISTORICAL_ONLY,
    NO_FANOUT_EVENT_KINDS,
    Acknowledge,
    Rejection,
    acknowledged,
    all_rejected,
    answer,
    departs_at,
    judge_device,
    outcome_of,
    wakeup_of,
    without_fanout,
)
from heliograph.arkret.gateway.model import Installation, RouteEnd
from heliograph.arkret.gateway.service.admission import Admitted, Doorkeeper, idempotency_key, unavailable
from heliograph.arkret.gateway.settings import GatewaySettings
from heliograph.arkret.reading import Reading, read_notify
from heliograph.arkret.schema import DeviceOutcome, GatewayStatus, NotifyBody, NotifyOutcome, RejectReason
from heliograph.delivery.applications import Applications
from heliograph.delivery.model import Wakeup, WakeupKind
from heliograph.doorbell.port import Doorbell
from heliograph.edge.limits import Buckets, Rate
from heliograph.edge.request import Reply, Request
from heliograph.ledger import Clash, Replay, Reused, recall
from heliograph.ledger import answer as remember
from heliograph.queue.model import NewItem
from heliograph.queue.store import enqueue
from heliograph.signing.seal import TenantKeys, derive
from heliograph.storage.database import Database, DatabaseUnavailable, Tx
from heliograph.wire.base64url import encode as base64url
from heliograph.wire.instant import Instant

KIND: Final = "arkret.deliver"
"""Work items of ordinary sources."""

KIND_HARDENED: Final = "arkret.deliver.hardened"
"""Work items of hardened sources: every attempt leaves at a five-minute mark."""

APP_RETRY_AFTER_MS: Final = 300_000
"""What a caller waits for an operator to bring a removed application back."""

WAITING_RETRY_AFTER_MS: Final = 60_000
"""What a caller waits for a backlog to shrink."""

_COLLAPSE_OCTETS: Final = 24
"""32 characters of base64url: the longest that every provider takes."""

_SCOPE: Final = "arkret.notify"
_encode_wakeup: Final = msgspec.json.Encoder().encode
_encode_answer: Final = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a notify brings to its transaction: drawn and computed before, so that it can be re-run."""

    admitted: Admitted
    reading: Reading[NotifyBody]
    key: str
    acknowledge: Acknowledge | None
    wakeup: Wakeup
    refused: Rejection | None
    ids: tuple[tuple[str, str], ...]
    now: Instant


@dataclass(frozen=True, slots=True)
class _Taken:
    """What the transaction answered."""

    reply: bytes
    outcome: NotifyOutcome | None
    accepted: int


@final
class NotifyDesk:
    """Serves ``notify`` (R089)."""

    def __init__(
        self,
        *,
        database: Database,
        doorkeeper: Doorkeeper,
        applications: Applications,
        settings: GatewaySettings,
        keys: TenantKeys,
        entropy: Entropy,
        doorbell: Doorbell,
        telemetry: Telemetry,
    ) -> None:
        self._database = database
        self._doorkeeper = doorkeeper
        self._applications = applications
        self._settings = settings
        self.keys = keys
        self._entropy = entropy
        self._doorbell = doorbell
        self._telemetry = telemetry
        self._no_fanout = NO_FANOUT_EVENT_KINDS | frozenset(settings.no_fanout_kinds)
        self._rates: Buckets[str] = Buckets(Rate(settings.devices_per_second, settings.devices_burst))
        self._waiting: dict[str, int] = {}

    def waiting_is(self, waiting: Mapping[str, int]) -> None:
        """Learn how many accepted wakeups of each lane wait; counted from there until told again."""
        self._waiting = dict(waiting)

    async def notify(self, request: Request) -> Reply:
        """Take over each device that can be, and answer with one outcome for each.

        Raises:
            ArkretRefused: With the code of the registry; nothing was changed and nothing taken over.
        """
        admitted = self._doorkeeper.admit(request)
        key = idempotency_key(request.all("idempotency-key"))
        reading = read_notify(request.body, canonical_required=admitted.station.canonical_required)
        prepared = self._prepare(admitted, reading, key, request.received_at)
        try:
            taken = await self._database.transact(self._transact, prepared)
        except DatabaseUnavailable:
            raise unavailable() from None
        self._account(prepared, taken)
        return Reply(200, taken.reply)

    def _prepare(self, admitted: Admitted, reading: Reading[NotifyBody], key: str, now: Instant) -> _Prepared:
        body = reading.value
        if body.reason_code is not UNSET and body.reason_code != HISTORICAL_ONLY:
            raise ArkretRefused(SCHEMA_VIOLATION, "is not a defined reason", field="reason_code")
        if (
            body.audit_envelope is not UNSET
            and body.audit_envelope.access_kind == "e2ee_late_recovery"
            and body.audit_envelope.late_recovery_original_event_id is UNSET
        ):
            raise ArkretRefused(
                PARAM_INVALID,
                "is required for e2ee_late_recovery",
                field="audit_envelope.late_recovery_original_event_id",
            )
        acknowledge = without_fanout(body, self._no_fanout)
        wakeup, dropped = wakeup_of(body, self._settings.bucket_grid)
        for member in dropped.members:
            self._telemetry.event(Event.COUNTS_DROPPED, member=member)
        devices = len(body.notification.devices)
        refused = None if acknowledge else self._limit(lane_of(admitted.tenant), devices, now)
        ids = tuple(
            (self._entropy.uuid7(now), _provider_id(self._entropy.octets(16))) for _ in range(devices)
        )
        return _Prepared(admitted, reading, key, acknowledge, wakeup, refused, ids, now)

    def _limit(self, lane: str, devices: int, now: Instant) -> Rejection | None:
        if self._waiting.get(lane, 0) + devices > self._settings.waiting_max:
            return Rejection(RejectReason.PUSH_GATEWAY_UNREACHABLE, WAITING_RETRY_AFTER_MS)
        wait_ms = self._rates.bucket(lane, now).admit(devices, now)
        return None if wait_ms == 0 else Rejection(RejectReason.RATE_LIMITED, wait_ms)

    def _transact(self, tx: Tx, prepared: _Prepared) -> _Taken:
        admitted, reading = prepared.admitted, prepared.reading
        scope = f"{_SCOPE}:{admitted.tenant}"
        known = recall(
            tx,
            scope,
            prepared.key,
            digest=reading.digest,
            proof=admitted.proof,
            proof_expires_at=admitted.proof_expires_at,
        )
        match known:
            case Replay(reply=reply):
                return _Taken(reply, None, 0)
            case Clash():
                raise ArkretRefused(
                    DUPLICATE_CONFLICT, "stands for another body already", field="Idempotency-Key"
                )
            case Reused():
                # Octet for octet the same signed request: not a retry, which is signed anew (A20).
                raise ArkretRefused(HTTP_SIGNATURE_INVALID)
            case _:
                pass
        accepted = 0
        if prepared.acknowledge is not None:
            outcome = self._acknowledge(tx, prepared)
        elif prepared.refused is not None:
            outcome = all_rejected(reading.value, prepared.refused)
        else:
            outcome, accepted = self._take_over(tx, prepared)
        reply = _encode_answer(outcome)
        remember(
            tx,
            scope,
            prepared.key,
            digest=reading.digest,
            proof=admitted.proof,
            reply=reply,
            now=prepared.now,
        )
        return _Taken(reply, outcome, accepted)

    def _acknowledge(self, tx: Tx, prepared: _Prepared) -> NotifyOutcome:
        envelope = prepared.reading.value.audit_envelope
        if envelope is not UNSET:
            event_id = envelope.late_recovery_original_event_id
            store.audit_insert(
                tx,
                prepared.ids[0][0],
                prepared.admitted.tenant,
                access_kind=envelope.access_kind,
                event_id=None if event_id is UNSET else event_id,
                recorded_at=prepared.now,
            )
        return acknowledged(prepared.reading.value)

    def _take_over(self, tx: Tx, prepared: _Prepared) -> tuple[NotifyOutcome, int]:
        body, tenant = prepared.reading.value, prepared.admitted.tenant
        target = prepared.wakeup.push_target_id
        told: dict[str, DeviceOutcome] = {}
        accepted = 0
        found = False
        for ids, device in zip(prepared.ids, body.notification.devices, strict=True):
            installation = store.current(tx, tenant, target, device.device_id)
            found = found or installation is not None
            rejection = judge_device(
                installation,
                body,
                prepared.now,
                app_exists=self._applications.exists,
                visible_allowed=False,
                app_retry_after_ms=APP_RETRY_AFTER_MS,
            )
            joined = False
            if installation is not None and rejection is None:
                joined = not self._enqueue(tx, prepared, ids, installation)
                accepted += not joined
            elif installation is not None and installation.expired(prepared.now):
                store.route_end(tx, tenant, installation.registration_id, RouteEnd.EXPIRED)
            told[device.device_id] = outcome_of(device.device_id, rejection, joined=joined)
        if not found and not store.target_known(tx, tenant, target):
            return all_rejected(body, Rejection(RejectReason.PUSH_TARGET_UNKNOWN)), 0
        if accepted:
            tx.after_commit(self._ring)
        return answer(body, told), accepted

    def _enqueue(self, tx: Tx, prepared: _Prepared, ids: tuple[str, str], installation: Installation) -> bool:
        item_id, provider_id = ids
        tenant, wakeup = prepared.admitted.tenant, prepared.wakeup
        hardened = prepared.admitted.hardened
        due_at = departs_at(prepared.now, hardened=hardened)
        content = _encode_wakeup(wakeup)
        window = prepared.now // (self._settings.collapse_window_s * 1000)
        item = NewItem(
            item_id=item_id,
            kind=KIND_HARDENED if hardened else KIND,
            lane=lane_of(tenant),
            reference=item_id,
            due_at=due_at,
            expires_at=due_at + self._life_ms(wakeup.kind),
            fold_key=_fold_key(tenant, installation.registration_id, wakeup, content),
        )
        if item_id not in enqueue(tx, [item], prepared.now):
            return False
        store.delivery_insert(
            tx,
            store.NewDelivery(
                item_id=item_id,
                tenant=tenant,
                registration_id=installation.registration_id,
                wakeup=content.decode(),
                collapse_key=collapse_key(self.keys, tenant, wakeup, installation.device_id, window),
                provider_id=provider_id,
                accepted_at=prepared.now,
            ),
        )
        return True

    def _life_ms(self, kind: WakeupKind) -> int:
        life_s = (
            self._settings.call_life_s if kind is WakeupKind.CALL_INVITE else self._settings.wakeup_life_s
        )
        return life_s * 1000

    def _ring(self) -> None:
        self._doorbell.ring(KIND)

    def _account(self, prepared: _Prepared, taken: _Taken) -> None:
        """Count what was answered. A replay was counted when it was first answered."""
        if taken.outcome is None:
            return
        if taken.accepted:
            lane = lane_of(prepared.admitted.tenant)
            self._waiting[lane] = self._waiting.get(lane, 0) + taken.accepted
        told: dict[tuple[GatewayStatus, str], int] = {}
        for outcome in taken.outcome.outcomes:
            reason = "" if outcome.reason_code is UNSET else outcome.reason_code.value
            kind = (outcome.gateway_status, reason)
            told[kind] = told.get(kind, 0) + 1
        for (status, reason), count in told.items():
            self._telemetry.event(Event.DEVICES_ANSWERED, outcome=status, reason=reason, count=count)


def _provider_id(octets: bytes) -> str:
    """Spell 16 random octets as a UUID of version 4."""
    return str(uuid.UUID(bytes=octets, version=4))


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
