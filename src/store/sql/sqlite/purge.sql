-- name: find_purgeable
-- The next page of runs, oldest first, that ended (or were deleted) before a time. Left out is a deleted child that has
-- not ended and whose parent was not told of it. Served by the primary key. Serves: purge.
-- takes: one (tenant int, after uuid, most int, workflow text, before bigint)
-- gives: (id uuid)
SELECT r.id FROM run r JOIN workflow w ON w.id = r.workflow_id
 WHERE r.tenant_id = ?1 AND (?2 IS NULL OR r.id > ?2) AND (?4 IS NULL OR w.name = ?4)
   AND ((r.status >= 4 AND r.finished_at < ?5)
        OR (r.deleted_at < ?5 AND (r.status <> 1 OR r.run_at < holdfast_now())
            AND NOT EXISTS (SELECT 1 FROM run p
                             WHERE p.tenant_id = r.tenant_id AND p.id = r.parent AND p.status <> 4
                               AND NOT EXISTS (SELECT 1 FROM signal s WHERE s.run_id = p.id
                                                  AND s.tenant_id = p.tenant_id AND s.id = 'child:' || holdfast_uuid_text(r.id)))))
 ORDER BY r.id LIMIT ?3;

-- name: purge_runs
-- Removes runs that are still finished or deleted, as find_purgeable gave them. First of the purge, since events may go
-- only after their run. Serves: purge.
-- takes: rows (tenant int, id uuid)
-- gives: (id uuid)
DELETE FROM run
 WHERE tenant_id = ?1 AND id = ?2
   AND (status >= 4
        OR (deleted_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM run p
                             WHERE p.tenant_id = run.tenant_id AND p.id = run.parent AND p.status <> 4
                               AND NOT EXISTS (SELECT 1 FROM signal s WHERE s.run_id = p.id
                                                  AND s.tenant_id = p.tenant_id AND s.id = 'child:' || holdfast_uuid_text(run.id)))))
RETURNING id;

-- name: purge_belongings
-- Removes what belonged to runs that are gone. Serves: purge, after purge_runs.
-- takes: rows (tenant int, id uuid)
-- gives: nothing
DELETE FROM event WHERE tenant_id = ?1 AND run_id = ?2 AND NOT EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?2);
DELETE FROM signal WHERE tenant_id = ?1 AND run_id = ?2 AND NOT EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?2);
DELETE FROM task WHERE tenant_id = ?1 AND run_id = ?2 AND NOT EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?2);
DELETE FROM outbox WHERE tenant_id = ?1 AND run_id = ?2 AND published_at IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?2);
DELETE FROM dead_letter WHERE tenant_id = ?1 AND run_id = ?2 AND NOT EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?2);
DELETE FROM run_tag WHERE tenant_id = ?1 AND run_id = ?2
   AND NOT EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?2);
