-- name: entry
SELECT digest, proof, reply FROM ledger_entries WHERE scope = :scope AND key = :key;

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
