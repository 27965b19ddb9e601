"""``heliograph station``: the Station's side by hand, to try a Gateway without writing a Station."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from pyreqwest.client import ClientBuilder

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.cli.printing import show
from heliograph.edge.server import run
from heliograph.lab.station import SignedRequest, StationPen
from heliograph.signing.ed25519 import SigningKey
from heliograph.wire import base64url
from heliograph.wire.ids import did_core_id_of, format_push_target_id, parse_did, parse_verification_method

app = App(name="station", help="Try a Gateway by hand: sign handoffs and notifies as a Station would.")

OK = 200


@dataclass(frozen=True, slots=True)
class Pen:
    """How a command signs: as whom, with which key, towards which Gateway."""

    gateway: Annotated[str, Parameter(help="The Gateway's public origin.")] = "http://127.0.0.1:8080"
    did: Annotated[str, Parameter(help="The DID of the Station to sign as.")] = "did:web:station.example"
    key: Annotated[Path, Parameter(help="The file with its signing key; made when missing.")] = Path(
        "station.key"
    )


_Pen = Annotated[Pen | None, Parameter(name="*")]


def register(parent: App) -> None:
    """Add the commands."""
    parent.command(app)


@app.command
def show_key(
    *,
    key_only: Annotated[bool, Parameter(negative="", help="Print the public key alone.")] = False,
    pen: _Pen = None,
) -> None:
    """Print the command with which an operator trusts this Station. Makes the key if it is missing."""
    chosen = pen or Pen()
    did = parse_did(chosen.did, "--did")
    key = SigningKey(_seed(chosen.key)).verify_key.multibase()
    if key_only:
        show(key)
        return
    show(f"heliograph stations add {did_core_id_of(did, '--did')} --key {key} --method '{did}#push'")


@app.command
def handoff(
    push_key: Annotated[str, Parameter(help="The device's route, or @FILE to read it from a file.")],
    *,
    app_id: Annotated[str, Parameter(name="--app", help="The application it belongs to.")],
    pen: _Pen = None,
) -> int:
    """Install a device's route. Prints the ids that a notify and a revoke need."""
    entropy, clock = SystemEntropy(), SystemClock()
    ids = {
        "registration_id": base64url.encode(entropy.octets(16)),
        "push_target_id": format_push_target_id(entropy.octets(32)),
        "device_id": f"ak:device:{entropy.uuid7(clock.now())}",
    }
    body = ids | {
        "state": "active",
        "push_key": _push_key(push_key),
        "app_id": app_id,
        "visible_notification_opt_in": False,
    }
    status = run(_send(pen or Pen(), lambda signer: signer.handoff(body, clock.now())))
    if status == 0:
        show(f"heliograph station notify {ids['push_target_id']} {ids['device_id']}")
    return status


@app.command
def notify(
    push_target_id: str,
    device_id: str,
    *,
    kind: Annotated[str, Parameter(help="The class of the wakeup.")] = "message",
    pen: _Pen = None,
) -> int:
    """Ask the Gateway to wake a device."""
    body = {
        "notification": {
            "push_target_id": push_target_id,
            "wakeup_kind": kind,
            "devices": [{"device_id": device_id}],
        }
    }
    key = base64url.encode(SystemEntropy().octets(16))
    return run(_send(pen or Pen(), lambda signer: signer.notify(body, key, SystemClock().now())))


@app.command
def revoke(registration_id: str, push_target_id: str, device_id: str, *, pen: _Pen = None) -> int:
    """End a registration for ever."""
    body = {
        "registration_id": registration_id,
        "push_target_id": push_target_id,
        "device_id": device_id,
        "state": "revoked",
    }
    return run(_send(pen or Pen(), lambda signer: signer.handoff(body, SystemClock().now())))


async def _send(pen: Pen, sign: Any) -> int:
    async with ClientBuilder().build() as client:
        describe = (
            await client.get(f"{pen.gateway}/_arkret/describe?service_kind=push_gateway").build().send()
        )
        gateway_id = json.loads(bytes(await describe.bytes()))["service_id"]
        did = parse_did(pen.did, "--did")
        signer = StationPen(
            service_id=did_core_id_of(did, "--did"),
            keyid=parse_verification_method(f"{did}#push", "--did"),
            key=SigningKey(_seed(pen.key)),
            gateway_id=gateway_id,
            gateway_url=pen.gateway,
        )
        signed: SignedRequest = sign(signer)
        request = client.post(pen.gateway + signed.path).headers(dict(signed.headers))
        response = await request.body_bytes(signed.body).build().send()
        show(f"{response.status} {bytes(await response.bytes()).decode()}")
        return 0 if response.status == OK else 1


def _push_key(text: str) -> str:
    return Path(text[1:]).read_text(encoding="utf-8").strip() if text.startswith("@") else text


def _seed(path: Path) -> bytes:
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(base64url.encode(SystemEntropy().octets(32)) + "\n", encoding="ascii")
    return base64url.decode_exactly(path.read_text(encoding="ascii").strip(), 32, str(path))
