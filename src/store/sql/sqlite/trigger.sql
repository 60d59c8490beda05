-- name: insert_runs
-- New runs with their first journal line. One that is not given back was refused: explain_refused tells why. A
-- disabled tenant gets new runs only for what runs already (always).
-- Conflicts with the key or the id do nothing, so sending a batch again does no harm. Served by the unique indexes of
-- workflow, lane and run. A lane that is gone is null, which a required column ignores; so is the id of a journal line
-- whose run was not inserted. Serves: trigger, children, starts.
-- takes: rows (tenant int, id uuid, workflow text, key text, status int, priority int, run_at bigint, delay bigint,
--   timeout_at bigint, timeout bigint, max_attempts int, input text, state text, subject text, reference text,
--   tags text, partition text, trace text, actor text, parent uuid, root uuid, waiting_kind text, waiting_token text,
--   waiting_until bigint, wait_count int, has_mail bool, events int, no_wake bool, always bool, wake_on_failure bool,
--   flow_key text)
-- gives: (id uuid, lane int, run_at bigint, now bigint)
INSERT OR IGNORE INTO run (tenant_id, id, workflow_id, lane, key, status, priority, run_at, timeout_at,
    max_attempts, input, state, subject, reference, tags, partition, trace, actor, parent, root, waiting_kind,
    waiting_token, waiting_until, wait_count, has_mail, event_seq, created_at, updated_at, definition_hash,
    wake_on_failure, in_time)
SELECT ?1, ?2, w.id,
       CASE WHEN ?31 IS NULL THEN w.lane
            ELSE (SELECT l.id FROM lane l WHERE l.workflow_id = w.id AND coalesce(l.flow_key, '') = ?31) END, ?4, ?5, ?6,
       nullif(min(
           CASE WHEN ?28 THEN coalesce(?7, 9223372036854775807) ELSE coalesce(?7, holdfast_now() + ?8) END,
           coalesce(?9, holdfast_now() + ?10, holdfast_now() + w.timeout, 9223372036854775807)), 9223372036854775807),
       coalesce(?9, holdfast_now() + ?10, holdfast_now() + w.timeout), ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
       ?21, ?22, ?23, ?24, ?25, ?26, 1 + ?27, holdfast_now(), holdfast_now(), w.definition_hash, ?30,
       holdfast_in_time(?2)
  FROM workflow w
 WHERE w.tenant_id = ?1 AND w.name = ?3 AND (?29 OR NOT EXISTS (SELECT 1 FROM tenant t WHERE t.id = ?1 AND t.disabled));
INSERT OR IGNORE INTO event (run_id, seq, version, tenant_id, at, kind, name, actor)
VALUES (CASE WHEN changes() = 1 THEN ?2 END, 1, 1, ?1, holdfast_now(), 0, 'created', ?19);
SELECT id, lane, run_at, created_at FROM run WHERE changes() = 1 AND tenant_id = ?1 AND id = ?2;

-- name: insert_plain_runs
-- As insert_runs, for runs that begin as others do: pending, new, without a key, a parent or a first transition. All rows by
-- one execution, which takes half the time: it opens each index once. What it inserted are the last of the table. Served by
-- the unique indexes of workflow and lane. Serves: trigger.
-- takes: rows (tenant int, id uuid, workflow text, priority int, run_at bigint, delay bigint, timeout_at bigint,
--   timeout bigint, max_attempts int, input text, subject text, reference text, tags text, partition text, trace text,
--   actor text, flow_key text)
-- gives: (id uuid, lane int, run_at bigint, now bigint)
WITH n (tenant, id, workflow, priority, run_at, delay, timeout_at, timeout, max_attempts, input, subject, reference, tags,
        partition, trace, actor, flow_key) AS (
    SELECT c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17 FROM holdfast_rows)
INSERT OR IGNORE INTO run (tenant_id, id, workflow_id, lane, priority, run_at, timeout_at, max_attempts, input, subject,
    reference, tags, partition, trace, actor, event_seq, created_at, updated_at, definition_hash, in_time)
SELECT n.tenant, n.id, w.id,
       CASE WHEN n.flow_key IS NULL THEN w.lane
            ELSE (SELECT l.id FROM lane l WHERE l.workflow_id = w.id AND coalesce(l.flow_key, '') = n.flow_key) END,
       n.priority,
       min(coalesce(n.run_at, holdfast_now() + n.delay),
           coalesce(n.timeout_at, holdfast_now() + n.timeout, holdfast_now() + w.timeout, 9223372036854775807)),
       coalesce(n.timeout_at, holdfast_now() + n.timeout, holdfast_now() + w.timeout), n.max_attempts, n.input, n.subject,
       n.reference, n.tags, n.partition, n.trace, n.actor, 1, holdfast_now(), holdfast_now(), w.definition_hash,
       holdfast_in_time(n.id)
  FROM n
 CROSS JOIN tenant t ON t.id = n.tenant AND NOT t.disabled
 CROSS JOIN workflow w ON w.tenant_id = n.tenant AND w.name = n.workflow;
