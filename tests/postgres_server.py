"""A private PostgreSQL server for the suite: its own folder, its own socket, gone with the suite."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

START_S = 60


def find_binaries() -> Path | None:
    """Return the folder with ``initdb`` and ``postgres``: the system's, or the one a wheel carries."""
    on_path = shutil.which("initdb")
    candidates = [Path(os.path.realpath(on_path)).parent] if on_path else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("pgserver")
    if wheel is not None and wheel.origin is not None:
        candidates.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def _user() -> int | None:
    """Return whom to run the server as: PostgreSQL refuses to be root."""
    return 65534 if os.geteuid() == 0 else None


class PostgresServer:
    """A running server that can be stopped and started again."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.binaries = binaries
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(
            arguments, user=_user(), capture_output=True, check=False, timeout=START_S, cwd=self.folder
        )
        if done.returncode:
            raise RuntimeError(f"{Path(arguments[0]).name} failed: {done.stderr.decode(errors='replace')}")

    def prepare(self) -> None:
        """Make the data folder."""
        self._run(
            str(self.binaries / "initdb"),
            *("-D", str(self.folder / "data"), "-U", "heliograph", "-A", "trust", "-E", "UTF8"),
            *("--locale=C", "--no-instructions"),
        )

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c max_connections=60"
        self._run(
            str(self.binaries / "pg_ctl"),
            *("-D", str(self.folder / "data"), "-w", "-t", str(START_S)),
            *("-l", str(self.folder / "log"), "-o", options, "start"),
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: ``fast`` as an operator would, ``immediate`` as a crash would."""
        self._run(str(self.binaries / "pg_ctl"), "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def url(self, database: str = "postgres") -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://heliograph@/{database}?host={self.folder}"


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server until the block ends.

    Raises:
        FileNotFoundError: There are no PostgreSQL binaries on this machine.
    """
    binaries = find_binaries()
    if binaries is None:
        raise FileNotFoundError("no PostgreSQL binaries: neither on the system nor in the pgserver wheel")
    folder = Path(tempfile.mkdtemp(prefix="heliograph-pg-"))
    if (user := _user()) is not None:
        os.chown(folder, user, user)
    server = PostgresServer(binaries, folder)
    try:
        server.prepare()
        server.start()
        yield server
    finally:
        with contextlib.suppress(RuntimeError):
            server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)
