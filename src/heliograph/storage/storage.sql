-- name: touch (sqlite)
-- why: the smallest write that SQLite commits to its log
PRAGMA user_version = 1;

-- name: touch (postgres)
-- why: a record in the log of the server, flushed with its commit; a transaction that only draws a number is not
SELECT pg_logical_emit_message(TRUE, 'heliograph', '');
