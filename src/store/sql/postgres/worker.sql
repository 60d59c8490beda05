-- name: put_worker
-- Registers a worker, or renews what it says of itself. It is dead when ttl has passed without a beat. Serves: worker
-- start.
-- takes: one (name text, tenants text, serves text, host text, pid int, program text, threads int, ttl bigint,
--   stuck int)
-- gives: nothing
INSERT INTO holdfast.worker (name, tenants, serves, host, pid, program, threads, started_at, seen_at, expires_at, stuck)
VALUES ($1, $2, $3, $4, $5, $6, $7, holdfast.now(), holdfast.now(), holdfast.now() + $8, $9)
ON CONFLICT (name) DO UPDATE SET tenants = EXCLUDED.tenants, serves = EXCLUDED.serves, host = EXCLUDED.host,
    pid = EXCLUDED.pid, program = EXCLUDED.program, threads = EXCLUDED.threads, draining = false, idle = false,
    started_at = EXCLUDED.started_at, seen_at = EXCLUDED.seen_at, expires_at = EXCLUDED.expires_at, stuck = EXCLUDED.stuck;

-- name: beat_worker
-- A worker's sign of life. Nothing given back: it was forgotten and must register again. A null stays as it was.
-- Serves: worker heartbeat, going to sleep, waking up.
-- takes: one (name text, running int, idle bool, draining bool, ttl bigint, stuck int)
-- gives: (name text)
UPDATE holdfast.worker w SET running = coalesce($2, w.running), idle = coalesce($3, w.idle), draining = $4, seen_at = holdfast.now(), expires_at = holdfast.now() + $5,
       stuck = coalesce($6, w.stuck)
 WHERE w.name = $1 RETURNING w.name;

-- name: remove_worker
-- A worker that stopped in an orderly way. Serves: worker stop.
-- takes: one (name text)
-- gives: nothing
DELETE FROM holdfast.worker w WHERE w.name = $1;

-- name: end_leases
-- Ends the leases that a worker holds, in a tenant or everywhere: what it held is due in its old place. A run that somebody else
-- has locked is passed over, and its lease ends by itself. Served by run_state. Serves: a worker that starts under a name that it
-- had before.
-- takes: one (tenant int, worker text)
-- gives: (lane int)
WITH held AS MATERIALIZED (
    SELECT h.tenant_id, h.id
      FROM holdfast.workflow w
     CROSS JOIN LATERAL (
        SELECT x.tenant_id, x.id FROM holdfast.run x
         WHERE x.workflow_id = w.id AND x.status = 1 AND x.deleted_at IS NULL AND (x.status + 0 >= 1 OR x.run_at <> x.created_at)
           AND x.leased_by = $2
           FOR NO KEY UPDATE SKIP LOCKED) h
     WHERE $1::int IS NULL OR w.tenant_id = $1
)
UPDATE holdfast.run r SET run_at = least(r.due_at, holdfast.now())
  FROM held h WHERE r.tenant_id = ANY (ARRAY[h.tenant_id]) AND r.id = h.id
RETURNING r.lane;

-- name: find_cancelled
-- Runs that were cancelled since a time, and that a worker was the last to hold. Served by run_cancelled. Serves: remote workers
-- that hold runs.
-- takes: one (tenant int, since bigint, worker text, most int)
-- gives: (id uuid, finished_at bigint)
SELECT r.id, r.finished_at FROM holdfast.run r
 WHERE r.tenant_id = $1 AND r.status + 0 = 6 AND r.finished_at >= $2 AND r.last_worker = $3
 LIMIT $4;

-- name: forget_workers
-- Workers that have been dead for a time. Serves: purge.
-- takes: one (dead_before bigint)
-- gives: nothing
DELETE FROM holdfast.worker w WHERE w.expires_at < $1;

-- name: judge_fit
-- Whether a run has waited for a worker whose code fits for as long as its workflow lets it. Served by the primary keys.
-- Serves: turns whose code does not fit.
-- takes: one (tenant int, id uuid)
-- gives: (over bool)
SELECT coalesce(r.unfit_since, t.now) + w.fit_within <= t.now
  FROM (SELECT holdfast.now() AS now OFFSET 0) t, holdfast.run r JOIN holdfast.workflow w ON w.id = r.workflow_id
 WHERE r.tenant_id = $1 AND r.id = $2;

