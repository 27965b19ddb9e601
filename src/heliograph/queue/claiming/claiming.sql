-- name: pairs
-- Hops from one pair of gate and lane that has waiting items to the next and looks at the first of each: one search
-- of the index for each pair, however many items wait in it. Two questions, the next lane and else the next gate:
-- asked about the pair at once, the one database would search by the gate alone and read all of its items.
WITH RECURSIVE hops (gate, lane, due_at, expires_at, hop) AS (
    SELECT :after_gate, :after_lane, 0, 0, 0
    UNION ALL
    SELECT head.gate, head.lane, head.due_at, head.expires_at, hops.hop + 1
    FROM hops
    CROSS JOIN queue_items AS head ON head.item_id = COALESCE(
        (
            SELECT first.item_id FROM queue_items AS first
            WHERE first.state = 'ready' AND first.kind = :kind AND first.gate = hops.gate AND first.lane > hops.lane
            ORDER BY first.lane, first.due_at, first.item_id LIMIT 1
        ),
        (
            SELECT first.item_id FROM queue_items AS first
            WHERE first.state = 'ready' AND first.kind = :kind AND first.gate > hops.gate
            ORDER BY first.gate, first.lane, first.due_at, first.item_id LIMIT 1
        )
    )
    WHERE hops.hop < :pairs
)
SELECT hops.gate, hops.lane, hops.due_at, hops.expires_at, shut.closed_until
FROM hops LEFT JOIN queue_gates AS shut ON shut.gate = hops.gate
WHERE hops.hop > 0
ORDER BY hops.hop;

-- name: pairs (postgres)
-- why: it searches once for each hop only where LATERAL leaves no other way, and types come from the first row.
WITH RECURSIVE hops (gate, lane, due_at, expires_at, hop) AS (
    SELECT CAST(:after_gate AS TEXT) COLLATE "C", CAST(:after_lane AS TEXT) COLLATE "C", CAST(0 AS BIGINT),
        CAST(0 AS BIGINT), 0
    UNION ALL
    SELECT head.gate, head.lane, head.due_at, head.expires_at, hops.hop + 1
    FROM hops
    CROSS JOIN LATERAL (
        SELECT first.gate, first.lane, first.due_at, first.expires_at FROM queue_items AS first
        WHERE first.state = 'ready' AND first.kind = :kind AND (first.gate, first.lane) > (hops.gate, hops.lane)
        ORDER BY first.gate, first.lane, first.due_at, first.item_id
        LIMIT 1
    ) AS head
    WHERE hops.hop < :pairs
)
SELECT hops.gate, hops.lane, hops.due_at, hops.expires_at, shut.closed_until
FROM hops LEFT JOIN queue_gates AS shut ON shut.gate = hops.gate
WHERE hops.hop > 0
ORDER BY hops.hop;

-- name: claim
UPDATE queue_items
SET state = 'leased', attempt = attempt + 1, revision = revision + 1, leased_until = :leased_until
WHERE item_id IN (
    SELECT chosen.item_id
    FROM json_each(:pairs) AS pair
    CROSS JOIN queue_items AS chosen ON chosen.item_id IN (
        SELECT waiting.item_id FROM queue_items AS waiting
        WHERE waiting.state = 'ready' AND waiting.kind = pair.value ->> 0 AND waiting.gate = pair.value ->> 1
            AND waiting.lane = pair.value ->> 2 AND waiting.due_at <= :now
        ORDER BY waiting.due_at, waiting.item_id
        LIMIT :share
    )
    LIMIT :room
)
RETURNING item_id, kind, lane, group_key, reference, attempt, revision, leased_until, created_at, expires_at, gate,
    due_at;

-- name: claim (postgres)
-- why: several claimers at once must pass over one another's rows, and JSON is unfolded by another function.
WITH chosen AS (
    SELECT waiting.item_id
    FROM json_array_elements(CAST(:pairs AS json)) AS pair (value)
    CROSS JOIN LATERAL (
        SELECT item.item_id FROM queue_items AS item
        WHERE item.state = 'ready' AND item.kind = pair.value ->> 0 AND item.gate = pair.value ->> 1
            AND item.lane = pair.value ->> 2 AND item.due_at <= :now
        ORDER BY item.due_at, item.item_id
        LIMIT :share
        FOR UPDATE SKIP LOCKED
    ) AS waiting
    LIMIT :room
)
UPDATE queue_items
SET state = 'leased', attempt = attempt + 1, revision = revision + 1, leased_until = :leased_until
FROM chosen
WHERE queue_items.item_id = chosen.item_id
RETURNING queue_items.item_id, kind, lane, group_key, reference, attempt, revision, leased_until, created_at,
    expires_at, gate, due_at;

-- name: claim_over
-- As claim, of what is past its expiry only; looks at no more of a pair than its share.
UPDATE queue_items
SET state = 'leased', attempt = attempt + 1, revision = revision + 1, leased_until = :leased_until
WHERE item_id IN (
    SELECT chosen.item_id
    FROM json_each(:pairs) AS pair
    CROSS JOIN queue_items AS chosen ON chosen.item_id IN (
        SELECT waiting.item_id FROM queue_items AS waiting
        WHERE waiting.state = 'ready' AND waiting.kind = pair.value ->> 0 AND waiting.gate = pair.value ->> 1
            AND waiting.lane = pair.value ->> 2 AND waiting.due_at <= :now
        ORDER BY waiting.due_at, waiting.item_id
        LIMIT :share
    )
    WHERE chosen.expires_at <= :now
    LIMIT :room
)
RETURNING item_id, kind, lane, group_key, reference, attempt, revision, leased_until, created_at, expires_at, gate,
    due_at;

-- name: claim_over (postgres)
-- why: as for claim.
WITH chosen AS (
    SELECT waiting.item_id
    FROM json_array_elements(CAST(:pairs AS json)) AS pair (value)
    CROSS JOIN LATERAL (
        SELECT item.item_id, item.expires_at FROM queue_items AS item
        WHERE item.state = 'ready' AND item.kind = pair.value ->> 0 AND item.gate = pair.value ->> 1
            AND item.lane = pair.value ->> 2 AND item.due_at <= :now
        ORDER BY item.due_at, item.item_id
        LIMIT :share
        FOR UPDATE SKIP LOCKED
    ) AS waiting
    WHERE waiting.expires_at <= :now
    LIMIT :room
)
UPDATE queue_items
SET state = 'leased', attempt = attempt + 1, revision = revision + 1, leased_until = :leased_until
FROM chosen
WHERE queue_items.item_id = chosen.item_id
RETURNING queue_items.item_id, kind, lane, group_key, reference, attempt, revision, leased_until, created_at,
    expires_at, gate, due_at;

-- name: try_gate
-- Of two that try at once one finds it closed again: by the other.
UPDATE queue_gates SET closed_until = :leased_until, probe = NULL WHERE gate = :gate AND closed_until <= :now;

-- name: name_probe
UPDATE queue_gates SET closed_until = :closed_until, probe = :probe WHERE gate = :gate;
