"""``heliograph demo``: the main job on real bytes, and what each party saw of it."""

import json
import tempfile
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from cyclopts import App
from pyreqwest.client import ClientBuilder

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.app.compose import running
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.store import TrustedStation
from heliograph.cli.demo_apns import wake_by_apns
from heliograph.cli.demo_fcm import wake_by_fcm
from heliograph.cli.demo_report import Report
from heliograph.cli.demo_settings import demo_settings
from heliograph.cli.demo_station import STATION, STATION_KEY, DemoStation
from heliograph.cli.printing import show
from heliograph.edge.server import run
from heliograph.lab.apns import ApnsService
from heliograph.lab.certificates import Authority
from heliograph.lab.fcm import FcmService
from heliograph.lab.webpush import BrowserSubscription, WebPushService
from heliograph.signing.receipt import verify_receipt
from heliograph.wire import base64url
from heliograph.wire.ids import format_push_target_id

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


async def _demo() -> int:
    report = Report()
    show("Heliograph demo: a Station hands a device's route to the Gateway, then asks it to wake the device.")
    with tempfile.TemporaryDirectory(prefix="heliograph-demo-") as folder:
        authority = Authority.make(SystemClock().now())
        async with (
            WebPushService.start(authority=authority) as push_service,
            FcmService.start(authority=authority) as firebase,
            ApnsService.start(authority=authority) as apple,
        ):
            settings = demo_settings(Path(folder), authority.ca_pem, firebase, apple)
            async with running(settings) as gateway, ClientBuilder().build() as client:
                station = DemoStation(gateway, client)
                await _story(report, station, push_service)
                await wake_by_fcm(report, station, firebase)
                await wake_by_apns(report, station, apple)
    show()
    show("Everything holds." if not report.failed else f"{report.failed} checks do not hold.")
    return 1 if report.failed else 0


async def _story(report: Report, station: DemoStation, push_service: WebPushService) -> None:
    clock, entropy, gateway, pen = SystemClock(), SystemEntropy(), station.gateway, station.pen

    report.heading("The operator trusts one Station, by its id and its key.")
    await gateway.database.transact(
        store.station_put,
        TrustedStation(STATION, STATION_KEY, station.public_key, (), True, clock.now()),
    )
    await gateway.refresh_trust()
    report.saw("operator", f"{STATION}  key {station.public_key[:16]}…")

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
    status, receipt_bytes = await station.post(pen.handoff(handoff, clock.now()))
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
    _, again = await station.post(pen.handoff(handoff, clock.now(), lifetime_s=90))
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
    status, outcome_bytes = await station.post(pen.notify(body, "demo-0001", clock.now()))
    outcome = json.loads(outcome_bytes)
    report.saw("Station", f"POST notify → {status} {json.dumps(outcome.get('outcomes'))}")
    told = [item.get("gateway_status") for item in outcome.get("outcomes", [])]
    report.check(told == ["accepted"], "accepted: the wakeup was on disk before this answer left")
    _, again = await station.post(pen.notify(body, "demo-0001", clock.now(), lifetime_s=90))
    report.check(again == outcome_bytes, "a retry under the same key gets the same answer")

    report.heading("The Gateway delivers; the push service verifies, the browser decrypts.")
    await _delivered(push_service, clock)
    report.check(len(push_service.messages) == 1, "one push arrived, and one only")
    _show_what_arrived(report, push_service, subscription, target, body)

    report.heading("The device unregisters; a later notify finds nobody.")
    revoke = {name: handoff[name] for name in ("registration_id", "push_target_id", "device_id")}
    status, _ = await station.post(pen.handoff(revoke | {"state": "revoked"}, clock.now()))
    report.saw("Station", f"POST registrations:apply (revoked) → {status}")
    _, late = await station.post(pen.notify(body, "demo-0002", clock.now()))
    reason = json.loads(late)["outcomes"][0].get("reason_code")
    report.check(reason == "push_token_unknown", "rejected: push_token_unknown")
    status, _ = await station.post(pen.handoff(handoff, clock.now(), lifetime_s=60))
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
