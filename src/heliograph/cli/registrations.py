"""``heliograph registrations``: what Stations installed, without routes or receipts."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from heliograph.app.opening import open_keyring, tenant_keys
from heliograph.arkret.gateway.service.office import PAGE_MAX, Office
from heliograph.cli.options import Config, Json, opened
from heliograph.cli.printing import show, table
from heliograph.edge.server import run
from heliograph.wire.instant import format_instant

app = App(name="registrations", help="Registrations: what Stations installed; never a route or a receipt.")

_COLUMNS = (
    "registration_id",
    "push_target_id",
    "device_id",
    "state",
    "route_end",
    "app",
    "expires_at",
    "stored_at",
    "successor_id",
)


def register(parent: App) -> None:
    """Add the commands."""
    parent.command(app)


@app.command(name="list")
def list_(
    station: Annotated[str, Parameter(help="The Station whose registrations to list.")],
    *,
    after: Annotated[str, Parameter(help="Begin behind this registration id.")] = "",
    limit: Annotated[int, Parameter(help=f"Rows, at most {PAGE_MAX}.")] = 50,
    config: Config = None,
    json: Json = False,
) -> None:
    """List one Station's registrations, ordered by id. Every look is into one tenant."""
    run(_list(config, station, after, limit, json=json))


async def _list(config: Path | None, station: str, after: str, limit: int, *, json: bool) -> None:
    async with opened(config) as (_, database):
        lines = await Office(database).registrations(station, after, limit)
    rows = []
    for line in lines:
        row = asdict(line)
        row["stored_at"] = format_instant(line.stored_at)
        row["expires_at"] = None if line.expires_at is None else format_instant(line.expires_at)
        rows.append(row)
    table(rows, _COLUMNS, json=json)


@app.command
def sealed(*, config: Config = None) -> None:
    """Tell how many routes an older master key still seals. At none, the older key may be removed."""
    run(_sealed(config))


async def _sealed(config: Path | None) -> None:
    async with opened(config) as (settings, database):
        current = tenant_keys(open_keyring(settings)).current
        left = await Office(database).stale_routes(current)
    show(f"master key version {current}; {left} routes are sealed by an older one")
