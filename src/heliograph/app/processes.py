"""What processes tell the commands beside them: that they run, and how their last reload ended.

Each process keeps one small file in the folder ``run`` of its data directory, locked for as long as it lives.
The lock says whether the process is there, so a file that a killed one left behind misleads nobody.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, final

import msgspec

from heliograph.app.in_force import InForce
from heliograph.app.reloading import Reloaded
from heliograph.wire.instant import Instant

NOTICE_OCTETS_MAX: Final = 4 * 1024 * 1024
"""A notice names every credential and application; a settings file has at most one quarter of this."""

LINES_MAX: Final = 64
"""Changes that a notice names."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What a process says of itself.

    Attributes:
        pid: Its process id.
        settings: The settings file it reads, or empty.
        started_at: When it started.
        reloads: How often it has read its settings again.
        reloaded_at: When it last did.
        ended: How that ended.
        in_force: The credentials and applications that it works with.
    """

    pid: int
    settings: str
    started_at: Instant
    reloads: int = 0
    reloaded_at: Instant | None = None
    ended: Reloaded = Reloaded()  # noqa: RUF009 - frozen
    in_force: InForce = InForce()  # noqa: RUF009 - frozen


@final
class NoticeBoard:
    """The notice of this process; without a descriptor nobody reads it. Made by ``posted``."""

    def __init__(self, descriptor: int | None, notice: Notice) -> None:
        self._descriptor = descriptor
        self._notice = notice
        self._write()

    def tell(self, in_force: InForce, ended: Reloaded | None, now: Instant) -> None:
        """Tell what is in force, and how a reload ended if it is the end of one."""
        self._notice = replace(self._notice, in_force=in_force)
        if ended is not None:
            ended = replace(ended, changes=ended.changes[:LINES_MAX])
            self._notice = replace(
                self._notice, reloads=self._notice.reloads + 1, reloaded_at=now, ended=ended
            )
        self._write()

    def _write(self) -> None:
        if self._descriptor is None:
            return
        octets = msgspec.json.encode(self._notice)
        os.pwrite(self._descriptor, octets, 0)
        os.ftruncate(self._descriptor, len(octets))


@contextmanager
def posted(data_dir: Path, notice: Notice) -> Iterator[NoticeBoard]:
    """Post the notice of this process while the context lasts.

    A directory that cannot be written, as in a container that keeps nothing, is no reason not to run: then
    the commands beside the process do not see it.
    """
    file = _file(data_dir, notice)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = _locked(file)
    except OSError:
        yield NoticeBoard(None, notice)
        return
    try:
        yield NoticeBoard(descriptor, notice)
    finally:
        with suppress(OSError):
            file.unlink()
        os.close(descriptor)


def notices(data_dir: Path) -> list[Notice]:
    """Return the notices of the processes that run now, by process id. What dead ones left is removed."""
    found = []
    for file in sorted(_folder(data_dir).glob("*.json")):
        try:
            with file.open("rb") as opened:
                if _is_free(opened.fileno()):
                    file.unlink()
                    continue
                found.append(msgspec.json.decode(opened.read(NOTICE_OCTETS_MAX), type=Notice))
        except (OSError, msgspec.DecodeError):
            continue  # it ended meanwhile, or is just being written; the next look will tell
    return sorted(found, key=lambda notice: notice.pid)


def is_within_reach(data_dir: Path, notice: Notice) -> bool:
    """Tell whether the process id of a notice is that process for us too.

    In another container the same number may be a stranger, whom a signal would kill.
    """
    try:
        descriptors = list(Path(f"/proc/{notice.pid}/fd").iterdir())
        file = _file(data_dir, notice).stat()
    except OSError:
        return False
    return any(_is_same(descriptor, file) for descriptor in descriptors)


def _is_same(descriptor: Path, file: os.stat_result) -> bool:
    try:
        found = descriptor.stat()
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino)


def _locked(file: Path) -> int:
    """Open and lock a notice; again if a reader found it unlocked meanwhile and removed it."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    """Tell whether nobody holds the lock any more."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file(data_dir: Path, notice: Notice) -> Path:
    # Two containers may share a directory and a process id, and still start at different times.
    return _folder(data_dir) / f"{notice.pid}-{notice.started_at}.json"


def _folder(data_dir: Path) -> Path:
    return data_dir / "run"
