"""A push server of UnifiedPush on loopback: the Web Push service with the manners of a self-hosted one.

Endpoints look like ntfy's, and a GET of one tells that it is one, as the specification asks. Everything that
a Web Push service is strict about, it is strict about too.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from heliograph.lab import webpush
from heliograph.lab.receiver import Heard, Reaction, Reply
from heliograph.lab.webpush import BrowserSubscription, WebPushService
from heliograph.wire.secret import Secret

DISCOVERY: Final = b'{"unifiedpush":{"version":1}}'


def _ntfy(code: int, headers: Mapping[str, str] = MappingProxyType({})) -> Reply:
    """Answer as ntfy does."""
    status = code // 100
    body = {"code": code, "http": status, "error": "for people"}
    return Reply(status, {"content-type": "application/json", **headers}, json.dumps(body).encode())


ANSWERS: Final[Mapping[str, Reaction]] = MappingProxyType(
    {
        **webpush.ANSWERS,
        "ntfy_limit": _ntfy(42_901),
        "ntfy_limit_9_seconds": _ntfy(42_908, {"retry-after": "9"}),
        "ntfy_nobody_there": _ntfy(50_701),
    }
)
"""Every answer by name: those of Web Push, for push services serve distributors too, and those of ntfy."""


class UnifiedPushServer(WebPushService):
    """A push server: ``async with UnifiedPushServer.start() as server``."""

    name: ClassVar[str] = "unifiedpush"
    table: ClassVar[Mapping[str, Reaction]] = ANSWERS

    def _endpoint(self, token: str) -> str:
        return f"{self.origin}/up{token}?up=1"

    def _push_key(self, endpoint: str, keys: Mapping[str, str]) -> Secret:
        return Secret("unifiedpush:" + json.dumps({"endpoint": endpoint, "keys": dict(keys)}))

    def _token(self, target: str) -> str:
        return target.removeprefix("/up").removesuffix("?up=1")

    def _own(self, heard: Heard, token: str, subscription: BrowserSubscription | None) -> Reaction:
        if heard.method == "GET" and subscription is not None:
            return Reply(200, {"content-type": "application/json"}, DISCOVERY)
        return super()._own(heard, token, subscription)
