-- name: finish_runs
-- The short way for a holder's commit that ends a run without a parent: checks the fence, writes the end and its
-- journal line at once. One that is not given back, as one that has asked people or started children, goes the long way
-- through lock_runs.
-- Arrays are sorted by (tenant, id). Served by the primary key of run. Serves: commit.
-- takes: rows (tenant int, id uuid, version bigint, status int, name text, worker text, state text, result text,
--   error text, error_code text, last_error text)
-- gives: (id uuid, watched int)
UPDATE run
   SET status = ?4, version = version + 1, revision = revision + 1, event_seq = event_seq + 1, run_at = NULL,
       leased_by = NULL, last_worker = ?6, pause_requested = 0, wait_count = 0, waiting_kind = NULL,
       waiting_token = NULL, waiting_until = NULL, state = coalesce(?7, state), result = ?8, error = ?9,
       error_code = ?10, last_error = ?11, finished_at = holdfast_now(), updated_at = holdfast_now()
 WHERE tenant_id = ?1 AND id = ?2 AND version = ?3 AND status = 1 AND parent IS NULL
   AND active_task IS NULL AND has_children IS NULL;
INSERT OR IGNORE INTO event (run_id, seq, version, tenant_id, at, kind, name, actor, data)
VALUES (CASE WHEN changes() = 1 THEN ?2 END, (SELECT event_seq FROM run WHERE tenant_id = ?1 AND id = ?2), ?3 + 1, ?1,
        holdfast_now(), 0, ?5, ?6,
        CASE WHEN ?4 = 5
             THEN json_object('attempt', (SELECT attempt FROM run WHERE tenant_id = ?1 AND id = ?2), 'error', ?11) END);
SELECT id, watched FROM run WHERE changes() = 1 AND tenant_id = ?1 AND id = ?2;

-- name: finish_children
-- The short way for a holder's commit that ends a child: checks the fence, writes the end and its journal line at once; the
-- mail for its parent follows by insert_ends. `older`: a child whose third journal line is its end was created and started, and
-- has told nothing before; one with more lines may have. An end that is not given back goes the long way. Arrays are sorted by
-- (tenant, id). Served by the primary key of run. Serves: commit.
-- takes: rows (tenant int, id uuid, version bigint, status int, name text, worker text, state text, result text,
--   error text, error_code text, last_error text, parent uuid)
-- gives: (id uuid, watched int, older bool)
UPDATE run
   SET status = ?4, version = version + 1, revision = revision + 1, event_seq = event_seq + 1, run_at = NULL,
       leased_by = NULL, last_worker = ?6, pause_requested = 0, wait_count = 0, waiting_kind = NULL,
       waiting_token = NULL, waiting_until = NULL, state = coalesce(?7, state), result = ?8, error = ?9,
       error_code = ?10, last_error = ?11, finished_at = holdfast_now(), updated_at = holdfast_now()
 WHERE tenant_id = ?1 AND id = ?2 AND version = ?3 AND status = 1 AND parent = ?12
   AND active_task IS NULL AND has_children IS NULL;
INSERT OR IGNORE INTO event (run_id, seq, version, tenant_id, at, kind, name, actor, data)
VALUES (CASE WHEN changes() = 1 THEN ?2 END, (SELECT event_seq FROM run WHERE tenant_id = ?1 AND id = ?2), ?3 + 1, ?1,
        holdfast_now(), 0, ?5, ?6,
        CASE WHEN ?4 = 5
             THEN json_object('attempt', (SELECT attempt FROM run WHERE tenant_id = ?1 AND id = ?2), 'error', ?11) END);
SELECT id, watched, event_seq > 3 FROM run WHERE changes() = 1 AND tenant_id = ?1 AND id = ?2;

-- name: insert_ends
-- The ends of children as mail for their parents. None of it is there yet. Several that succeeded may share a row: then payload
-- is an array, and `ends` their number. Serves: commits that end a child, after finish_children.
-- takes: rows (tenant int, parent uuid, id text, name text, payload text, failed bool, ends int)
-- gives: nothing
INSERT INTO signal (tenant_id, run_id, id, type, name, payload, sender, failed_child, ends, occurred_at, visible_at)
VALUES (?1, ?2, ?3, 'child', ?4, ?5, substr(?3, 7), ?6, ?7, holdfast_now(), holdfast_now());

