"""The whole program: processes, a database, a provider, commands beside them."""

import asyncio
import json
import stat
from pathlib import Path

import pytest

from heliograph.ambient.clock import SystemClock
from heliograph.lab.station import StationPen
from heliograph.lab.stub import StubReceiver
from heliograph.wire.ids import DidCoreId, VerificationMethod
from tests.arkret import make
from tests.arkret.gateway.house import STATION_KEY
from tests.postgres_server import PostgresServer
from tests.secrets import planted
from tests.whole.process import Served, command, free_port, serving, write_settings

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

PEN = StationPen(
    service_id=make.STATION,
    keyid=VerificationMethod("did:web:station.example#push"),
    key=STATION_KEY,
    gateway_id=DidCoreId("ak:did_core:web:push.example.com"),
    gateway_url="http://push.example.com",
)


def now() -> int:
    return SystemClock().now()


async def trust(config: Path) -> None:
    """Trust the Station by command, beside whatever runs."""
    key = STATION_KEY.verify_key.multibase()
    status, printed = await command(
        *("stations", "add", make.STATION, "--key", key, "--method", str(PEN.keyid)),
        *("--config", str(config)),
    )
    assert status == 0, printed


async def installed(process: Served, **changes: str) -> None:
    """Hand off a device's route, once the process has heard of the Station."""
    for attempt in range(100):
        signed = PEN.handoff(
            make.active_body(push_key=planted("whole-push-key"), **changes), now(), 61 + attempt
        )
        if (await process.post(signed))[0] == 200:
            return
        await asyncio.sleep(0.1)
    pytest.fail("the Station was never trusted")


async def arrived(receiver: StubReceiver, count: int) -> None:
    """Wait for wakeups at the provider."""
    async with asyncio.timeout(30):
        while len(receiver.wakeups) < count:  # noqa: ASYNC110 - another process decides when
            await asyncio.sleep(0.05)


async def test_serve_without_preparation_takes_a_wakeup_and_delivers_it(tmp_path: Path) -> None:
    """Keys are made, the schema is applied, a Station is trusted beside the running process."""
    port = free_port()
    async with StubReceiver.start() as receiver:
        config = write_settings(tmp_path, port, receiver.url)
        async with serving(config, port) as process:
            await trust(config)
            await installed(process)
            status, answer = await process.post(PEN.notify(make.notify_body(), "key-1", now()))
            await arrived(receiver, 1)
            metrics = (await process.get("/metrics"))[1]
            listed = await command("deliveries", "list", "--json", "--config", str(config))
            stations = await command("stations", "list", "--json", "--config", str(config))
            registrations = await command("registrations", "list", make.STATION, "--config", str(config))

            assert (status, answer["outcomes"][0]["gateway_status"]) == (200, "accepted")
            assert receiver.wakeups[0].members == {"push_target_id": make.TARGET, "wakeup_kind": "message"}
            assert 'heliograph_notify_devices_total{outcome="accepted",reason=""} 1.0' in metrics
            assert json.loads(listed[1])["state"] in {"done", "leased"}
            assert json.loads(stations[1])["routes"] == 1
            assert make.REGISTRATION in registrations[1]
            assert await process.stop() == 0
        assert "stopping" in "".join(process.printed)
        keys = sorted((tmp_path / "data" / "keys").iterdir())
        assert [stat.S_IMODE(key.stat().st_mode) for key in keys] == [0o600] * 3


async def test_what_was_accepted_before_a_kill_is_delivered_after_the_restart(tmp_path: Path) -> None:
    """The provider is away; the process dies without warning; the wakeup arrives all the same."""
    port, provider_port = free_port(), free_port()
    # The kill may come in the middle of an attempt, whose lease must then run out before the next one.
    briefly = "\n[worker]\nlease_ms = 2000"
    config = write_settings(tmp_path, port, f"http://127.0.0.1:{provider_port}/wakeups", more=briefly)
    async with serving(config, port) as process:
        await trust(config)
        await installed(process)
        _, first = await process.post(PEN.notify(make.notify_body(), "key-1", now()))
        process.process.kill()
        await process.process.wait()
    async with StubReceiver.start() as receiver:
        config = write_settings(tmp_path, port, receiver.url, more=briefly)
        async with serving(config, port) as process:
            await arrived(receiver, 1)
            _, again = await process.post(PEN.notify(make.notify_body(), "key-1", now(), 90))

    assert again == first
    assert len(receiver.times()) == 1


