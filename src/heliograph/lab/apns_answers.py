"""Every answer of APNs by name."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from heliograph.lab.receiver import Misbehaviour, Reaction, Reply, Spoiled


def reason(status: int, word: str, **more: int) -> Reply:
    """Answer as APNs does: a reason, and perhaps since when."""
    return Reply(status, {"content-type": "application/json"}, json.dumps({"reason": word, **more}).encode())


ANSWERS: Final[Mapping[str, Reaction]] = MappingProxyType(
    {
        "accepted": Reply(200),
        "bad_device_token": reason(400, "BadDeviceToken"),
        "device_token_not_for_topic": reason(400, "DeviceTokenNotForTopic"),
        "bad_collapse_id": reason(400, "BadCollapseId"),
        "bad_expiration_date": reason(400, "BadExpirationDate"),
        "bad_message_id": reason(400, "BadMessageId"),
        "bad_priority": reason(400, "BadPriority"),
        "duplicate_headers": reason(400, "DuplicateHeaders"),
        "invalid_push_type": reason(400, "InvalidPushType"),
        "payload_empty": reason(400, "PayloadEmpty"),
        "missing_device_token": reason(400, "MissingDeviceToken"),
        "bad_topic": reason(400, "BadTopic"),
        "missing_topic": reason(400, "MissingTopic"),
        "topic_disallowed": reason(400, "TopicDisallowed"),
        "idle_timeout": reason(400, "IdleTimeout"),
        "reason_of_tomorrow": reason(400, "ReasonOfTomorrow"),
        "expired_provider_token": reason(403, "ExpiredProviderToken"),
        "invalid_provider_token": reason(403, "InvalidProviderToken"),
        "missing_provider_token": reason(403, "MissingProviderToken"),
        "forbidden": reason(403, "Forbidden"),
        "bad_certificate": reason(403, "BadCertificate"),
        "bad_certificate_environment": reason(403, "BadCertificateEnvironment"),
        "unrelated_key_id": reason(403, "UnrelatedKeyIdInToken"),
        "bad_environment_key_id": reason(403, "BadEnvironmentKeyIdInToken"),
        "bad_path": reason(404, "BadPath"),
        "method_not_allowed": reason(405, "MethodNotAllowed"),
        "unregistered": reason(410, "Unregistered", timestamp=4_102_444_800_000),
        "unregistered_long_ago": reason(410, "Unregistered", timestamp=1_500_000_000_000),
        "expired_token": reason(410, "ExpiredToken", timestamp=4_102_444_800_000),
        "gone_without_a_reason": Reply(410),
        "payload_too_large": reason(413, "PayloadTooLarge"),
        "too_many_requests": reason(429, "TooManyRequests"),
        "too_many_provider_token_updates": reason(429, "TooManyProviderTokenUpdates"),
        "internal_server_error": reason(500, "InternalServerError"),
        "service_unavailable": reason(503, "ServiceUnavailable"),
        "shutdown": reason(503, "Shutdown"),
        "teapot": Reply(418),
        "hang": Spoiled(Misbehaviour.HANG),
        "slow_headers": Spoiled(Misbehaviour.SLOW_HEADERS),
        "cut": Spoiled(Misbehaviour.CUT),
        "cut_mid_headers": Spoiled(Misbehaviour.CUT_MID_HEADERS),
        "truncated": Spoiled(Misbehaviour.TRUNCATED, Reply(400, {}, b'{"reason":"BadDev')),
        "truncated_accepted": Spoiled(Misbehaviour.TRUNCATED, Reply(200)),
        "not_http": Spoiled(Misbehaviour.NOT_HTTP),
        "silent": Spoiled(Misbehaviour.SILENT),
        "reset": Spoiled(Misbehaviour.RESET),
        "refused": Spoiled(Misbehaviour.REFUSED),
        "go_away": Spoiled(Misbehaviour.GO_AWAY),
    }
)
"""Every answer by name: each row of the verdict table, and each way to give none. What ended a token says so
of the year 2100: later than any registration."""
