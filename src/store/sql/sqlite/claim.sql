-- name: claim_runs
-- Leases due runs to a worker, most urgent first: heads is a JSON array of [lane, priority, floor], in the order in
-- which they are looked at; floor is a run_at below which nothing is left. Runs whose lease expired are taken only up
-- to an attempt. The attempt is counted here and the journal says started. Paused workflows and disabled tenants are
-- passed over. Served by run_claim. Serves: workers.
-- takes: one (heads text, most int, worker text, lease bigint, suspect_attempts int)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint)
UPDATE run
   SET status = 1, claimed_from = status, due_at = run_at, version = version + 1, attempt = attempt + 1,
       event_seq = event_seq + 1, leased_by = ?3, started_at = coalesce(started_at, holdfast_now()),
       updated_at = holdfast_now(),
       run_at = CASE WHEN timeout_at > holdfast_now()
                     THEN min(holdfast_now() + coalesce(?4, (SELECT w.lease FROM workflow w WHERE w.id = workflow_id)),
                              timeout_at)
                     ELSE holdfast_now() + coalesce(?4, (SELECT w.lease FROM workflow w WHERE w.id = workflow_id)) END
 WHERE rowid IN (
    SELECT c.rowid
      FROM json_each(?1) h
     CROSS JOIN lane l ON l.id = h.value ->> 0
     CROSS JOIN workflow w ON w.id = l.workflow_id AND NOT w.paused
     CROSS JOIN tenant n ON n.id = l.tenant_id AND NOT n.disabled
     CROSS JOIN run c INDEXED BY run_claim
        ON c.lane = l.id AND c.priority = h.value ->> 1 AND c.run_at >= h.value ->> 2 AND c.run_at <= holdfast_now()
       AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
       AND (c.status <> 1 OR c.attempt <= ?5)
     LIMIT ?2)
RETURNING id, tenant_id, (SELECT n.name FROM tenant n WHERE n.id = tenant_id),
          (SELECT w.name FROM workflow w WHERE w.id = workflow_id), lane, key, priority, attempt,
          coalesce(max_attempts, (SELECT w.max_attempts FROM workflow w WHERE w.id = workflow_id)), version, revision,
          event_seq, run_at, due_at, claimed_from, has_mail, has_steps, watched, input, state, error, error_code,
          last_error, current_step, waiting_kind, waiting_token, waiting_until, wait_count, last_worker, subject,
          reference, tags, partition, trace, actor, parent, root, timeout_at, created_at, started_at,
          coalesce(?4, (SELECT w.lease FROM workflow w WHERE w.id = workflow_id)),
          (SELECT w.retry_base FROM workflow w WHERE w.id = workflow_id),
          (SELECT w.retry_cap FROM workflow w WHERE w.id = workflow_id),
          (SELECT w.dead_letter FROM workflow w WHERE w.id = workflow_id), updated_at;

-- name: journal_claims
-- The journal's line for claims, where the claim itself cannot write it. Serves: workers, after claim_runs.
-- only: sqlite
-- takes: rows (tenant int, id uuid, seq bigint, version bigint, worker text)
-- gives: nothing
INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name, actor)
VALUES (?2, ?3, ?4, ?1, holdfast_now(), 0, 'started', ?5);

-- name: find_heads
-- For each lane its priorities that have unfinished runs, with the earliest run_at of each, by skipping through
-- run_claim. Serves: workers looking for work and for how long to sleep.
-- takes: one (lanes text)
-- gives: (lane int, priority int, run_at bigint, now bigint)
WITH RECURSIVE head (lane, priority) AS (
    SELECT l.value, (SELECT r.priority FROM run r INDEXED BY run_claim
                      WHERE r.lane = l.value AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
                      ORDER BY r.priority DESC LIMIT 1)
      FROM json_each(?1) l
    UNION ALL
    SELECT p.lane, (SELECT r.priority FROM run r INDEXED BY run_claim
                     WHERE r.lane = p.lane AND r.priority < p.priority
                       AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
                     ORDER BY r.priority DESC LIMIT 1)
      FROM head p WHERE p.priority IS NOT NULL
)
SELECT h.lane, h.priority,
       (SELECT r.run_at FROM run r INDEXED BY run_claim
         WHERE r.lane = h.lane AND r.priority = h.priority
           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
         ORDER BY r.run_at LIMIT 1), holdfast_now()
  FROM head h WHERE h.priority IS NOT NULL;

-- name: next_due
-- The earliest run_at after now per head, which is when a sleeper must wake. Served by run_claim. Serves: workers
-- going to sleep.
-- takes: one (heads text)
-- gives: (run_at bigint, now bigint)
SELECT min((SELECT c.run_at FROM run c INDEXED BY run_claim
             WHERE c.lane = h.value ->> 0 AND c.priority = h.value ->> 1 AND c.run_at > holdfast_now()
               AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
             ORDER BY c.run_at LIMIT 1)), holdfast_now()
  FROM json_each(?1) h;

-- name: adopt_runs
-- Runs that a worker holds according to the store, within one head: claims whose answer was lost. Served by
-- run_claim. Serves: workers after a reconnect.
-- takes: one (heads text, worker text)
-- gives: (id uuid, tenant_id int, version bigint)
SELECT c.id, c.tenant_id, c.version
  FROM json_each(?1) h
 CROSS JOIN run c INDEXED BY run_claim
    ON c.lane = h.value ->> 0 AND c.priority = h.value ->> 1 AND c.leased_by = ?2 AND c.status = 1
   AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
   AND c.run_at <= holdfast_now() + 86400000000;

-- name: load_mail
-- The visible mail of claimed runs, in order. A child's end is always visible, also when the clock was set back: its
-- parent was woken for it. Run after the claim, never inside it: the claim's snapshot is older than the lock. Served by signal_mailbox. Serves: claims.
-- takes: rows (run uuid)
-- gives: (run uuid, id text, type text, name text, payload text, token text, sender text, position bigint, visible_at
--   bigint, occurred_at bigint, attempts int)
SELECT m.run_id, m.id, m.type, m.name, m.payload, m.token, m.sender, m.position, m.visible_at, m.occurred_at, m.attempts
  FROM signal m INDEXED BY signal_mailbox
 WHERE m.run_id = ?1 AND m.consumed_at IS NULL AND (m.visible_at <= holdfast_now() OR m.type = 'child')
 ORDER BY m.visible_at, m.position LIMIT 100000;

-- name: load_steps
-- The recorded steps of claimed runs and where they were tried again (without a step), by sequence. Served by the primary key of event. Serves: claims, steps.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid, seq bigint, position bigint, version bigint, name text, actor text, step text, data text, at
--   bigint)
SELECT run_id, seq, position, version, name, actor, step, data, at
  FROM event WHERE run_id = ?2 AND tenant_id = ?1 AND (kind = 2 OR (kind = 0 AND name = 'retried'))
 ORDER BY seq LIMIT 100000;
