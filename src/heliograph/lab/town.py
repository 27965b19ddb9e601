"""Every provider server of the lab at once, under one authority, with one script and one control endpoint."""

import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from heliograph.ambient.clock import SystemClock
from heliograph.lab import apns_answers, fcm, stub, unifiedpush, webpush
from heliograph.lab.apns import TOPIC, ApnsService, Device
from heliograph.lab.apns_keys import SANDBOX
from heliograph.lab.certificates import Authority
from heliograph.lab.fcm import FcmService
from heliograph.lab.receiver import Heard, Reaction, Receiver, Reply, Spoiled
from heliograph.lab.script import Observe, Rule, Script, rules_of, shortened
from heliograph.lab.stub import StubReceiver
from heliograph.lab.unifiedpush import UnifiedPushServer
from heliograph.lab.webpush import BrowserSubscription, WebPushService
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

CONTROL_PATH: Final = "/lab/answers"
RECEIVED_PATH: Final = "/lab/received"

UNIFIEDPUSH_PUSH_KEY_FILE: Final = "unifiedpush_push_key.txt"
PUSH_KEY_FILE: Final = "push_key.txt"
APNS_KEY_FILE: Final = "apns_key.p8"
APNS_PUSH_KEY_FILE: Final = "apns_push_key.txt"
FCM_ACCOUNT_FILE: Final = "fcm.json"
FCM_PUSH_KEY_FILE: Final = "fcm_push_key.txt"

KEPT_MAX: Final = 1_000
"""Requests and messages that a server remembers: a lab may run for days."""

_OWN: Final = "its own rules"


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the servers listen on 127.0.0.1; 0 lets the system choose."""

    webpush: int = 0
    unifiedpush: int = 0
    fcm: int = 0
    stub: int = 0
    control: int = 0
    apns: int = 0
    apns_sandbox: int = 0


@dataclass(slots=True)
class Town:
    """The running servers.

    Attributes:
        webpush: The Web Push service.
        unifiedpush: A push server of UnifiedPush.
        fcm: FCM, with a service account of its own.
        stub: The stub's receiver.
        apns: Apple's push service, both environments.
        subscription: One browser's subscription, to register.
        endpoint: One application's endpoint of UnifiedPush, to register.
        device: The push key of one device of FCM, to register.
        apple_device: One device of Apple's, to register; its token is one of the sandbox.
        script: What is answered on demand.
        ca_pem: The authority of every certificate.
        control_url: Where answers are changed while it runs.
        received: How many requests ended how, by server and answer.
    """

    webpush: WebPushService
    unifiedpush: UnifiedPushServer
    fcm: FcmService
    stub: StubReceiver
    apns: ApnsService
    subscription: BrowserSubscription
    endpoint: BrowserSubscription
    device: Secret
    apple_device: Device
    script: Script
    ca_pem: bytes
    control_url: str = ""
    received: Counter[tuple[str, str]] = field(default_factory=Counter)


@contextlib.asynccontextmanager
async def town(
    rules: tuple[Rule, ...] = (),
    ports: Ports = Ports(),
    told: Callable[[str], None] | None = None,
) -> AsyncIterator[Town]:
    """Run every server until the block ends.

    Args:
        rules: The script to begin with.
        ports: Where they listen.
        told: Called with one line for every request that a server answered; it holds no token in full.

    Raises:
        Malformed: A rule is wrong.
        OSError: A port is taken.
    """
    clock = SystemClock()
    authority = Authority.make(clock.now())
    tables = {
        "apns": apns_answers.ANSWERS,
        "fcm": fcm.ANSWERS,
        "stub": stub.ANSWERS,
        "unifiedpush": unifiedpush.ANSWERS,
        "webpush": webpush.ANSWERS,
    }
    script = Script(tables, clock.now)
    script.replace(rules)
    received: Counter[tuple[str, str]] = Counter()
    memories: list[list[Any]] = []

    def observed(provider: str) -> Observe:
        def note(token: str, reaction: Reaction, message: object, *, by_script: bool) -> None:
            answer = _spelled(reaction)
            received[provider, answer] += 1
            for remembered in memories:
                del remembered[:-KEPT_MAX]
            if told is not None:
                shown = "" if message is None else f": {json.dumps(message)}"
                why = "script" if by_script else _OWN
                told(f"{provider:<11} {shortened(token) or '-':<8} {answer} by {why}{shown}")

        return note

    async with contextlib.AsyncExitStack() as stack:
        browser = await stack.enter_async_context(
            WebPushService.start(authority=authority, port=ports.webpush)
        )
        distributor = await stack.enter_async_context(
            UnifiedPushServer.start(authority=authority, port=ports.unifiedpush)
        )
        firebase = await stack.enter_async_context(FcmService.start(authority=authority, port=ports.fcm))
        receiver = await stack.enter_async_context(StubReceiver.start(authority=authority, port=ports.stub))
        apple = await stack.enter_async_context(
            ApnsService.start(authority=authority, port=ports.apns, sandbox_port=ports.apns_sandbox)
        )
        memories += [browser.heard, browser.messages, browser.refusals, receiver.heard, receiver.wakeups]
        memories += [distributor.heard, distributor.messages, distributor.refusals]
        memories += [firebase.heard, firebase.messages, firebase.refusals]
        memories += [apple.heard, apple.pushes, apple.refusals, apple.token_changes]
        browser.script, browser.observe = script, observed("webpush")
        distributor.script, distributor.observe = script, observed("unifiedpush")
        firebase.script, firebase.observe = script, observed("fcm")
        receiver.script, receiver.observe = script, observed("stub")
        apple.script, apple.observe = script, observed("apns")
        running = Town(
            webpush=browser,
            unifiedpush=distributor,
            fcm=firebase,
            stub=receiver,
            apns=apple,
            subscription=browser.subscribe(),
            endpoint=distributor.subscribe(),
            device=firebase.register(),
            apple_device=apple.register(environment=SANDBOX),
            script=script,
            ca_pem=authority.ca_pem,
            received=received,
        )
        control = await stack.enter_async_context(
            Receiver.start(lambda heard: _controlled(heard, running), port=ports.control)
        )
        running.control_url = f"http://127.0.0.1:{control.port}{CONTROL_PATH}"
        yield running


def snippet(running: Town, folder: Path) -> str:
    """Return settings that deliver to the servers, for a Gateway on this machine."""
    return f"""\
