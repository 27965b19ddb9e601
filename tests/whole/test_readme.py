"""What the README tells a newcomer to type does what it says."""

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READY = {
    "heliograph lab webpush": "Web Push service on",
    "heliograph lab --script": "answers are changed with",
    "heliograph serve": "Heliograph serves",
}


SEEN = {"lab answer gone": " 410 by script"}
"""What the first terminal says before a person types on."""


def blocks(readme: Path) -> list[str]:
    """Return the shell blocks of the walk-through, in order."""
    return re.findall(r"^```sh\n(.*?)^```$", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def until(log: Path, words: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a background command has printed some words."""
    deadline = time.monotonic() + 30
    while words not in log.read_text(encoding="utf-8"):
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < deadline, f"never printed: {words}"
        time.sleep(0.05)


@contextlib.contextmanager
def port_of_ours() -> Iterator[None]:
    """Have the port that walk-throughs use for ourselves: another suite on this machine may walk too."""
    with Path(tempfile.gettempdir(), "heliograph-walk.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_server(("127.0.0.1", 8080)).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "something else listens on port 8080"
                time.sleep(0.2)
        yield


def walked(page: str, folder: Path, last_words: str) -> str:
    """Type every command of a page, as it stands, in an empty folder with the examples.

    Returns:
        All that was printed, by the terminals too; the first of them has said the last words.
    """
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    running: list[subprocess.Popen[bytes]] = []
    logs: list[Path] = []
    printed = ""
    ours = contextlib.ExitStack()
    ours.enter_context(port_of_ours())
    try:
        for block in blocks(ROOT / page):
            if "make install" in block:
                continue  # this very environment is what it makes
            if block.startswith("# terminal"):
                log = folder / f"terminal-{len(running) + 1}.log"
                logs.append(log)
                with log.open("wb") as out:
                    command = f"exec {block.splitlines()[1]}"
                    process = subprocess.Popen(
                        ["sh", "-c", command], cwd=folder, env=environment, stdout=out, stderr=out
                    )
                running.append(process)
                until(log, next(words for start, words in READY.items() if start in block), process)
                continue
            done = subprocess.run(
                ["sh", "-ec", block],
                cwd=folder,
                env=environment,
                capture_output=True,
                check=False,
                timeout=60,
            )
            printed += done.stdout.decode() + done.stderr.decode()
            assert done.returncode == 0, printed
            if "stations add" in block:
                time.sleep(3)  # a person takes longer than the setting gateway.trust_refresh_s
            for typed, words in {"station handoff": last_words, **SEEN}.items():
                if typed in block:
                    until(logs[0], words, running[0])  # and looks before typing on
        until(logs[0], last_words, running[0])
    finally:
        for process in running:
            process.send_signal(signal.SIGINT)
            process.wait(30)
        ours.close()
    return printed + "".join(log.read_text(encoding="utf-8") for log in logs)


@pytest.mark.timeout(420)
@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_a_newcomer_gets_a_first_push_by_hand(readme: str, tmp_path: Path) -> None:
    """Every command of the walk-through, as it stands, in an empty folder with the examples."""
    printed = walked(readme, tmp_path, '"wakeup_kind": "message"')

    assert '"gateway_status":"accepted"' in printed
    assert "everything is well" in printed


@pytest.mark.timeout(420)
def test_an_operator_rehearses_an_outage(tmp_path: Path) -> None:
    """Two pushes meet a service that is away, the third is taken; a dead device and a reload follow."""
    printed = walked("docs/lab.md", tmp_path, "201 by its own rules")

    assert printed.count(" 503 by script") == 2
    assert printed.count("201 by its own rules") == 1
    assert " 410 by script" in printed
    assert "credential webpush replaced" in printed
    assert "changes in force" in printed
