-- name: enqueue_one
-- Most work comes one by one, and unfolding JSON for one row costs half as much as the row itself.
INSERT INTO queue_items (item_id, kind, lane, gate, group_key, reference, fold_key, state, attempt, revision,
    due_at, expires_at, cancel_requested, created_at)
VALUES (:item_id, :kind, :lane, :gate, :group_key, :reference, :fold_key, 'ready', 0, 0,
    :due_at, :expires_at, FALSE, :created_at)
ON CONFLICT (fold_key) WHERE state = 'ready' AND revision = 0 AND fold_key IS NOT NULL DO NOTHING;

-- name: enqueue
INSERT INTO queue_items (item_id, kind, lane, gate, group_key, reference, fold_key, state, attempt, revision,
    due_at, expires_at, cancel_requested, created_at)
SELECT item.value ->> 'item_id', item.value ->> 'kind', item.value ->> 'lane', item.value ->> 'gate',
    item.value ->> 'group_key',
    item.value ->> 'reference', item.value ->> 'fold_key', 'ready', 0, 0,
    item.value ->> 'due_at', item.value ->> 'expires_at', FALSE, :created_at
FROM json_each(:items) AS item
WHERE TRUE
ON CONFLICT (fold_key) WHERE state = 'ready' AND revision = 0 AND fold_key IS NOT NULL DO NOTHING
RETURNING item_id;

-- name: enqueue (postgres)
-- why: JSON is unfolded by another function.
INSERT INTO queue_items (item_id, kind, lane, gate, group_key, reference, fold_key, state, attempt, revision,
    due_at, expires_at, cancel_requested, created_at)
SELECT item_id, kind, lane, gate, group_key, reference, fold_key, 'ready', 0, 0, due_at, expires_at, FALSE,
    :created_at
FROM json_to_recordset(CAST(:items AS json)) AS item (item_id TEXT, kind TEXT, lane TEXT, gate TEXT, group_key TEXT,
    reference TEXT, fold_key TEXT, due_at BIGINT, expires_at BIGINT)
ON CONFLICT (fold_key) WHERE state = 'ready' AND revision = 0 AND fold_key IS NOT NULL DO NOTHING
RETURNING item_id;

-- name: held
-- A row is leased when it has a lease: a CHECK says so. Asked by its state, a planner that believes the index of
-- leases to be small would read all of it; so these statements, settle and cancel ask by the lease.
SELECT item_id, revision, cancel_requested
FROM queue_items
WHERE leased_until IS NOT NULL AND item_id IN (SELECT value FROM json_each(:item_ids));

-- name: held (postgres)
-- why: JSON is unfolded by another function; and LATERAL with LIMIT makes it search for each id, where IN may
-- read the whole table, and at SERIALIZABLE what was read and not needed collides with every other settlement.
SELECT item.item_id, item.revision, item.cancel_requested
FROM json_array_elements_text(CAST(:item_ids AS json)) AS wanted (item_id)
CROSS JOIN LATERAL (
    SELECT held.item_id, held.revision, held.cancel_requested, held.leased_until
    FROM queue_items AS held
    WHERE held.item_id = wanted.item_id
    LIMIT 1
) AS item
WHERE item.leased_until IS NOT NULL;

-- name: settle
UPDATE queue_items
SET state = made.value ->> 'state', attempt = made.value ->> 'attempt', due_at = made.value ->> 'due_at',
    reason = made.value ->> 'reason', cause = made.value ->> 'cause', settled_at = made.value ->> 'settled_at',
    leased_until = NULL
FROM json_each(:changes) AS made
WHERE item_id = made.value ->> 'item_id' AND revision = made.value ->> 'revision' AND leased_until IS NOT NULL;

-- name: settle (postgres)
-- why: JSON is unfolded by another function. The conditions on ``made`` always hold; they make the planner expect
-- few rows and so search for each, for the reason told at ``held``.
UPDATE queue_items
SET state = made.state, attempt = made.attempt, due_at = made.due_at, reason = made.reason, cause = made.cause,
    settled_at = made.settled_at, leased_until = NULL
FROM json_to_recordset(CAST(:changes AS json)) AS made (item_id TEXT, revision BIGINT, state TEXT, attempt INTEGER,
    due_at BIGINT, reason TEXT, cause TEXT, settled_at BIGINT)
WHERE made.revision > 0 AND made.attempt >= 0 AND made.due_at >= 0 AND made.state > ''
    AND queue_items.item_id = made.item_id AND queue_items.revision = made.revision
    AND queue_items.leased_until IS NOT NULL;

-- name: move
-- Before the settlement of the same rows, while the lease still shows that they are ours.
UPDATE queue_items
SET gate = :gate
WHERE item_id = :item_id AND revision = :revision AND leased_until IS NOT NULL;

-- name: overdue
SELECT item_id, kind, lane, group_key, reference, attempt, revision, leased_until, created_at, expires_at, gate
FROM queue_items
WHERE state = 'leased' AND leased_until <= :now AND (leased_until, item_id) > (:after_until, :after_item_id)
ORDER BY leased_until, item_id
LIMIT :limit;

-- name: cancel_waiting
UPDATE queue_items
SET state = 'canceled', reason = 'canceled', settled_at = :now
WHERE group_key = :group_key AND settled_at IS NULL AND leased_until IS NULL;

-- name: cancel_leased
UPDATE queue_items
SET cancel_requested = TRUE
WHERE group_key = :group_key AND settled_at IS NULL AND leased_until IS NOT NULL AND NOT cancel_requested;

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
-- As pairs, without an end.
WITH RECURSIVE hops (gate, lane, due_at) AS (
    SELECT '', '', CAST(NULL AS BIGINT)
    UNION ALL
    SELECT head.gate, head.lane, head.due_at
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
)
SELECT min(due_at) FROM hops;

-- name: oldest (postgres)
-- why: it searches once for each hop only where LATERAL leaves no other way.
WITH RECURSIVE hops (gate, lane, due_at) AS (
    SELECT CAST('' AS TEXT) COLLATE "C", CAST('' AS TEXT) COLLATE "C", CAST(NULL AS BIGINT)
    UNION ALL
    SELECT head.gate, head.lane, head.due_at
    FROM hops
    CROSS JOIN LATERAL (
        SELECT first.gate, first.lane, first.due_at FROM queue_items AS first
        WHERE first.state = 'ready' AND first.kind = :kind AND (first.gate, first.lane) > (hops.gate, hops.lane)
        ORDER BY first.gate, first.lane, first.due_at, first.item_id
        LIMIT 1
    ) AS head
)
SELECT min(due_at) FROM hops;
