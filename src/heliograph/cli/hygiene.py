"""``heliograph hygiene``: what rests, what is frozen, and how an operator ends either."""

from pathlib import Path

from cyclopts import App

from heliograph.cli.options import Config, Json, opened
from heliograph.cli.printing import show, table
from heliograph.delivery.hygiene.service import HygieneDesk
from heliograph.edge.server import run
from heliograph.wire.instant import format_instant

app = App(name="hygiene", help="The health of credentials: what rests, and how to end that.")

_GATES = ("gate", "reason", "step", "closed_at", "closed_until", "being_tried")


def register(parent: App) -> None:
    """Add the commands."""
    parent.command(app)


@app.command
def gates(*, config: Config = None, json: Json = False) -> None:
    """List credentials, and services of one, that a provider refused or throttled, and how long they rest."""
    run(_gates(config, json=json))


async def _gates(config: Path | None, *, json: bool) -> None:
    async with opened(config) as (_, database):
        found = await HygieneDesk(database).gates()
    rows = [
        {
            "gate": gate.name,
            "reason": gate.reason,
            "step": gate.step,
            "closed_at": format_instant(gate.closed_at),
            "closed_until": format_instant(gate.closed_until),
            "being_tried": gate.probe is not None,
        }
        for gate in found
    ]
    table(rows, _GATES, json=json)


@app.command(name="open")
def open_(gate: str, *, config: Config = None) -> int:
    """Let everything behind a gate go out at once, without a single delivery trying first."""
    return run(_open(config, gate))


async def _open(config: Path | None, gate: str) -> int:
    async with opened(config) as (_, database):
        rested = await HygieneDesk(database).open(gate)
    show(f"opened: {gate}" if rested else f"nothing rests under the name {gate}")
    return 0 if rested else 1
