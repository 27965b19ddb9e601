"""Too many dead routes at once are not believed, in any process, until a person has looked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deliveries import NOW
from tests.outgoing import Scripted, world

from heliograph.delivery.hygiene import store
from heliograph.delivery.hygiene.decide import (
    BAD_MIN,
    BUCKET_MS,
    STRIKE_SPACING_MS,
    STRIKES,
    SUSPICION_KEPT_MS,
    WINDOW_MS,
    Pulse,
    Suspicion,
    Tally,
    condemned,
    strike,
    tally_of,
)
from heliograph.delivery.hygiene.health import Health
from heliograph.delivery.hygiene.service import HygieneDesk
from heliograph.delivery.model import Outcome, Verdict
from heliograph.delivery.signal import FROZEN
from heliograph.queue.machine import State
from heliograph.storage.database import Database

DEAD = Verdict(Outcome.TOKEN_DEAD, "gone")
AWAY = Verdict(Outcome.TRANSIENT, "away")


@pytest.mark.parametrize(
    ("sends", "bad", "frozen"),
    [(9, 9, False), (10, 10, True), (50, 10, False), (49, 10, True), (1_000, 200, False), (1_000, 201, True)],
)
def test_more_than_a_fifth_and_at_least_ten_is_a_mass_death(sends: int, bad: int, frozen: bool) -> None:
    """Of three devices one may well be gone."""
    assert Tally(sends, bad).mass_death is frozen


def test_only_what_judges_a_route_counts() -> None:
    """An outage dilutes nothing, nor does a credential that is refused."""
    counted = {outcome: tally_of(outcome) for outcome in Outcome}

    assert {outcome for outcome, tally in counted.items() if tally.bad} == {
        Outcome.TOKEN_DEAD,
        Outcome.TOKEN_SUSPECT,
    }
    assert {outcome for outcome, tally in counted.items() if not tally.sends} == {
        Outcome.CONFIG_BAD,
        Outcome.THROTTLED_TARGET,
        Outcome.THROTTLED_APP,
        Outcome.TRANSIENT,
        Outcome.UNKNOWN,
    }


@given(st.lists(st.tuples(st.integers(0, 20_000), st.booleans()), max_size=60))
def test_a_pulse_is_the_last_minute_within_a_bucket(steps: list[tuple[int, bool]]) -> None:
    """Nothing of the last minute is missing, nothing older than a bucket more is in it; it stays small."""
    pulse, now, told = Pulse(), NOW, []
    for ms, bad in steps:
        now += ms
        told.append((now, bad))
        pulse.count(Tally(1, int(bad)), now)
    tally = pulse.tally(now)
    least = [bad for at, bad in told if at > now - WINDOW_MS]
    most = [bad for at, bad in told if at > now - WINDOW_MS - BUCKET_MS]

    assert len(least) <= tally.sends <= len(most)
    assert sum(least) <= tally.bad <= sum(most)
    assert len(pulse.buckets()) <= WINDOW_MS // BUCKET_MS + 1


def test_three_doubts_over_time_about_different_deliveries_condemn_a_route() -> None:
    """Repeats and bursts are one doubt."""
    first = strike(None, "a", NOW)
    burst = strike(first, "b", NOW + STRIKE_SPACING_MS - 1)
    repeat = strike(first, "a", NOW + STRIKE_SPACING_MS)
    second = strike(first, "b", NOW + STRIKE_SPACING_MS)
    third = strike(second, "c", NOW + 2 * STRIKE_SPACING_MS)

    assert first == burst == repeat == Suspicion(1, NOW, NOW, "a")
    assert [condemned(each, NOW + 1) for each in (first, second, third)] == [False, False, True]
    assert third.strikes == STRIKES


def test_a_route_is_not_condemned_while_nothing_else_is_accepted() -> None:
    """Then it may be the credential that is wrong."""
    held = Suspicion(STRIKES, NOW, NOW, "c")

    assert [condemned(held, at) for at in (None, NOW - 1, NOW)] == [False, False, True]


def test_an_old_doubt_is_forgotten() -> None:
    """Nothing has confirmed it in a month."""
    held = Suspicion(2, NOW, NOW, "a")

    assert strike(held, "b", NOW + SUSPICION_KEPT_MS + 1).strikes == 1


def test_a_freeze_that_is_not_on_disk_yet_outlives_a_look_at_the_database() -> None:
    """Or the look would undo it."""
    health = Health()
    freezes = [health.count("c", Outcome.TOKEN_DEAD, NOW) for _ in range(BAD_MIN + 5)]
    health.learn([], {})

    assert [freeze is not None for freeze in freezes] == [False] * 9 + [True] + [False] * 5
    assert health.frozen("c")
    assert len(health.unwritten()) == 1


def test_what_other_processes_heard_counts_too() -> None:
    """Four of them with three deaths each are twelve."""
    health = Health()
    health.learn([], {"c": Tally(9, 9)})

    assert health.count("c", Outcome.TOKEN_DEAD, NOW) is not None


@pytest.mark.anyio
async def test_the_tenth_death_of_a_minute_freezes_the_credential_and_no_other(database: Database) -> None:
    """The first nine routes are gone (and can be brought back); all others stay, and their deliveries end."""
    cursed, healthy = Scripted("cursed", always=DEAD), Scripted("healthy", [DEAD])
    async with world(database, cursed, healthy) as here:
        process = here.process(at_once=1)
        await here.enqueue("cursed", 30)
        for _ in range(30):
            await process.runner.turn()
        await here.enqueue("healthy", 2)
        for _ in range(2):
            await process.runner.turn()
        freezes = await database.read(store.freezes)

    ends = [reason for reference, _, _, reason in process.source.ends if reference.startswith("cursed")]
    assert ends == ["gone"] * 9 + [FROZEN] * 21
    assert [end[3] for end in process.source.ends[30:]] == ["gone", None]
    assert {state for _, state, _, _ in process.source.ends} == {State.FAILED, State.DONE}
    assert [(freeze.credential, freeze.tally) for freeze in freezes] == [("cursed", Tally(10, 10))]
    assert process.froze == freezes


@pytest.mark.anyio
async def test_an_outage_beside_it_does_not_hide_a_mass_death(database: Database) -> None:
    """Fifty sends without an answer are no sends."""
    cursed = Scripted("cursed", [AWAY] * 50, always=DEAD)
    async with world(database, cursed) as here:
        process = here.process(at_once=100)
        await here.enqueue("cursed", 50)
        await process.runner.turn()
        here.clock.at += 1_000
        await process.runner.turn()

    assert len(process.froze) == 1


@pytest.mark.anyio
async def test_a_freeze_holds_in_other_processes_and_after_a_restart(database: Database) -> None:
    """It is written down by the very settlement that led to it."""
    cursed = Scripted("cursed", always=DEAD)
    async with world(database, cursed) as here:
        first, second = here.process(), here.process()
        await here.enqueue("cursed", 10)
        await first.runner.turn()
        await second.watch.turn()
        await here.enqueue("cursed", 3)
        await second.runner.turn()
        told = await database.read(store.frozen, "cursed")

    assert [reason for _, _, _, reason in second.source.ends] == [FROZEN] * 3
    assert told


@pytest.mark.anyio
async def test_deaths_that_several_processes_hear_add_up(database: Database) -> None:
    """None of them heard ten."""
    cursed = Scripted("cursed", always=DEAD)
    async with world(database, cursed) as here:
        processes = [here.process(at_once=4) for _ in range(3)]
        for process in processes:
            await here.enqueue("cursed", 4)
            await process.watch.turn()
            await process.runner.turn()
            here.clock.at += 3_000
            await process.watch.turn()

    assert [len(process.froze) for process in processes] == [0, 0, 1]


@pytest.mark.anyio
async def test_a_thawed_credential_begins_with_a_fresh_minute(database: Database) -> None:
    """Or the old deaths would freeze it again at once."""
    cursed = Scripted("cursed", [DEAD] * 10)
    async with world(database, cursed) as here:
        process = here.process()
        await here.enqueue("cursed", 10)
        await process.runner.turn()
        await process.watch.turn()
        thawed = [await HygieneDesk(database).thaw("cursed") for _ in range(2)]
        here.clock.at += 3_000
        await process.watch.turn()
        cursed.script.append(DEAD)
        await here.enqueue("cursed", 1)
        await process.runner.turn()

    assert thawed == [True, False]
    assert process.source.ends[-1][3] == "gone"
    assert process.health.freezes == 0


@pytest.mark.anyio
async def test_a_freeze_that_could_not_be_written_with_its_delivery_is_written_later(
    database: Database,
) -> None:
    """The lease was lost, perhaps."""
    async with world(database) as here:
        process = here.process()
        for _ in range(10):
            process.health.count("cursed", Outcome.TOKEN_DEAD, here.clock.at)
        await process.watch.turn()

    assert await database.read(store.frozen, "cursed")
    assert len(process.froze) == 1
