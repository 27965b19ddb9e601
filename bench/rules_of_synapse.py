"""The same scenarios as ``bench.rules`` on Synapse's evaluator, run by an interpreter that has it installed.

Knows nothing of Heliograph, so that it runs in an environment of its own. Reads one JSON object from the
command line, prints one number: the best time of one event in milliseconds.
"""

import importlib
import json
import sys
import time
from typing import Any


def main() -> None:
    scenario = json.loads(sys.argv[1])
    push: Any = importlib.import_module("synapse.synapse_rust.push")

    def rules_of(number: int) -> Any:
        own = []
        if scenario["pattern"]:
            pattern = scenario["pattern"].replace("{}", str(number)).replace("{*}", "*" * (number + 1))
            asks = [{"kind": "event_match", "key": "content.body", "pattern": pattern}]
            own.append(push.PushRule.from_db(f"global/content/k{number}", 4, json.dumps(asks), '["notify"]'))
        return push.FilteredPushRules(
            push.PushRules(own), {}, False, False, False, False, False, False, False
        )

    members = [
        (f"@member{number}:test", f"Somebody Number{number}", rules_of(number))
        for number in range(scenario["members"])
    ]
    event = scenario["event"]
    flat = {name: value for name, value in event.items() if isinstance(value, str)}
    flat |= {f"content.{name}": value for name, value in event["content"].items()}
    best = float("inf")
    for _ in range(scenario["rounds"]):
        begun = time.perf_counter()
        evaluator = push.PushRuleEvaluator(
            flat,
            False,
            len(members),
            0,
            {},
            {},
            False,
            [],
            False,
            False,
            False,
        )
        told = []
        for user_id, name, rules in members:
            if user_id != event["sender"] and "notify" in evaluator.run(rules, user_id, name, None):
                told.append(user_id)
        best = min(best, time.perf_counter() - begun)
        assert len(told) == len(members) - 1
    print(best * 1_000)


if __name__ == "__main__":
    main()
