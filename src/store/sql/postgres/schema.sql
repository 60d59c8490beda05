-- name: schema_exists
-- Whether this database has been migrated at all. Serves: opening a store.
-- takes: nothing
-- gives: (found bool)
SELECT to_regclass('holdfast.schema_version') IS NOT NULL;

-- name: get_schema_version
-- The newest migration in the store and the oldest program that may write. Serves: opening a store, heartbeats.
-- takes: nothing
-- gives: (version int, min_writer int)
SELECT v.version, v.min_writer FROM holdfast.schema_version v ORDER BY v.version DESC LIMIT 1;

-- name: set_schema_version
-- Records a migration. Serves: migrate.
-- takes: one (version int, name text, min_writer int)
-- gives: nothing
INSERT INTO holdfast.schema_version (version, name, min_writer, applied_at) VALUES ($1, $2, $3, holdfast.now());

-- name: get_now
-- The store's clock. Serves: clients.
-- takes: nothing
-- gives: (now bigint)
SELECT holdfast.now();
