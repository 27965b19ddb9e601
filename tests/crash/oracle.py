"""What must be true of a run, whatever was killed when.

Each invariant is a function from a history to the sentences that say how it was broken; none means that it
holds. What an ambiguous time leaves open is never held against the Gateway, and what it does not leave open
always is: the tests of this module plant each violation and see it found.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from tests.crash.history import ACCEPTED, DUPLICATE, REJECTED, Ask, History, Notify, Timeline

IN_FLIGHT_SHARE: Final = 0.75
"""The part of its lease that a performance may take before it is cut off. A claim reads the route in its own
transaction; so what was claimed before a revoke may leave for this long after it, and nothing may later."""

REPEAT_SHARE: Final = 1 - IN_FLIGHT_SHARE
"""The part of a lease that lies at least between an attempt and one that follows the end of its lease."""


At: TypeAlias = tuple[str, str]
"""A route and the marker of a wakeup on it."""


def accepted_is_delivered(history: History) -> Iterator[str]:
    """Every outcome ``accepted`` reached the provider under exactly one provider id (R092, R318).

    Equal wakeups are counted together: as many ids as acceptances, never more; and never fewer unless a route
    that may have been theirs was ended before they left.
    """
    timeline = Timeline(history.handoffs)
    heard: dict[At, set[str]] = defaultdict(set)
    taken: dict[At, set[str]] = defaultdict(set)
    for ask in history.asks:
        heard[ask.route, ask.marker].add(ask.provider_id)
        if ask.taken:
            taken[ask.route, ask.marker].add(ask.provider_id)
    least, most = _bounds(history, timeline)
    for at in sorted(heard.keys() | least.keys()):
        route, marker = at
        if len(taken[at]) < least[at]:
            lost = least[at] - len(taken[at])
            yield f"{lost} of {least[at]} accepted wakeups {marker} never reached route {route}"
        if len(heard[at]) > most[at]:
            yield f"{len(heard[at])} provider ids for {most[at]} accepted wakeups {marker} on route {route}"
    yield from _more_ids_than_acceptances(history, timeline, heard)


def _bounds(history: History, timeline: Timeline) -> tuple[Counter[At], Counter[At]]:
    """Count the acceptances that must have left by each route, and those that may have."""
    least: Counter[At] = Counter()
    most: Counter[At] = Counter()
    for notify, device in _with_status(history, ACCEPTED):
        possible = timeline.possible((notify.target, device), notify.begun_at, notify.answered_at) - {None}
        routes = {timeline.route_of[each] for each in possible if each is not None}
        for route in routes:
            most[route, notify.marker] += 1
        if len(routes) == 1 and not possible & timeline.ended_by.keys():
            least[routes.pop(), notify.marker] += 1
    return least, most


def _more_ids_than_acceptances(
    history: History, timeline: Timeline, heard: Mapping[At, set[str]]
) -> Iterator[str]:
    """Look at each device over all of its routes: what was accepted once left by one of them only."""
    accepted = Counter(
        (notify.target, device, notify.marker) for notify, device in _with_status(history, ACCEPTED)
    )
    sent: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for (route, marker), ids in heard.items():
        if route in timeline.by_route:
            sent[*timeline.by_route[route].address, marker] |= ids
    for of, ids in sorted(sent.items()):
        if len(ids) > accepted[of]:
            yield f"{len(ids)} provider ids for {accepted[of]} accepted wakeups {of[2]} of {of[1]}"


def one_id_is_one_wakeup(history: History) -> Iterator[str]:
    """A provider id stands for one wakeup on one route, and is not heard of once that was settled (R310)."""
    told: dict[str, tuple[str, str, str]] = {}
    for ask in history.asks:
        what = (ask.route, ask.marker, ask.target)
        if told.setdefault(ask.provider_id, what) != what:
            yield f"provider id {ask.provider_id} stands for {told[ask.provider_id]} and for {what}"
        if ask.provider_id in history.settled:
            yield f"provider id {ask.provider_id} was sent again after everything had come to rest"


def repeats_follow_a_kill(history: History) -> Iterator[str]:
    """What the provider took is sent again only behind a kill, and only once its lease has run out (R318).

    On a machine that is too busy an attempt may outlast its time without a kill. The program says so itself,
    each time; so many repeats and no more are put down to it.
    """
    before: dict[str, Ask] = {}
    unexplained: list[str] = []
    for ask in history.asks:
        earlier = before.get(ask.provider_id)
        if earlier is not None:
            gap = ask.at - earlier.at
            if gap < history.lease_ms * REPEAT_SHARE:
                unexplained.append(f"{ask.provider_id} was repeated {gap:.0f} ms after the provider took it")
            elif not _killed_between(history, earlier.at - history.lease_ms, ask.at):
                unexplained.append(
                    f"{ask.provider_id} was repeated {gap:.0f} ms after it was taken, unkilled"
                )
        if ask.taken:
            before[ask.provider_id] = ask
    if len(unexplained) > history.slow:
        yield from unexplained


def _killed_between(history: History, since: float, until: float) -> bool:
    """Tell of a kill. A request may reach the provider a moment after whoever sent it was killed."""
    return any(each.delivers and since <= each.at <= until for each in history.disruptions)


def a_fold_loses_no_wakeup(history: History) -> Iterator[str]:
    """What is answered ``duplicate`` joined one that had yet to leave, and that leaves after it (R092)."""
    timeline = Timeline(history.handoffs)
    for notify, device in _with_status(history, DUPLICATE):
        if not notify.folds:
            yield f"{notify.key}: {device} was folded, though an increment never is"
        possible = timeline.possible((notify.target, device), notify.begun_at, notify.answered_at) - {None}
        if len(possible) != 1 or possible & timeline.ended_by.keys():
            continue
        route = timeline.route_of[str(possible.pop())]
        if not any(
            ask.taken and ask.at >= notify.begun_at and (ask.route, ask.marker) == (route, notify.marker)
            for ask in history.asks
        ):
            yield f"{notify.key}: {device} was folded into a wakeup that had left already"


def replays_are_octet_for_octet(history: History) -> Iterator[str]:
    """The same body gets the first answer's octets; another one is refused (R123, R316, R317)."""
    for notify in history.notifies:
        if len(set(notify.answers)) > 1:
            yield f"notify {notify.key} was answered in {len(set(notify.answers))} ways"
    for replay in history.replays:
        if replay.got_status != replay.status:
            yield f"{replay.what}: {replay.got_status} instead of {replay.status}: {replay.got_answer!r}"
        elif replay.answer is not None and replay.got_answer != replay.answer:
            yield f"{replay.what}: {replay.got_answer!r} instead of {replay.answer!r}"
        elif replay.problem is not None and problem_of(replay.got_answer) != replay.problem:
            yield f"{replay.what}: {problem_of(replay.got_answer)} instead of {replay.problem}"


