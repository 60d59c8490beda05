-- name: finish_runs
-- The short way for a holder's commit that ends a run without a parent: checks the fence, writes the end and its
-- journal line at once. One that is not given back, as one that has asked people or started children, goes the long way
-- through lock_runs.
-- Arrays are sorted by (tenant, id). The time is not joined, which would look it up again for each row. Served by the
-- primary key of run. Serves: commit.
-- takes: rows (tenant int, id uuid, version bigint, status int, name text, worker text, state text, result text,
--   error text, error_code text, last_error text)
-- gives: (id uuid, watched int)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
ok AS (
    UPDATE holdfast.run r
       SET status = f.status, version = r.version + 1, revision = r.revision + 1, event_seq = r.event_seq + 1,
           run_at = NULL, leased_by = NULL, last_worker = f.worker, pause_requested = false, wait_count = 0,
           waiting_kind = NULL, waiting_token = NULL, waiting_until = NULL,
           state = coalesce(f.state, r.state), result = f.result, error = f.error, error_code = f.error_code,
           last_error = f.last_error, finished_at = (SELECT t.now FROM t),
           updated_at = (SELECT t.now FROM t), rest_step = r.current_step
      FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[],
                  $9::text[], $10::text[], $11::text[])
           AS f(tenant, id, version, status, name, worker, state, result, error, error_code, last_error)
     WHERE r.tenant_id = ANY (ARRAY[f.tenant]) AND r.id = f.id AND r.version = f.version
       AND r.status = 1 AND r.parent IS NULL AND r.active_task IS NULL AND r.has_children IS NOT TRUE
    RETURNING r.id, r.tenant_id, r.event_seq, r.version, r.watched, r.updated_at, r.status, r.attempt, r.last_error,
              f.name, f.worker
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor, data)
    SELECT o.id, o.event_seq, o.version, o.tenant_id, o.updated_at, 0, o.name, o.worker,
           CASE WHEN o.status = 5 THEN json_build_object('attempt', o.attempt, 'error', o.last_error)::text END
      FROM ok o
)
SELECT o.id, o.watched::int FROM ok o;

-- name: finish_children
-- The short way for a holder's commit that ends a child: checks the fence, writes the end and its journal line at once. The
-- parent is locked before it, or after it by await_parents; its mail follows under that lock, by insert_ends. `older`: a child
-- whose third journal line is its end was created and started, and has told nothing before; one with more lines may have. An end
-- that is not given back goes the long way. Arrays are sorted by (tenant, id). The parent is compared in a form that no index
-- answers: it has ten thousand children. The time is not joined, as in finish_runs. Served by the primary key of run. Serves:
-- commit.
-- takes: rows (tenant int, id uuid, version bigint, status int, name text, worker text, state text, result text,
--   error text, error_code text, last_error text, parent uuid)
-- gives: (id uuid, watched int, older bool)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
ok AS (
    UPDATE holdfast.run r
       SET status = f.status, version = r.version + 1, revision = r.revision + 1, event_seq = r.event_seq + 1,
           run_at = NULL, leased_by = NULL, last_worker = f.worker, pause_requested = false, wait_count = 0,
           waiting_kind = NULL, waiting_token = NULL, waiting_until = NULL,
           state = coalesce(f.state, r.state), result = f.result, error = f.error, error_code = f.error_code,
           last_error = f.last_error, finished_at = (SELECT t.now FROM t), updated_at = (SELECT t.now FROM t),
           rest_step = r.current_step
      FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[],
                  $9::text[], $10::text[], $11::text[], $12::uuid[])
           AS f(tenant, id, version, status, name, worker, state, result, error, error_code, last_error, parent)
     WHERE r.tenant_id = ANY (ARRAY[f.tenant]) AND r.id = f.id AND r.version = f.version
       AND r.status = 1 AND coalesce(r.parent, r.id) = f.parent AND r.active_task IS NULL
       AND r.has_children IS NOT TRUE
    RETURNING r.id, r.tenant_id, r.event_seq, r.version, r.watched, r.updated_at, r.status, r.attempt, r.last_error,
              f.name, f.worker
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor, data)
    SELECT o.id, o.event_seq, o.version, o.tenant_id, o.updated_at, 0, o.name, o.worker,
           CASE WHEN o.status = 5 THEN json_build_object('attempt', o.attempt, 'error', o.last_error)::text END
      FROM ok o
)
SELECT o.id, o.watched::int, o.event_seq > 3 FROM ok o;

