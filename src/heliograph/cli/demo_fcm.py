"""The demo's second device: an Android phone, woken through FCM."""

import json
from http import HTTPStatus

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.cli.demo_report import Report
from heliograph.cli.demo_station import DemoStation
from heliograph.lab.fcm import FcmService
from heliograph.wire import base64url
from heliograph.wire.ids import format_push_target_id

APP = "com.example.android"
WAIT_S = 10.0


async def wake_by_fcm(report: Report, station: DemoStation, firebase: FcmService) -> None:
    """Register a device of FCM, wake it, and show what FCM and the device saw."""
    clock, entropy = SystemClock(), SystemEntropy()
    report.heading("An Android device registers through the same Gateway and is woken through FCM.")
    push_key, target = firebase.register(), format_push_target_id(entropy.octets(32))
    device = f"ak:device:{entropy.uuid7(clock.now())}"
    handoff: dict[str, str | bool] = {
        "registration_id": base64url.encode(entropy.octets(16)),
        "push_target_id": target,
        "device_id": device,
        "state": "active",
        "push_key": push_key.reveal(),
        "app_id": APP,
        "platform": "android",
        "visible_notification_opt_in": False,
    }
    status, _ = await station.post(station.pen.handoff(handoff, clock.now()))
    report.saw("Station", f"POST registrations:apply → {status}")
    note = {"push_target_id": target, "wakeup_kind": "mention", "devices": [{"device_id": device}]}
    status, answer = await station.post(
        station.pen.notify({"notification": note}, "demo-fcm-0001", clock.now())
    )
    told = [outcome.get("gateway_status") for outcome in json.loads(answer).get("outcomes", [])]
    report.saw("Station", f"POST notify → {status} {told}")
    report.check((status, told) == (HTTPStatus.OK, ["accepted"]), "accepted, and on disk")
    begun = clock.monotonic()
    while not firebase.messages and clock.monotonic() - begun < WAIT_S:
        await clock.sleep(0.02)
    report.saw("provider", f"{firebase.granted} bearer token granted to the service account")
    for message in firebase.messages:
        report.saw("provider", f"android {json.dumps(dict(message.android))}")
        report.saw("device", json.dumps(dict(message.data)))
    report.check(
        [dict(message.data) for message in firebase.messages]
        == [{"push_target_id": target, "wakeup_kind": "mention"}],
        "one message arrived; it says wake up, and nothing more",
    )
