"""Credentials change under a process that serves: by command, by signal and by the file itself."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from heliograph.lab.stub import StubReceiver
from tests.arkret import make
from tests.whole.process import command, free_port, serving, write_settings
from tests.whole.test_process import PEN, arrived, installed, now, trust

_DONE = ("deliveries", "list", "--state", "done", "--json")

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


async def over(config: Path, count: int) -> None:
    """Wait until deliveries are not only sent but settled."""
    async with asyncio.timeout(30):
        done = ""
        while len(done.splitlines()) < count:
            done = (await command(*_DONE, "--config", str(config)))[1]


async def test_a_credential_is_rotated_refused_and_removed_while_the_process_serves(tmp_path: Path) -> None:
    """What is accepted goes to the new one; a bad file changes nothing; what has no provider is held."""
    port = free_port()
    async with StubReceiver.start() as first, StubReceiver.start() as second:
        config = write_settings(tmp_path, port, first.url)
        before = config.read_text()
        async with serving(config, port) as process:
            await trust(config)
            await installed(process)
            await process.post(PEN.notify(make.notify_body(), "key-1", now()))
            await arrived(first, 1)

            config.write_text(before.replace(first.url, second.url).replace('"debug"', '"info"'))
            rotated = await command("reload", "--config", str(config))
            await process.post(PEN.notify(make.notify_body(), "key-2", now()))
            await arrived(second, 1)

            config.write_text(before.replace('provider = "stub"', 'provider = "stab"'))
            refused = await command("reload", "--config", str(config))
            process.process.send_signal(signal.SIGHUP)
            config.write_text(before.replace(first.url, second.url) + '\n[apps."x"]\nprovider = "stub"\n')
            mended = await command("reload", "--config", str(config))
            await process.post(PEN.notify(make.notify_body(), "key-3", now()))
            await arrived(second, 2)
            await over(config, 3)

            config.write_text(before.replace("com.example.app", "com.example.other"))
            plan = await command("providers", "plan", "--json", "--config", str(config))
            removed = await command("reload", "--config", str(config))
            _, answer = await process.post(PEN.notify(make.notify_body(), "key-4", now()))
            doctor = await command("doctor", "--config", str(config))
            assert await process.stop() == 0
        gone = await command("reload", "--config", str(config))

    assert rotated[0] == 0
    assert "credential stub replaced" in rotated[1]
    assert "log.level takes effect at the next start" in rotated[1]
    assert refused[0] != 0
    assert "names a provider that has no section; did you mean stub?" in refused[1]
    assert mended[0] == 0
    assert [json.loads(line) for line in plan[1].splitlines()] == [
        {"change": "application com.example.app removed"},
        {"change": "application com.example.other added"},
        {"change": "application x removed"},
        {"change": "credential stub replaced"},
        {
            "app_id": "com.example.app",
            "registrations": 1,
            "waiting": 0,
            "before": "stub",
            "after": None,
            "effect": "held: no provider",
        },
    ]
    assert "application com.example.app removed" in removed[1]
    assert answer["outcomes"][0]["gateway_status"] == "rejected"
    assert "application com.example.app has no provider: 1 registrations cannot be woken" in doctor[1]
    assert "settings read again" in doctor[1]
    assert gone[0] == 1
    assert len(first.times()) == 1


async def test_what_waits_for_a_removed_application_is_held_and_readiness_says_so(tmp_path: Path) -> None:
    """And the file is watched: nobody has to send a signal."""
    port = free_port()
    async with StubReceiver.start() as receiver:
        config = write_settings(
            tmp_path, port, f"http://127.0.0.1:{free_port()}/", more="\n[reload]\nwatch_s = 1"
        )
        before = config.read_text()
        async with serving(config, port) as process:
            await trust(config)
            await installed(process)
            await process.post(PEN.notify(make.notify_body(), "key-1", now()))
            config.write_text(before.replace("com.example.app", "com.example.other"))
            async with asyncio.timeout(60):
                while "without_provider" not in (ready := await process.get("/readyz"))[1]:  # noqa: ASYNC110 - the process decides
                    await asyncio.sleep(0.1)
            listed = await command("deliveries", "list", "--json", "--config", str(config))
            assert receiver.wakeups == []

    assert ready[0] == 200
    assert json.loads(ready[1]) == {"status": "ok", "notices": ["deliveries_without_provider"]}
    assert json.loads(listed[1])["state"] in {"ready", "leased"}