-- name: insert_ends
-- The ends of children as mail for their parents, which are locked, so that positions rise as they become visible: who takes
-- mail out by its position takes none that it has not seen. None of it is there yet. Several that succeeded may share a row:
-- then payload is an array, and `ends` their number. Serves: commits that end a child, after finish_children.
-- takes: rows (tenant int, parent uuid, id text, name text, payload text, failed bool, ends int)
-- gives: nothing
INSERT INTO holdfast.signal (tenant_id, run_id, id, type, name, payload, sender, failed_child, ends, occurred_at, visible_at)
SELECT n.tenant, n.parent, n.id, 'child', n.name, n.payload, substr(n.id, 7), n.failed, n.ends, t.now, t.now
  FROM (SELECT holdfast.now() AS now OFFSET 0) t,
       unnest($1::int[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bool[], $7::int[])
       AS n(tenant, parent, id, name, payload, failed, ends);

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
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, id)
  JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[n.tenant]) AND r.id = n.id
  JOIN holdfast.workflow w ON w.id = r.workflow_id
   FOR NO KEY UPDATE OF r SKIP LOCKED;

-- name: await_parents
-- Locks the parents of children whose ends this flush has written, and waits for those who have one locked: they are about to
-- commit, if they are flushes like this one. Last of all locks, so that who waits holds nobody up but for a moment. Arrays are
-- sorted by (tenant, id) backwards: a run that has ended in this flush and is a parent itself is younger than its own. Served by
-- the primary key of run. Serves: commits that end a child.
-- takes: rows (tenant int, id uuid)
-- gives: (tenant int, id uuid, workflow text, lane int, priority int, status int, watched int, pause_requested bool,
--   wake_on_failure bool, has_mail bool, attempt int, version bigint, revision bigint, event_seq bigint, wait_count
--   int, run_at bigint, due_at bigint, timeout_at bigint, started_at bigint, paused_at bigint, finished_at bigint,
--   deleted_at bigint, delete_reason text, parent uuid, root uuid, key text, leased_by text, last_worker text,
--   waiting_kind text, waiting_token text, waiting_until bigint, last_signal text, active_task uuid, limited bool,
--   trace text, unfit_since bigint, unfit_pause bigint, fit_within bigint)
SELECT
       -- include: what_decides
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, id)
  JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[n.tenant]) AND r.id = n.id
  JOIN holdfast.workflow w ON w.id = r.workflow_id
   FOR NO KEY UPDATE OF r;

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
  FROM (SELECT n.tenant, n.id,
               (SELECT o.parent FROM holdfast.run o WHERE o.tenant_id = n.tenant AND o.id = n.id) AS parent
          FROM unnest($1::int[], $2::uuid[]) AS n(tenant, id) OFFSET 0) c
  JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[c.tenant]) AND r.id = c.parent
  JOIN holdfast.workflow w ON w.id = r.workflow_id
   FOR NO KEY UPDATE OF r SKIP LOCKED;

-- name: peek_parents
-- Parents of runs that end, without a lock: one that lock_parents did not give is held by somebody else. Those that
-- failed or were cancelled count: they may be retried, and then want to know. `told`: a run that was retried has
-- ended before, and its parent has that end in its mailbox. Serves: commits that end a child, cancel.
-- takes: rows (tenant int, id uuid)
-- gives: (id uuid, parent uuid, told bool)
SELECT c.id, r.id,
       EXISTS (SELECT 1 FROM holdfast.signal s
                WHERE s.run_id = r.id AND s.id = 'child:' || c.id::text AND s.tenant_id = c.tenant OFFSET 0)
  FROM (SELECT n.tenant, n.id,
               (SELECT o.parent FROM holdfast.run o WHERE o.tenant_id = n.tenant AND o.id = n.id) AS parent
          FROM unnest($1::int[], $2::uuid[]) AS n(tenant, id) OFFSET 0) c
  JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[c.tenant]) AND r.id = c.parent AND r.status <> 4;

