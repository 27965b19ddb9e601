"""Starts the program's processes: imports it once and forks one of itself for each.

What is forked runs ``heliograph`` with the arguments it is given, exactly as the console script does; it is a
process of its own, with its own memory, files and sockets, and can be killed. Importing the program takes a
second of a core, which is most of a start: without it a kill during the start would nearly always hit the
imports and seldom the keys, the database and the schema.

Run as ``python -m tests.crash.nursery``: reads one JSON object in each line, answers with one.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final, NoReturn

from tests.whole.process import ENVIRONMENT

PR_SET_PDEATHSIG: Final = 1


def _main() -> None:
    """Fork until there is nothing more to read."""
    import heliograph.app.compose  # noqa: PLC0415 - these imports are what the nursery is for
    import heliograph.cli  # noqa: PLC0415
    import heliograph.storage.postgres  # noqa: F401, PLC0415

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: the kernel buries them
    for line in sys.stdin:
        wanted = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(wanted["arguments"], wanted["log"])
        print(pid, flush=True)


def _become(arguments: list[str], log: str) -> NoReturn:
    """Be the program."""
    import heliograph.cli  # noqa: PLC0415 - imported by the parent already

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    into = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (into, 1), (into, 2)):
        os.dup2(here, there)
    status = 1
    try:
        heliograph.cli.main(arguments)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        status = 0 if ended.code in (0, None) else 1
    finally:
        sys.stdout.flush()
        os._exit(status)


class Child:
    """One process of the program. Its descriptor stays its own even when its number is given to another."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended = asyncio.Event()
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self._ended.set()
        else:
            asyncio.get_running_loop().add_reader(self._descriptor, self._end)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._ended.set()

    @property
    def alive(self) -> bool:
        return not self._ended.is_set()

    def kill(self) -> None:
        """Kill it where it stands; it hears nothing of it."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    async def ended(self) -> None:
        await self._ended.wait()


class Nursery:
    """The parent of the program's processes; they all end with it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls) -> AsyncIterator["Nursery"]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.crash.nursery"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env=ENVIRONMENT,
        )
        try:
            yield cls(process)
        finally:
            process.kill()
            await process.wait()

    async def bear(self, arguments: Sequence[str], log: Path) -> Child:
        """Start the program with these arguments; what it prints is added to a file."""
        # Who is cancelled here must not leave an answer for the next to take as its own.
        return await asyncio.shield(asyncio.ensure_future(self._bear(arguments, log)))

    async def _bear(self, arguments: Sequence[str], log: Path) -> Child:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._one_at_a_time:
            wanted = json.dumps({"arguments": list(arguments), "log": str(log)})
            self._process.stdin.write(wanted.encode() + b"\n")
            await self._process.stdin.drain()
            return Child(int(await self._process.stdout.readline()))


if __name__ == "__main__":
    _main()
