-- name: claim_runs
-- Leases due runs to a worker, most urgent first: heads is a JSON array of [lane, priority, floor], in the order in
-- which they are looked at; floor is a run_at below which nothing is left. Runs whose lease expired are taken only up
-- to an attempt. The attempt is counted here and the journal says started. Paused workflows and disabled tenants are
-- passed over. A locked row stays where it is, so it is updated by its place (ctid); one that was changed between the
-- snapshot and its lock is left for the next claim. Served by run_claim. Serves: workers.
-- takes: one (heads text, most int, worker text, lease bigint, suspect_attempts int)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint)
WITH t AS MATERIALIZED (SELECT holdfast.now() AS now),
due AS MATERIALIZED (
    SELECT r.ctid, n.name AS tenant, w.name, coalesce($4, w.lease) AS lease, w.max_attempts, w.retry_base, w.retry_cap,
           w.dead_letter, t.now
      FROM t
     CROSS JOIN jsonb_array_elements($1::jsonb) AS h(head)
      JOIN holdfast.lane l ON l.id = (h.head->>0)::int
      JOIN holdfast.workflow w ON w.id = l.workflow_id AND NOT w.paused
      JOIN holdfast.tenant n ON n.id = l.tenant_id AND NOT n.disabled
     CROSS JOIN LATERAL (
        SELECT c.ctid
          FROM holdfast.run c
         WHERE c.lane = l.id AND c.priority = (h.head->>1)::int
           AND c.run_at >= (h.head->>2)::bigint AND c.run_at <= t.now
           AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
           AND (c.status <> 1 OR c.attempt <= $5)
         ORDER BY c.run_at LIMIT $2
           FOR NO KEY UPDATE SKIP LOCKED) r
     LIMIT $2
), ok AS (
    UPDATE holdfast.run r
       SET status = 1, claimed_from = r.status, due_at = r.run_at, version = r.version + 1, attempt = r.attempt + 1,
           event_seq = r.event_seq + 1, leased_by = $3, started_at = coalesce(r.started_at, d.now), updated_at = d.now,
           run_at = CASE WHEN r.timeout_at > d.now THEN least(d.now + d.lease, r.timeout_at) ELSE d.now + d.lease END
      FROM due d
     WHERE r.ctid = d.ctid
    RETURNING r.id, r.tenant_id, d.tenant, d.name, r.lane, r.key, r.priority, r.attempt,
              coalesce(r.max_attempts, d.max_attempts) AS max_attempts, r.version, r.revision, r.event_seq, r.run_at,
              r.due_at, r.claimed_from, r.has_mail, r.has_steps, r.watched, r.input, r.state, r.error, r.error_code,
              r.last_error, r.current_step, r.waiting_kind, r.waiting_token, r.waiting_until, r.wait_count,
              r.last_worker, r.subject, r.reference, r.tags, r.partition, r.trace, r.actor, r.parent, r.root,
              r.timeout_at, r.created_at, r.started_at, d.lease, d.retry_base, d.retry_cap,
              d.dead_letter, r.updated_at
), journal AS (
    INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name, actor)
    SELECT o.id, o.event_seq, o.version, o.tenant_id, o.updated_at, 0, 'started', $3 FROM ok o
)
SELECT o.id, o.tenant_id, o.tenant, o.name, o.lane, o.key, o.priority, o.attempt, o.max_attempts, o.version, o.revision,
       o.event_seq, o.run_at, o.due_at, o.claimed_from, o.has_mail, o.has_steps, o.watched, o.input, o.state, o.error,
       o.error_code, o.last_error, o.current_step, o.waiting_kind, o.waiting_token, o.waiting_until, o.wait_count,
       o.last_worker, o.subject, o.reference, o.tags, o.partition, o.trace, o.actor, o.parent, o.root, o.timeout_at,
       o.created_at, o.started_at, o.lease, o.retry_base, o.retry_cap, o.dead_letter, o.updated_at
  FROM ok o;

