"""The oracle itself: it finds each violation that is planted, and holds what is ambiguous against nobody."""

from dataclasses import replace
from typing import Any

import pytest

from tests.crash.history import Ask, Disruption, Handoff, History, Notify, Replay, Timeline
from tests.crash.oracle import broken, problem_of

DEVICE = "device"
AT = ("target", DEVICE)
LEASE_MS = 1_000
OUTCOME = b'{"outcomes":[]}'


def install(
    registration: str = "first", begun_at: float = 0, answered_at: float = 10, **changes: Any
) -> Handoff:
    """Return an installation that was taken."""
    handoff = Handoff(
        registration=registration,
        address=AT,
        state="active",
        route=f"route of {registration}",
        ends=None,
        takes=True,
        begun_at=begun_at,
        answered_at=answered_at,
        status=200,
        answer=registration.encode(),
    )
    return replace(handoff, **changes)


def revoke(registration: str, begun_at: float, answered_at: float) -> Handoff:
    """Return a revoke that was taken."""
    return install(registration, begun_at, answered_at, state="revoked", route=None, ends=registration)


def notify(key: str = "key", begun_at: float = 20, answered_at: float = 30, **changes: Any) -> Notify:
    """Return a notify for one device that was answered ``accepted``."""
    note = Notify(
        key=key,
        marker="marker",
        folds=True,
        target="target",
        devices=(DEVICE,),
        begun_at=begun_at,
        answered_at=answered_at,
        status=200,
        answers=(OUTCOME,),
        outcomes={DEVICE: ("accepted", "")},
    )
    return replace(note, **changes)


def ask(at: float = 40, provider_id: str = "id", **changes: Any) -> Ask:
    """Return a wakeup that the provider took."""
    return replace(Ask(at, provider_id, "route of first", "marker", "target", 201), **changes)


def history(**changes: Any) -> History:
    """Return a run in which one wakeup was accepted and delivered."""
    parts: dict[str, Any] = {"handoffs": [install()], "notifies": [notify()], "asks": [ask()]}
    return History(lease_ms=LEASE_MS, **(parts | changes))


def names(found: list[str]) -> set[str]:
    """Return the invariants that were broken."""
    return {each.partition(":")[0] for each in found}


REJECTED = {DEVICE: ("rejected", "push_token_unknown")}
FOLDED = {DEVICE: ("duplicate", "")}
KILLED = Disruption(45, "worker", delivers=True)

SOUND = {
    "one accepted, one delivered": history(),
    "a repeat of the same id behind a kill": history(asks=[ask(), ask(1_100)], disruptions=[KILLED]),
    "a repeat of what took too long by the program's own word": history(asks=[ask(), ask(60)], slow=1),
    "a repeat of what the provider did not take": history(asks=[ask(status=503), ask(60)]),
    "a repeat behind a connection that was cut": history(asks=[ask(status=None), ask(60)]),
    "two equal wakeups that did not fold": history(
        notifies=[notify(), notify("other")], asks=[ask(), ask(41, "another id")]
    ),
    "a fold into one that leaves afterwards": history(
        notifies=[notify(), notify("other", 31, 35, outcomes=FOLDED)]
    ),
    "accepted, and revoked before it left": history(handoffs=[install(), revoke("first", 31, 35)], asks=[]),
    "accepted while it was superseded, left by the new route": history(
        handoffs=[install(), install("second", 22, 26, ends="first")], asks=[ask(route="route of second")]
    ),
    "accepted while it was superseded, and lost with the old route": history(
        handoffs=[install(), install("second", 22, 26, ends="first")], asks=[]
    ),
    "in flight when its route was revoked": history(
        handoffs=[install(), revoke("first", 31, 35)], asks=[ask(35 + 750)]
    ),
    "rejected in the middle of the installation": history(
        handoffs=[install(begun_at=0, answered_at=50)], notifies=[notify(outcomes=REJECTED)], asks=[]
    ),
    "accepted in the middle of the revoke": history(handoffs=[install(), revoke("first", 15, 50)]),
    "a refused handoff that had to be": history(
        handoffs=[install(), install("second", 50, 60, takes=False, status=409)]
    ),
}


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND.keys())
def test_what_is_allowed_is_held_against_nobody(sound: History) -> None:
    """Nothing is found where nothing is wrong, or where nobody can tell."""
    assert broken(sound) == []


