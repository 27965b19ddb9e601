"""The rows of the queue, on both databases."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import pytest
from tests.work import LEASE_MS, NOW, POLICY, item, items, show, states

from heliograph.queue import store
from heliograph.queue.machine import Delivered, Later, Refused, Signal, State
from heliograph.queue.model import LIFE_MS, Canceled, Claim, Claimed, Ending, NewItem, Round, Swept
from heliograph.storage.database import Database, DatabaseUnavailable
from heliograph.wire.malformed import Malformed

pytestmark = pytest.mark.anyio

POLICIES = {"k": POLICY}
ITEM: dict[str, Any] = {"item_id": "i", "kind": "k", "lane": "a", "reference": "r", "due_at": NOW}


async def enqueue(database: Database, new: Sequence[NewItem], now: int = NOW) -> set[str]:
    return await database.transact(store.enqueue, new, now)


async def claim(
    database: Database, limit: int = 100, now: int = NOW, kinds: tuple[str, ...] = ("k",)
) -> list[Claim]:
    return await database.claim(store.claim, kinds, limit, now, LEASE_MS)


async def settle(
    database: Database, claims: Sequence[Claim], signal: Signal, now: int = NOW
) -> list[State | None]:
    endings = [Ending(each, signal, POLICY) for each in claims]
    changes = await database.transact(store.settle_all, endings, now)
    return [change.state if change else None for change in changes]


async def sweep(database: Database, now: int, limit: int = 1_000) -> Swept:
    return await database.transact(store.sweep, POLICIES, now, limit)


async def the_round(database: Database, kinds: tuple[str, ...], limit: int, place: Round) -> Claimed:
    return await database.claim(store.claim_round, kinds, limit, NOW, LEASE_MS, place=place)


T = TypeVar("T")


async def persist(call: Callable[[], Awaitable[T]]) -> T:
    """Call again when the database says that nothing was committed, as a runner does."""
    while True:
        with contextlib.suppress(DatabaseUnavailable):
            return await call()


class TestEnqueue:
    async def test_new_work_waits_for_its_time(self, database: Database) -> None:
        """What is due is claimed; what is due a millisecond later is not."""
        added = await enqueue(database, [item(1), item(2, due_at=NOW + 1)])

        assert added == {"item-000001", "item-000002"}
        assert [each.item_id for each in await claim(database)] == ["item-000001"]

    async def test_nothing_is_nothing(self, database: Database) -> None:
        """An empty batch is no mistake."""
        assert await enqueue(database, []) == set()

    async def test_equal_work_joins_what_still_waits(self, database: Database) -> None:
        """A second wakeup for a device whose first was not claimed yet adds nothing (A2)."""
        await enqueue(database, [item(1, fold_key="f")])

        assert await enqueue(database, [item(2, fold_key="f")]) == set()
        assert await states(database) == {State.READY: 1}

    async def test_of_equal_items_in_one_batch_the_first_is_added(self, database: Database) -> None:
        """The answer names the ids that were really added."""
        added = await enqueue(database, [item(1, fold_key="f"), item(2, fold_key="f"), item(3, fold_key="g")])

        assert added == {"item-000001", "item-000003"}

    async def test_equal_work_does_not_join_what_is_being_done(self, database: Database) -> None:
        """The attempt in progress may have read the old state already."""
        await enqueue(database, [item(1, fold_key="f")])
        await claim(database)

        assert await enqueue(database, [item(2, fold_key="f")]) == {"item-000002"}

    async def test_work_that_was_handed_back_does_not_clash_with_its_successor(
        self, database: Database
    ) -> None:
        """Its attempt is 0 again, yet it is not the one that waits unclaimed."""
        await enqueue(database, [item(1, fold_key="f")])
        claims = await claim(database)
        await enqueue(database, [item(2, fold_key="f")])

        await database.transact(store.release, claims, POLICIES, NOW)

        assert await show(database, 1) == (State.READY, 0, 1, "released")
        assert await enqueue(database, [item(3, fold_key="f")]) == set()

    async def test_every_item_gets_an_expiry(self, database: Database) -> None:
        """A week after it is due, so that nothing waits for ever."""
        await enqueue(database, [item(1, due_at=NOW + 5)])

        assert (await claim(database, now=NOW + 5))[0].expires_at == NOW + 5 + LIFE_MS

    @pytest.mark.parametrize("field", ["lane", "kind", "group", "fold_key"])
    @pytest.mark.parametrize("text", ["", "x" * 513])
    def test_keys_are_neither_empty_nor_endless(self, field: str, text: str) -> None:
        """The empty lane would never be found."""
        with pytest.raises(ValueError, match=field):
            NewItem(**{**ITEM, field: text})


class TestClaim:
    async def test_the_longest_due_comes_first(self, database: Database) -> None:
        """Then the lower id."""
        await enqueue(database, [item(1, due_at=NOW - 1), item(3, due_at=NOW - 9), item(2, due_at=NOW - 9)])

        assert [each.item_id for each in await claim(database, 2)] == ["item-000002", "item-000003"]

    async def test_a_claim_counts_the_attempt_and_raises_the_fence(self, database: Database) -> None:
        """J11: the attempt is counted when it begins, so a crash cannot hide it."""
        await enqueue(database, [item(1, group="g", expires_at=NOW + 60_000)], now=NOW - 7)

        claims = await claim(database)

        assert claims == [
            Claim(
                item_id="item-000001",
                kind="k",
                lane="a",
                group="g",
                reference="ref-1",
                attempt=1,
                revision=1,
                leased_until=NOW + LEASE_MS,
                created_at=NOW - 7,
                expires_at=NOW + 60_000,
            )
        ]
        assert await claim(database) == []

    async def test_only_the_kinds_asked_for_are_taken(self, database: Database) -> None:
        """Each process performs what it has handlers for."""
        await enqueue(database, [item(1, kind="other"), item(2)])

        assert [each.item_id for each in await claim(database)] == ["item-000002"]

    async def test_a_million_of_one_lane_does_not_fill_the_batch(self, database: Database) -> None:
        """B3, in small: each lane gets its share, and what small lanes leave goes to the large one."""
        await enqueue(database, [*items(300, lane="giant"), *items(3, first=900, lane="small")])

        taken = Counter(each.lane for each in await claim(database, 10))

        assert taken == {"giant": 7, "small": 3}

    async def test_lanes_share_equally_when_all_have_plenty(self, database: Database) -> None:
        """Ten slots for three lanes: three each, and one for whoever is first."""
        for lane in "abc":
            await enqueue(database, items(20, first=ord(lane) * 100, lane=lane))

        taken = Counter(each.lane for each in await claim(database, 10))

        assert sorted(taken.values()) == [3, 3, 4]

    async def test_with_fewer_slots_than_lanes_each_lane_has_its_turn(self, database: Database) -> None:
        """Seven lanes with two items each, three slots: after a round every lane was served once."""
        for lane in "abcdefg":
            await enqueue(database, items(2, first=ord(lane) * 10, lane=lane))

        place, served, more = Round(), [], []
        for _ in range(3):
            claimed = await the_round(database, ("k",), 3, place)
            served.append("".join(sorted(each.lane for each in claimed.claims)))
            place = claimed.place
            more.append(claimed.more)

        assert served == ["abc", "def", "gg"]
        assert more == [True, True, True]

    async def test_a_round_over_many_idle_lanes_comes_to_an_end(self, database: Database) -> None:
        """Six hundred lanes whose items are not due: three claims look at all of them, then it is quiet."""
        await enqueue(database, [item(n, lane=f"lane-{n:03}", due_at=NOW + 1) for n in range(600)])

        place, more = Round(), []
        for _ in range(3):
            claimed = await the_round(database, ("k", "never"), 10, place)
            place = claimed.place
            more.append(claimed.more)

        assert more == [True, True, False]
        assert place == Round()

    async def test_work_behind_many_idle_lanes_is_found(self, database: Database) -> None:
        """And a round that took something is followed by another look."""
        await enqueue(database, [item(n, lane=f"lane-{n:03}", due_at=NOW + 1) for n in range(300)])
        await enqueue(database, [item(999, lane="z")])

        first = await the_round(database, ("k",), 10, Round())
        second = await the_round(database, ("k",), 10, first.place)

        assert ([each.lane for each in first.claims], first.more) == ([], True)
        assert ([each.lane for each in second.claims], second.more) == (["z"], True)

    async def test_a_kind_without_a_slot_keeps_its_place(self, database: Database) -> None:
        """The earlier kind took all; the later one goes on where it stood."""
        await enqueue(database, [*items(1), *items(2, first=5, kind="later")])

        first = await the_round(database, ("k", "later"), 1, Round())
        second = await the_round(database, ("k", "later"), 9, first.place)

        assert [each.kind for each in first.claims] == ["k"]
        assert [each.kind for each in second.claims] == ["later", "later"]

    async def test_a_claim_that_took_all_says_so(self, database: Database) -> None:
        """Nobody looks again before a ring."""
        await enqueue(database, items(3))

        assert not (await the_round(database, ("k",), 10, Round())).more

    async def test_no_slots_take_nothing(self, database: Database) -> None:
        """Not even one."""
        await enqueue(database, items(3))

        assert (await the_round(database, ("k",), 0, Round())).claims == []

    @pytest.mark.parametrize("lease_ms", [0, -1, 999, 3_600_001])
    async def test_a_lease_that_is_none_is_refused(self, database: Database, lease_ms: int) -> None:
        """J7: zero never means for ever, nor at once."""
        with pytest.raises(Malformed, match="lease_ms: must be from 1000 to 3600000"):
            await database.claim(store.claim, ["k"], 1, NOW, lease_ms)


class TestSettle:
    async def test_a_settlement_is_written_once(self, database: Database) -> None:
        """The second is fenced."""
        await enqueue(database, items(2))
        claims = await claim(database)

        assert await settle(database, claims, Delivered()) == [State.DONE, State.DONE]
        assert await settle(database, claims, Delivered()) == [None, None]

    async def test_one_claim_given_twice_settles_once(self, database: Database) -> None:
        """Even within one batch."""
        await enqueue(database, items(1))
        claims = await claim(database)

        assert await settle(database, claims * 2, Later("busy")) == [State.READY, None]

    async def test_the_holder_of_a_lost_lease_is_fenced(self, database: Database) -> None:
        """J1: the second holder's claim has a higher revision; whatever the first says is not written."""
        await enqueue(database, items(1))
        first = await claim(database)
        await sweep(database, NOW + LEASE_MS)
        second = await claim(database, now=NOW + LEASE_MS)

        assert await settle(database, first, Refused("late")) == [None]
        assert await settle(database, second, Delivered()) == [State.DONE]
        assert await show(database, 0) == (State.DONE, 2, 2, None)

    async def test_a_single_settlement_is_fenced_as_well(self, database: Database) -> None:
        """The plain form, for those who decide by themselves."""
        await enqueue(database, items(1))
        (only,) = await claim(database)
        change = (await database.transact(store.settle_all, [Ending(only, Later("busy"), POLICY)], NOW))[0]
        assert change is not None

        assert not await database.transact(store.settle, only, change, NOW)
        (again,) = await claim(database)
        assert not await database.transact(store.settle, only, change, NOW)
        assert await database.transact(store.settle, again, change, NOW)