-- piece: what_decides
-- Of a run and its workflow, what is needed to decide on it.
r.tenant_id, r.id, w.name, r.lane, r.priority, r.status, r.watched, r.pause_requested, r.wake_on_failure,
r.has_mail, r.attempt, r.version, r.revision, r.event_seq, r.wait_count, r.run_at, r.due_at,
r.timeout_at, r.started_at, r.paused_at, r.finished_at, r.deleted_at, r.delete_reason, r.parent, r.root,
r.key, r.leased_by, r.last_worker, r.waiting_kind, r.waiting_token, r.waiting_until, r.last_signal,
r.active_task, w.max_running IS NOT NULL, r.trace, r.unfit_since, r.unfit_pause, w.fit_within

-- name: lock_runs
-- Locks the runs that a flush touches and reads what is needed to decide. First of all statements: what follows sees
-- mailboxes as they are under the lock. One that is not given back is locked by somebody else, or does not exist.
-- Served by the primary key of run. Serves: commits, signals, operators' changes.
-- takes: rows (tenant int, id uuid)
-- gives: (tenant int, id uuid, workflow text, lane int, priority int, status int, watched int, pause_requested bool,
--   wake_on_failure bool, has_mail bool, attempt int, version bigint, revision bigint, event_seq bigint, wait_count
--   int, run_at bigint, due_at bigint, timeout_at bigint, started_at bigint, paused_at bigint, finished_at bigint,
--   deleted_at bigint, delete_reason text, parent uuid, root uuid, key text, leased_by text, last_worker text,
--   waiting_kind text, waiting_token text, waiting_until bigint, last_signal text, active_task uuid, limited bool,
--   trace text, unfit_since bigint, unfit_pause bigint, fit_within bigint)
SELECT
       -- include: what_decides
  FROM run r JOIN workflow w ON w.id = r.workflow_id
 WHERE r.tenant_id = ?1 AND r.id = ?2;

-- name: await_parents
-- Reads the parents of children whose ends this flush has written. Served by the primary key of run. Serves: commits that end
-- a child.
-- takes: rows (tenant int, id uuid)
-- gives: (tenant int, id uuid, workflow text, lane int, priority int, status int, watched int, pause_requested bool,
--   wake_on_failure bool, has_mail bool, attempt int, version bigint, revision bigint, event_seq bigint, wait_count
--   int, run_at bigint, due_at bigint, timeout_at bigint, started_at bigint, paused_at bigint, finished_at bigint,
--   deleted_at bigint, delete_reason text, parent uuid, root uuid, key text, leased_by text, last_worker text,
--   waiting_kind text, waiting_token text, waiting_until bigint, last_signal text, active_task uuid, limited bool,
--   trace text, unfit_since bigint, unfit_pause bigint, fit_within bigint)
SELECT
       -- include: what_decides
  FROM run r JOIN workflow w ON w.id = r.workflow_id
 WHERE r.tenant_id = ?1 AND r.id = ?2;

-- name: lock_parents
-- Locks the parents of runs that end in this flush, as lock_runs does. One parent may come back several times.
-- Serves: commits that end a child, cancel.
-- takes: rows (tenant int, id uuid)
-- gives: (tenant int, id uuid, workflow text, lane int, priority int, status int, watched int, pause_requested bool,
--   wake_on_failure bool, has_mail bool, attempt int, version bigint, revision bigint, event_seq bigint, wait_count
--   int, run_at bigint, due_at bigint, timeout_at bigint, started_at bigint, paused_at bigint, finished_at bigint,
--   deleted_at bigint, delete_reason text, parent uuid, root uuid, key text, leased_by text, last_worker text,
--   waiting_kind text, waiting_token text, waiting_until bigint, last_signal text, active_task uuid, limited bool,
--   trace text, unfit_since bigint, unfit_pause bigint, fit_within bigint)
SELECT
       -- include: what_decides
  FROM run c JOIN run r ON r.tenant_id = c.tenant_id AND r.id = c.parent JOIN workflow w ON w.id = r.workflow_id
 WHERE c.tenant_id = ?1 AND c.id = ?2;

-- name: peek_parents
-- Parents of runs that end, without a lock: one that lock_parents did not give is held by somebody else. Those that
-- failed or were cancelled count: they may be retried, and then want to know. `told`: a run that was retried has ended
-- before, and its parent has that end in its mailbox. Serves: commits that end a child, cancel.
-- takes: rows (tenant int, id uuid)
-- gives: (id uuid, parent uuid, told bool)
SELECT c.id, r.id,
       EXISTS (SELECT 1 FROM signal s WHERE s.run_id = r.id AND s.id = 'child:' || holdfast_uuid_text(c.id)
                  AND s.tenant_id = c.tenant_id)
  FROM run c JOIN run r ON r.tenant_id = c.tenant_id AND r.id = c.parent AND r.status <> 4
 WHERE c.tenant_id = ?1 AND c.id = ?2;