-- name: find_heads
-- For each lane its priorities that have unfinished runs, with the earliest run_at of each, by skipping through
-- run_claim. Serves: workers looking for work and for how long to sleep.
-- takes: one (lanes text)
-- gives: (lane int, priority int, run_at bigint, now bigint)
WITH RECURSIVE head AS (
    SELECT (l.lane)::int AS lane, h.priority, h.run_at
      FROM jsonb_array_elements_text($1::jsonb) AS l(lane)
     CROSS JOIN LATERAL (
        SELECT r.priority, r.run_at FROM holdfast.run r
         WHERE r.lane = l.lane::int AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
         ORDER BY r.priority DESC, r.run_at LIMIT 1) h
    UNION ALL
    SELECT p.lane, h.priority, h.run_at
      FROM head p
     CROSS JOIN LATERAL (
        SELECT r.priority, r.run_at FROM holdfast.run r
         WHERE r.lane = p.lane AND r.priority < p.priority
           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
         ORDER BY r.priority DESC, r.run_at LIMIT 1) h
)
SELECT h.lane, h.priority, h.run_at, holdfast.now() FROM head h;

-- name: next_due
-- The earliest run_at after now per head, which is when a sleeper must wake. Served by run_claim. Serves: workers
-- going to sleep.
-- takes: one (heads text)
-- gives: (run_at bigint, now bigint)
SELECT min(r.run_at), holdfast.now()
  FROM jsonb_array_elements($1::jsonb) AS h(head)
 CROSS JOIN LATERAL (
    SELECT c.run_at FROM holdfast.run c
     WHERE c.lane = (h.head->>0)::int AND c.priority = (h.head->>1)::int AND c.run_at > holdfast.now()
       AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
     ORDER BY c.run_at LIMIT 1) r;

-- name: adopt_runs
-- Runs that a worker holds according to the store, within one head: claims whose answer was lost. Served by
-- run_claim. Serves: workers after a reconnect.
-- takes: one (heads text, worker text)
-- gives: (id uuid, tenant_id int, version bigint)
SELECT r.id, r.tenant_id, r.version
  FROM jsonb_array_elements($1::jsonb) AS h(head)
 CROSS JOIN LATERAL (
    SELECT c.id, c.tenant_id, c.version FROM holdfast.run c
     WHERE c.lane = (h.head->>0)::int AND c.priority = (h.head->>1)::int AND c.leased_by = $2 AND c.status = 1
       AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
       AND c.run_at <= holdfast.now() + 86400000000
    OFFSET 0) r;

-- name: load_mail
-- The visible mail of claimed runs, in order. A child's end is always visible, also when the clock was set back: its
-- parent was woken for it. Run after the claim, never inside it: the claim's snapshot is older than the lock. Served by signal_mailbox. Serves: claims.
-- takes: rows (run uuid)
-- gives: (run uuid, id text, type text, name text, payload text, token text, sender text, position bigint, visible_at
--   bigint, occurred_at bigint, attempts int)
SELECT s.run_id, s.id, s.type, s.name, s.payload, s.token, s.sender, s.position, s.visible_at, s.occurred_at, s.attempts
  FROM unnest($1::uuid[]) AS n(run)
 CROSS JOIN LATERAL (
    SELECT m.run_id, m.id, m.type, m.name, m.payload, m.token, m.sender, m.position, m.visible_at, m.occurred_at,
           m.attempts
      FROM holdfast.signal m
     WHERE m.run_id = n.run AND m.consumed_at IS NULL AND (m.visible_at <= holdfast.now() OR m.type = 'child')
     ORDER BY m.visible_at, m.position LIMIT 100000) s;

-- name: load_steps
-- The recorded steps of claimed runs and where they were tried again (without a step), by sequence. Served by the primary key of event. Serves: claims, steps.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid, seq bigint, position bigint, version bigint, name text, actor text, step text, data text, at
--   bigint)
SELECT e.run_id, e.seq, e.position, e.version, e.name, e.actor, e.step, e.data, e.at
  FROM unnest($1::int[], $2::uuid[]) AS n(tenant, run)
 CROSS JOIN LATERAL (
    SELECT v.run_id, v.seq, v.position, v.version, v.name, v.actor, v.step, v.data, v.at
      FROM holdfast.event v
     WHERE v.run_id = n.run AND v.tenant_id = n.tenant AND (v.kind = 2 OR (v.kind = 0 AND v.name = 'retried'))
     ORDER BY v.seq LIMIT 100000) e;