-- name: peek_runs
-- Where runs stand, without a lock: tells a refused holder why. Serves: commits, steps and heartbeats that were
-- refused.
-- takes: rows (tenant int, id uuid)
-- gives: (id uuid, status int, version bigint, tenant int)
SELECT r.id, r.status, r.version, r.tenant_id FROM unnest($1::int[], $2::uuid[]) AS n(tenant, id)
  JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[n.tenant]) AND r.id = n.id;

-- name: find_committed
-- Commits that the journal holds from this holder, by the version they made: an answer that was lost. Served by the
-- primary key of event. Serves: commits and steps sent again.
-- takes: rows (tenant int, run uuid, version bigint, worker text, name text, kind int, step text, seq bigint)
-- gives: (run uuid, data text)
SELECT e.run_id, e.data
  FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::int[], $7::text[], $8::bigint[])
       AS n(tenant, run, version, worker, name, kind, step, seq)
  JOIN holdfast.event e ON e.run_id = ANY (ARRAY[n.run]) AND e.tenant_id = n.tenant AND e.version = n.version
   AND e.actor = n.worker AND e.name = n.name AND e.kind = n.kind AND e.step IS NOT DISTINCT FROM n.step
   AND (n.seq IS NULL OR e.seq = n.seq);

-- name: find_requests
-- Requests of a claim that were carried out before, and what was answered. Served by event_request. Serves: steps and commits
-- with the id of a request.
-- takes: rows (tenant int, run uuid, version bigint, request text)
-- gives: (run uuid, answer text)
SELECT n.run, f.answer
  FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::text[]) AS n(tenant, run, version, request)
 CROSS JOIN LATERAL (SELECT e.answer FROM holdfast.event e
                      WHERE e.run_id = n.run AND e.version = n.version AND e.request = n.request
                        AND e.tenant_id = n.tenant OFFSET 0) f;

-- piece: done_mail
-- What the turns are done with.
SELECT o.run, d.id FROM unnest($2::uuid[], $5::text[]) AS o(run, done), json_array_elements_text(o.done::json) AS d(id)