SELECT r.id, r.lane, r.run_at, r.created_at FROM run r WHERE changes() > 0 AND r.rowid > last_insert_rowid() - changes();
INSERT OR IGNORE INTO event (run_id, seq, version, tenant_id, at, kind, name, actor)
SELECT r.id, 1, 1, r.tenant_id, r.created_at, 0, 'created', r.actor
  FROM run r WHERE changes() > 0 AND r.rowid > last_insert_rowid() - changes();

-- name: insert_children
-- As insert_runs, for children of one run that differ in nothing but id, priority, trace and input: pending at once, without
-- a key, and with ids that were made for them. They can meet with no other, so nothing is checked and nothing given back;
-- all rows by one execution, as insert_plain_runs. What they share, from parent to actor, stands in the first row alone.
-- Served by the unique index of workflow. Serves: children.
-- takes: rows (tenant int, id uuid, parent uuid, root uuid, workflow text, actor text, priority int, trace text, input text)
-- gives: nothing
WITH f (tenant, parent, root, workflow, actor) AS (
    SELECT c1, c3, c4, c5, c6 FROM holdfast_rows WHERE c3 IS NOT NULL),
n (id, priority, trace, input) AS (
    SELECT c2, c7, c8, c9 FROM holdfast_rows)
INSERT INTO run (tenant_id, id, workflow_id, lane, priority, run_at, timeout_at, input, trace, actor, parent, root,
    event_seq, created_at, updated_at, definition_hash, in_time)
SELECT f.tenant, n.id, w.id, w.lane, n.priority, holdfast_now(), holdfast_now() + w.timeout, n.input, n.trace, f.actor,
       f.parent, f.root, 1, holdfast_now(), holdfast_now(), w.definition_hash, holdfast_in_time(n.id)
  FROM f
 CROSS JOIN workflow w ON w.tenant_id = f.tenant AND w.name = f.workflow
 CROSS JOIN n;
INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name, actor)
SELECT r.id, 1, 1, r.tenant_id, r.created_at, 0, 'created', r.actor
  FROM run r WHERE changes() > 0 AND r.rowid > last_insert_rowid() - changes();

-- name: ensure_lanes
-- The lanes of flow keys that new runs need, made where they are missing. Their numbers are odd: run_flow_id goes by that.
-- Served by lane_key. Serves: trigger with a flow key, before insert_runs.
-- takes: rows (tenant int, workflow text, flow_key text)
-- gives: nothing
INSERT INTO lane (id, tenant_id, workflow_id, flow_key, created_at)
SELECT (SELECT max(k.id) FROM lane k) + 1 | 1, ?1, w.id, ?3, holdfast_now()
  FROM workflow w
 WHERE w.tenant_id = ?1 AND w.name = ?2
   AND NOT EXISTS (SELECT 1 FROM lane l WHERE l.workflow_id = w.id AND coalesce(l.flow_key, '') = ?3);

-- name: insert_debounced
-- As insert_runs, for debounced triggers where no run waits under their key. Another conflict than before: with the
-- debounce key of a run that has not begun. Served by the unique indexes of workflow and run. Serves: debounced triggers.
-- takes: rows (tenant int, id uuid, workflow text, key text, priority int, wait bigint, at_most bigint,
--   timeout_at bigint, timeout bigint, max_attempts int, input text, subject text, reference text, tags text,
--   partition text, trace text, actor text, flow_key text, debounce_key text)
-- gives: (id uuid, lane int, run_at bigint, now bigint)
INSERT OR IGNORE INTO run (tenant_id, id, workflow_id, lane, key, priority, run_at, timeout_at, max_attempts, input,
    subject, reference, tags, partition, trace, actor, event_seq, created_at, updated_at, definition_hash,
    debounce_key, debounce_until)
SELECT ?1, ?2, w.id,
       CASE WHEN ?18 IS NULL THEN w.lane
            ELSE (SELECT l.id FROM lane l WHERE l.workflow_id = w.id AND coalesce(l.flow_key, '') = ?18) END, ?4, ?5,
       min(holdfast_now() + ?6, coalesce(?8, holdfast_now() + ?9, holdfast_now() + w.timeout, 9223372036854775807)),
       coalesce(?8, holdfast_now() + ?9, holdfast_now() + w.timeout), ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, 1,
       holdfast_now(), holdfast_now(), w.definition_hash, ?19, holdfast_now() + ?7
  FROM workflow w JOIN tenant t ON t.id = w.tenant_id AND NOT t.disabled
 WHERE w.tenant_id = ?1 AND w.name = ?3;
INSERT OR IGNORE INTO event (run_id, seq, version, tenant_id, at, kind, name, actor)
VALUES (CASE WHEN changes() = 1 THEN ?2 END, 1, 1, ?1, holdfast_now(), 0, 'created', ?17);
SELECT id, lane, run_at, created_at FROM run WHERE changes() = 1 AND tenant_id = ?1 AND id = ?2;

