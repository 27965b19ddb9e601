"""``heliograph reload``: lets running processes read their settings again, and says how it ended."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Final

from cyclopts import App

from heliograph.app.opening import bind_applications, build_credentials, open_keyring
from heliograph.app.processes import Notice, is_within_reach, notices
from heliograph.app.settings import load
from heliograph.cli.options import Config
from heliograph.cli.printing import show
from heliograph.edge.server import run

WAIT_S_MAX: Final = 15.0
"""Reading files and keys takes milliseconds; a process that needs longer does not hear us."""

_LOOK_EVERY_S: Final = 0.05


def register(app: App) -> None:
    """Add the command."""
    app.command(reload)


def reload(*, config: Config = None) -> int:
    """Let the processes that run on this machine read credentials and applications again.

    The settings are judged here first; bad ones are told, and no process is disturbed. Status 1 if a process
    refused them or did not answer, or if none runs.
    """
    return run(_reload(config))


async def _reload(config: Path | None) -> int:
    settings = load(config).settings
    bind_applications(settings, build_credentials(settings, open_keyring(settings)))
    running = [notice for notice in notices(settings.data_dir) if is_within_reach(settings.data_dir, notice)]
    if not running:
        show(f"no process that we may signal runs on {settings.data_dir}")
        return 1
    for notice in running:
        os.kill(notice.pid, signal.SIGHUP)
    ended = await asyncio.gather(*(_ended(settings.data_dir, notice) for notice in running))
    return max(_told(before, after) for before, after in zip(running, ended, strict=True))


async def _ended(data_dir: Path, before: Notice) -> Notice | None:
    """Wait until a process has reloaded; None if it never says so."""
    try:
        async with asyncio.timeout(WAIT_S_MAX):
            while True:
                for notice in notices(data_dir):
                    if notice.pid == before.pid and notice.reloads > before.reloads:
                        return notice
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        return None


def _told(before: Notice, after: Notice | None) -> int:
    who = f"process {before.pid}"
    if after is None:
        show(f"{who}: did not answer")
        return 1
    if after.ended.problem:
        show(f"{who}: nothing changed: {after.ended.problem}")
        return 1
    show(f"{who}: {len(after.ended.changes)} changes in force")
    for line in after.ended.changes:
        show(f"  {line}")
    for path in after.ended.next_start:
        show(f"  {path} takes effect at the next start")
    return 0
