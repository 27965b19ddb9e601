"""From a sealed preference on one device to a banner on another."""

import dataclasses

import pytest

from heliograph.arkret.client.account_data import AccountSecret, open_value, seal_value
from heliograph.arkret.client.attention import Attention, Outcome
from heliograph.arkret.client.blocklist import NOWHERE
from heliograph.arkret.client.facts import facts_of
from heliograph.arkret.client.holder import Write, sign_event, verify_write, write_event
from heliograph.arkret.client.kept import Key
from heliograph.arkret.client.preferences import NOTHING_CONFIGURED, Preferences
from heliograph.arkret.client.registration import Registered, RouteBook
from heliograph.arkret.client.wakeup import read_wakeup
from heliograph.delivery.blind import blind_members
from heliograph.delivery.model import Wakeup, WakeupKind
from heliograph.pushrules.arkret.event import read_event
from heliograph.pushrules.document import DocumentRefused
from heliograph.signing.ed25519 import SigningKey
from heliograph.wire.ids import PushTargetId, RegistrationId, VerificationMethod
from heliograph.wire.strict_json import JsonValue
from tests.arkret.client.make import MIDNIGHT, NOON, TZDB, night_document, rules_document
from tests.arkret.make import REGISTRATION, TARGET
from tests.pushrules.arkret.make import ALICE, BOB, KEYWORD, MENTION, REALM, rule

SECRET = AccountSecret(bytes(range(32)))
METHOD = VerificationMethod("did:web:alice.example#phone")
PHONE = SigningKey(bytes(32))
PLAINTEXT = {"body": "urgent: look at this", "mentions": []}


def synced(key: Key, revision: int, document: JsonValue) -> "JsonValue | DocumentRefused":
    """Seal and sign on one device, carry it through a Station, verify and open it on another."""
    sealed = seal_value(SECRET, ALICE, key, document, revision.to_bytes(24, "big"))
    event = sign_event(write_event(ALICE, Write(key, revision - 1, sealed), NOON), METHOD, PHONE, NOON)
    try:
        write = verify_write(event, ALICE, {METHOD: PHONE.verify_key})
        return open_value(SECRET, ALICE, write.key, write.envelope)
    except DocumentRefused as refused:
        return refused


def preferences() -> Preferences:
    mention = rule("underride.mention", MENTION)
    urgent = rule("content.urgent", KEYWORD, actions=["notify", "sound_critical"])
    made = NOTHING_CONFIGURED.with_rules(1, synced(Key.PUSH_RULES, 1, rules_document(mention, urgent)))
    return made.with_dnd(1, synced(Key.DND_SCHEDULE, 1, night_document("content.urgent")))


@pytest.mark.clause("R006", "R022", "R033", "R212", "R282", "R322", "R347")
def test_a_blind_wakeup_becomes_a_banner_only_after_fetching_decrypting_and_judging() -> None:
    """The wakeup names a target and a class; everything that is shown was decrypted here."""
    book = RouteBook().remember(ALICE, Registered(PushTargetId(TARGET), RegistrationId(REGISTRATION)))
    wakeup = read_wakeup(blind_members(Wakeup(TARGET, WakeupKind.MESSAGE)))
    me = book.account_of(wakeup.push_target_id)
    assert me == ALICE
    fetched = {
        "kind": "ak.message.create",
        "realm_id": REALM,
        "actor_id": BOB.members(),
        "payload": {"encrypted_payload": "…"},
    }
    sealed, plain = read_event(fetched, readable=False), read_event(fetched | {"payload": PLAINTEXT})
    attention = Attention(preferences(), TZDB)
    before = attention.judge(sealed, facts_of(sealed, me), now=MIDNIGHT)
    after = attention.wake([(plain, facts_of(plain, me), NOWHERE)], MIDNIGHT)

    assert (before.disturbs, before.again) == (False, True)
    assert [(outcome.disturbs, outcome.rule_id) for outcome in after] == [(True, "content.urgent")]


@pytest.mark.clause("R159")
def test_a_preference_decides_attention_and_never_access() -> None:
    """An outcome says what is seen and heard, and has no word for what may be read."""
    assert [field.name for field in dataclasses.fields(Outcome)] == [
        *("display", "sound", "rule_id", "again", "trace")
    ]
