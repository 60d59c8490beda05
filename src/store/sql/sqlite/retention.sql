-- name: retention_rules
-- Workflows whose ended runs are removed after a time; the engine's own chores are kept for seven days. Serves:
-- retention.
-- takes: nothing
-- gives: (workflow int, retention bigint)
SELECT w.id, coalesce(w.retention, 604800000000) FROM workflow w
 WHERE w.retention > 0 OR (w.retention IS NULL AND w.name >= 'holdfast.' AND w.name < 'holdfast/');

-- name: find_expired
-- The next runs of a workflow that ended in a span of time, oldest end first. Left out is what has to do with work under
-- way: runs with a parent or a child that has not ended. Served by run_finished. Serves: retention.
-- takes: one (workflow int, since bigint, before bigint, most int)
-- gives: (tenant int, id uuid, at bigint)
SELECT r.tenant_id, r.id, r.finished_at FROM run r INDEXED BY run_finished
 WHERE r.workflow_id = ?1 AND r.status >= 4 AND r.finished_at >= ?2 AND r.finished_at < ?3
   AND NOT EXISTS (SELECT 1 FROM run p
                    WHERE p.tenant_id = r.tenant_id AND p.id = r.parent AND p.status <= 3 AND p.deleted_at IS NULL)
   AND NOT EXISTS (SELECT 1 FROM run c
                    WHERE c.tenant_id = r.tenant_id AND c.parent = r.id AND c.parent IS NOT NULL AND c.status <= 3
                      AND c.deleted_at IS NULL)
 ORDER BY r.finished_at LIMIT ?4;

-- name: find_expired_deleted
-- The next runs that were deleted in a span of time, oldest first. Left out are those that somebody holds, those with a
-- child that has not ended, and those of whose end the parent was not told. Served by run_deleted. Serves: retention.
-- takes: one (since bigint, before bigint, most int)
-- gives: (tenant int, id uuid, at bigint)
SELECT r.tenant_id, r.id, r.deleted_at FROM run r INDEXED BY run_deleted
 WHERE r.deleted_at >= ?1 AND r.deleted_at < ?2 AND (r.status <> 1 OR r.run_at < holdfast_now())
   AND (r.status >= 4
        OR NOT EXISTS (SELECT 1 FROM run p
                        WHERE p.tenant_id = r.tenant_id AND p.id = r.parent AND p.status <> 4
                          AND NOT EXISTS (SELECT 1 FROM signal s
                                           WHERE s.run_id = p.id AND s.id = 'child:' || holdfast_uuid_text(r.id))))
   AND NOT EXISTS (SELECT 1 FROM run c
                    WHERE c.tenant_id = r.tenant_id AND c.parent = r.id AND c.parent IS NOT NULL AND c.status <= 3
                      AND c.deleted_at IS NULL)
 ORDER BY r.deleted_at LIMIT ?3;

-- name: next_ends
-- For each workflow the first end of a run since a time. Served by run_finished. Serves: retention, to know when it is
-- needed next.
-- takes: rows (workflow int, since bigint)
-- gives: (workflow int, at bigint)
SELECT ?1, r.finished_at FROM run r INDEXED BY run_finished
 WHERE r.workflow_id = ?1 AND r.status >= 4 AND r.finished_at >= ?2
 ORDER BY r.finished_at LIMIT 1;

-- name: next_deletion
-- The first deletion of a run since a time. Served by run_deleted. Serves: as next_ends.
-- takes: one (since bigint)
-- gives: (at bigint)
SELECT r.deleted_at FROM run r INDEXED BY run_deleted WHERE r.deleted_at >= ?1 ORDER BY r.deleted_at LIMIT 1;

-- name: look_at_lanes
-- The next lanes of flow keys, and whether they are idle: as new, and without a run, ended or deleted ones included. The
-- last lane is not, since its number would be given again, and workers know lanes by their numbers. For a day after a
-- migration none is: programs of the version before, which do not expect it, can still be at work. Served by the primary
-- keys of lane and schema_version and by run_flow_id. Serves: retention.
-- takes: one (after int, most int)
-- gives: (lane int, idle bool)
SELECT l.id,
       l.id & 1 = 1 AND l.weight = 1 AND coalesce(l.rate_next, 0) <= holdfast_now()
       AND l.id < (SELECT max(k.id) FROM lane k)
       AND (SELECT v.applied_at FROM schema_version v WHERE v.version = (SELECT max(m.version) FROM schema_version m))
           <= holdfast_now() - 86400000000
       AND NOT EXISTS (SELECT 1 FROM run r INDEXED BY run_flow_id
                        WHERE r.lane = l.id AND r.lane & 1 = 1)
  FROM lane l
 WHERE l.id > ?1 AND l.flow_key IS NOT NULL
 ORDER BY l.id LIMIT ?2;

-- name: remove_lanes
-- Removes lanes that still are idle, as look_at_lanes says it. Served by the primary key of lane and by
-- run_flow_id. Serves: retention.
-- takes: rows (lane int)
-- gives: (lane int)
DELETE FROM lane
 WHERE id = ?1 AND flow_key IS NOT NULL AND id & 1 = 1 AND weight = 1 AND coalesce(rate_next, 0) <= holdfast_now()
   AND id < (SELECT max(k.id) FROM lane k)
   AND NOT EXISTS (SELECT 1 FROM run r INDEXED BY run_flow_id
                    WHERE r.lane = lane.id AND r.lane & 1 = 1)
RETURNING id;
