"""Reads the settings again while a process runs, and puts new credentials and applications in force.

A reload builds everything that the new settings describe before it replaces anything, so settings that could
not deliver change nothing. Deliveries in flight keep the provider they began with; the next ones find the new
one. A credential that is the same in its settings and its secrets stays the object it was, with its signed
tokens, its bearer token and its pauses: a reload is no reason to bother a provider.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias, final

import msgspec

from heliograph.ambient.clock import Clock
from heliograph.ambient.keyring import KeyUnusableError
from heliograph.ambient.telemetry import TEXT_CHARACTERS_MAX, Event, Telemetry, locations
from heliograph.app.in_force import InForce, changes, in_force, renewed
from heliograph.app.opening import Credential, bind_applications, build_credentials, open_keyring
from heliograph.app.reading import leaves
from heliograph.app.settings import Settings
from heliograph.delivery.applications import Applications
from heliograph.wire.malformed import Malformed

NAMES_TOLD_MAX: Final = 32
"""Of the settings that wait for a start: who changed more than these will look at the file anyway."""

_AT_RUN_TIME: Final = ("providers.", "apps.")

FileMark: TypeAlias = tuple[int, int, int] | None
"""What tells one state of a file from another; None for a file that is not there."""


class Cause(StrEnum):
    """Why the settings are read again."""

    SIGNAL = "signal"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Reloaded:
    """How a reload ended.

    Attributes:
        problem: Why nothing changed; empty when the new settings are in force.
        changes: What is different now, one line each: ``credential ios replaced``.
        next_start: The changed settings that take effect at the next start only.
    """

    problem: str = ""
    changes: tuple[str, ...] = ()
    next_start: tuple[str, ...] = ()


Told: TypeAlias = Callable[[InForce, Reloaded | None], None]
"""Is told what is in force, and how the reload ended that it is the end of, if it is one."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the settings of a process came from, and who wants to know of reloads.

    Attributes:
        read: Reads them again as they were read at the start.
        file: The settings file, if there is one.
        told: Called with what is in force, at the start and with the end of every reload.
    """

    read: Callable[[], Settings]
    file: Path | None = None
    told: Told | None = None


@final
class Reloader:
    """The settings in force, and how to replace them.

    Args:
        read: Reads the settings as the process did at its start.
        settings: What it read then.
        credentials: What was built from them.
        applications: What everybody looks applications up in.
        telemetry: Told of every reload.
        told: Called with what is in force and the end of every reload.
        renewed: Called with the credentials whose past says nothing any more, once others are in force.
    """

    def __init__(
        self,
        *,
        read: Callable[[], Settings],
        settings: Settings,
        credentials: Mapping[str, Credential],
        applications: Applications,
        telemetry: Telemetry,
        told: Told | None = None,
        renewed: Callable[[frozenset[str]], Awaitable[None]] | None = None,
    ) -> None:
        self._read = read
        self._settings = settings
        self._credentials = credentials
        self._applications = applications
        self._telemetry = telemetry
        self._told = told
        self._renewed = renewed
        self._one_at_a_time = asyncio.Lock()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    @property
    def credentials(self) -> Mapping[str, Credential]:
        """The credentials in force, by name."""
        return self._credentials

    @property
    def in_force(self) -> InForce:
        """What is in force, told without a secret."""
        return in_force(self._settings, self._credentials)

    async def reload(self, cause: Cause) -> Reloaded:
        """Read the settings again and put what may change at run time in force; or change nothing."""
        async with self._one_at_a_time:
            before = self.in_force
            try:
                ended = await self._reload()
            except (Malformed, KeyUnusableError, OSError) as refused:
                ended = Reloaded(problem=str(refused))
            except Exception as bug:  # noqa: BLE001 - the process goes on with what it has
                self._noted(bug)
                ended = Reloaded(problem=f"a fault of ours ({type(bug).__name__}); the log says where")
            self._tell(cause, ended)
            await self._renew(renewed(before, self.in_force))
        return ended

    async def _renew(self, names: frozenset[str]) -> None:
        """Tell which credentials' past is over. That it cannot be acted on now undoes no reload."""
        if self._renewed is None or not names:
            return
        try:
            await self._renewed(names)
        except Exception as bug:  # noqa: BLE001 - what rests is tried again by itself
            self._noted(bug)

    def _noted(self, bug: Exception) -> None:
        self._telemetry.event(Event.HANDLER_FAILED, kind="reload", exception=bug, where=locations(bug))

    async def _reload(self) -> Reloaded:
        wanted = await asyncio.to_thread(self._read)
        # What may not change at run time stays as it is, so that nothing is built half of the old and half of
        # the new settings.
        settings = msgspec.structs.replace(self._settings, providers=wanted.providers, apps=wanted.apps)
        built = await asyncio.to_thread(_built, settings)
        credentials = {name: _kept(self._credentials.get(name), new) for name, new in built.items()}
        self._applications.replace(bind_applications(settings, credentials))
        ended = Reloaded(
            changes=tuple(changes(self.in_force, in_force(settings, credentials))),
            next_start=next_start(self._settings, wanted),
        )
        self._settings, self._credentials = settings, credentials
        return ended

    def _tell(self, cause: Cause, ended: Reloaded) -> None:
        outcome = "refused" if ended.problem else "in_force"
        if ended.problem:
            note = ended.problem[:TEXT_CHARACTERS_MAX]
            self._telemetry.event(Event.SETTINGS_REFUSED, cause=cause, outcome=outcome, note=note)
        else:
            count = len(ended.changes)
            self._telemetry.event(Event.SETTINGS_RELOADED, cause=cause, outcome=outcome, count=count)
        for path in ended.next_start:
            self._telemetry.event(Event.SETTING_WAITS, setting=path[:TEXT_CHARACTERS_MAX])
        if self._told is not None:
            self._told(self.in_force, ended)


