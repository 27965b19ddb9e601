"""A credential that is refused or throttled rests, for all that use it and in every process."""

import pytest
from tests import deliveries
from tests.deliveries import NOW
from tests.outgoing import ACCEPTED, ByHost, Scripted, world

from heliograph.delivery.gates import (
    NAMES_KEPT_MAX,
    STRANGERS_FAULTS_MIN,
    KnownGates,
    closing_of,
    credential_of,
    gate_names,
)
from heliograph.delivery.model import Outcome, Verdict
from heliograph.queue.gate.decide import Closing
from heliograph.queue.machine import State
from heliograph.storage.database import Database

FULL = Verdict(Outcome.THROTTLED_APP, "full", retry_after_ms=54_000)
REFUSED = Verdict(Outcome.CONFIG_BAD, "refused")


@pytest.mark.anyio
async def test_a_throttled_credential_rests_for_as_long_as_it_was_asked_to(database: Database) -> None:
    """P6: not one request before, no attempt burned, and the other credential notices nothing."""
    full, other = Scripted("full", [FULL]), Scripted("other")
    async with world(database, full, other) as here:
        process = here.process()
        await here.enqueue("full")
        await process.runner.turn()
        await here.enqueue("full", 100)
        await here.enqueue("other", 3)

        for at in (0, 1_000, 53_999):
            here.clock.at = NOW + at
            await process.runner.turn()
        resting = len(full.asked)
        here.clock.at = NOW + 60_000
        probe = await process.runner.turn()
        for _ in range(10):
            await process.runner.turn()

    assert resting == 1
    assert len(other.asked) == 3
    assert probe.claimed == 1
    assert len(full.asked) == 1 + 101
    assert {attempt for _, state, attempt, _ in process.source.ends if state is State.DONE} == {1}


@pytest.mark.anyio
async def test_what_waits_behind_a_gate_is_not_even_claimed(database: Database) -> None:
    """A hundred turns cost the held items nothing: no attempt, no revision, no row written."""
    async with world(database, Scripted("bad", [REFUSED])) as here:
        process = here.process()
        await here.enqueue("bad")
        await process.runner.turn()
        await here.enqueue("bad", 50)

        claimed = [(await process.runner.turn()).claimed for _ in range(100)]

    assert sum(claimed) == 0


@pytest.mark.anyio
async def test_a_refused_credential_is_tried_by_one_item_at_longer_and_longer_intervals(
    database: Database,
) -> None:
    """However many wait, and however many attempts that would have been."""
    bad = Scripted("bad", always=REFUSED)
    async with world(database, bad) as here:
        process = here.process(at_once=1)
        await here.enqueue("bad", 20)
        for _ in range(3 * 720):
            await process.runner.turn()
            here.clock.at += 5_000

    pauses = [later - sooner for (sooner, _), (later, _) in zip(bad.asked, bad.asked[1:], strict=False)]
    ideal = ([30_000, 60_000, 120_000, 240_000, 480_000] + [900_000] * 20)[: len(pauses)]
    late = [pause - ideally for pause, ideally in zip(pauses, ideal, strict=True)]
    assert min(late) >= 0
    assert max(late) <= 0.1 * 900_000 + 5_000  # the spread, and how often this test looks
    assert len(pauses) >= 13
    assert {attempt for _, _, attempt, _ in process.source.ends} == {0}


@pytest.mark.anyio
async def test_a_credential_that_was_mended_works_again_by_itself(database: Database) -> None:
    """The next probe finds out and all that waited goes."""
    bad = Scripted("bad", always=REFUSED)
    async with world(database, bad) as here:
        process = here.process()
        await here.enqueue("bad", 10)
        await process.runner.turn()
        bad.always = ACCEPTED
        here.clock.at += 70_000
        await process.runner.turn()
        await process.runner.turn()

    assert [state for _, state, _, _ in process.source.ends if state is State.DONE] == [State.DONE] * 10
    closed = {gate.closed_until - NOW for _, gate in process.turned if gate is not None}
    assert all(30_000 <= pause <= 33_000 for pause in closed)
    assert process.turned[-1] == ("bad", None)


@pytest.mark.anyio
async def test_a_pause_holds_in_other_processes_and_after_a_restart(database: Database) -> None:
    """Nothing of it is in memory alone."""
    full = Scripted("full", [FULL])
    async with world(database, full) as here:
        first, second = here.process(), here.process()
        await here.enqueue("full", 1)
        await first.runner.turn()
        await here.enqueue("full", 10)
        await second.runner.turn()
        restarted = here.process()
        await restarted.runner.turn()

    assert len(full.asked) == 1


@pytest.mark.anyio
async def test_an_item_that_did_not_know_its_gate_is_sent_behind_it_unsent(database: Database) -> None:
    """Once; from then on it is not claimed while the gate is closed."""
    full = Scripted("full", [FULL])
    async with world(database, full) as here:
        process = here.process()
        await here.enqueue("full")
        await process.runner.turn()
        await here.enqueue("full", 5, gate="an-older-name")
        claimed = []
        for _ in range(5):
            here.clock.at += 2_000
            claimed.append((await process.runner.turn()).claimed)

    assert claimed == [5, 0, 0, 0, 0]
    assert len(full.asked) == 1


