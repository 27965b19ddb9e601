"""``heliograph doctor``: looks at everything that can be wrong, and says what to do about it."""

import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from heliograph.app.identity import gateway_identity
from heliograph.app.opening import bind_applications, build_credentials, open_database, open_keyring
from heliograph.app.processes import Notice, notices
from heliograph.app.reading import Loaded
from heliograph.app.settings import Settings, load
from heliograph.arkret.gateway.model import AppCount
from heliograph.arkret.gateway.service.office import Office
from heliograph.cli.options import Config
from heliograph.cli.printing import show
from heliograph.delivery.applications import AppTable
from heliograph.delivery.hygiene.service import HygieneDesk
from heliograph.edge.server import run
from heliograph.storage.migrations.runner import plan
from heliograph.wire.instant import format_instant

DISK_FREE_MIN_OCTETS: Final = 256 * 1024 * 1024
"""Less free space than this is soon none: a checkpoint alone may write 32 MB."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found; a fix stands only where something is wrong."""

    what: str
    fix: str | None = None


def register(app: App) -> None:
    """Add the command."""
    app.command(doctor)


def doctor(
    *,
    config: Config = None,
    settings: Annotated[
        bool, Parameter(negative="", help="Also print every setting, its value and where it came from.")
    ] = False,
) -> int:
    """Look at settings, keys, database, providers, trust and disk. Status 1 if anything is wrong."""
    return run(_doctor(config, everything=settings))


async def _doctor(config: Path | None, *, everything: bool) -> int:
    loaded = load(config)
    show(f"settings   {len(loaded.sources)} set, the rest defaults")
    if everything:
        for path, value, source in loaded.effective():
            show(f"           {path} = {value}  ({source})")
    wrong = 0
    for name, look in (
        ("identity", _identity),
        ("keys", _keys),
        ("disk", _disk),
        ("database", _database),
        ("providers", _providers),
        ("deliveries", _deliveries),
        ("processes", _processes),
    ):
        for finding in await _looked(look, loaded):
            show(f"{name:<10} {'ok   ' if finding.fix is None else 'WRONG'}  {finding.what}")
            if finding.fix is not None:
                wrong += 1
                show(f"{'':<10} fix    {finding.fix}")
    show("everything is well" if not wrong else f"{wrong} to mend")
    return 1 if wrong else 0


async def _looked(
    look: Callable[[Loaded[Settings]], Awaitable[list[Finding]]], loaded: Loaded[Settings]
) -> list[Finding]:
    try:
        return await look(loaded)
    except Exception as error:  # noqa: BLE001 - a doctor tells what hurts and goes on
        return [Finding(f"{type(error).__name__}: {error}", "mend what is named here and look again")]


async def _identity(loaded: Loaded[Settings]) -> list[Finding]:
    settings = loaded.settings
    identity = gateway_identity(settings.gateway, f"http://{settings.server.host}:{settings.server.port}")
    found = [Finding(f"{identity.service_id} at {identity.base_url}")]
    if not identity.base_url.startswith("https://"):
        found.append(
            Finding("the public URL is not https: good for this machine only")
            if not settings.gateway.public_url
            else Finding("gateway.public_url is not https", "put a TLS proxy in front and name its origin")
        )
    return found


async def _keys(loaded: Loaded[Settings]) -> list[Finding]:
    ring = open_keyring(loaded.settings)
    return [
        Finding(f"{name}: version {ring.current(name).version}, {len(ring.versions(name))} kept")
        for name in ring.names()
    ]


async def _disk(loaded: Loaded[Settings]) -> list[Finding]:
    folder = loaded.settings.data_dir
    free = shutil.disk_usage(folder if folder.exists() else Path()).free
    what = f"{free // 1024**2} MB free for {folder}"
    return [Finding(what, None if free >= DISK_FREE_MIN_OCTETS else "make room before it is full")]


async def _database(loaded: Loaded[Settings]) -> list[Finding]:
    database = await open_database(loaded.settings, exclusive=False)
    try:
        await database.ping()
        pending = (await plan(database)).pending
        found = [Finding("a commit reached the disk")]
        if pending:
            found.append(Finding(f"{len(pending)} schema steps to apply", "run: heliograph migrate"))
        else:
            stations = await Office(database).stations()
            fix = None if stations else "run: heliograph stations add … for each Station that may push"
            found.append(Finding(f"{len(stations)} Stations trusted", fix))
            found += _orphans(loaded.settings, await Office(database).app_counts())
        return found
    finally:
        await database.close()


async def _providers(loaded: Loaded[Settings]) -> list[Finding]:
    settings = loaded.settings
    built = build_credentials(settings, open_keyring(settings))
    bind_applications(settings, built)
    found = [Finding(f"{name}: its settings can deliver") for name in built]
    if not settings.apps:
        found.append(Finding("no application", 'add [apps."your.app.id"] with its provider'))
    found.extend(Finding(f"application {app_id} → {app.provider}") for app_id, app in settings.apps.items())
    return found


def _orphans(settings: Settings, counts: Sequence[AppCount]) -> list[Finding]:
    """Return the applications that devices are registered for and nobody has configured."""
    known = AppTable(settings.apps)
    return [
        Finding(
            f"application {count.app_id} has no provider: {count.registrations} registrations cannot be "
            f"woken, {count.waiting} deliveries are held",
            f'add [apps."{count.app_id}"], or a glob, with its provider; then: heliograph reload',
        )
        for count in counts
        if known.find(count.app_id) is None
    ]


async def _processes(loaded: Loaded[Settings]) -> list[Finding]:
    running = notices(loaded.settings.data_dir)
    return [_process(notice) for notice in running] or [Finding("none runs on this data_dir")]


def _process(notice: Notice) -> Finding:
    who = f"process {notice.pid}, started {format_instant(notice.started_at)}"
    if notice.reloaded_at is None:
        return Finding(f"{who}: works with the settings of its start")
    when = f"{who}: settings read again {format_instant(notice.reloaded_at)}"
    if notice.ended.problem:
        return Finding(
            f"{when} and refused: {notice.ended.problem}", "mend the settings; then: heliograph reload"
        )
    if notice.ended.next_start:
        return Finding(f"{when}; {', '.join(notice.ended.next_start)} wait", "restart it when it suits")
    return Finding(f"{when} and in force")


async def _deliveries(loaded: Loaded[Settings]) -> list[Finding]:
    database = await open_database(loaded.settings, exclusive=False)
    try:
        if (await plan(database)).pending:
            return []
        desk = HygieneDesk(database)
        resting, frozen = await desk.gates(), await desk.freezes()
    finally:
        await database.close()
    found = [
        Finding(
            f"{gate.name} rests: {gate.reason}, for the {gate.step}. time",
            "mend the credential, or wait: it is tried again by itself",
        )
        for gate in resting
    ]
    found += [
        Finding(
            f"{freeze.credential} is frozen: {freeze.tally.bad} of {freeze.tally.sends} routes dead at once",
            f"find out why, then run: heliograph hygiene thaw {freeze.credential}",
        )
        for freeze in frozen
    ]
    return found or [Finding("no credential rests, none is frozen")]
