"""Builders of rules, Events and subjects: legal by default, changed where a test says so."""

from typing import Any

from heliograph.pushrules.arkret.chain import Chain
from heliograph.pushrules.arkret.event import Account, Event, Facts, Subject
from heliograph.pushrules.arkret.ruleset import read_ruleset

ALICE = Account("ak:did_core:web:alice.example", "ak:did_core:web:station.example")
BOB = Account("ak:did_core:web:bob.example", "ak:did_core:web:station.example")
REALM = "ak:realm:" + "A" * 44
STRAND = "ak:strand:" + "A" * 44


def rule(rule_id: str = "content.one", *conditions: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a rule as it is written; a change to None leaves the member out."""
    written = {
        "rule_id": rule_id,
        "kind": rule_id.partition(".")[0],
        "enabled": True,
        "evaluation_locus": "client",
        "conditions": list(conditions),
        "actions": ["notify"],
    } | changes
    return {name: value for name, value in written.items() if value is not None}


def chain(*rules: dict[str, Any]) -> Chain:
    """Compile rules as they are written."""
    return Chain(read_ruleset({"rules": list(rules)}))


def message(body: str | None = "hello", **changes: Any) -> Event:
    """Return a message that Bob wrote."""
    known: dict[str, Any] = {
        "kind": "ak.message.create",
        "realm_id": REALM,
        "sender": BOB,
        "payload": {} if body is None else {"body": body},
        "body": body,
    }
    return Event(**(known | changes))


def subject(event: Event | None = None, **facts: Any) -> Subject:
    """Return a message, or another Event, with what is known of it."""
    return Subject(event or message(), Facts(**facts))


def matched(rules: Chain, judged: Subject) -> str | None:
    """Name the rule that decides."""
    found = rules.decide(judged)
    return None if found is None else found.rule_id


FIELD = {"kind": "field_match", "field": "realm_id", "pattern": REALM}
KEYWORD = {"kind": "contains_keyword", "pattern": "urgent|紧急|P0"}
MENTION = {"kind": "mentions_actor"}
DIRECT = {"kind": "is_direct_message"}
SMALL = {"kind": "member_count", "op": "<=", "value": 10}
DISCUSSION = {"kind": "strand_track", "pattern": "discussion"}
MUTED = {"kind": "watch_state", "pattern": "muted"}
