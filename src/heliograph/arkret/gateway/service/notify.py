"""Takes notifies over: an answer that says ``accepted`` leaves only after the wakeup is on disk."""

from collections.abc import Mapping
from typing import Final, final

from msgspec import UNSET

from heliograph.ambient.entropy import Entropy
from heliograph.ambient.telemetry import Event, Telemetry
from heliograph.arkret.errors import (
    PARAM_INVALID,
    SCHEMA_VIOLATION,
    ArkretRefused,
)
from heliograph.arkret.gateway.decide import (
    HISTORICAL_ONLY,
    NO_FANOUT_EVENT_KINDS,
    Rejection,
    wakeup_of,
    without_fanout,
)
from heliograph.arkret.gateway.service.admission import Admitted, Doorkeeper, idempotency_key, unavailable
from heliograph.arkret.gateway.service.takeover import KIND, Ended, Prepared, Taken, Takeover, lane_of
from heliograph.arkret.gateway.settings import GatewaySettings
from heliograph.arkret.reading import Reading, read_notify
from heliograph.arkret.schema import GatewayStatus, NotifyBody, RejectReason
from heliograph.delivery.applications import Applications
from heliograph.doorbell.port import Doorbell
from heliograph.edge.limits import Buckets, Rate
from heliograph.edge.request import Reply, Request
from heliograph.ledger import Asked
from heliograph.signing.seal import TenantKeys
from heliograph.storage.database import Database, DatabaseUnavailable
from heliograph.storage.gathering import Gathering
from heliograph.wire.instant import Instant

WAITING_RETRY_AFTER_MS: Final = 60_000
"""What a caller waits for a backlog to shrink."""

_SCOPE: Final = "arkret.notify"
DEVICES_TOGETHER_MAX: Final = 256
"""Devices that share a transaction: more hardly gain and make the first of them wait."""


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
        self._doorkeeper = doorkeeper
        self._settings = settings
        self._entropy = entropy
        self._takeover = Takeover(applications, settings, keys, lambda: doorbell.ring(KIND))
        self._gathering: Gathering[Prepared, Ended] = Gathering(
            database,
            self._takeover,
            key=lambda prepared: (prepared.asked.scope, prepared.asked.key),
            weight=lambda prepared: len(prepared.ids),
            weight_max=DEVICES_TOGETHER_MAX,
        )
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
            taken = await self._gathering.put(prepared)
        except DatabaseUnavailable:
            raise unavailable() from None
        if isinstance(taken, ArkretRefused):
            raise taken
        self._account(prepared, taken)
        return Reply(200, taken.reply)

    def _prepare(self, admitted: Admitted, reading: Reading[NotifyBody], key: str, now: Instant) -> Prepared:
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
        ids = tuple([(self._entropy.uuid7(now), self._entropy.uuid4()) for _ in range(devices)])
        asked = Asked(
            f"{_SCOPE}:{admitted.tenant}", key, reading.digest, admitted.proof, admitted.proof_expires_at
        )
        note = body.notification
        addresses = tuple([(admitted.tenant, note.push_target_id, one.device_id) for one in note.devices])
        return Prepared(admitted, reading, asked, acknowledge, wakeup, refused, addresses, ids, now)

    def _limit(self, lane: str, devices: int, now: Instant) -> Rejection | None:
        if self._waiting.get(lane, 0) + devices > self._settings.waiting_max:
            return Rejection(RejectReason.PUSH_GATEWAY_UNREACHABLE, WAITING_RETRY_AFTER_MS)
        wait_ms = self._rates.bucket(lane, now).admit(devices, now)
        return None if wait_ms == 0 else Rejection(RejectReason.RATE_LIMITED, wait_ms)

    def _account(self, prepared: Prepared, taken: Taken) -> None:
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