-- name: peek_runs
-- Where runs stand, without a lock: tells a refused holder why. Serves: commits, steps and heartbeats that were
-- refused.
-- takes: rows (tenant int, id uuid)
-- gives: (id uuid, status int, version bigint, tenant int)
SELECT id, status, version, tenant_id FROM run WHERE tenant_id = ?1 AND id = ?2;

-- name: find_committed
-- Commits that the journal holds from this holder, by the version they made: an answer that was lost. Served by the
-- primary key of event. Serves: commits and steps sent again.
-- takes: rows (tenant int, run uuid, version bigint, worker text, name text, kind int, step text, seq bigint)
-- gives: (run uuid, data text)
SELECT run_id, data FROM event
 WHERE run_id = ?2 AND tenant_id = ?1 AND version = ?3 AND actor = ?4 AND name = ?5 AND kind = ?6 AND step IS ?7
   AND (?8 IS NULL OR seq = ?8);

-- name: find_requests
-- Requests of a claim that were carried out before, and what was answered. Served by event_request. Serves: steps and commits
-- with the id of a request.
-- takes: rows (tenant int, run uuid, version bigint, request text)
-- gives: (run uuid, answer text)
SELECT run_id, answer FROM event WHERE run_id = ?2 AND version = ?3 AND request = ?4 AND tenant_id = ?1;

-- name: mailbox_summary
-- What a mailbox holds for a run that is about to wait: child ends, whether one failed or anything visible came
-- since the holder looked, and when the next becomes visible. Left out is what the same turn takes out of it: `done`
-- are ids, `timers` are keys, each a JSON array or null. Ends that share a row are looked at one by one. Served by
-- signal_mailbox. Serves: commits to waiting, resume.
-- takes: rows (tenant int, run uuid, seen_position bigint, seen_at bigint, done text, timers text)
-- gives: (run uuid, child_ends int, failed_child bool, unseen bool, next_visible bigint)
SELECT ?2,
       coalesce(sum(CASE WHEN s.type <> 'child' THEN 0
                         WHEN s.ends IS NULL THEN 1
                         WHEN ?5 IS NULL THEN s.ends
                         ELSE (SELECT count(*) FROM json_each(s.payload) e
                                WHERE 'child:' || substr(e.value, 9, 36) NOT IN (SELECT d.value FROM json_each(?5) d))
                    END), 0),
       coalesce(max(s.failed_child AND s.position > ?3), 0),
       coalesce(max(s.visible_at <= holdfast_now() AND s.type <> 'child'
                    AND NOT (s.position <= ?3 AND s.visible_at <= ?4)), 0),
       min(s.visible_at) FILTER (WHERE s.visible_at > holdfast_now())
  FROM signal s INDEXED BY signal_mailbox
 WHERE s.run_id = ?2 AND s.tenant_id = ?1 AND s.consumed_at IS NULL
   AND (s.ends IS NOT NULL OR s.id NOT IN (SELECT d.value FROM json_each(?5) d))
   AND (s.timer_key IS NULL OR s.timer_key NOT IN (SELECT k.value FROM json_each(?6) k));

