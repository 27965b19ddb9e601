"""``heliograph lab``: provider servers on this machine, to rehearse with."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter
from pyreqwest.client import ClientBuilder

from heliograph.cli.printing import show
from heliograph.edge.server import run
from heliograph.lab.receiver import Misbehaviour
from heliograph.lab.script import Rule, read_script
from heliograph.lab.town import Ports, files, snippet, town
from heliograph.lab.unifiedpush import UnifiedPushServer
from heliograph.lab.webpush import WebPushService

app = App(name="lab", help="Provider servers on this machine, to try things out and to rehearse outages.")

CONTROL_FILE: Final = "control_url.txt"
"""Where a running lab tells the commands beside it how to reach it."""

OK: Final = 200

_LOOK_EVERY_S: Final = 0.05


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
    run(_service(WebPushService, "Web Push service", folder, application_server_key, answer))


@app.command
def unifiedpush(
    *,
    folder: Annotated[Path, Parameter(help="Where to write ca.pem and push_key.txt.")] = Path("lab"),
    application_server_key: Annotated[
        str | None, Parameter(help="Take pushes signed by this VAPID key only.")
    ] = None,
    answer: Annotated[
        str | None, Parameter(help="Give this answer to every push, for example gone or ntfy_limit.")
    ] = None,
) -> None:
    """Run a push server of UnifiedPush with one endpoint and print every push it decrypts, until interrupted.

    It writes the authority to trust (egress.ca_file) and the push key to register (a secret, as an
    application's endpoint is).
    """
    folder.mkdir(parents=True, exist_ok=True)
    run(_service(UnifiedPushServer, "UnifiedPush server", folder, application_server_key, answer))


async def _service(
    kind: type[WebPushService],
    title: str,
    folder: Path,
    application_server_key: str | None,
    answer: str | None,
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with kind.start() as service:
        subscription = service.subscribe(application_server_key=application_server_key, answer=answer)
        (folder / "ca.pem").write_bytes(service.ca_pem or b"")
        key_file = folder / "push_key.txt"
        _write_private(key_file, subscription.push_key.reveal())
        show(f"{title} on {service.origin}; wrote {folder / 'ca.pem'} and {key_file}")
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


@app.default
def everything(
    *,
    folder: Annotated[
        Path, Parameter(help="Where to write settings, ca.pem, keys, push keys and control_url.txt.")
    ] = Path("lab"),
    script: Annotated[Path | None, Parameter(help="What to answer: a TOML file of [[answers]].")] = None,
    webpush_port: Annotated[int, Parameter(help="Port of the Web Push service; 0: any free one.")] = 0,
    unifiedpush_port: Annotated[
        int, Parameter(help="Port of the push server of UnifiedPush; 0: any free one.")
    ] = 0,
    fcm_port: Annotated[int, Parameter(help="Port of FCM and its token endpoint; 0: any free one.")] = 0,
    stub_port: Annotated[int, Parameter(help="Port of the stub's receiver; 0: any free one.")] = 0,
    apns_port: Annotated[int, Parameter(help="Port of APNs in production; 0: any free one.")] = 0,
    apns_sandbox_port: Annotated[int, Parameter(help="Port of APNs' sandbox; 0: any free one.")] = 0,
    control_port: Annotated[int, Parameter(help="Port of the control endpoint; 0: any free one.")] = 0,
) -> None:
    """Run every provider server of the lab, until interrupted, and print what each answers.

    All show certificates of one authority that lives as long as the lab does. The folder gets settings for a
    Gateway that delivers to them, the keys that these name, and the push keys of one browser, one endpoint of
    UnifiedPush, one device of Apple's and one of FCM's (secrets, as real ones are).
    """
    rules = () if script is None else read_script(script)
    folder.mkdir(parents=True, exist_ok=True)
    ports = Ports(
        webpush=webpush_port,
        unifiedpush=unifiedpush_port,
        fcm=fcm_port,
        stub=stub_port,
        control=control_port,
        apns=apns_port,
        apns_sandbox=apns_sandbox_port,
    )
    run(_town(folder, rules, ports))


async def _town(folder: Path, rules: tuple[Rule, ...], ports: Ports) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with town(rules, ports, show) as running:
        (folder / "ca.pem").write_bytes(running.ca_pem)
        for name, secret in files(running).items():
            _write_private(folder / name, secret.reveal())
        (folder / "heliograph.toml").write_text(snippet(running, folder), encoding="utf-8")
        (folder / CONTROL_FILE).write_text(running.control_url + "\n", encoding="utf-8")
        show(snippet(running, folder))
        show(f"wrote these settings to {folder / 'heliograph.toml'}; {len(rules)} rules in force")
        show(f"answers are changed with heliograph lab answer, or POST {running.control_url}")
        await stop.wait()


@app.command
def answer(
    what: Annotated[
        str,
        Parameter(help="An answer by name, a status, or a fault such as hang or cut; own: no rule any more."),
    ],
    *,
    provider: Annotated[str | None, Parameter(help="Only of this server.")] = None,
    token: Annotated[str, Parameter(help="Only to devices whose token begins with this.")] = "",
    times: Annotated[int | None, Parameter(help="So many requests, and then no more.")] = None,
    retry_after_s: Annotated[int | None, Parameter(help="With a status: Retry-After in seconds.")] = None,
    folder: Annotated[Path, Parameter(help="The folder of the running lab.")] = Path("lab"),
) -> int:
    """Change what the servers of a running lab answer, in place of every rule before."""
    rule: dict[str, object] = {"provider": provider, "token": token, "times": times}
    if what.isdecimal():
        rule |= {"status": int(what), "retry_after_s": retry_after_s}
    elif what in set(Misbehaviour):
        rule["fault"] = what
    else:
        rule["answer"] = what
    url = (folder / CONTROL_FILE).read_text(encoding="utf-8").strip()
    return run(_answer(url, {"answers": [] if what == "own" else [rule]}))


async def _answer(url: str, document: object) -> int:
    async with ClientBuilder().build() as client:
        request = client.post(url).headers({"content-type": "application/json"})
        response = await request.body_bytes(json.dumps(document).encode()).build().send()
        show(bytes(await response.bytes()).decode())
        return 0 if response.status == OK else 1


def _write_private(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")