@pytest.mark.anyio
async def test_an_application_that_moved_to_another_credential_is_freed(database: Database) -> None:
    """The old gate is opened by the first that needs it no more."""
    bad, good = Scripted("bad", always=REFUSED), Scripted("good")
    async with world(database, bad, good) as here:
        process = here.process()
        await here.enqueue("bad", 10)
        await process.runner.turn()
        here.providers["bad"] = good
        here.clock.at += 70_000
        await process.runner.turn()
        await process.runner.turn()

    assert len(good.asked) == 10


@pytest.mark.anyio
async def test_a_host_that_refuses_holds_what_goes_to_that_host_alone(database: Database) -> None:
    """Web Push: each service judges our key for itself."""
    browsers = ByHost("browsers", [REFUSED] * STRANGERS_FAULTS_MIN)
    async with world(database, browsers) as here:
        process = here.process(at_once=1)
        await here.enqueue("browsers", STRANGERS_FAULTS_MIN, key="bad/x")
        for _ in range(STRANGERS_FAULTS_MIN):
            await process.runner.turn()
        await here.enqueue("browsers", 5, key="bad/y")
        await here.enqueue("browsers", 5, key="good/z")
        for _ in range(20):
            await process.runner.turn()

    assert [key for _, key in browsers.asked] == ["bad/x"] * 3 + ["good/z"] * 5


@pytest.mark.anyio
async def test_one_bad_subscription_does_not_hold_up_a_whole_push_service(database: Database) -> None:
    """It was made with another key: the service refuses it and takes the others."""
    browsers = ByHost("browsers")
    async with world(database, browsers) as here:
        process = here.process(at_once=1)
        for number in range(10):
            browsers.script.append(REFUSED)
            await here.enqueue("browsers", key=f"host/bad-{number}")
            await process.runner.turn()
            await here.enqueue("browsers", key="host/good")
            await process.runner.turn()

    assert process.turned == []
    assert [key for _, key in browsers.asked if key == "host/good"] == ["host/good"] * 10


@pytest.mark.anyio
async def test_a_probe_that_says_nothing_of_the_credential_neither_opens_nor_lengthens(
    database: Database,
) -> None:
    """A timeout is no answer; another may try soon."""
    lost = Verdict(Outcome.TRANSIENT, "lost", ambiguous=True)
    bad = Scripted("bad", [REFUSED, lost, ACCEPTED])
    async with world(database, bad) as here:
        process = here.process(at_once=1)
        await here.enqueue("bad", 3)
        await process.runner.turn()
        here.clock.at += 35_000
        await process.runner.turn()
        at_once = await process.runner.turn()
        here.clock.at += 5_000
        await process.runner.turn()
        freed = await process.runner.turn()

    assert (at_once.claimed, freed.claimed) == (0, 1)


def test_gates_are_named_for_credentials_and_show_no_host() -> None:
    """The operator's word, and for finer ones a digest behind it."""
    delivery = deliveries.delivery("push.example.org/secret")
    names = gate_names(ByHost("browsers"), delivery)

    assert gate_names(Scripted("phones"), delivery) == ("phones",)
    assert names[0] == "browsers"
    assert names[1].startswith("browsers#")
    assert "example" not in names[1]
    assert [credential_of(name) for name in names] == ["browsers", "browsers"]


@pytest.mark.parametrize(
    ("verdict", "closing"),
    [
        (REFUSED, Closing("refused", 30_000, 900_000)),
        (FULL, Closing("full", 1_000, 900_000, 54_000)),
        (Verdict(Outcome.THROTTLED_APP, "full"), Closing("full", 60_000, 900_000)),
        (Verdict(Outcome.THROTTLED_TARGET, "busy", retry_after_ms=54_000), None),
        (Verdict(Outcome.TRANSIENT, "away", retry_after_ms=54_000), None),
        (ACCEPTED, None),
    ],
    ids=["refused", "asked", "full", "device", "away", "accepted"],
)
def test_only_what_concerns_the_whole_credential_closes_its_gate(
    verdict: Verdict, closing: Closing | None
) -> None:
    """A device that is asked too often, or a service that is away, does not."""
    assert closing_of(verdict, 0.0) == closing


def test_what_is_remembered_of_gates_is_bounded() -> None:
    """Strangers name hosts; they cannot fill the memory."""
    known = KnownGates()
    for number in range(3 * NAMES_KEPT_MAX):
        known.heard(("c", f"c#{number}"), REFUSED, NOW, 0.0)
        known.heard((f"d{number}",), FULL, NOW, 0.0)

    assert len(known._faults) == len(known._pending) == NAMES_KEPT_MAX
