-- name: entry
SELECT digest, proof, reply FROM ledger_entries WHERE scope = :scope AND key = :key;

-- name: entries
SELECT e.scope, e.key, e.digest, e.proof, e.reply
FROM json_each(:keys) AS asked
CROSS JOIN ledger_entries AS e
WHERE e.scope = asked.value ->> 0 AND e.key = asked.value ->> 1;

-- name: entries (postgres)
-- why: JSON is unfolded by another function; and joined row by row, because a join of the whole would read the
-- whole table while it is small, and two transactions that read it whole collide whatever they write.
SELECT e.scope, e.key, e.digest, e.proof, e.reply
FROM json_array_elements(CAST(:keys AS json)) AS asked (value)
CROSS JOIN LATERAL (
    SELECT * FROM ledger_entries WHERE scope = asked.value ->> 0 AND key = asked.value ->> 1 LIMIT 1
) AS e;

-- name: answer
INSERT INTO ledger_entries (scope, key, digest, proof, reply, created_at)
VALUES (:scope, :key, :digest, :proof, :reply, :now);

-- name: admit
INSERT INTO ledger_proofs (scope, proof, expires_at) VALUES (:scope, :proof, :expires_at)
ON CONFLICT (scope, proof) DO NOTHING;

-- name: prune_entries
DELETE FROM ledger_entries
WHERE (scope, key) IN (
    SELECT scope, key FROM ledger_entries WHERE created_at < :before ORDER BY created_at LIMIT :limit
);

-- name: prune_proofs
DELETE FROM ledger_proofs
WHERE (scope, proof) IN (
    SELECT scope, proof FROM ledger_proofs WHERE expires_at < :now ORDER BY expires_at LIMIT :limit
);
