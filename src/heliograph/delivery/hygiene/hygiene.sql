-- name: freeze
INSERT INTO delivery_freezes (credential, frozen_at, sends, bad) VALUES (:credential, :frozen_at, :sends, :bad)
ON CONFLICT (credential) DO NOTHING;

-- name: frozen
SELECT 1 FROM delivery_freezes WHERE credential = :credential;

-- name: freezes
SELECT credential, frozen_at, sends, bad FROM delivery_freezes ORDER BY credential LIMIT :limit;

-- name: thaw
DELETE FROM delivery_freezes WHERE credential = :credential;

-- name: thaw_pulses
DELETE FROM delivery_pulses WHERE credential = :credential;

-- name: beat
INSERT INTO delivery_pulses (credential, bucket, worker, sends, bad)
VALUES (:credential, :bucket, :worker, :sends, :bad)
ON CONFLICT (credential, bucket, worker) DO UPDATE SET sends = excluded.sends, bad = excluded.bad;

-- name: others
SELECT credential, SUM(sends), SUM(bad) FROM delivery_pulses
WHERE bucket > :since AND worker <> :worker
GROUP BY credential;

-- name: forget
DELETE FROM delivery_pulses WHERE bucket < :before;
