-- piece: id_bounds
-- Which ids tell the time at which they are stored, s.now: the first of them and the first behind them. run_odd has the same
-- bounds.
(encode(int8send((s.now / 1000 - 1000) << 16), 'hex') || '0000000000000000')::uuid AS first_id,
(encode(int8send((s.now / 1000 + 101) << 16), 'hex') || '0000000000000000')::uuid AS end_id

-- name: insert_runs
-- New runs with their first journal line. One that is not given back was refused: explain_refused tells why. A
-- disabled tenant gets new runs only for what runs already (always).
-- Conflicts with the key or the id do nothing, so sending a batch again does no harm. The lane of a flow key is locked, so
-- that retention leaves it; where it is gone, the null is refused and the flush done again. Served by the unique indexes
-- of workflow, lane and run. Serves: trigger, children, starts.
-- takes: rows (tenant int, id uuid, workflow text, key text, status int, priority int, run_at bigint, delay bigint,
--   timeout_at bigint, timeout bigint, max_attempts int, input text, state text, subject text, reference text,
--   tags text, partition text, trace text, actor text, parent uuid, root uuid, waiting_kind text, waiting_token text,
--   waiting_until bigint, wait_count int, has_mail bool, events int, no_wake bool, always bool, wake_on_failure bool,
--   flow_key text)
-- gives: (id uuid, lane int, run_at bigint, now bigint)
WITH t AS MATERIALIZED (
    SELECT s.now,
           -- include: id_bounds
      FROM (SELECT holdfast.now() AS now OFFSET 0) s
), made AS (
    INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, key, status, priority, run_at, timeout_at,
        max_attempts, input, state, subject, reference, tags, partition, trace, actor, parent, root, waiting_kind,
        waiting_token, waiting_until, wait_count, has_mail, event_seq, created_at, updated_at, definition_hash,
        wake_on_failure, in_time)
    SELECT n.tenant, n.id, w.id,
           CASE WHEN n.flow_key IS NULL THEN w.lane ELSE (
                SELECT l.id FROM holdfast.lane l
                 WHERE l.workflow_id = w.id AND coalesce(l.flow_key, '') = n.flow_key FOR KEY SHARE) END, n.key, n.status, n.priority,
           CASE WHEN n.no_wake THEN least(n.run_at, d.timeout_at)
                ELSE least(coalesce(n.run_at, t.now + n.delay), d.timeout_at) END,
           d.timeout_at, n.max_attempts, n.input, n.state, n.subject, n.reference, n.tags, n.partition, n.trace, n.actor,
           n.parent, n.root, n.waiting_kind, n.waiting_token, n.waiting_until, n.wait_count, n.has_mail, 1 + n.events,
           t.now, t.now, w.definition_hash, n.wake_on_failure,
           CASE WHEN n.id >= t.first_id AND n.id < t.end_id THEN true END
      FROM t, unnest($1::int[], $2::uuid[], $3::text[], $4::text[], $5::int[], $6::int[], $7::bigint[], $8::bigint[],
                  $9::bigint[], $10::bigint[], $11::int[], $12::text[], $13::text[], $14::text[], $15::text[],
                  $16::text[], $17::text[], $18::text[], $19::text[], $20::uuid[], $21::uuid[], $22::text[],
                  $23::text[], $24::bigint[], $25::int[], $26::bool[], $27::int[], $28::bool[], $29::bool[],
                  $30::bool[], $31::text[])
           AS n(tenant, id, workflow, key, status, priority, run_at, delay, timeout_at, timeout, max_attempts, input,
                state, subject, reference, tags, partition, trace, actor, parent, root, waiting_kind, waiting_token,
                waiting_until, wait_count, has_mail, events, no_wake, always, wake_on_failure, flow_key)
      JOIN holdfast.tenant e ON e.id = n.tenant AND (n.always OR NOT e.disabled)
      JOIN holdfast.workflow w ON w.tenant_id = n.tenant AND w.name = n.workflow
     CROSS JOIN LATERAL (SELECT coalesce(n.timeout_at, t.now + n.timeout, t.now + w.timeout) AS timeout_at) d
    ON CONFLICT DO NOTHING
    RETURNING tenant_id, id, lane, run_at, actor, created_at
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT m.id, 1, 1, m.tenant_id, m.created_at, 0, 'created', m.actor FROM made m
)
SELECT m.id, m.lane, m.run_at, m.created_at FROM made m;

