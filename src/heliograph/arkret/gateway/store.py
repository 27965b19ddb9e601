"""The Gateway's rows, one method per statement. Every method names the tenant it works for (R116)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from heliograph.arkret.gateway.hygiene import store as hygiene
from heliograph.arkret.gateway.model import (
    AppCount,
    Installation,
    InstallationState,
    RouteEnd,
    Standing,
)
from heliograph.storage.database import Row, Tx
from heliograph.storage.queries import load_queries
from heliograph.wire.instant import Instant

_SQL: Final = load_queries("heliograph.arkret.gateway", "gateway.sql")

Address: TypeAlias = tuple[str, str, str]
"""Tenant, push target and device: where at most one installation is current."""


@dataclass(frozen=True, slots=True)
class TrustedStation:
    """A Station that may hand off and notify (R107).

    Attributes:
        service_id: Its did_core_id; the tenant of everything it installs.
        verification_method: The DID URL of its current signing key.
        public_key: That key, multibase.
        profiles: What is agreed with it, for example the hardened profile.
        canonical_required: Whether its signed bodies must be canonical JSON.
        added_at: Since when it is trusted.
    """

    service_id: str
    verification_method: str
    public_key: str
    profiles: tuple[str, ...]
    canonical_required: bool
    added_at: Instant


class NewDelivery(msgspec.Struct, frozen=True):
    """The blind content of a work item.

    The provider's id for it is drawn at random when it is taken over and is the same on every attempt. The
    item's own id begins with the time of acceptance, which a hardened source must not tell.
    """

    item_id: str
    tenant: str
    registration_id: str
    wakeup: str
    collapse_key: str
    provider_id: str
    accepted_at: Instant


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """A delivery with the sealed route that it had at the moment of loading; None once the route is gone."""

    item_id: str
    tenant: str
    registration_id: str
    wakeup: str
    collapse_key: str
    provider_id: str
    route: bytes | None
    registered_at: Instant
    registration_expires_at: Instant | None
    suspected: bool


@dataclass(frozen=True, slots=True)
class RegistrationLine:
    """A registration as an operator may see it: no route, no receipt."""

    registration_id: str
    push_target_id: str
    device_id: str
    state: str
    successor_id: str | None
    route_end: str | None
    app: str | None
    visible_opt_in: bool
    expires_at: Instant | None
    stored_at: Instant
    route_version: int | None


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """A delivery as an operator may see it: no route, no content, no collapse key."""

    item_id: str
    kind: str
    state: str
    attempt: int
    reason: str | None
    cause: str | None
    due_at: Instant
    expires_at: Instant
    accepted_at: Instant
    settled_at: Instant | None
    tenant: str | None
    registration_id: str | None


def stations(tx: Tx) -> list[TrustedStation]:
    """Return every Station that is trusted now."""
    return [
        TrustedStation(
            service_id=row[0],
            verification_method=row[1],
            public_key=row[2],
            profiles=tuple(msgspec.json.decode(row[3], type=list[str])),
            canonical_required=bool(row[4]),
            added_at=row[5],
        )
        for row in tx.all(_SQL["station_list"])
    ]


def station_put(tx: Tx, station: TrustedStation) -> None:
    """Trust a Station, or replace what is known of it."""
    tx.run(
        _SQL["station_put"],
        {
            "service_id": station.service_id,
            "verification_method": station.verification_method,
            "public_key": station.public_key,
            "profiles": msgspec.json.encode(station.profiles).decode(),
            "canonical_required": station.canonical_required,
            "added_at": station.added_at,
        },
    )


def station_remove(tx: Tx, service_id: str, now: Instant) -> bool:
    """Stop trusting a Station. Its rows stay; nobody else can name them."""
    return tx.run(_SQL["station_remove"], {"service_id": service_id, "removed_at": now}) > 0


def installation(tx: Tx, tenant: str, registration_id: str) -> Installation | None:
    """Return what is stored under a registration id."""
    row = tx.one(_SQL["installation_get"], {"tenant": tenant, "registration_id": registration_id})
    return None if row is None else _installation(tenant, row)


def current(tx: Tx, tenant: str, push_target_id: str, device_id: str) -> Installation | None:
    """Return the current installation at an address; the schema allows no second."""
    row = tx.one(
        _SQL["installation_current"],
        {"tenant": tenant, "push_target_id": push_target_id, "device_id": device_id},
    )
    return None if row is None else _installation(tenant, row)


def standings(tx: Tx, addresses: Sequence[Address]) -> dict[Address, Standing]:
    """Return how the current installation at each address stands; those that have none are left out."""
    rows = tx.all(_SQL["standings"], {"addresses": msgspec.json.encode(addresses).decode()})
    return {
        (row[0], row[1], row[2]): Standing(
            registration_id=row[3],
            route_end=None if row[4] is None else RouteEnd(row[4]),
            app=row[5],
            visible_opt_in=bool(row[6]),
            expires_at=row[7],
        )
        for row in rows
    }


def target_known(tx: Tx, tenant: str, push_target_id: str) -> bool:
    """Tell whether this tenant ever installed this target."""
    return tx.one(_SQL["target_known"], {"tenant": tenant, "push_target_id": push_target_id}) is not None


def _installation(tenant: str, row: Row) -> Installation:
    return Installation(
        tenant=tenant,
        registration_id=row[0],
        push_target_id=row[1],
        device_id=row[2],
        state=InstallationState(row[3]),
        request_digest=row[4],
        receipt=bytes(row[5]),
        successor_id=row[6],
        route_end=None if row[7] is None else RouteEnd(row[7]),
        app=row[8],
        visible_opt_in=bool(row[9]),
        expires_at=row[10],
    )


def installation_insert(
    tx: Tx, new: Installation, route: bytes | None, route_version: int | None, stored_at: Instant
) -> None:
    """Write a new installation, or a tombstone for an id that was never installed."""
    tx.run(
        _SQL["installation_insert"],
        {
            "tenant": new.tenant,
            "registration_id": new.registration_id,
            "push_target_id": new.push_target_id,
            "device_id": new.device_id,
            "state": new.state.value,
            "request_digest": new.request_digest,
            "receipt": new.receipt,
            "app": new.app,
            "route": route,
            "route_version": route_version,
            "visible_opt_in": new.visible_opt_in,
            "expires_at": new.expires_at,
            "stored_at": stored_at,
        },
    )


def installation_supersede(tx: Tx, tenant: str, registration_id: str, successor_id: str) -> bool:
    """End a current installation in favour of its successor and erase its route."""
    changed = tx.run(
        _SQL["installation_supersede"],
        {"tenant": tenant, "registration_id": registration_id, "successor_id": successor_id},
    )
    hygiene.erase(tx, tenant, registration_id)
    return changed > 0


def installation_tombstone(
    tx: Tx, tenant: str, registration_id: str, *, request_digest: str, receipt: bytes, stored_at: Instant
) -> None:
    """End an installation for ever, keep its digest and receipt, erase the rest (R126)."""
    hygiene.erase(tx, tenant, registration_id)
    tx.run(
        _SQL["installation_tombstone"],
        {
            "tenant": tenant,
            "registration_id": registration_id,
            "request_digest": request_digest,
            "receipt": receipt,
            "stored_at": stored_at,
        },
    )


def route_end(tx: Tx, tenant: str, registration_id: str, why: RouteEnd) -> bool:
    """Erase the route of an installation that stays current for the handoff."""
    changed = tx.run(
        _SQL["route_end"], {"tenant": tenant, "registration_id": registration_id, "route_end": why.value}
    )
    return changed > 0


@dataclass(frozen=True, slots=True)
class StaleRoute:
    """A route that an older master key seals."""

    tenant: str
    registration_id: str
    route: bytes
    version: int


def stale_routes(tx: Tx, current_version: int, after: StaleRoute | None, limit: int) -> list[StaleRoute]:
    """Return routes that older master keys seal, in a fixed order, beginning behind ``after``."""
    rows = tx.all(
        _SQL["route_stale"],
        {
            "current": current_version,
            "after_version": -1 if after is None else after.version,
            "after_tenant": "" if after is None else after.tenant,
            "after_registration": "" if after is None else after.registration_id,
            "limit": limit,
        },
    )
    return [StaleRoute(row[0], row[1], bytes(row[2]), row[3]) for row in rows]


def stale_route_count(tx: Tx, current_version: int) -> int:
    """Return how many routes an older master key still seals."""
    row = tx.one(_SQL["route_stale_count"], {"current": current_version})
    return 0 if row is None else int(row[0])


def route_reseal(tx: Tx, stale: StaleRoute, route: bytes, current_version: int) -> bool:
    """Replace a sealed route, unless it changed meanwhile."""
    changed = tx.run(
        _SQL["route_reseal"],
        {
            "tenant": stale.tenant,
            "registration_id": stale.registration_id,
            "old": stale.route,
            "route": route,
            "current": current_version,
        },
    )
    return changed > 0


def deliveries_insert(tx: Tx, new: Sequence[NewDelivery]) -> None:
    """Write what each work item will tell its provider."""
    tx.many(
        _SQL["delivery_insert"],
        [
            {
                "item_id": one.item_id,
                "tenant": one.tenant,
                "registration_id": one.registration_id,
                "wakeup": one.wakeup,
                "collapse_key": one.collapse_key,
                "provider_id": one.provider_id,
                "accepted_at": one.accepted_at,
            }
            for one in new
        ],
    )


def delivery_load(tx: Tx, item_id: str) -> StoredDelivery | None:
    """Return a delivery with its sealed route; None if its content is gone."""
    row = tx.one(_SQL["delivery_load"], {"item_id": item_id})
    if row is None:
        return None
    return StoredDelivery(
        item_id=item_id,
        tenant=row[0],
        registration_id=row[1],
        wakeup=row[2],
        collapse_key=row[3],
        provider_id=row[4],
        route=None if row[5] is None else bytes(row[5]),
        registered_at=row[6] or 0,
        registration_expires_at=row[7],
        suspected=row[8] is not None,
    )


def delivery_delete(tx: Tx, item_id: str) -> None:
    """Forget the content of a work item that needs it no more."""
    tx.run(_SQL["delivery_delete"], {"item_id": item_id})


def delivery_sweep(tx: Tx, before: Instant, limit: int) -> int:
    """Forget contents whose work items were pruned; return how many."""
    return tx.run(_SQL["delivery_sweep"], {"before": before, "limit": limit})


def waiting_by_lane(tx: Tx, kinds: Sequence[str]) -> Mapping[str, int]:
    """Count the accepted wakeups that wait, by lane."""
    waiting: dict[str, int] = {}
    for kind in kinds:
        for lane, count in tx.all(_SQL["waiting_by_lane"], {"kind": kind}):
            waiting[lane] = waiting.get(lane, 0) + count
    return waiting


def audit_insert(
    tx: Tx, audit_id: str, tenant: str, *, access_kind: str, event_id: str | None, recorded_at: Instant
) -> None:
    """Write an audit event: the least that identifies it (R266)."""
    tx.run(
        _SQL["audit_insert"],
        {
            "audit_id": audit_id,
            "tenant": tenant,
            "access_kind": access_kind,
            "event_id": event_id,
            "recorded_at": recorded_at,
        },
    )


def audits(tx: Tx, tenant: str, after: str, limit: int) -> list[tuple[str, str | None, Instant]]:
    """Return one page of a tenant's audit events: access kind, event id, time."""
    rows = tx.all(_SQL["audit_page"], {"tenant": tenant, "after": after, "limit": limit})
    return [(row[0], row[1], row[2]) for row in rows]


