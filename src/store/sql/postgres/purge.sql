-- name: find_purgeable
-- The next page of runs, oldest first, that ended (or were deleted) before a time. Left out is a deleted child that has
-- not ended and whose parent was not told of it. Served by the primary key. Serves: purge.
-- takes: one (tenant int, after uuid, most int, workflow text, before bigint)
-- gives: (id uuid)
SELECT r.id FROM holdfast.run r JOIN holdfast.workflow w ON w.id = r.workflow_id
 WHERE r.tenant_id = $1 AND ($2::uuid IS NULL OR r.id > $2) AND ($4::text IS NULL OR w.name = $4)
   AND ((r.status >= 4 AND r.finished_at < $5)
        OR (r.deleted_at < $5 AND (r.status <> 1 OR r.run_at < holdfast.now())
            AND NOT EXISTS (SELECT 1 FROM holdfast.run p
                             WHERE p.tenant_id = r.tenant_id AND p.id = r.parent AND p.status <> 4
                               AND NOT EXISTS (SELECT 1 FROM holdfast.signal s
                                                WHERE s.run_id = p.id AND s.id = 'child:' || r.id::text
                                                  AND s.tenant_id = p.tenant_id OFFSET 0)
                            OFFSET 0)))
 ORDER BY r.id LIMIT $3;

-- name: purge_runs
-- Removes runs that are still finished or deleted, as find_purgeable gave them. First of the purge, since events may go
-- only after their run. Serves: purge.
-- takes: rows (tenant int, id uuid)
-- gives: (id uuid)
DELETE FROM holdfast.run r USING unnest($1::int[], $2::uuid[]) AS n(tenant, id)
 WHERE r.tenant_id = ANY (ARRAY[n.tenant]) AND r.id = n.id
   AND (r.status >= 4
        OR (r.deleted_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM holdfast.run p
                             WHERE p.tenant_id = r.tenant_id AND p.id = r.parent AND p.status <> 4
                               AND NOT EXISTS (SELECT 1 FROM holdfast.signal s
                                                WHERE s.run_id = p.id AND s.id = 'child:' || r.id::text
                                                  AND s.tenant_id = p.tenant_id OFFSET 0)
                            OFFSET 0)))
RETURNING r.id;

-- name: purge_belongings
-- Removes what belonged to runs that are gone. The tenant is compared as a sum, so that no index is searched for it
-- alone. Serves: purge, after purge_runs.
-- takes: rows (tenant int, id uuid)
-- gives: nothing
WITH gone AS MATERIALIZED (
    SELECT n.tenant, n.id FROM unnest($1::int[], $2::uuid[]) AS n(tenant, id)
     WHERE NOT EXISTS (SELECT 1 FROM holdfast.run r WHERE r.tenant_id = n.tenant AND r.id = n.id OFFSET 0)
), e AS (DELETE FROM holdfast.event x USING gone g WHERE x.run_id = ANY (ARRAY[g.id]) AND x.tenant_id + 0 = g.tenant),
   s AS (DELETE FROM holdfast.signal x USING gone g WHERE x.run_id = ANY (ARRAY[g.id]) AND x.tenant_id + 0 = g.tenant),
   k AS (DELETE FROM holdfast.task x USING gone g WHERE x.run_id = ANY (ARRAY[g.id]) AND x.tenant_id + 0 = g.tenant),
   o AS (DELETE FROM holdfast.outbox x USING gone g WHERE x.run_id = ANY (ARRAY[g.id]) AND x.tenant_id + 0 = g.tenant
                                                       AND coalesce(x.published_at, 0) > 0),
   d AS (DELETE FROM holdfast.dead_letter x USING gone g WHERE x.run_id = ANY (ARRAY[g.id]) AND x.tenant_id + 0 = g.tenant)
DELETE FROM holdfast.run_tag x USING gone g WHERE x.run_id = ANY (ARRAY[g.id]) AND x.tenant_id + 0 = g.tenant;