-- name: mailbox_summary
-- What a mailbox holds for a run that is about to wait: child ends, whether one failed or anything visible came
-- since the holder looked, and when the next becomes visible. Left out is what the same turn takes out of it:
-- `done` are ids, `timers` are keys, each a JSON array or null. What is done comes from a subquery that does not depend
-- on the row, so that it is hashed: a parent may be done with a hundred thousand ends. Those that share a row are looked at one
-- by one. Served by signal_mailbox. Serves: commits to waiting, resume.
-- takes: rows (tenant int, run uuid, seen_position bigint, seen_at bigint, done text, timers text)
-- gives: (run uuid, child_ends int, failed_child bool, unseen bool, next_visible bigint)
SELECT n.run, m.child_ends, m.failed_child, m.unseen, m.next_visible
  FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
       AS n(tenant, run, seen_position, seen_at, done, timers)
 CROSS JOIN LATERAL (
    SELECT coalesce(sum(CASE WHEN s.type <> 'child' THEN 0
                             WHEN s.ends IS NULL THEN 1
                             WHEN n.done IS NULL THEN s.ends
                             ELSE (SELECT count(*) FROM json_array_elements(s.payload::json) AS e(payload)
                                    WHERE (s.run_id, 'child:' || substr(e.payload::text, 9, 36)) NOT IN (
                                              -- include: done_mail
                                          )) END), 0)::int AS child_ends,
           coalesce(bool_or(s.failed_child AND s.position > n.seen_position), false) AS failed_child,
           coalesce(bool_or(s.visible_at <= holdfast.now() AND s.type <> 'child'
                            AND NOT (s.position <= n.seen_position AND s.visible_at <= n.seen_at)), false) AS unseen,
           min(s.visible_at) FILTER (WHERE s.visible_at > holdfast.now()) AS next_visible
      FROM holdfast.signal s
     WHERE s.run_id = n.run AND s.tenant_id = n.tenant AND s.consumed_at IS NULL
       AND (s.ends IS NOT NULL OR (s.run_id, s.id) NOT IN (
               -- include: done_mail
           ))
       AND (s.timer_key IS NULL
            OR s.timer_key <> ALL (ARRAY(SELECT json_array_elements_text(n.timers::json))))) m;

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
UPDATE holdfast.run r
   SET status = u.status, watched = u.watched, pause_requested = u.pause_requested, wake_on_failure =
       u.wake_on_failure, has_mail = u.has_mail, attempt = u.attempt, version = u.version, revision =
       u.revision, event_seq = u.event_seq, wait_count = u.wait_count, run_at = u.run_at, due_at = u.due_at,
       timeout_at = u.timeout_at, started_at = u.started_at, paused_at = u.paused_at, finished_at =
       u.finished_at, deleted_at = u.deleted_at, delete_reason = u.delete_reason, leased_by = u.leased_by,
       last_worker = u.last_worker, waiting_kind = u.waiting_kind, waiting_token = u.waiting_token,
       waiting_until = u.waiting_until, last_signal = u.last_signal, active_task = u.active_task,
       unfit_since = u.unfit_since, unfit_pause = u.unfit_pause,
       has_steps = r.has_steps OR u.has_steps,
       state = CASE WHEN u.mask & 1 <> 0 THEN u.state ELSE r.state END,
       current_step = CASE WHEN u.mask & 4 <> 0 THEN u.current_step ELSE r.current_step END,
       rest_step = CASE WHEN u.status = 1 THEN r.rest_step
                        WHEN u.mask & 4 <> 0 THEN u.current_step ELSE r.current_step END,
       result = CASE WHEN u.mask & 2 <> 0 THEN u.result ELSE r.result END,
       error = CASE WHEN u.mask & 2 <> 0 THEN u.error ELSE r.error END,
       error_code = CASE WHEN u.mask & 2 <> 0 THEN u.error_code ELSE r.error_code END,
       last_error = CASE WHEN u.mask & 8 <> 0 THEN u.last_error ELSE r.last_error END,
       updated_at = holdfast.now()
  FROM unnest($1::int[], $2::uuid[], $3::int[], $4::int[], $5::int[], $6::bool[], $7::bool[], $8::bool[], $9::bool[],
              $10::int[], $11::bigint[], $12::bigint[], $13::bigint[], $14::int[], $15::bigint[], $16::bigint[],
              $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::text[],
              $23::text[], $24::text[], $25::text[], $26::text[], $27::bigint[], $28::text[], $29::uuid[],
              $30::text[], $31::text[], $32::text[], $33::text[], $34::text[], $35::text[], $36::bigint[], $37::bigint[])
       AS u(tenant, id, mask, status, watched, pause_requested, wake_on_failure, has_mail, has_steps, attempt, version,
            revision, event_seq, wait_count, run_at, due_at, timeout_at, started_at, paused_at, finished_at,
            deleted_at, delete_reason, leased_by, last_worker, waiting_kind, waiting_token, waiting_until,
            last_signal, active_task, state, current_step, result, error, error_code, last_error, unfit_since,
            unfit_pause)
 WHERE r.tenant_id = ANY (ARRAY[u.tenant]) AND r.id = u.id;

-- name: insert_events
-- Journal lines of locked runs. Serves: every change that goes the long way.
-- takes: rows (tenant int, run uuid, seq bigint, version bigint, kind int, name text, actor text, step text, data
--   text, request text, answer text)
-- gives: nothing
INSERT INTO holdfast.event (tenant_id, run_id, seq, version, at, kind, name, actor, step, data, request, answer)
SELECT n.tenant, n.run, n.seq, n.version, holdfast.now(), n.kind, n.name, n.actor, n.step, n.data, n.request, n.answer
  FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::bigint[], $5::int[], $6::text[], $7::text[], $8::text[],
              $9::text[], $10::text[], $11::text[])
       AS n(tenant, run, seq, version, kind, name, actor, step, data, request, answer);