class TestSweep:
    async def test_ended_leases_are_taken_over_and_others_are_not(self, database: Database) -> None:
        """J4: ready at once, the crash counted."""
        await enqueue(database, items(2))
        (early, _late) = [*await claim(database, 1), *await claim(database, 1, now=NOW + 1)]

        swept = await sweep(database, NOW + LEASE_MS)

        assert [each for each, _ in swept.settled] == [early]
        assert swept.following is None
        assert await show(database, 0) == (State.READY, 1, 1, "lease_expired")

    async def test_a_page_of_rows_that_stay_hides_none_behind_it(self, database: Database) -> None:
        """J6: the first page belongs to kinds that another runner looks after."""
        await enqueue(database, [*items(5, kind="other"), *items(1, first=9)])
        await database.claim(store.claim, ["other", "k"], 10, NOW, LEASE_MS)

        first = await sweep(database, NOW + LEASE_MS, limit=5)
        assert first.following is not None
        second = await database.transact(store.sweep, POLICIES, NOW + LEASE_MS, 5, first.following)

        assert (len(first.settled), [each.item_id for each, _ in second.settled]) == (0, ["item-000009"])

    async def test_attempts_end_with_the_last_crash(self, database: Database) -> None:
        """J9, J11: ten crashes in a row; after the fifth the item is dead with exactly this reason."""
        await enqueue(database, items(1))
        now, claimed = NOW, 0
        for _ in range(10):
            claimed += len(await claim(database, now=now))
            now += LEASE_MS
            await sweep(database, now)

        assert claimed == 5
        assert await show(database, 0) == (State.DEAD, 5, 5, "attempts_exhausted")


