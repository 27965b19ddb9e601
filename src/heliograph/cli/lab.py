"""``heliograph lab``: provider servers on this machine, to rehearse with."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from heliograph.cli.printing import show
from heliograph.edge.server import run
from heliograph.lab.webpush import WebPushService

app = App(name="lab", help="Provider servers on this machine, to try things out and to rehearse outages.")

_LOOK_EVERY_S = 0.05


def register(parent: App) -> None:
    """Add the commands."""
    parent.command(app)


@app.command
def webpush(
    *,
    folder: Annotated[Path, Parameter(help="Where to write ca.pem and push_key.txt.")] = Path("lab"),
    application_server_key: Annotated[
        str | None, Parameter(help="Take pushes signed by this VAPID key only.")
    ] = None,
    answer: Annotated[
        str | None, Parameter(help="Give this answer to every push, for example gone or throttled.")
    ] = None,
) -> None:
    """Run a Web Push service with one subscription and print every push it decrypts, until interrupted.

    It writes the authority to trust (egress.ca_file) and the push key to register (a secret, as a browser's
    subscription is).
    """
    folder.mkdir(parents=True, exist_ok=True)
    run(_webpush(folder, application_server_key, answer))


async def _webpush(folder: Path, application_server_key: str | None, answer: str | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with WebPushService.start() as service:
        subscription = service.subscribe(application_server_key=application_server_key, answer=answer)
        (folder / "ca.pem").write_bytes(service.ca_pem or b"")
        key_file = folder / "push_key.txt"
        key_file.touch(mode=0o600)
        key_file.write_text(subscription.push_key.reveal(), encoding="utf-8")
        show(f"Web Push service on {service.origin}; wrote {folder / 'ca.pem'} and {key_file}")
        told = 0
        refused = 0
        while not stop.is_set():
            for message in service.messages[told:]:
                show(f"push: TTL {message.ttl_seconds}, topic {message.topic}: {json.dumps(message.members)}")
            told = len(service.messages)
            for why in service.refusals[refused:]:
                show(f"refused: {why}")
            refused = len(service.refusals)
            await asyncio.sleep(_LOOK_EVERY_S)
