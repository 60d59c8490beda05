-- name: acquire_lock
-- Takes a host lock that is free or expired; a new holder gets the next token. Nothing given back:
-- somebody holds it. Serves: lock.
-- takes: one (tenant int, name text, holder text, ttl bigint)
-- gives: (token bigint, until bigint)
INSERT INTO holdfast.host_lock AS l (tenant_id, name, holder, token, until)
VALUES ($1, $2, $3, 1, holdfast.now() + $4)
ON CONFLICT (tenant_id, name) DO UPDATE
   SET holder = EXCLUDED.holder, token = l.token + 1, until = EXCLUDED.until
 WHERE l.until <= holdfast.now() OR l.holder IS NULL
RETURNING l.token, l.until;

-- name: renew_lock
-- Prolongs a lock that is still held under this token, expired or not, as long as nobody else took it. Serves: lock.
-- takes: one (tenant int, name text, token bigint, ttl bigint)
-- gives: (until bigint)
UPDATE holdfast.host_lock l SET until = holdfast.now() + $4
 WHERE l.tenant_id = $1 AND l.name = $2 AND l.token = $3 AND l.holder IS NOT NULL
RETURNING l.until;

-- name: release_lock
-- Gives a lock back; the row stays, since its token must never fall. Serves: lock.
-- takes: one (tenant int, name text, token bigint)
-- gives: (token bigint)
UPDATE holdfast.host_lock l SET holder = NULL, until = 0
 WHERE l.tenant_id = $1 AND l.name = $2 AND l.token = $3 AND l.holder IS NOT NULL
RETURNING l.token;

-- name: read_lock
-- Who holds a lock and until when. Serves: waiting for a lock.
-- takes: one (tenant int, name text)
-- gives: (holder text, token bigint, until bigint, now bigint)
SELECT l.holder, l.token, l.until, holdfast.now() FROM holdfast.host_lock l WHERE l.tenant_id = $1 AND l.name = $2;
