-- Gates: what waits behind a closed one is not claimed, however much of it there is.

-- A program of before would claim through closed gates, and without the index that it knew.
-- oldest: 4

ALTER TABLE queue_items ADD COLUMN gate TEXT NOT NULL DEFAULT '';

-- One row for each gate that is not simply open. Once closed_until has passed, one item may try; it is the probe.
CREATE TABLE queue_gates (
    gate         TEXT    NOT NULL PRIMARY KEY,
    closed_until BIGINT  NOT NULL,
    closed_at    BIGINT  NOT NULL,
    reason       TEXT    NOT NULL,
    step         INTEGER NOT NULL CHECK (step >= 1),
    probe        TEXT
);

DROP INDEX queue_items_ready;

-- only: postgres
-- why: gates are compared byte by byte, as lanes are.
ALTER TABLE queue_items ALTER COLUMN gate TYPE TEXT COLLATE "C";
ALTER TABLE queue_gates ALTER COLUMN gate TYPE TEXT COLLATE "C";
-- end

-- Claims walk it: gate by gate, lane by lane, and in each pair the items that have been due longest.
CREATE INDEX queue_items_ready ON queue_items (kind, gate, lane, due_at, item_id) WHERE state = 'ready';
