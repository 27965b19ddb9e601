-- name: station_list
SELECT service_id, verification_method, public_key, profiles, canonical_required, added_at
FROM arkret_stations
WHERE removed_at IS NULL
ORDER BY service_id;

-- name: station_put
INSERT INTO arkret_stations (service_id, verification_method, public_key, profiles, canonical_required, added_at, removed_at)
VALUES (:service_id, :verification_method, :public_key, :profiles, :canonical_required, :added_at, NULL)
ON CONFLICT (service_id) DO UPDATE SET
    verification_method = excluded.verification_method,
    public_key = excluded.public_key,
    profiles = excluded.profiles,
    canonical_required = excluded.canonical_required,
    added_at = excluded.added_at,
    removed_at = NULL;

-- name: station_remove
UPDATE arkret_stations SET removed_at = :removed_at WHERE service_id = :service_id AND removed_at IS NULL;

-- name: installation_get
SELECT registration_id, push_target_id, device_id, state, request_digest, receipt, successor_id, route_end,
       app, visible_opt_in, expires_at
FROM arkret_installations
WHERE tenant = :tenant AND registration_id = :registration_id;

-- name: installation_current
SELECT registration_id, push_target_id, device_id, state, request_digest, receipt, successor_id, route_end,
       app, visible_opt_in, expires_at
FROM arkret_installations
WHERE tenant = :tenant AND push_target_id = :push_target_id AND device_id = :device_id AND state = 'active';

-- name: standings
SELECT i.tenant, i.push_target_id, i.device_id, i.registration_id, i.route_end, i.app, i.visible_opt_in, i.expires_at
FROM json_each(:addresses) AS asked
CROSS JOIN arkret_installations AS i
WHERE i.tenant = asked.value ->> 0 AND i.push_target_id = asked.value ->> 1 AND i.device_id = asked.value ->> 2
    AND i.state = 'active';

-- name: standings (postgres)
-- why: JSON is unfolded by another function; and joined row by row, because a join of the whole would read the
-- whole table while it is small, and two transactions that read it whole collide whatever they write.
SELECT i.tenant, i.push_target_id, i.device_id, i.registration_id, i.route_end, i.app, i.visible_opt_in, i.expires_at
FROM json_array_elements(CAST(:addresses AS json)) AS asked (value)
CROSS JOIN LATERAL (
    SELECT * FROM arkret_installations
    WHERE tenant = asked.value ->> 0 AND push_target_id = asked.value ->> 1 AND device_id = asked.value ->> 2
        AND state = 'active'
    LIMIT 1
) AS i;

-- name: target_known
SELECT 1 FROM arkret_installations WHERE tenant = :tenant AND push_target_id = :push_target_id LIMIT 1;

-- name: installation_insert
INSERT INTO arkret_installations (tenant, registration_id, push_target_id, device_id, state, request_digest, receipt,
    app, route, route_version, visible_opt_in, expires_at, stored_at)
VALUES (:tenant, :registration_id, :push_target_id, :device_id, :state, :request_digest, :receipt,
    :app, :route, :route_version, :visible_opt_in, :expires_at, :stored_at);

-- name: installation_supersede
UPDATE arkret_installations
SET state = 'revoked', successor_id = :successor_id, app = NULL, route = NULL, route_version = NULL,
    visible_opt_in = FALSE, expires_at = NULL
WHERE tenant = :tenant AND registration_id = :registration_id AND state = 'active' AND successor_id IS NULL;

-- name: installation_tombstone
UPDATE arkret_installations
SET state = 'revoked', request_digest = :request_digest, receipt = :receipt, stored_at = :stored_at,
    app = NULL, route = NULL, route_version = NULL, visible_opt_in = FALSE, expires_at = NULL
WHERE tenant = :tenant AND registration_id = :registration_id;

-- name: route_end
UPDATE arkret_installations
SET route_end = :route_end, app = NULL, route = NULL, route_version = NULL
WHERE tenant = :tenant AND registration_id = :registration_id AND state = 'active' AND route_end IS NULL;

-- name: route_stale
SELECT tenant, registration_id, route, route_version
FROM arkret_installations
WHERE route_version IS NOT NULL AND route_version < :current
  AND (route_version, tenant, registration_id) > (:after_version, :after_tenant, :after_registration)
ORDER BY route_version, tenant, registration_id
LIMIT :limit;

