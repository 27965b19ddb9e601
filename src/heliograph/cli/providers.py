"""``heliograph providers``: which credentials there are, whether they are good, what a change affects."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.app.in_force import Depends, InForce, affected, changes, in_force
from heliograph.app.opening import (
    Credential,
    bind_applications,
    build_credentials,
    egress_rules,
    open_keyring,
)
from heliograph.app.processes import notices
from heliograph.app.settings import Settings, config_file, load
from heliograph.arkret.gateway.service.office import Office
from heliograph.cli.options import Config, Json, opened
from heliograph.cli.printing import show, table
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.egress import EgressGuard
from heliograph.delivery.exchange import Moment
from heliograph.delivery.model import Outcome
from heliograph.delivery.provider import Probe, Provider
from heliograph.delivery.resolver import SystemResolver
from heliograph.edge.server import run
from heliograph.wire.malformed import Malformed

app = App(name="providers", help="Credentials of push services: which there are, and whether they are good.")

PROBE_MS_MAX: Final = 30_000
"""A token, a push and a repeat, each within its ten seconds."""

_OCTETS: Final = 64

_WORDS: Final = {Outcome.ACCEPTED: "ok", Outcome.CONFIG_BAD: "BAD"}


def register(parent: App) -> None:
    """Add the commands."""
    parent.command(app)


@app.command(name="list")
def list_(*, config: Config = None, json: Json = False) -> None:
    """List the credentials by name, with what identifies each and is no secret."""
    settings, built = _built(config)
    rows = []
    for name, credential in built.items():
        apps = sorted(app_id for app_id, each in settings.apps.items() if each.provider == name)
        identity = credential.provider.identity() if isinstance(credential.provider, Probe) else {}
        told = identity if json else " ".join(f"{key}={value}" for key, value in identity.items())
        rows.append(
            {
                "name": name,
                "adapter": credential.adapter,
                "identity": told,
                "apps": apps if json else " ".join(apps) or None,
            }
        )
    table(rows, ("name", "adapter", "identity", "apps"), json=json)


@app.command
def check(
    name: str | None = None,
    *,
    reach: Annotated[
        bool,
        Parameter(negative="", help="Also try to reach push services where the proof itself needs none."),
    ] = False,
    config: Config = None,
    json: Json = False,
) -> int:
    """Prove credentials without touching a device. Status 1 if any is not proved."""
    settings, built = _built(config)
    if name is not None and name not in built:
        raise Malformed(
            f"providers.{name}", f"has no section; there are {', '.join(sorted(built)) or 'none'}"
        )
    return run(_check(settings, _probed(settings, built, name), reach=reach, json=json))


@app.command
def plan(
    *,
    config: Config = None,
    against: Annotated[
        Path | None,
        Parameter(help="Compare with this settings file instead of what the running process has in force."),
    ] = None,
    json: Json = False,
) -> None:
    """Show what settings would change before they are in force, and which registrations that touches."""
    run(_plan(config, against, json=json))


def _built(config: Path | None) -> tuple[Settings, Mapping[str, Credential]]:
    settings = load(config).settings
    built = build_credentials(settings, open_keyring(settings))
    bind_applications(settings, built)
    return settings, built


def _probed(
    settings: Settings, built: Mapping[str, Credential], name: str | None
) -> list[tuple[str, str | None, Provider]]:
    """Return what to prove: each credential, and each application that sets something for itself."""
    bound = bind_applications(settings, built)
    chosen = [each for each in built if name in (None, each)]
    found: list[tuple[str, str | None, Provider]] = [(each, None, built[each].provider) for each in chosen]
    found += [
        (each.provider, app_id, bound[app_id])
        for app_id, each in settings.apps.items()
        if each.provider in chosen and each.own()
    ]
    return sorted(found, key=lambda each: (each[0], each[1] or ""))


async def _check(
    settings: Settings, providers: list[tuple[str, str | None, Provider]], *, reach: bool, json: bool
) -> int:
    clock, entropy = SystemClock(), SystemEntropy()
    ca_file = settings.egress.ca_file
    carrier = Carrier(
        clock=clock,
        guard=EgressGuard(egress_rules(settings), SystemResolver()),
        extra_ca_pem=None if ca_file is None else ca_file.read_bytes(),
    )
    rows = []
    try:
        for name, app_id, provider in providers:
            if not isinstance(provider, Probe):
                continue
            now = clock.now()
            verdict = await carrier.carry(
                provider.probe(Moment(now, entropy.octets(_OCTETS)), reach=reach),
                provider=provider.name,
                until=now + PROBE_MS_MAX,
            )
            rows.append(
                {
                    "name": name,
                    "app": app_id,
                    "verdict": _WORDS.get(verdict.outcome, "unproved"),
                    "reason": verdict.reason,
                    "advice": provider.advice(verdict) or None,
                }
            )
    finally:
        await carrier.close()
    table(rows, ("name", "app", "verdict", "reason", "advice"), json=json)
    return 0 if all(row["verdict"] == "ok" for row in rows) else 1


async def _plan(config: Path | None, against: Path | None, *, json: bool) -> None:
    settings, built = _built(config)
    before, whose = _before(settings, config, against)
    after = in_force(settings, built)
    async with opened(config) as (_, database):
        counts = await Office(database).app_counts()
    depends = [Depends(each.app_id, each.registrations, each.waiting) for each in counts]
    touched = affected(before, after, depends)
    columns = ("app_id", "registrations", "waiting", "before", "after", "effect")
    if json:
        table([{"change": line} for line in changes(before, after)], ("change",), json=True)
        table([asdict(each) for each in touched], columns, json=True)
        return
    show(f"compared with {whose}")
    for line in changes(before, after):
        show(f"  {line}")
    if not touched:
        show("no registration and no waiting delivery is affected")
        return
    table([asdict(each) for each in touched], columns, json=False)


def _before(settings: Settings, config: Path | None, against: Path | None) -> tuple[InForce, str]:
    """Return what the change is compared with, and what to call that.

    Raises:
        Malformed: There is nothing to compare with.
    """
    if against is not None:
        old, built = _built(against)
        return in_force(old, built), str(against)
    for notice in notices(settings.data_dir):
        return notice.in_force, f"process {notice.pid}"
    default = config_file(None)
    if default is not None and default != config:
        old, built = _built(default)
        return in_force(old, built), str(default)
    raise Malformed("against", "must name the present settings file: no process runs on this data_dir")
