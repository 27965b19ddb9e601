"""Ids drawn from randomness sort by age and are UUIDs to everybody else."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from heliograph.ambient.entropy import SystemEntropy


@given(st.integers(0, 2**48 - 1))
def test_an_id_is_a_uuid_of_version_7_that_tells_its_age(now: int) -> None:
    """By RFC 9562: 48 bits of milliseconds, the version, the variant, and 74 drawn bits."""
    text = SystemEntropy().uuid7(now)

    read = uuid.UUID(text)
    assert str(read) == text
    assert (read.version, read.variant) == (7, uuid.RFC_4122)
    assert read.int >> 80 == now


def test_ids_of_one_millisecond_differ() -> None:
    """And those of a later one sort after them."""
    entropy = SystemEntropy()

    drawn = {entropy.uuid7(1_790_000_000_000) for _ in range(1_000)}

    assert len(drawn) == 1_000
    assert max(drawn) < entropy.uuid7(1_790_000_000_001)
