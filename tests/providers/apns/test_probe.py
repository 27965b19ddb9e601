"""An APNs key is proved by what APNs says of a token that no device has."""

import pytest
from tests.deliveries import moment
from tests.providers.apns.provider import provider, refused

from heliograph.delivery.exchange import Answer, Ask, Loss, Lost
from heliograph.delivery.model import Outcome, Verdict
from heliograph.providers.apns.exchange import IMPOSSIBLE_TOKEN, ApnsProvider
from heliograph.providers.apns.settings import ApnsSettings, Environment


def probed(by: ApnsProvider, *heards: Answer | Lost) -> tuple[Verdict, list[Ask]]:
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


def test_a_complaint_about_the_token_is_praise_of_the_key() -> None:
    """It is looked at after the key; the topic is the one that pushes would have."""
    verdict, asks = probed(provider(), refused(400, "BadDeviceToken"))

    assert verdict == Verdict(Outcome.ACCEPTED, "apns_key_proved")
    assert asks[0].url.reveal() == f"https://api.push.apple.com/3/device/{IMPOSSIBLE_TOKEN}"
    assert asks[0].headers["apns-topic"] == "org.example.a"


def test_a_key_for_both_environments_is_proved_in_both() -> None:
    """A key of one of them must not pass for the other."""
    both = provider(environment=Environment.BOTH)
    good, asks = probed(both, refused(400, "BadDeviceToken"), refused(400, "BadDeviceToken"))
    half, _ = probed(both, refused(400, "BadDeviceToken"), refused(403, "BadEnvironmentKeyIdInToken"))

    assert good.outcome is Outcome.ACCEPTED
    assert [ask.url.reveal().split("/")[2] for ask in asks] == [
        "api.push.apple.com",
        "api.sandbox.push.apple.com",
    ]
    assert half == Verdict(Outcome.CONFIG_BAD, "apns_bad_environment_key_id")


@pytest.mark.parametrize(
    ("heard", "outcome"),
    [
        (refused(403, "InvalidProviderToken"), Outcome.CONFIG_BAD),
        (refused(400, "TopicDisallowed"), Outcome.CONFIG_BAD),
        (refused(503, "ServiceUnavailable"), Outcome.TRANSIENT),
        (Answer(200, {}, b""), Outcome.UNKNOWN),
        (refused(400, "PayloadEmpty"), Outcome.UNKNOWN),
        (Lost(Loss.NOT_SENT), Outcome.TRANSIENT),
    ],
)
def test_any_other_answer_proves_nothing_and_comes_with_advice(
    heard: Answer | Lost, outcome: Outcome
) -> None:
    """Nobody is told that all is well."""
    verdict, _ = probed(provider(), heard)

    assert verdict.outcome is outcome
    assert provider().advice(verdict)


def test_an_application_with_its_own_topic_signs_with_the_same_token() -> None:
    """A second token for one key would count as a change of it."""
    whole = provider()
    own = whole.tailored(
        ApnsSettings(team_id="TEAM567890", key_id="KEY4567890", key="file:/k", topic="org.example.b")
    )
    _, first = probed(whole, refused(400, "BadDeviceToken"))
    _, second = probed(own, refused(400, "BadDeviceToken"))

    assert own.credential == "ios"
    assert first[0].headers["authorization"] == second[0].headers["authorization"]
    assert second[0].headers["apns-topic"] == "org.example.b"
    assert own.identity()["key_id"] == "KEY4567890"
