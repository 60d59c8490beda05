-- name: retention_rules
-- Workflows whose ended runs are removed after a time; the engine's own chores are kept for seven days. Serves:
-- retention.
-- takes: nothing
-- gives: (workflow int, retention bigint)
SELECT w.id, coalesce(w.retention, 604800000000) FROM holdfast.workflow w
 WHERE w.retention > 0 OR (w.retention IS NULL AND w.name >= 'holdfast.' AND w.name < 'holdfast/');

-- name: find_expired
-- The next runs of a workflow that ended in a span of time, oldest end first. Left out is what has to do with work under
-- way: runs with a parent or a child that has not ended. Served by run_finished. Serves: retention.
-- takes: one (workflow int, since bigint, before bigint, most int)
-- gives: (tenant int, id uuid, at bigint)
SELECT r.tenant_id, r.id, r.finished_at FROM holdfast.run r
 WHERE r.workflow_id = $1 AND r.status >= 4 AND r.finished_at >= $2 AND r.finished_at < $3
   AND NOT EXISTS (SELECT 1 FROM holdfast.run p
                    WHERE p.tenant_id = r.tenant_id AND p.id = r.parent AND p.status <= 3 AND p.deleted_at IS NULL
                   OFFSET 0)
   AND NOT EXISTS (SELECT 1 FROM holdfast.run c
                    WHERE c.tenant_id = r.tenant_id AND c.parent = r.id AND c.status <= 3 AND c.deleted_at IS NULL
                   OFFSET 0)
 ORDER BY r.finished_at LIMIT $4;

-- name: find_expired_deleted
-- The next runs that were deleted in a span of time, oldest first. Left out are those that somebody holds, those with a
-- child that has not ended, and those of whose end the parent was not told. Served by run_deleted. Serves: retention.
-- takes: one (since bigint, before bigint, most int)
-- gives: (tenant int, id uuid, at bigint)
SELECT r.tenant_id, r.id, r.deleted_at FROM holdfast.run r
 WHERE r.deleted_at >= $1 AND r.deleted_at < $2 AND (r.status <> 1 OR r.run_at < holdfast.now())
   AND (r.status >= 4
        OR NOT EXISTS (SELECT 1 FROM holdfast.run p
                        WHERE p.tenant_id = r.tenant_id AND p.id = r.parent AND p.status <> 4
                          AND NOT EXISTS (SELECT 1 FROM holdfast.signal s
                                           WHERE s.run_id = p.id AND s.id = 'child:' || r.id::text OFFSET 0)
                       OFFSET 0))
   AND NOT EXISTS (SELECT 1 FROM holdfast.run c
                    WHERE c.tenant_id = r.tenant_id AND c.parent = r.id AND c.status <= 3 AND c.deleted_at IS NULL
                   OFFSET 0)
 ORDER BY r.deleted_at LIMIT $3;

-- name: next_ends
-- For each workflow the first end of a run since a time. Served by run_finished. Serves: retention, to know when it is
-- needed next.
-- takes: rows (workflow int, since bigint)
-- gives: (workflow int, at bigint)
SELECT n.workflow, f.finished_at
  FROM unnest($1::int[], $2::bigint[]) AS n(workflow, since),
       LATERAL (SELECT r.finished_at FROM holdfast.run r
                 WHERE r.workflow_id = n.workflow AND r.status >= 4 AND r.finished_at >= n.since
                 ORDER BY r.finished_at LIMIT 1) f;

-- name: next_deletion
-- The first deletion of a run since a time. Served by run_deleted. Serves: as next_ends.
-- takes: one (since bigint)
-- gives: (at bigint)
SELECT r.deleted_at FROM holdfast.run r WHERE r.deleted_at >= $1 ORDER BY r.deleted_at LIMIT 1;

-- name: look_at_lanes
-- The next lanes of flow keys, and whether they are idle: as new, and without a run, ended or deleted ones included. For a
-- day after a migration none is: programs of the version before, which may not lock lanes, can still be at work. Served by
-- the primary keys of lane and schema_version and by run_flow. Serves: retention.
-- takes: one (after int, most int)
-- gives: (lane int, idle bool)
SELECT l.id,
       l.id & 1 = 1 AND l.weight = 1 AND coalesce(l.rate_next, 0) <= holdfast.now()
       AND (SELECT v.applied_at FROM holdfast.schema_version v ORDER BY v.version DESC LIMIT 1)
           <= holdfast.now() - 86400000000
       AND NOT EXISTS (SELECT 1 FROM holdfast.run r
                        WHERE r.lane = l.id AND r.lane & 1 = 1 OFFSET 0)
  FROM holdfast.lane l
 WHERE l.id > $1 AND l.flow_key IS NOT NULL
 ORDER BY l.id LIMIT $2;

-- name: lock_lanes
-- Locks lanes against new runs; those that somebody uses at this moment are left out. A statement of its own, before
-- remove_lanes: that one's snapshot must be younger than the locks. Served by the primary key of lane. Serves: retention.
-- only: postgres
-- takes: rows (lane int)
-- gives: (lane int)
SELECT l.id FROM unnest($1::int[]) AS n(lane) JOIN holdfast.lane l ON l.id = n.lane FOR UPDATE OF l SKIP LOCKED;

-- name: remove_lanes
-- Removes lanes that still are idle, as look_at_lanes says it. They were locked. Served by the primary key of lane and by
-- run_flow. Serves: retention.
-- takes: rows (lane int)
-- gives: (lane int)
DELETE FROM holdfast.lane l USING unnest($1::int[]) AS n(lane)
 WHERE l.id = n.lane AND l.flow_key IS NOT NULL AND l.id & 1 = 1 AND l.weight = 1
   AND coalesce(l.rate_next, 0) <= holdfast.now()
   AND NOT EXISTS (SELECT 1 FROM holdfast.run r
                    WHERE r.lane = l.id AND r.lane & 1 = 1 OFFSET 0)
RETURNING l.id;