-- name: route_reseal
UPDATE arkret_installations
SET route = :route, route_version = :current
WHERE tenant = :tenant AND registration_id = :registration_id AND route = :old;

-- name: route_stale_count
-- Those that are kept for an undo count, and are forgotten within a day.
SELECT (SELECT COUNT(*) FROM arkret_installations WHERE route_version IS NOT NULL AND route_version < :current)
    + (SELECT COUNT(*) FROM arkret_ended_routes WHERE route_version < :current);

-- name: delivery_insert
INSERT INTO arkret_deliveries (item_id, tenant, registration_id, wakeup, collapse_key, provider_id, accepted_at)
VALUES (:item_id, :tenant, :registration_id, :wakeup, :collapse_key, :provider_id, :accepted_at);

-- name: delivery_load
SELECT d.tenant, d.registration_id, d.wakeup, d.collapse_key, d.provider_id, i.route, i.stored_at, i.expires_at,
       s.strikes
FROM arkret_deliveries d
LEFT JOIN arkret_installations i ON i.tenant = d.tenant AND i.registration_id = d.registration_id
LEFT JOIN arkret_suspicions s ON s.tenant = d.tenant AND s.registration_id = d.registration_id
WHERE d.item_id = :item_id;

-- name: delivery_delete
DELETE FROM arkret_deliveries WHERE item_id = :item_id;

-- name: delivery_sweep
DELETE FROM arkret_deliveries
WHERE item_id IN (
    SELECT d.item_id FROM arkret_deliveries d
    WHERE d.accepted_at < :before AND NOT EXISTS (SELECT 1 FROM queue_items q WHERE q.item_id = d.item_id)
    ORDER BY d.item_id
    LIMIT :limit
);

-- name: audit_insert
INSERT INTO arkret_audit (audit_id, tenant, access_kind, event_id, recorded_at)
VALUES (:audit_id, :tenant, :access_kind, :event_id, :recorded_at);

-- name: registration_page
SELECT tenant, registration_id, push_target_id, device_id, state, successor_id, route_end, app, visible_opt_in,
       expires_at, stored_at, route_version
FROM arkret_installations
WHERE tenant = :tenant AND registration_id > :after
ORDER BY registration_id
LIMIT :limit;

-- name: registration_counts
SELECT tenant, state, COUNT(*), COUNT(route)
FROM arkret_installations
GROUP BY tenant, state
ORDER BY tenant, state;

-- name: routes_by_app
SELECT app, COUNT(*) FROM arkret_installations WHERE route IS NOT NULL AND app IS NOT NULL GROUP BY app ORDER BY app;

-- name: waiting_by_app
SELECT i.app, COUNT(*)
FROM queue_items q
JOIN arkret_deliveries d ON d.item_id = q.item_id
JOIN arkret_installations i ON i.tenant = d.tenant AND i.registration_id = d.registration_id
WHERE q.state IN ('ready', 'leased') AND q.kind IN ('arkret.deliver', 'arkret.deliver.hardened') AND i.app IS NOT NULL
GROUP BY i.app
ORDER BY i.app;

-- name: waiting_by_lane
SELECT lane, COUNT(*) FROM queue_items WHERE state = 'ready' AND kind = :kind GROUP BY lane;

-- name: audit_page
SELECT access_kind, event_id, recorded_at FROM arkret_audit
WHERE tenant = :tenant AND audit_id > :after
ORDER BY audit_id
LIMIT :limit;

-- name: delivery_page
SELECT q.item_id, q.kind, q.state, q.attempt, q.reason, q.cause, q.due_at, q.expires_at, q.created_at, q.settled_at,
       d.tenant, d.registration_id
FROM queue_items q
LEFT JOIN arkret_deliveries d ON d.item_id = q.item_id
WHERE q.item_id > :after AND q.kind IN ('arkret.deliver', 'arkret.deliver.hardened')
  AND (q.state = :state OR :state = '')
ORDER BY q.item_id
LIMIT :limit;

-- name: delivery_one
SELECT q.item_id, q.kind, q.state, q.attempt, q.reason, q.cause, q.due_at, q.expires_at, q.created_at, q.settled_at,
       d.tenant, d.registration_id
FROM queue_items q
LEFT JOIN arkret_deliveries d ON d.item_id = q.item_id
WHERE q.item_id = :item_id AND q.kind IN ('arkret.deliver', 'arkret.deliver.hardened');
