"""Builders for what a client holds: legal by default, changed where a test says so."""

from typing import Any

from heliograph.ambient.tzdb import open_tzdb
from heliograph.arkret.client.attention import Attention, Outcome
from heliograph.arkret.client.blocklist import NOWHERE, Origin
from heliograph.arkret.client.preferences import NOTHING_CONFIGURED, Preferences
from heliograph.pushrules.arkret.event import Account, Event, Facts
from heliograph.wire.instant import parse_instant
from tests.pushrules.arkret.make import BOB, message, rule

TZDB = open_tzdb()
MIDNIGHT = parse_instant("2026-01-15T16:00:00.000Z", "at")
"""Midnight in Shanghai."""

NOON = parse_instant("2026-01-15T04:00:00.000Z", "at")
"""Noon in Shanghai."""


def rules_document(*rules: dict[str, Any]) -> dict[str, Any]:
    """Return a rule set as it is written."""
    return {"rules": list(rules)}


def night_document(*exceptions: str, **changes: Any) -> dict[str, Any]:
    """Return quiet hours from ten in the evening to eight in the morning, in Shanghai."""
    schedule = {
        "timezone": "Asia/Shanghai",
        "tzdb_version": "2025b",
        "all_day": False,
        "periods": [{"start": "22:00", "end": "08:00"}],
    } | changes
    return {"dnd": {"enabled": True, "schedule": schedule, "exceptions": list(exceptions)}}


def entry(number: int = 0, target: object = None, **changes: Any) -> dict[str, Any]:
    """Return an entry of a blocklist, against Bob unless told otherwise."""
    return {
        "entry_id": f"ak:block:019640b3-cc00-7000-8000-{number:012x}",
        "target": target or {"kind": "actor", "actor_id": BOB.members()},
        "mode": "block",
        "applies_to": ["notifications"],
        "reason_code": "harassment",
        "created_at": "2026-04-26T10:00:00.000Z",
        "expires_at": None,
    } | changes


def blocklist_document(*entries: dict[str, Any], version: object = 1) -> dict[str, Any]:
    """Return a blocklist as it is written."""
    return {"version": version, "entries": list(entries)}


def preferences(*rules: dict[str, Any], night: object = None, blocked: object = None) -> Preferences:
    """Return preferences; without rules there is no rule set at all."""
    made = NOTHING_CONFIGURED
    if rules:
        made = made.with_rules(1, rules_document(*rules))
    if night is not None:
        made = made.with_dnd(1, night)
    if blocked is not None:
        made = made.with_blocklist(1, blocked)
    return made


def judge(
    made: Preferences,
    event: Event | None = None,
    facts: Facts | None = None,
    origin: Origin = NOWHERE,
    *,
    now: int = NOON,
    explain: bool = False,
) -> Outcome:
    """Judge a message, or another Event, at noon unless told otherwise."""
    return Attention(made, TZDB).judge(event or message(), facts or Facts(), origin, now=now, explain=explain)


ALWAYS = rule("underride.always")
STATION = Account("ak:did_core:web:alice.example", "ak:did_core:web:station.example")
