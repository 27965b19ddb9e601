"""The commands of the documents do what the sentences around them say."""

import os
import re
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def typed(command: str, folder: Path) -> str:
    """Type a block of a shell in a folder and return what it printed; it must succeed."""
    done = subprocess.run(
        ["sh", "-ec", command],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def blocks(page: str) -> list[str]:
    """Return the shell blocks of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.timeout(180)
def test_a_backup_holds_the_database_and_the_keys(tmp_path: Path) -> None:
    """And the plan of an upgrade changes nothing."""
    typed("heliograph migrate && heliograph keys list", tmp_path)
    backup, plan = blocks("docs/operations.md")

    typed(backup, tmp_path)

    with sqlite3.connect(tmp_path / "backup.sqlite3") as copy:
        (steps,) = copy.execute("SELECT count(*) FROM schema_migrations").fetchone()
    with tarfile.open(tmp_path / "keys.tar") as keys:
        names = {Path(name).name for name in keys.getnames()}
    assert steps > 0
    assert "master.v1.symmetric" in names
    assert "0 to apply" in typed(plan, tmp_path)


@pytest.mark.timeout(180)
def test_a_plan_is_shown_and_not_carried_out(tmp_path: Path) -> None:
    """On a database that was never migrated every step is in it, and stays in it."""
    _, plan = blocks("docs/operations.md")

    assert typed(plan, tmp_path) == typed(plan, tmp_path)
    assert "0001" in typed(plan, tmp_path)


@pytest.mark.timeout(180)
def test_the_dependency_rule_holds() -> None:
    """By the command that the page names."""
    (rule,) = blocks("docs/architecture.md")

    assert "0 broken" in typed(rule, ROOT)


@pytest.mark.timeout(180)
def test_release_notes_gather_every_fragment() -> None:
    """As a draft: the fragments stay where they are until a release."""
    notes = typed("towncrier build --draft --version 0.2.0 --date 2026-01-01", ROOT)
    sentences = [" ".join(path.read_text(encoding="utf-8").split()) for path in ROOT.glob("changes.d/*.md")]
    spoken = " ".join(notes.split())

    assert sentences
    assert [sentence for sentence in sentences if sentence not in spoken] == []
