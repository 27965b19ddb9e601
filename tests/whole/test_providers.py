"""Credentials by command: listed without a secret, proved without a device, planned before a change."""

import json
from pathlib import Path

import pytest

from tests.deliveries import VAPID_SCALAR
from tests.whole.process import command

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

SETTINGS = """
data_dir = "{folder}/data"
[providers.stub]
url = "http://127.0.0.1:1/secret-path"
[providers.browsers]
adapter = "webpush"
subject = "mailto:operator@example.com"
vapid_key = "file:{folder}/vapid"
hosts = ["push.example.invalid"]
[apps."com.example.*"]
provider = "browsers"
"""


def written(folder: Path, text: str = SETTINGS, name: str = "h.toml") -> Path:
    (folder / "vapid").write_text(VAPID_SCALAR)
    file = folder / name
    file.write_text(text.replace("{folder}", str(folder)))
    return file


async def test_credentials_are_listed_by_what_is_public_of_them(tmp_path: Path) -> None:
    """Keys that clients know, origins; no key file's content, no path."""
    status, printed = await command("providers", "list", "--json", "--config", str(written(tmp_path)))
    stub, browsers = map(json.loads, printed.splitlines())

    assert status == 0
    assert stub == {
        "name": "stub",
        "adapter": "stub",
        "identity": {"origin": "http://127.0.0.1:1"},
        "apps": [],
    }
    assert browsers["apps"] == ["com.example.*"]
    assert set(browsers["identity"]) == {"application_server_key", "subject"}
    assert VAPID_SCALAR not in printed


async def test_a_credential_is_proved_and_what_cannot_be_reached_comes_with_advice(tmp_path: Path) -> None:
    """The status says whether everything is proved."""
    config = str(written(tmp_path))
    good = await command("providers", "check", "--config", config)
    alone = await command("providers", "check", "browsers", "--reach", "--json", "--config", config)
    unknown = await command("providers", "check", "browser", "--config", config)

    assert good[0] == 0
    assert "webpush_key_signs" in good[1]
    assert alone[0] == 1
    row = json.loads(alone[1])
    assert (row["name"], row["verdict"]) == ("browsers", "unproved")
    assert row["advice"]
    assert unknown[0] != 0
    assert "providers.browser: has no section; there are browsers, stub" in unknown[1]


async def test_a_plan_needs_something_to_compare_with(tmp_path: Path) -> None:
    """Without a running process the present file is named by hand."""
    config = written(tmp_path)
    new = written(tmp_path, SETTINGS.replace("com.example.*", "com.example.web"), "new.toml")
    await command("migrate", "--config", str(config))
    nothing = await command("providers", "plan", "--config", str(new))
    planned = await command("providers", "plan", "--config", str(new), "--against", str(config))

    assert nothing[0] != 0
    assert "no process runs on this data_dir" in nothing[1]
    assert planned[0] == 0
    assert planned[1].splitlines() == [
        f"compared with {config}",
        "  application com.example.* removed",
        "  application com.example.web added",
        "no registration and no waiting delivery is affected",
    ]