-- name: insert_plain_runs
-- As insert_runs, for runs that begin as others do: pending, new, without a key, a parent or a first transition. They can meet
-- with no other, so nothing is checked: to look for conflicts takes a quarter of all time. Served by the unique indexes of
-- workflow and lane. Serves: trigger.
-- takes: rows (tenant int, id uuid, workflow text, priority int, run_at bigint, delay bigint, timeout_at bigint,
--   timeout bigint, max_attempts int, input text, subject text, reference text, tags text, partition text, trace text,
--   actor text, flow_key text)
-- gives: (id uuid, lane int, run_at bigint, now bigint)
WITH t AS MATERIALIZED (
    SELECT s.now,
           -- include: id_bounds
      FROM (SELECT holdfast.now() AS now OFFSET 0) s
), made AS (
    INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, priority, run_at, timeout_at, max_attempts, input,
        subject, reference, tags, partition, trace, actor, event_seq, created_at, updated_at, definition_hash, in_time)
    SELECT n.tenant, n.id, w.id,
           CASE WHEN n.flow_key IS NULL THEN w.lane ELSE (
                SELECT l.id FROM holdfast.lane l
                 WHERE l.workflow_id = w.id AND coalesce(l.flow_key, '') = n.flow_key FOR KEY SHARE) END, n.priority,
           least(coalesce(n.run_at, t.now + n.delay), d.timeout_at), d.timeout_at, n.max_attempts, n.input, n.subject,
           n.reference, n.tags, n.partition, n.trace, n.actor, 1, t.now, t.now, w.definition_hash,
           CASE WHEN n.id >= t.first_id AND n.id < t.end_id THEN true END
      FROM t, unnest($1::int[], $2::uuid[], $3::text[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[],
                     $8::bigint[], $9::int[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[],
                     $15::text[], $16::text[], $17::text[])
           AS n(tenant, id, workflow, priority, run_at, delay, timeout_at, timeout, max_attempts, input, subject,
                reference, tags, partition, trace, actor, flow_key)
      JOIN holdfast.tenant e ON e.id = n.tenant AND NOT e.disabled
      JOIN holdfast.workflow w ON w.tenant_id = n.tenant AND w.name = n.workflow
     CROSS JOIN LATERAL (SELECT coalesce(n.timeout_at, t.now + n.timeout, t.now + w.timeout) AS timeout_at) d
    RETURNING tenant_id, id, lane, run_at, actor, created_at
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT m.id, 1, 1, m.tenant_id, m.created_at, 0, 'created', m.actor FROM made m
)
SELECT m.id, m.lane, m.run_at, m.created_at FROM made m;

-- name: insert_run
-- As insert_plain_runs, for one that is due at once and has nothing else of its own than an input. Alone it comes to a server
-- whose caches are cold, where each parameter, array and function counts; run_odd finds out by itself whether its id tells the
-- time. Served by the unique index of workflow. Serves: a trigger alone in its flush.
-- only: postgres
-- takes: one (tenant int, id uuid, workflow text, priority int, input text, trace text, actor text, deferred bool)
-- gives: (id uuid, lane int, run_at bigint, now bigint)
WITH made AS (
    INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, priority, run_at, timeout_at, input, trace, actor, event_seq,
        created_at, updated_at, definition_hash, deferred)
    SELECT $1, $2, w.id, w.lane, $4, t.now, t.now + w.timeout, $5, $6, $7, 1, t.now, t.now,
           w.definition_hash, $8
      FROM (SELECT holdfast.now() AS now OFFSET 0) t
      JOIN holdfast.tenant e ON e.id = $1 AND NOT e.disabled
      JOIN holdfast.workflow w ON w.tenant_id = $1 AND w.name = $3
    RETURNING lane, run_at, created_at
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT $2, 1, 1, $1, m.created_at, 0, 'created', $7 FROM made m
)
SELECT $2, m.lane, m.run_at, m.created_at FROM made m;

