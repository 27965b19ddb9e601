-- name: get
SELECT gate, closed_until, closed_at, reason, step, probe FROM queue_gates WHERE gate = :gate;

-- name: put
INSERT INTO queue_gates (gate, closed_until, closed_at, reason, step, probe)
VALUES (:gate, :closed_until, :closed_at, :reason, :step, :probe)
ON CONFLICT (gate) DO UPDATE SET closed_until = excluded.closed_until, closed_at = excluded.closed_at,
    reason = excluded.reason, step = excluded.step, probe = excluded.probe;

-- name: passed
DELETE FROM queue_gates WHERE gate = :gate AND probe = :item_id;

-- name: open
DELETE FROM queue_gates WHERE gate = :gate;

-- name: all
SELECT gate, closed_until, closed_at, reason, step, probe FROM queue_gates ORDER BY gate LIMIT :limit;

-- name: forget
DELETE FROM queue_gates WHERE closed_until < :before;
