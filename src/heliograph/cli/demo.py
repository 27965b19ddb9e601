"""``heliograph demo``: the main job on real bytes, and what each party saw of it."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from cyclopts import App
from pyreqwest.client import Client, ClientBuilder

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.app.compose import Running, running
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.store import TrustedStation
from heliograph.cli.demo_settings import demo_settings
from heliograph.cli.printing import show
from heliograph.edge.server import run
from heliograph.lab.station import SignedRequest, StationPen
from heliograph.lab.webpush import BrowserSubscription, WebPushService
from heliograph.signing.ed25519 import SigningKey
from heliograph.signing.receipt import verify_receipt
from heliograph.wire import base64url
from heliograph.wire.ids import DidCoreId, VerificationMethod, format_push_target_id

STATION = DidCoreId("ak:did_core:web:station.example")
STATION_KEY = VerificationMethod("did:web:station.example#push")
APP = "com.example.chat"
WAIT_S = 10.0


def register(app: App) -> None:
    """Add the command."""
    app.command(demo)


def demo() -> int:
    """Show a signed handoff and a signed notify become a wakeup on a device.

    A Station, this Gateway and a Web Push service run in one process and talk over loopback. Nothing is
    kept. Ends with status 0 only if every check holds.
    """
    return run(_demo())


@dataclass(slots=True)
class Report:
    """Checks, told as they are made."""

    failed: int = 0
    step: int = 0
    notes: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        """Begin a step."""
        self.step += 1
        show(f"\n{self.step}. {text}")

    def saw(self, who: str, what: str) -> None:
        """Tell what a party saw."""
        show(f"   {who:<9} {what}")

    def check(self, holds: bool, what: str) -> None:
        """Tell whether something holds."""
        show(f"   {'ok' if holds else 'WRONG':<9} {what}")
        self.failed += not holds


async def _demo() -> int:
    report = Report()
    show("Heliograph demo: a Station hands a device's route to the Gateway, then asks it to wake the device.")
    with tempfile.TemporaryDirectory(prefix="heliograph-demo-") as folder:
        async with WebPushService.start() as push_service:
            settings = demo_settings(Path(folder), push_service.ca_pem or b"")
            async with running(settings) as gateway, ClientBuilder().build() as client:
                await _story(report, gateway, client, push_service)
    show()
    show("Everything holds." if not report.failed else f"{report.failed} checks do not hold.")
    return 1 if report.failed else 0


async def _story(report: Report, gateway: Running, client: Client, push_service: WebPushService) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    key = SigningKey(entropy.octets(32))
    pen = StationPen(
        service_id=STATION,
        keyid=STATION_KEY,
        key=key,
        gateway_id=gateway.identity.service_id,
        gateway_url=gateway.identity.base_url,
    )

    report.heading("The operator trusts one Station, by its id and its key.")
    await gateway.database.transact(
        store.station_put,
        TrustedStation(STATION, STATION_KEY, key.verify_key.multibase(), (), True, clock.now()),
    )
    await gateway.refresh_trust()
    report.saw("operator", f"{STATION}  key {key.verify_key.multibase()[:16]}…")

    report.heading("A browser subscribes; its Station signs the handoff of that route.")
    subscription = push_service.subscribe()
    target = format_push_target_id(entropy.octets(32))
    device = f"ak:device:{entropy.uuid7(clock.now())}"
    handoff: dict[str, str | bool] = {
        "registration_id": base64url.encode(entropy.octets(16)),
        "push_target_id": target,
        "device_id": device,
        "state": "active",
        "push_key": subscription.push_key.reveal(),
        "app_id": APP,
        "platform": "web",
        "visible_notification_opt_in": False,
    }
    status, receipt_bytes = await _post(client, gateway, pen.handoff(handoff, clock.now()))
    report.saw("Station", f"POST registrations:apply → {status}")
    receipt = json.loads(receipt_bytes).get("receipt", {})
    report.saw("Station", f"receipt {receipt.get('state')} stored_at {receipt.get('stored_at')}")
    verify_receipt(
        receipt,
        handoff,
        STATION,
        gateway.identity.service_id,
        verification_method=gateway.identity.receipt_method,
        key=gateway.receipt_key,
    )
    report.check(status == HTTPStatus.OK, "the receipt is signed and echoes the handoff exactly")
    _, again = await _post(client, gateway, pen.handoff(handoff, clock.now(), lifetime_s=90))
    report.check(again == receipt_bytes, "the same handoff again gets the same receipt, octet for octet")

    report.heading("The Station signs a notify: a message came, count it in a coarse bucket.")
    body = {
        "notification": {
            "push_target_id": target,
            "wakeup_kind": "message",
            "counts": {"badge": "2-5", "missed_call": False},
            "devices": [{"device_id": device}],
            "route_tokens": {"realm_route_token": base64url.encode(entropy.octets(24))},
        },
        "event_kind": "ak.message.create",
    }
    status, outcome_bytes = await _post(client, gateway, pen.notify(body, "demo-0001", clock.now()))
    outcome = json.loads(outcome_bytes)
    report.saw("Station", f"POST notify → {status} {json.dumps(outcome.get('outcomes'))}")
    told = [item.get("gateway_status") for item in outcome.get("outcomes", [])]
    report.check(told == ["accepted"], "accepted: the wakeup was on disk before this answer left")
    _, again = await _post(client, gateway, pen.notify(body, "demo-0001", clock.now(), lifetime_s=90))
    report.check(again == outcome_bytes, "a retry under the same key gets the same answer")

    report.heading("The Gateway delivers; the push service verifies, the browser decrypts.")
    await _delivered(push_service, clock)
    report.check(len(push_service.messages) == 1, "one push arrived, and one only")
    _show_what_arrived(report, push_service, subscription, target, body)

    report.heading("The device unregisters; a later notify finds nobody.")
    revoke = {name: handoff[name] for name in ("registration_id", "push_target_id", "device_id")}
    status, _ = await _post(client, gateway, pen.handoff(revoke | {"state": "revoked"}, clock.now()))
    report.saw("Station", f"POST registrations:apply (revoked) → {status}")
    _, late = await _post(client, gateway, pen.notify(body, "demo-0002", clock.now()))
    reason = json.loads(late)["outcomes"][0].get("reason_code")
    report.check(reason == "push_token_unknown", "rejected: push_token_unknown")
    status, _ = await _post(client, gateway, pen.handoff(handoff, clock.now(), lifetime_s=60))
    report.check(status == HTTPStatus.CONFLICT, "the old handoff, arriving late, cannot bring the route back")


def _show_what_arrived(
    report: Report,
    push_service: WebPushService,
    subscription: BrowserSubscription,
    target: str,
    body: Mapping[str, Any],
) -> None:
    if not push_service.messages:
        return
    message, heard = push_service.messages[0], push_service.heard[0]
    report.saw(
        "provider", f"POST …/{subscription.token[:8]}…  TTL {message.ttl_seconds}  Topic {message.topic}"
    )
    report.saw("provider", f"{message.body_octets} encrypted octets, VAPID for {message.claims.get('aud')}")
    report.saw("device", json.dumps(message.members))
    expected = {
        "push_target_id": target,
        "wakeup_kind": "message",
        "counts": {"badge": "2-5", "missed_call": False},
    }
    report.check(message.members == expected, "the device is told to wake up, and nothing more")
    seen = heard.body + repr(sorted(heard.headers.items())).encode() + message.plaintext
    secrets = [STATION, body["notification"]["route_tokens"]["realm_route_token"], "ak.message.create"]
    report.check(
        not any(secret.encode() in seen for secret in secrets),
        "no Station, route token or event kind reached the provider",
    )


async def _delivered(push_service: WebPushService, clock: SystemClock) -> None:
    begun = clock.monotonic()
    while not push_service.messages and clock.monotonic() - begun < WAIT_S:
        await clock.sleep(0.02)
    # A second copy would follow at once: give it the time to show itself.
    await clock.sleep(0.3)


async def _post(client: Client, gateway: Running, signed: SignedRequest) -> tuple[int, bytes]:
    request = client.post(gateway.local_url + signed.path).headers(dict(signed.headers))
    response = await request.body_bytes(signed.body).build().send()
    return response.status, bytes(await response.bytes())