-- name: update_runs
-- Writes the decided rows of locked runs. The bits of mask say which of the large columns change: 1 state, 2 result,
-- error and error_code, 4 current_step, 8 last_error. Served by the primary key of run. Serves: every change that goes the long way.
-- takes: rows (tenant int, id uuid, mask int, status int, watched int, pause_requested bool, wake_on_failure bool,
--   has_mail bool, has_steps bool, attempt int, version bigint, revision bigint, event_seq bigint, wait_count int,
--   run_at bigint, due_at bigint, timeout_at bigint, started_at bigint, paused_at bigint, finished_at bigint,
--   deleted_at bigint, delete_reason text, leased_by text, last_worker text, waiting_kind text, waiting_token text,
--   waiting_until bigint, last_signal text, active_task uuid, state text, current_step text, result text, error text,
--   error_code text, last_error text, unfit_since bigint, unfit_pause bigint)
-- gives: nothing
UPDATE run
   SET status = ?4, watched = ?5, pause_requested = ?6, wake_on_failure = ?7, has_mail = ?8, attempt = ?10, version =
       ?11, revision = ?12, event_seq = ?13, wait_count = ?14, run_at = ?15, due_at = ?16, timeout_at = ?17,
       started_at = ?18, paused_at = ?19, finished_at = ?20, deleted_at = ?21, delete_reason = ?22, leased_by =
       ?23, last_worker = ?24, waiting_kind = ?25, waiting_token = ?26, waiting_until = ?27, last_signal = ?28,
       active_task = ?29, unfit_since = ?36, unfit_pause = ?37,
       has_steps = max(has_steps, ?9),
       state = CASE WHEN ?3 & 1 THEN ?30 ELSE state END,
       current_step = CASE WHEN ?3 & 4 THEN ?31 ELSE current_step END,
       result = CASE WHEN ?3 & 2 THEN ?32 ELSE result END,
       error = CASE WHEN ?3 & 2 THEN ?33 ELSE error END,
       error_code = CASE WHEN ?3 & 2 THEN ?34 ELSE error_code END,
       last_error = CASE WHEN ?3 & 8 THEN ?35 ELSE last_error END,
       updated_at = holdfast_now()
 WHERE tenant_id = ?1 AND id = ?2;

-- name: insert_events
-- Journal lines of locked runs. Serves: every change that goes the long way.
-- takes: rows (tenant int, run uuid, seq bigint, version bigint, kind int, name text, actor text, step text, data
--   text, request text, answer text)
-- gives: nothing
INSERT INTO event (tenant_id, run_id, seq, version, at, kind, name, actor, step, data, request, answer)
VALUES (?1, ?2, ?3, ?4, holdfast_now(), ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: insert_first_events
-- Journal lines of a run that is being created with its first transition; left out if the run was refused. Steps among
-- them are noted at the run, so that its claims load them. Serves: trigger with an initial transition, fork.
-- takes: rows (tenant int, run uuid, seq bigint, kind int, name text, actor text, step text, data text)
-- gives: nothing
INSERT INTO event (tenant_id, run_id, seq, version, at, kind, name, actor, step, data)
SELECT ?1, ?2, ?3, 1, holdfast_now(), ?4, ?5, ?6, ?7, ?8
 WHERE EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?2)
   AND NOT EXISTS (SELECT 1 FROM event WHERE run_id = ?2 AND seq = ?3);
UPDATE run SET has_steps = 1 WHERE ?4 = 2 AND tenant_id = ?1 AND id = ?2 AND NOT has_steps;

-- name: save_steps
-- Records finished steps, fenced by the claim's version. One that is not given back was refused, or was recorded by the same
-- request before. Served by the primary key of run, and by event_request. Serves: steps.
-- takes: rows (tenant int, id uuid, version bigint, worker text, step text, name text, data text, request text)
-- gives: (id uuid, watched int)
UPDATE run SET event_seq = event_seq + 1, has_steps = 1, current_step = ?5, unfit_since = NULL, updated_at = holdfast_now()
 WHERE tenant_id = ?1 AND id = ?2 AND version = ?3 AND status = 1
   AND (?8 IS NULL OR NOT EXISTS (SELECT 1 FROM event e
                                   WHERE e.run_id = ?2 AND e.version = ?3 AND e.request = ?8));
INSERT OR IGNORE INTO event (run_id, seq, version, tenant_id, at, kind, name, actor, step, data, request)
VALUES (CASE WHEN changes() = 1 THEN ?2 END, (SELECT event_seq FROM run WHERE tenant_id = ?1 AND id = ?2), ?3, ?1,
        holdfast_now(), 2, ?6, ?4, ?5, ?7, ?8);
SELECT id, watched FROM run WHERE changes() = 1 AND tenant_id = ?1 AND id = ?2;

-- name: extend_leases
-- Prolongs the leases this worker still holds, never past a run's deadline; those not given back are lost or
-- cancelled. Served by the primary key of run. Serves: worker heartbeat.
-- takes: rows (tenant int, id uuid, version bigint, lease bigint)
-- gives: (id uuid, version bigint, tenant int)
UPDATE run SET run_at = coalesce(min(holdfast_now() + ?4, timeout_at), holdfast_now() + ?4)
 WHERE tenant_id = ?1 AND id = ?2 AND version = ?3 AND status = 1
RETURNING id, version, tenant_id;