-- name: insert_taken_run
-- As insert_run, for a run that a worker of the same process waits for: it is inserted as that worker's, with what claim_run would
-- give of it, so that neither another look nor another version of its row is needed. Without an attempt it is nobody's: its
-- workflow is paused or has limits, its lane is another one, or another run of its lane and priority is due before it. Served by
-- the unique index of workflow and by run_claim. Serves: a trigger alone in its flush, with the claim that goes along.
-- only: postgres
-- takes: one (tenant int, id uuid, workflow text, priority int, input text, trace text, actor text, lane int, worker text,
--   lease bigint)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint)
WITH w AS MATERIALIZED (
    SELECT s.id, s.lane, e.name AS tenant, coalesce($10, s.lease) AS lease, s.timeout, s.max_attempts, s.retry_base, s.retry_cap,
           s.dead_letter, s.definition_hash, t.now,
           (s.lane = $8 AND NOT s.paused AND s.max_running IS NULL
            AND NOT EXISTS (
                SELECT 1 FROM holdfast.run c
                 WHERE c.lane = s.lane AND c.priority = $4 AND c.run_at < t.now
                   AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL OFFSET 0))::int AS taken
      FROM (SELECT holdfast.now() AS now OFFSET 0) t
      JOIN holdfast.tenant e ON e.id = $1 AND NOT e.disabled
      JOIN holdfast.workflow s ON s.tenant_id = $1 AND s.name = $3
), made AS (
    INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, status, priority, attempt, version, event_seq, run_at, due_at,
        leased_by, started_at, timeout_at, input, trace, actor, created_at, updated_at, definition_hash)
    SELECT $1, $2, w.id, w.lane, w.taken, $4, w.taken, 1 + w.taken, 1 + w.taken,
           CASE w.taken WHEN 1 THEN least(w.now + w.lease, w.now + w.timeout) ELSE w.now END,
           CASE w.taken WHEN 1 THEN w.now END, CASE w.taken WHEN 1 THEN $9 END, CASE w.taken WHEN 1 THEN w.now END,
           w.now + w.timeout, $5, $6, $7, w.now, w.now, w.definition_hash
      FROM w
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT $2, n.seq, n.seq, $1, w.now, 0, n.name, n.actor
      FROM w JOIN (VALUES (1, 'created', $7), (2, 'started', $9)) AS n(seq, name, actor) ON n.seq <= 1 + w.taken
)
SELECT $2, $1, w.tenant, $3, w.lane, NULL::text, $4, w.taken, w.max_attempts, (1 + w.taken)::bigint, 1::bigint,
       (1 + w.taken)::bigint, least(w.now + w.lease, w.now + w.timeout), w.now, 0, false, false, 0, $5, NULL::text, NULL::text,
       NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint, 0, NULL::text, NULL::text, NULL::text,
       NULL::text, NULL::text, $6, $7, NULL::uuid, NULL::uuid, w.now + w.timeout, w.now, w.now, w.lease, w.retry_base,
       w.retry_cap, w.dead_letter, w.now
  FROM w;

-- name: insert_children
-- As insert_runs, for children of one run that differ in nothing but id, priority, trace and input: pending at once, without
-- a key, and with ids that were made for them. They can meet with no other, so nothing is checked and nothing given back;
-- ten thousand of them take half the time. What they share, from parent to actor, stands in the first row alone. Served by
-- the unique index of workflow. Serves: children.
-- takes: rows (tenant int, id uuid, parent uuid, root uuid, workflow text, actor text, priority int, trace text, input text)
-- gives: nothing
WITH t AS MATERIALIZED (
    SELECT f.tenant, f.parent, f.root, f.actor, w.id AS workflow, w.lane, w.timeout, w.definition_hash, s.now,
           -- include: id_bounds
      FROM (SELECT holdfast.now() AS now OFFSET 0) s,
           (SELECT ($1::int[])[1] AS tenant, ($3::uuid[])[1] AS parent, ($4::uuid[])[1] AS root,
                   ($5::text[])[1] AS workflow, ($6::text[])[1] AS actor) f
      JOIN holdfast.workflow w ON w.tenant_id = f.tenant AND w.name = f.workflow
), made AS (
    INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, priority, run_at, timeout_at, input, trace, actor, parent,
        root, event_seq, created_at, updated_at, definition_hash, in_time)
    SELECT t.tenant, n.id, t.workflow, t.lane, n.priority, t.now, t.now + t.timeout, n.input, n.trace, t.actor, t.parent,
           t.root, 1, t.now, t.now, t.definition_hash, CASE WHEN n.id >= t.first_id AND n.id < t.end_id THEN true END
      FROM t, unnest($2::uuid[], $7::int[], $8::text[], $9::text[]) AS n(id, priority, trace, input)
)
INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
SELECT n.id, 1, 1, t.tenant, t.now, 0, 'created', t.actor FROM t, unnest($2::uuid[]) AS n(id);

