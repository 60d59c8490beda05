-- name: claim_runs
-- Leases due runs to a worker, most urgent first: heads is a JSON array of [lane, priority, floor, share], in the
-- order in which they are looked at; floor is a run_at below which nothing is left, share the most to take of it.
-- Workflows with limits are left to claim_limited. Runs whose lease expired are taken only up
-- to an attempt, unless they have none left or are late: those need no handler to end. The attempt is counted here and the journal says started. Paused workflows and disabled tenants are
-- passed over. Served by run_claim. Serves: workers.
-- takes: one (heads text, most int, worker text, lease bigint, suspect_attempts int)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint, deferred bool)
UPDATE run
   SET status = 1, claimed_from = status, due_at = CASE WHEN status = 1 THEN due_at ELSE run_at END, version = version + 1, attempt = attempt + 1,
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
     CROSS JOIN workflow w ON w.id = l.workflow_id AND NOT w.paused AND w.max_running IS NULL
     CROSS JOIN tenant n ON n.id = l.tenant_id AND NOT n.disabled
     CROSS JOIN run c INDEXED BY run_claim
        ON c.lane = l.id AND c.priority = h.value ->> 1 AND c.run_at >= h.value ->> 2 AND c.run_at <= holdfast_now()
       AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
       AND (c.status <> 1 OR c.attempt <= ?5 OR c.attempt >= coalesce(c.max_attempts, w.max_attempts)
            OR c.timeout_at <= holdfast_now())
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
          (SELECT w.dead_letter FROM workflow w WHERE w.id = workflow_id), updated_at, NULL;

