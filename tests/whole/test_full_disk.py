"""A disk that is full under a running process, and one that has room again."""

import json
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from heliograph.lab.stub import StubReceiver
from tests.arkret import make
from tests.whole.process import command, free_port, serving, write_settings
from tests.whole.test_process import PEN, arrived, installed, now, trust

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


def let_grow(pid: int, octets: int) -> None:
    """Say how far the process may write into any file: 0 is a full disk.

    Pipes and sockets, and so its log, are not files in this sense.
    """
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (octets, hard))


@pytest.mark.clause("R092", "R124", "R132", "R316")
async def test_a_full_disk_is_no_acceptance_and_passes_without_a_restart(tmp_path: Path) -> None:
    """Readiness falls, nothing is said to be done, nothing of it is left; then everything is as before."""
    port = free_port()
    handoff = make.active_body(
        registration_id=make.SUCCESSOR, device_id=make.OTHER_DEVICE, push_key="another key"
    )
    async with StubReceiver.start() as receiver:
        config = write_settings(tmp_path, port, receiver.url)
        async with serving(config, port) as process:
            await trust(config)
            await installed(process)
            _, first = await process.post(PEN.notify(make.notify_body(), "before", now()))
            await arrived(receiver, 1)
            let_grow(process.process.pid, 0)
            full = await process.get("/readyz")
            alive = await process.get("/healthz")
            refused = [
                await process.post(PEN.notify(make.notify_body(), f"key-{number}", now()))
                for number in range(3)
            ]
            refused.append(await process.post(PEN.handoff(handoff, now())))
            let_grow(process.process.pid, resource.RLIM_INFINITY)
            await process.until_ready()
            with closing(sqlite3.connect(tmp_path / "data" / "heliograph.sqlite3")) as file:
                registrations = file.execute("SELECT registration_id FROM arkret_installations").fetchall()
            again = [
                await process.post(PEN.notify(make.notify_body(), f"key-{number}", now(), 90))
                for number in range(3)
            ]
            replayed = await process.post(PEN.notify(make.notify_body(), "before", now(), 91))
            receipt = await process.post(PEN.handoff(handoff, now(), 92))
            taken = sum(each[1]["outcomes"][0]["gateway_status"] == "accepted" for each in again)
            await arrived(receiver, 1 + taken)

    assert (full[0], json.loads(full[1])["failed"]) == (503, ["database"])
    assert alive[0] == 200
    assert [(status, told["type"].rpartition("/")[2]) for status, told in refused] == [
        (503, "temporarily_unavailable")
    ] * 4
    assert registrations == [(make.REGISTRATION,)]
    assert [status for status, _ in again] == [200] * 3
    assert taken >= 1
    assert replayed == (200, first)
    assert receipt[0] == 200
    assert len(receiver.times()) == 1 + taken


async def test_a_disk_that_is_full_at_the_start_is_said_in_a_line(tmp_path: Path) -> None:
    """And a start on a disk with room again begins from nothing, as if it were the first."""
    config = write_settings(tmp_path, free_port(), "http://127.0.0.1:9/wakeups")

    status, printed = await command("migrate", "--config", str(config), octets_max=0)
    after = await command("migrate", "--config", str(config))

    assert (status, "Traceback" in printed) == (1, False)
    assert "cannot be used" in printed
    assert (after[0], "applied 0001" in after[1]) == (0, True)
