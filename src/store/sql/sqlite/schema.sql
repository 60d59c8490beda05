-- name: schema_exists
-- Whether this file has been migrated at all. Serves: opening a store.
-- takes: nothing
-- gives: (found bool)
SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version');

-- name: get_schema_version
-- The newest migration in the store and the oldest program that may write. Serves: opening a store, heartbeats.
-- takes: nothing
-- gives: (version int, min_writer int)
SELECT version, min_writer FROM schema_version ORDER BY version DESC LIMIT 1;

-- name: set_schema_version
-- Records a migration. Serves: migrate.
-- takes: one (version int, name text, min_writer int)
-- gives: nothing
INSERT INTO schema_version (version, name, min_writer, applied_at) VALUES (?1, ?2, ?3, holdfast_now());

-- name: get_now
-- The store's clock. Serves: clients.
-- takes: nothing
-- gives: (now bigint)
SELECT holdfast_now();
