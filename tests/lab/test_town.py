"""Every provider server at once: one authority, one script, one control endpoint."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyreqwest.client import ClientBuilder
from tests.egress_verifier import not_ours

from heliograph.app.opening import bind_applications, build_credentials, open_keyring
from heliograph.app.settings import load
from heliograph.lab.script import rules_of
from heliograph.lab.town import Town, files, snippet, town

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def strangers() -> Iterator[None]:
    """What is sent here is typed by hand, and not by an adapter of ours."""
    with not_ours():
        yield


async def asked(
    url: str, document: object = None, kind: str = "application/json", ca_pem: bytes | None = None
) -> tuple[int, Any]:
    builder = ClientBuilder()
    if ca_pem is not None:
        builder = builder.add_root_certificate_pem(ca_pem)
    async with builder.build() as client:
        if document is None:
            response = await client.get(url).build().send()
        else:
            request = client.post(url).headers({"content-type": kind})
            response = await request.body_bytes(json.dumps(document).encode()).build().send()
        octets = bytes(await response.bytes())
        return response.status, json.loads(octets) if octets else None


async def pushed(running: Town) -> int:
    return (await asked(running.stub.url, {"wakeup_kind": "message"}, ca_pem=running.ca_pem))[0]


async def test_answers_are_changed_while_it_runs_and_what_was_received_is_counted() -> None:
    """The script it began with, another one, and the server's own rules."""
    told: list[str] = []
    rules = rules_of({"answers": [{"provider": "stub", "answer": "unavailable"}]})
    async with town(rules, told=told.append) as running:
        first = await pushed(running)
        changed = await asked(running.control_url, {"answers": [{"status": 429}]})
        second = await pushed(running)
        await asked(running.control_url, {"answers": []})
        third = await pushed(running)
        shown = await asked(running.control_url)
        received = await asked(running.control_url.replace("answers", "received"))

    assert [first, second, third] == [503, 429, 201]
    assert changed == (200, {"answers": [{"status": 429}]})
    assert shown == (200, {"answers": []})
    assert received[1] == [
        {"provider": "stub", "answer": "201", "count": 1},
        {"provider": "stub", "answer": "429", "count": 1},
        {"provider": "stub", "answer": "503", "count": 1},
    ]
    assert [line.split()[2:5] for line in told] == [
        ["503", "by", "script"],
        ["429", "by", "script"],
        ["201", "by", "its"],
    ]


async def test_the_control_endpoint_refuses_what_it_cannot_use() -> None:
    """Nothing changes; a page in a browser cannot send what it takes."""
    async with town() as running:
        wrong = await asked(running.control_url, {"answers": [{}]})
        closed = await asked(running.control_url, {"surprise": 1})
        plain = await asked(running.control_url, {"answers": []}, "text/plain")
        nowhere = await asked(running.control_url + "x")
        rules = running.script.rules

    assert [wrong[0], closed[0], plain[0], nowhere[0]] == [422, 422, 415, 404]
    assert "exactly one" in wrong[1]["problem"]
    assert rules == ()


async def test_a_whole_token_is_never_told() -> None:
    """A subscription's address is what lets anybody push to it."""
    told: list[str] = []
    async with town(told=told.append) as running:
        subscription = running.subscription
        await asked(subscription.endpoint, {}, ca_pem=running.ca_pem)

    assert len(told) == 1
    assert subscription.token[:6] in told[0]
    assert subscription.token not in told[0]


async def test_its_snippet_is_a_whole_configuration(tmp_path: Path) -> None:
    """A Gateway that reads it builds every provider."""
    async with town() as running:
        (tmp_path / "ca.pem").write_bytes(running.ca_pem)
        for name, secret in files(running).items():
            (tmp_path / name).write_text(secret.reveal())
        file = tmp_path / "heliograph.toml"
        file.write_text(snippet(running, tmp_path))
        settings = load(file, {}).settings
        bound = bind_applications(settings, build_credentials(settings, open_keyring(settings)))

    assert {app_id: provider.name for app_id, provider in bound.items()} == {
        "lab.apns": "apns",
        "lab.webpush": "webpush",
        "lab.unifiedpush": "unifiedpush",
        "lab.fcm": "fcm",
        "lab.stub": "stub",
    }
    assert tomllib.loads(file.read_text())["egress"]["allow_loopback"] is True


async def test_a_lab_that_runs_for_days_remembers_only_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts go on; what was sent is let go."""
    monkeypatch.setattr("heliograph.lab.town.KEPT_MAX", 2)
    async with town() as running:
        for _ in range(4):
            await pushed(running)
        remembered = len(running.stub.wakeups), len(running.stub.heard)

    assert remembered == (2, 2)
    assert running.received["stub", "201"] == 4
