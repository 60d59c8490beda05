-- name: insert_token
-- A new API token, of whose secret only the SHA-256 (hexadecimal) is known. Nothing given back: its end has passed.
-- Serves: token create.
-- takes: one (id uuid, tenant int, name text, hash text, roles text, expires_at bigint, lifetime bigint, actor text,
--   task_roles text)
-- gives: (expires_at bigint)
INSERT INTO holdfast.api_token AS t (id, tenant_id, name, hash, roles, created_at, expires_at, created_by,
    task_roles)
SELECT $1, $2, $3, decode($4, 'hex'), $5, holdfast.now(), coalesce($6, holdfast.now() + $7), $8, $9
 WHERE coalesce($6 > holdfast.now(), true)
RETURNING t.expires_at;

-- name: list_tokens
-- A tenant's tokens, oldest first; served by api_token_tenant. Serves: token list.
-- takes: one (tenant int)
-- gives: (id uuid, name text, roles text, created_at bigint, created_by text, expires_at bigint, revoked_at bigint,
--   revoked_by text, task_roles text)
SELECT t.id, t.name, t.roles, t.created_at, t.created_by, t.expires_at, t.revoked_at, t.revoked_by, t.task_roles
  FROM holdfast.api_token t
 WHERE t.tenant_id = $1
 ORDER BY t.tenant_id, t.id
 LIMIT 10000;

-- name: revoke_token
-- Revokes a token; the first time counts. Nothing given back: there is none. Serves: token revoke.
-- takes: one (tenant int, id uuid, actor text)
-- gives: (revoked_at bigint)
UPDATE holdfast.api_token t
   SET revoked_at = coalesce(t.revoked_at, holdfast.now()),
       revoked_by = CASE WHEN t.revoked_at IS NULL THEN $3 ELSE t.revoked_by END
 WHERE t.tenant_id = $1 AND t.id = $2
RETURNING t.revoked_at;

-- name: find_token
-- Whose token has this hash; served by the hash's unique index. The one statement about tokens that is not for one
-- tenant: which one it is, is the answer. Serves: whoever checks a token.
-- takes: one (hash text)
-- gives: (id uuid, tenant int, tenant_name text, disabled bool, name text, roles text, expires_at bigint,
--   revoked_at bigint, now bigint, task_roles text)
SELECT k.id, k.tenant_id, t.name, t.disabled, k.name, k.roles, k.expires_at, k.revoked_at, holdfast.now(),
       k.task_roles
  FROM holdfast.api_token k JOIN holdfast.tenant t ON t.id = k.tenant_id
 WHERE k.hash = decode($1, 'hex');

-- name: any_token
-- Whether somebody has ever made a token, in any tenant: from then on servers ask for one, also when all were revoked.
-- Serves: servers, at their start and now and then.
-- takes: nothing
-- gives: (found bool)
SELECT EXISTS (SELECT 1 FROM holdfast.api_token t);
