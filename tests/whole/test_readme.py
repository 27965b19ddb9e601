"""What the README tells a newcomer to type does what it says."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READY = {"heliograph lab webpush": "Web Push service on", "heliograph serve": "Heliograph serves"}


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


@pytest.mark.timeout(180)
@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_a_newcomer_gets_a_first_push_by_hand(readme: str, tmp_path: Path) -> None:
    """Every command of the walk-through, as it stands, in an empty folder with the examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    running: list[subprocess.Popen[bytes]] = []
    logs: list[Path] = []
    printed = ""
    try:
        for block in blocks(ROOT / readme):
            if "make install" in block:
                continue  # this very environment is what it makes
            if block.startswith("# terminal"):
                log = tmp_path / f"terminal-{len(running) + 1}.log"
                logs.append(log)
                with log.open("wb") as out:
                    command = f"exec {block.splitlines()[1]}"
                    process = subprocess.Popen(
                        ["sh", "-c", command], cwd=tmp_path, env=environment, stdout=out, stderr=out
                    )
                running.append(process)
                until(log, next(words for start, words in READY.items() if start in block), process)
                continue
            done = subprocess.run(
                ["sh", "-ec", block],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                check=False,
                timeout=60,
            )
            printed += done.stdout.decode() + done.stderr.decode()
            assert done.returncode == 0, printed
            if "stations add" in block:
                time.sleep(3)  # a person takes longer than the setting gateway.trust_refresh_s
        until(logs[0], '"wakeup_kind": "message"', running[0])
    finally:
        for process in running:
            process.send_signal(signal.SIGINT)
            process.wait(30)

    assert '"gateway_status":"accepted"' in printed
    assert "everything is well" in printed
