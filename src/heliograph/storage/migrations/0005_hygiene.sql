-- Hygiene: what keeps one mistake of a provider, or of ours, from costing every device its route.

-- Credentials whose word on dead routes is not acted upon, until an operator thaws them.
CREATE TABLE delivery_freezes (
    credential TEXT   NOT NULL PRIMARY KEY,
    frozen_at  BIGINT NOT NULL,
    sends      BIGINT NOT NULL,
    bad        BIGINT NOT NULL
);

-- How sends ended lately, for each process by itself, so that no two write one row.
CREATE TABLE delivery_pulses (
    credential TEXT   NOT NULL,
    bucket     BIGINT NOT NULL,
    worker     TEXT   NOT NULL,
    sends      BIGINT NOT NULL,
    bad        BIGINT NOT NULL,
    PRIMARY KEY (credential, bucket, worker)
);

CREATE INDEX delivery_pulses_bucket ON delivery_pulses (bucket);

-- Routes that ended by a provider's word, still sealed, for as long as that may be undone. A revoked or superseded
-- registration has no row here: its route is erased everywhere.
CREATE TABLE arkret_ended_routes (
    tenant          TEXT   NOT NULL,
    registration_id TEXT   NOT NULL,
    credential      TEXT   NOT NULL,
    reason          TEXT   NOT NULL,
    ended_at        BIGINT NOT NULL,
    app             TEXT,
    route           BYTEA  NOT NULL,
    route_version   BIGINT NOT NULL,
    PRIMARY KEY (tenant, registration_id)
);

-- Undoing walks it by credential, forgetting by age.
CREATE INDEX arkret_ended_routes_credential ON arkret_ended_routes (credential, ended_at);
CREATE INDEX arkret_ended_routes_ended ON arkret_ended_routes (ended_at);

-- Routes that a provider doubts, and how often it has.
CREATE TABLE arkret_suspicions (
    tenant          TEXT    NOT NULL,
    registration_id TEXT    NOT NULL,
    strikes         INTEGER NOT NULL CHECK (strikes >= 1),
    first_at        BIGINT  NOT NULL,
    last_at         BIGINT  NOT NULL,
    last_delivery   TEXT    NOT NULL,
    PRIMARY KEY (tenant, registration_id)
);

CREATE INDEX arkret_suspicions_last ON arkret_suspicions (last_at);
