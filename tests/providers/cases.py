"""Reads the golden cases of the adapters."""

import json
from pathlib import Path
from typing import Any

from tests.deliveries import TARGET

from heliograph.delivery.exchange import Answer, Loss, Lost
from heliograph.delivery.model import Counts, Outcome, Verdict, Wakeup, WakeupKind

HERE = Path(__file__).parent


def read(provider: str, name: str) -> list[dict[str, Any]]:
    cases = json.loads((HERE / provider / "cases" / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(cases, list)
    return cases


def answer_rows(provider: str) -> dict[str, tuple[list[Answer | Lost], Verdict]]:
    """Return the rows of an adapter's verdict table by name."""
    rows = read(provider, "answers")
    table = {
        row["row"]: ([_heard(heard) for heard in row["answers"]], _verdict(row["verdict"])) for row in rows
    }
    assert len(table) == len(rows), "two rows share a name"
    return table


def payload_rows(provider: str) -> dict[str, tuple[Wakeup, dict[str, Any]]]:
    """Return wakeups and the payloads they become, by name."""
    return {row["name"]: (_wakeup(row["wakeup"]), row["payload"]) for row in read(provider, "payloads")}


def _heard(heard: dict[str, Any]) -> Answer | Lost:
    if "lost" in heard:
        return Lost(Loss(heard["lost"]))
    return Answer(heard["status"], heard.get("headers", {}), heard.get("body", "").encode())


def _verdict(verdict: dict[str, Any]) -> Verdict:
    return Verdict(outcome=Outcome(verdict.pop("outcome")), **verdict)


def _wakeup(wakeup: dict[str, Any]) -> Wakeup:
    counts = wakeup.pop("counts", None)
    return Wakeup(
        push_target_id=TARGET,
        kind=WakeupKind(wakeup.pop("kind")),
        counts=None if counts is None else Counts(**counts),
        **wakeup,
    )
