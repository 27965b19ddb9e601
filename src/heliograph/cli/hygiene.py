"""``heliograph hygiene``: what rests, what is frozen, and how an operator ends either."""

import re
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from heliograph.ambient.clock import SystemClock
from heliograph.arkret.gateway.hygiene.store import ENDED_KEPT_MS
from heliograph.arkret.gateway.service.office import Office
from heliograph.cli.options import Config, Json, opened
from heliograph.cli.printing import show, table
from heliograph.delivery.hygiene.service import HygieneDesk
from heliograph.edge.server import run
from heliograph.wire.instant import format_instant
from heliograph.wire.malformed import Malformed

app = App(name="hygiene", help="The health of credentials: what rests, what is frozen, and how to end that.")

_SPAN: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])", re.ASCII)
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_FREEZES = ("credential", "frozen_at", "sends", "bad")
_UNDOABLE = ("reason", "routes", "stations")
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


@app.command
def freezes(*, config: Config = None, json: Json = False) -> None:
    """List credentials whose word on dead routes is not acted upon, and the minute that led to it."""
    run(_freezes(config, json=json))


async def _freezes(config: Path | None, *, json: bool) -> None:
    async with opened(config) as (_, database):
        found = await HygieneDesk(database).freezes()
    rows = [
        {
            "credential": freeze.credential,
            "frozen_at": format_instant(freeze.frozen_at),
            "sends": freeze.tally.sends,
            "bad": freeze.tally.bad,
        }
        for freeze in found
    ]
    table(rows, _FREEZES, json=json)


@app.command
def thaw(credential: str, *, config: Config = None) -> int:
    """Act upon a credential's word on dead routes again, once you know why it called so many dead."""
    return run(_thaw(config, credential))


async def _thaw(config: Path | None, credential: str) -> int:
    async with opened(config) as (_, database):
        frozen = await HygieneDesk(database).thaw(credential)
    show(f"thawed: {credential}" if frozen else f"{credential} is not frozen")
    return 0 if frozen else 1


@app.command
def undo(
    credential: str,
    *,
    since: Annotated[str, Parameter(help="How far back: a number and s, m, h or d; at most a day.")] = "1h",
    yes: Annotated[
        bool, Parameter(negative="", help="Do it; without this it only shows what it would do.")
    ] = False,
    config: Config = None,
    json: Json = False,
) -> int:
    """Bring back routes that ended by a credential's word, except what was revoked or replaced since."""
    return run(_undo(config, credential, _span_ms(since), yes=yes, json=json))


async def _undo(config: Path | None, credential: str, span_ms: int, *, yes: bool, json: bool) -> int:
    now = SystemClock().now()
    async with opened(config) as (_, database):
        office = Office(database)
        found = await office.undoable(credential, now - span_ms, now)
        table(
            [{"reason": each.reason, "routes": each.routes, "stations": each.stations} for each in found],
            _UNDOABLE,
            json=json,
        )
        if not yes:
            show(
                f"would bring back {sum(each.routes for each in found)} routes; run again with --yes to do it"
            )
            return 0
        show(f"brought back {await office.undo(credential, now - span_ms, now)} routes")
    return 0


def _span_ms(text: str) -> int:
    """Read a span of time.

    Raises:
        Malformed: It is none, or longer than ends are kept.
    """
    match = _SPAN.fullmatch(text)
    span_ms = 0 if match is None else int(match[1]) * _UNIT_MS[match[2]]
    if not 0 < span_ms <= ENDED_KEPT_MS:
        raise Malformed("since", "must be a number and s, m, h or d, and at most 1d")
    return span_ms