-- name: unfinished_children
-- Whether a run has children that must be cancelled with it. Served by run_parent. Serves: cancel.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid)
SELECT ?2 WHERE EXISTS (SELECT 1 FROM run c WHERE c.tenant_id = ?1 AND c.parent = ?2 AND c.parent IS NOT NULL AND c.status <= 3);

-- name: what_follows
-- What the end of a run brings along: how many of its children are at work (10,000 at most), what the workflow wants done
-- with them, and what it wants started. Runs that started children under a program of the version before are not known to
-- have any. Served by the primary keys of run and workflow, and by run_parent. Serves: commits that end a run, cancel.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid, children bigint, policy text, on_cancel text, dead_letter text)
SELECT r.id,
       CASE WHEN r.has_children THEN (
            SELECT count(*) FROM (
                SELECT 1 FROM run c
                 WHERE c.tenant_id = ?1 AND c.parent = ?2 AND c.parent IS NOT NULL AND c.status <= 3
                   AND c.deleted_at IS NULL
                 LIMIT 10000)) END, w.children, w.on_cancel, w.dead_letter
  FROM run r JOIN workflow w ON w.id = r.workflow_id
 WHERE r.tenant_id = ?1 AND r.id = ?2;

-- name: mark_parents
-- Runs that have started children: their ends are looked at. Served by the primary key of run. Serves: commits that start
-- children, triggers with an initial transition.
-- takes: rows (tenant int, run uuid)
-- gives: nothing
UPDATE run SET has_children = 1 WHERE tenant_id = ?1 AND id = ?2 AND has_children IS NULL;

-- piece: step_told
-- The journal line `e` of a step as those are told of it who learn how its run ended.
'{"name":' || json_quote(e.step) || ',"status":' || json_quote(e.name)
    || ',"output":' || coalesce(e.data -> '$.output', 'null') || '}'

-- piece: steps_done
-- The journal lines of the steps that the run `x` (tenant, run) has done, but for waits and the like.
FROM event e
WHERE e.run_id = x.run AND e.tenant_id = x.tenant AND e.kind = 2 AND e.name = 'succeeded'
  AND coalesce(e.data ->> '$.op', 'step') = 'step'

-- piece: run_told
-- Members of a JSON object that tell what the run `x` was and which steps it has done. With its input they take about x.room
-- bytes at most: of the steps the first that fit are told, and steps_cut says that there are more.
(SELECT '"workflow":' || json_quote(w.name) || ',"key":' || json_quote(r.key) || ',"subject":' || json_quote(r.subject)
        || ',"input":' || coalesce(r.input, 'null') || ',"steps":['
        || coalesce((SELECT group_concat(f.step, ',')
                       FROM (SELECT d.step, sum(length(CAST(d.step AS BLOB)) + 1) OVER (ORDER BY d.seq) AS so_far
                               FROM (SELECT e.seq,
                                            -- include: step_told
                                            AS step
                                     -- include: steps_done
                                    ) d
                              ORDER BY d.seq) f
                      WHERE f.so_far <= x.room - coalesce(length(CAST(r.input AS BLOB)), 0)), '')
        || ']'
        || CASE WHEN (SELECT sum(length(CAST(
                                 -- include: step_told
                                 AS BLOB)) + 1)
                      -- include: steps_done
                     ) > x.room - coalesce(length(CAST(r.input AS BLOB)), 0)
                THEN ',"steps_cut":true' ELSE '' END
   FROM run r JOIN workflow w ON w.id = r.workflow_id
  WHERE r.tenant_id = x.tenant AND r.id = x.run)

-- name: tell_starts
-- Adds to the input of runs that were started because another one ended what that run was and did. What is there already is
-- an object with a member at least. After insert_runs and insert_events. Served by the primary keys of run and event.
-- Serves: dead letters, cancel.
-- takes: rows (tenant int, id uuid, told uuid, room bigint)
-- gives: nothing
UPDATE run SET input = substr(input, 1, length(input) - 1) || ',' || (
       SELECT
              -- include: run_told
         FROM (SELECT ?1 AS tenant, ?3 AS run, ?4 AS room) x) || '}'
 WHERE tenant_id = ?1 AND id = ?2;

-- name: watch_run
-- Marks an unfinished run so that its end (1) or every event (2) is told. Served by the primary key of run. Serves:
-- wait, follow.
-- takes: one (tenant int, id uuid, level int)
-- gives: (locked bool)
UPDATE run SET watched = max(watched, ?3)
 WHERE tenant_id = ?1 AND id = ?2 AND status <= 3 AND watched < ?3
RETURNING 0;
