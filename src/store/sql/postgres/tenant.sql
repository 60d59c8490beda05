-- name: get_tenant
-- A tenant by name; served by its unique index. Serves: opening a client.
-- takes: one (name text)
-- gives: (id int, disabled bool)
SELECT t.id, t.disabled FROM holdfast.tenant t WHERE t.name = $1;

-- name: put_tenant
-- A new tenant, or nothing when it exists. Serves: tenant create.
-- takes: one (name text)
-- gives: nothing
INSERT INTO holdfast.tenant (name) VALUES ($1) ON CONFLICT (name) DO NOTHING;

-- name: set_tenant_disabled
-- Disabled tenants trigger nothing and are not worked for. Serves: tenant disable and enable.
-- takes: one (name text, disabled bool)
-- gives: (id int)
UPDATE holdfast.tenant t SET disabled = $2 WHERE t.name = $1 RETURNING t.id;

-- name: list_tenants
-- All tenants by name. Serves: tenant list.
-- takes: nothing
-- gives: (name text, disabled bool, created_at bigint)
SELECT t.name, t.disabled, t.created_at FROM holdfast.tenant t ORDER BY t.name LIMIT 10000;

-- name: grant_tenant
-- Makes a role of the database a client of a tenant, held to it by row-level security. Serves: tenant grant.
-- takes: one (tenant text, role text, read_only bool, actor text)
-- gives: (outcome text)
-- only: postgres
SELECT holdfast.tenant_grant($1, $2, $3, $4);

-- name: revoke_tenant
-- Takes from a client role all it was granted. Serves: tenant revoke.
-- takes: one (tenant text, role text)
-- gives: (outcome text)
-- only: postgres
SELECT holdfast.tenant_revoke($1, $2);
