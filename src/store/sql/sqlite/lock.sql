-- name: acquire_lock
-- Takes a host lock that is free or expired; a new holder gets the next token. Nothing given back:
-- somebody holds it. Serves: lock.
-- takes: one (tenant int, name text, holder text, ttl bigint)
-- gives: (token bigint, until bigint)
INSERT INTO host_lock (tenant_id, name, holder, token, until)
VALUES (?1, ?2, ?3, 1, holdfast_now() + ?4)
ON CONFLICT (tenant_id, name) DO UPDATE
   SET holder = excluded.holder, token = token + 1, until = excluded.until
 WHERE until <= holdfast_now() OR holder IS NULL
RETURNING token, until;

-- name: renew_lock
-- Prolongs a lock that is still held under this token, expired or not, as long as nobody else took it. Serves: lock.
-- takes: one (tenant int, name text, token bigint, ttl bigint)
-- gives: (until bigint)
UPDATE host_lock SET until = holdfast_now() + ?4
 WHERE tenant_id = ?1 AND name = ?2 AND token = ?3 AND holder IS NOT NULL
RETURNING until;

-- name: release_lock
-- Gives a lock back; the row stays, since its token must never fall. Serves: lock.
-- takes: one (tenant int, name text, token bigint)
-- gives: (token bigint)
UPDATE host_lock SET holder = NULL, until = 0
 WHERE tenant_id = ?1 AND name = ?2 AND token = ?3 AND holder IS NOT NULL
RETURNING token;

-- name: read_lock
-- Who holds a lock and until when. Serves: waiting for a lock.
-- takes: one (tenant int, name text)
-- gives: (holder text, token bigint, until bigint, now bigint)
SELECT holder, token, until, holdfast_now() FROM host_lock WHERE tenant_id = ?1 AND name = ?2;
