"""Buckets fill evenly, never punish a clock that steps, and forget nobody they owe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.edge.limits import Buckets, Gate, Rate, TokenBucket


def test_a_bucket_begins_full_and_fills_evenly() -> None:
    """Ten a second: the eleventh waits 100 milliseconds."""
    bucket = TokenBucket(Rate(10, 10), 0)

    assert [bucket.admit(1, 0) for _ in range(11)] == [0] * 10 + [100]
    assert bucket.admit(1, 99) == 1
    assert bucket.admit(1, 100) == 0


def test_a_partial_take_gives_what_there_is() -> None:
    """Of 8 wanted devices 5 pass."""
    bucket = TokenBucket(Rate(1, 5), 0)

    assert bucket.take(8, 0) == 5
    assert bucket.take(1, 999) == 0
    assert bucket.take(2, 3000) == 2


def test_a_request_larger_than_the_bucket_is_slowed_and_never_starved() -> None:
    """It passes when the bucket is full and leaves a debt."""
    bucket = TokenBucket(Rate(10, 10), 0)

    assert bucket.admit(30, 0) == 0
    assert bucket.admit(1, 0) == 2100
    assert bucket.admit(1, 2100) == 0


def test_a_clock_that_steps_back_neither_drains_nor_fills() -> None:
    """And catching up does not count twice."""
    bucket = TokenBucket(Rate(10, 10), 10_000)
    bucket.take(10, 10_000)

    assert bucket.take(1, 5_000) == 0
    assert bucket.take(1, 10_000) == 0
    assert bucket.take(5, 10_100) == 1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 500)), max_size=60))
def test_no_more_passes_than_the_burst_and_what_flowed(steps: list[tuple[int, int]]) -> None:
    """Whatever the order of asking."""
    bucket, now, passed = TokenBucket(Rate(7, 20), 0), 0, 0

    for count, later in steps:
        now += later
        passed += bucket.take(count, now)

    assert passed <= 20 + now * 7 / 1000 + 1e-6


def test_each_key_has_a_bucket_of_its_own_and_the_idlest_is_forgotten() -> None:
    """Memory is bounded by a number of keys."""
    buckets = Buckets[str](Rate(1, 1), keys_max=2)
    buckets.bucket("a", 0).take(1, 0)
    buckets.bucket("b", 0).take(1, 0)
    buckets.bucket("a", 0)
    buckets.bucket("c", 0)

    assert len(buckets) == 2
    assert buckets.bucket("a", 0).take(1, 0) == 0
    assert buckets.bucket("b", 0).take(1, 0) == 1


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_rate_that_lets_nothing_through_is_refused(per_second: float, burst: int) -> None:
    """It is a mistake, not a limit."""
    with pytest.raises(ValueError, match="let something through"):
        Rate(per_second, burst)


def test_a_gate_has_room_again_when_somebody_leaves() -> None:
    """It counts and never waits."""
    gate = Gate(1)

    assert [gate.enter(), gate.enter()] == [True, False]
    gate.leave()
    assert gate.enter()