async def test_ten_thousand_canceled_leases_hide_none_behind_them(database: Database) -> None:
    """J6: 10,001 ended leases, the first 10,000 of a canceled group; all are handled."""
    await enqueue(database, items(10_000, group="g"))
    for _ in range(10):
        assert len(await claim(database, 1_000)) == 1_000
    await enqueue(database, items(1, first=10_000))
    await claim(database, now=NOW + 1)
    assert await database.transact(store.cancel, "g", NOW) == Canceled(waiting=0, leased=10_000)

    following: tuple[int, str] | None = (0, "")
    while following is not None:
        swept = await database.transact(store.sweep, POLICIES, NOW + LEASE_MS + 1, 1_000, following)
        following = swept.following

    assert await states(database) == {State.CANCELED: 10_000, State.READY: 1}


class TestCancel:
    async def test_what_waits_is_canceled_and_what_is_leased_is_asked(self, database: Database) -> None:
        """C4: in one transaction; asking again asks nobody."""
        await enqueue(database, [*items(3, group="g"), *items(1, first=8, group="h")])
        await claim(database, 1)

        assert await database.transact(store.cancel, "g", NOW) == Canceled(waiting=2, leased=1)
        assert await database.transact(store.cancel, "g", NOW) == Canceled(waiting=0, leased=0)
        assert await states(database) == {State.READY: 1, State.LEASED: 1, State.CANCELED: 2}

    async def test_nothing_is_leased_after_the_cancel(self, database: Database) -> None:
        """C3: not after its commit."""
        await enqueue(database, items(3, group="g"))
        await database.transact(store.cancel, "g", NOW)

        assert await claim(database) == []

    @pytest.mark.parametrize(("signal", "end"), [(Delivered(), State.DONE), (Later("busy"), State.CANCELED)])
    async def test_an_attempt_in_progress_finishes_once_or_is_canceled(
        self, database: Database, signal: Signal, end: State
    ) -> None:
        """C2: what was done is told as done."""
        await enqueue(database, items(1, group="g"))
        claims = await claim(database)
        await database.transact(store.cancel, "g", NOW)

        assert await settle(database, claims, signal) == [end]
        assert await claim(database, now=NOW + 3_600_000) == []

    async def test_a_thousand_cancels_race_as_many_completions(self, database: Database) -> None:
        """C2: the cancel's answer and the completion's always fit the final state."""
        await enqueue(database, [item(n, group=f"g{n}") for n in range(1_000)])
        claims = await claim(database, 1_000)

        async def race(lease: Claim) -> tuple[Canceled, State | None]:
            signal = Delivered() if int(lease.reference[4:]) % 2 else Later("busy")
            canceling = persist(lambda: database.transact(store.cancel, lease.group or "", NOW))
            settling = persist(lambda: settle(database, [lease], signal))
            if int(lease.reference[4:]) % 3:
                canceled, (ended,) = await asyncio.gather(canceling, settling)
            else:
                (ended,), canceled = await asyncio.gather(settling, canceling)
            return canceled, ended

        fates = Counter(await asyncio.gather(*(race(lease) for lease in claims)))

        assert set(fates) <= {
            (Canceled(0, 1), State.DONE),  # asked while it finished
            (Canceled(0, 0), State.DONE),  # came too late
            (Canceled(0, 1), State.CANCELED),  # asked, and then it said later
            (Canceled(1, 0), State.READY),  # it said later, and then it was canceled
        }
        assert await states(database) == {State.DONE: 500, State.CANCELED: 500}


