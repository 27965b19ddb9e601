"""APNs on loopback, as strict as the real one, for both of its environments.

It issues signing keys and hands device tokens out, verifies provider tokens, ties a connection to the first
key that it sees there, lets it have one stream until somebody has proved a key and many after that, refuses a
token that changes too soon, counts octets, folds what a device shows by collapse id, and gives every answer
that APNs gives, on demand.
"""

import contextlib
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.lab.apns_answers import ANSWERS
from heliograph.lab.apns_keys import PRODUCTION, SANDBOX, AppleKey, AppleKeys, RefusedError
from heliograph.lab.certificates import Authority
from heliograph.lab.http2 import STREAMS_MAX, Http2Receiver
from heliograph.lab.receiver import Captured, Heard, Reaction, Reply, capture
from heliograph.lab.script import Observe, Script
from heliograph.wire.instant import Instant
from heliograph.wire.secret import Secret

TOPIC: Final = "com.example.lab"

PAYLOAD_OCTETS_MAX: Final = 4_096
COLLAPSE_ID_OCTETS_MAX: Final = 64
STREAMS_UNPROVED: Final = 1
"""What a connection may have open until a key is proved on it."""

_PUSH_TYPES: Final = frozenset(
    {
        "alert",
        "background",
        "complication",
        "controls",
        "fileprovider",
        "liveactivity",
        "location",
        "mdm",
        "pushtotalk",
        "voip",
        "widgets",
    }
)
_PATH: Final = re.compile(r"/3/device/([0-9a-f]*)", re.ASCII)
_BUNDLE: Final = re.compile(r"[A-Za-z0-9.-]+", re.ASCII)
_OK: Final = 200


@dataclass(slots=True)
class Device:
    """A device that has registered with APNs.

    Attributes:
        token: Its device token.
        environment: Where the token holds.
        topic: The application that it belongs to.
        unregistered_at: Since when the token is dead.
    """

    token: str
    environment: str
    topic: str
    unregistered_at: Instant | None = None

    @property
    def push_key(self) -> Secret:
        """The text to register it with."""
        return Secret(f"apns:{self.token}")


@dataclass(frozen=True, slots=True)
class Push:
    """A push that APNs took."""

    token: str
    environment: str
    apns_id: str
    collapse_id: str | None
    priority: str
    push_type: str
    topic: str
    expiration: str
    payload: bytes

    @property
    def members(self) -> dict[str, Any]:
        """What the application reads of it: everything but the system's own member."""
        members = json.loads(self.payload)
        assert isinstance(members, dict)  # noqa: S101 - it was read once already
        return {name: value for name, value in members.items() if name != "aps"}