-- name: claim_limited
-- As claim_runs, for one head of a workflow with limits: takes no more than there are free slots and starts left, of
-- the workflow and of the flow key; charge_starts then pays for the starts. A run whose lease expired keeps its slot:
-- taking it over needs a start only. One that was deleted counts until its lease ends. Of the free slots a worker takes half, or as many as it has idle hands (hands).
-- Served by run_claim and run_slot. Serves: workers.
-- takes: one (heads text, most int, worker text, lease bigint, suspect_attempts int, hands int)
-- gives: (id uuid, tenant_id int, tenant text, workflow text, lane int, key text, priority int, attempt int,
--   max_attempts int, version bigint, revision bigint, event_seq bigint, run_at bigint, due_at bigint, claimed_from
--   int, has_mail bool, has_steps bool, watched int, input text, state text, error text, error_code text, last_error
--   text, current_step text, waiting_kind text, waiting_token text, waiting_until bigint, wait_count int, last_worker
--   text, subject text, reference text, tags text, partition text, trace text, actor text, parent uuid, root uuid,
--   timeout_at bigint, created_at bigint, started_at bigint, lease bigint, retry_base bigint, retry_cap bigint,
--   dead_letter text, now bigint)
UPDATE run
   SET status = 1, claimed_from = status, due_at = CASE WHEN status = 1 THEN due_at ELSE run_at END, version = version + 1, attempt = attempt + 1,
       event_seq = event_seq + 1, leased_by = ?3, slot = workflow_id, started_at = coalesce(started_at, holdfast_now()),
       updated_at = holdfast_now(),
       run_at = CASE WHEN timeout_at > holdfast_now()
                     THEN min(holdfast_now() + coalesce(?4, (SELECT w.lease FROM workflow w WHERE w.id = workflow_id)),
                              timeout_at)
                     ELSE holdfast_now() + coalesce(?4, (SELECT w.lease FROM workflow w WHERE w.id = workflow_id)) END
 WHERE rowid IN (
    WITH head AS MATERIALIZED (
        SELECT l.id AS lane, l.workflow_id, ?1 ->> 0 ->> 1 AS priority, ?1 ->> 0 ->> 2 AS floor,
               min(?2, coalesce(?1 ->> 0 ->> 3, ?2)) AS share, w.max_attempts, w.max_running, w.key_max_running,
               (w.rate_interval + w.rate_count - 1) / w.rate_count AS step, w.rate_burst, w.rate_next,
               (w.key_rate_interval + w.key_rate_count - 1) / w.key_rate_count AS key_step, w.key_rate_burst,
               l.rate_next AS key_rate_next
          FROM lane l
          JOIN workflow w ON w.id = l.workflow_id AND NOT w.paused
          JOIN tenant n ON n.id = w.tenant_id AND NOT n.disabled
         WHERE l.id = ?1 ->> 0 ->> 0
    ), paid AS MATERIALIZED (
        SELECT h.*, CASE WHEN h.rate_next > holdfast_now() + h.step * h.rate_burst + 1000000 THEN holdfast_now()
                         ELSE min(max(coalesce(h.rate_next, 0), holdfast_now()),
                                  holdfast_now() + h.step * h.rate_burst) END AS paid,
               CASE WHEN h.key_rate_next > holdfast_now() + h.key_step * h.key_rate_burst + 1000000 THEN holdfast_now()
                    ELSE min(max(coalesce(h.key_rate_next, 0), holdfast_now()),
                             holdfast_now() + h.key_step * h.key_rate_burst) END AS key_paid
          FROM head h
    ), free AS MATERIALIZED (
        SELECT h.lane, h.workflow_id, h.priority, h.floor, h.max_attempts,
               CASE WHEN h.max_running < 2147483647 THEN max(h.max_running - (
                    SELECT count(*) FROM run r INDEXED BY run_slot
                     WHERE r.slot = h.workflow_id AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > holdfast_now())), 0) END AS slots,
               CASE WHEN h.key_max_running IS NOT NULL THEN max(h.key_max_running - (
                    SELECT count(*) FROM run r INDEXED BY run_slot
                     WHERE r.slot = h.workflow_id AND r.lane = h.lane AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > holdfast_now())), 0)
                    END AS key_slots,
               min(h.share, coalesce((holdfast_now() + h.step * h.rate_burst - h.paid) / h.step, ?2),
                   coalesce((holdfast_now() + h.key_step * h.key_rate_burst - h.key_paid) / h.key_step, ?2)) AS starts
          FROM paid h
    ), most AS MATERIALIZED (
        SELECT f.lane, f.workflow_id, f.priority, f.floor, f.max_attempts, f.starts,
               min(f.starts, coalesce(min(f.slots, max(?6, (f.slots + 1) / 2)), ?2),
                   coalesce(min(f.key_slots, max(?6, (f.key_slots + 1) / 2)), ?2)) AS fresh
          FROM free f
    )
    SELECT o.id FROM (
        SELECT c.rowid AS id
          FROM most m
         CROSS JOIN run c INDEXED BY run_slot
            ON c.slot = m.workflow_id AND c.lane = m.lane AND c.run_at <= holdfast_now()
           AND c.status = 1 AND c.deleted_at IS NULL AND c.priority = m.priority
           AND (c.attempt <= ?5 OR c.attempt >= coalesce(c.max_attempts, m.max_attempts)
                OR c.timeout_at <= holdfast_now())
         LIMIT coalesce((SELECT m.starts FROM most m), 0)) o
     UNION ALL
    SELECT n.id FROM (
        SELECT c.rowid AS id
          FROM most m
         CROSS JOIN run c INDEXED BY run_claim
            ON c.lane = m.lane AND c.priority = m.priority AND c.run_at >= m.floor AND c.run_at <= holdfast_now()
           AND c.status <= 3 AND c.deleted_at IS NULL AND c.run_at IS NOT NULL
           AND (c.status <> 1
                OR (c.slot IS NULL
                    AND (c.attempt <= ?5 OR c.attempt >= coalesce(c.max_attempts, m.max_attempts)
                         OR c.timeout_at <= holdfast_now())))
         LIMIT coalesce((SELECT m.fresh FROM most m), 0)) n
     LIMIT coalesce((SELECT m.starts FROM most m), 0))
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

-- name: charge_starts
-- Pays for starts of a lane, by its workflow's rate and by the rate of its key. Serves: workers, after claim_limited.
-- only: sqlite
-- takes: rows (lane int, starts int)
-- gives: nothing
UPDATE workflow
   SET rate_next = (
       SELECT CASE WHEN workflow.rate_next > holdfast_now() + s.step * workflow.rate_burst + 1000000 THEN holdfast_now()
                   ELSE min(max(coalesce(workflow.rate_next, 0), holdfast_now()),
                            holdfast_now() + s.step * workflow.rate_burst) END + s.step * ?2
         FROM (SELECT (workflow.rate_interval + workflow.rate_count - 1) / workflow.rate_count AS step) s)
 WHERE id = (SELECT l.workflow_id FROM lane l WHERE l.id = ?1) AND rate_count IS NOT NULL;