-- name: wake_unfit
-- Runs that wait for a worker whose code fits are due, and their pauses begin anew: one has joined that serves these tenants
-- and workflows, JSON arrays of names and patterns. Served by run_unfit. Serves: worker start.
-- takes: one (tenants text, serves text)
-- gives: nothing
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
unfit AS MATERIALIZED (
    SELECT r.ctid
      FROM t
     CROSS JOIN holdfast.run r
      JOIN holdfast.workflow w ON w.id = r.workflow_id
      JOIN holdfast.tenant n ON n.id = r.tenant_id
     WHERE r.unfit_since IS NOT NULL AND r.status = 2 AND r.waiting_kind = 'worker' AND r.deleted_at IS NULL
       AND (r.run_at > t.now OR r.unfit_pause IS NOT NULL)
       AND EXISTS (SELECT 1 FROM jsonb_array_elements_text($1::jsonb) AS x(name) WHERE x.name IN (n.name, '*'))
       AND EXISTS (SELECT 1 FROM jsonb_array_elements_text($2::jsonb) AS x(pattern)
                    WHERE x.pattern = w.name
                       OR (right(x.pattern, 1) = '*' AND starts_with(w.name, left(x.pattern, -1))))
       FOR NO KEY UPDATE OF r SKIP LOCKED
)
UPDATE holdfast.run r SET run_at = least(r.run_at, t.now), unfit_pause = NULL
  FROM t, unfit u WHERE r.ctid = u.ctid;

-- name: list_workers
-- All workers that serve a tenant, the live ones first. Serves: workers.
-- takes: one (tenant text)
-- gives: (name text, tenants text, serves text, host text, pid int, program text, threads int, running int, idle
--   bool, draining bool, started_at bigint, seen_at bigint, live bool, stuck int)
SELECT w.name, w.tenants, w.serves, w.host, w.pid, w.program, w.threads, w.running, w.idle, w.draining, w.started_at,
       w.seen_at, w.expires_at > holdfast.now(), w.stuck
  FROM holdfast.worker w
 WHERE strpos(w.tenants, '"*"') > 0 OR strpos(w.tenants, '"' || $1::text || '"') > 0
 ORDER BY w.expires_at > holdfast.now() DESC, w.name LIMIT 10000;

-- name: notify_workers
-- Wakes sleeping workers, after the data's commit and only if one says that it is idle: NOTIFY serialises commits. Tells
-- whether the disk is all that a commit waits for. Serves: every flush that made work.
-- only: postgres
-- takes: one (channel text, payload text)
-- gives: nothing
SELECT pg_notify($1, $2), current_setting('synchronous_standby_names') = '' WHERE EXISTS (SELECT 1 FROM holdfast.worker w WHERE w.idle);

-- name: notify_runs
-- Tells those who wait for runs. Serves: commits of watched runs.
-- only: postgres
-- takes: one (channel text, payload text)
-- gives: nothing
SELECT pg_notify($1, $2);

-- name: notify_early
-- Tells of a new run that was committed after defer_flush, and up to which place in the log it was written: whoever claims it asks
-- whether that is on disk (is_on_disk). Serves: a trigger alone in its flush.
-- only: postgres
-- takes: one (channel text, payload text)
-- gives: nothing
SELECT pg_notify($1, $2 || '~' || (pg_current_wal_insert_lsn() - '0/0')::bigint);

-- name: cancelled_chore
-- The run of one of the engine's own workflows, by its key, if somebody cancelled it. Served by run_key. Serves: workers,
-- with their heartbeat.
-- takes: one (tenant int, workflow text, key text)
-- gives: (run uuid)
SELECT r.id FROM holdfast.workflow w JOIN holdfast.run r ON r.workflow_id = w.id
 WHERE w.tenant_id = $1 AND w.name = $2 AND r.key = $3 AND r.key IS NOT NULL AND r.deleted_at IS NULL AND r.status = 6;