-- name: lock_debounced
-- Locks the runs that debounced triggers may go into, those that have not begun, and reads what is needed to decide, as
-- lock_runs does. Whatever is done to such a run but a debounce, a signal or its deletion raises its version: it is
-- left alone then. Served by run_debounce. Serves: debounced triggers.
-- takes: rows (tenant int, workflow text, debounce_key text)
-- gives: (tenant int, id uuid, workflow text, lane int, priority int, status int, watched int, pause_requested bool,
--   wake_on_failure bool, has_mail bool, attempt int, version bigint, revision bigint, event_seq bigint, wait_count
--   int, run_at bigint, due_at bigint, timeout_at bigint, started_at bigint, paused_at bigint, finished_at bigint,
--   deleted_at bigint, delete_reason text, parent uuid, root uuid, key text, leased_by text, last_worker text,
--   waiting_kind text, waiting_token text, waiting_until bigint, last_signal text, active_task uuid, limited bool,
--   trace text, unfit_since bigint, unfit_pause bigint, fit_within bigint,
--   debounce_key text, input text, debounce_until bigint, created_at bigint)
SELECT r.tenant_id, r.id, w.name, r.lane, r.priority, r.status, r.watched, r.pause_requested, r.wake_on_failure,
       r.has_mail, r.attempt, r.version, r.revision, r.event_seq, r.wait_count, r.run_at, r.due_at,
       r.timeout_at, r.started_at, r.paused_at, r.finished_at, r.deleted_at, r.delete_reason, r.parent, r.root,
       r.key, r.leased_by, r.last_worker, r.waiting_kind, r.waiting_token, r.waiting_until, r.last_signal,
       r.active_task, w.max_running IS NOT NULL, r.trace, r.unfit_since, r.unfit_pause, w.fit_within,
       r.debounce_key, r.input, r.debounce_until, r.created_at
  FROM workflow w
  JOIN run r INDEXED BY run_debounce ON r.workflow_id = w.id AND r.debounce_key = ?3 AND r.debounce_key IS NOT NULL
   AND r.status = 0 AND r.version = 1 AND r.deleted_at IS NULL
 WHERE w.tenant_id = ?1 AND w.name = ?2;

-- name: replace_inputs
-- What debounced triggers change of locked runs besides the row: the newest input. Served by the primary key of run.
-- Serves: debounced triggers, after update_runs.
-- takes: rows (tenant int, id uuid, input text, debounce_until bigint)
-- gives: nothing
UPDATE run SET input = ?3, debounce_until = ?4 WHERE tenant_id = ?1 AND id = ?2;

-- name: find_debounced
-- The journal line that a debounced trigger wrote, if it did: an answer that was lost. Served by the primary key of
-- event. Serves: debounced triggers sent again.
-- takes: rows (run uuid, seq bigint)
-- gives: (run uuid, seq bigint, data text)
SELECT run_id, seq, data FROM event WHERE run_id = ?1 AND seq = ?2 AND kind = 0 AND name = 'debounced';

-- name: insert_tags
-- The tags of new runs, for the filter. Those whose run was refused are left out. Serves: trigger.
-- takes: rows (tenant int, tag text, run uuid)
-- gives: nothing
INSERT INTO run_tag (tenant_id, tag, run_id)
SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM run WHERE tenant_id = ?1 AND id = ?3)
ON CONFLICT DO NOTHING;

-- name: explain_refused
-- Why runs were not inserted: no such workflow, the key is taken, the tenant is disabled, or the id is there already
-- (sent again).
-- Serves: trigger, after insert_runs.
-- takes: rows (tenant int, id uuid, workflow text, key text)
-- gives: (id uuid, workflow_id int, same_id bool, existing uuid, existing_input text, disabled bool, lane int)
SELECT ?2, w.id, s.id IS NOT NULL, k.id, k.input, coalesce(t.disabled, 0), w.lane
  FROM (SELECT 1)
  LEFT JOIN tenant t ON t.id = ?1
  LEFT JOIN workflow w ON w.tenant_id = ?1 AND w.name = ?3
  LEFT JOIN run s ON s.tenant_id = ?1 AND s.id = ?2
  LEFT JOIN run k ON k.workflow_id = w.id AND k.key = ?4 AND k.key IS NOT NULL AND k.deleted_at IS NULL;

-- name: live_patterns
-- What live workers serve, of a tenant (null: of all), to tell a trigger that nobody could run it. The worker table is
-- small. Serves: trigger, doctor.
-- takes: one (tenant text)
-- gives: (tenants text, serves text)
SELECT DISTINCT tenants, serves FROM worker
 WHERE expires_at > holdfast_now() AND NOT draining
   AND (?1 IS NULL OR instr(tenants, '"*"') > 0 OR instr(tenants, '"' || ?1 || '"') > 0);
