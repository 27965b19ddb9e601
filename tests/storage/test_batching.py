"""How transactions come to share a commit, with a writer that only takes note of its batches."""

import asyncio
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.storage.batching import CAREFUL_BATCHES, Batcher, Care, Job, Observer, Ran, bound
from heliograph.storage.database import DatabaseUnavailable

pytestmark = pytest.mark.anyio


class Writer:
    """Runs each job's work with itself as the transaction, and can be held in the middle of a batch."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.may_go = threading.Event()
        self.may_go.set()
        self.takes: Callable[[list[Job]], int] = len

    def run(self, batch: list[Job]) -> Ran:
        self.may_go.wait()
        taken = self.takes(batch)
        self.batches.append(taken)
        for job in batch[:taken]:
            try:
                job.result = job.work(job)
            except (LookupError, RuntimeError, ArithmeticError) as error:
                job.error = error
        return Ran(taken)


def untold(ran: Ran, seconds: float) -> None:
    """Listen to nothing."""


def batcher(writer: Writer, **limits: int) -> Batcher:
    return Batcher(writer.run, "test-writer", untold, **limits)


def same(value: Any) -> Callable[[Any], Any]:
    return lambda _tx: value


async def turns(count: int = 1) -> None:
    """Let the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_one_turn_of_the_loop_brings_shares_a_commit() -> None:
    """However many tasks it comes from; each is answered with its own result."""
    writer = Writer()
    queue = batcher(writer)

    answers = await asyncio.gather(*(queue.put(same(number)) for number in range(100)))
    await queue.close()

    assert (answers, writer.batches) == (list(range(100)), [100])


async def test_what_comes_while_the_writer_works_is_the_next_batch() -> None:
    """It gathers meanwhile, in the order in which it came."""
    writer = Writer()
    writer.may_go.clear()
    queue = batcher(writer)
    tasks = [asyncio.create_task(queue.put(same(0)))]
    await turns(3)
    tasks += [asyncio.create_task(queue.put(same(number))) for number in range(1, 6)]
    await turns(3)
    waiting = queue.waiting
    writer.may_go.set()

    assert await asyncio.gather(*tasks) == [0, 1, 2, 3, 4, 5]
    assert (waiting, writer.batches) == (5, [1, 5])
    await queue.close()


async def test_a_batch_has_a_largest_size() -> None:
    """The rest follows in the next ones."""
    writer = Writer()
    queue = batcher(writer, batch_max=4)

    await asyncio.gather(*(queue.put(same(number)) for number in range(10)))
    await queue.close()

    assert writer.batches == [4, 4, 2]


async def test_what_a_writer_leaves_leads_the_next_batch() -> None:
    """A writer commits what it has when its time is up."""
    writer = Writer()
    writer.takes = lambda batch: min(3, len(batch))
    queue = batcher(writer)
    order: list[int] = []

    await asyncio.gather(*(queue.put(bound(lambda _tx, n: order.append(n), (n,), {})) for n in range(8)))
    await queue.close()

    assert (writer.batches, order) == ([3, 3, 2], list(range(8)))


async def test_more_than_may_wait_is_refused_at_once() -> None:
    """Rather than made to wait for seconds; who waits already is not affected."""
    writer = Writer()
    writer.may_go.clear()
    queue = batcher(writer, waiting_max=2)
    running = asyncio.create_task(queue.put(same("runs")))
    await turns(3)
    waiting = [asyncio.create_task(queue.put(same(n))) for n in range(2)]
    await turns()

    with pytest.raises(DatabaseUnavailable, match="too many transactions wait"):
        await queue.put(same("one too many"))
    writer.may_go.set()

    assert await asyncio.gather(running, *waiting) == ["runs", 0, 1]
    await queue.close()


async def test_a_caller_that_gave_up_before_its_turn_is_skipped() -> None:
    """What nobody waits for is not worth a commit."""
    writer = Writer()
    writer.may_go.clear()
    queue = batcher(writer)
    ran: list[str] = []
    tasks = [asyncio.create_task(queue.put(lambda _tx: ran.append("first")))]
    await turns(3)
    tasks.append(asyncio.create_task(queue.put(lambda _tx: ran.append("given up"))))
    await turns()
    tasks[1].cancel()
    await turns()
    writer.may_go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    await queue.close()

    assert (ran, writer.batches) == (["first"], [1])