class ApnsService:
    """Both environments of APNs: ``async with ApnsService.start() as service``.

    Attributes:
        production_origin: Scheme, host and port of production.
        sandbox_origin: The same of the sandbox.
        ca_pem: The authority to trust.
        key: A signing key for both environments and every topic.
        pushes: What was taken, in order, repeats included.
        heard: Every request.
        refusals: Why requests were refused by the service's own rules.
        answers: Queued answers; each request takes one before anything else is looked at.
        script: What is answered on demand, before anything else is looked at.
        observe: Told of every answer.
    """

    def __init__(self, now: Callable[[], Instant], streams: int) -> None:
        self._now = now
        self._streams = streams
        self._entropy = SystemEntropy()
        self._devices: dict[str, Device] = {}
        self._keys = AppleKeys(self._now)
        self.receivers: dict[str, Http2Receiver] = {}
        self.ca_pem = b""
        self.pushes: list[Push] = []
        self.heard: list[Heard] = []
        self.refusals: list[str] = []
        self.answers: deque[str | Reaction] = deque()
        self.script: Script | None = None
        self.observe: Observe | None = None
        self.key = self.issue_key()

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls,
        *,
        now: Callable[[], Instant] | None = None,
        authority: Authority | None = None,
        port: int = 0,
        sandbox_port: int = 0,
        streams: int = STREAMS_MAX,
    ) -> AsyncIterator["ApnsService"]:
        """Listen on 127.0.0.1 until the block ends.

        Args:
            now: The service's clock; the machine's own by default.
            authority: Who issues its certificates; a new one by default.
            port: Where production listens; 0 lets the system choose.
            sandbox_port: The same for the sandbox.
            streams: How many streams a connection may have open once a key is proved on it.
        """
        system = SystemClock()
        authority = authority or Authority.make(system.now())
        service = cls(now or system.now, streams)
        service.ca_pem = authority.ca_pem
        context = authority.server_context(system.now(), protocols=("h2",))
        async with contextlib.AsyncExitStack() as stack:
            for environment, at in ((PRODUCTION, port), (SANDBOX, sandbox_port)):
                service.receivers[environment] = await stack.enter_async_context(
                    Http2Receiver.start(
                        partial(service._react, environment), context, at, streams=STREAMS_UNPROVED
                    )
                )
            yield service

    @property
    def production_origin(self) -> str:
        """Scheme, host and port of production."""
        return f"https://localhost:{self.receivers[PRODUCTION].port}"

    @property
    def sandbox_origin(self) -> str:
        """Scheme, host and port of the sandbox."""
        return f"https://localhost:{self.receivers[SANDBOX].port}"

    @property
    def token_changes(self) -> list[tuple[str, int, Instant]]:
        """When connections changed their provider token, by environment and connection."""
        return self._keys.changes

    @property
    def connections(self) -> int:
        """How many connections were ever opened, to both."""
        return sum(receiver.connections for receiver in self.receivers.values())

    def issue_key(
        self, *, environments: tuple[str, ...] = (PRODUCTION, SANDBOX), topics: tuple[str, ...] | None = None
    ) -> AppleKey:
        """Issue a signing key for environments and topics; None stands for every topic."""
        return self._keys.issue(frozenset(environments), None if topics is None else frozenset(topics))

    def register(self, *, environment: str = PRODUCTION, topic: str = TOPIC) -> Device:
        """Hand a device token out."""
        device = Device(self._entropy.octets(32).hex(), environment, topic)
        self._devices[device.token] = device
        return device

    def unregister(self, device: Device) -> None:
        """End a device token: its application was removed."""
        device.unregistered_at = self._now()

    def shown(self, device: Device) -> list[Push]:
        """Return what the device shows: of the pushes with one collapse id, the last."""
        shown: dict[str, Push] = {}
        for push in self.pushes:
            if push.token == device.token:
                shown[push.collapse_id or push.apns_id] = push
        return list(shown.values())

    def _react(self, environment: str, heard: Heard) -> Reaction:
        self.heard.append(heard)
        match = _PATH.fullmatch(heard.target)
        token = "" if match is None else match[1]
        capture(Captured("apns", heard, _without_system(heard.body)))
        scripted = None if self.script is None else self.script.reaction("apns", token)
        taken = len(self.pushes)
        reaction = self._own(environment, heard, token) if scripted is None else scripted
        if self.observe is not None:
            message = self.pushes[-1].members if len(self.pushes) > taken else None
            self.observe(token, reaction, message, by_script=scripted is not None)
        return reaction

    def _own(self, environment: str, heard: Heard, token: str) -> Reaction:
        """Answer from the queue, or by the service's own rules."""
        if self.answers:
            queued = self.answers.popleft()
            return ANSWERS[queued] if isinstance(queued, str) else queued
        try:
            return self._judged(environment, heard, token)
        except RefusedError as refused:
            self.refusals.append(str(refused))
            return refused.reply

    def _judged(self, environment: str, heard: Heard, token: str) -> Reply:
        if heard.method != "POST":
            raise RefusedError(405, "MethodNotAllowed", "not a POST")
        if _PATH.fullmatch(heard.target) is None:
            raise RefusedError(404, "BadPath", "not /3/device/ and hexadecimal digits")
        key = self._keys.proved(environment, heard)
        self.receivers[environment].allow(heard.connection, self._streams)
        self._check_headers(heard.headers)
        topic = self._allowed_topic(heard.headers.get("apns-topic"), key)
        self._check_payload(heard.body)
        self._check_device(token, environment, topic)
        headers = heard.headers
        push = Push(
            token=token,
            environment=environment,
            apns_id=headers.get("apns-id") or str(UUID(bytes=self._entropy.octets(16), version=4)),
            collapse_id=headers.get("apns-collapse-id"),
            priority=headers.get("apns-priority", "10"),
            push_type=headers.get("apns-push-type", "alert"),
            topic=topic,
            expiration=headers.get("apns-expiration", ""),
            payload=heard.body,
        )
        self.pushes.append(push)
        return Reply(_OK, {"apns-id": push.apns_id})

    def _check_headers(self, headers: Mapping[str, str]) -> None:
        if any("," in value for name, value in headers.items() if name.startswith("apns-")):
            raise RefusedError(400, "DuplicateHeaders", "a header twice")
        if not _is_uuid(headers.get("apns-id")):
            raise RefusedError(400, "BadMessageId", "apns-id is no lower-case UUID")
        if re.fullmatch(r"[0-9]{1,12}", headers.get("apns-expiration", "0"), re.ASCII) is None:
            raise RefusedError(400, "BadExpirationDate", "apns-expiration is no number of seconds")
        if len(headers.get("apns-collapse-id", "").encode()) > COLLAPSE_ID_OCTETS_MAX:
            raise RefusedError(400, "BadCollapseId", "apns-collapse-id is too long")
        push_type, priority = headers.get("apns-push-type", ""), headers.get("apns-priority", "10")
        if push_type not in _PUSH_TYPES:
            raise RefusedError(400, "InvalidPushType", "apns-push-type is missing or unknown")
        if priority not in {"1", "5", "10"} or (push_type == "background" and priority == "10"):
            raise RefusedError(400, "BadPriority", "apns-priority does not go with the push type")

    def _allowed_topic(self, topic: str | None, key: AppleKey) -> str:
        if topic is None:
            raise RefusedError(400, "MissingTopic", "no apns-topic")
        if _BUNDLE.fullmatch(topic) is None:
            raise RefusedError(400, "BadTopic", "apns-topic is no bundle id")
        if key.topics is not None and topic not in key.topics:
            raise RefusedError(400, "TopicDisallowed", "the key may not push to this topic")
        return topic

    def _check_payload(self, body: bytes) -> None:
        if len(body) > PAYLOAD_OCTETS_MAX:
            raise RefusedError(413, "PayloadTooLarge", "more than 4096 octets")
        if _members(body).get("aps") is None:
            raise RefusedError(400, "PayloadEmpty", "no object with aps")

    def _check_device(self, token: str, environment: str, topic: str) -> None:
        if not token:
            raise RefusedError(400, "MissingDeviceToken", "no device token")
        device = self._devices.get(token)
        if device is None or device.environment != environment:
            raise RefusedError(400, "BadDeviceToken", "no device of this environment")
        if device.topic != topic:
            raise RefusedError(400, "DeviceTokenNotForTopic", "the device's token is for another topic")
        if device.unregistered_at is not None:
            raise RefusedError(410, "Unregistered", "the device is gone", timestamp=device.unregistered_at)


def _members(body: bytes) -> dict[str, Any]:
    try:
        members = json.loads(body)
    except ValueError:
        return {}
    return members if isinstance(members, dict) else {}


def _without_system(body: bytes) -> bytes | None:
    """Return what a payload tells the application, or None where it is none."""
    members = _members(body)
    return json.dumps({name: value for name, value in members.items() if name != "aps"}).encode()


def _is_uuid(text: str | None) -> bool:
    if text is None:
        return True
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