async def test_a_second_process_on_one_sqlite_file_is_refused_in_words(tmp_path: Path) -> None:
    """Not with a traceback."""
    port = free_port()
    async with StubReceiver.start() as receiver:
        config = write_settings(tmp_path, port, receiver.url)
        async with serving(config, port):
            status, printed = await command("serve", "--config", str(config), "--port", str(free_port()))

    assert (status, "in use by another process" in printed, "Traceback" in printed) == (1, True, False)


async def test_a_misspelt_setting_is_named_with_its_nearest_relative(tmp_path: Path) -> None:
    """Before anything is opened."""
    config = tmp_path / "h.toml"
    config.write_text("[server]\nprot = 9000\n", encoding="utf-8")

    status, printed = await command("serve", "--config", str(config))

    assert (status, "server.prot" in printed, "port" in printed) == (1, True, True)


async def test_doctor_says_what_is_wrong_and_how_to_mend_it(tmp_path: Path) -> None:
    """Nobody is trusted yet; the schema waits."""
    config = write_settings(tmp_path, free_port(), "http://127.0.0.1:9/wakeups")
    config.write_text(config.read_text().replace("http://push.", "https://push."), encoding="utf-8")

    before = await command("doctor", "--config", str(config))
    await command("migrate", "--config", str(config))
    await trust(config)
    after = await command("doctor", "--settings", "--config", str(config))

    assert (before[0], "heliograph migrate" in before[1]) == (1, True)
    assert (after[0], "everything is well" in after[1]) == (0, True)
    assert "providers.stub.url" in after[1]


async def test_migrate_plans_before_it_applies(tmp_path: Path) -> None:
    """And has nothing to do the second time."""
    config = write_settings(tmp_path, free_port(), "http://127.0.0.1:9/wakeups")

    planned = await command("migrate", "--plan", "--config", str(config))
    applied = await command("migrate", "--config", str(config))
    again = await command("migrate", "--config", str(config))

    assert "0003  arkret_gateway" in planned[1]
    assert "applied" not in planned[1]
    assert "applied 0003" in applied[1]
    assert "0 to apply" in again[1]


@pytest.mark.service
async def test_two_serving_processes_and_a_worker_share_one_postgresql(
    tmp_path: Path, postgres_url: str
) -> None:
    """What one takes over the worker delivers; a retry at the other gets the first answer."""
    ports = [free_port(), free_port()]
    async with StubReceiver.start() as receiver:
        configs = [write_settings(tmp_path, port, receiver.url, postgres_url) for port in ports]
        async with (
            serving(configs[0], ports[0], "--roles", "gateway") as one,
            serving(configs[1], ports[1], "--roles", "gateway,worker") as two,
        ):
            await trust(configs[0])
            await installed(one)
            await installed(two)  # the same again, which tells that it trusts the Station too
            _, first = await one.post(PEN.notify(make.notify_body(), "key-1", now()))
            signed = PEN.notify(make.notify_body(), "key-1", now(), 91)
            again = await two.post(signed)
            replayed = await one.post(signed)
            await arrived(receiver, 1)

    assert again == (200, first)
    assert replayed[0] == 401
    assert len(receiver.wakeups) == 1


@pytest.mark.service
async def test_a_database_that_goes_away_is_no_acceptance_and_comes_back_without_a_restart(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    """Readiness falls, notifies are refused with a time to come back, and then everything is as before."""
    port = free_port()
    async with StubReceiver.start() as receiver:
        config = write_settings(tmp_path, port, receiver.url, postgres_url)
        async with serving(config, port) as process:
            await trust(config)
            await installed(process)
            postgres.stop("immediate")
            try:
                away = await process.get("/readyz")
                refused = await process.post(PEN.notify(make.notify_body(), "key-1", now()))
                alive = await process.get("/healthz")
            finally:
                postgres.start()
            await process.until_ready()
            status, answer = await process.post(PEN.notify(make.notify_body(), "key-1", now(), 92))
            await arrived(receiver, 1)

    assert (away[0], json.loads(away[1])["failed"]) == (503, ["database"])
    assert (refused[0], refused[1]["type"].rpartition("/")[2]) == (503, "temporarily_unavailable")
    assert alive[0] == 200
    assert (status, answer["outcomes"][0]["gateway_status"]) == (200, "accepted")
    assert len(receiver.wakeups) == 1
