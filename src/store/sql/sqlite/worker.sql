-- name: put_worker
-- Registers a worker, or renews what it says of itself. It is dead when ttl has passed without a beat. Serves: worker
-- start.
-- takes: one (name text, tenants text, serves text, host text, pid int, program text, threads int, ttl bigint,
--   stuck int)
-- gives: nothing
INSERT INTO worker (name, tenants, serves, host, pid, program, threads, started_at, seen_at, expires_at, stuck)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, holdfast_now(), holdfast_now(), holdfast_now() + ?8, ?9)
ON CONFLICT (name) DO UPDATE SET tenants = excluded.tenants, serves = excluded.serves, host = excluded.host,
    pid = excluded.pid, program = excluded.program, threads = excluded.threads, draining = 0, idle = 0,
    started_at = excluded.started_at, seen_at = excluded.seen_at, expires_at = excluded.expires_at, stuck = excluded.stuck;

-- name: beat_worker
-- A worker's sign of life. Nothing given back: it was forgotten and must register again. A null stays as it was.
-- Serves: worker heartbeat, going to sleep, waking up.
-- takes: one (name text, running int, idle bool, draining bool, ttl bigint, stuck int)
-- gives: (name text)
UPDATE worker SET running = coalesce(?2, running), idle = coalesce(?3, idle), draining = ?4, seen_at = holdfast_now(), expires_at = holdfast_now() + ?5,
       stuck = coalesce(?6, stuck)
 WHERE name = ?1 RETURNING name;

-- name: remove_worker
-- A worker that stopped in an orderly way. Serves: worker stop.
-- takes: one (name text)
-- gives: nothing
DELETE FROM worker WHERE name = ?1;

-- name: end_leases
-- Ends the leases that a worker holds, in a tenant or everywhere: what it held is due in its old place. Served by run_state.
-- Serves: a worker that starts under a name that it had before.
-- takes: one (tenant int, worker text)
-- gives: (lane int)
UPDATE run SET run_at = min(coalesce(due_at, holdfast_now()), holdfast_now())
 WHERE rowid IN (
    SELECT x.rowid
      FROM workflow w CROSS JOIN run x INDEXED BY run_state
        ON x.workflow_id = w.id AND x.status = 1 AND x.deleted_at IS NULL AND (x.status + 0 >= 1 OR x.run_at <> x.created_at)
     WHERE x.leased_by = ?2 AND (?1 IS NULL OR w.tenant_id = ?1))
RETURNING lane;

-- name: find_cancelled
-- Runs that were cancelled since a time, and that a worker was the last to hold. Served by run_cancelled. Serves: remote workers
-- that hold runs.
-- takes: one (tenant int, since bigint, worker text, most int)
-- gives: (id uuid, finished_at bigint)
SELECT r.id, r.finished_at FROM run r INDEXED BY run_cancelled
 WHERE r.tenant_id = ?1 AND r.status + 0 = 6 AND r.finished_at >= ?2 AND r.last_worker = ?3
 LIMIT ?4;

-- name: forget_workers
-- Workers that have been dead for a time. Serves: purge.
-- takes: one (dead_before bigint)
-- gives: nothing
DELETE FROM worker WHERE expires_at < ?1;

-- name: judge_fit
-- Whether a run has waited for a worker whose code fits for as long as its workflow lets it. Served by the primary keys.
-- Serves: turns whose code does not fit.
-- takes: one (tenant int, id uuid)
-- gives: (over bool)
SELECT coalesce(r.unfit_since, holdfast_now()) + w.fit_within <= holdfast_now()
  FROM run r JOIN workflow w ON w.id = r.workflow_id
 WHERE r.tenant_id = ?1 AND r.id = ?2;

-- name: wake_unfit
-- Runs that wait for a worker whose code fits are due, and their pauses begin anew: one has joined that serves these tenants
-- and workflows, JSON arrays of names and patterns. Served by run_unfit. Serves: worker start.
-- takes: one (tenants text, serves text)
-- gives: nothing
UPDATE run SET run_at = min(run_at, holdfast_now()), unfit_pause = NULL
 WHERE rowid IN (
    SELECT r.rowid
      FROM run r INDEXED BY run_unfit
     CROSS JOIN workflow w ON w.id = r.workflow_id
     WHERE r.unfit_since IS NOT NULL AND r.status = 2 AND r.waiting_kind = 'worker' AND r.deleted_at IS NULL
       AND EXISTS (SELECT 1 FROM json_each(?1) x
                    WHERE x.value IN ((SELECT n.name FROM tenant n WHERE n.id = r.tenant_id), '*'))
       AND EXISTS (SELECT 1 FROM json_each(?2) x
                    WHERE x.value = w.name
                       OR (substr(x.value, -1) = '*'
                           AND substr(w.name, 1, length(x.value) - 1) = substr(x.value, 1, length(x.value) - 1))));

-- name: list_workers
-- All workers that serve a tenant, the live ones first. Serves: workers.
-- takes: one (tenant text)
-- gives: (name text, tenants text, serves text, host text, pid int, program text, threads int, running int, idle
--   bool, draining bool, started_at bigint, seen_at bigint, live bool, stuck int)
SELECT name, tenants, serves, host, pid, program, threads, running, idle, draining, started_at, seen_at,
       expires_at > holdfast_now(), stuck
  FROM worker WHERE instr(tenants, '"*"') > 0 OR instr(tenants, '"' || ?1 || '"') > 0
 ORDER BY expires_at > holdfast_now() DESC, name LIMIT 10000;

-- name: cancelled_chore
-- The run of one of the engine's own workflows, by its key, if somebody cancelled it. Served by run_key. Serves: workers,
-- with their heartbeat.
-- takes: one (tenant int, workflow text, key text)
-- gives: (run uuid)
SELECT r.id FROM workflow w JOIN run r ON r.workflow_id = w.id
 WHERE w.tenant_id = ?1 AND w.name = ?2 AND r.key = ?3 AND r.key IS NOT NULL AND r.deleted_at IS NULL AND r.status = 6;
