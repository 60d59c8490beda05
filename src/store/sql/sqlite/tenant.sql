-- name: get_tenant
-- A tenant by name; served by its unique index. Serves: opening a client.
-- takes: one (name text)
-- gives: (id int, disabled bool)
SELECT id, disabled FROM tenant WHERE name = ?1;

-- name: put_tenant
-- A new tenant, or nothing when it exists. Serves: tenant create.
-- takes: one (name text)
-- gives: nothing
INSERT INTO tenant (name, created_at) VALUES (?1, holdfast_now()) ON CONFLICT (name) DO NOTHING;

-- name: set_tenant_disabled
-- Disabled tenants trigger nothing and are not worked for. Serves: tenant disable and enable.
-- takes: one (name text, disabled bool)
-- gives: (id int)
UPDATE tenant SET disabled = ?2 WHERE name = ?1 RETURNING id;

-- name: list_tenants
-- All tenants by name. Serves: tenant list.
-- takes: nothing
-- gives: (name text, disabled bool, created_at bigint)
SELECT name, disabled, created_at FROM tenant ORDER BY name LIMIT 10000;