class TestRemains:
    async def test_old_rows_go_and_the_unsettled_and_the_dead_stay(self, database: Database) -> None:
        """Prune pages through done, failed and canceled rows only."""
        await enqueue(database, items(5))
        claims = await claim(database, 4)
        await settle(database, claims[:2], Delivered())
        await settle(database, claims[2:3], Delivered(), now=NOW + 1)
        await settle(database, claims[3:4], Later("busy", after_ms=LIFE_MS))

        assert await database.transact(store.prune, NOW + 1, 1) == 1
        assert await database.transact(store.prune, NOW + 1) == 1
        assert await states(database) == {State.READY: 1, State.DONE: 1, State.DEAD: 1}

    async def test_the_dead_are_listed_page_by_page_with_what_they_died_of(self, database: Database) -> None:
        """J10: by a keyset on the unique id, which need not exist."""
        await enqueue(database, items(5, expires_at=NOW + 9))
        await settle(database, await claim(database), Later("apns_503", after_ms=9), now=NOW + 2)

        first = await database.read(store.dead, "", 2)
        rest = await database.read(store.dead, "item-000001x", 100)

        assert [dead.item_id for dead in first] == ["item-000000", "item-000001"]
        assert [dead.item_id for dead in rest] == ["item-000002", "item-000003", "item-000004"]
        assert (first[0].reason, first[0].cause, first[0].settled_at) == ("expired", "apns_503", NOW + 2)

    async def test_a_dead_item_can_be_tried_again(self, database: Database) -> None:
        """J10: it is claimed as if new, behind a higher fence."""
        await enqueue(database, items(1))
        for attempt in range(5):
            claims = await claim(database, now=NOW + attempt)
            await settle(database, claims, Later("busy"))
        assert (await show(database, 0))[0] is State.DEAD

        assert await database.transact(store.retry, "item-000000", NOW)
        assert not await database.transact(store.retry, "item-000000", NOW)
        assert (await claim(database))[0].revision == 6
        assert await show(database, 0) == (State.LEASED, 1, 6, "retried")

    async def test_what_is_not_dead_or_past_its_expiry_is_not_tried_again(self, database: Database) -> None:
        """Nor what does not exist."""
        await enqueue(database, [item(1), item(2, expires_at=NOW + 1)])
        claims = await claim(database)
        await settle(database, [each for each in claims if each.item_id == "item-000002"], Later("x", 1))

        tries = [await database.transact(store.retry, f"item-00000{number}", NOW + 1) for number in (1, 2, 3)]

        assert tries == [False, False, False]

    async def test_dead_rows_go_later(self, database: Database) -> None:
        """By a prune of their own."""
        await enqueue(database, items(1, expires_at=NOW + 1))
        await settle(database, await claim(database), Later("x", 1))

        assert await database.transact(store.prune, NOW + 1) == 0
        assert await database.transact(store.prune_dead, NOW) == 0
        assert await database.transact(store.prune_dead, NOW + 1) == 1

    async def test_counts_and_lag_tell_how_the_queue_stands(self, database: Database) -> None:
        """The lag is that of the oldest due item over all lanes, and nothing when none is due."""
        await enqueue(database, [item(1, due_at=NOW - 40), item(2, lane="b", due_at=NOW - 70)])
        await enqueue(database, [item(3, kind="idle", due_at=NOW + 9)])

        assert await database.read(store.counts) == {("k", State.READY): 2, ("idle", State.READY): 1}
        assert await database.read(store.lag_ms, ["k", "idle", "none"], NOW) == {
            "k": 70,
            "idle": 0,
            "none": 0,
        }