-- name: insert_first_events
-- Journal lines of a run that is being created with its first transition; left out if the run was refused. Steps among
-- them are noted at the run, so that its claims load them. Serves: trigger with an initial transition, fork.
-- takes: rows (tenant int, run uuid, seq bigint, kind int, name text, actor text, step text, data text)
-- gives: nothing
WITH noted AS (
    UPDATE holdfast.run r SET has_steps = true
      FROM (SELECT DISTINCT s.tenant, s.run FROM unnest($1::int[], $2::uuid[], $4::int[]) AS s(tenant, run, kind)
             WHERE s.kind = 2) f
     WHERE r.tenant_id = f.tenant AND r.id = f.run AND NOT r.has_steps
)
INSERT INTO holdfast.event (tenant_id, run_id, seq, version, at, kind, name, actor, step, data)
SELECT n.tenant, n.run, n.seq, 1, holdfast.now(), n.kind, n.name, n.actor, n.step, n.data
  FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[])
       AS n(tenant, run, seq, kind, name, actor, step, data)
 WHERE EXISTS (SELECT 1 FROM holdfast.run r WHERE r.tenant_id = n.tenant AND r.id = n.run OFFSET 0)
ON CONFLICT (run_id, seq) DO NOTHING;

-- name: save_steps
-- Records finished steps, fenced by the claim's version. One that is not given back was refused, or was recorded by the same
-- request before. The same request in another session at this moment is not seen: then event_request refuses the line, and the
-- flush is tried again. No column of an index of run is changed: rest_step follows when the holder lets go, and
-- run_unfit has nothing that is held. Served by the primary key of run, and by event_request. Serves: steps.
-- takes: rows (tenant int, id uuid, version bigint, worker text, step text, name text, data text, request text)
-- gives: (id uuid, watched int)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
ok AS (
    UPDATE holdfast.run r
       SET event_seq = r.event_seq + 1, has_steps = true, current_step = s.step, unfit_since = NULL, updated_at = t.now
      FROM t, unnest($1::int[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
           AS s(tenant, id, version, worker, step, name, data, request)
     WHERE r.tenant_id = ANY (ARRAY[s.tenant]) AND r.id = s.id AND r.version = s.version AND r.status = 1
       AND (s.request IS NULL OR NOT EXISTS (SELECT 1 FROM holdfast.event e
                                              WHERE e.run_id = s.id AND e.version = s.version AND e.request = s.request OFFSET 0))
    RETURNING r.id, r.tenant_id, r.event_seq, r.version, r.watched, r.updated_at, s.worker, s.step, s.name, s.data,
              s.request
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor, step, data, request)
    SELECT o.id, o.event_seq, o.version, o.tenant_id, o.updated_at, 2, o.name, o.worker, o.step, o.data, o.request
      FROM ok o
)
SELECT o.id, o.watched::int FROM ok o;

-- name: extend_leases
-- Prolongs the leases this worker still holds, never past a run's deadline; those not given back are lost or
-- cancelled. A run that somebody else has locked, such as a caller of SQL functions who takes long to commit, is
-- given back without being prolonged, so that it does not cost its holder all other leases; nobody can claim it
-- meanwhile. Served by the primary key of run. Serves: worker heartbeat.
-- takes: rows (tenant int, id uuid, version bigint, lease bigint)
-- gives: (id uuid, version bigint, tenant int)
WITH h AS MATERIALIZED (
    SELECT n.tenant, n.id, n.version, n.lease
      FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::bigint[]) AS n(tenant, id, version, lease)
), held AS MATERIALIZED (
    SELECT r.tenant_id, r.id, h.lease
      FROM h JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[h.tenant]) AND r.id = h.id AND r.version = h.version
       AND r.status = 1
       FOR NO KEY UPDATE OF r SKIP LOCKED
), prolonged AS (
    UPDATE holdfast.run r SET run_at = least(holdfast.now() + d.lease, r.timeout_at)
      FROM held d WHERE r.tenant_id = ANY (ARRAY[d.tenant_id]) AND r.id = d.id
)
SELECT r.id, r.version, r.tenant_id
  FROM h JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[h.tenant]) AND r.id = h.id AND r.version = h.version
   AND r.status = 1;