def registrations(tx: Tx, tenant: str, after: str, limit: int) -> list[RegistrationLine]:
    """Return one page of a tenant's registrations, ordered by id, beginning behind ``after``."""
    rows = tx.all(_SQL["registration_page"], {"tenant": tenant, "after": after, "limit": limit})
    return [
        RegistrationLine(
            registration_id=row[1],
            push_target_id=row[2],
            device_id=row[3],
            state=row[4],
            successor_id=row[5],
            route_end=row[6],
            app=row[7],
            visible_opt_in=bool(row[8]),
            expires_at=row[9],
            stored_at=row[10],
            route_version=row[11],
        )
        for row in rows
    ]


def app_counts(tx: Tx) -> list[AppCount]:
    """Count by application what would be affected by a change of it. Reads whole tables."""
    routes = {row[0]: row[1] for row in tx.all(_SQL["routes_by_app"])}
    waiting = {row[0]: row[1] for row in tx.all(_SQL["waiting_by_app"])}
    apps = sorted(routes.keys() | waiting.keys())
    return [AppCount(app, routes.get(app, 0), waiting.get(app, 0)) for app in apps]


def registration_counts(tx: Tx) -> Mapping[str, Mapping[str, int]]:
    """Return, for each tenant, how many rows are active or revoked and how many have a route."""
    counts: dict[str, dict[str, int]] = {}
    for tenant, state, rows, routes in tx.all(_SQL["registration_counts"]):
        of_tenant = counts.setdefault(tenant, {"active": 0, "revoked": 0, "routes": 0})
        of_tenant[state] = rows
        of_tenant["routes"] += routes
    return counts


def deliveries(tx: Tx, state: str | None, after: str, limit: int) -> list[DeliveryLine]:
    """Return one page of deliveries in a state, or in any, ordered by id, beginning behind ``after``."""
    rows = tx.all(_SQL["delivery_page"], {"state": state or "", "after": after, "limit": limit})
    return [DeliveryLine(*row) for row in rows]


def delivery_line(tx: Tx, item_id: str) -> DeliveryLine | None:
    """Return one delivery."""
    row = tx.one(_SQL["delivery_one"], {"item_id": item_id})
    return None if row is None else DeliveryLine(*row)