async def test_a_caller_that_gives_up_during_its_commit_hurts_nobody() -> None:
    """Its function ran and is committed; its neighbours hear of theirs."""
    writer = Writer()
    writer.may_go.clear()
    queue = batcher(writer)
    tasks = [asyncio.create_task(queue.put(same(number))) for number in range(3)]
    await turns(3)
    tasks[1].cancel()
    await turns()
    writer.may_go.set()

    ends = await asyncio.gather(*tasks, return_exceptions=True)
    await queue.close()

    assert (ends[0], type(ends[1]), ends[2]) == (0, asyncio.CancelledError, 2)


async def test_a_callback_that_fails_keeps_no_answer_back() -> None:
    """It is a bug, told to the loop; those behind it are called and answered."""
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: told.append(str(context["exception"]))
    )
    rung: list[int] = []

    def work(job: Any, number: int) -> int:
        job.callbacks.append(lambda: rung.append(1 // number))
        return number

    queue = batcher(Writer())
    answers = await asyncio.gather(*(queue.put(bound(work, (number,), {})) for number in (1, 0, 1)))
    await queue.close()
    asyncio.get_running_loop().set_exception_handler(None)

    assert (answers, rung, told) == ([1, 0, 1], [1, 1], ["integer division or modulo by zero"])


async def test_no_callback_runs_for_a_transaction_that_failed() -> None:
    """What is not on disk rings no bell."""
    rung: list[str] = []

    def work(job: Any) -> None:
        job.callbacks.append(lambda: rung.append("rung"))
        raise LookupError

    queue = batcher(Writer())
    with pytest.raises(LookupError):
        await queue.put(work)
    await queue.close()

    assert rung == []


async def test_a_bug_of_the_writer_reaches_every_caller() -> None:
    """Nobody waits for ever, and the next batch has its chance."""
    writer = Writer()
    writer.takes = lambda batch: 1 // 0
    queue = batcher(writer)

    ends = await asyncio.gather(*(queue.put(same(number)) for number in range(3)), return_exceptions=True)
    writer.takes = len

    assert [type(end) for end in ends] == [ZeroDivisionError] * 3
    assert await queue.put(same("again")) == "again"
    await queue.close()


async def test_even_a_stop_iteration_has_an_answer() -> None:
    """A future cannot carry one."""
    queue = batcher(Writer())

    with pytest.raises(RuntimeError, match="StopIteration"):
        await queue.put(bound(lambda _tx: next(iter(())), (), {}))
    await queue.close()


async def test_closing_finishes_what_was_handed_over_and_takes_no_more() -> None:
    """Both what runs and what waits."""
    writer = Writer()
    writer.may_go.clear()
    queue = batcher(writer, batch_max=2)
    tasks = [asyncio.create_task(queue.put(same(number))) for number in range(5)]
    await turns(3)
    closing = asyncio.create_task(queue.close())
    await turns()
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await queue.put(same("late"))
    writer.may_go.set()
    await closing

    assert await asyncio.gather(*tasks) == [0, 1, 2, 3, 4]


async def test_the_observer_hears_of_commits_and_of_each_collision() -> None:
    """And may leave out either."""
    commits: list[int] = []
    reasons: list[str] = []

    Observer(lambda count, _: commits.append(count), reasons.append).tell(Ran(3, ("a", "b", "a")), 0.1)
    Observer().tell(Ran(1, ("c",)), 0.1)

    assert (commits, reasons) == ([3], ["a", "b", "a"])


@given(st.lists(st.booleans(), max_size=200))
async def test_savepoints_stay_for_a_while_after_they_were_missed(missed: list[bool]) -> None:
    """One batch at the most in 33 is run twice, whoever makes its transactions raise."""
    care = Care()
    repeated: list[int] = []
    for number, spoils in enumerate(missed):
        if not care.begin() and spoils:
            care.repeat()
            repeated.append(number)

    assert all(later - earlier > CAREFUL_BATCHES for earlier, later in pairwise(repeated))
