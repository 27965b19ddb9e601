"""Applies registration handoffs: durable first, signed receipt after, the same bytes for ever."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, final

from msgspec import UNSET

from heliograph.ambient.entropy import Entropy
from heliograph.ambient.telemetry import Event, Telemetry
from heliograph.arkret.errors import (
    DUPLICATE_CONFLICT,
    HTTP_SIGNATURE_INVALID,
    PARAM_INVALID,
    PUSH_TOKEN_INVALID,
    ArkretRefused,
)
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.decide import apply_handoff
from heliograph.arkret.gateway.describe import Identity
from heliograph.arkret.gateway.model import (
    Conflict,
    Install,
    Installation,
    InstallationState,
    Replayed,
    Tombstone,
)
from heliograph.arkret.gateway.service.admission import Admitted, Doorkeeper, unavailable
from heliograph.arkret.gateway.service.routes import seal_route
from heliograph.arkret.reading import Reading, read_handoff
from heliograph.arkret.schema import HandoffActive, HandoffBody
from heliograph.delivery.applications import Applications
from heliograph.delivery.model import Route
from heliograph.edge.request import Reply, Request
from heliograph.ledger import admit
from heliograph.signing.ed25519 import SigningKey
from heliograph.signing.receipt import Receipt, ReceiptState, sign_receipt
from heliograph.signing.seal import TenantKeys
from heliograph.storage.database import Database, DatabaseUnavailable, Tx
from heliograph.wire import canonical
from heliograph.wire.ids import DeviceId, DidCoreId, PushTargetId, RegistrationId
from heliograph.wire.instant import Instant, parse_instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

_PROOF_SCOPE: Final = "arkret.apply"


class HandoffOutcomeWord(StrEnum):
    """How a handoff ended, for metrics."""

    INSTALLED = "installed"
    REVOKED = "revoked"
    REPLAYED = "replayed"


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a handoff brings to its transaction: drawn and computed before, so that it can be re-run."""

    admitted: Admitted
    reading: Reading[HandoffBody]
    app: str | None
    sealed: bytes | None
    seal_version: int | None
    expires_at: Instant | None
    now: Instant


@final
class HandoffDesk:
    """Serves ``registrations:apply`` (R105)."""

    def __init__(
        self,
        *,
        database: Database,
        doorkeeper: Doorkeeper,
        identity: Identity,
        applications: Applications,
        keys: TenantKeys,
        receipt_key: SigningKey,
        entropy: Entropy,
        telemetry: Telemetry,
    ) -> None:
        self._database = database
        self._doorkeeper = doorkeeper
        self._identity = identity
        self._applications = applications
        self.keys = keys
        self._receipt_key = receipt_key
        self._entropy = entropy
        self._telemetry = telemetry

    async def apply(self, request: Request) -> Reply:
        """Install or end a registration and answer with the signed receipt.

        Raises:
            ArkretRefused: With the code of the registry; nothing was changed.
        """
        admitted = self._doorkeeper.admit(request)
        reading = read_handoff(request.body, canonical_required=admitted.station.canonical_required)
        prepared = self._prepare(admitted, reading, request.received_at)
        try:
            outcome, receipt = await self._database.transact(self._transact, prepared)
        except DatabaseUnavailable:
            raise unavailable() from None
        self._telemetry.event(Event.HANDOFF_ANSWERED, outcome=outcome, request_id=request.request_id)
        return Reply(200, receipt)

    def _prepare(self, admitted: Admitted, reading: Reading[HandoffBody], now: Instant) -> _Prepared:
        body = reading.value
        if not isinstance(body, HandoffActive):
            return _Prepared(admitted, reading, None, None, None, None, now)
        expires_at = None if body.expires_at is UNSET else parse_instant(body.expires_at, "expires_at")
        push_key = Secret(body.push_key)
        app = self._applications.resolve(None if body.app_id is UNSET else body.app_id)
        if app is None:
            raise ArkretRefused(PARAM_INVALID, "names no application of this Gateway", field="app_id")
        try:
            app.provider.check_push_key(push_key)
        except Malformed as malformed:
            raise ArkretRefused(PUSH_TOKEN_INVALID, malformed.problem, field="push_key") from None
        route = Route(provider=app.provider.name, push_key=push_key, app_id=app.app_id)
        sealed = seal_route(self.keys, admitted.tenant, body.registration_id, route, self._entropy.octets(12))
        return _Prepared(admitted, reading, app.app_id, sealed, self.keys.current, expires_at, now)

    def _transact(self, tx: Tx, prepared: _Prepared) -> tuple[HandoffOutcomeWord, bytes]:
        admitted, body, digest = prepared.admitted, prepared.reading.value, prepared.reading.digest
        tenant = admitted.tenant
        if not admit(tx, f"{_PROOF_SCOPE}:{tenant}", admitted.proof, admitted.proof_expires_at):
            raise ArkretRefused(HTTP_SIGNATURE_INVALID)
        current = store.installation(tx, tenant, body.registration_id)
        at_address = store.current(tx, tenant, body.push_target_id, body.device_id)
        predecessor = None
        if isinstance(body, HandoffActive) and body.supersedes_registration_id is not UNSET:
            predecessor = store.installation(tx, tenant, body.supersedes_registration_id)
        decision = apply_handoff(
            body, digest, current, predecessor, [at_address.registration_id] if at_address else []
        )
        match decision:
            case Replayed(receipt=receipt):
                return HandoffOutcomeWord.REPLAYED, receipt
            case Conflict(why=why):
                raise ArkretRefused(DUPLICATE_CONFLICT, why)
            case Install(predecessor_id=predecessor_id):
                receipt = self._receipt(prepared)
                if predecessor_id is not None:
                    store.installation_supersede(tx, tenant, predecessor_id, body.registration_id)
                store.installation_insert(
                    tx,
                    self._row(prepared, receipt),
                    prepared.sealed,
                    prepared.seal_version,
                    prepared.now,
                )
                return HandoffOutcomeWord.INSTALLED, receipt
            case Tombstone(known=known):
                receipt = self._receipt(prepared)
                if known:
                    store.installation_tombstone(
                        tx,
                        tenant,
                        body.registration_id,
                        request_digest=digest,
                        receipt=receipt,
                        stored_at=prepared.now,
                    )
                else:
                    store.installation_insert(tx, self._row(prepared, receipt), None, None, prepared.now)
                return HandoffOutcomeWord.REVOKED, receipt

    def _row(self, prepared: _Prepared, receipt: bytes) -> Installation:
        body = prepared.reading.value
        return Installation(
            tenant=prepared.admitted.tenant,
            registration_id=body.registration_id,
            push_target_id=body.push_target_id,
            device_id=body.device_id,
            state=InstallationState(body.state),
            request_digest=prepared.reading.digest,
            receipt=receipt,
            app=prepared.app,
            visible_opt_in=isinstance(body, HandoffActive) and body.visible_notification_opt_in,
            expires_at=prepared.expires_at,
        )

    def _receipt(self, prepared: _Prepared) -> bytes:
        body = prepared.reading.value
        receipt = Receipt(
            registration_id=RegistrationId(body.registration_id),
            push_target_id=PushTargetId(body.push_target_id),
            device_id=DeviceId(body.device_id),
            state=ReceiptState(body.state),
            request_digest=prepared.reading.digest,
            source_station_id=DidCoreId(prepared.admitted.tenant),
            destination_gateway_id=self._identity.service_id,
            stored_at=prepared.now,
        )
        signed = sign_receipt(receipt, self._identity.receipt_method, self._receipt_key)
        return canonical.encode({"receipt": signed})
