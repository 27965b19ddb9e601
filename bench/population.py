"""Fills a database as a Gateway's life would have: a trusted Station, registrations, accepted wakeups."""

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Level, Telemetry
from heliograph.app.opening import open_keyring, ready_database, tenant_keys
from heliograph.app.settings import Settings, load
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.model import Installation, InstallationState
from heliograph.arkret.gateway.service.routes import seal_route
from heliograph.arkret.gateway.service.takeover import KIND, lane_of
from heliograph.arkret.gateway.store import NewDelivery, TrustedStation
from heliograph.delivery.model import Route
from heliograph.lab.station import StationPen
from heliograph.ledger import Asked, answer_all
from heliograph.queue.model import NewItem
from heliograph.queue.store import enqueue
from heliograph.signing.ed25519 import SigningKey
from heliograph.signing.seal import TenantKeys
from heliograph.storage.database import Tx
from heliograph.wire import base64url
from heliograph.wire.ids import DidCoreId, VerificationMethod, format_push_target_id
from heliograph.wire.secret import Secret

STATION = DidCoreId("ak:did_core:web:station.example")
METHOD = VerificationMethod("did:web:station.example#push")
KEY = SigningKey(hashlib.sha256(b"the Station of the bench").digest())
APP = "com.example.app"
HOST = "push.example.com"
PUBLIC_URL = f"https://{HOST}"
GATEWAY = DidCoreId(f"ak:did_core:web:{HOST}")
BATCH = 2_000
RECEIPT = b"r" * 800
"""As long as a receipt is; nobody reads it here."""

_LIFE_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Device:
    """One registration's address."""

    target: str
    device: str
    registration: str


def device(number: int) -> Device:
    """Return the device of that number: the same in every process."""
    octets = hashlib.sha256(number.to_bytes(8, "big")).digest()
    spelled = octets.hex()
    uuid7 = f"{spelled[:8]}-{spelled[8:12]}-7{spelled[13:16]}-8{spelled[17:20]}-{spelled[20:32]}"
    return Device(format_push_target_id(octets), f"ak:device:{uuid7}", base64url.encode(octets[:16]))


def write_settings(folder: Path, stub_url: str, database: str = "") -> Path:
    """Write the settings file of a Gateway that nothing but its speed limits."""
    file = folder / "heliograph.toml"
    file.write_text(
        f"""
data_dir = "{folder / "data"}"

[database]
url = "{database}"

[log]
level = "warning"

[gateway]
public_url = "{PUBLIC_URL}"
devices_per_second = 1_000_000
devices_burst = 10_000_000

[providers.stub]
url = "{stub_url}"

[apps."{APP}"]
provider = "stub"
""",
        encoding="utf-8",
    )
    return file


def pen() -> StationPen:
    """Return the trusted Station's pen."""
    return StationPen(STATION, METHOD, KEY, GATEWAY, PUBLIC_URL)


async def populate(config: Path, registrations: int, waiting: int = 0, answered: int = 0) -> None:
    """Write the Station and so many rows of each kind.

    Args:
        config: The settings file.
        registrations: Devices that are installed.
        waiting: Accepted wakeups that wait, each for another device.
        answered: Notifies that were answered earlier and can be asked again. PostgreSQL tells apart what two
            processes read by the page: with a handful of pages they collide as no real ledger does.
    """
    settings: Settings = load(config, environ={}).settings
    keys, entropy, now = tenant_keys(open_keyring(settings)), SystemEntropy(), SystemClock().now()
    database = await ready_database(settings, Telemetry(Level.ERROR), now)
    try:
        await database.transact(
            store.station_put, TrustedStation(STATION, METHOD, KEY.verify_key.multibase(), (), True, now)
        )
        for numbers in _batches(registrations):
            nonces = [entropy.octets(12) for _ in numbers]
            await database.transact(_install, keys, numbers, nonces, now)
        for numbers in _batches(answered):
            await database.transact(_answer, numbers, now)
        for numbers in _batches(waiting):
            ids = [(entropy.uuid7(now), str(uuid.uuid4())) for _ in numbers]
            await database.transact(_accept, numbers, ids, now)
    finally:
        await database.close()


def _batches(count: int) -> Iterator[Sequence[int]]:
    for first in range(0, count, BATCH):
        yield range(first, min(first + BATCH, count))


def _install(tx: Tx, keys: TenantKeys, numbers: Sequence[int], nonces: Sequence[bytes], now: int) -> None:
    for number, nonce in zip(numbers, nonces, strict=True):
        one = device(number)
        route = Route(provider="stub", push_key=Secret(f"bench-{number:08}"), app_id=APP)
        store.installation_insert(
            tx,
            Installation(
                tenant=STATION,
                registration_id=one.registration,
                push_target_id=one.target,
                device_id=one.device,
                state=InstallationState.ACTIVE,
                request_digest="sha256:" + "0" * 64,
                receipt=RECEIPT,
                app=APP,
            ),
            seal_route(keys, STATION, one.registration, route, nonce),
            keys.current,
            now,
        )


def _answer(tx: Tx, numbers: Sequence[int], now: int) -> None:
    keys = [hashlib.sha256(b"answered %d" % number).hexdigest()[:32] for number in numbers]
    asked = [Asked(f"arkret.notify:{STATION}", key, "sha256:" + key * 2, key.encode(), now) for key in keys]
    answer_all(tx, [(one, RECEIPT[:200]) for one in asked], now)


def _accept(tx: Tx, numbers: Sequence[int], ids: Sequence[tuple[str, str]], now: int) -> None:
    lane, items, deliveries = lane_of(STATION), [], []
    for number, (item_id, provider_id) in zip(numbers, ids, strict=True):
        one = device(number)
        wakeup = {"push_target_id": one.target, "kind": "message"}
        items.append(
            NewItem(
                item_id=item_id,
                kind=KIND,
                lane=lane,
                reference=item_id,
                due_at=now,
                expires_at=now + _LIFE_MS,
                fold_key=item_id,
            )
        )
        deliveries.append(
            NewDelivery(
                item_id=item_id,
                tenant=STATION,
                registration_id=one.registration,
                wakeup=msgspec.json.encode(wakeup).decode(),
                collapse_key=base64url.encode(hashlib.sha256(item_id.encode()).digest()[:24]),
                provider_id=provider_id,
                accepted_at=now,
            ),
        )
    enqueue(tx, items, now)
    store.deliveries_insert(tx, deliveries)
