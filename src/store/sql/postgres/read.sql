-- name: get_run
-- One run by id, deleted or not. Served by the primary key. Serves: get, wait.
-- takes: one (tenant int, id uuid)
-- gives: (id uuid, tenant text, workflow text, key text, status int, priority int, attempt int, max_attempts int,
--   version bigint, revision bigint, run_at bigint, leased_by text, pause_requested bool, input text, state text,
--   result text, error text, error_code text, last_error text, current_step text, waiting_kind text, waiting_token
--   text, waiting_until bigint, wait_count int, last_worker text, subject text, reference text, tags text, partition
--   text, trace text, actor text, parent uuid, root uuid, timeout_at bigint, created_at bigint, started_at bigint,
--   updated_at bigint, paused_at bigint, finished_at bigint, deleted_at bigint, delete_reason text, flow_key text,
--   debounce_key text)
SELECT r.id, t.name, w.name, r.key, r.status, r.priority, r.attempt, coalesce(r.max_attempts, w.max_attempts),
       r.version, r.revision, r.run_at, r.leased_by, r.pause_requested, r.input, r.state, r.result, r.error,
       r.error_code, r.last_error, r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until,
       r.wait_count, r.last_worker, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor, r.parent,
       r.root, r.timeout_at, r.created_at, r.started_at, r.updated_at, r.paused_at, r.finished_at, r.deleted_at,
       r.delete_reason, l.flow_key, r.debounce_key
  FROM holdfast.run r
  JOIN holdfast.workflow w ON w.id = r.workflow_id
  JOIN holdfast.tenant t ON t.id = r.tenant_id
  JOIN holdfast.lane l ON l.id = r.lane
 WHERE r.tenant_id = $1 AND r.id = $2;

-- name: get_run_by_key
-- One run that is not deleted, by workflow and key. Served by run_key. Serves: get by key.
-- takes: one (tenant int, workflow text, key text)
-- gives: (id uuid, tenant text, workflow text, key text, status int, priority int, attempt int, max_attempts int,
--   version bigint, revision bigint, run_at bigint, leased_by text, pause_requested bool, input text, state text,
--   result text, error text, error_code text, last_error text, current_step text, waiting_kind text, waiting_token
--   text, waiting_until bigint, wait_count int, last_worker text, subject text, reference text, tags text, partition
--   text, trace text, actor text, parent uuid, root uuid, timeout_at bigint, created_at bigint, started_at bigint,
--   updated_at bigint, paused_at bigint, finished_at bigint, deleted_at bigint, delete_reason text, flow_key text,
--   debounce_key text)
SELECT r.id, t.name, w.name, r.key, r.status, r.priority, r.attempt, coalesce(r.max_attempts, w.max_attempts),
       r.version, r.revision, r.run_at, r.leased_by, r.pause_requested, r.input, r.state, r.result, r.error,
       r.error_code, r.last_error, r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until,
       r.wait_count, r.last_worker, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor, r.parent,
       r.root, r.timeout_at, r.created_at, r.started_at, r.updated_at, r.paused_at, r.finished_at, r.deleted_at,
       r.delete_reason, l.flow_key, r.debounce_key
  FROM holdfast.run r
  JOIN holdfast.workflow w ON w.id = r.workflow_id
  JOIN holdfast.tenant t ON t.id = r.tenant_id
  JOIN holdfast.lane l ON l.id = r.lane
 WHERE w.tenant_id = $1 AND w.name = $2 AND r.key = $3 AND r.key IS NOT NULL AND r.deleted_at IS NULL;

-- name: taken_ids
-- Ids that runs have already, of whatever tenant, but for those that this tenant's children of a run have. Every run has a
-- first line in the journal. Served by the primary keys of event and run. Serves: children of remote workers.
-- takes: rows (id uuid, tenant int, parent uuid)
-- gives: (id uuid)
SELECT n.id FROM unnest($1::uuid[], $2::int[], $3::uuid[]) AS n(id, tenant, parent)
 WHERE EXISTS (SELECT 1 FROM holdfast.event e WHERE e.run_id = n.id AND e.seq = 1 OFFSET 0)
   AND NOT EXISTS (SELECT 1 FROM holdfast.run r
                    WHERE r.tenant_id = n.tenant AND r.id = n.id AND r.parent = n.parent OFFSET 0);

-- name: count_children
-- The children of one run that are not deleted, by status. Served by run_parent. Serves: looking at families.
-- takes: one (tenant int, run uuid)
-- gives: (status int, count bigint)
SELECT c.status::int, count(*) FROM holdfast.run c
 WHERE c.tenant_id = $1 AND c.parent = $2 AND c.parent IS NOT NULL AND c.deleted_at IS NULL
 GROUP BY c.status;

-- name: count_runs
-- How many runs match, for a bulk operation's dry run and progress bar. The cursor and most are ignored. Serves:
-- bulk.
-- takes: one (tenant int, before uuid, most int, statuses int, workflow text, prefix text, prefix_end text, key text,
--   subject text, reference text, tag text, current_step text, parent uuid, created_after bigint, created_before
--   bigint, overdue bool, deleted bool, flow_key text)
-- gives: (count bigint)
SELECT count(*)
  FROM holdfast.run r
  JOIN holdfast.workflow w ON w.id = r.workflow_id
  JOIN holdfast.tenant t ON t.id = r.tenant_id
  JOIN holdfast.lane l ON l.id = r.lane
 WHERE r.tenant_id = $1 AND ($2::uuid IS NULL OR true)
   -- include: run_filter
   AND ($3 IS NULL OR true);

-- name: list_events
-- A run's journal after a sequence number. Ends with the line with which they hold more than `bytes`; total is what they
-- hold so far. Served by the primary key of event. Serves: events, follow.
-- takes: one (tenant int, run uuid, after bigint, most int, bytes bigint)
-- gives: (run uuid, seq bigint, position bigint, version bigint, kind int, name text, actor text, step text, data
--   text, at bigint, own int, total bigint)
SELECT * FROM (
    SELECT e.run_id, e.seq, e.position, e.version, e.kind, e.name, e.actor, e.step, e.data, e.at,
           s.own, sum(s.own) OVER (ORDER BY e.seq ROWS UNBOUNDED PRECEDING)::bigint AS total
      FROM holdfast.event e
     CROSS JOIN LATERAL (SELECT coalesce(octet_length(e.data), 0) AS own) s
     WHERE e.run_id = $2 AND e.tenant_id = $1 AND e.seq > $3
     ORDER BY e.seq LIMIT $4) p
 WHERE p.total - p.own <= $5 ORDER BY p.seq;