-- name: ensure_lanes
-- The lanes of flow keys that new runs need, made where they are missing. Two that make one at once wait for each
-- other, so the rows are sorted. Their numbers are odd: run_flow goes by that. Served by lane_key. Serves: trigger with a
-- flow key, before insert_runs.
-- takes: rows (tenant int, workflow text, flow_key text)
-- gives: nothing
INSERT INTO holdfast.lane (id, tenant_id, workflow_id, flow_key)
SELECT nextval('holdfast.lane_id') * 2 + 1, n.tenant, w.id, n.flow_key
  FROM unnest($1::int[], $2::text[], $3::text[]) AS n(tenant, workflow, flow_key)
  JOIN holdfast.workflow w ON w.tenant_id = n.tenant AND w.name = n.workflow
 WHERE NOT EXISTS (SELECT 1 FROM holdfast.lane l
                    WHERE l.workflow_id = w.id AND coalesce(l.flow_key, '') = n.flow_key OFFSET 0)
ON CONFLICT DO NOTHING;

-- name: insert_debounced
-- As insert_runs, for debounced triggers where no run waits under their key. Another conflict than before: with the
-- debounce key of a run that has not begun. Served by the unique indexes of workflow and run. Serves: debounced triggers.
-- takes: rows (tenant int, id uuid, workflow text, key text, priority int, wait bigint, at_most bigint,
--   timeout_at bigint, timeout bigint, max_attempts int, input text, subject text, reference text, tags text,
--   partition text, trace text, actor text, flow_key text, debounce_key text)
-- gives: (id uuid, lane int, run_at bigint, now bigint)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
made AS (
    INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, key, priority, run_at, timeout_at, max_attempts, input,
        subject, reference, tags, partition, trace, actor, event_seq, created_at, updated_at, definition_hash,
        debounce_key, debounce_until)
    SELECT n.tenant, n.id, w.id,
           CASE WHEN n.flow_key IS NULL THEN w.lane ELSE (
                SELECT l.id FROM holdfast.lane l
                 WHERE l.workflow_id = w.id AND coalesce(l.flow_key, '') = n.flow_key FOR KEY SHARE) END, n.key, n.priority,
           least(t.now + n.wait, d.timeout_at), d.timeout_at, n.max_attempts, n.input, n.subject, n.reference, n.tags,
           n.partition, n.trace, n.actor, 1, t.now, t.now, w.definition_hash, n.debounce_key, t.now + n.at_most
      FROM t, unnest($1::int[], $2::uuid[], $3::text[], $4::text[], $5::int[], $6::bigint[], $7::bigint[],
                     $8::bigint[], $9::bigint[], $10::int[], $11::text[], $12::text[], $13::text[], $14::text[],
                     $15::text[], $16::text[], $17::text[], $18::text[], $19::text[])
           AS n(tenant, id, workflow, key, priority, wait, at_most, timeout_at, timeout, max_attempts, input, subject,
                reference, tags, partition, trace, actor, flow_key, debounce_key)
      JOIN holdfast.tenant e ON e.id = n.tenant AND NOT e.disabled
      JOIN holdfast.workflow w ON w.tenant_id = n.tenant AND w.name = n.workflow
     CROSS JOIN LATERAL (SELECT coalesce(n.timeout_at, t.now + n.timeout, t.now + w.timeout) AS timeout_at) d
    ON CONFLICT DO NOTHING
    RETURNING tenant_id, id, lane, run_at, actor, created_at
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT m.id, 1, 1, m.tenant_id, m.created_at, 0, 'created', m.actor FROM made m
)
SELECT m.id, m.lane, m.run_at, m.created_at FROM made m;

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
  FROM unnest($1::int[], $2::text[], $3::text[]) AS n(tenant, workflow, debounce_key)
  JOIN holdfast.workflow w ON w.tenant_id = n.tenant AND w.name = n.workflow
  JOIN holdfast.run r ON r.workflow_id = w.id AND r.debounce_key = n.debounce_key AND r.debounce_key IS NOT NULL
   AND r.status = 0 AND r.version = 1 AND r.deleted_at IS NULL
   FOR NO KEY UPDATE OF r SKIP LOCKED;