PLANTED = {
    "a lost delivery": ("accepted_is_delivered", history(asks=[])),
    "a delivery that the provider never took": ("accepted_is_delivered", history(asks=[ask(status=503)])),
    "one of two lost": (
        "accepted_is_delivered",
        history(notifies=[notify(), notify("other")], asks=[ask()]),
    ),
    "a second provider id": ("accepted_is_delivered", history(asks=[ask(), ask(1_100, "another id")])),
    "a second provider id behind a kill": (
        "accepted_is_delivered",
        history(asks=[ask(), ask(1_100, "another id")], disruptions=[KILLED]),
    ),
    "a second provider id by the successor's route": (
        "accepted_is_delivered",
        history(
            handoffs=[install(), install("second", 22, 26, ends="first")],
            asks=[ask(), ask(41, "another id", route="route of second")],
        ),
    ),
    "something refused that was sent all the same": (
        "accepted_is_delivered",
        history(notifies=[notify(outcomes=REJECTED)], handoffs=[install(), revoke("first", 12, 14)]),
    ),
    "something that nobody asked for": ("accepted_is_delivered", history(asks=[ask(), ask(marker="other")])),
    "one id for two wakeups": (
        "one_id_is_one_wakeup",
        history(notifies=[notify(), notify("other", marker="b")], asks=[ask(), ask(marker="b")]),
    ),
    "a wakeup of an earlier round": ("one_id_is_one_wakeup", history(settled={"id"})),
    "a repeat at once": ("repeats_follow_a_kill", history(asks=[ask(), ask(50)], disruptions=[KILLED])),
    "a repeat without a kill": ("repeats_follow_a_kill", history(asks=[ask(), ask(1_100)])),
    "more repeats than took too long": (
        "repeats_follow_a_kill",
        history(asks=[ask(), ask(1_100), ask(2_200)], slow=1),
    ),
    "a repeat behind the kill of what delivers nothing": (
        "repeats_follow_a_kill",
        history(asks=[ask(), ask(1_100)], disruptions=[replace(KILLED, delivers=False)]),
    ),
    "a fold into one that had left": (
        "a_fold_loses_no_wakeup",
        history(notifies=[notify(), notify("other", 41, 45, outcomes=FOLDED)]),
    ),
    "an increment that was folded": (
        "a_fold_loses_no_wakeup",
        history(notifies=[notify(), notify("other", 31, 35, outcomes=FOLDED, folds=False)]),
    ),
    "two answers under one key": (
        "replays_are_octet_for_octet",
        history(notifies=[notify(answers=(OUTCOME, OUTCOME + b" "))]),
    ),
    "a changed receipt": (
        "replays_are_octet_for_octet",
        history(replays=[Replay("the handoff", 200, b"receipt", None, 200, b"receipt!")]),
    ),
    "a replay that is refused": (
        "replays_are_octet_for_octet",
        history(replays=[Replay("the handoff", 200, b"receipt", None, 409, b"{}")]),
    ),
    "another body that is taken": (
        "replays_are_octet_for_octet",
        history(replays=[Replay("another body", 409, None, "duplicate_conflict", 200, b"{}")]),
    ),
    "another refusal than the right one": (
        "replays_are_octet_for_octet",
        history(
            replays=[Replay("another body", 409, None, "duplicate_conflict", 409, b'{"type":"x/internal"}')]
        ),
    ),
    "use after revoke": (
        "nothing_leaves_by_an_ended_route",
        history(handoffs=[install(), revoke("first", 31, 35)], asks=[ask(35 + 751)]),
    ),
    "use after supersede": (
        "nothing_leaves_by_an_ended_route",
        history(handoffs=[install(), install("second", 31, 35, ends="first")], asks=[ask(1_000)]),
    ),
    "a route that nobody installed": (
        "nothing_leaves_by_an_ended_route",
        history(asks=[ask(), ask(50, "other", route="nobody's")]),
    ),
    "accepted after the revoke": (
        "answers_are_possible",
        history(handoffs=[install(), revoke("first", 12, 15)], asks=[]),
    ),
    "rejected while it was current": (
        "answers_are_possible",
        history(notifies=[notify(outcomes=REJECTED)], asks=[]),
    ),
    "a known target called unknown": (
        "answers_are_possible",
        history(
            handoffs=[install(), revoke("first", 12, 15)],
            notifies=[notify(outcomes={DEVICE: ("rejected", "push_target_unknown")})],
            asks=[],
        ),
    ),
    "a bug that the program told of": ("no_bug_was_told", history(bugs=["handler_failed"])),
    "an answer for other devices": (
        "answers_are_possible",
        history(notifies=[notify(devices=(DEVICE, "another"))]),
    ),
    "a notify that is refused": (
        "answers_are_possible",
        history(notifies=[notify(status=401, outcomes={})], asks=[]),
    ),
    "a handoff taken that must be refused": (
        "answers_are_possible",
        history(handoffs=[install(), install("second", 50, 60, takes=False)]),
    ),
    "a handoff refused that must be taken": (
        "answers_are_possible",
        history(handoffs=[install(), install("second", 50, 60, ends="first", status=409)]),
    ),
}


@pytest.mark.parametrize(("invariant", "planted"), PLANTED.values(), ids=PLANTED.keys())
def test_each_planted_violation_is_found(invariant: str, planted: History) -> None:
    """By the invariant that is for it."""
    assert invariant in names(broken(planted))


def test_what_was_settled_is_remembered_over_rounds() -> None:
    """So that a wakeup that turns up a round later is found."""
    run = history()

    run.next_round()
    run.asks.append(ask(5_000))

    assert "one_id_is_one_wakeup" in names(broken(run))


def test_within_a_handoff_both_what_it_found_and_what_it_left_are_possible() -> None:
    """Before its first attempt only the one, behind its answer only the other."""
    timeline = Timeline([install(), install("second", 20, 30, ends="first")])

    assert timeline.possible(AT, 12, 19) == {"first"}
    assert timeline.possible(AT, 12, 20) == {"first", "second"}
    assert timeline.possible(AT, 30, 40) == {"first", "second"}
    assert timeline.possible(AT, 31, 40) == {"second"}
    assert timeline.possible(AT, -5, -1) == {None}


def test_ending_what_has_ended_ends_nothing_else() -> None:
    """A revoke of the superseded registration leaves its successor current, and the first end counts."""
    timeline = Timeline([install(), install("second", 20, 30, ends="first"), revoke("first", 40, 50)])

    assert timeline.current(AT) == "second"
    assert timeline.ended_by["first"].answered_at == 30


@pytest.mark.parametrize("answer", [b"not JSON", b"[]", b'{"outcomes":[]}'])
def test_what_is_no_problem_has_no_type(answer: bytes) -> None:
    """Whatever was answered can be looked at."""
    assert problem_of(answer) is None
