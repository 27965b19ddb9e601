"""A service account is proved by a grant, and by what FCM says of a message to nobody."""

import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.deliveries import moment

from heliograph.delivery.exchange import Answer, Ask, Loss, Lost
from heliograph.delivery.model import Outcome, Verdict
from heliograph.providers.fcm.exchange import IMPOSSIBLE_TOKEN, FcmProvider
from heliograph.providers.fcm.settings import FcmSettings
from heliograph.wire.secret import Secret

ACCOUNT = json.dumps(
    {
        "type": "service_account",
        "client_email": "push@project-1.iam.example.com",
        "private_key_id": "key-1",
        "private_key": rsa.generate_private_key(65_537, 2_048)
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        .decode(),
    }
)
GRANT = Answer(200, {}, b'{"access_token":"bearer","expires_in":3600,"token_type":"Bearer"}')


def provider() -> FcmProvider:
    return FcmProvider(
        FcmSettings(project_id="project-1", service_account="file:/k"), service_account=Secret(ACCOUNT)
    )


def fcm_error(status: int, code: str) -> Answer:
    detail = {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}
    return Answer(status, {}, json.dumps({"error": {"details": [detail]}}).encode())


def probed(by: FcmProvider, *heards: Answer | Lost) -> tuple[Verdict, list[Ask]]:
    probe, asks = by.probe(moment(), reach=False), []
    try:
        asks.append(next(probe))
        for heard in heards:
            asks.append(probe.send(heard))  # noqa: PERF401 - what was asked before the end counts
    except StopIteration as end:
        verdict = end.value
        assert isinstance(verdict, Verdict)
        return verdict, asks
    raise AssertionError("the probe asked more than was answered")


@pytest.mark.parametrize(
    "heard", [Answer(200, {}, b"{}"), Answer(400, {}, b"{}"), fcm_error(404, "UNREGISTERED")]
)
def test_whoever_hears_about_the_message_may_send(heard: Answer) -> None:
    """The message is validated and goes to nobody."""
    verdict, asks = probed(provider(), GRANT, heard)

    assert verdict == Verdict(Outcome.ACCEPTED, "fcm_account_proved")
    assert json.loads(asks[1].body) == {
        "validate_only": True,
        "message": {"token": IMPOSSIBLE_TOKEN, "data": {}},
    }


@pytest.mark.parametrize(
    ("heards", "outcome"),
    [
        ([Answer(400, {}, b'{"error":"invalid_grant"}')], Outcome.CONFIG_BAD),
        ([Lost(Loss.TIMED_OUT)], Outcome.TRANSIENT),
        ([GRANT, fcm_error(403, "PERMISSION_DENIED")], Outcome.CONFIG_BAD),
        ([GRANT, Answer(404, {}, b"{}")], Outcome.CONFIG_BAD),
        ([GRANT, Answer(503, {}, b"")], Outcome.TRANSIENT),
        ([GRANT, Lost(Loss.CUT)], Outcome.TRANSIENT),
    ],
)
def test_any_other_answer_proves_nothing_and_comes_with_advice(
    heards: list[Answer | Lost], outcome: Outcome
) -> None:
    """Of the token endpoint and of the sending side."""
    verdict, _ = probed(provider(), *heards)

    assert verdict.outcome is outcome
    assert provider().advice(verdict)


def test_it_tells_the_account_and_not_the_key() -> None:
    """As they stand in Google's console."""
    assert provider().identity() == {
        "project_id": "project-1",
        "account": "push@project-1.iam.example.com",
        "key_id": "key-1",
    }