UPDATE lane
   SET rate_next = (
       SELECT CASE WHEN lane.rate_next > holdfast_now() + s.step * s.burst + 1000000 THEN holdfast_now()
                   ELSE min(max(coalesce(lane.rate_next, 0), holdfast_now()), holdfast_now() + s.step * s.burst) END
              + s.step * ?2
         FROM (SELECT (w.key_rate_interval + w.key_rate_count - 1) / w.key_rate_count AS step, w.key_rate_burst AS burst
                 FROM workflow w WHERE w.id = lane.workflow_id) s)
 WHERE id = ?1 AND EXISTS (SELECT 1 FROM workflow w WHERE w.id = lane.workflow_id AND w.key_rate_count IS NOT NULL);

-- name: flow_state
-- What keeps the lanes of a claim from giving more: free slots, the end of the first lease that holds one where there
-- is none, when the next start is allowed, and what the workflow has free. Served by run_slot. Serves: claims that got
-- less than they would have taken, for how long to sleep.
-- takes: one (heads text)
-- gives: (lane int, slots int, lease_end bigint, start_at bigint, free int, now bigint)
WITH lanes AS MATERIALIZED (
    SELECT DISTINCT l.id, l.workflow_id, l.rate_next
      FROM json_each(?1) h
     CROSS JOIN lane l ON l.id = h.value ->> 0
), flow AS MATERIALIZED (
    SELECT w.id, w.key_max_running, (w.key_rate_interval + w.key_rate_count - 1) / w.key_rate_count AS key_step,
           w.key_rate_burst,
           CASE WHEN w.max_running < 2147483647 THEN w.max_running - (
                SELECT count(*) FROM run r INDEXED BY run_slot
                 WHERE r.slot = w.id AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > holdfast_now())) ELSE 2147483647 END AS slots,
           CASE WHEN w.max_running < 2147483647 THEN (
                SELECT min(r.run_at) FROM run r INDEXED BY run_slot
                 WHERE r.slot = w.id AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > holdfast_now())) END AS lease_end,
           w.rate_burst, (w.rate_interval + w.rate_count - 1) / w.rate_count AS step,
           CASE WHEN w.rate_next > holdfast_now()
                     + (w.rate_interval + w.rate_count - 1) / w.rate_count * w.rate_burst + 1000000 THEN holdfast_now()
                ELSE min(max(coalesce(w.rate_next, 0), holdfast_now()), holdfast_now()
                         + (w.rate_interval + w.rate_count - 1) / w.rate_count * w.rate_burst) END AS paid
      FROM (SELECT DISTINCT k.workflow_id FROM lanes k) d
     CROSS JOIN workflow w ON w.id = d.workflow_id
), keyed AS MATERIALIZED (
    SELECT l.id, f.slots, f.lease_end, coalesce(f.paid - f.step * (f.rate_burst - 1), 0) AS start_at,
           coalesce((holdfast_now() + f.step * f.rate_burst - f.paid) / f.step, 2147483647) AS starts, f.key_max_running,
           CASE WHEN f.key_max_running IS NOT NULL THEN (
                SELECT count(*) FROM run r INDEXED BY run_slot
                 WHERE r.slot = f.id AND r.lane = l.id AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > holdfast_now())) END AS running,
           CASE WHEN f.key_max_running IS NOT NULL THEN (
                SELECT min(r.run_at) FROM run r INDEXED BY run_slot
                 WHERE r.slot = f.id AND r.lane = l.id AND r.status = 1
                   AND (r.deleted_at IS NULL OR r.run_at > holdfast_now())) END AS key_lease_end,
           coalesce(CASE WHEN l.rate_next > holdfast_now() + f.key_step * f.key_rate_burst + 1000000 THEN holdfast_now()
                         ELSE min(max(coalesce(l.rate_next, 0), holdfast_now()),
                                  holdfast_now() + f.key_step * f.key_rate_burst) END
                    - f.key_step * (f.key_rate_burst - 1), 0) AS key_start_at
      FROM lanes l
     CROSS JOIN flow f ON f.id = l.workflow_id
)
SELECT k.id, min(k.slots, coalesce(k.key_max_running - k.running, 2147483647)),
       CASE WHEN k.slots <= 0 THEN k.lease_end ELSE k.key_lease_end END, max(k.start_at, k.key_start_at),
       min(max(k.slots, 0), k.starts), holdfast_now()
  FROM keyed k;

-- name: journal_claims
-- The journal's line for claims, where the claim itself cannot write it. Serves: workers, after claim_runs.
-- only: sqlite
-- takes: rows (tenant int, id uuid, seq bigint, version bigint, worker text)
-- gives: nothing
INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name, actor)
VALUES (?2, ?3, ?4, ?1, holdfast_now(), 0, 'started', ?5);

