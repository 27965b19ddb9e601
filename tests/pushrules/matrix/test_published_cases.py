"""The published cases for push-rule evaluators, each in the reading that it is written for."""

from dataclasses import replace
from typing import Any

import pytest

from heliograph.pushrules.glob import Alphabet
from heliograph.pushrules.matrix import editing
from heliograph.pushrules.matrix.actions import read_actions
from heliograph.pushrules.matrix.dialect import Dialect
from heliograph.pushrules.matrix.evaluation import Person, evaluate
from heliograph.pushrules.matrix.event import Event
from heliograph.pushrules.matrix.power import PowerLevels
from heliograph.pushrules.matrix.room import Room
from heliograph.pushrules.matrix.rule import Kind, Rule, read_rule
from heliograph.pushrules.matrix.ruleset import UNTOUCHED, Ruleset, merged
from heliograph.pushrules.matrix.subject import RoomFacts
from tests.pushrules.matrix.make import holds
from tests.shared import SHARED, shared_json

CASES = "cases/matrix/evaluator.json"
FOLLOW_THE_ASCII_ALPHABET = {"ruma-word-14", "wb-4", "wb-6"}
"""In these a letter of another script stands where the specification, unlike the seed, sees a boundary."""


def published() -> list[Any]:
    """List the cases, or one that skips where they are not at hand."""
    if not (SHARED / CASES).is_file():
        return [pytest.param({}, id="not here")]
    return [pytest.param(case, id=case["id"]) for case in shared_json(CASES)["cases"]]


def dialect_of(case: dict[str, Any], words: Alphabet) -> Dialect:
    return Dialect(legacy_mentions="legacy" in case.get("defaults", ""), words=words)


def room_of(case: dict[str, Any]) -> RoomFacts:
    ctx = case["ctx"]
    power = PowerLevels(ctx["power_levels"], ctx["room_version"], ctx["creators"])
    return RoomFacts(case["event"]["room_id"], ctx["member_count"], power)


def ruleset_of(case: dict[str, Any], dialect: Dialect) -> Ruleset:
    ruleset = UNTOUCHED
    for given in reversed(case["rules"]):
        rule = read_rule(Kind(given["kind"]), given["rule_id"], given)
        ruleset = editing.put(ruleset, replace(rule, enabled=given.get("enabled", True)))
    for change in case.get("default_changes", ()):
        kind, rule_id = change["rule"].split("/", 1)
        if "enabled" in change:
            ruleset = editing.set_enabled(ruleset, Kind(kind), rule_id, change["enabled"], dialect)
        if "actions" in change:
            actions = read_actions(change["actions"])
            ruleset = editing.set_actions(ruleset, Kind(kind), rule_id, actions, dialect)
    return ruleset


def result(rule: Rule | None) -> dict[str, Any]:
    if rule is None:
        return {"rule": None, "notify": False, "tweaks": {}}
    return {
        "rule": f"{rule.kind}/{rule.rule_id}",
        "notify": rule.actions.notify,
        "tweaks": dict(rule.actions.tweaks),
    }


def answer(case: dict[str, Any], words: Alphabet) -> Any:
    """Work a case out: whether a condition holds, or what a ruleset comes to."""
    dialect, room, ctx = dialect_of(case, words), room_of(case), case["ctx"]
    if case["kind"] == "condition":
        return all(
            holds(condition, case["event"], room=room, name=ctx["display_name"], dialect=dialect)
            for condition in case["conditions"]
        )
    event, person = Event(case["event"], dialect), Person(ctx["user_id"], ctx["display_name"])
    ruleset = ruleset_of(case, dialect)
    decision = evaluate(merged(ruleset, dialect), event, room, person)
    whole_room = Room(room.room_id, dialect)
    whole_room.put(person, ruleset)
    notified = [found.rule for found in whole_room.evaluate(event, room)]

    assert notified == ([decision.rule] if decision.rule and decision.rule.actions.notify else [])
    return result(decision.rule)


@pytest.mark.parametrize("case", published())
def test_a_published_case_comes_out_as_published(case: dict[str, Any]) -> None:
    """By the published specification: words are of ASCII letters, and no rule guesses unless it says so."""
    case = case or shared_json(CASES)

    assert answer(case, Alphabet.ASCII) == case["expected"]


@pytest.mark.parametrize("case", published())
def test_a_published_case_comes_out_alike_where_words_may_be_of_any_script(case: dict[str, Any]) -> None:
    """But for the three whose words touch a letter of another script."""
    case = case or shared_json(CASES)
    expected = case["expected"]

    assert answer(case, Alphabet.UNICODE) == (
        not expected if case["id"] in FOLLOW_THE_ASCII_ALPHABET else expected
    )


def test_all_published_cases_are_here() -> None:
    """None is left out by accident."""
    cases = shared_json(CASES)["cases"]

    assert len(cases) == 182
    assert {case["id"] for case in cases} >= FOLLOW_THE_ASCII_ALPHABET
