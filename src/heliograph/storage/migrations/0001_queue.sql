-- The queue: one row for each piece of work that leaves the building.

-- Rows hold references, never secrets or bodies. Every expiry is set, so that no row can wait for ever.
CREATE TABLE queue_items (
    item_id          TEXT    NOT NULL PRIMARY KEY,
    kind             TEXT    NOT NULL,
    lane             TEXT    NOT NULL,
    group_key        TEXT,
    reference        TEXT    NOT NULL,
    fold_key         TEXT,
    state            TEXT    NOT NULL CHECK (state IN ('ready', 'leased', 'done', 'failed', 'canceled', 'dead')),
    attempt          INTEGER NOT NULL CHECK (attempt >= 0),
    revision         BIGINT  NOT NULL,
    leased_until     BIGINT,
    due_at           BIGINT  NOT NULL,
    expires_at       BIGINT  NOT NULL,
    reason           TEXT,
    cause            TEXT,
    cancel_requested BOOLEAN NOT NULL,
    created_at       BIGINT  NOT NULL,
    settled_at       BIGINT,
    CHECK ((state = 'leased') = (leased_until IS NOT NULL)),
    CHECK ((state IN ('ready', 'leased')) = (settled_at IS NULL))
);

-- Claims walk it: lane by lane, and in each lane the items that have been due longest.
CREATE INDEX queue_items_ready ON queue_items (kind, lane, due_at, item_id) WHERE state = 'ready';

-- Sweeps walk it: the leases that ended first.
CREATE INDEX queue_items_leased ON queue_items (leased_until, item_id) WHERE state = 'leased';

-- At most one equal item waits unclaimed. The revision, unlike the attempt, never returns to 0: an item
-- that was handed back after a claim is not joined, and so cannot clash with its successor either.
CREATE UNIQUE INDEX queue_items_fold ON queue_items (fold_key)
    WHERE state = 'ready' AND revision = 0 AND fold_key IS NOT NULL;

-- Cancel finds the items of a group that are not settled. The claim leaves it untouched.
CREATE INDEX queue_items_group ON queue_items (group_key) WHERE group_key IS NOT NULL AND settled_at IS NULL;

-- Prune removes what was settled first; the dead stay longer and are listed.
CREATE INDEX queue_items_settled ON queue_items (settled_at) WHERE state IN ('done', 'failed', 'canceled');
CREATE INDEX queue_items_dead ON queue_items (item_id) WHERE state = 'dead';

-- only: postgres
-- why: ids and lanes are compared byte by byte, whatever the locale of the database; and each row is rewritten
-- twice in its short life, so the dead copies must be cleared away sooner than a slow table's.
ALTER TABLE queue_items ALTER COLUMN item_id TYPE TEXT COLLATE "C", ALTER COLUMN lane TYPE TEXT COLLATE "C",
    ALTER COLUMN kind TYPE TEXT COLLATE "C";
ALTER TABLE queue_items SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- end