-- piece: lower_priorities
-- How a walk `head` over lanes goes on from a priority to the next lower one that has unfinished runs, by skipping through
-- run_claim. Null is the end of a lane.
UNION ALL
SELECT p.lane, (SELECT r.priority FROM run r INDEXED BY run_claim
                 WHERE r.lane = p.lane AND r.priority < p.priority
                   AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
                 ORDER BY r.priority DESC LIMIT 1)
  FROM head p WHERE p.priority IS NOT NULL

-- piece: heads
-- The lanes of workflow `w` and their priorities that have unfinished runs. The walk begins above all of them.
WITH RECURSIVE head (lane, priority) AS (
    SELECT l.id, 2147483648 FROM lane l WHERE l.workflow_id = w.id
    -- include: lower_priorities
)

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
    -- include: lower_priorities
)
SELECT h.lane, h.priority,
       (SELECT r.run_at FROM run r INDEXED BY run_claim
         WHERE r.lane = h.lane AND r.priority = h.priority
           AND r.status <= 3 AND r.deleted_at IS NULL AND r.run_at IS NOT NULL
         ORDER BY r.run_at LIMIT 1), holdfast_now()
  FROM head h WHERE h.priority IS NOT NULL;

-- name: find_misplaced
-- Whether leases have ended since a time whose runs are not in the place that they had before they were claimed. Served by
-- run_leased. Serves: claims where runs have been due for a while.
-- takes: one (since bigint)
-- gives: (found bool, now bigint)
SELECT EXISTS (
        SELECT 1 FROM run r INDEXED BY run_leased
         WHERE r.status + 0 = 1 AND r.run_at > min(?1, holdfast_now() - 60000000) AND r.run_at <= holdfast_now()
           AND r.due_at < r.run_at AND r.deleted_at IS NULL), holdfast_now();

-- name: restore_places
-- Puts those runs back, so that the next claim meets them there. They are still leased: who holds one after all may prolong its
-- lease. Served by run_leased. Serves: claims, after find_misplaced.
-- takes: one (since bigint)
-- gives: nothing
UPDATE run SET run_at = due_at
 WHERE rowid IN (
    SELECT r.rowid FROM run r INDEXED BY run_leased
     WHERE r.status + 0 = 1 AND r.run_at > min(?1, holdfast_now() - 60000000) AND r.run_at <= holdfast_now()
       AND r.due_at < r.run_at AND r.deleted_at IS NULL
     LIMIT 10000);

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
-- parent was woken for it. Ends that share a row count as many as they are. Run after the claim, never inside it: the
-- claim's snapshot is older than the lock. Served by signal_mailbox. Serves: claims.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid, id text, type text, name text, payload text, token text, sender text, position bigint, visible_at
--   bigint, occurred_at bigint, attempts int, ends int)
SELECT s.run_id, s.id, s.type, s.name, s.payload, s.token, s.sender, s.position, s.visible_at, s.occurred_at, s.attempts,
       s.ends
  FROM (SELECT m.run_id, m.id, m.type, m.name, m.payload, m.token, m.sender, m.position, m.visible_at, m.occurred_at,
               m.attempts, m.ends,
               sum(coalesce(m.ends, 1)) OVER (ORDER BY m.visible_at, m.position ROWS UNBOUNDED PRECEDING) AS so_far
          FROM signal m INDEXED BY signal_mailbox
         WHERE m.run_id = ?2 AND m.tenant_id = ?1 AND m.consumed_at IS NULL
           AND (m.type = 'child' OR m.visible_at <= holdfast_now())
         ORDER BY m.visible_at, m.position LIMIT 100000) s
 WHERE s.so_far - coalesce(s.ends, 1) < 100000;

-- name: load_steps
-- The recorded steps of claimed runs and where they were tried again (without a step), by sequence. Served by the primary key of event. Serves: claims, steps.
-- takes: rows (tenant int, run uuid)
-- gives: (run uuid, seq bigint, position bigint, version bigint, name text, actor text, step text, data text, at
--   bigint)
SELECT run_id, seq, position, version, name, actor, step, data, at
  FROM event WHERE run_id = ?2 AND tenant_id = ?1 AND (kind = 2 OR (kind = 0 AND name = 'retried'))
 ORDER BY seq LIMIT 100000;
