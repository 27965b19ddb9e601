"""One suite for every adapter of the table: whatever happens, it ends in a verdict that is fit to act on."""

import json
import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import deliveries
from tests.deliveries import FULLEST, NOW, TARGET, drive, moment
from tests.providers.apns import provider as apns
from tests.providers.cases import HERE, answer_rows
from tests.providers.fcm import account as fcm

from heliograph.delivery.egress import EgressRules
from heliograph.delivery.exchange import Answer, Ask, Loss, Lost
from heliograph.delivery.model import Counts, Delivery, Outcome, Verdict, Wakeup, WakeupKind
from heliograph.delivery.provider import Probe, Provider
from heliograph.delivery.retry_after import RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN
from heliograph.providers import ADAPTERS
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

SETTINGS: Mapping[str, Mapping[str, object]] = {
    "apns": {"team_id": apns.TEAM_ID, "key_id": apns.KEY_ID, "key": "env:APNS", "topic": apns.TOPIC},
    "fcm": {"project_id": "project-1", "service_account": "env:FCM"},
    "stub": {"url": "https://stub.example.org/wakeups"},
    "unifiedpush": {"subject": deliveries.SUBJECT, "vapid_key": "env:VAPID", "hosts": []},
    "webpush": {"subject": deliveries.SUBJECT, "vapid_key": "env:VAPID", "hosts": ["push.example.org"]},
}
SECRETS: Mapping[str, str] = {
    "env:APNS": apns.PEM,
    "env:FCM": fcm.ACCOUNT,
    "env:VAPID": deliveries.VAPID_SCALAR,
}
BEFORE: Mapping[str, tuple[Answer, ...]] = {"fcm": (fcm.grant(),)}
"""What is heard before the message itself is asked."""

PUSH_KEYS: Mapping[str, Callable[[], Secret]] = {
    "apns": apns.push_key,
    "fcm": lambda: Secret(fcm.PUSH_KEY),
    "stub": lambda: Secret("any"),
    "unifiedpush": lambda: Secret(deliveries.push_key().reveal().replace("webpush:", "unifiedpush:", 1)),
    "webpush": deliveries.push_key,
}
ASKS_MAX = 3
ASKS_PROBED_MAX = 8
RETRIABLE = {Outcome.THROTTLED_TARGET, Outcome.THROTTLED_APP, Outcome.TRANSIENT}


def built(name: str) -> Provider:
    return ADAPTERS[name].build_from(
        SETTINGS[name], lambda reference: Secret(SECRETS[reference]), EgressRules(), f"the-{name}"
    )


def outgoing(name: str, content: Wakeup | None = None) -> Delivery:
    return deliveries.delivery(PUSH_KEYS[name](), provider=name, content=content)


every_adapter = pytest.mark.parametrize("name", sorted(ADAPTERS))


@every_adapter
def test_it_is_a_provider_under_its_own_name(name: str) -> None:
    """The table's key is the name that routes carry; the credential is the operator's word for a section."""
    provider = built(name)

    assert isinstance(provider, Provider)
    assert (provider.name, provider.credential) == (name, f"the-{name}")


@every_adapter
def test_settings_are_closed_and_secrets_are_named_not_held(name: str) -> None:
    """A member more is refused; the repr of a provider shows no key."""
    with pytest.raises((ValueError, TypeError)):
        ADAPTERS[name].build_from(
            {**SETTINGS[name], "surprise": 1}, lambda reference: Secret("x"), EgressRules(), name
        )

    assert deliveries.VAPID_SCALAR not in repr(built(name))


@every_adapter
def test_its_rows_name_every_loss_and_every_outcome_it_knows(name: str) -> None:
    """No adapter leaves a way to lose an answer untold."""
    rows = answer_rows(name)
    lost = {heard.loss for heards, _ in rows.values() for heard in heards if isinstance(heard, Lost)}
    reached = {verdict.outcome for _, verdict in rows.values()}

    assert lost == set(Loss)
    assert reached >= {
        Outcome.ACCEPTED,
        Outcome.TOKEN_DEAD,
        Outcome.PAYLOAD_BAD,
        Outcome.CONFIG_BAD,
        Outcome.TRANSIENT,
        Outcome.UNKNOWN,
    }


@every_adapter
@pytest.mark.parametrize("loss", Loss)
def test_only_what_may_have_arrived_is_ambiguous(name: str, loss: Loss) -> None:
    """And no loss ever costs a token."""
    heard: list[Answer | Lost] = [*BEFORE.get(name, ()), Lost(loss)]
    _, verdict = drive(built(name).exchange(outgoing(name), moment()), heard)

    assert verdict.ambiguous == (loss in (Loss.CUT, Loss.TIMED_OUT))
    assert verdict.outcome is not Outcome.TOKEN_DEAD
    if loss is not Loss.REFUSED_EGRESS:
        assert verdict.outcome is Outcome.TRANSIENT


