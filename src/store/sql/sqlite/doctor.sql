-- name: find_dead_holders
-- Workers that are dead and hold runs, with the end of the last of these leases. At most `most` unfinished runs are looked
-- at. Served by run_claim. Serves: doctor.
-- takes: one (most int)
-- gives: (worker text, runs bigint, until bigint)
SELECT w.name, count(*), max(h.run_at)
  FROM (SELECT r.status, r.leased_by, r.run_at
          FROM lane l CROSS JOIN run r INDEXED BY run_claim ON r.lane = l.id
         WHERE r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
         LIMIT ?1) h
 CROSS JOIN worker w ON w.name = h.leased_by
 WHERE h.status = 1 AND w.expires_at <= holdfast_now()
 GROUP BY w.name ORDER BY w.name;

-- name: find_stuck
-- Live workers whose threads are all stuck. Serves: doctor.
-- takes: nothing
-- gives: (worker text, stuck int, threads int)
SELECT w.name, w.stuck, w.threads FROM worker w
 WHERE w.stuck > 0 AND w.stuck >= w.threads AND w.expires_at > holdfast_now()
 ORDER BY w.name LIMIT 1000;

-- name: missing_guards
-- Triggers that keep the journal append-only and are not there. Serves: doctor.
-- takes: nothing
-- gives: (name text)
SELECT g.value
  FROM json_each('["event_no_update","event_no_delete","event_no_replace","run_removal","run_no_replace",'
                 || '"seal_no_update","seal_no_delete","seal_no_replace"]') g
 WHERE g.value NOT IN (SELECT name FROM sqlite_master WHERE type = 'trigger');

-- name: find_unfit
-- Runs that wait for a worker whose code fits, by workflow: how many of them, since when, and one that has waited longest.
-- At most `most` are looked at. Served by run_unfit and the primary keys. Serves: doctor.
-- takes: one (most int)
-- gives: (tenant text, workflow text, runs bigint, since bigint, run uuid, last_error text, now bigint)
SELECT (SELECT t.name FROM tenant t WHERE t.id = w.tenant_id) AS tenant, w.name, count(*), min(u.unfit_since), u.id,
       u.last_error, holdfast_now()
  FROM (SELECT r.workflow_id, r.id, r.unfit_since, r.last_error, r.waiting_kind, r.deleted_at
          FROM run r INDEXED BY run_unfit WHERE r.unfit_since IS NOT NULL AND r.status = 2 LIMIT ?1) u
 CROSS JOIN workflow w ON w.id = u.workflow_id
 WHERE u.waiting_kind = 'worker' AND u.deleted_at IS NULL
 GROUP BY u.workflow_id ORDER BY tenant, w.name LIMIT 1000;

-- name: find_parked
-- Subscriptions that nothing is delivered to: the run that delivers is paused, or waits for somebody to resume it. Serves:
-- doctor.
-- takes: nothing
-- gives: (tenant text, name text, last_error text)
SELECT t.name, s.name, r.state ->> 'error'
  FROM subscription s
  JOIN tenant t ON t.id = s.tenant_id
  JOIN run r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
 WHERE r.status = 3 OR r.pause_requested OR (r.status = 2 AND r.waiting_kind = 'parked')
 ORDER BY t.name, s.name LIMIT 1000;