def nothing_leaves_by_an_ended_route(history: History) -> Iterator[str]:
    """No request for an ended route begins after the receipt that ends it (R098, R139).

    What had been claimed before may still be on its way: for ``IN_FLIGHT_SHARE`` of a lease.
    """
    timeline = Timeline(history.handoffs)
    for ask in history.asks:
        handoff = timeline.by_route.get(ask.route)
        if handoff is None:
            yield f"{ask.marker} left by route {ask.route}, which was never installed"
            continue
        ended = timeline.ended_by.get(handoff.registration)
        late = 0.0 if ended is None else ask.at - ended.answered_at
        if late > history.lease_ms * IN_FLIGHT_SHARE:
            yield f"{ask.marker} left by {handoff.registration} {late:.0f} ms after its end was confirmed"


def no_bug_was_told(history: History) -> Iterator[str]:
    """The program met nothing that nobody foresaw: no handler failed, nothing ended in a traceback."""
    yield from history.bugs


def answers_are_possible(history: History) -> Iterator[str]:
    """Every answer is one that some order of what happened allows (R121–R129, R139).

    A handoff is taken or refused exactly as its device's chain says. A device is taken over only if it may
    have had a current registration, and refused only if it may have had none.
    """
    timeline = Timeline(history.handoffs)
    for handoff in history.handoffs:
        if (handoff.status == 200) != handoff.takes:
            wanted = "taken" if handoff.takes else "refused"
            yield f"handoff {handoff.registration} {handoff.state} should be {wanted}: {handoff.answer!r}"
    for notify in history.notifies:
        if notify.status != 200:
            yield f"notify {notify.key} was answered {notify.status}: {notify.answers[0]!r}"
            continue
        if tuple(notify.outcomes) != notify.devices:
            yield f"notify {notify.key} was answered for {list(notify.outcomes)}"
        for device, (status, reason) in notify.outcomes.items():
            possible = timeline.possible((notify.target, device), notify.begun_at, notify.answered_at)
            if not _is_possible(timeline, notify, status, reason, possible):
                yield f"notify {notify.key}: {device} cannot be {status} {reason}"


def _is_possible(
    timeline: Timeline, notify: Notify, status: str, reason: str, possible: set[str | None]
) -> bool:
    match status, reason:
        case (("accepted" | "duplicate"), ""):
            return possible != {None}
        case "rejected", "push_token_unknown":
            return None in possible
        case "rejected", "push_target_unknown":
            return None in possible and not timeline.target_known_by(notify.target, notify.begun_at)
        case _:
            return False


def _with_status(history: History, status: str) -> Iterator[tuple[Notify, str]]:
    for notify in history.notifies:
        for device, (got, _) in notify.outcomes.items():
            if got == status:
                yield notify, device


def problem_of(answer: bytes) -> str | None:
    """Return the last word of a problem's type, or None if it is no problem."""
    try:
        told = json.loads(answer)
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    return str(told.get("type", "")).rpartition("/")[2] or None


def outcomes_of(answer: bytes) -> dict[str, tuple[str, str]]:
    """Read the outcomes of a notify's answer."""
    told = json.loads(answer)
    return {
        each["device_id"]: (each["gateway_status"], each.get("reason_code", ""))
        for each in told.get("outcomes", ())
    }


INVARIANTS: Final[Mapping[str, Callable[[History], Iterator[str]]]] = {
    each.__name__: each
    for each in (
        accepted_is_delivered,
        one_id_is_one_wakeup,
        repeats_follow_a_kill,
        a_fold_loses_no_wakeup,
        replays_are_octet_for_octet,
        nothing_leaves_by_an_ended_route,
        answers_are_possible,
        no_bug_was_told,
    )
}
"""All of them, by name."""


def broken(history: History) -> list[str]:
    """Return every violation, each with the name of its invariant."""
    return [f"{name}: {what}" for name, check in INVARIANTS.items() for what in check(history)]


def counted(history: History) -> Counter[str]:
    """Count the outcomes of the round, for people."""
    told = Counter(status for notify in history.notifies for status, _ in notify.outcomes.values())
    return Counter({word: told[word] for word in (ACCEPTED, DUPLICATE, REJECTED)})


def latest_after_an_end(history: History) -> float:
    """Return how late the latest request behind the confirmed end of its route was, in milliseconds."""
    timeline = Timeline(history.handoffs)
    late = 0.0
    for ask in history.asks:
        handoff = timeline.by_route.get(ask.route)
        ended = None if handoff is None else timeline.ended_by.get(handoff.registration)
        if ended is not None:
            late = max(late, ask.at - ended.answered_at)
    return late