heard_anything = st.builds(
    Answer,
    status=st.integers(100, 999),
    headers=st.dictionaries(
        st.sampled_from(["retry-after", "ttl", "stub-dead-since", "stub-throttles", "location"]), st.text()
    ),
    body=st.binary(max_size=100)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["errno", "reason", "code", "x"]), inner, max_size=3)
        ),
    ).map(lambda value: json.dumps(value).encode()),
) | st.builds(Lost, st.sampled_from(Loss))


@every_adapter
@given(heard=st.lists(heard_anything, min_size=ASKS_MAX, max_size=ASKS_MAX))
def test_every_answer_whatever_ends_in_a_fit_verdict(name: str, heard: list[Answer | Lost]) -> None:
    """No status, header or body raises, lengthens the conversation, or leaks into the reason."""
    exchange = built(name).exchange(outgoing(name), moment())
    asks = [next(exchange)]
    verdict: Verdict | None = None
    for one in heard:
        try:
            asks.append(exchange.send(one))
        except StopIteration as end:
            verdict = end.value
            break

    assert isinstance(verdict, Verdict)
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,63}", verdict.reason)
    assert verdict.reason.startswith(f"{name}_")
    if verdict.retry_after_ms is not None:
        assert verdict.outcome in RETRIABLE
        assert RETRY_AFTER_MS_MIN <= verdict.retry_after_ms <= RETRY_AFTER_MS_MAX
    assert verdict.dead_since is None or verdict.outcome is Outcome.TOKEN_DEAD


@every_adapter
def test_every_attempt_shows_the_provider_the_same_identity(name: str) -> None:
    """P8, I8: a retry differs in nothing that folds; its body is built anew, never wrapped again."""
    provider, delivery = built(name), outgoing(name)
    first = next(provider.exchange(delivery, moment(b"a" * 64, NOW)))
    again = next(provider.exchange(delivery, moment(b"b" * 64, NOW)))

    assert (first.url, first.method, first.headers) == (again.url, again.method, again.headers)
    assert len(first.body) == len(again.body)


@every_adapter
def test_no_ask_shows_itself(name: str) -> None:
    """Not its URL, its headers or its body."""
    ask: Ask = next(built(name).exchange(outgoing(name), moment()))
    shown = repr(ask)

    assert ask.url.reveal() not in shown
    assert not any(value in shown for value in ask.headers.values() if len(value) > 6)
    assert TARGET not in shown


@every_adapter
def test_the_largest_legal_wakeup_fits(name: str) -> None:
    """Whatever the wire schema admits can be sent."""
    assert built(name).fits(FULLEST)


@every_adapter
def test_a_push_key_of_no_kind_is_refused(name: str) -> None:
    """Empty and oversized ones, whatever the provider."""
    for wrong in ("", "x" * 4_097, "webpush:" + "x" * 4_097):
        with pytest.raises(Malformed):
            built(name).check_push_key(Secret(wrong))
    built(name).check_push_key(PUSH_KEYS[name]())


@pytest.mark.clause("R279", "R280")
def test_the_type_of_a_wakeup_can_hold_nothing_but_the_allow_list() -> None:
    """No field for a Realm, a sender, an event, a route token or a reason exists to be forwarded."""
    assert set(Wakeup.__slots__) == {"push_target_id", "kind", "push_hint", "push_hint_l10n_key", "counts"}
    assert set(Counts.__slots__) == {"badge", "unread_increment", "missed_call"}
    with pytest.raises(TypeError):
        Wakeup(TARGET, WakeupKind.MESSAGE, realm_id="ak:realm:x")  # type: ignore[call-arg] # that is the point
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(Wakeup(TARGET, WakeupKind.MESSAGE), "event_id", "ak:event:x")


@every_adapter
def test_it_has_golden_cases(name: str) -> None:
    """Answers and payloads, as data."""
    assert {path.name for path in (HERE / name / "cases").iterdir()} >= {"answers.json", "payloads.json"}


@every_adapter
def test_it_proves_its_credential_and_tells_who_it_is_without_a_secret(name: str) -> None:
    """Whatever is heard, the probe ends in a verdict; what is wrong comes with something to do."""
    provider = built(name)
    assert isinstance(provider, Probe)

    heards: list[Answer | Lost] = [Answer(200, {}, b"{}"), Answer(403, {}, b""), *map(Lost, Loss)]
    for reach in (False, True):
        for heard in heards:
            verdict, asks = probed(provider, heard, reach=reach)
            assert len(asks) <= ASKS_PROBED_MAX
            assert bool(provider.advice(verdict)) == (verdict.outcome is not Outcome.ACCEPTED)
    assert deliveries.VAPID_SCALAR not in str(provider.identity())


def probed(provider: Probe, heard: Answer | Lost, *, reach: bool) -> tuple[Verdict, list[Ask]]:
    asks: list[Ask] = []
    probe = provider.probe(moment(), reach=reach)
    try:
        ask = next(probe)
        while True:
            asks.append(ask)
            ask = probe.send(heard)
    except StopIteration as end:
        verdict = end.value
        assert isinstance(verdict, Verdict)
        return verdict, asks
