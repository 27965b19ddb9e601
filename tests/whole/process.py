"""The real program as a real process: started, watched, stopped; everything it prints is searched."""

import asyncio
import contextlib
import json
import os
import resource
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyreqwest.client import ClientBuilder

from heliograph.lab.station import SignedRequest
from tests.secrets import inspect

READY_S = 30.0
ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def write_settings(folder: Path, port: int, stub_url: str, database: str = "", more: str = "") -> Path:
    """Write a settings file that delivers through the stub provider."""
    file = folder / f"heliograph-{port}.toml"
    file.write_text(
        f"""
data_dir = "{folder / "data"}"

[server]
port = {port}

[database]
url = "{database}"

[gateway]
public_url = "http://push.example.com"
trust_refresh_s = 1
{more}

[log]
level = "debug"

[providers.stub]
url = "{stub_url}"

[apps."com.example.app"]
provider = "stub"
""",
        encoding="utf-8",
    )
    return file


async def command(
    *arguments: str, env: Mapping[str, str] | None = None, octets_max: int | None = None
) -> tuple[int, str]:
    """Run one command to its end and return its status and all that it printed.

    Args:
        arguments: Its arguments.
        env: What it finds in its environment besides.
        octets_max: How far it may write into any file: 0 is a full disk.
    """

    def bound() -> None:
        if octets_max is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (octets_max, octets_max))

    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "heliograph.cli", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**ENVIRONMENT, **(env or {})},
        preexec_fn=bound,
    )
    printed, _ = await process.communicate()
    text = printed.decode()
    inspect(text)
    assert process.returncode is not None
    return process.returncode, text


@dataclass
class Served:
    """A process that serves."""

    process: asyncio.subprocess.Process
    url: str
    printed: list[str]

    async def get(self, path: str) -> tuple[int, str]:
        """Ask it something."""
        async with ClientBuilder().build() as client:
            response = await client.get(self.url + path).build().send()
            return response.status, bytes(await response.bytes()).decode()

    async def post(self, signed: SignedRequest) -> tuple[int, Any]:
        """Send it a signed request."""
        async with ClientBuilder().build() as client:
            request = client.post(self.url + signed.path).headers(dict(signed.headers))
            response = await request.body_bytes(signed.body).build().send()
            return response.status, json.loads(bytes(await response.bytes()))

    async def until_ready(self) -> None:
        """Wait until it says that it is ready."""
        async with asyncio.timeout(READY_S):
            while True:
                with contextlib.suppress(Exception):
                    if (await self.get("/readyz"))[0] == 200:
                        return
                assert self.process.returncode is None, "".join(self.printed)
                await asyncio.sleep(0.05)

    async def stop(self) -> int:
        """Ask it to stop, as an init system would, and return its status."""
        if self.process.returncode is None:
            self.process.terminate()
        async with asyncio.timeout(READY_S):
            return await self.process.wait()


@contextlib.asynccontextmanager
async def serving(config: Path, port: int, *arguments: str) -> AsyncIterator[Served]:
    """Run ``heliograph serve`` while the block lasts."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "heliograph.cli", "serve", "--config", str(config), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=ENVIRONMENT,
    )
    served = Served(process, f"http://127.0.0.1:{port}", [])

    async def listen() -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            served.printed.append(line.decode())

    listening = asyncio.create_task(listen())
    try:
        await served.until_ready()
        yield served
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await listening
        inspect("".join(served.printed))
