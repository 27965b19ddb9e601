-- name: route_keep
-- Keeps a route that is about to end, as it is sealed.
INSERT INTO arkret_ended_routes (tenant, registration_id, credential, reason, ended_at, app, route, route_version)
SELECT tenant, registration_id, :credential, :reason, :ended_at, app, route, route_version
FROM arkret_installations
WHERE tenant = :tenant AND registration_id = :registration_id AND state = 'active' AND route_end IS NULL
    AND route IS NOT NULL
ON CONFLICT (tenant, registration_id) DO UPDATE SET credential = excluded.credential, reason = excluded.reason,
    ended_at = excluded.ended_at, app = excluded.app, route = excluded.route, route_version = excluded.route_version;

-- name: route_forget
DELETE FROM arkret_ended_routes WHERE tenant = :tenant AND registration_id = :registration_id;

-- name: suspicion_forget
DELETE FROM arkret_suspicions WHERE tenant = :tenant AND registration_id = :registration_id;

-- name: suspicion
SELECT strikes, first_at, last_at, last_delivery FROM arkret_suspicions
WHERE tenant = :tenant AND registration_id = :registration_id;

-- name: suspicion_put
INSERT INTO arkret_suspicions (tenant, registration_id, strikes, first_at, last_at, last_delivery)
VALUES (:tenant, :registration_id, :strikes, :first_at, :last_at, :last_delivery)
ON CONFLICT (tenant, registration_id) DO UPDATE SET strikes = excluded.strikes, first_at = excluded.first_at,
    last_at = excluded.last_at, last_delivery = excluded.last_delivery;

-- name: undoable
-- What an undo would bring back. Whatever was revoked, superseded or ran out since is not among it.
SELECT ended.reason, COUNT(*), COUNT(DISTINCT ended.tenant)
FROM arkret_ended_routes ended
JOIN arkret_installations i ON i.tenant = ended.tenant AND i.registration_id = ended.registration_id
WHERE ended.credential = :credential AND ended.ended_at >= :since
    AND i.state = 'active' AND i.route_end = 'provider' AND (i.expires_at IS NULL OR i.expires_at > :now)
GROUP BY ended.reason
ORDER BY ended.reason;

-- name: undo
UPDATE arkret_installations
SET route_end = NULL, app = ended.app, route = ended.route, route_version = ended.route_version
FROM arkret_ended_routes ended
WHERE ended.tenant = arkret_installations.tenant AND ended.registration_id = arkret_installations.registration_id
    AND ended.credential = :credential AND ended.ended_at >= :since
    AND arkret_installations.state = 'active' AND arkret_installations.route_end = 'provider'
    AND (arkret_installations.expires_at IS NULL OR arkret_installations.expires_at > :now);

-- name: undone
-- The kept routes that are in use again need not be kept. Their suspicions were forgotten when they ended.
DELETE FROM arkret_ended_routes
WHERE credential = :credential AND ended_at >= :since;

-- name: prune_ended
DELETE FROM arkret_ended_routes WHERE ended_at < :before;

-- name: prune_suspicions
DELETE FROM arkret_suspicions WHERE last_at < :before;
