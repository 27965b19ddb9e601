"""The predefined rules, in the seed's order; they stand in ``defaults.json``, in words of our own.

Some ask about the person whose rules they are. In the file and in memory such a condition says so, and it is
turned into a pattern with a user id in it only when the rules are shown to that person. So everybody shares
the same predefined rules, which is what lets a whole room be judged at once; and a user id or a name is never
a pattern, whatever characters it holds.
"""

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from heliograph.pushrules.matrix.actions import Actions, read_actions
from heliograph.pushrules.matrix.conditions import (
    Condition,
    ContainsDisplayName,
    ContainsLocalpart,
    IsMentioned,
    IsTarget,
    SaysNoMentions,
    read_condition,
)
from heliograph.pushrules.matrix.dialect import Dialect
from heliograph.pushrules.matrix.rule import Kind, Rule
from heliograph.pushrules.matrix.spelling import spell
from heliograph.pushrules.matrix.subject import localpart

MASTER: Final = ".m.rule.master"
"""The rule that stays ahead of everything; switched on, it silences everything."""

_SOUND: Final = {"set_tweak": "sound", "value": "default"}
_HIGHLIGHT: Final = {"set_tweak": "highlight"}
_ACTIONS: Final[Mapping[str, Actions]] = {
    words: read_actions(actions)
    for words, actions in {
        "nothing": [],
        "notify": ["notify"],
        "notify with default sound": ["notify", _SOUND],
        "notify with ring": ["notify", {"set_tweak": "sound", "value": "ring"}],
        "notify with highlight": ["notify", _HIGHLIGHT],
        "notify with default sound and highlight": ["notify", _SOUND, _HIGHLIGHT],
    }.items()
}

_Document: TypeAlias = dict[str, Any]
_USER_ID: Final = {"of": "user_id"}
_LOCALPART: Final = {"of": "localpart"}


def _plain(document: _Document) -> tuple[Condition, _Document]:
    return read_condition(document, ""), document


_CONDITIONS: Final[Mapping[str, Callable[[_Document], tuple[Condition, _Document]]]] = {
    "text": lambda row: _plain({"kind": "event_match", "key": row["text"], "pattern": row["is"]}),
    "value": lambda row: _plain({"kind": "event_property_is", "key": row["value"], "value": row["is"]}),
    "members": lambda row: _plain({"kind": "room_member_count", "is": row["members"]}),
    "sender may notify": lambda row: _plain(
        {"kind": "sender_notification_permission", "key": row["sender may notify"]}
    ),
    "target": lambda _: (IsTarget(), {"kind": "event_match", "key": "state_key", "pattern": _USER_ID}),
    "mentions": lambda _: (
        IsMentioned(),
        {"kind": "event_property_contains", "key": r"content.m\.mentions.user_ids", "value": _USER_ID},
    ),
    "body": lambda row: (
        (ContainsDisplayName(), {"kind": "contains_display_name"})
        if row["body"] == "display name"
        else (ContainsLocalpart(), _LOCALPART)
    ),
}


def _read(kind: Kind, row: _Document) -> Rule:
    pairs = [_CONDITIONS[next(iter(condition))](condition) for condition in row["if"]]
    documents = [document for _, document in pairs]
    unseen = (SaysNoMentions(),) if row.get("legacy") else ()
    return Rule(
        kind,
        row["id"],
        enabled=not row.get("off"),
        actions=_ACTIONS[row["do"]],
        conditions=(*unseen, *(condition for condition, _ in pairs)),
        asks=spell(documents[0] if kind is Kind.CONTENT else documents, "defaults"),
        default=True,
    )


_FILE: Final[dict[str, list[_Document]]] = json.loads(
    files(__package__).joinpath("defaults.json").read_text(encoding="utf-8")
)
_LEGACY: Final = frozenset(row["id"] for rows in _FILE.values() for row in rows if row.get("legacy"))
_ALL: Final = tuple(_read(Kind(kind), row) for kind, rows in _FILE.items() for row in rows)
_MODERN: Final = tuple(rule for rule in _ALL if rule.rule_id not in _LEGACY)


def predefined(dialect: Dialect) -> tuple[Rule, ...]:
    """Return the predefined rules of a reading, kind by kind, in order."""
    return _ALL if dialect.legacy_mentions else _MODERN


BY_ID: Final[Mapping[tuple[Kind, str], Rule]] = MappingProxyType(
    {(rule.kind, rule.rule_id): rule for rule in _ALL}
)
"""Every predefined rule of every reading."""


def shown_to(rule: Rule, user_id: str) -> _Document:
    """Show a rule as one user's clients see it: what it asks about the person is spelled out.

    Args:
        rule: Any rule; those that users wrote are shown as they are.
        user_id: Whose rules they are.
    """
    document = rule.document()
    if rule.default:
        own = {"user_id": user_id, "localpart": localpart(user_id)}
        if rule.kind is Kind.CONTENT:
            document["pattern"] = own[document["pattern"]["of"]]
        for condition in document.get("conditions", ()):
            for name, value in condition.items():
                if isinstance(value, dict):
                    condition[name] = own[value["of"]]
    return document