def next_start(before: Settings, after: Settings) -> tuple[str, ...]:
    """Name the settings that differ and take effect at the next start only."""
    old, new = dict(leaves(before, "")), dict(leaves(after, ""))
    paths = (path for path in {**old, **new} if not path.startswith(_AT_RUN_TIME))
    return tuple(path for path in paths if old.get(path) != new.get(path))[:NAMES_TOLD_MAX]


@asynccontextmanager
async def watching(reloader: Reloader, source: Source | None, clock: Clock) -> AsyncIterator[None]:
    """Reload whenever the settings file or the file of a secret has changed, while the context lasts.

    Nothing is watched without a source, nor where ``reload.watch_s`` is 0.
    """
    every_s = reloader.settings.reload.watch_s
    if source is None or every_s == 0:
        yield
        return

    def files() -> set[Path]:
        found = {file for credential in reloader.credentials.values() for file in credential.files}
        # The folder tells of a key that was made anew; its own files never change.
        return found | {reloader.settings.keys_directory()} | ({source.file} if source.file else set())

    task = asyncio.create_task(_watch(reloader, files, clock, every_s), name="settings watch")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@final
class FileWatch:
    """Tells when files have changed and then rested: what is still being written is no settings yet.

    Args:
        marks: The state of each file at the beginning.
    """

    def __init__(self, marks: Mapping[Path, FileMark]) -> None:
        self._acted_on = self._seen = dict(marks)

    def look(self, marks: Mapping[Path, FileMark]) -> bool:
        """Tell whether there is something new that was already so at the look before."""
        rested = marks == self._seen
        self._seen = dict(marks)
        if not rested or marks == self._acted_on:
            return False
        self._acted_on = self._seen
        return True

    def settle(self, marks: Mapping[Path, FileMark]) -> None:
        """Take the present state as acted upon; the files looked at may be others after a reload."""
        self._acted_on = self._seen = dict(marks)


def marks_of(files: Iterable[Path]) -> dict[Path, FileMark]:
    """Return the state of each file."""
    marks: dict[Path, FileMark] = {}
    for file in files:
        try:
            found = file.stat()
        except (OSError, ValueError):
            marks[file] = None
        else:
            marks[file] = (found.st_mtime_ns, found.st_ino, found.st_size)
    return marks


async def _watch(reloader: Reloader, files: Callable[[], Iterable[Path]], clock: Clock, every_s: int) -> None:
    watch = FileWatch(marks_of(files()))
    while True:
        await clock.sleep(every_s)
        before = await asyncio.to_thread(marks_of, files())
        if watch.look(before):
            await reloader.reload(Cause.FILE)
            # Files that only the new settings name count as seen; one that changed meanwhile does not.
            now = await asyncio.to_thread(marks_of, files())
            watch.settle({file: before.get(file, mark) for file, mark in now.items()})


def _built(settings: Settings) -> Mapping[str, Credential]:
    """Build the credentials, with the secrets and keys as they are on disk now."""
    return build_credentials(settings, open_keyring(settings))


def _kept(old: Credential | None, new: Credential) -> Credential:
    return old if old is not None and old.mark == new.mark else new
