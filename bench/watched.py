"""A process under measurement: the real program on one core, its CPU time and memory read from the system."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

READY_S = 600
"""A start may bring a populated database up to date first."""

STOP_S = 60
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def pin(process: int, core: int) -> None:
    """Bind a process to one of the cores that this one may use; 0 is this process."""
    cores = sorted(os.sched_getaffinity(0)) if process else sorted(os.sched_getaffinity(1))
    os.sched_setaffinity(process, {cores[core % len(cores)]})


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process has used, of all its threads, in the kernel too."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_octets(process: int) -> int:
    """Return the memory that a process holds now."""
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def children(process: int) -> list[int]:
    """Return the processes that a process has started."""
    return [
        int(child)
        for thread in Path(f"/proc/{process}/task").iterdir()
        for child in (thread / "children").read_text(encoding="ascii").split()
    ]


@dataclass(frozen=True, slots=True)
class Watched:
    """A running program.

    Attributes:
        pid: Its process id.
        port: Where it listens.
        said: The line that it printed once it was ready.
    """

    pid: int
    port: int
    said: str

    @property
    def cpu_s(self) -> float:
        """The CPU time that it has used, in seconds."""
        return cpu_seconds(self.pid)

    @property
    def resident_mb(self) -> float:
        """The memory that it holds, in megabytes of 1,000,000 octets."""
        return resident_octets(self.pid) / 1e6


def heliograph(
    config: Path, port: int, *, roles: str, core: int | None
) -> AbstractAsyncContextManager[Watched]:
    """Run ``heliograph serve`` while the block lasts.

    Args:
        config: Its settings file.
        port: Where it listens; the program prints a line once it does.
        roles: What it does.
        core: The core to bind it to; None leaves that to the system.
    """
    words = ("heliograph.cli", "serve", "--config", str(config), "--port", str(port), "--roles", roles)
    return program(words, port, config.parent, core)


@contextlib.asynccontextmanager
async def program(words: Sequence[str], port: int, folder: Path, core: int | None) -> AsyncIterator[Watched]:
    """Run a module of Python that prints a line once it listens, while the block lasts."""
    errors = folder / f"printed-{port}.log"
    with errors.open("wb") as printed:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *words, stdout=asyncio.subprocess.PIPE, stderr=printed
        )
    assert process.stdout is not None
    try:
        if core is not None:
            pin(process.pid, core)
        async with asyncio.timeout(READY_S):
            said = (await process.stdout.readline()).decode().strip()
        if not said:
            raise RuntimeError(errors.read_text(encoding="utf-8"))
        yield Watched(process.pid, port, said)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_S):
            await process.communicate()
