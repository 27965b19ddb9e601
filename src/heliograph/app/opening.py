"""Opens what a process stands on: keys, providers, the database, telemetry."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.keyring import KeyKind, Keyring
from heliograph.ambient.telemetry import Event, Level, Telemetry
from heliograph.app.credentials import adapter_of, members_of
from heliograph.app.settings import Settings, secret_of
from heliograph.delivery.egress import EgressRules, check_rules
from heliograph.delivery.model import ProviderName
from heliograph.delivery.provider import Provider
from heliograph.providers import ADAPTERS
from heliograph.signing.seal import TenantKeys
from heliograph.storage.database import Database, DatabaseUnavailable
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.sqlite import SqliteDatabase
from heliograph.wire import base64url
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

KEYS: Final = {"master": KeyKind.SYMMETRIC, "service": KeyKind.ED25519, "vapid": KeyKind.P256}
"""The keys a process needs; a first start makes them."""


def open_keyring(settings: Settings) -> Keyring:
    """Read the keys, making those a first start needs."""
    ring = Keyring.open(settings.keys_directory(), os.environ)  # noqa: TID251 - composition reads it
    ring.create_missing(KEYS, SystemEntropy())
    return ring


def tenant_keys(ring: Keyring) -> TenantKeys:
    """Return every version of the master key, the newest to seal with."""
    versions = {key.version: key.reveal() for key in ring.versions("master")}
    return TenantKeys(versions, max(versions))


def egress_rules(settings: Settings) -> EgressRules:
    """Return what the operator allows of endpoints that users supply.

    Raises:
        Malformed: A rule could never match what it seems to say; the error names the setting.
    """
    egress = settings.egress
    rules = EgressRules(
        extra_ports=egress.extra_ports,
        ip_literals=egress.ip_literals,
        allow_loopback=egress.allow_loopback,
        exceptions=egress.exceptions,
    )
    try:
        check_rules(rules)
    except Malformed as malformed:
        raise Malformed(f"egress.{malformed.field}", malformed.problem) from None
    return rules


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential that can deliver.

    Attributes:
        name: The name of its section.
        adapter: The adapter that it belongs to.
        provider: What delivers with it.
        mark: Equal for equal settings with equal secrets, and for no others. Tells nothing of the secrets.
        files: The files that its secrets were read from.
    """

    name: str
    adapter: ProviderName
    provider: Provider
    mark: bytes
    files: tuple[Path, ...]


def build_credentials(settings: Settings, ring: Keyring) -> Mapping[str, Credential]:
    """Build every credential of the settings, reading its secrets anew.

    Raises:
        Malformed: A section could never deliver; the error names the setting.
    """
    rules = egress_rules(settings)
    return {name: _credential(name, section, ring, rules) for name, section in settings.providers.items()}


def _credential(name: str, section: msgspec.Struct, ring: Keyring, rules: EgressRules) -> Credential:
    files: list[Path] = []
    adapter, members = adapter_of(section), members_of(section)
    mark = hashlib.sha256(msgspec.json.encode((adapter, members), order="deterministic"))

    def secret(reference: str) -> Secret:
        kind, _, rest = reference.partition(":")
        if kind == "key":
            found = Secret(base64url.encode(ring.current(rest).reveal()))
        else:
            found = secret_of(reference)
        if kind == "file":
            files.append(Path(rest))
        mark.update(hashlib.sha256(found.reveal().encode()).digest())
        return found

    with _named(f"providers.{name}"):
        provider = ADAPTERS[adapter].build_from(members, secret, rules, name)
    return Credential(name, adapter, provider, mark.digest(), tuple(files))


def bind_applications(settings: Settings, credentials: Mapping[str, Credential]) -> Mapping[str, Provider]:
    """Give every application its provider: its credential's, or one with the application's own settings.

    Args:
        settings: The settings.
        credentials: What ``build_credentials`` made of them.

    Raises:
        Malformed: What an application sets for itself could never deliver; the error names the setting.
    """
    bound: dict[str, Provider] = {}
    for app_id, app in settings.apps.items():
        provider, own = credentials[app.provider].provider, app.own()
        if own:
            section = settings.providers[app.provider]
            with _named(f"apps.{app_id}"):
                provider = ADAPTERS[adapter_of(section)].tailor(provider, members_of(section) | own)
        bound[app_id] = provider
    return bound


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Name the section in the refusal of something within it."""
    try:
        yield
    except Malformed as malformed:
        raise Malformed(f"{path}.{malformed.field}".removesuffix("."), malformed.problem) from None


def database_secret_url(settings: Settings) -> str:
    """Return the database URL with its password, for the driver alone."""
    url = settings.database_url()
    password = settings.database.password
    if password is None:
        return url
    scheme, _, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    return f"{scheme}://{user}:{quote(password.reveal(), safe='')}{at}{place}"


async def open_database(
    settings: Settings, telemetry: Telemetry | None = None, *, exclusive: bool = True
) -> Database:
    """Open the database that the settings name, making the folder of an embedded one.

    Args:
        settings: The settings.
        telemetry: Told of commits.
        exclusive: False for a command that only looks or writes a row beside a running process.

    Raises:
        DatabaseUnavailable: It cannot be reached.
        AlreadyOpen: Another process has the embedded database.
    """
    url = settings.database_url()
    scheme, _, rest = url.partition("://")

    def observe(count: int, seconds: float) -> None:
        if telemetry is not None:
            telemetry.event(Event.COMMITTED, database=scheme, count=count, seconds=seconds)

    def retried(reason: str) -> None:
        if telemetry is not None:
            telemetry.event(Event.TRANSACTION_RETRIED, database=scheme, reason=reason)

    if scheme == "sqlite":
        path = Path(rest.removeprefix("/"))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return await SqliteDatabase.open(path, exclusive=exclusive, observe=observe)
    try:
        from heliograph.storage.postgres import PostgresDatabase  # noqa: PLC0415 - the driver is an extra
    except ImportError:
        raise DatabaseUnavailable("install heliograph[postgres] to use PostgreSQL") from None
    return await PostgresDatabase.open(
        database_secret_url(settings),
        writers=max(1, settings.database.connections // 2),
        observe=observe,
        retried=retried,
    )


async def ready_database(settings: Settings, telemetry: Telemetry, now: Instant) -> Database:
    """Open the database and bring its schema up to date; the embedded default needs no command for it.

    Raises:
        DatabaseUnavailable: It cannot be reached.
        MigrationRefused: The data is newer than this program, or a step was edited.
    """
    database = await open_database(settings, telemetry)
    try:
        await migrate(
            database,
            now,
            progress=lambda step: telemetry.event(
                Event.DATABASE_MIGRATED, database="schema", version=step.version, seconds=0.0
            ),
        )
    except BaseException:
        await database.close()
        raise
    return database


def build_telemetry(settings: Settings) -> Telemetry:
    """Return the telemetry that the settings ask for."""
    return Telemetry(Level[settings.log.level.upper()], settings.log.format, strict=False)
