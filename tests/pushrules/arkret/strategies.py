"""Hypothesis strategies: any JSON, and rules, Events and facts that meet one another often."""

from typing import Any

from hypothesis import strategies as st

from heliograph.pushrules.arkret.event import Event, Facts
from heliograph.pushrules.arkret.members import DEFAULT_GRID
from heliograph.pushrules.arkret.watch import WatchLevel
from heliograph.pushrules.engine import Truth
from tests.pushrules.arkret.make import ALICE, BOB, REALM, STRAND, rule

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["kind", "payload", "patch", "tracks", "synthesis", "mentions", "dnd", "entries"])
            | st.text(max_size=6),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)

KINDS = ["ak.message.create", "ak.strand.update", "ak.call.signal"]
WORDS = ["urgent", "URGENT", "deploy", "Straße", "p0", "a|b", "*"]
PATTERNS = [*KINDS, REALM, "ak:realm:*", "*", "ak.*.create", "?", "discussion", "dis*", "high", "Σ"]
FIELDS = ["kind", "realm_id", "strand_id", "sender", "priority", "track_name", "watch_state", "body", "x.y"]

CONDITIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.just("field_match"),
            "field": st.sampled_from(FIELDS),
            "pattern": st.sampled_from(PATTERNS)
            | st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3),
        }
    ),
    st.fixed_dictionaries({"kind": st.just("contains_keyword"), "pattern": st.sampled_from(WORDS)}),
    st.just({"kind": "mentions_actor"}),
    st.just({"kind": "is_direct_message"}),
    st.fixed_dictionaries(
        {
            "kind": st.just("member_count"),
            "op": st.sampled_from(["<=", "gt"]),
            "value": st.sampled_from([10, 50, 2000]),
        }
    ),
    st.fixed_dictionaries(
        {"kind": st.just("strand_track"), "pattern": st.sampled_from(["discussion", "s*"])}
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("watch_state"),
            "pattern": st.lists(st.sampled_from(list(WatchLevel)), min_size=1, max_size=2),
        }
    ),
)


@st.composite
def rulesets(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid document of up to eight rules."""
    rules = []
    for place in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["override", "content", "underride"]))
        rules.append(
            rule(
                f"{kind}.{place}",
                *draw(st.lists(CONDITIONS, max_size=3)),
                enabled=draw(st.booleans() | st.just(value=True)),
                actions=draw(st.lists(st.sampled_from(["notify", "dont_notify", "highlight"]), max_size=2)),
            )
        )
    return {"rules": rules}


EVENTS = st.builds(
    Event,
    kind=st.sampled_from([*KINDS, None]),
    realm_id=st.sampled_from([REALM, "ak:realm:x", "", None]),
    strand_id=st.sampled_from([STRAND, None]),
    sender=st.sampled_from([ALICE, BOB, None]),
    payload=st.dictionaries(st.sampled_from(["x", "body", "priority"]), JSON, max_size=2),
    readable=st.booleans() | st.just(value=True),
    body=st.sampled_from([None, "", "URGENT: deploy", "die strasse", "Straße * p0"]),
    priority=st.sampled_from([None, "high"]),
)

FACTS = st.builds(
    Facts,
    mentions_actor=st.sampled_from(list(Truth)),
    direct_message=st.sampled_from(list(Truth)),
    members=st.sampled_from([None, 2, 10, 11, 3000, *DEFAULT_GRID]),
    tracks=st.sampled_from(
        [None, frozenset(), frozenset({"discussion"}), frozenset({"discussion", "synthesis"})]
    ),
    watch=st.sampled_from([None, *WatchLevel]),
)
