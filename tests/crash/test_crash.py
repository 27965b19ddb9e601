"""A few rounds in every run of the suite; ``make crash`` plays two hundred."""

from pathlib import Path

import pytest

from tests.crash.load import QUICK
from tests.crash.nursery import Nursery
from tests.crash.rounds import Report, run
from tests.postgres_server import PostgresServer

ROUNDS = 2

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


async def _played(kind: str, folder: Path, server: PostgresServer | None) -> list[Report]:
    reports: list[Report] = []
    async with Nursery.open() as nursery:
        await run(kind, ROUNDS, 1, QUICK, folder=folder, nursery=nursery, server=server, tell=reports.append)
    return reports


@pytest.mark.clause(
    "R092", "R098", "R121", "R122", "R123", "R124", "R127", "R128", "R132", "R139", "R316", "R317"
)
async def test_one_process_that_is_killed_keeps_every_promise(tmp_path: Path) -> None:
    """On SQLite: nothing accepted is lost or doubled, no answer and no receipt ever changes."""
    reports = await _played("sqlite", tmp_path, None)

    assert [violation for report in reports for violation in report.violations] == []
    assert len(reports) == ROUNDS
    assert all(report.killed and report.counts["accepted"] for report in reports)


@pytest.mark.service
@pytest.mark.clause(
    "R092", "R098", "R121", "R122", "R123", "R124", "R127", "R128", "R132", "R139", "R316", "R317"
)
async def test_several_processes_of_which_any_is_killed_keep_every_promise(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """On PostgreSQL: two doors and a worker, the same."""
    reports = await _played("postgres", tmp_path, postgres)

    assert [violation for report in reports for violation in report.violations] == []
    assert len(reports) == ROUNDS
    assert all(report.killed and report.counts["accepted"] for report in reports)
