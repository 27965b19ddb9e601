-- name: enqueue
INSERT INTO queue_items (item_id, kind, lane, group_key, reference, fold_key, state, attempt, revision,
    due_at, expires_at, cancel_requested, created_at)
VALUES (:item_id, :kind, :lane, :group_key, :reference, :fold_key, 'ready', 0, 0,
    :due_at, :expires_at, FALSE, :created_at)
ON CONFLICT (fold_key) WHERE state = 'ready' AND revision = 0 AND fold_key IS NOT NULL DO NOTHING;

-- name: exists
SELECT 1 FROM queue_items WHERE item_id = :item_id;

-- name: lanes
-- Hops from one lane that has waiting items to the next: one search of the index for each lane, however
-- many items wait in it.
WITH RECURSIVE hops (lane, hop) AS (
    SELECT (SELECT min(first.lane) FROM queue_items AS first
            WHERE first.state = 'ready' AND first.kind = :kind AND first.lane > :after), 1
    UNION ALL
    SELECT (SELECT min(following.lane) FROM queue_items AS following
            WHERE following.state = 'ready' AND following.kind = :kind AND following.lane > hops.lane), hops.hop + 1
    FROM hops
    WHERE hops.lane IS NOT NULL AND hops.hop < :lanes
)
SELECT hops.lane, EXISTS (
    SELECT 1 FROM queue_items AS waiting
    WHERE waiting.state = 'ready' AND waiting.kind = :kind AND waiting.lane = hops.lane AND waiting.due_at <= :now
)
FROM hops
WHERE hops.lane IS NOT NULL;

-- name: claim
UPDATE queue_items
SET state = 'leased', attempt = attempt + 1, revision = revision + 1, leased_until = :leased_until
WHERE item_id IN (
    SELECT chosen.item_id
    FROM json_each(:lanes) AS pair
    CROSS JOIN queue_items AS chosen ON chosen.item_id IN (
        SELECT waiting.item_id FROM queue_items AS waiting
        WHERE waiting.state = 'ready' AND waiting.kind = pair.value ->> 0 AND waiting.lane = pair.value ->> 1
            AND waiting.due_at <= :now
        ORDER BY waiting.due_at, waiting.item_id
        LIMIT :share
    )
    LIMIT :room
)
RETURNING item_id, kind, lane, group_key, reference, attempt, revision, leased_until, created_at, expires_at, due_at;

-- name: claim (postgres)
-- why: several claimers at once must pass over one another's rows, and JSON is unfolded by another function.
WITH chosen AS (
    SELECT waiting.item_id
    FROM json_array_elements(CAST(:lanes AS json)) AS pair (value)
    CROSS JOIN LATERAL (
        SELECT item.item_id FROM queue_items AS item
        WHERE item.state = 'ready' AND item.kind = pair.value ->> 0 AND item.lane = pair.value ->> 1
            AND item.due_at <= :now
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
    expires_at, due_at;

-- name: held
SELECT item_id, revision, cancel_requested
FROM queue_items
WHERE state = 'leased' AND item_id IN (SELECT value FROM json_each(:item_ids));

-- name: held (postgres)
-- why: JSON is unfolded by another function.
SELECT item_id, revision, cancel_requested
FROM queue_items
WHERE state = 'leased' AND item_id IN (SELECT json_array_elements_text(CAST(:item_ids AS json)));

-- name: settle
UPDATE queue_items
SET state = :state, attempt = :attempt, due_at = :due_at, reason = :reason, cause = :cause,
    settled_at = :settled_at, leased_until = NULL
WHERE item_id = :item_id AND revision = :revision AND state = 'leased';

-- name: overdue
SELECT item_id, kind, lane, group_key, reference, attempt, revision, leased_until, created_at, expires_at, due_at
FROM queue_items
WHERE state = 'leased' AND leased_until <= :now AND (leased_until, item_id) > (:after_until, :after_item_id)
ORDER BY leased_until, item_id
LIMIT :limit;

-- name: cancel_waiting
UPDATE queue_items
SET state = 'canceled', reason = 'canceled', settled_at = :now
WHERE group_key = :group_key AND settled_at IS NULL AND state = 'ready';

-- name: cancel_leased
UPDATE queue_items
SET cancel_requested = TRUE
WHERE group_key = :group_key AND settled_at IS NULL AND state = 'leased' AND NOT cancel_requested;

-- name: prune
DELETE FROM queue_items
WHERE item_id IN (
    SELECT old.item_id FROM queue_items AS old
    WHERE old.state IN ('done', 'failed', 'canceled') AND old.settled_at < :before
    ORDER BY old.settled_at
    LIMIT :limit
);

-- name: prune_dead
DELETE FROM queue_items
WHERE item_id IN (
    SELECT old.item_id FROM queue_items AS old
    WHERE old.state = 'dead' AND old.settled_at < :before
    ORDER BY old.item_id
    LIMIT :limit
);

-- name: dead
SELECT item_id, kind, lane, reference, attempt, reason, cause, created_at, settled_at, expires_at
FROM queue_items
WHERE state = 'dead' AND item_id > :after
ORDER BY item_id
LIMIT :limit;

-- name: dead_one
SELECT attempt, revision, expires_at FROM queue_items WHERE item_id = :item_id AND state = 'dead';

-- name: retry
UPDATE queue_items
SET state = 'ready', attempt = :attempt, due_at = :due_at, reason = :reason, cause = NULL, settled_at = NULL,
    cancel_requested = FALSE
WHERE item_id = :item_id AND state = 'dead';

-- name: counts
SELECT kind, state, count(*) FROM queue_items GROUP BY kind, state;

-- name: oldest
-- As lanes: one search for each lane.
WITH RECURSIVE hops (lane) AS (
    SELECT (SELECT min(first.lane) FROM queue_items AS first
            WHERE first.state = 'ready' AND first.kind = :kind)
    UNION ALL
    SELECT (SELECT min(following.lane) FROM queue_items AS following
            WHERE following.state = 'ready' AND following.kind = :kind AND following.lane > hops.lane)
    FROM hops
    WHERE hops.lane IS NOT NULL
)
SELECT min((
    SELECT min(waiting.due_at) FROM queue_items AS waiting
    WHERE waiting.state = 'ready' AND waiting.kind = :kind AND waiting.lane = hops.lane
))
FROM hops;
