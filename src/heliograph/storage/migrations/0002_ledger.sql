-- The ledger: what was answered under which key, and which proofs were used.

CREATE TABLE ledger_entries (
    scope      TEXT   NOT NULL,
    key        TEXT   NOT NULL,
    digest     TEXT   NOT NULL,
    proof      BYTEA  NOT NULL,
    reply      BYTEA  NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);

-- Pruning walks it from its old end; new rows go to the other.
CREATE INDEX ledger_entries_created ON ledger_entries (created_at);

CREATE TABLE ledger_proofs (
    scope      TEXT   NOT NULL,
    proof      BYTEA  NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (scope, proof)
);

CREATE INDEX ledger_proofs_expires ON ledger_proofs (expires_at);