data_dir = {_text(folder / "data")}

[log]
format = "console"

[egress]
allow_loopback = true
ca_file = {_text(folder / "ca.pem")}

[providers.webpush]
subject = "mailto:operator@example.com"
hosts = []

[providers.unifiedpush]
subject = "mailto:operator@example.com"
hosts = []

[providers.fcm]
project_id = "{fcm.PROJECT}"
service_account = {_text_of(f"file:{folder / FCM_ACCOUNT_FILE}")}
token_url = "{running.fcm.token_url}"
send_origin = "{running.fcm.origin}"

[providers.stub]
url = "{running.stub.url}"

[providers.apns]
team_id = "{running.apns.key.team_id}"
key_id = "{running.apns.key.key_id}"
key = {_text_of(f"file:{folder / APNS_KEY_FILE}")}
topic = "{TOPIC}"
environment = "both"
production_origin = "{running.apns.production_origin}"
sandbox_origin = "{running.apns.sandbox_origin}"

[apps."lab.apns"]
provider = "apns"

[apps."lab.webpush"]
provider = "webpush"

[apps."lab.unifiedpush"]
provider = "unifiedpush"

[apps."lab.fcm"]
provider = "fcm"

[apps."lab.stub"]
provider = "stub"
"""


def files(running: Town) -> dict[str, Secret]:
    """Return the secrets that the settings and whoever registers a device need, by the name of their file."""
    return {
        APNS_KEY_FILE: running.apns.key.pem,
        APNS_PUSH_KEY_FILE: running.apple_device.push_key,
        FCM_ACCOUNT_FILE: running.fcm.account,
        FCM_PUSH_KEY_FILE: running.device,
        PUSH_KEY_FILE: running.subscription.push_key,
        UNIFIEDPUSH_PUSH_KEY_FILE: running.endpoint.push_key,
    }


def _text(path: Path) -> str:
    return _text_of(str(path))


def _text_of(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _controlled(heard: Heard, running: Town) -> Reply:
    """Answer the control endpoint."""
    match heard.method, heard.target:
        case "GET", "/lab/answers":
            return _json(200, {"answers": running.script.rules})
        case "GET", "/lab/received":
            counted = sorted(running.received.items())
            return _json(
                200,
                [
                    {"provider": provider, "answer": answer, "count": count}
                    for (provider, answer), count in counted
                ],
            )
        case "POST", "/lab/answers":
            # A page in a browser cannot send this type to another origin without asking first.
            if heard.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return _json(415, {"problem": "send application/json"})
            try:
                running.script.replace(rules_of(msgspec.json.decode(heard.body)))
            except (Malformed, msgspec.DecodeError) as problem:
                return _json(422, {"problem": str(problem)})
            return _json(200, {"answers": running.script.rules})
        case _:
            return _json(404, {"problem": f"there are GET and POST {CONTROL_PATH}, and GET {RECEIVED_PATH}"})


def _json(status: int, document: object) -> Reply:
    return Reply(status, {"content-type": "application/json"}, msgspec.json.encode(document))


def _spelled(reaction: Reaction) -> str:
    return f"fault {reaction.how}" if isinstance(reaction, Spoiled) else str(reaction.status)
