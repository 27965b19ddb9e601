-- The Arkret Gateway: who is trusted, what is installed, what was taken over, what was audited.

-- A Station that may hand off and notify. Removing one keeps the row: its installations stay its own.
CREATE TABLE arkret_stations (
    service_id          TEXT    NOT NULL PRIMARY KEY,
    verification_method TEXT    NOT NULL,
    public_key          TEXT    NOT NULL,
    profiles            TEXT    NOT NULL,
    canonical_required  BOOLEAN NOT NULL,
    added_at            BIGINT  NOT NULL,
    removed_at          BIGINT
);

-- One row for each registration id a Station ever used here. A tombstone keeps its address, digest and
-- receipt for ever; its route, application and opt-in are erased.
CREATE TABLE arkret_installations (
    tenant          TEXT    NOT NULL,
    registration_id TEXT    NOT NULL,
    push_target_id  TEXT    NOT NULL,
    device_id       TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('active', 'revoked')),
    request_digest  TEXT    NOT NULL,
    receipt         BYTEA   NOT NULL,
    successor_id    TEXT,
    route_end       TEXT    CHECK (route_end IN ('provider', 'expired')),
    app             TEXT,
    route           BYTEA,
    route_version   BIGINT,
    visible_opt_in  BOOLEAN NOT NULL,
    expires_at      BIGINT,
    stored_at       BIGINT  NOT NULL,
    PRIMARY KEY (tenant, registration_id),
    CHECK (route IS NULL OR (state = 'active' AND route_end IS NULL)),
    CHECK ((route IS NULL) = (route_version IS NULL))
);

-- Looked up by every notify. Tombstones are in it too: they tell that a target was known once.
CREATE INDEX arkret_installations_address ON arkret_installations (tenant, push_target_id, device_id);

-- At most one current installation at an address, whatever the code above it does.
CREATE UNIQUE INDEX arkret_installations_current ON arkret_installations (tenant, push_target_id, device_id)
    WHERE state = 'active';

-- Finds routes that an older master key seals.
CREATE INDEX arkret_installations_route_version ON arkret_installations (route_version, tenant, registration_id)
    WHERE route_version IS NOT NULL;

-- What a waiting work item will tell its provider: the blind wakeup and nothing else. Gone once it is settled well.
CREATE TABLE arkret_deliveries (
    item_id         TEXT   NOT NULL PRIMARY KEY,
    tenant          TEXT   NOT NULL,
    registration_id TEXT   NOT NULL,
    wakeup          TEXT   NOT NULL,
    collapse_key    TEXT   NOT NULL,
    provider_id     TEXT   NOT NULL,
    accepted_at     BIGINT NOT NULL
);

-- Audit events that Stations sent through the notify route: the least that identifies them.
CREATE TABLE arkret_audit (
    audit_id    TEXT   NOT NULL PRIMARY KEY,
    tenant      TEXT   NOT NULL,
    access_kind TEXT   NOT NULL,
    event_id    TEXT,
    recorded_at BIGINT NOT NULL
);
