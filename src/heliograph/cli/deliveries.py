"""``heliograph deliveries``: what became of accepted wakeups, without routes or contents."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from heliograph.ambient.clock import SystemClock
from heliograph.arkret.gateway.service.office import PAGE_MAX, Office
from heliograph.arkret.gateway.store import DeliveryLine
from heliograph.cli.options import Config, Json, opened
from heliograph.cli.printing import show, table
from heliograph.edge.server import run
from heliograph.wire.instant import format_instant

app = App(name="deliveries", help="Deliveries: what became of accepted wakeups; never a route or a content.")

_COLUMNS = ("item_id", "state", "attempt", "reason", "due_at", "expires_at", "tenant", "registration_id")


def register(parent: App) -> None:
    """Add the commands."""
    parent.command(app)


@app.command(name="list")
def list_(
    *,
    state: Annotated[
        str | None, Parameter(help="Only those that are ready, leased, done, failed, canceled or dead.")
    ] = None,
    after: Annotated[str, Parameter(help="Begin behind this item id.")] = "",
    limit: Annotated[int, Parameter(help=f"Rows, at most {PAGE_MAX}.")] = 50,
    config: Config = None,
    json: Json = False,
) -> None:
    """List deliveries, oldest first."""
    run(_list(config, state, after, limit, json=json))


async def _list(config: Path | None, state: str | None, after: str, limit: int, *, json: bool) -> None:
    async with opened(config) as (_, database):
        lines = await Office(database).deliveries(state, after, limit)
    table([_row(line) for line in lines], _COLUMNS, json=json)


def _row(line: DeliveryLine) -> dict[str, Any]:
    row = asdict(line)
    for name in ("due_at", "expires_at", "accepted_at", "settled_at"):
        row[name] = None if row[name] is None else format_instant(row[name])
    return row


@app.command(name="show")
def show_(item_id: str, *, config: Config = None, json: Json = False) -> int:
    """Show everything that may be shown of one delivery."""
    return run(_show(config, item_id, json=json))


async def _show(config: Path | None, item_id: str, *, json: bool) -> int:
    async with opened(config) as (_, database):
        line = await Office(database).delivery(item_id)
    if line is None:
        show(f"there is no delivery {item_id}")
        return 1
    row = _row(line)
    if json:
        table([row], tuple(row), json=True)
    else:
        for name, value in row.items():
            show(f"{name:<16} {'-' if value is None else value}")
    return 0


@app.command
def retry(item_id: str, *, config: Config = None) -> int:
    """Try a delivery again that was given up, with all its attempts, if it is still worth something."""
    return run(_retry(config, item_id))


async def _retry(config: Path | None, item_id: str) -> int:
    async with opened(config) as (_, database):
        again = await Office(database).retry(item_id, SystemClock().now())
    show(f"waits again: {item_id}" if again else f"is not among the dead, or its time is over: {item_id}")
    return 0 if again else 1
