"""From one event to the list of those to notify: a whole room at once, one by one, and Synapse's evaluator.

Run as ``python -m bench.rules [--synapse PYTHON]``, where PYTHON is an interpreter that has the package
``matrix-synapse``, in an environment of its own; without it that column stays empty. Under a minute. All
columns judge the same event for the same members with their rules at hand; the best of some rounds counts.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heliograph.pushrules.matrix.evaluation import Person, evaluate
from heliograph.pushrules.matrix.event import Event
from heliograph.pushrules.matrix.room import Room
from heliograph.pushrules.matrix.rule import Kind, read_rule
from heliograph.pushrules.matrix.ruleset import UNTOUCHED, Ruleset, merged
from heliograph.pushrules.matrix.subject import RoomFacts

ROOM = "!room:test"
SYNAPSE = Path(__file__).with_name("rules_of_synapse.py")
EVENT: dict[str, Any] = {
    "type": "m.room.message",
    "sender": "@member7:test",
    "room_id": ROOM,
    "content": {
        "msgtype": "m.text",
        "body": "Shall we meet for lunch at the usual place around noon, or is that too early for everyone?",
    },
}


@dataclass(frozen=True)
class Scenario:
    """A room. In the pattern ``{}`` becomes the member's number and ``{*}`` as many stars."""

    name: str
    members: int
    pattern: str = ""

    def rules(self, number: int) -> Ruleset:
        if not self.pattern:
            return UNTOUCHED
        pattern = self.pattern.replace("{}", str(number)).replace("{*}", "*" * (number + 1))
        rule = {"pattern": pattern, "actions": ["notify"]}
        return Ruleset((read_rule(Kind.CONTENT, f"k{number}", rule),))


SCENARIOS = [
    Scenario("predefined rules", 1_000),
    Scenario("predefined rules", 10_000),
    Scenario("predefined rules", 100_000),
    Scenario("a keyword each", 1_000, "keyword{}"),
    Scenario("a keyword each", 10_000, "keyword{}"),
    Scenario("a wildcard keyword each", 1_000, "keyword{}*"),
    Scenario("a wildcard keyword each", 10_000, "keyword{}*"),
    Scenario("a wildcard keyword each, all match", 1_000, "l{*}h"),
]


def best_ms(work: Callable[[], int], told: int, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        count = work()
        best = min(best, time.perf_counter() - begun)
        assert count == told
    return best * 1_000


def of_synapse(python: str | None, scenario: Scenario, rounds: int) -> float | None:
    if python is None:
        return None
    given = {"members": scenario.members, "pattern": scenario.pattern, "event": EVENT, "rounds": rounds}
    done = subprocess.run(
        [python, "-I", "-c", SYNAPSE.read_text(), json.dumps(given)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def measure(scenario: Scenario, python: str | None) -> None:
    people = [
        Person(f"@member{number}:test", f"Somebody Number{number}") for number in range(scenario.members)
    ]
    rulesets = [scenario.rules(number) for number in range(scenario.members)]
    facts = RoomFacts(ROOM, scenario.members)
    room = Room(ROOM)
    begun = time.perf_counter()
    for person, ruleset in zip(people, rulesets, strict=True):
        room.put(person, ruleset)
    filling = (time.perf_counter() - begun) / scenario.members
    chains = [merged(ruleset) for ruleset in rulesets]

    def at_once() -> int:
        return sum(len(notified.user_ids) for notified in room.evaluate(Event(EVENT), facts))

    def one_by_one() -> int:
        event = Event(EVENT)
        rules = (
            evaluate(chain, event, facts, person).rule for person, chain in zip(people, chains, strict=True)
        )
        return sum(rule is not None and rule.actions.notify for rule in rules)

    told = scenario.members - 1
    rounds = max(2, min(20, 50_000 // scenario.members))
    ours = best_ms(at_once, told, rounds)
    each = best_ms(one_by_one, told, 1)
    theirs = of_synapse(python, scenario, max(2, rounds // 4))
    synapse = "not installed" if theirs is None else f"{theirs:9.2f} ({theirs / ours:5.0f}x)"
    print(
        f"{scenario.name:36}{scenario.members:8}{ours:10.3f}{each:12.2f} ({each / ours:5.0f}x)  {synapse:>19}"
        f"{filling * 1e6:10.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--synapse", metavar="PYTHON", help="an interpreter that has matrix-synapse")
    options = parser.parse_args()
    print(
        f"Python {sys.version.split()[0]}; milliseconds for one event; filling a room in us for each member"
    )
    print(f"{'rules':36}{'members':>8}{'at once':>10}{'one by one':>21}{'Synapse':>21}{'filling':>10}")
    for scenario in SCENARIOS:
        measure(scenario, options.synapse)


if __name__ == "__main__":
    main()
