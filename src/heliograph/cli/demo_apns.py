"""The demo's third device: an iPhone, woken through APNs."""

import json
from http import HTTPStatus

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.cli.demo_report import Report
from heliograph.cli.demo_station import DemoStation
from heliograph.lab.apns import ApnsService
from heliograph.wire import base64url
from heliograph.wire.ids import format_push_target_id

APP = "com.example.ios"
WAIT_S = 10.0


async def wake_by_apns(report: Report, station: DemoStation, apple: ApnsService) -> None:
    """Register a device of Apple's, wake it, and show what APNs and the device saw."""
    clock, entropy = SystemClock(), SystemEntropy()
    report.heading("An Apple device registers through the same Gateway and is woken through APNs.")
    phone, target = apple.register(), format_push_target_id(entropy.octets(32))
    device = f"ak:device:{entropy.uuid7(clock.now())}"
    handoff: dict[str, str | bool] = {
        "registration_id": base64url.encode(entropy.octets(16)),
        "push_target_id": target,
        "device_id": device,
        "state": "active",
        "push_key": phone.push_key.reveal(),
        "app_id": APP,
        "platform": "ios",
        "visible_notification_opt_in": False,
    }
    status, _ = await station.post(station.pen.handoff(handoff, clock.now()))
    report.saw("Station", f"POST registrations:apply → {status}")
    note = {"push_target_id": target, "wakeup_kind": "call_invite", "devices": [{"device_id": device}]}
    status, answer = await station.post(
        station.pen.notify({"notification": note}, "demo-apns-0001", clock.now())
    )
    told = [outcome.get("gateway_status") for outcome in json.loads(answer).get("outcomes", [])]
    report.saw("Station", f"POST notify → {status} {told}")
    report.check((status, told) == (HTTPStatus.OK, ["accepted"]), "accepted, and on disk")
    begun = clock.monotonic()
    while not apple.pushes and clock.monotonic() - begun < WAIT_S:
        await clock.sleep(0.02)
    for push in apple.pushes:
        report.saw("provider", f"topic {push.topic}  type {push.push_type}  priority {push.priority}")
        report.saw("device", json.dumps(push.members))
    report.check(
        [push.members for push in apple.pushes] == [{"push_target_id": target, "wakeup_kind": "call_invite"}],
        "one push arrived; it says wake up, and nothing more",
    )
