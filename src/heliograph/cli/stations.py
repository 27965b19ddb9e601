"""``heliograph stations``: whom this Gateway trusts."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from heliograph.ambient.clock import SystemClock
from heliograph.arkret.gateway.describe import HARDENED
from heliograph.arkret.gateway.service.office import Office
from heliograph.arkret.gateway.store import TrustedStation
from heliograph.cli.options import Config, Json, opened
from heliograph.cli.printing import show, table
from heliograph.edge.server import run
from heliograph.signing.ed25519 import VerifyKey
from heliograph.wire.ids import parse_did_core_id, parse_verification_method, service_of
from heliograph.wire.instant import format_instant
from heliograph.wire.malformed import Malformed

app = App(name="stations", help="Stations: whom this Gateway trusts to hand off and notify.")


def register(parent: App) -> None:
    """Add the commands."""
    parent.command(app)


@app.command
def add(
    service_id: Annotated[
        str, Parameter(help="The Station's id, for example ak:did_core:web:station.example.")
    ],
    *,
    key: Annotated[str, Parameter(help="Its public Ed25519 key: multibase (z6Mk…) or base64url.")],
    method: Annotated[
        str, Parameter(help="The DID URL of that key, for example did:web:station.example#push.")
    ],
    hardened: Annotated[
        bool, Parameter(negative="", help="Its pushes leave at five-minute marks only.")
    ] = False,
    loose_json: Annotated[
        bool, Parameter(negative="", help="Accept signed bodies that are not canonical JSON.")
    ] = False,
    config: Config = None,
) -> None:
    """Trust a Station, or replace what is known of it. Takes effect in running processes within seconds."""
    station = TrustedStation(
        service_id=parse_did_core_id(service_id, "SERVICE_ID"),
        verification_method=parse_verification_method(method, "--method"),
        public_key=_key(key).multibase(),
        profiles=(HARDENED,) if hardened else (),
        canonical_required=not loose_json,
        added_at=SystemClock().now(),
    )
    if service_of(parse_verification_method(method, "--method"), "--method") != station.service_id:
        raise Malformed("--method", "belongs to another service than SERVICE_ID")
    run(_add(config, station))


def _key(text: str) -> VerifyKey:
    return (
        VerifyKey.from_multibase(text, "--key")
        if text[:1] == "z"
        else VerifyKey.from_base64url(text, "--key")
    )


async def _add(config: Path | None, station: TrustedStation) -> None:
    async with opened(config) as (_, database):
        await Office(database).trust(station)
    show(f"trusted: {station.service_id} by {station.verification_method}")


@app.command(name="list")
def list_(*, config: Config = None, json: Json = False) -> None:
    """List the trusted Stations and how much each has registered."""
    run(_list(config, json=json))


async def _list(config: Path | None, *, json: bool) -> None:
    async with opened(config) as (_, database):
        office = Office(database)
        counts = await office.registration_counts()
        rows = [
            {
                "service_id": station.service_id,
                "method": station.verification_method,
                "key": station.public_key,
                "profiles": ",".join(profile.rsplit(".", 2)[-2] for profile in station.profiles) or None,
                "canonical": station.canonical_required,
                "routes": counts.get(station.service_id, {}).get("routes", 0),
                "added_at": format_instant(station.added_at),
            }
            for station in await office.stations()
        ]
    table(rows, ("service_id", "method", "key", "profiles", "canonical", "routes", "added_at"), json=json)


@app.command
def remove(service_id: str, *, config: Config = None) -> int:
    """Stop trusting a Station. What it registered stays sealed and its own, should it return."""
    return run(_remove(config, service_id))


async def _remove(config: Path | None, service_id: str) -> int:
    async with opened(config) as (_, database):
        removed = await Office(database).distrust(service_id, SystemClock().now())
    show(f"no longer trusted: {service_id}" if removed else f"was not trusted: {service_id}")
    return 0 if removed else 1