-- name: replace_inputs
-- What debounced triggers change of locked runs besides the row: the newest input. Served by the primary key of run.
-- Serves: debounced triggers, after update_runs.
-- takes: rows (tenant int, id uuid, input text, debounce_until bigint)
-- gives: nothing
UPDATE holdfast.run r SET input = u.input, debounce_until = u.debounce_until
  FROM unnest($1::int[], $2::uuid[], $3::text[], $4::bigint[]) AS u(tenant, id, input, debounce_until)
 WHERE r.tenant_id = ANY (ARRAY[u.tenant]) AND r.id = u.id;

-- name: find_debounced
-- The journal line that a debounced trigger wrote, if it did: an answer that was lost. Served by the primary key of
-- event. Serves: debounced triggers sent again.
-- takes: rows (run uuid, seq bigint)
-- gives: (run uuid, seq bigint, data text)
SELECT e.run_id, e.seq, e.data FROM unnest($1::uuid[], $2::bigint[]) AS n(run, seq)
  JOIN holdfast.event e ON e.run_id = ANY (ARRAY[n.run]) AND e.seq = n.seq
 WHERE e.kind = 0 AND e.name = 'debounced';

-- name: insert_tags
-- The tags of new runs, for the filter. Those whose run was refused are left out. Serves: trigger.
-- takes: rows (tenant int, tag text, run uuid)
-- gives: nothing
INSERT INTO holdfast.run_tag (tenant_id, tag, run_id)
SELECT n.tenant, n.tag, n.run FROM unnest($1::int[], $2::text[], $3::uuid[]) AS n(tenant, tag, run)
 WHERE EXISTS (SELECT 1 FROM holdfast.run r WHERE r.tenant_id = n.tenant AND r.id = n.run OFFSET 0)
ON CONFLICT DO NOTHING;

-- name: explain_refused
-- Why runs were not inserted: no such workflow, the key is taken, the tenant is disabled, or the id is there already
-- (sent again).
-- Serves: trigger, after insert_runs.
-- takes: rows (tenant int, id uuid, workflow text, key text)
-- gives: (id uuid, workflow_id int, same_id bool, existing uuid, existing_input text, disabled bool, lane int)
SELECT n.id, w.id, s.id IS NOT NULL, k.id, k.input, coalesce(t.disabled, false), w.lane
  FROM unnest($1::int[], $2::uuid[], $3::text[], $4::text[]) AS n(tenant, id, workflow, key)
  LEFT JOIN holdfast.tenant t ON t.id = n.tenant
  LEFT JOIN holdfast.workflow w ON w.tenant_id = n.tenant AND w.name = n.workflow
  LEFT JOIN LATERAL (
    SELECT r.id FROM holdfast.run r WHERE r.tenant_id = n.tenant AND r.id = n.id OFFSET 0) s ON true
  LEFT JOIN LATERAL (
    SELECT r.id, r.input FROM holdfast.run r
     WHERE r.workflow_id = w.id AND r.key = n.key AND r.key IS NOT NULL AND r.deleted_at IS NULL
    OFFSET 0) k ON true;

-- name: live_patterns
-- What live workers serve, of a tenant (null: of all), to tell a trigger that nobody could run it. The worker table is
-- small. Serves: trigger, doctor.
-- takes: one (tenant text)
-- gives: (tenants text, serves text)
SELECT DISTINCT w.tenants, w.serves FROM holdfast.worker w
 WHERE w.expires_at > holdfast.now() AND NOT w.draining
   AND ($1::text IS NULL OR strpos(w.tenants, '"*"') > 0 OR strpos(w.tenants, '"' || $1 || '"') > 0);