-- name: unfinished_children
-- Whether a run has children that must be cancelled with it. Served by run_parent. Serves: cancel.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid)
SELECT n.run FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run)
 WHERE EXISTS (SELECT 1 FROM holdfast.run c
                WHERE c.tenant_id = n.tenant AND c.parent = n.run AND c.parent IS NOT NULL AND c.status <= 3
               OFFSET 0);

-- name: what_follows
-- What the end of a run brings along: how many of its children are at work (10,000 at most), what the workflow wants done
-- with them, and what it wants started. Runs that started children under a program of the version before are not known to
-- have any. Served by the primary keys of run and workflow, and by run_parent. Serves: commits that end a run, cancel.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid, children bigint, policy text, on_cancel text, dead_letter text)
SELECT r.id,
       CASE WHEN r.has_children THEN (
            SELECT count(*) FROM (
                SELECT 1 FROM holdfast.run c
                 WHERE c.tenant_id = n.tenant AND c.parent = n.run AND c.parent IS NOT NULL AND c.status <= 3
                   AND c.deleted_at IS NULL
                 LIMIT 10000) x) END, w.children, w.on_cancel, w.dead_letter
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run)
  JOIN holdfast.run r ON r.tenant_id = ANY (ARRAY[n.tenant]) AND r.id = n.run
  JOIN holdfast.workflow w ON w.id = r.workflow_id;

-- name: mark_parents
-- Runs that have started children: their ends are looked at. Served by the primary key of run. Serves: commits that start
-- children, triggers with an initial transition.
-- takes: rows (tenant int, run uuid)
-- gives: nothing
UPDATE holdfast.run r SET has_children = true
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run)
 WHERE r.tenant_id = ANY (ARRAY[n.tenant]) AND r.id = n.run AND r.has_children IS NOT TRUE;

-- name: tell_starts
-- Adds to the input of runs that were started because another one ended what that run was and did. What is there already is
-- an object with a member at least. After insert_runs and insert_events. Served by the primary keys of run and event.
-- Serves: dead letters, cancel.
-- takes: rows (tenant int, id uuid, told uuid, room bigint)
-- gives: nothing
UPDATE holdfast.run r SET input = left(r.input, -1) || ',' || holdfast.run_told(n.tenant, n.told, n.room) || '}'
  FROM unnest($1::int[], $2::uuid[], $3::uuid[], $4::bigint[]) AS n(tenant, id, told, room)
 WHERE r.tenant_id = ANY (ARRAY[n.tenant]) AND r.id = n.id;

-- name: watch_run
-- Marks an unfinished run so that its end (1) or every event (2) is told. Where somebody else holds the row it is not
-- waited for, and that is given back: those who wait would hold a connection each. Served by the primary key of run.
-- Serves: wait, follow.
-- takes: one (tenant int, id uuid, level int)
-- gives: (locked bool)
WITH wanted AS MATERIALIZED (
    SELECT x.id FROM holdfast.run x WHERE x.tenant_id = $1 AND x.id = $2 AND x.status <= 3 AND x.watched < $3),
marked AS (
    UPDATE holdfast.run r SET watched = greatest(r.watched, $3)::smallint
      FROM (SELECT x.tenant_id, x.id FROM holdfast.run x
             WHERE x.tenant_id = $1 AND x.id = $2 AND x.status <= 3 AND x.watched < $3
               FOR NO KEY UPDATE SKIP LOCKED) h
     WHERE r.tenant_id = h.tenant_id AND r.id = h.id
    RETURNING r.id)
SELECT true FROM wanted WHERE NOT EXISTS (SELECT 1 FROM marked);
