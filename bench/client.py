"""What judging an Event costs a device: chains of a hundred rules, the quiet hours, the whole way.

Run as ``python -m bench.client``. Some seconds. CPU time for one Event, the best of seven rounds; the
subject is made anew for each Event, since an app judges each once.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from heliograph.ambient.tzdb import open_tzdb
from heliograph.arkret.client.attention import Attention
from heliograph.arkret.client.blocklist import Origin
from heliograph.arkret.client.preferences import NOTHING_CONFIGURED
from heliograph.pushrules.arkret.chain import Chain
from heliograph.pushrules.arkret.event import Event, Facts, Subject
from heliograph.pushrules.arkret.ruleset import read_ruleset
from heliograph.pushrules.dnd.quiet import QuietHours
from heliograph.pushrules.dnd.schedule import Period, read_dnd
from heliograph.pushrules.dnd.writing import write_dnd

RULES = 100
ROUNDS = 7
NOW = 1_790_000_000_000
EVENT = Event(
    kind="ak.message.create",
    realm_id="ak:realm:" + "B" * 44,
    body="Shall we meet for lunch at the usual place around noon, or is that too early for everyone?",
)
FACTS = Facts()


def rule(number: int, *conditions: dict[str, Any]) -> dict[str, Any]:
    return {
        "rule_id": f"content.{number}",
        "kind": "content",
        "evaluation_locus": "client",
        "conditions": list(conditions),
        "actions": ["notify"],
    }


def keyword(number: int) -> dict[str, Any]:
    return rule(number, {"kind": "contains_keyword", "pattern": f"keyword{number}|word{number}"})


def realm(number: int) -> dict[str, Any]:
    return rule(number, {"kind": "field_match", "field": "realm_id", "pattern": f"ak:realm:A{number:043d}"})


def wildcard(number: int) -> dict[str, Any]:
    return rule(number, {"kind": "field_match", "field": "realm_id", "pattern": f"ak:realm:A{number:03d}*"})


def undecided(number: int) -> dict[str, Any]:
    kind = {"kind": "field_match", "field": "kind", "pattern": "ak.message.create"}
    return rule(number, kind, {"kind": "member_count", "op": "<=", "value": 10})


KINDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "keywords": keyword,
    "realms": realm,
    "wildcards": wildcard,
    "undecided": undecided,
    "mixed": lambda number: (keyword, realm, wildcard, undecided)[number % 4](number),
}


def best_us(work: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - begun) / times)
    return best * 1e6


def chains() -> None:
    print(f"{RULES} rules, none matches{'compiled':>14}{'plain engine':>14}{'compiling':>12}")
    for name, make in KINDS.items():
        document = {"rules": [make(number) for number in range(RULES)]}
        ruleset = read_ruleset(document)
        chain = Chain(ruleset)
        assert chain.decide(Subject(EVENT, FACTS)) is None
        ours = best_us(lambda chain=chain: chain.decide(Subject(EVENT, FACTS)), 2_000)  # type: ignore[misc]
        plain = best_us(lambda chain=chain: chain.explain(Subject(EVENT, FACTS)), 200)  # type: ignore[misc]
        compiling = best_us(lambda ruleset=ruleset: Chain(ruleset), 50)  # type: ignore[misc]
        print(f"{name:24}{ours:11.1f} µs{plain:11.1f} µs{compiling:9.0f} µs")


def quiet_hours() -> None:
    tzdb = open_tzdb()
    periods = [Period(22 * 60, 8 * 60), Period(12 * 60, 13 * 60)]
    for zone in ("Asia/Shanghai", "America/New_York", "Etc/UTC"):
        hours = QuietHours(read_dnd(write_dnd(zone, periods)), tzdb.clock(zone))
        print(f"quiet hours, {zone:20}{best_us(lambda hours=hours: hours.cover(NOW), 20_000):10.2f} µs")  # type: ignore[misc]


def the_whole_way() -> None:
    document = {"rules": [KINDS["mixed"](number) for number in range(RULES)]}
    held = NOTHING_CONFIGURED.with_rules(1, document).with_dnd(
        1, write_dnd("Asia/Shanghai", [Period(22 * 60, 8 * 60)])
    )
    attention = Attention(held, open_tzdb())
    origin = Origin()
    took = best_us(lambda: attention.judge(EVENT, FACTS, origin, now=NOW), 2_000)
    print(f"the whole way, {RULES} mixed rules{took:11.1f} µs")


def main() -> None:
    print(f"Python {sys.version.split()[0]}; CPU time for one Event")
    chains()
    quiet_hours()
    the_whole_way()


if __name__ == "__main__":
    main()
