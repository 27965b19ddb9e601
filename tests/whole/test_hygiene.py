"""An operator looks at credentials that a provider refuses, beside the process that delivers."""

import asyncio
import json
from pathlib import Path

import pytest

from heliograph.lab.receiver import Reply
from heliograph.lab.stub import StubReceiver
from tests.arkret import make
from tests.whole.process import command, free_port, serving, write_settings
from tests.whole.test_process import PEN, arrived, installed, now, trust

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


async def test_a_refused_credential_rests_is_shown_and_can_be_opened(tmp_path: Path) -> None:
    """Nothing more is sent with it until an operator, or a single delivery in its own time, tries."""
    port = free_port()
    async with StubReceiver.start() as receiver:
        config = write_settings(tmp_path, port, receiver.url)
        receiver.answers.append(Reply(401))
        async with serving(config, port) as process:
            await trust(config)
            await installed(process)
            await process.post(PEN.notify(make.notify_body(), "key-1", now()))
            async with asyncio.timeout(60):
                while "credentials_resting" not in (ready := await process.get("/readyz"))[1]:  # noqa: ASYNC110 - the process decides
                    await asyncio.sleep(0.1)
            await process.post(PEN.notify(make.notify_body(counts={"badge": "2-5"}), "key-2", now()))
            listed = await command("hygiene", "gates", "--json", "--config", str(config))
            doctor = await command("doctor", "--config", str(config))
            before = len(receiver.heard)
            opened = await command("hygiene", "open", "stub", "--config", str(config))
            again = await command("hygiene", "open", "stub", "--config", str(config))
            await arrived(receiver, 1)

    shown = json.loads(listed[1])
    assert ready[0] == 200
    assert (shown["gate"], shown["reason"], shown["step"], shown["being_tried"]) == (
        "stub",
        "stub_unauthorized",
        1,
        False,
    )
    assert "stub rests: stub_unauthorized" in doctor[1]
    assert doctor[0] == 1
    assert before == 1
    assert opened == (0, "opened: stub\n")
    assert again[0] == 1


async def test_a_dead_route_is_brought_back_by_command_once_somebody_has_looked(tmp_path: Path) -> None:
    """Shown first, done with ``--yes``; a span that is none is refused in words."""
    port = free_port()
    async with StubReceiver.start() as receiver:
        config = write_settings(tmp_path, port, receiver.url)
        receiver.answers.append(Reply(410))
        async with serving(config, port) as process:
            await trust(config)
            await installed(process)
            await process.post(PEN.notify(make.notify_body(), "key-1", now()))
            async with asyncio.timeout(60):
                listing = ("hygiene", "undo", "stub", "--config", str(config))
                while "stub_token_gone" not in (shown := await command(*listing))[1]:  # noqa: ASYNC110 - the process decides
                    await asyncio.sleep(0.1)
            _, gone = await process.post(PEN.notify(make.notify_body(), "key-2", now()))
            done = await command("hygiene", "undo", "stub", "--since", "2h", "--yes", "--config", str(config))
            await process.post(PEN.notify(make.notify_body(), "key-3", now()))
            await arrived(receiver, 1)
            thawed = await command("hygiene", "thaw", "stub", "--config", str(config))
            frozen = await command("hygiene", "freezes", "--config", str(config))
            wrong = await command("hygiene", "undo", "stub", "--since", "2w", "--config", str(config))

    assert "would bring back 1 routes; run again with --yes to do it" in shown[1]
    assert gone["outcomes"][0]["reason_code"] == "push_token_invalid"
    assert "brought back 1 routes" in done[1]
    assert thawed == (1, "stub is not frozen\n")
    assert frozen[0] == 0
    assert (wrong[0], "since" in wrong[1], "Traceback" in wrong[1]) == (1, True, False)
