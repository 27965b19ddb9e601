-- name: lock (sqlite)
-- why: the one writer holds the lock already
SELECT 1;

-- name: lock (postgres)
-- why: two processes that start at once must not apply one step twice; the number is ours alone
SELECT pg_advisory_xact_lock(5210734118);

-- name: unhurried (sqlite)
-- why: nothing is cut off here
SELECT 1;

-- name: unhurried (postgres)
-- why: a step on a full table, and the wait for another process that applies it, may take longer than a statement
-- is given otherwise
SET LOCAL statement_timeout = 0;

-- name: create
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    BIGINT NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    checksum   TEXT   NOT NULL,
    oldest     BIGINT NOT NULL,
    applied_at BIGINT NOT NULL
);

-- name: exists (sqlite)
-- why: each database keeps its catalogue elsewhere
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations';

-- name: exists (postgres)
-- why: each database keeps its catalogue elsewhere
SELECT 1 FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'schema_migrations';

-- name: applied
SELECT version, name, checksum, oldest FROM schema_migrations ORDER BY version;

-- name: record
INSERT INTO schema_migrations (version, name, checksum, oldest, applied_at)
VALUES (:version, :name, :checksum, :oldest, :applied_at);
